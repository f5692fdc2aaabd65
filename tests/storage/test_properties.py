"""What holds for any ledger, any split of results into chunks and commits, and any history of heads."""

from __future__ import annotations

import shutil
import tempfile
from itertools import pairwise
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.span import Span
from evicat.storage.head import Head, earlier_heads, kept_path, read_head, write_head
from evicat.storage.layout import Layout
from evicat.storage.ledger import UnitState, coverage_rows, unit_rows
from evicat.storage.reader import Reader
from evicat.storage.rows import result_row
from evicat.storage.store import Store
from evicat.storage.tables import OUTCOMES, STAGED

# Ledger

FIVE_HOURS_US = 5 * 3600 * 1_000_000
WITH_ENTRIES = (Outcome.DONE, Outcome.PARTIAL, Outcome.STALE)


@st.composite
def ledgers(draw) -> tuple[list[tuple[WindowResult, int]], int | None]:
    """Windows of one unit in any order, with or without a hole, each with how many entries it has to get;
    and where its timeline is said to end."""
    edges = sorted(draw(st.sets(st.integers(0, FIVE_HOURS_US), max_size=7)))
    if draw(st.booleans()):
        edges = sorted({0, *edges})
    spans = [Span(start, end) for start, end in pairwise(edges)]
    lost = draw(st.sets(st.sampled_from(spans), max_size=1)) if spans else set()
    results = []
    for span in spans:
        outcome = draw(st.sampled_from(OUTCOMES))
        facts = {
            "seconds": draw(st.integers(0, 9)) / 4,
            "prompt_tokens": draw(st.integers(0, 2000)),
            "completion_tokens": draw(st.integers(0, 2000)),
        }
        entries = draw(st.integers(1, 3)) if outcome in WITH_ENTRIES else 0
        if span not in lost:
            results.append((WindowResult(span=span, outcome=outcome, **facts), entries))
    ends = st.none() | st.integers(0, FIVE_HOURS_US) | st.sampled_from([0, *edges[-1:]])
    return draw(st.permutations(results)), draw(ends)


def tiles(results: list[WindowResult], until_us: int) -> bool:
    """Whether the spans of ``results`` follow each other from 0 to ``until_us``."""
    spans = sorted((result.span for result in results), key=lambda span: span.start_us)
    at_us = 0
    for span in spans:
        if span.start_us != at_us:
            return False
        at_us = span.end_us
    return at_us == until_us


@given(st.lists(ledgers(), min_size=1, max_size=3))
def test_unit_rows_say_what_adding_up_coverage_says(making, ledgers_of_units) -> None:
    states, coverage, all_results = [], [], []
    for number, (planned, until_us) in enumerate(ledgers_of_units):
        unit = making.unit(f"video {number}")
        results = [
            result.model_copy(update={"entries": making.done(unit, 0, entries=count).entries})
            for result, count in planned
        ]
        staged = pa.Table.from_pylist([result_row(each, unit.unit_id) for each in results], schema=STAGED)
        states.append(UnitState(unit, "a run", until_us))
        coverage.append(coverage_rows(staged, unit, "a run"))
        all_results.append(results)
    rows = unit_rows(states, pa.concat_tables(coverage)).to_pylist()
    assert [row["unit_id"] for row in rows] == [state.unit.unit_id for state in states]
    for row, state, results in zip(rows, states, all_results, strict=True):
        found = [result.outcome for result in results]
        assert row["windows"] == len(results)
        assert [row[outcome] for outcome in OUTCOMES] == [found.count(outcome) for outcome in OUTCOMES]
        assert row["worst_outcome"] == (max(found, key=OUTCOMES.index) if found else "")
        assert row["entries"] == sum(len(result.entries) for result in results)
        for column in ("seconds", "prompt_tokens", "completion_tokens"):
            assert row[column] == sum(getattr(result, column) for result in results)
        until_us = state.complete_until_us
        assert row["complete"] == (until_us is not None and tiles(results, until_us))


# Commits

WINDOWS = 3
NAMES = ("one", "two")
PLACES = [(name, window) for name in NAMES for window in range(WINDOWS)]
THEN = ("nothing", "seal", "commit", "seal and commit", "start anew")


def fresh_store(making, catalog: Path) -> Store:
    store = Store.connect(catalog, write=True)
    store.add_producer(making.SIGHT)
    store.add_producer(making.MINILM)
    return store


def result_of(making, name: str, window: int) -> WindowResult:
    """Always the same of a window: two entries, one, or a failure."""
    if window == 2:
        return making.failed(window)
    return making.done(making.unit(name), window, f"{name} {window}", entries=2 - window)


def build(making, catalog: Path, steps: list[tuple[tuple[str, int], str]]) -> None:
    """Described, then embedded, window by window; ``steps`` say in which order and what happens then."""
    store = fresh_store(making, catalog)
    for producer in (making.SIGHT, making.MINILM):
        for (name, window), then in steps:
            unit, result = making.unit(name, producer=producer), result_of(making, name, window)
            if producer is making.MINILM:
                result = making.embedded(window, list(result.entries))
            store.open(unit)
            store.write(unit, result)
            if then.startswith("seal"):
                store.seal(unit)
            if then.endswith("commit"):
                store.commit(force=True)
            if then == "start anew":
                store.release()
                store = fresh_store(making, catalog)
        for name in NAMES:
            unit = making.unit(name, producer=producer)
            store.open(unit)
            store.close(unit, complete=True)
    store.finish()


@pytest.fixture(scope="module")
def at_once(making, empty_catalog, tmp_path_factory):
    """All rows of a catalog whose results were committed in one go."""
    catalog = Path(shutil.copytree(empty_catalog, tmp_path_factory.mktemp("once") / "catalog"))
    build(making, catalog, [(place, "nothing") for place in PLACES])
    content = making.content(catalog)
    assert [len(content[name]) for name in ("entries", "coverage", making.VECTORS)] == [6, 12, 6]
    assert all(row["complete"] for row in content["units"])
    return content


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.permutations(PLACES),
    st.lists(st.sampled_from(THEN), min_size=len(PLACES), max_size=len(PLACES)),
    st.sampled_from([1, 5000, 1 << 28]),
)
def test_however_results_are_split_the_tables_are_the_same(
    making, empty_catalog, at_once, places, then, batch_bytes
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("evicat.storage.commit.BATCH_BYTES", batch_bytes),
    ):
        catalog = Path(shutil.copytree(empty_catalog, Path(folder) / "catalog"))
        build(making, catalog, list(zip(places, then, strict=True)))
        assert making.content(catalog) == at_once


@pytest.mark.parametrize("windows", [3, 60])
def test_a_commit_adds_one_version_to_a_table_however_many_windows_it_brings(
    making, catalog, windows
) -> None:
    store = fresh_store(making, catalog)
    store.commit(force=True)
    before = store.head
    store.open(making.unit())
    for window in range(windows):
        store.write(making.unit(), making.done(making.unit(), window))
        store.seal(making.unit())
    store.commit(force=True)
    changed = ("entries", "coverage", "units")
    assert store.head.number == before.number + 1
    assert store.head.tables == before.tables | {name: before.tables[name] + 1 for name in changed}
    assert store.reader().dataset("entries").count_rows() == windows
    store.release()


# Heads

versions = st.dictionaries(st.sampled_from(["entries", "units", "views"]), st.integers(1, 99), min_size=1)
harm = st.sampled_from(["", "cut", "gone"])


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(versions, harm), min_size=1, max_size=6), st.booleans())
def test_every_head_is_kept_by_its_number_until_its_file_is_harmed(history, is_one_ahead: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layout = Layout.of(folder)
        layout.heads.mkdir()
        head, whole = None, []
        for tables, harmed in history:
            head = head.following(tables) if head else Head.first(tables)
            write_head(layout, head)
            assert read_head(layout.head) == head
            path = kept_path(layout, head.number)
            if harmed == "cut":
                path.write_bytes(path.read_bytes()[:-9])
            elif harmed == "gone":
                path.unlink()
            else:
                whole.append(head)
        if is_one_ahead:  # as a crash leaves it, before head.json is replaced
            ahead = head.following({"entries": 100})
            kept_path(layout, ahead.number).write_text(ahead.model_dump_json())
        assert [each.number for each in earlier_heads(layout)] == [each.number for each in reversed(whole)]
        assert earlier_heads(layout) == whole[::-1]


deed = st.sampled_from(["text", "text", "view", "nothing", "indexes"])


@pytest.mark.slow
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(deed, min_size=1, max_size=5))
def test_each_earlier_head_shows_what_was_there_when_it_was_the_newest(making, empty_catalog, deeds) -> None:
    with tempfile.TemporaryDirectory() as folder:
        catalog = Path(shutil.copytree(empty_catalog, Path(folder) / "catalog"))
        store, seen = fresh_store(making, catalog), {}
        store.commit(force=True)
        before = store.head.number
        for number, each in enumerate(deeds):
            if each == "text":
                store.open(making.unit())
                store.write(making.unit(), making.done(making.unit(), 0, f"text {number}"))
                store.close(making.unit(), complete=False)
            elif each == "view":
                store.activate(making.SIGHT.model_copy(update={"version": 10 + number}))
            elif each == "indexes":
                store.refresh_indexes()
            store.commit(force=True)
            if each in ("text", "view"):
                assert store.head.number == before + 1, "one commit, one head"
            if each == "nothing":
                assert store.head.number == before, "nothing new, no new head"
            before = store.head.number
            seen[before] = rows(store.reader())
        store.release()
        heads = {head.number: head for head in earlier_heads(Layout.of(catalog))}
        assert list(heads) == list(range(before, 0, -1))
        for number, expected in seen.items():
            assert rows(Reader.open(catalog, heads[number])) == expected


def rows(reader) -> list[list[dict]]:
    return [
        sorted(reader.dataset(name).to_table().to_pylist(), key=str)
        for name in ("entries", "views", "coverage")
    ]
