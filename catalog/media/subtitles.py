"""Subtitles of an asset: which there are, which is taken, and what it says on the asset's timeline.

Side-cars lie beside the video and bear its name: ``film.srt``, ``film.en.srt``, ``film.eng.forced.vtt``.
Where several videos fit (``film.mp4`` and ``film.2.mp4`` for ``film.2.en.srt``), the one with the longest
name has it. What stands between is a language, ``forced``, ``sdh``, ``cc`` or ``default``; other
words are a title. A bare number belongs to another video.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from evicat.catalog.media import MEDIA_SUFFIXES
from evicat.schemas.asset import Asset, SubtitleFacts
from evicat.schemas.errors import AssetError
from evicat.schemas.model import content_hash
from evicat.schemas.records import SpeechSegment
from evicat.schemas.span import US, Span, format_time

from .clock import to_us
from .cues import Cue, parse_cues, plain_lines
from .encodings import decode
from .languages import language_rank, parse_language
from .rolling import fold
from .streams import only, open_media, packets
from .utterances import Utterance, utterances
from .worker import WorkerPool

SUFFIXES = (".srt", ".vtt", ".ass", ".ssa")
_FLAG_WORDS = frozenset({"cc", "default", "forced", "sdh"})


@dataclass(frozen=True)
class SubtitleTrack:
    """A side-car file (``path``) or an embedded text stream (``stream_index``)."""

    path: Path | None = None
    stream_index: int | None = None
    language: str | None = None
    forced: bool = False
    """Only the foreign parts of the dialogue."""
    default: bool = False

    @property
    def source(self) -> str:
        """How segments name it; file names may be titles and stay out of it."""
        kind = "sidecar" if self.path else f"stream {self.stream_index}"
        return " ".join(filter(None, [f"subtitles:{kind}", self.language]))

    def inputs_hash(self, offset_us: int = 0) -> str:
        """Hash of what a unit reads through it: the side-car's bytes, or which stream, and the offset.

        Raises:
            AssetError: the side-car cannot be read.
        """
        content = hashlib.sha256(_read(self.path)).hexdigest() if self.path else f"stream {self.stream_index}"
        return content_hash([content, self.language, offset_us])


class TrackText(NamedTuple):
    """What a track says: segments in time order, what was left out and why, and its encoding.

    ``folded`` counts the words of rolling captions that were shown before (``rolling.py``).
    """

    segments: list[SpeechSegment]
    rejected: list[str]
    encoding: str
    folded: int = 0


def find_sidecars(path: Path) -> list[SubtitleTrack]:
    """Side-car subtitles of a media file, by name; none where its folder cannot be listed."""
    folder, file_name = os.path.split(path)
    try:
        mtime_ns = os.stat(folder).st_mtime_ns  # noqa: PTH116 (asked for every film: Path.stat takes twice as long)
        listed = _listing(folder, mtime_ns).get(file_name.partition(".")[0], [])
    except OSError:
        return []
    if listed == [file_name]:
        return []  # so it is with most films of a library
    near = [path.with_name(name) for name in listed if name.startswith(path.stem + ".")]
    names = {
        base for each in near if each.suffix.lower() in MEDIA_SUFFIXES for base in (each.stem, each.name)
    }
    names |= {path.stem, path.name}
    tracks = []
    for file in near:
        if file.suffix.lower() not in SUFFIXES or not file.is_file():
            continue
        fitting = [name for name in names if file.stem == name or file.stem.startswith(name + ".")]
        longest = max(fitting, key=len)
        if longest in (path.stem, path.name):
            track = _parse_name(file, file.stem[len(longest) :].strip("."))
            tracks += [track] if track else []
    return tracks


@lru_cache(maxsize=8)
def _listing(folder: str, mtime_ns: int) -> dict[str, list[str]]:
    """File names of a folder by what their names begin with, up to the first dot; once for all its videos.

    ``mtime_ns`` is part of the key: a file that came or went changes it.
    """
    files: dict[str, list[str]] = {}
    for name in sorted(each.name for each in Path(folder).iterdir()):
        files.setdefault(name.partition(".")[0], []).append(name)
    return files


def _parse_name(file: Path, words: str) -> SubtitleTrack | None:
    track = SubtitleTrack(path=file)
    for word in filter(None, words.split(".")):
        if word.isdecimal():
            return None
        if word.lower() in _FLAG_WORDS:
            is_forced, is_default = word.lower() == "forced", word.lower() == "default"
            track = replace(track, forced=track.forced or is_forced, default=track.default or is_default)
        elif track.language is None:
            track = replace(track, language=parse_language(word))
    return track


def choose_track(
    sidecars: list[SubtitleTrack], embedded: tuple[SubtitleFacts, ...], languages: tuple[str, ...]
) -> SubtitleTrack | None:
    """The track that is read; None where there is none with the whole dialogue (forced ones lack most of it).

    By this order: preferred languages (as ``languages`` has them; then tracks of unknown language, then
    others); side-car before embedded; the default flag; name, or order of the streams.
    """
    streams = [
        SubtitleTrack(stream_index=each.stream_index, language=_tidy(each.language), default=each.default)
        for each in embedded
        if not each.forced
    ]
    whole = [*(track for track in sidecars if not track.forced), *streams]
    ranked = [
        (language_rank(track.language, languages), not track.path, not track.default, place)
        for place, track in enumerate(whole)
    ]
    return whole[min(ranked)[-1]] if whole else None


def _tidy(language: str | None) -> str | None:
    return (parse_language(language) or language) if language else None


def read_track(path: Path, asset: Asset, track: SubtitleTrack, *, offset_us: int = 0) -> TrackText:
    """What a track says on the asset's timeline, sorted; overlapping cues are kept, rolling ones folded.

    A cue gives one segment for each of its speakers and sounds (``utterances.py``), all with its span.
    A side-car counts from the player's zero, an embedded stream by its PTS. ``offset_us`` moves all cues
    later. A cue that runs over an edge of the timeline is cut there and flagged ``cue_overruns``. One without
    words or readable times, one that does not end after its start and one outside the timeline are named in
    ``rejected``. An empty file has no cues.

    Raises:
        AssetError: the track cannot be read, or its encoding is not recognised.
        UnreadableMediaError: the media file cannot be opened (any more).
    """
    if track.path is None:
        return next(text for text in track_steps(path, asset, track, offset_us) if text is not None)
    text, encoding = _decode_text(track, track.path)
    try:
        cues = parse_cues(text, track.path.suffix.lower())
    except AssetError as error:
        raise AssetError(f"{track.path}: {error}") from None
    shift_us = asset.container_start_us - asset.origin_us + offset_us
    return _place(cues, shift_us, asset, track, encoding)


def read_track_isolated(
    pool: WorkerPool, path: Path, asset: Asset, track: SubtitleTrack, *, offset_us: int = 0, timeout_s: float
) -> TrackText:
    """:func:`read_track`; embedded streams are read in a worker process.

    Raises:
        DecodeStalledError: no progress for ``timeout_s`` seconds.
        DecoderCrashedError: the process died.
    """
    if track.path is not None:
        return read_track(path, asset, track, offset_us=offset_us)
    (text,) = pool.run(track_steps, path, asset, track, offset_us, timeout_s=timeout_s, about=path)
    return text


def track_steps(path: Path, asset: Asset, track: SubtitleTrack, offset_us: int) -> Iterator[TrackText | None]:
    """The text of an embedded stream, after None as signs of life; what runs in a worker."""
    cues: list[Cue] = []
    with open_media(path) as container:
        stream = only(container, track.stream_index or 0)
        for packet in packets(container, stream):
            if packet.size and packet.pts is not None:
                cues += _embedded_cues(stream, packet, len(cues))
            yield None
    yield _place(cues, offset_us - asset.origin_us, asset, track, "utf-8")


def _embedded_cues(stream: Any, packet: Any, count: int) -> list[Cue]:
    """Cues of one packet, on the source's clock.

    A packet without words is no cue: in MP4 it ends the one before it, in ASS it may be a drawing.
    """
    import av
    import pysubs2

    where = f"cue {count + 1}"
    start_us = to_us(packet.pts, stream.time_base)
    try:
        subtitle = stream.codec_context.decode2(packet)
    except av.FFmpegError:
        return [Cue(where, start_us, None, ())]
    # An event of ASS: eight fields before the words, of which the fourth is the speaker.
    events = [rect.ass.decode("utf-8", "replace").split(",", 8) for rect in subtitle or ()]
    said = [event for event in events if not pysubs2.SSAEvent(text=event[-1]).is_drawing]
    lines = tuple(line for event in said for line in plain_lines(event[-1], _speaker(event)))
    if not lines:
        return []
    end_us = start_us + to_us(packet.duration, stream.time_base) if packet.duration else None
    return [Cue(where, start_us, end_us, lines)]


def _speaker(event: list[str]) -> str | None:
    return event[3].strip() or None if len(event) > 3 else None


def _place(cues: list[Cue], shift_us: int, asset: Asset, track: SubtitleTrack, encoding: str) -> TrackText:
    timeline = Span(0, asset.duration_us)
    segments: list[SpeechSegment] = []
    rejected: list[str] = []
    cues, folded = fold(cues)
    for cue in cues:
        placed = _on_timeline(cue, shift_us, timeline)
        if isinstance(placed, str):
            rejected.append(f"{cue.where}: {placed}: {cue.text[:60]!r}")
            continue
        span, is_cut = placed
        said = utterances(cue.lines)
        if not said:
            rejected.append(f"{cue.where}: no words: {cue.text[:60]!r}")
        segments += [_segment(each, span, track, is_cut=is_cut) for each in said]
    ordered = sorted(segments, key=lambda s: (s.start_s, s.end_s))
    return TrackText(ordered, rejected, encoding, folded)


def _segment(said: Utterance, span: Span, track: SubtitleTrack, *, is_cut: bool) -> SpeechSegment:
    return SpeechSegment(
        kind="sound" if said.is_sound else "speech",
        start_s=span.start_us / US,
        end_s=span.end_us / US,
        text=said.text,
        source=track.source,
        language=track.language,
        speaker=said.speaker,
        flags=("cue_overruns",) if is_cut else (),
    )


def _on_timeline(cue: Cue, shift_us: int, timeline: Span) -> tuple[Span, bool] | str:
    """The span of a cue and whether it was cut, or why it is rejected."""
    if cue.start_us is None or cue.end_us is None:
        return "its times cannot be read"
    if cue.end_us <= cue.start_us:
        return f"ends at {format_time(cue.end_us)}, not after its start at {format_time(cue.start_us)}"
    if not cue.text:
        return "no words"
    start_us, end_us = cue.start_us + shift_us, cue.end_us + shift_us
    if end_us <= 0 or start_us >= timeline.end_us:
        return f"lies outside the video, which ends at {format_time(timeline.end_us)}"
    span = Span(max(0, start_us), min(end_us, timeline.end_us))
    return span, (span.start_us, span.end_us) != (start_us, end_us)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AssetError(f"{path}: {error.strerror}") from None


def _decode_text(track: SubtitleTrack, path: Path) -> tuple[str, str]:
    """Text of a side-car and its encoding."""
    found = decode(_read(path), track.language)
    if found is None:
        raise AssetError(
            f"{path}: its text encoding is not recognised; save it as UTF-8, or let its name say its "
            f"language ({path.stem.partition('.')[0]}.fr{path.suffix} for French)"
        )
    return found
