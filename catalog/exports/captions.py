"""Entries of a video where players and editors show them: SRT, WebVTT, CSV markers."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import polars as pl

from evicat.schemas.span import format_time, to_us

CaptionFormat = Literal["srt", "vtt", "csv"]
MARKER_COLUMNS = ("name", "start", "end", "start_s", "end_s", "kind", "entry_id", "text")
_PLAIN = str.maketrans("{}<>\\", "()\u2039\u203a/")
_UNSAFE = re.compile(r"[^\w.\- ]+")
_ENTITY = re.compile(r"&(?=#?\w+;)")
"""An ampersand by which browsers would show another character."""
_MOST_BYTES = 200
"""Of a file's name: file systems hold 255, and an ending and a number come to it."""
_FORMULA = ("=", "+", "-", "@")
"""Begins what spreadsheets calculate."""


def write_captions(rows: pl.DataFrame, folder: Path, form: CaptionFormat) -> list[Path]:
    """One file a video and kind, named after both: a player shows one kind at a time."""
    files = []
    names: set[str] = set()
    for video, kind, part in _by_video_and_kind(rows):
        name = _file_name(video, kind, names)
        file = folder / f"{name}.{form}"
        file.parent.mkdir(parents=True, exist_ok=True)
        if form == "csv":
            _write_markers(file, part)
        else:
            file.write_text(cues(part, form), encoding="utf-8")
        files.append(file)
    return files


def _by_video_and_kind(rows: pl.DataFrame) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    for (asset_id, kind), part in rows.group_by("asset_id", "kind", maintain_order=True):
        ordered = part.sort("start_s", "end_s", "entry_id").to_dicts()
        yield ordered[0]["video"] or str(asset_id), str(kind), ordered


def _file_name(video: str, kind: str, taken: set[str]) -> str:
    """``holidays_beach.mp4.local``: path separators and odd characters replaced; never the same twice."""
    base = f"{_UNSAFE.sub('_', video).strip('. ') or 'video'}.{kind}"
    base = base.encode()[-_MOST_BYTES:].decode(errors="ignore").strip(". ")
    name, number = base, 2
    while name.lower() in taken:
        name, number = f"{base}.{number}", number + 1
    taken.add(name.lower())
    return name


def cues(rows: list[dict[str, Any]], form: str) -> str:
    """Entries as a subtitle file, ``srt`` or ``vtt``; what markup their texts hold is shown, not followed."""
    from pysubs2 import SSAEvent, SSAFile

    made = SSAFile()
    made.events = [
        SSAEvent(
            start=to_us(row["start_s"]) // 1000,
            end=max(to_us(row["end_s"]) // 1000, to_us(row["start_s"]) // 1000 + 1),
            text=_one_paragraph(row, form),
        )
        for row in rows
    ]
    text: str = made.to_string(form)
    return text


def _one_paragraph(row: dict[str, Any], form: str) -> str:
    """Text without what ends a cue (blank lines, arrows), styles it (braces, tags) or stands for another."""
    said = f"{row['speaker']}: {row['text']}" if row["speaker"] else row["text"]
    plain = " ".join(said.split()).replace("-->", "\u2192").translate(_PLAIN)
    return _ENTITY.sub("&amp;", plain) if form == "vtt" else plain


def _write_markers(file: Path, rows: list[dict[str, Any]]) -> None:
    """A text that a spreadsheet would calculate has an apostrophe before it, which spreadsheets hide."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(MARKER_COLUMNS)
        for number, row in enumerate(rows, start=1):
            times = [format_time(to_us(row[name])) for name in ("start_s", "end_s")]
            exact = [row["start_s"], row["end_s"]]
            text = " ".join(row["text"].split())
            text = f"'{text}" if text.startswith(_FORMULA) else text
            writer.writerow([f"{row['kind']} {number}", *times, *exact, row["kind"], row["entry_id"], text])
