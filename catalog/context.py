"""What a window or chunk reads beside its pixels: which entries, and their hash.

Making uses it to write ``context_hash``; an audit uses it to prove that the hash still holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from evicat.schemas.entry import SPEECH_WITHHELD, Entry
from evicat.schemas.model import content_hash
from evicat.schemas.records import CastMember
from evicat.schemas.span import Span


def shown_in(span: Span, entries: Iterable[Entry], kinds: Collection[str]) -> list[Entry]:
    """Entries of these kinds that overlap ``span``, without withheld speech, in the given order."""
    return [
        entry
        for entry in entries
        if entry.kind in kinds and entry.span.overlap_us(span) and not SPEECH_WITHHELD & set(entry.flags)
    ]


def embedded_in(chunk: Span, entries: Iterable[Entry]) -> list[Entry]:
    """Entries that start in ``chunk``, without withheld speech: what a chunk of vectors is made of."""
    return [
        entry for entry in entries if entry.span.start_us in chunk and not SPEECH_WITHHELD & set(entry.flags)
    ]


def weighed_in(timeline: Span, entries: Iterable[Entry]) -> list[Entry]:
    """What the supports of an asset are made of: narratives and all that may carry them, in order of time."""
    return sorted(embedded_in(timeline, entries), key=lambda entry: (entry.span, entry.entry_id))


def past_texts(narrative: str, cast: Iterable[CastMember]) -> list[str]:
    """What a narrative reads of the one before it, as it goes into the hash."""
    return [narrative, *(member.model_dump_json() for member in cast)]


def context_hash(entries: Iterable[Entry], past: Sequence[str] = ()) -> str:
    """Hash of ids and texts; empty where nothing was read.

    ``past``: the narrative before, and each of its cast, where the window reads it.
    """
    read = [[entry.entry_id, entry.text] for entry in entries]
    read += [["past", *past]] if past else []
    return content_hash(read) if read else ""
