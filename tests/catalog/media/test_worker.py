"""A child that hangs, dies, raises or is given up costs its own run and nothing else."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from evicat.catalog.media.worker import WorkerPool
from evicat.schemas.errors import AssetError, DecoderCrashedError, DecodeStalledError, UnknownNameError

TASKS = """
import logging, os, signal, time
import numpy as np
from evicat.schemas.errors import AssetError, UnknownNameError

def pid():
    yield os.getpid()

def arrays(sizes):
    for number, size in enumerate(sizes):
        yield number, {"array": np.full((size, 3), number, np.float32)}

def endless():
    number = 0
    while True:
        yield np.full(1 << 20, number % 256, np.uint8)
        number += 1

def written(path, count):
    for number in range(count):
        path.write_text(str(number))
        yield np.zeros(1 << 20, np.uint8)

def hangs():
    yield "first"
    time.sleep(600)

def works_silently(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
        yield None
    yield "done"

def dies(number):
    yield "first"
    os.kill(os.getpid(), number)
    time.sleep(600)

def exits():
    yield "first"
    os._exit(7)

def refuses():
    yield "first"
    raise UnknownNameError("colour", "blurple", ["red"])

def breaks():
    yield "first"
    raise ZeroDivisionError("by zero")

def logs():
    logging.getLogger("evicat.test").warning("three %s", "packets")
    yield "done"
"""


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A module of misbehaving functions that parent and children can import."""
    (tmp_path / "misbehaving.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sys.modules.pop("misbehaving", None)
    import misbehaving

    return misbehaving


def only_pid(pool: WorkerPool, tasks) -> int:
    (pid,) = pool.run(tasks.pid, timeout_s=60)
    return pid


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    while is_alive(pid):
        time.sleep(0.01)


def test_arrays_of_all_sizes_cross_whole(tasks) -> None:
    sizes = [0, 1, 300, 400, 90_000, 3_000_000]
    with WorkerPool() as pool:
        messages = list(pool.run(tasks.arrays, sizes, timeout_s=60))
    assert [number for number, _ in messages] == list(range(len(sizes)))
    for (number, message), size in zip(messages, sizes, strict=True):
        assert message["array"].shape == (size, 3)
        assert (message["array"] == number).all()
        message["array"][:] = 1


def test_later_messages_do_not_change_earlier_ones(tasks) -> None:
    with WorkerPool() as pool:
        kept = [array for array, _ in zip(pool.run(tasks.endless, timeout_s=60), range(40), strict=False)]
    assert [int(array[0]) for array in kept] == list(range(40))
    assert all((array == array[0]).all() for array in kept)


def test_a_slow_reader_holds_the_child_back(tasks, tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    with WorkerPool() as pool:
        results = pool.run(tasks.written, progress, 200, timeout_s=60)
        next(results)
        seen = -1
        while (now := int(progress.read_text() or 0)) != seen:
            seen = now
            time.sleep(0.5)
        assert seen < 40
        assert sum(1 for _ in results) == 199


def test_one_child_serves_run_after_run(tasks) -> None:
    with WorkerPool() as pool:
        assert only_pid(pool, tasks) == only_pid(pool, tasks) != os.getpid()


def test_a_hang_is_ended_and_the_next_run_gets_a_new_child(tasks) -> None:
    with WorkerPool() as pool:
        before = only_pid(pool, tasks)
        results = pool.run(tasks.hangs, timeout_s=0.5, about="film.mp4")
        assert next(results) == "first"
        with pytest.raises(DecodeStalledError, match=r"film\.mp4: no progress for 0\.5 s"):
            next(results)
        assert not is_alive(before)
        assert only_pid(pool, tasks) != before


def test_work_without_results_is_no_hang(tasks) -> None:
    with WorkerPool() as pool:
        assert list(pool.run(tasks.works_silently, 3.0, timeout_s=1.5)) == ["done"]


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (6, "SIGABRT"), (9, "SIGKILL")])
def test_a_crash_names_the_signal(tasks, number: int, name: str) -> None:
    with WorkerPool() as pool:
        results = pool.run(tasks.dies, number, timeout_s=60, about="film.mp4")
        assert next(results) == "first"
        with pytest.raises(DecoderCrashedError, match=rf"film\.mp4: the decoding process died of {name}"):
            next(results)
        assert only_pid(pool, tasks)


def test_a_silent_exit_is_a_crash(tasks) -> None:
    with WorkerPool() as pool, pytest.raises(DecoderCrashedError, match="exit code 7"):
        list(pool.run(tasks.exits, timeout_s=60))


def test_our_errors_arrive_as_they_are_and_leave_the_child_fit(tasks) -> None:
    with WorkerPool() as pool:
        before = only_pid(pool, tasks)
        with pytest.raises(UnknownNameError) as caught:
            list(pool.run(tasks.refuses, timeout_s=60))
        assert str(caught.value) == "unknown colour 'blurple'; known: red"
        assert only_pid(pool, tasks) == before


def test_other_errors_arrive_as_a_crash_with_their_text(tasks) -> None:
    with WorkerPool() as pool:
        with pytest.raises(DecoderCrashedError, match=r"film\.mp4: ZeroDivisionError: by zero"):
            list(pool.run(tasks.breaks, timeout_s=60, about="film.mp4"))
        assert issubclass(DecoderCrashedError, AssetError)
        assert only_pid(pool, tasks)


def test_a_run_given_up_half_way_ends_its_child(tasks) -> None:
    with WorkerPool() as pool:
        before = only_pid(pool, tasks)
        results = pool.run(tasks.endless, timeout_s=60)
        next(results)
        results.close()
        assert not is_alive(before)
        assert only_pid(pool, tasks) != before


def test_threads_have_children_of_their_own(tasks) -> None:
    pids: list[int] = []
    with WorkerPool() as pool:
        runs = [pool.run(tasks.pid, timeout_s=60) for _ in range(3)]
        started = threading.Barrier(3)

        def work(run) -> None:
            pids.append(next(run))
            started.wait(60)
            assert list(run) == []

        threads = [threading.Thread(target=work, args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(set(pids)) == 3
    assert not any(is_alive(pid) for pid in pids)


def test_closing_ends_a_run_in_another_thread(tasks) -> None:
    pool = WorkerPool()
    results = pool.run(tasks.hangs, timeout_s=60)
    next(results)
    pool.close()
    with pytest.raises(DecoderCrashedError, match="SIGKILL"):
        next(results)


def test_log_records_reach_the_parent(tasks, caplog: pytest.LogCaptureFixture) -> None:
    with WorkerPool() as pool, caplog.at_level(logging.WARNING):
        list(pool.run(tasks.logs, timeout_s=60))
    assert ("evicat.test", logging.WARNING, "three packets") in caplog.record_tuples


@pytest.mark.parametrize("task", ["hangs", "endless"])
def test_a_child_does_not_outlive_a_killed_parent(tasks, tmp_path: Path, task: str) -> None:
    script = f"""
        import os, signal, misbehaving
        from evicat.catalog.media.worker import WorkerPool
        pool = WorkerPool()
        print(*pool.run(misbehaving.pid, timeout_s=60), flush=True)
        results = pool.run(misbehaving.{task}, timeout_s=60)
        next(results)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    wait_until_gone(int(done.stdout))


def test_shared_memory_leaves_no_file(tasks) -> None:
    with WorkerPool() as pool:
        pid = only_pid(pool, tasks)
        links = {str(link.readlink()) for link in Path(f"/proc/{pid}/map_files").iterdir()}
        shared = [link for link in links if "evicat" in link and not link.endswith((".py", ".so", ".pyc"))]
        assert shared == ["/memfd:evicat (deleted)"]
