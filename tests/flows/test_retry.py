"""``--retry``: exactly what was asked for is made again, once; what read it follows, and nothing else."""

from __future__ import annotations

import polars as pl
import pytest

from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.errors import UnreadableMediaError, WindowError
from evicat.schemas.identity import Unit
from evicat.schemas.span import Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store


class TruncatedError(WindowError):
    """An answer that was cut at the token limit."""


NO_ANSWER, CUT = WindowError("no answer"), TruncatedError("cut at 1200 tokens")


@pytest.fixture
def shelf(rerun):
    """One clip, whose local windows at 0 and 4 s fail in the first run: for nothing, and cut."""
    rerun.put("film.mp4", "red")
    rerun.failing = {("sight", 0): NO_ANSWER, ("sight", 4): CUT}
    assert rerun.index().failed_windows == 2
    rerun.failing = {}
    return rerun


def _outcomes(shelf, scale: str) -> list[tuple[str, int]]:
    rows = shelf.coverage().filter(pl.col("scale") == scale)
    return list(rows.select("outcome", "attempts").iter_rows())


def test_each_outcome_is_made_again_alone_then_what_read_it_and_all_equals_a_run_without_failures(
    shelf, equal_part
) -> None:
    assert _outcomes(shelf, "local-2s") == [("failed", 1), ("done", 1), ("failed", 1), ("done", 1)]
    assert shelf.made_by(shelf.index) == []

    assert shelf.made_by(lambda: shelf.index(retry=("truncated",))) == [("sight", 4)]
    assert _outcomes(shelf, "local-2s") == [("failed", 1), ("done", 1), ("done", 2), ("done", 1)]
    assert _outcomes(shelf, "narrative-4s") == [("done", 1), ("stale", 1)]
    narratives = equal_part(shelf.catalog).filter(pl.col("kind") == "narrative")
    assert len(narratives) == 2, "stale windows keep their entries"

    assert shelf.made_by(lambda: shelf.index(retry=("failed",))) == [("sight", 0)]
    assert _outcomes(shelf, "narrative-4s") == [("stale", 1), ("stale", 1)]
    assert shelf.made_by(lambda: shelf.index(retry=("failed", "refused", "truncated"))) == []

    assert shelf.made_by(lambda: shelf.index(retry=("stale",))) == [("digest", 0), ("digest", 4)]
    assert _outcomes(shelf, "narrative-4s") == [("done", 2), ("done", 2)]
    shelf.index(catalog=shelf.folder / "unbroken")
    assert equal_part(shelf.catalog).equals(equal_part(shelf.folder / "unbroken"))


def test_failed_and_stale_together_make_both_in_one_run(shelf, equal_part) -> None:
    made = shelf.made_by(lambda: shelf.index(retry=("failed", "stale")))
    assert made == [("digest", 0), ("digest", 4), ("sight", 0), ("sight", 4)]
    shelf.index(catalog=shelf.folder / "unbroken")
    assert equal_part(shelf.catalog).equals(equal_part(shelf.folder / "unbroken"))


def test_what_fails_again_is_tried_once_a_run_and_its_attempts_add_up(shelf, evicat) -> None:
    shelf.failing = {("sight", 0): NO_ANSWER}
    command = ("index", shelf.media, "-c", shelf.catalog, "--recipe", shelf.recipe, "--retry", "failed")
    assert shelf.made_by(lambda: evicat(*command)) == [("sight", 0), ("sight", 4)]
    again = evicat(*command)
    assert again.code == 3
    assert _outcomes(shelf, "local-2s") == [("failed", 3), ("done", 1), ("done", 2), ("done", 1)]


def test_a_retry_that_a_limit_stops_goes_on_where_it_was(shelf) -> None:
    assert shelf.made_by(lambda: shelf.index(retry=("failed",), limit_windows=1)) == [("sight", 0)]
    assert shelf.made_by(lambda: shelf.index(retry=("failed",))) == [("sight", 4)]
    assert _outcomes(shelf, "local-2s") == [("done", 2), ("done", 1), ("done", 2), ("done", 1)]


def test_a_refused_window_is_made_again(shelf) -> None:
    row = Reader.open(shelf.catalog).dataset("units").to_table(filter="scale = 'local-2s'").to_pylist()[0]
    unit = Unit(**{name: row[name] for name in Unit.model_fields})
    with Store.connect(shelf.catalog, write=True) as store:
        store.open(unit)
        refused = WindowResult(span=Span.from_seconds(2, 4), outcome=Outcome.REFUSED, message="I cannot")
        store.write(unit, refused)
        store.close(unit, complete=True)
    assert shelf.index().earlier_failures == 3
    assert shelf.made_by(lambda: shelf.index(retry=("refused",))) == [("sight", 2)]
    assert _outcomes(shelf, "local-2s")[1] == ("done", 2)


def test_files_that_could_not_be_read_are_tried_again(rerun, monkeypatch) -> None:
    from evicat.catalog import build

    rerun.put("film.mp4")

    def unreadable(*_: object, **__: object) -> None:
        raise UnreadableMediaError("the share was not there")

    with monkeypatch.context() as patch:
        patch.setattr(build, "probe", unreadable)
        assert list(rerun.index().failures) == ["film.mp4"]
    assert "not tried again" in rerun.index().failures["film.mp4"]
    assert rerun.calls == []
    assert rerun.index(retry=("failed",)).made == ["film.mp4"]
    assert rerun.index().unchanged == 1


def test_an_unknown_outcome_is_wrong_usage(shelf, evicat) -> None:
    command = ("index", shelf.media, "--catalog", shelf.catalog, "--recipe", shelf.recipe, "--retry", "bad")
    run = evicat(*command)
    assert run.code == 2
    said = " ".join(run.err.split())
    assert "unknown outcome to retry 'bad'; known: failed, refused, stale, truncated" in said


@pytest.mark.slow
def test_every_entry_has_vectors_again_after_a_retry(rerun) -> None:
    with rerun.recipe.open("a") as recipe:
        recipe.write('[embedder]\nname = "sentence-transformers"\nmodel = "packaged:all-MiniLM-L6-v2"\n')
    rerun.put("film.mp4")
    rerun.failing = {("sight", 4): NO_ANSWER}
    rerun.index()
    rerun.failing = {}
    rerun.index(retry=("failed", "stale"))
    reader = Reader.open(rerun.catalog)
    entries = reader.dataset("entries").to_table()["entry_id"].to_pylist()
    (vectors,) = reader.embedders()
    assert sorted(reader.dataset(vectors).to_table()["entry_id"].to_pylist()) == sorted(entries)
    assert len(entries) == 4 + 2
    head = reader.head
    assert rerun.index().unchanged == 1
    assert Reader.open(rerun.catalog).head == head
