"""Which text stayed on screen from when to when: what was read in single frames, joined over a window.

Only some frames of a window are read. In the others a text is looked for where it was last read: it is still
there if the pixels of its box, or of one nearby, are the same but for light and noise (:mod:`.patches`). So a
track names frames in which its text was seen, and ends at the first frame without it. A text that moves
fast is seen only in frames that were read, and is a track anew in each that follows an unread one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from evicat.catalog.media.frame import Frame
from evicat.schemas.records import ObjectBox

from .patches import find_again
from .sight_options import SightOptions
from .words import listed, short_time

SAME_PIXELS = "same_pixels"
"""``source`` of a box that was not read: it looks as in the frame in which it was."""


@dataclass(slots=True)
class Track:
    """One text, and its box in every frame that it was seen in, by index of the frame."""

    sightings: dict[int, ObjectBox]

    @property
    def text(self) -> str:
        """The reading that most frames agree on; of equals the surest."""
        counts = Counter(box.name for box in self._readings.values())
        return max(
            self._readings.values(), key=lambda box: (counts[box.name], box.confidence or 0.0, box.name)
        ).name

    @property
    def boxes(self) -> list[ObjectBox]:
        """In time order, all with the track's text."""
        return [box.model_copy(update={"name": self.text}) for _, box in sorted(self.sightings.items())]

    @property
    def first(self) -> tuple[int, float, float]:
        """Where it stands among others: by first sight, then from top to bottom and left to right."""
        index = min(self.sightings)
        return index, self.sightings[index].y1, self.sightings[index].x1

    @property
    def last_reading(self) -> tuple[int, ObjectBox]:
        """The last frame that it was read in, and its box there."""
        return max(self._readings.items())

    @property
    def first_reading(self) -> tuple[int, ObjectBox]:
        return min(self._readings.items())

    @property
    def _readings(self) -> dict[int, ObjectBox]:
        return {index: box for index, box in self.sightings.items() if box.source != SAME_PIXELS}


def tracks(
    frames: Sequence[Frame], reading: Mapping[int, Sequence[ObjectBox]], options: SightOptions
) -> list[Track]:
    """Join the lines of the frames that were read (``reading``, by index), in order of first sight."""
    going: list[Track] = []
    ended: list[Track] = []
    for index in range(len(frames)):
        lines = list(reading.get(index, ()))
        before, going = going, []
        for track in before:
            box = _taken(lines, frames, track, index, options)
            if box:
                track.sightings[index] = box
            (going if box else ended).append(track)
        going += [Track({index: line}) for line in lines]
    found = [*ended, *going]
    for track in found:
        _look_back(frames, track, reading, options)
    return sorted(found, key=lambda track: track.first)


def _taken(
    lines: list[ObjectBox], frames: Sequence[Frame], track: Track, index: int, options: SightOptions
) -> ObjectBox | None:
    """The track's box in a frame: the line that reads the same, else where the pixels are the same.

    A line that reads nearly the same stands for the latter: it is one more reading of that text. What is
    found is taken out of ``lines``; of several lines it is the nearest one.
    """
    _, last = track.last_reading
    lines.sort(key=lambda line: abs(line.x1 - last.x1) + abs(line.y1 - last.y1))
    line = next((line for line in lines if _letters(line.name) == _letters(last.name)), None)
    if line is None:
        box = _looked_for(frames, track.last_reading, index, options)
        line = next((line for line in lines if box and is_misread(box, line, options)), None)
        if line is None:
            return box
    lines.remove(line)
    return line


def _looked_for(
    frames: Sequence[Frame], known: tuple[int, ObjectBox], index: int, options: SightOptions
) -> ObjectBox | None:
    """The box of the frame ``known`` in another frame, if that shows the same there or nearby."""
    box, alike = find_again(frames[known[0]], known[1], frames[index])
    if alike < options.text_likeness:
        return None
    seen = {"time_s": frames[index].time_s, "confidence": round(alike, 3), "source": SAME_PIXELS}
    return box.model_copy(update=seen)


def _look_back(
    frames: Sequence[Frame],
    track: Track,
    reading: Mapping[int, Sequence[ObjectBox]],
    options: SightOptions,
) -> None:
    """Look for the text in the frames just before its first reading, as far as those were not read."""
    known = track.first_reading
    for index in range(known[0] - 1, -1, -1):
        box = None if index in reading else _looked_for(frames, known, index, options)
        if box is None:
            return
        track.sightings[index] = box


def is_misread(one: ObjectBox, other: ObjectBox, options: SightOptions) -> bool:
    """Whether two readings of the same pixels are of one text: letters nearly, digits wholly the same."""
    first, second = _letters(one.name), _letters(other.name)
    if [c for c in first if c.isdigit()] != [c for c in second if c.isdigit()]:
        return False
    agree = SequenceMatcher(None, first, second, autojunk=False).ratio() >= options.text_agreement
    return agree and _share_place(one, other)


def _letters(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _share_place(one: ObjectBox, other: ObjectBox) -> bool:
    """Whether at least half of what the two boxes cover is in both (intersection over union)."""
    width = min(one.x2, other.x2) - max(one.x1, other.x1)
    height = min(one.y2, other.y2) - max(one.y1, other.y1)
    if width <= 0 or height <= 0:
        return False
    areas = [(box.x2 - box.x1) * (box.y2 - box.y1) for box in (one, other)]
    return width * height >= 0.5 * (sum(areas) - width * height)


def on_screen(found: Sequence[Track]) -> str:
    """``on screen: "THANKS FOR WATCHING" (0:02.6 to 0:04.4)``: each text with its first and last sight."""
    times: dict[str, list[str]] = {}
    for track in found:
        seen = [short_time(round(box.time_s * 1_000_000)) for box in track.boxes]
        times.setdefault(track.text, []).append(seen[0] if len(seen) == 1 else f"{seen[0]} to {seen[-1]}")
    texts = [f'"{text}" ({", ".join(dict.fromkeys(each))})' for text, each in times.items()]
    return f"on screen: {listed(texts)}" if texts else ""
