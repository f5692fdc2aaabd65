"""ClipSearch: what of a video is like a query, in time order (PACE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evicat.readers.base import Arguments, Returned, Tool, TopK, Words

if TYPE_CHECKING:
    from evicat.readers.session import Session


class ClipSearchArguments(Arguments):
    query: Words
    top_k: TopK = 16


class ClipSearch(Tool[ClipSearchArguments]):
    """By meaning; by words where the view searches no vectors, and then it says so."""

    name = "ClipSearch"
    description = "Find the entries of the video that are closest in meaning to a query, in time order."
    Arguments = ClipSearchArguments

    def run(self, session: Session, arguments: ClipSearchArguments) -> Returned:
        has_vectors = bool(session.catalog.embedder_tables())
        found = session.catalog.search(
            arguments.query,
            mode="vector" if has_vectors else "text",
            limit=arguments.top_k,
            video=session.video,
        )
        rows = found.sort("start_s", "end_s", "entry_id").to_dicts()
        how = "" if has_vectors else "Found by words: this view has no vectors.\n"
        return listed(rows, how)


def listed(rows: list[dict[str, Any]], before: str = "") -> Returned:
    """Entries as lines that name their id, kind and seconds."""
    lines = [line(row) for row in rows] or ["Nothing was found."]
    return Returned(
        before + "\n".join(lines),
        entry_ids=tuple(row["entry_id"] for row in rows),
        spans=tuple((row["start_s"], row["end_s"]) for row in rows),
    )


def line(row: dict[str, Any], longest: int = 1200) -> str:
    """One entry on a line; a longer text is cut, and the cut is shown."""
    text = " ".join(row["text"].split())
    text = text if len(text) <= longest else text[: longest - 1] + "\u2026"
    return f"[{row['entry_id']}] {row['kind']} {row['start_s']:g}-{row['end_s']:g} s: {text}"
