"""What was written is there after a crash; what was cut is pending again, and nothing else is lost."""

import errno
import logging
import os

import pytest

from evicat.storage.journal import Journal, JournalLine
from evicat.storage.staging import StagingArea, results_of
from evicat.storage.store import Store
from evicat.storage.units import stage_journal


@pytest.fixture
def journal(making, tmp_path):
    """A journal of three windows."""
    unit = making.unit()
    journal = Journal(tmp_path, unit.unit_id)
    for window in range(3):
        journal.append(
            JournalLine(unit=unit, run_id="r", result=making.done(unit, window, f"line\u2028 {window}\n"))
        )
    return journal


def windows(journal):
    return [line.result.span.start_us // 10_000_000 for line in journal.read()]


def test_lines_come_back_whole(making, journal):
    assert windows(journal) == [0, 1, 2]
    assert journal.read()[1].result == making.done(making.unit(), 1, "line\u2028 1\n")


@pytest.mark.parametrize("cut", [1, 2, 100, -1])
def test_a_cut_last_line_is_dropped_with_a_warning(journal, caplog, cut):
    content = journal.path.read_bytes()
    last = content.rindex(b"\n", 0, -1) + 1
    os.truncate(journal.path, last + cut if cut > 0 else len(content) - 2)
    assert windows(journal) == [0, 1]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "line 3" in caplog.text


def test_a_broken_line_in_the_middle_costs_its_window_only(journal, caplog):
    lines = journal.path.read_bytes().split(b"\n")
    lines[1] = lines[1][:50] + b"\xff\x00" + lines[1][52:]
    journal.path.write_bytes(b"\n".join(lines))
    assert windows(journal) == [0, 2]
    assert "line 2" in caplog.text


def test_a_missing_journal_is_empty(tmp_path):
    assert Journal(tmp_path, "none").read() == []


def test_an_append_that_fails_leaves_the_journal_as_it_was(making, journal, monkeypatch):
    before = journal.path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            journal.append(JournalLine(unit=making.unit(), run_id="r", result=making.failed(3)))
    assert journal.path.read_bytes() == before
    journal.append(JournalLine(unit=making.unit(), run_id="r", result=making.failed(4)))
    assert windows(journal) == [0, 1, 2, 4]


def test_staging_a_journal_keeps_the_last_result_of_a_window(making, journal, tmp_path):
    unit = making.unit()
    journal.append(JournalLine(unit=unit, run_id="r", result=making.failed(1)))
    folder = tmp_path / "staged"
    folder.mkdir()
    stage_journal(journal, staging := StagingArea(folder))
    (chunk,) = staging.chunks_of(unit.unit_id)
    assert {result.span: result.outcome for result in results_of(chunk)}[making.span(1)] == "failed"
    assert not journal.path.exists()


def test_the_next_writer_takes_up_a_journal_even_of_a_unit_that_it_never_opens(making, catalog):
    unit = making.unit()
    store = Store.connect(catalog, write=True)
    store.open(unit)
    store.write(unit, making.done(unit, 0))
    store.release()
    assert making.content(catalog)["entries"] == []
    with Store.connect(catalog, write=True) as store:
        pass
    assert [row["unit_id"] for row in making.content(catalog)["entries"]] == [unit.unit_id]


def test_a_journal_whose_windows_are_staged_too_is_harmless(making, catalog):
    unit = making.unit()
    store = Store.connect(catalog, write=True)
    store.open(unit)
    store.write(unit, making.done(unit, 0))
    path = catalog / "work" / "journal" / f"{unit.unit_id}.jsonl"
    kept = path.read_bytes()
    store.seal(unit)
    path.write_bytes(kept)
    store.release()
    with Store.connect(catalog, write=True) as store:
        assert list(store.open(unit)) == [0]
    assert len(making.content(catalog)["entries"]) == 1


def test_journals_may_lie_elsewhere(making, catalog, tmp_path):
    unit = making.unit()
    with Store.connect(catalog, write=True, work_dir=tmp_path / "fast") as store:
        store.open(unit)
        store.write(unit, making.done(unit, 0))
        assert [path.name for path in (tmp_path / "fast").rglob("*.jsonl")] == [f"{unit.unit_id}.jsonl"]
        assert list((catalog / "work" / "journal").iterdir()) == []
    assert len(making.content(catalog)["entries"]) == 1
