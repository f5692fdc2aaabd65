"""GlobalBrowse: the whole video in one bounded view, with its cast (PACE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evicat.catalog.query import Mode
from evicat.readers.base import Arguments, Returned, Tool, Words
from evicat.readers.clip_search import line, listed

if TYPE_CHECKING:
    from evicat.readers.session import Session

MOST: Final = 40
"""Entries of a view."""
LONGEST: Final = 400
"""Characters of one of them."""
CAST: Final = 20
FOUND: Final = 16
"""So many of them at most are there for the query; the others are spread over the video."""


class GlobalBrowseArguments(Arguments):
    query: Words


class GlobalBrowse(Tool[GlobalBrowseArguments]):
    """Narratives, or local entries where there are none."""

    name = "GlobalBrowse"
    description = "See the whole video in one bounded view, what fits the query among it, and who acts in it."
    Arguments = GlobalBrowseArguments

    def run(self, session: Session, arguments: GlobalBrowseArguments) -> Returned:
        catalog, video = session.catalog, session.video
        entries = catalog.entries(video, kind="narrative")
        if entries.is_empty():
            entries = catalog.entries(video, kind="local")
        rows = entries.sort("start_s", "end_s", "entry_id").to_dicts()
        kinds = {row["kind"] for row in rows}
        fitting: set[str] = set()
        how = ""
        if len(rows) > MOST:
            mode: Mode = "vector" if catalog.embedder_tables() else "text"
            how = " What fits was found by words: this view has no vectors." if mode == "text" else ""
            found = catalog.search(arguments.query, mode=mode, limit=FOUND, video=video, kind=list(kinds))
            fitting = set(found["entry_id"])
        shown = _chosen(rows, fitting)
        told = listed(shown)
        head = f"{session.duration_s:g} s; {len(shown)} of {len(rows)} entries are shown.{how}"
        lines = [head, *_cast(session), *(line(row, LONGEST) for row in shown)]
        return Returned("\n".join(lines), entry_ids=told.entry_ids, spans=told.spans)


def _chosen(rows: list[dict[str, Any]], fitting: set[str]) -> list[dict[str, Any]]:
    """At most :data:`MOST`: those that fit, and of the others evenly many along the video; in time order."""
    if len(rows) <= MOST:
        return rows
    others = [index for index, row in enumerate(rows) if row["entry_id"] not in fitting]
    room = MOST - (len(rows) - len(others))
    spread = {others[part * len(others) // room] for part in range(room)}
    return [row for index, row in enumerate(rows) if index in spread or row["entry_id"] in fitting]


def _cast(session: Session) -> list[str]:
    members = session.catalog.cast(session.video).head(CAST).to_dicts()
    return [f"cast: {member['identity']}: {member['descriptor']}"[:LONGEST] for member in members]
