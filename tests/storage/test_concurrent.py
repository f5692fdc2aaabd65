"""Many writers and readers of one catalog: every row once, and every head whole."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from evicat.schemas.errors import BusyError, IntegrityError
from evicat.storage.reader import Reader
from evicat.storage.store import Store
from evicat.storage.tables import ENTRIES
from evicat.storage.transact import check_keys

CHILD = """
import sys
from evicat.schemas.errors import BusyError
from evicat.storage.store import Store
sys.path.insert(0, sys.argv[1])
import making
print("ready", flush=True)
sys.stdin.readline()
with Store.connect(sys.argv[2], write=True, run_id=sys.argv[3]) as store:
    for name in sys.argv[4:]:
        unit = making.unit(name)
        try:
            have = store.open(unit)
        except BusyError:
            continue
        for window in range(5):
            if window * making.WINDOW_US not in have:
                store.write(unit, making.done(unit, window, entries=4))
                print(name, window, flush=True)
        store.close(unit, complete=True)
        store.commit()
"""


def _counts(catalog: Path) -> tuple[int, int]:
    ids = Reader.open(catalog).dataset("entries").to_table(columns=["entry_id"])["entry_id"].to_pylist()
    return len(ids), len(set(ids))


def test_threads_that_all_bring_the_same_twenty_entries_store_each_once(making, catalog) -> None:
    unit = making.unit()
    with Store.connect(catalog, write=True) as store:
        start = threading.Barrier(6)

        def bring(number: int) -> None:
            start.wait()
            for window in range(5):
                store.open(unit)
                store.write(unit, making.done(unit, window, f"by thread {number}", entries=4))
                store.seal(unit)
                store.commit(force=True)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(bring, range(6)))
        store.close(unit, complete=True)
    assert _counts(catalog) == (20, 20)


def test_writers_that_take_turns_replace_and_never_add(making, catalog) -> None:
    unit = making.unit()
    for run in range(3):
        with Store.connect(catalog, write=True, run_id=f"run-{run}") as store:
            store.open(unit)
            for window in range(5):
                store.write(unit, making.done(unit, window, f"run {run}", entries=4))
            store.close(unit, complete=True)
        assert _counts(catalog) == (20, 20)


def test_processes_that_start_together_make_each_window_once(making, catalog) -> None:
    names = [f"video {number}" for number in range(4)]
    command = [sys.executable, "-c", CHILD, str(Path(making.__file__).parent), str(catalog)]
    children = [
        subprocess.Popen(
            [*command, f"run-{number}", *(names if number else reversed(names))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    told = [line for child in children for line in child.communicate()[0].splitlines()]
    assert [child.returncode for child in children] == [0, 0]
    assert max(Counter(told).values()) == 1, "a window was made by both"
    with Store.connect(catalog, write=True) as store:  # what one had to leave to the other is complete
        for name in names:
            assert store.is_complete(making.unit(name))
    assert _counts(catalog) == (80, 80)


@pytest.mark.parametrize(
    ("ids", "message"), [(["a", "a"], "'a'} stands 2 times"), ([None, None], "2 rows without entry_id")]
)
def test_a_batch_with_a_double_or_null_id_is_refused(ids: list[str | None], message: str) -> None:
    rows = pa.Table.from_pydict(
        {
            field.name: pa.array(ids if field.name == "entry_id" else [None] * 2, field.type)
            for field in ENTRIES
        }
    )
    with pytest.raises(IntegrityError, match=message):
        check_keys("entries", rows)


def test_a_unit_is_refused_while_held_and_free_once_let_go_of(making, catalog) -> None:
    unit = making.unit()
    first, second = (Store.connect(catalog, write=True, run_id=name) for name in ("one", "two"))
    for turn in range(20):
        holder, other = (first, second) if turn % 2 else (second, first)
        holder.open(unit)
        with pytest.raises(BusyError, match=unit.unit_id):
            other.open(unit)
        holder.write(unit, making.done(unit, turn))
        holder.close(unit, complete=False)
    second.finish()
    first.release()
    second.release()
    assert _counts(catalog) == (20, 20)


def test_one_holder_however_many_claim_and_let_go(making, catalog) -> None:
    """The lock file vanishes with each release: nobody may hold a lock on a file that is gone."""
    stores = [Store.connect(catalog, write=True, run_id=str(number)) for number in range(4)]
    unit, holders, most, held = making.unit(), [0], [0], [0]
    guard = threading.Lock()

    def claim(store: Store) -> None:
        for _ in range(100):
            lock = store._unit_lock(unit.unit_id)
            try:
                lock.acquire()
            except BusyError:
                continue
            with guard:
                holders[0] += 1
                held[0] += 1
                most[0] = max(most[0], holders[0])
            with guard:
                holders[0] -= 1
            lock.release(remove=True)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(claim, stores))
    for store in stores:
        store.release()
    assert held[0] > 0
    assert most[0] == 1


def test_readers_never_see_half_a_commit(making, catalog) -> None:
    """Units, coverage and entries agree at every head that anybody opens while commits run."""
    units = [making.unit(str(number)) for number in range(3)]
    stop, seen = threading.Event(), []

    def read() -> None:
        while True:
            ended = stop.is_set()
            reader = Reader.open(catalog)
            rows = {
                name: reader.dataset(name).to_table().to_pylist() for name in ("units", "coverage", "entries")
            }
            for row in rows["units"]:
                windows = [each for each in rows["coverage"] if each["unit_id"] == row["unit_id"]]
                entries = [each for each in rows["entries"] if each["unit_id"] == row["unit_id"]]
                assert (row["windows"], row["entries"]) == (len(windows), len(entries))
                assert len({each["text"] for each in entries}) == 1, "entries of two commits"
            seen.append(reader.version)
            if ended:
                return

    def write() -> None:
        with Store.connect(catalog, write=True) as store:
            for turn in range(6):
                for unit in units:
                    store.open(unit)
                    for window in range(3):
                        store.write(unit, making.done(unit, window, f"turn {turn}", entries=1 + turn % 3))
                    store.close(unit, complete=True)
                store.commit(force=True)

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            write()
        finally:
            stop.set()
        for reader in readers:
            reader.result()
    assert len(set(seen)) > 1, "the readers saw several heads"


def test_a_reader_that_stays_open_keeps_its_rows_while_they_are_replaced(making, catalog) -> None:
    unit = making.unit()
    with Store.connect(catalog, write=True) as store:
        for text in ("old", "new"):
            store.open(unit)
            store.write(unit, making.done(unit, 0, text))
            store.close(unit, complete=True)
            store.commit(force=True)
            if text == "old":
                early = Reader.open(catalog)
    assert early.dataset("entries").to_table()["text"].to_pylist() == ["old"]
    assert Reader.open(catalog).dataset("entries").to_table()["text"].to_pylist() == ["new"]
