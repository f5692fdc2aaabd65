"""Tagging a library: what is made once, what is made again, and what stays as it was."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from evicat.catalog.audit import audit
from evicat.catalog.tagging.embedding import EmbeddingTagger
from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.loaders import stored_vectors
from evicat.catalog.tagging.run import registered
from evicat.schemas.errors import BusyError, UnknownNameError, UsageError
from evicat.storage.content import content_hash_of
from evicat.storage.locks import ProcessLock
from evicat.storage.maintain import maintain
from evicat.storage.retire import bring_back, retire
from evicat.storage.snapshots import create_snapshot
from evicat.storage.store import Store
from evicat.storage.tables import embedder_id, vectors_table
from evicat.storage.tags import check_registered

from .library import (
    KITCHEN,
    PLACES,
    SIGHT,
    SPEECH,
    STREET,
    TEXTS,
    AxesEmbedder,
    Library,
    embedding,
    factor,
    vocabulary,
)

FIELDS = FieldTagger()
OF_FIELDS = {
    "A kitchen.": ["place:kitchen"],
    "A street in the rain.": ["place:street"],
    "A kitchen on a street.": ["place:kitchen", "place:street"],
    "Nothing of note.": [],
}


def by_embedding(store: Store) -> EmbeddingTagger:
    own = embedder_id(embedding(SIGHT))
    return EmbeddingTagger(
        AxesEmbedder(),
        lambda entries: stored_vectors(store.reader(), vectors_table(own), entries),
        embedder_id=own,
    )


def files(library: Library) -> dict[str, list[str]]:
    """Data files of the entries, by the columns that they hold."""
    dataset = library.reader.dataset("entries").raw
    names = {field.id(): field.name() for field in dataset.lance_schema.fields()}
    found: dict[str, list[str]] = {}
    for fragment in dataset.get_fragments():
        for file in fragment.data_files():
            columns = ",".join(sorted({names[each] for each in file.fields if each in names})) or "factors"
            found.setdefault(columns, []).append(file.path)
    return found


class TestMade:
    def test_entries_carry_what_their_words_say(self, library: Library) -> None:
        done = library.tag(FIELDS, PLACES)
        assert (len(done.units), done.tags, done.abstained, done.failed) == (4, 6, 0, 0)
        assert done.entries_changed == 5
        assert library.factors() == OF_FIELDS

    def test_a_tag_says_what_decided_it_and_who_made_it(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        (tag,) = library.catalog.tags("a.mp4", factor="place:street", between=(10, 20)).to_dicts()
        assert (tag["verdict"], tag["value"], tag["field"]) == ("yes", "street", "text")
        assert TEXTS[1][tag["text_begin"] : tag["text_end"]] == "street"
        assert (tag["vocabulary"], tag["vocabulary_version"], tag["tagger"]) == ("place", 1, "fields")
        assert tag["made_by"] == FIELDS.producer(PLACES.filled[1]).producer_id
        assert (tag["start_s"], tag["end_s"]) == (10.0, 20.0)

    def test_every_unit_stands_in_the_ledger_also_where_nothing_was_found(self, library: Library) -> None:
        library.tag(FIELDS, vocabulary(KITCHEN, factor("space")))
        units = [row for row in library.rows("units") if row["kind"] == "tags"]
        assert [row["complete"] for row in units] == [True] * 4
        assert sorted((row["scale"], row["worst_outcome"]) for row in units) == [
            ("place:kitchen", "done"),
            ("place:kitchen", "done"),
            ("place:space", "empty"),
            ("place:space", "empty"),
        ]
        assert audit(library.reader).holds

    def test_withheld_speech_is_not_tagged_and_kinds_are_kept(self, library: Library) -> None:
        heard = ["A kitchen, heard."] * 4
        library.write("a.mp4", heard, producer=SPEECH, flags=["unsure_speech"], embed=False)
        library.write("b.mp4", ["A kitchen, said."] * 2, producer=SPEECH)
        library.tag(FIELDS, PLACES)
        factors = library.factors()
        assert factors["A kitchen, heard."] == []
        assert factors["A kitchen, said."] == ["place:kitchen"]
        library.tag(FIELDS, vocabulary(KITCHEN | {"kinds": ["speech"]}))
        assert library.factors()["A kitchen."] == []
        assert audit(library.reader).holds

    def test_what_the_view_does_not_show_is_not_tagged(self, library: Library) -> None:
        other = SIGHT.model_copy(update={"version": 2})
        library.write("a.mp4", ["An old kitchen."] * 4, producer=other)
        library.tag(FIELDS, PLACES)
        assert library.factors()["An old kitchen."] == []

    def test_a_catalog_without_entries(self, tmp_path: Path) -> None:
        library = Library(tmp_path / "empty")
        done = library.tag(FIELDS, PLACES)
        assert (len(done.units), done.tags) == (0, 0)
        assert library.catalog.vocabularies()["vocabulary"].to_list() == ["place"]


class TestByLikeness:
    def test_the_same_through_vectors(self, library: Library) -> None:
        library.tag(by_embedding, PLACES)
        assert library.factors() == OF_FIELDS
        (tag,) = library.catalog.tags("a.mp4", factor="place:street", between=(10, 20)).to_dicts()
        assert tag["confidence"] == pytest.approx(2**-0.5, abs=1e-6)
        assert (tag["value"], tag["text_begin"], tag["text_end"]) == ("a street", 0, len(TEXTS[1]))
        assert audit(library.reader).holds

    def test_entries_wait_for_their_vectors(self, library: Library) -> None:
        library.write("c.mp4", ["A kitchen without vectors."], embed=False)
        library.tag(by_embedding, PLACES)
        assert library.factors()["A kitchen without vectors."] == []
        library.write("c.mp4", ["A kitchen without vectors."])
        done = library.tag(by_embedding, PLACES)
        assert len(done.units) == 2
        assert library.factors()["A kitchen without vectors."] == ["place:kitchen"]

    def test_the_last_tagger_of_a_factor_is_shown_and_the_other_is_kept(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        loose = vocabulary(KITCHEN | {"descriptor": "a street"})  # it finds streets
        library.tag(by_embedding, loose.model_copy(update={"version": 2}))
        assert library.factors()["A street in the rain."] == ["place:kitchen", "place:street"]
        assert library.factors()["A kitchen."] == []
        both = library.catalog.tags(factor="place:kitchen", every_tagger=True)
        assert sorted(both["tagger"].unique()) == ["embedding", "fields"]
        assert library.catalog.tags(factor="place:kitchen")["tagger"].unique().to_list() == ["embedding"]
        with Store.connect(library.path, write=True) as store:
            store.activate(FIELDS.producer(PLACES.filled[0]))
        assert library.factors() == OF_FIELDS


class TestAgain:
    def test_nothing_is_made_twice(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        before = {name: library.rows(name) for name in ("tags", "units", "coverage", "entries")}
        done = library.tag(FIELDS, PLACES)
        assert (len(done.units), done.entries_changed) == (0, 0)
        assert {name: library.rows(name) for name in before} == before

    def test_a_new_video_alone_is_tagged(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        library.write("c.mp4", ["A new street."])
        done = library.tag(FIELDS, PLACES)
        assert (len(done.units), done.tags, done.entries_changed) == (2, 1, 1)

    def test_a_backfill_of_one_factor_touches_no_other_tag_and_no_evidence(self, library: Library) -> None:
        library.tag(FIELDS, vocabulary(KITCHEN))
        head, tags, before = dict(library.reader.head.tables), library.rows("tags"), files(library)
        evidence = content_hash_of(library.reader)
        done = library.tag(FIELDS, PLACES.model_copy(update={"version": 2}))
        assert len(done.units) == 2
        after = dict(library.reader.head.tables)
        changed = {name for name in after if after[name] != head[name]}
        assert changed == {"tags", "units", "coverage", "producers", "views", "vocabularies", "entries"}
        assert [row for row in library.rows("tags") if row["factor_id"] == "place:kitchen"] == tags
        assert content_hash_of(library.reader) == evidence
        columns = files(library)
        assert [name for name in columns if "text" in name] == [name for name in before if "text" in name]
        (whole,) = [name for name in columns if "text" in name]
        assert columns[whole] == before[whole], "only the factors were written anew"
        assert columns["factors"] != before["factors"], "these were"

    def test_a_changed_definition_is_another_producer_and_only_of_its_factor(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        changed = vocabulary(KITCHEN | {"words": ["note"]}, STREET, version=2)
        assert library.left(FIELDS, changed) == 2
        library.tag(FIELDS, changed)
        assert library.factors()["Nothing of note."] == ["place:kitchen"]
        assert library.factors()["A kitchen."] == []
        kept = library.catalog.tags(factor="place:kitchen", every_tagger=True)
        assert sorted(kept["vocabulary_version"].unique()) == [1, 2]

    def test_one_factor_by_name(self, library: Library) -> None:
        library.tag(FIELDS, PLACES, factor_ids=["street"])
        assert {row["factor_id"] for row in library.rows("tags")} == {"place:street"}
        with pytest.raises(UnknownNameError, match=r"factor 'place:strete'; known: .*place:street"):
            library.tag(FIELDS, PLACES, factor_ids=["strete"])
        with pytest.raises(UnknownNameError, match="outcome to retry 'bad'"):
            library.tag(FIELDS, PLACES, retry=["bad"])

    def test_a_version_that_says_something_else_is_refused(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        changed = vocabulary(KITCHEN | {"words": ["note"]}, STREET)
        with pytest.raises(UsageError, match=r"version 1 of vocabulary 'place' tagged .* write version = 2"):
            check_registered(library.rows("vocabularies"), registered(changed))
        check_registered(library.rows("vocabularies"), registered(PLACES))


class TestVoid:
    def test_where_an_entry_changed_its_tags_go_and_the_factors_follow(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        texts = ["A kitchen.", "A street in the rain.", "A hall.", "Nothing of note."]
        library.write("a.mp4", texts)
        assert [row["entry_id"] for row in library.rows("tags")] == [
            row["entry_id"] for row in library.catalog.tags("b.mp4").sort("factor_id").to_dicts()
        ]
        shown = library.catalog.entries("a.mp4")
        assert shown["factors"].list.len().sum() == 0
        assert library.catalog.entries("b.mp4")["factors"].list.len().sum() == 2
        assert audit(library.reader).holds
        assert library.left(FIELDS, PLACES) == 2
        library.tag(FIELDS, PLACES)
        assert library.catalog.entries("a.mp4")["factors"].list.len().to_list() == [1, 1, 0, 0]

    def test_not_where_the_same_was_written_again(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        before = library.rows("tags")
        library.write("a.mp4", TEXTS)
        assert library.rows("tags") == before
        assert library.left(FIELDS, PLACES) == 0

    def test_entries_that_came_while_others_were_tagged_are_tagged_as_well(self, library: Library) -> None:
        """Between reading and committing, another run writes: the portion is made anew."""

        class Slow(FieldTagger):
            calls = 0

            def tag(self, entries, factors):
                self.calls += 1
                if self.calls == 1:
                    library.write("b.mp4", ["A street now.", "A street in the rain."])
                return super().tag(entries, factors)

        slow = Slow()
        library.tag(slow, PLACES)
        assert slow.calls == 2
        assert library.factors()["A street now."] == ["place:street"]
        assert library.factors()["A kitchen."] == ["place:kitchen"]
        assert audit(library.reader).holds


class TestKept:
    def test_maintenance_leaves_tags_factors_and_filters(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        maintain(library.path, keep_days=0)
        assert library.factors() == OF_FIELDS
        assert len(library.catalog.entries(factors="place:kitchen and not place:street")) == 2
        library.write("c.mp4", ["A further kitchen."])
        library.tag(FIELDS, PLACES)
        assert len(library.catalog.entries(factors="place:kitchen and not place:street")) == 3

    def test_a_snapshot_shows_them_as_they_were(self, library: Library) -> None:
        library.tag(FIELDS, vocabulary(KITCHEN))
        create_snapshot(library.path, "first")
        library.tag(FIELDS, PLACES.model_copy(update={"version": 2}))
        now, then = library.catalog, type(library.catalog).open(str(library.path), at="first")
        assert len(now.tags()) == 6
        assert len(then.tags()) == 3
        assert then.entries(factors="place:kitchen").height == 3
        with pytest.raises(UnknownNameError):
            then.entries(factors="place:street")

    def test_a_tagger_is_retired_and_comes_back(self, library: Library) -> None:
        library.tag(FIELDS, PLACES)
        own = FIELDS.producer(PLACES.filled[0]).producer_id
        with Store.connect(library.path, write=True) as store:
            moved = retire(store, [own])
            assert (moved.tags, moved.units) == (3, 2)
        assert library.factors()["A kitchen on a street."] == ["place:street"]
        assert audit(library.reader).holds
        with Store.connect(library.path, write=True) as store:
            assert bring_back(store, [own]).tags == 3
        assert library.factors() == OF_FIELDS
        assert library.left(FIELDS, PLACES) == 0

    def test_tags_go_with_the_entries_that_they_are_of(self, library: Library) -> None:
        library.write("a.mp4", ["A kitchen, said."] * 4, producer=SPEECH)
        library.tag(FIELDS, PLACES)
        with Store.connect(library.path, write=True) as store:
            retire(store, [SIGHT.producer_id])
        assert {row["producer_id"] for row in library.rows("tags")} == {SPEECH.producer_id}
        assert audit(library.reader).holds

    def test_two_processes_do_not_tag_at_once(self, library: Library) -> None:
        lock = ProcessLock(library.path / "work" / "claims" / "tagging.lock", "x")
        (library.path / "work" / "claims").mkdir(parents=True, exist_ok=True)
        with lock.held(timeout_s=0), pytest.raises(BusyError, match=r"tagging of .* is held by process"):
            library.tag(FIELDS, PLACES)
        assert library.rows("tags") == []


class TestProved:
    """What ``evicat status --check`` finds where somebody else wrote into the tables."""

    @staticmethod
    def spoil(library: Library, table: str, column: str, value: object, **where: object) -> list[str]:
        """Set a column of the first row that fits; what the proof of tags says then."""
        rows = library.reader.dataset(table).raw.to_table(with_row_address=True)
        at = next(at for at, row in enumerate(rows.to_pylist()) if where.items() <= row.items())
        new = rows.slice(at, 1).select(["_rowaddr"])
        field = rows.schema.field(column)
        new = new.append_column(field, pa.array([value], field.type))
        with Store.connect(library.path, write=True) as store, store.changing() as tables:
            tables.update_column(table, column, new)
        (proof,) = [each for each in audit(library.reader).proofs if each.name == "tags"]
        return [case.what for case in proof.cases]

    @pytest.mark.parametrize(
        ("table", "column", "value", "said"),
        [
            ("tags", "verdict", "no", "has the unknown verdict 'no'"),
            ("tags", "entry_id", "gone", "belongs to no entry"),
            ("tags", "window_start_us", 5, "belongs to no window that is done"),
            ("tags", "text_end", 500, "points outside of its text"),
            ("tags", "text_begin", None, "points outside of its text"),
            ("entries", "factors", [], "has the factors [], its tags say ['place:"),
            ("entries", "factors", ["place:x"], "has the factors ['place:x']"),
        ],
    )
    def test_what_is_wrong_is_told(
        self, library: Library, table: str, column: str, value: object, said: str
    ) -> None:
        library.tag(FIELDS, PLACES)
        assert any(said in case for case in self.spoil(library, table, column, value))
