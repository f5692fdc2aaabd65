"""A run that can be killed: fills a catalog with the same content every time, continuing what is there.

    python crash_child.py CATALOG [TARGET COUNT WHEN]

Every window that is durable is printed. With a target (``module:name`` or ``module:Class.name``), the process
dies without any clean-up ``before`` or ``after`` its call number COUNT.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.storage.store import Store

WINDOWS = 7
NAMES = ("one", "two", "three")


def load_making():
    spec = importlib.util.spec_from_file_location(
        "evicat_crash_making", Path(__file__).with_name("making.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def work(catalog: str | Path, tell: Callable[[str], None]) -> None:
    """The whole run; ``tell`` hears of every durable window."""
    making = load_making()
    with Store.connect(catalog, write=True, create=True) as store:
        store.add_root(Root("r", "folder", "x"))
        for producer in (making.SIGHT, making.MINILM):
            store.add_producer(producer)
        for name in NAMES:
            store.add_name(VideoName("r", name, making.asset(name).asset_id, name, FileStamp(1, 2, 3, 4)))
            store.add_asset(making.asset(name, windows=WINDOWS))
            see(making, store, name, tell)
            if name != "two":
                store.commit(force=True)
            embed(making, store, name, tell)


def see(making, store, name, tell):
    unit = making.unit(name)
    if store.is_complete(unit):
        return
    known = store.open(unit)
    for window in range(WINDOWS):
        if window * making.WINDOW_US not in known:
            failed = window == 5
            store.write(
                unit, making.failed(5) if failed else making.done(unit, window, f"{name} {window}", entries=2)
            )
            tell(f"{name} {window}")
        if window == 3:
            store.seal(unit)
    store.close(unit, complete=True)


def embed(making, store, name, tell):
    unit = making.unit(name, producer=making.MINILM)
    if store.is_complete(unit):
        return
    known = store.open(unit)
    for window, result in enumerate(store.results(making.unit(name)).values()):
        if window * making.WINDOW_US not in known:
            store.write(unit, making.embedded(window, list(result.entries)))
            tell(f"vectors of {name} {window}")
    store.close(unit, complete=True)


def die_at(target: str, count: int, when: str) -> None:
    module_name, _, path = target.partition(":")
    owner = importlib.import_module(module_name)
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    original, calls = getattr(owner, name), iter(range(1, count + 1))

    @functools.wraps(original)
    def mortal(*arguments, **options):
        last = next(calls, count) == count
        if last and when == "before":
            os._exit(9)
        result = original(*arguments, **options)
        if last:
            os._exit(9)
        return result

    setattr(owner, name, mortal)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        die_at(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    work(sys.argv[1], functools.partial(print, flush=True))
