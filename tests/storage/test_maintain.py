"""Maintenance leaves few fragments and no version that nothing needs, and takes nothing from any reader."""

import importlib
import os
import shutil
from datetime import UTC, datetime

import lance
import pytest

from evicat.schemas.errors import BusyError, IntegrityError, UsageError
from evicat.storage import maintain as maintenance
from evicat.storage.head import Head, earlier_heads, read_head
from evicat.storage.indexes import unindexed_fragments
from evicat.storage.layout import Layout
from evicat.storage.locks import ProcessLock
from evicat.storage.maintain import TAG, maintain
from evicat.storage.reader import Reader
from evicat.storage.snapshots import create_snapshot, delete_snapshot
from evicat.storage.store import Store

COMMITS = 60
KEPT = "A man waits."
STEPS = [
    ("evicat.storage.maintain:compact", 1, "after"),
    ("evicat.storage.maintain:compact", 4, "before"),
    ("evicat.storage.maintain:move_head", 1, "before"),
    ("evicat.storage.commit:write_head", 1, "before"),
    ("evicat.storage.head:write_durably", 1, "after"),
    ("evicat.storage.maintain:move_head", 1, "after"),
    ("evicat.storage.maintain:forget_heads", 1, "after"),
    ("evicat.storage.maintain:tag", 2, "after"),
    ("evicat.storage.maintain:clean", 1, "before"),
    ("evicat.storage.maintain:clean", 1, "after"),
    ("evicat.storage.maintain:clear_leftovers", 1, "before"),
]


@pytest.fixture(scope="module")
def many_commits(making, empty_catalog, tmp_path_factory):
    """One row of ``entries`` with each of many commits."""
    path = shutil.copytree(empty_catalog, tmp_path_factory.mktemp("many") / "catalog")
    unit = making.unit()
    with Store.connect(path, write=True) as store:
        store.add_producer(making.SIGHT)
        store.open(unit)
        for window in range(COMMITS):
            store.write(unit, making.done(unit, window, f"A man waits {window}."))
            store.seal(unit)
            store.commit(force=True)
    return path


@pytest.fixture
def worn(many_commits, tmp_path):
    """A copy of it, of one test's own."""
    return shutil.copytree(many_commits, tmp_path / "worn")


@pytest.fixture(scope="module")
def replaced(making, empty_catalog, tmp_path_factory):
    """One entry that stays, and one that was replaced twice, each by a commit. Read only."""
    path = shutil.copytree(empty_catalog, tmp_path_factory.mktemp("replaced") / "catalog")
    say(making, path, KEPT, "two")
    for text in ("first", "second", "third"):
        say(making, path, text)
    return path


@pytest.fixture
def small(replaced, tmp_path):
    """A copy of it, of one test's own."""
    return shutil.copytree(replaced, tmp_path / "catalog")


def say(making, catalog, text, name="one"):
    unit = making.unit(name)
    with Store.connect(catalog, write=True) as store:
        store.open(unit)
        store.write(unit, making.done(unit, 0, text))
        store.close(unit, complete=True)


def texts(reader):
    return sorted(reader.dataset("entries").to_table()["text"].to_pylist())


def found(reader, word):
    return reader.table("entries").search(word, query_type="fts").limit(100).to_arrow()["text"].to_pylist()


def table(report, name="entries"):
    return next(each for each in report.tables if each.table == name)


def dataset(catalog, name="entries"):
    return lance.dataset(str(Layout.of(catalog).table(name)))


def tags(catalog, name="entries"):
    return {tag: facts["version"] for tag, facts in dataset(catalog, name).tags.list().items()}


def days_since(head: Head) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(head.written)).total_seconds() / 86_400


def numbers(catalog):
    return [head.number for head in earlier_heads(Layout.of(catalog))]


@pytest.mark.slow
def test_many_small_commits_become_one_fragment_and_one_version(worn):
    rows = texts(Reader.open(worn))
    before = len(dataset(worn).versions())
    assert before > COMMITS
    report = maintain(worn, keep_days=0)
    assert not report.failed
    entries = table(report)
    assert (entries.rows, entries.before.fragments, entries.before.versions) == (COMMITS, COMMITS, before)
    assert (entries.after.fragments, entries.after.versions) == (1, 1)
    assert entries.after.bytes < entries.before.bytes / 10
    reader = Reader.open(worn)
    assert texts(reader) == rows
    assert len(found(reader, "waits")) == COMMITS
    for each in report.tables:
        assert unindexed_fragments(reader.dataset(each.table)) == {}
        assert each.after.versions == len(dataset(worn, each.table).versions()) == 1
    assert numbers(worn) == [report.head] == [reader.version]


@pytest.mark.slow
def test_a_second_maintenance_finds_nothing_to_do(worn):
    head = maintain(worn, keep_days=0).head
    again = maintain(worn, keep_days=0)
    assert again.head == head
    assert again.forgotten_heads == ()
    assert [each.before for each in again.tables] == [each.after for each in again.tables]


@pytest.mark.slow
def test_a_reader_opened_before_goes_on_and_a_new_one_sees_new_rows(making, worn):
    middle = Reader.open(worn, earlier_heads(Layout.of(worn))[COMMITS // 2])
    newest = Reader.open(worn)
    seen, seen_last = texts(middle), texts(newest)
    assert newest.table("entries").count_rows() == COMMITS
    asked = newest.dataset("entries").scanner(batch_size=7).to_batches()
    first = next(iter(asked)).num_rows
    report = maintain(worn, keep_days=days_since(earlier_heads(Layout.of(worn))[COMMITS // 2]))
    assert table(report).after.fragments == 1
    assert len(report.forgotten_heads) > COMMITS // 3
    assert table(report).after.versions < table(report).before.versions
    assert first + sum(batch.num_rows for batch in asked) == COMMITS, "half-read before, read on afterwards"
    assert texts(newest) == texts(Reader.open(worn, newest.head)) == seen_last
    assert len(found(newest, "waits")) == COMMITS
    say(making, worn, "a new row")
    assert texts(newest) == seen_last
    assert "a new row" in texts(Reader.open(worn))
    assert len(seen) < COMMITS


def test_heads_within_the_age_can_be_opened(small):
    heads = {head.number: texts(Reader.open(small, head)) for head in earlier_heads(Layout.of(small))}
    report = maintain(small, keep_days=7)
    assert report.forgotten_heads == ()
    assert numbers(small) == [kept.number for kept in report.kept_heads]
    for head in earlier_heads(Layout.of(small)):
        if head.number in heads:
            assert texts(Reader.open(small, head)) == heads[head.number]
    newest, *others = report.kept_heads
    assert newest.because == ("newest",)
    assert all(kept.because[0].startswith("newest until 2") for kept in others)


def test_an_old_head_that_was_the_newest_until_now_is_kept(small):
    """Age counts from when a head was replaced: a reader may have opened it a moment ago."""
    reader = Reader.open(small)
    for head in earlier_heads(Layout.of(small)):
        aged = head.model_copy(update={"written": "2020-01-01T00:00:00.000+00:00"})
        for path in (small / "heads" / f"{head.number:08d}.json", small / "head.json"):
            if path.name != "head.json" or head == reader.head:
                path.write_text(aged.model_dump_json())
    report = maintain(small, keep_days=1)
    assert numbers(small) == [reader.version + 1, reader.version]
    assert texts(Reader.open(small, earlier_heads(Layout.of(small))[1])) == [KEPT, "third"]
    assert set(tags(small).values()) == set(table(report).kept_versions)


class TestSnapshots:
    def test_their_versions_stay_and_are_freed_when_they_are_deleted(self, making, small):
        create_snapshot(small, "paper")
        named = read_head(small / "head.json")
        say(making, small, "fourth")
        report = maintain(small, keep_days=0)
        assert [kept.because for kept in report.kept_heads] == [("newest",), ("snapshot paper",)]
        assert texts(Reader.open(small, named)) == [KEPT, "third"]
        assert found(Reader.open(small, named), "third") == ["third"]
        assert len(dataset(small).versions()) == 2
        delete_snapshot(small, "paper")
        freed = maintain(small, keep_days=0)
        assert freed.forgotten_heads == (named.number,)
        assert len(dataset(small).versions()) == 1
        assert tags(small) == {f"{TAG}{freed.tables[0].kept_versions[0]}": dataset(small).version}

    def test_nothing_is_removed_while_one_cannot_be_read(self, small):
        create_snapshot(small, "paper")
        (small / "snapshots" / "paper.json").write_text("{")
        before = numbers(small), len(dataset(small).versions())
        with pytest.raises(IntegrityError, match=r"paper\.json"):
            maintain(small, keep_days=0)
        assert (numbers(small), len(dataset(small).versions())) == before


def test_tags_of_others_are_left_and_reported(small):
    own = dataset(small)
    own.tags.create("mine", 3)
    report = maintain(small, keep_days=0)
    assert table(report).foreign_tags == ("mine",)
    assert tags(small)["mine"] == 3
    assert dataset(small).checkout_version("mine").version == 3
    assert table(report).after.versions == 2


def test_a_table_that_fails_is_reported_and_the_others_go_on(small):
    for path in (small / "tables" / "coverage.lance" / "data").iterdir():
        path.write_bytes(b"garbage")
    report = maintain(small, keep_days=0)
    (failed,) = report.failed
    assert failed.table == "coverage"
    assert failed.error
    assert failed.after.versions == failed.before.versions, "nothing is removed from what may be damaged"
    assert table(report).after.versions == table(report).after.fragments == 1
    assert texts(Reader.open(small)) == [KEPT, "third"]


def test_deleted_rows_are_dropped(small):
    report = maintain(small, keep_days=0)
    assert texts(Reader.open(small)) == [KEPT, "third"]
    assert list((small / "tables" / "entries.lance" / "_deletions").glob("*")) == []
    assert table(report).after.fragments == 1


def test_leftovers_are_reported_and_removed_once_they_are_old(small):
    staged = small / "staged"
    hour_ago = datetime.now().timestamp() - 3700
    for name in ("1-x-0.arrow.broken", "2-x-0.arrow.broken", ".3-x-0.arrow.tmp", ".4-x-0.arrow.tmp"):
        (staged / name).touch()
    (small / "heads" / "00000002.json").write_text("{")
    for name in ("1-x-0.arrow.broken", ".3-x-0.arrow.tmp"):
        os.utime(staged / name, (hour_ago, hour_ago))
    report = maintain(small, keep_days=0.03)
    removed = {left.path: left.removed for left in report.leftovers}
    assert removed == {
        "staged/1-x-0.arrow.broken": True,
        "staged/2-x-0.arrow.broken": False,
        "heads/00000002.json": False,
        "staged/.3-x-0.arrow.tmp": True,
        "staged/.4-x-0.arrow.tmp": False,
    }
    assert {path.name for path in staged.iterdir()} == {"2-x-0.arrow.broken", ".4-x-0.arrow.tmp"}
    maintain(small, keep_days=0)
    assert {path.name for path in staged.iterdir()} == {".4-x-0.arrow.tmp"}, "somebody may be writing it"


def test_not_while_somebody_commits(small):
    with (
        ProcessLock(small / "work" / "commit.lock", "x").held(timeout_s=0),
        pytest.raises(BusyError, match="the right to commit"),
    ):
        maintain(small, lock_timeout_s=0)


@pytest.mark.parametrize("days", [-1, float("nan"), 1e9])
def test_impossible_days_are_refused(small, days):
    with pytest.raises(UsageError, match="days to keep must be from 0"):
        maintain(small, keep_days=days)


class Killed(BaseException):
    """As sudden as an exception can be."""


@pytest.mark.parametrize(("target", "count", "when"), STEPS)
def test_killed_anywhere_the_catalog_is_usable(small, making, monkeypatch, target, count, when):
    create_snapshot(small, "paper")
    named = read_head(small / "head.json")
    say(making, small, "fourth")
    module, _, name = target.partition(":")
    owner = importlib.import_module(module)
    original, calls = getattr(owner, name), []

    def mortal(*arguments, **options):
        calls.append(name)
        if len(calls) == count and when == "before":
            raise Killed
        result = original(*arguments, **options)
        if len(calls) == count:
            raise Killed
        return result

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, mortal)
        with pytest.raises(Killed):
            maintain(small, keep_days=0)
    for head in earlier_heads(Layout.of(small)):
        reader = Reader.open(small, head)
        for name in reader.names():
            assert reader.dataset(name).to_table().num_rows >= 0, "whatever is listed can be read"
    assert texts(Reader.open(small)) == [KEPT, "fourth"]
    assert found(Reader.open(small), "fourth") == ["fourth"]
    say(making, small, "fifth")
    report = maintain(small, keep_days=0)
    assert not report.failed
    assert texts(Reader.open(small)) == [KEPT, "fifth"]
    assert found(Reader.open(small), "fifth") == ["fifth"]
    assert texts(Reader.open(small, named)) == [KEPT, "third"]
    assert table(report).after.versions == 2
    assert maintenance.kept_heads(Layout.of(small), maintenance.timedelta(0))[1][0] == named
