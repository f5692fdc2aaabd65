"""From the text of a subtitle file to cues: plain lines with a start and an end.

SRT and WebVTT are read line by line here, since rejected cues are named by line; SSA and ASS by pysubs2.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from evicat.schemas.errors import AssetError

from .utterances import Line

_TIME = r"(-?)(?:(\d{1,6}):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_LOOKS_LIKE_TIMING = re.compile(r"\d:\d.*-->|-->.*\d:\d")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]+)>|</v>")
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{[^{}]*\\[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Cue:
    """One cue on the subtitle's own clock; times are None where they cannot be read."""

    where: str
    start_us: int | None
    end_us: int | None
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """All words, on one line."""
        return " ".join(line.text for line in self.lines)


def plain_lines(text: str, voice: str | None = None) -> tuple[Line, ...]:
    """Lines of words: no tags, override codes, character entities or empty lines.

    ``voice`` is who speaks; a voice tag of WebVTT says so for what follows it.
    """
    found: list[Line] = []
    for line in re.split(r"\\N|\\n|\n", text.replace(r"\h", " ")):
        # Text, then a name (None: a closing tag) and text, and so on.
        first, *rest = _VOICE.split(line)
        pieces = [(voice, first), *zip(rest[::2], rest[1::2], strict=True)]
        voice = pieces[-1][0]
        found += [Line(_plain(piece), name.strip() if name else None) for name, piece in pieces]
    return tuple(line for line in found if line.text)


def _plain(text: str) -> str:
    return " ".join(html.unescape(_TAGS.sub("", text)).split())


def parse_cues(text: str, suffix: str) -> list[Cue]:
    """Cues in the order of the file. ``suffix``: ``.srt``, ``.vtt``, ``.ass`` or ``.ssa``.

    Raises:
        AssetError: an ASS or SSA file that pysubs2 cannot read.
    """
    if not text.strip():
        return []
    if suffix in (".ass", ".ssa"):
        return list(_substation_cues(text))
    return list(_timed_lines(text.splitlines(), stops_at_empty=suffix == ".vtt"))


def _timed_lines(lines: list[str], *, stops_at_empty: bool) -> Iterator[Cue]:
    """Cues of SRT and WebVTT: a line of times, then lines of text.

    The text of a WebVTT cue ends at an empty line (YouTube's begin with a line of one blank). In SRT it goes
    on to the next cue: files with stray blank lines are common, and the number before the next cue is
    recognised. A text without any line of times is one cue that cannot be read.
    """
    starts = [number for number, line in enumerate(lines) if _LOOKS_LIKE_TIMING.search(line)]
    if not starts and not lines[0].startswith("WEBVTT"):
        first = next(number for number, line in enumerate(lines) if line.strip())
        yield Cue(f"line {first + 1}", None, None, plain_lines(lines[first]))
    for number, following in pairwise([*starts, len(lines)]):
        body = lines[number + 1 : following]
        if stops_at_empty:
            body = body[: next((i for i, line in enumerate(body) if not line), len(body))]
        elif following < len(lines):
            body = _without_number(body)
        match = _TIMING.fullmatch(lines[number])
        groups = match.groups() if match else ()
        yield Cue(
            where=f"line {number + 1}",
            start_us=_parse(groups[:5]) if groups else None,
            end_us=_parse(groups[5:]) if groups else None,
            lines=plain_lines("\n".join(body)),
        )


def _without_number(body: list[str]) -> list[str]:
    """Text lines without the number of the next cue: the last, after a blank line or alone."""
    is_number = bool(body) and body[-1].strip().isdecimal()
    return body[:-1] if is_number and (len(body) == 1 or not body[-2].strip()) else body


def _parse(groups: tuple[str | None, ...]) -> int:
    sign, hours, minutes, seconds, fraction = groups
    whole = (int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    microseconds = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -microseconds if sign else microseconds


def _events(text: str) -> list[Any]:
    """Events of an ASS or SSA file; one that pysubs2 cannot read costs itself alone.

    Raises:
        Pysubs2Error, ValueError: it is none at all.
    """
    import pysubs2

    def read(text: str) -> list[Any]:
        return list(pysubs2.SSAFile.from_string(text, format_="ass").events)

    try:
        return read(text)
    except ValueError:
        lines = text.splitlines()
        events = [number for number, line in enumerate(lines) if line.startswith(("Dialogue:", "Comment:"))]
        head = lines[: events[0]] if events else lines
        found: list[Any] = []
        for number in events:
            with suppress(ValueError):
                found += read("\n".join([*head, lines[number]]))
        if not found:
            raise
        return found


def _substation_cues(text: str) -> Iterator[Cue]:
    import pysubs2

    try:
        events = _events(text)
    except (pysubs2.exceptions.Pysubs2Error, ValueError) as error:
        raise AssetError(f"not an ASS or SSA file: {error}") from None
    for number, event in enumerate(events, start=1):
        if not event.is_comment:
            lines = () if event.is_drawing else plain_lines(event.plaintext, event.name.strip() or None)
            yield Cue(f"cue {number}", event.start * 1000, event.end * 1000, lines)
