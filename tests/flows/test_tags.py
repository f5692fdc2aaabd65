"""``evicat tag``: from the command line, over a library that a test writes down."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest

from ..catalog.tagging.library import TEXTS, Library

WORDS = """
vocabulary = "place"
version = {version}
kinds = ["local"]

[[factors]]
id = "place:kitchen"
descriptor = "a kitchen"
words = ["kitchen"]

[[factors]]
id = "place:street"
descriptor = "a street"
words = ["street"]
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = Library(tmp_path_factory.mktemp("library") / "catalog")
    library.write("a.mp4", TEXTS)
    return library.path


@pytest.fixture
def catalog(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "catalog"))


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.toml"
    path.write_text(WORDS.format(version=1))
    return path


def test_a_plan_a_run_and_nothing_left(evicat, catalog: Path, words: Path) -> None:
    before = sorted(path.stat().st_mtime_ns for path in (catalog / "tables").rglob("*"))
    plan = evicat("tag", "--vocabulary", words, "--plan", "--catalog", catalog)
    assert plan.code == 0
    assert "To do: 2 units, 4 entries, no calls of models. Nothing was made." in plan.out
    assert sorted(path.stat().st_mtime_ns for path in (catalog / "tables").rglob("*")) == before
    run = evicat("tag", "--vocabulary", words, "--catalog", catalog)
    assert run.code == 0
    assert "2 units: 4 tags, 0 left open; 3 entries have other factors now" in run.out
    again = evicat("tag", "--vocabulary", words, "--json", "--catalog", catalog)
    told = json.loads(again.out)
    assert (told["complete"], told["units"], told["done"]["tags"]) == (2, 0, 0)
    assert [each["factor"] for each in told["factors"]] == ["place:kitchen", "place:street"]


def test_what_looks_like_the_name_of_an_emoji_is_printed_as_it_stands(
    evicat, catalog: Path, words: Path
) -> None:
    words.write_text(
        WORDS.format(version=1).replace("place:street", "place:book").replace('["street"]', "[]")
    )
    assert "place:book: without words" in evicat("tag", "--vocabulary", words, "--catalog", catalog).err


def test_what_was_tagged_is_searched_exported_listed_and_proved(
    evicat, catalog: Path, words: Path, tmp_path: Path
) -> None:
    evicat("tag", "--vocabulary", words, "--catalog", catalog)
    found = evicat(
        "search", "kitchen", "--mode", "text", "--factors", "not place:street", "--json", "-c", catalog
    )
    assert [json.loads(line)["text"] for line in found.out.splitlines()] == ["A kitchen."]
    wrong = evicat("search", "kitchen", "--mode", "text", "--factors", "place:kichen", "-c", catalog)
    assert (wrong.code, "known: place:kitchen" in wrong.err) == (2, True)
    run = evicat("export", "jsonl", tmp_path / "out", "--factors", "place:street", "-c", catalog)
    assert "2 entries" in run.out
    listed = evicat("producers", "--json", "--catalog", catalog)
    made = [row for row in map(json.loads, listed.out.splitlines()) if row["kind"] == "tags"]
    assert [(row["scale"], row["entries"], row["state"]) for row in made] == [
        ("place:kitchen", 2, "active"),
        ("place:street", 2, "active"),
    ]
    assert evicat("status", "--check", "--catalog", catalog).code == 0
    status = evicat("status", "--catalog", catalog)
    assert status.code == 0
    assert "place:kitchen" not in status.out, "a line for all tags of a tagger"
    assert "tags" in status.out
    retired = evicat("retire", made[0]["producer_id"][:8], "--catalog", catalog)
    assert "2 tags" in retired.out


def test_a_version_that_says_something_else_is_refused_before_anything_is_made(
    evicat, catalog: Path, words: Path
) -> None:
    evicat("tag", "--vocabulary", words, "--catalog", catalog)
    words.write_text(words.read_text().replace('words = ["street"]', 'words = ["rain"]'))
    refused = evicat("tag", "--vocabulary", words, "--catalog", catalog)
    assert refused.code == 2
    assert "write version = 2" in refused.err
    words.write_text(words.read_text().replace("version = 1", "version = 2"))
    run = evicat("tag", "--vocabulary", words, "--catalog", catalog)
    assert "1 units: 1 tags" in run.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name what to tag with"),
        (("--vocabulary", "plaice"), "known: "),
        (("--vocabulary", "place", "--tagger", "guess"), "known: embedding, fields, llm"),
        (("--vocabulary", "place", "--tagger", "llm"), "--model names what the tagger llm asks"),
        (("--vocabulary", "place", "--model", "x"), "--model names what the tagger llm asks"),
        (("--vocabulary", "place", "--vocabulary", "place"), "named twice"),
        (("--vocabulary", "place", "--factor", "kichen"), "known: place:kitchen"),
        (("--vocabulary", "place", "--calibrate", "l.jsonl"), "--calibrate finds thresholds for"),
        (("--vocabulary", "place", "--card", "gone.jsonl"), "cannot be read"),
        (("--vocabulary", "place", "--labels", "l.jsonl"), "--labels is where --label writes to"),
        (("--vocabulary", "place", "--retry", "all"), "outcome to retry 'all'"),
    ],
)
def test_what_is_wrong_is_told(evicat, catalog: Path, arguments: tuple[str, ...], said: str) -> None:
    run = evicat("tag", *arguments, "--catalog", catalog)
    assert run.code == 2
    assert said in run.err


def test_a_factor_without_words_is_told_where_words_are_looked_for(
    evicat, catalog: Path, words: Path
) -> None:
    words.write_text(words.read_text().replace('words = ["street"]', ""))
    run = evicat("tag", "--vocabulary", words, "--catalog", catalog)
    assert run.code == 2
    assert "place:street: without words, the tagger fields cannot find it" in run.err
    assert evicat("tag", "--vocabulary", words, "--factor", "kitchen", "-c", catalog).code == 0


def test_the_packaged_vocabularies_are_listed(evicat, catalog: Path) -> None:
    assert "kitchen" in evicat("tag", "--list", "--catalog", catalog).out
    lines = evicat("tag", "--list", "--json", "--catalog", catalog).out.splitlines()
    assert len(lines) == 10


@pytest.mark.slow
def test_labels_thresholds_and_a_card_with_the_packaged_embedder(
    evicat, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked through a pipe, in two sittings; then calibrated, tagged by that, and measured."""
    library = Library(tmp_path / "real")
    library.write_with_packaged_vectors("a.mp4", [*TEXTS, "A cook at a stove.", "Cars wait."])
    labels = tmp_path / "labels.jsonl"
    label = ("tag", "--label", words, "--factor", "kitchen", "--labels", labels, "-c", library.path)
    for answers in ("y\nn\nwhat\ns\nq\n", "y\nn\ny\nn\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(answers))
        run = evicat(*label)
        assert run.code == 0, run.err
    lines = [json.loads(line) for line in labels.read_text().splitlines()]
    assert [line["label"] for line in lines] == [True, False, None, True, False, True]
    assert len({line["entry_id"] for line in lines}) == 6, "nobody is asked twice"
    told = ("--vocabulary", words, "--tagger", "embedding", "--catalog", library.path)
    run = evicat("tag", *told, "--factor", "kitchen", "--calibrate", labels, "--json")
    measured, total, made = map(json.loads, run.out.splitlines())
    assert (measured["labels"], measured["positive"], total["factor"]) == (5, 3, None)
    assert 0 <= measured["precision"]["interval"][0] <= measured["precision"]["interval"][1] <= 1
    assert made["done"]["units"] == 1
    card = evicat("tag", *told, "--card", labels)
    assert "place:kitchen" in card.out
    one_sided = tmp_path / "one.jsonl"
    one_sided.write_text("".join(json.dumps(line | {"label": True}) + "\n" for line in lines))
    refused = evicat("tag", *told, "--calibrate", one_sided)
    assert refused.code == 2
    assert "say yes: a threshold needs some of both" in refused.err
