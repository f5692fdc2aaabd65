"""Makes ``schema2/``, a tiny catalog of schema 2, with the code of a commit that wrote that schema.

    git worktree add /tmp/old c108f35
    PYTHONPATH=/tmp/old/.typing python tests/storage/catalogs/make_schema2.py tests/storage/catalogs/schema2
    git worktree remove /tmp/old

It holds what ``schema1/`` does, and supports of the narrative of one video.
"""

from __future__ import annotations

import shutil
import sys
from datetime import timedelta
from pathlib import Path

import lance
import make_schema1 as first

from evicat.schemas.entry import Link, Outcome, Support, WindowResult
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.span import US, Span
from evicat.storage.head import read_head, write_head
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.store import Store

SUPPORTS = Producer(
    kind="support",
    scale="supports",
    component="supports",
    version=1,
    model=first.MODEL,
    reads=(first.NEW_SIGHT.producer_id, first.DIGEST.producer_id),
)
NAME = "walk.mp4"


def weighed() -> WindowResult:
    """One sentence, which rests on the window that shows it."""
    timeline = Span(0, first.LENGTHS_S[NAME] * US)
    narrative, local = first.unit(NAME, first.DIGEST), first.unit(NAME, first.NEW_SIGHT)
    support = Support(
        entry_id=entry_id(narrative, 0, 0),
        sentence=0,
        unit_id=narrative.unit_id,
        asset_id=narrative.asset_id,
        producer_id=narrative.producer_id,
        span=timeline,
        text=first.TEXTS["digest 1"][0],
        role="observed",
        rests_on=(Link(entry_id=entry_id(local, 0, 0), score=0.75),),
    )
    return WindowResult(span=timeline, outcome=Outcome.DONE, supports=(support,))


def unit() -> Unit:
    return first.unit(NAME, SUPPORTS)


def make(folder: Path) -> None:
    first._slim = slim
    first.make(folder)
    with Store.connect(folder, write=True) as store:
        store.add_producer(SUPPORTS)
        store.open(unit())
        store.write(unit(), weighed())
        store.close(unit(), complete=True)
    slim(folder)
    shutil.rmtree(folder / "work")
    (folder / "staged").rmdir()


def slim(folder: Path) -> None:
    """Compact everything, and leave only the versions that the newest head then names."""
    layout = Layout.of(folder)
    versions = {}
    for name in read_head(layout.head).tables:
        table = lance.dataset(layout.table(name))
        table.optimize.compact_files()
        table.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
        versions[name] = table.version
    write_head(layout, read_head(layout.head).following(versions))
    for path in sorted(layout.heads.glob("*.json"))[:-1]:
        path.unlink()


if __name__ == "__main__":
    if SCHEMA != 2:
        sys.exit(f"this evicat writes schema {SCHEMA}; put the code of schema 2 in front (see above)")
    make(Path(sys.argv[1]))
