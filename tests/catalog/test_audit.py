"""A catalog as evicat makes it passes every proof; damaged in one way, it fails the one about that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from evicat.catalog.audit import Audit, audit
from evicat.catalog.build import build
from evicat.catalog.kit import Kit
from evicat.catalog.proof import SHOWN, Proof
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.storage.head import read_head, write_head
from evicat.storage.layout import Layout
from evicat.storage.reader import Reader
from evicat.storage.store import Store

pytestmark = pytest.mark.slow

RECIPE = """
name = "audited"
[[scales]]
kind = "local"
window_seconds = 5
describer = "sight"
frames = { per_window = 2, max_width = 64 }
options = { ocr_frames = 0 }
[[scales]]
kind = "narrative"
window_seconds = 15
describer = "digest"
[speech]
subtitles = "only"
[embedder]
name = "sentence-transformers"
model = "packaged:all-MiniLM-L6-v2"
[supports]
"""
LONG = "She says that the house by the river is for sale, and that nobody has come to see it. " * 40
SUBTITLES = f"""1
00:00:01,000 --> 00:00:04,000
Hello, I'm Sheila.

2
00:00:16,500 --> 00:00:21,000
{LONG}
"""


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory, evicat_samples: Path) -> Path:
    folder = tmp_path_factory.mktemp("media")
    for name in ("interview.mp4", "phone.mp4"):
        shutil.copy(evicat_samples / name, folder / name)
    (folder / "interview.en.srt").write_text(SUBTITLES)
    return folder


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory, media: Path) -> Path:
    """The catalog of two clips, one with subtitles; it is never changed."""
    catalog = tmp_path_factory.mktemp("healthy") / "catalog"
    recipe = parse_toml(Recipe, RECIPE, "audited")
    with Kit(recipe, Profile()) as kit, Store.connect(catalog, write=True, create=True) as store:
        for name in ("interview.mp4", "phone.mp4"):
            build(media / name, kit, store)
    return catalog


class Patient:
    """A copy of the healthy catalog, to be damaged in one way."""

    def __init__(self, catalog: Path) -> None:
        self.catalog = catalog
        self.layout = Layout.of(catalog)

    def rows(self, table: str) -> pl.DataFrame:
        return pl.from_arrow(Reader.open(self.catalog).dataset(table).to_table())

    def table(self, beginning: str) -> str:
        return next(name for name in Reader.open(self.catalog).names() if name.startswith(beginning))

    def damage(self, table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        """Rewrite a table behind evicat's back, and let the head name the new version."""
        schema = Reader.open(self.catalog).dataset(table).schema
        rows = change(self.rows(table)).to_arrow().cast(schema)
        written = lance.write_dataset(rows, str(self.layout.table(table)), mode="overwrite")
        head = read_head(self.layout.head)
        write_head(self.layout, head.following(head.tables | {table: written.version}))

    def set(self, table: str, where: pl.Expr, **values: object) -> None:
        """Give columns of some rows other values (or expressions)."""

        def change(rows: pl.DataFrame) -> pl.DataFrame:
            assert len(rows.filter(where)), "nothing to damage"
            new = {
                name: value if isinstance(value, pl.Expr) else pl.lit(value) for name, value in values.items()
            }
            return rows.with_columns(
                pl.when(where).then(value).otherwise(pl.col(name)).cast(rows.schema[name]).alias(name)
                for name, value in new.items()
            )

        self.damage(table, change)

    def drop(self, table: str, where: pl.Expr) -> None:
        assert len(self.rows(table).filter(where)), "nothing to drop"
        self.damage(table, lambda rows: rows.filter(~where))

    def twice(self, table: str, where: pl.Expr) -> None:
        assert len(self.rows(table).filter(where)), "nothing to repeat"
        self.damage(table, lambda rows: pl.concat([rows, rows.filter(where)]))

    def audit(self) -> Audit:
        return audit(Reader.open(self.catalog))

    def proof(self, name: str) -> Proof:
        return next(proof for proof in self.audit().proofs if proof.name == name)

    def told(self, name: str) -> str:
        """What the proof says, which must not hold."""
        proof = self.proof(name)
        assert not proof.holds
        assert proof.broken >= len(proof.cases) > 0
        return "\n".join(case.what for case in proof.cases)


@pytest.fixture
def patient(healthy: Path, tmp_path: Path) -> Patient:
    return Patient(Path(shutil.copytree(healthy, tmp_path / "catalog")))


LOCAL, NARRATIVE, SPEECH = (pl.col("kind") == kind for kind in ("local", "narrative", "speech"))
EMBEDDING = pl.col("kind") == "embedding"


def at(seconds: float) -> pl.Expr:
    return pl.col("start_s") == seconds


def test_a_catalog_as_it_was_made_passes_every_proof_and_each_looked_at_something(healthy: Path) -> None:
    result = audit(Reader.open(healthy))
    assert [(proof.name, proof.cases, proof.notes) for proof in result.proofs] == [
        (name, [], [])
        for name in (
            *("tables", "windows", "entries", "ids", "times", "units", "contexts", "inputs", "vectors"),
            *("supports", "tags"),
        )
    ]
    assert result.holds
    reader = Reader.open(healthy)
    looked = {proof.name: proof.looked for proof in result.proofs}
    assert looked.pop("tags") == 0, "nobody has tagged it"
    assert min(looked.values()) > 0
    assert looked["windows"] == reader.dataset("coverage").count_rows()
    assert looked["times"] == reader.dataset("entries").count_rows()
    vectors = next(name for name in reader.names() if name.startswith("vectors_"))
    assert looked["vectors"] == reader.dataset(vectors).count_rows()
    assert looked["supports"] == reader.dataset("supports").count_rows()


def test_portions_of_any_size_give_the_same_answer(healthy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = audit(Reader.open(healthy)).proofs
    monkeypatch.setattr("evicat.catalog.evidence.PORTION_ROWS", 1)
    assert audit(Reader.open(healthy)).proofs == whole


# Windows


def test_a_missing_window_is_found(patient: Patient) -> None:
    patient.drop("coverage", LOCAL & at(10.0))
    gap, lacking = patient.proof("windows").cases
    assert "gap before it" in gap.what
    assert (gap.scale, gap.start_us) == ("local-5s", 15_000_000)
    assert "no outcome" in lacking.what
    assert (lacking.scale, lacking.start_us) == ("local-5s", 10_000_000)


def test_a_missing_last_window_is_found(patient: Patient) -> None:
    last = pl.col("start_s") == pl.col("start_s").max().over("unit_id")
    patient.drop("coverage", SPEECH & last)
    assert "is in no window" in patient.told("windows")


def test_a_window_that_overlaps_another_is_found(patient: Patient) -> None:
    patient.set("coverage", LOCAL & at(10.0), end_s=16.0)
    assert "overlaps the window before it" in patient.told("windows")


def test_a_window_that_ends_too_late_or_before_it_starts_is_found(patient: Patient) -> None:
    patient.set("coverage", SPEECH, end_s=pl.col("end_s") + 1)
    assert "past the end of the video" in patient.told("windows")
    patient.set("coverage", SPEECH, end_s=0.0)
    assert "ends where it starts" in patient.told("windows")


def test_windows_that_tile_but_are_none_of_the_grid_are_found(patient: Patient) -> None:
    patient.set("coverage", LOCAL & at(10.0), end_s=14.0)
    patient.set("coverage", LOCAL & at(15.0), start_s=14.0)
    told = patient.told("windows")
    assert "is no window of its scale" in told
    assert "gap" not in told


# Entries and their windows


def test_a_lost_entry_is_found(patient: Patient) -> None:
    patient.drop("entries", LOCAL & at(10.0))
    assert "has 0 entries, its row says 1" in patient.told("entries")
    assert "table 'entries' has" in patient.told("tables")


def test_a_window_that_is_done_without_entries_is_found(patient: Patient) -> None:
    patient.drop("entries", LOCAL & at(10.0))
    patient.set("coverage", LOCAL & at(10.0), entries=0)
    assert "has the outcome done, but no entries" in patient.told("entries")


def test_a_window_that_failed_and_has_entries_is_found(patient: Patient) -> None:
    patient.set("coverage", LOCAL & at(10.0), outcome="failed")
    assert "has the outcome failed, but 1 entries" in patient.told("entries")


def test_an_entry_of_no_window_is_found(patient: Patient) -> None:
    patient.set("entries", LOCAL & at(10.0), window_start_us=10_000_001)
    assert "belongs to no window: none begins at 10000001 us" in patient.told("entries")


@pytest.mark.parametrize(
    ("column", "wrong"), [("kind", "speech"), ("scale", "local-9s"), ("asset_id", "0" * 32)]
)
def test_an_entry_that_contradicts_its_unit_is_found(patient: Patient, column: str, wrong: str) -> None:
    patient.set("entries", LOCAL & at(10.0), **{column: wrong})
    assert f"has {column} {wrong}, its unit" in patient.told("entries")


def test_a_window_or_unit_that_contradicts_its_producer_is_found(patient: Patient) -> None:
    patient.set("coverage", LOCAL & at(10.0), scale="local-9s")
    assert "window has scale local-9s, its unit local-5s" in patient.told("entries")
    patient.set("units", LOCAL, kind="sound")
    assert "unit is sound local-5s, its producer local local-5s" in patient.told("entries")


# Ids


@pytest.mark.parametrize("table", ["entries", "units", "videos", "names", "producers", "views"])
def test_a_row_that_stands_twice_is_found(patient: Patient, table: str) -> None:
    first = next(iter(patient.rows(table).to_dicts()[0].items()))
    patient.twice(table, pl.int_range(pl.len()) == 0)
    told = patient.told("ids")
    assert f"table {table}: " in told
    assert "more than once" in told
    assert str(first[1]) in told


@pytest.mark.parametrize(
    "wrong", [pl.lit("mine"), pl.col("entry_id") + "x", pl.col("entry_id").str.replace(r"\.000", ".001")]
)
def test_an_entry_id_that_does_not_fit_is_found(patient: Patient, wrong: pl.Expr) -> None:
    patient.set("entries", LOCAL & at(10.0), entry_id=wrong)
    assert "should be" in patient.told("ids")


def test_an_id_that_is_no_hash_is_found(patient: Patient) -> None:
    patient.set("videos", pl.int_range(pl.len()) == 0, asset_id="film")
    assert "asset_id 'film' is not 32 hexadecimal digits" in patient.told("ids")


def test_a_column_that_allows_nulls_where_none_may_be_is_found(patient: Patient) -> None:
    """Lance writes no null into a column that takes none, so that the column has to change first."""
    rows = Reader.open(patient.catalog).dataset("names").to_table()
    path = rows.schema.get_field_index("path")
    schema = rows.schema.set(path, rows.schema.field("path").with_nullable(True))
    rows = rows.cast(schema).set_column(path, schema.field("path"), pa.nulls(len(rows), pa.string()))
    written = lance.write_dataset(rows, str(patient.layout.table("names")), mode="overwrite")
    head = read_head(patient.layout.head)
    write_head(patient.layout, head.following(head.tables | {"names": written.version}))
    assert patient.told("tables").endswith("this release writes: path is string, null allowed")


# Times


def test_an_entry_outside_the_timeline_is_found(patient: Patient) -> None:
    patient.set("entries", SPEECH & at(1.0), end_s=4000.0)
    assert "does not lie on the timeline" in patient.told("times")


def test_a_frame_outside_its_entry_is_found(patient: Patient) -> None:
    patient.set("entries", LOCAL & at(10.0), frames=pl.col("frames").shift(1))
    assert "cites a frame outside its span" in patient.told("times")


def test_frames_out_of_order_are_found(patient: Patient) -> None:
    patient.set("entries", LOCAL & at(10.0), frames=pl.col("frames").list.reverse())
    assert "are not in order" in patient.told("times")


# Units and what is named


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("windows", 99),
        ("done", 0),
        ("entries", 3),
        ("prompt_tokens", 5),
        ("worst_outcome", "failed"),
        ("seconds", -1.0),
    ],
)
def test_a_unit_that_is_not_the_sum_of_its_windows_is_found(
    patient: Patient, column: str, wrong: object
) -> None:
    patient.set("units", LOCAL, **{column: wrong})
    assert f"unit says {column} {wrong}, its windows" in patient.told("units")


def test_a_unit_id_that_is_not_the_hash_of_its_parts_is_found(patient: Patient) -> None:
    patient.set("units", LOCAL, condition_id="c0ffee")
    assert "is not the hash of its asset, producer and condition" in patient.told("units")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("videos", "is not in table videos"),
        ("producers", "is not in table producers"),
        ("roots", "is not in table roots"),
    ],
)
def test_what_is_named_and_not_there_is_found(patient: Patient, table: str, told: str) -> None:
    patient.damage(table, lambda rows: rows.head(0))
    assert told in patient.told("units")


def test_a_name_that_points_to_no_video_is_found(patient: Patient) -> None:
    asset_id = patient.rows("names").filter(name="phone.mp4")["asset_id"].item()
    patient.drop("videos", pl.col("asset_id") == asset_id)
    assert "video name 'phone.mp4' points to a video that is not in table videos" in patient.told("units")


def test_a_name_whose_file_no_run_has_probed_is_told_and_nothing_is_wrong(patient: Patient) -> None:
    """A run that stops at a limit has named all files, and probed some."""
    patient.set("names", pl.col("name") == "phone.mp4", asset_id="f" * 32)
    notes = patient.proof("units").notes
    assert "1 video names are of files that no run has probed so far" in notes


@pytest.mark.parametrize("table", ["coverage", "entries", "vectors_", "supports"])
def test_rows_of_no_unit_are_found(patient: Patient, table: str) -> None:
    name = patient.table(table)
    column = {"vectors_": "embed_unit_id", "supports": "support_unit_id"}.get(table, "unit_id")
    patient.set(name, pl.int_range(pl.len()) == 0, **{column: "e" * 32})
    assert f"1 rows of table {name} are of a unit that is not in table units" in patient.told("units")


# What was read


def test_a_narrative_of_other_texts_than_those_stored_is_found_and_may_be_stale(patient: Patient) -> None:
    patient.set("entries", LOCAL & at(10.0) & (pl.col("frames").list.len() > 0), text="Nothing of the kind.")
    cases = patient.proof("contexts").cases
    assert {(case.scale, case.start_us) for case in cases} == {
        ("narrative-15s", 0),
        ("vectors", 0),
        ("supports", 0),
    }
    patient.set("coverage", NARRATIVE & at(0.0), outcome="stale")
    cases = patient.proof("contexts").cases
    assert {case.scale for case in cases} == {"vectors", "supports"}
    assert "is not marked stale" in cases[0].what


def test_producer_facts_that_do_not_hash_to_their_id_are_found(patient: Patient) -> None:
    changed = pl.col("facts").str.replace('"ocr_frames":0', '"ocr_frames":1')
    patient.set("producers", LOCAL, facts=changed)
    assert "its facts hash to" in patient.told("contexts")
    patient.set("producers", LOCAL, facts="{}")
    assert "its facts cannot be read" in patient.told("contexts")


def test_a_producer_column_that_contradicts_its_facts_is_found(patient: Patient) -> None:
    patient.set("producers", LOCAL, version=77)
    assert "column version says 77" in patient.told("contexts")


def test_a_producer_that_reads_an_unknown_one_is_found(patient: Patient) -> None:
    patient.drop("producers", SPEECH)
    assert "which is not in table producers" in patient.told("contexts")


def test_units_that_share_inputs_and_disagree_are_found(patient: Patient) -> None:
    patient.set("units", NARRATIVE, inputs_hash="other")
    assert "was made from inputs 'other', but the unit speech" in patient.told("inputs")


@pytest.fixture
def moved(patient: Patient, media: Path, tmp_path: Path) -> Path:
    """The media in a folder of the test's own, which the catalog knows as its root."""
    folder = Path(shutil.copytree(media, tmp_path / "media"))
    patient.set("roots", pl.lit(True), location=str(folder))
    proof = patient.proof("inputs")
    assert proof.holds
    assert proof.notes == []
    return folder


def test_a_sidecar_that_changed_is_out_of_date(patient: Patient, moved: Path) -> None:
    (moved / "interview.en.srt").write_text(SUBTITLES.replace("Sheila", "Diane"))
    proof = patient.proof("inputs")
    assert [case.what[:11] for case in proof.cases] == ["out of date"]
    assert patient.audit().video_names[proof.cases[0].asset_id] == "interview.mp4"


def test_a_sidecar_that_came_or_went_is_out_of_date(patient: Patient, moved: Path) -> None:
    (moved / "interview.en.srt").rename(moved / "phone.srt")
    assert patient.proof("inputs").broken == 2


def test_files_out_of_reach_are_counted_and_not_taken_for_changed(patient: Patient, moved: Path) -> None:
    shutil.rmtree(moved)
    proof = patient.proof("inputs")
    assert proof.holds
    assert proof.notes == [
        "subtitles of 2 speech units were not compared with their files: "
        "the video is out of reach, or was written to"
    ]


@pytest.mark.parametrize(("subtitle", "broken"), [("", 0), ("other.srt", 1)])
def test_subtitles_that_a_manifest_names_are_compared(
    patient: Patient, moved: Path, subtitle: str, broken: int
) -> None:
    manifest = moved / "films.csv"
    manifest.write_text(f"id,path,subtitle\ninterview.mp4,interview.mp4,{subtitle}\nphone.mp4,phone.mp4,\n")
    (moved / "other.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nOther words.\n")
    patient.set("roots", pl.lit(True), location=str(manifest), kind="manifest")
    proof = patient.proof("inputs")
    assert (proof.broken, proof.notes) == (broken, [])


# Vectors


def test_a_lost_vector_is_found(patient: Patient) -> None:
    patient.drop(patient.table("vectors_"), LOCAL & at(10.0))
    assert "has no vector in table" in patient.told("vectors")


def test_a_lost_part_is_found(patient: Patient) -> None:
    patient.drop(patient.table("vectors_"), SPEECH & (pl.col("part") == 1))
    assert "which is not 0, 1, 2" in patient.told("vectors")


def test_a_vector_of_no_entry_is_found(patient: Patient) -> None:
    patient.set(patient.table("vectors_"), LOCAL & at(10.0), entry_id="gone")
    assert "vector of gone part 0 belongs to no entry" in patient.told("vectors")


def test_a_vector_of_no_chunk_is_found(patient: Patient) -> None:
    patient.set(patient.table("vectors_"), LOCAL & at(10.0), window_start_us=7)
    assert "belongs to no chunk that is done" in patient.told("vectors")


def test_a_vector_of_withheld_speech_is_found(patient: Patient) -> None:
    patient.set("entries", SPEECH & at(1.0), flags=["repeated"])
    assert "is withheld, but has a vector" in patient.told("vectors")


@pytest.mark.parametrize("factor", [2.0, 1.002, 0.0, float("nan"), float("inf")])
def test_a_vector_of_another_length_is_found(patient: Patient, factor: float) -> None:
    def scale(rows: pl.DataFrame) -> pl.DataFrame:
        numbers = rows["vector"].to_numpy().copy()
        numbers[0] = numbers[0] * np.float32(factor)
        return rows.with_columns(pl.Series("vector", numbers))

    patient.damage(patient.table("vectors_"), scale)
    proof = patient.proof("vectors")
    assert proof.broken == 1
    assert "has length" in proof.cases[0].what


def test_a_text_that_could_not_be_embedded_is_no_fault(patient: Patient) -> None:
    patient.damage(
        patient.table("vectors_"),
        lambda rows: rows.with_columns(
            pl.when(pl.int_range(pl.len()) > 0).then("vector").otherwise(None).alias("vector")
        ),
    )
    assert patient.proof("vectors").holds


# Supports


@pytest.mark.parametrize("sentence", [0, 1])
def test_a_lost_sentence_is_found(patient: Patient, sentence: int) -> None:
    patient.drop("supports", at(0.0) & (pl.col("sentence") == sentence))
    told = patient.told("supports")
    assert "which is not 0, 1, 2" in told or "are not its text" in told


def test_the_sentences_of_a_narrative_that_was_not_weighed_are_missed(patient: Patient) -> None:
    patient.drop("supports", at(15.0))
    assert "has sentences None, which is not 0, 1, 2" in patient.told("supports")


def test_a_sentence_that_says_something_else_is_found(patient: Patient) -> None:
    patient.set("supports", at(0.0) & (pl.col("sentence") == 0), text="Something else.")
    assert "are not its text" in patient.told("supports")


def test_a_sentence_that_stands_twice_is_found(patient: Patient) -> None:
    patient.twice("supports", at(0.0) & (pl.col("sentence") == 0))
    assert "sentence 0 of" in patient.told("supports")


def test_a_sentence_of_no_narrative_or_of_no_finished_unit_is_found(patient: Patient) -> None:
    patient.set("supports", at(0.0) & (pl.col("sentence") == 0), entry_id="gone")
    assert "sentence 0 of gone belongs to no narrative" in patient.told("supports")
    patient.set("coverage", pl.col("kind") == "support", outcome="failed")
    assert "belongs to no unit that is done" in patient.told("supports")


def test_an_unknown_role_is_found(patient: Patient) -> None:
    patient.set("supports", pl.col("sentence") == 0, role="guessed")
    assert "has the unknown role 'guessed'" in patient.told("supports")


def links(entry_id: pl.Expr | None = None, score: float | None = None) -> pl.Expr:
    """The links of a sentence, all to another entry or with another score."""
    link = pl.element().struct.field("entry_id") if entry_id is None else entry_id
    value = pl.element().struct.field("score") if score is None else pl.lit(score)
    return pl.col("rests_on").list.eval(pl.struct(link.alias("entry_id"), value.alias("score")))


def test_a_link_to_what_was_not_read_is_found(patient: Patient) -> None:
    narrative = patient.rows("supports")["entry_id"][0]
    for wrong in ("gone", narrative):
        patient.set("supports", pl.col("rests_on").list.len() > 0, rests_on=links(pl.lit(wrong)))
        assert f"rests on {wrong}, which is no entry that it read" in patient.told("supports")


def test_a_link_to_withheld_speech_is_found(patient: Patient) -> None:
    patient.set("entries", SPEECH & at(1.0), flags=["repeated"])
    assert "which is no entry that it read" in patient.told("supports")


def test_a_link_to_another_time_is_found(patient: Patient) -> None:
    of_the_end = patient.rows("supports").filter(at(15.0))["rests_on"].explode()[0]["entry_id"]
    patient.set("supports", at(0.0) & (pl.col("rests_on").list.len() > 0), rests_on=links(pl.lit(of_the_end)))
    told = patient.told("supports")
    assert f"rests on {of_the_end}, which is elsewhere in time" in told


def test_a_score_that_is_none_is_found(patient: Patient) -> None:
    for wrong in (0.0, 1.5, float("nan")):
        patient.set("supports", pl.col("rests_on").list.len() > 0, rests_on=links(score=wrong))
        assert f"with the score {wrong}" in patient.told("supports")


def test_supports_of_other_entries_than_those_stored_are_found(patient: Patient) -> None:
    patient.set("coverage", pl.col("kind") == "support", context_hash="other")
    assert "it read other entries" in patient.told("contexts")


# Tables


def test_a_head_that_names_a_version_that_is_not_there_is_told_and_nothing_else_is_claimed(
    patient: Patient,
) -> None:
    head = read_head(patient.layout.head)
    write_head(patient.layout, head.following(head.tables | {"names": 99}))
    assert "table 'names' has no usable version 99" in patient.told("tables")
    result = patient.audit()
    assert [proof.skipped for proof in result.proofs] == [False] + [True] * 10
    assert not result.holds


def test_a_missing_data_file_is_found(patient: Patient) -> None:
    next(patient.layout.table("entries").joinpath("data").iterdir()).unlink()
    assert "is missing" in patient.told("tables")


def test_a_truncated_data_file_is_found(patient: Patient) -> None:
    file = next(patient.layout.table("coverage").joinpath("data").iterdir())
    file.write_bytes(file.read_bytes()[:100])
    assert "table 'coverage' cannot be read" in patient.told("tables")


def test_a_table_without_a_column_is_found(patient: Patient) -> None:
    rows = patient.rows("producers").drop("reads")
    written = lance.write_dataset(rows.to_arrow(), str(patient.layout.table("producers")), mode="overwrite")
    head = read_head(patient.layout.head)
    write_head(patient.layout, head.following(head.tables | {"producers": written.version}))
    assert "no reads" in patient.told("tables")


def test_a_table_ahead_of_the_head_is_told_and_no_fault(patient: Patient) -> None:
    rows = Reader.open(patient.catalog).dataset("entries").to_table().slice(0, 1)
    lance.write_dataset(rows, str(patient.layout.table("entries")), mode="append")
    result = patient.audit()
    assert result.holds
    assert "table 'entries' is at version" in result.proofs[0].notes[0]


def test_cases_are_counted_beyond_those_that_are_told(patient: Patient) -> None:
    patient.set("entries", pl.lit(True), entry_id="mine")
    proof = patient.proof("ids")
    assert len(proof.cases) == SHOWN
    assert proof.broken > SHOWN
