"""From the text of a subtitle file to cues: plain words with a start and an end.

SRT and WebVTT are read line by line here, since rejected cues are named by line; SSA and ASS by pysubs2.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from evicat.schemas.errors import AssetError

_TIME = r"(-?)(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:[.,](\d{1,3}))?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_LOOKS_LIKE_TIMING = re.compile(r"\d:\d.*-->|-->.*\d:\d")
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>|<\d[\d:.]*>|\{[^{}]*\\[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Cue:
    """One cue on the subtitle's own clock; times are None where they cannot be read."""

    where: str
    start_us: int | None
    end_us: int | None
    text: str


def plain_text(text: str) -> str:
    """One line of words: no tags, override codes, character entities or line breaks."""
    text = text.replace(r"\N", " ").replace(r"\n", " ").replace(r"\h", " ")
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
    return list(_timed_lines(text.splitlines(), stops_at_blank=suffix == ".vtt"))


def _timed_lines(lines: list[str], *, stops_at_blank: bool) -> Iterator[Cue]:
    """Cues of SRT and WebVTT: a line of times, then lines of text.

    The text of a WebVTT cue ends at a blank line. In SRT it goes on to the next cue: files with stray blank
    lines are common, and the number before the next cue is recognised.
    """
    starts = [number for number, line in enumerate(lines) if _LOOKS_LIKE_TIMING.search(line)]
    for number, following in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = lines[number + 1 : following]
        if stops_at_blank:
            body = body[: next((i for i, line in enumerate(body) if not line.strip()), len(body))]
        elif following < len(lines):
            body = _without_number(body)
        match = _TIMING.fullmatch(lines[number])
        groups = match.groups() if match else ()
        yield Cue(
            where=f"line {number + 1}",
            start_us=_parse(groups[:5]) if groups else None,
            end_us=_parse(groups[5:]) if groups else None,
            text=plain_text("\n".join(body)),
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


def _substation_cues(text: str) -> Iterator[Cue]:
    import pysubs2

    try:
        events = pysubs2.SSAFile.from_string(text, format_="ass").events
    except (pysubs2.exceptions.Pysubs2Error, ValueError) as error:
        raise AssetError(f"not an ASS or SSA file: {error}") from None
    for number, event in enumerate(events, start=1):
        if not event.is_comment:
            words = "" if event.is_drawing else plain_text(event.plaintext)
            yield Cue(f"cue {number}", event.start * 1000, event.end * 1000, words)
