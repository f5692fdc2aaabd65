"""The local describer that needs no GPU and no download: it measures pictures and reads text in them.

It says what can be measured of frames about a second apart: light, colours and their places, motion, changes
of view, text. It cannot recognise people, things or actions and leaves those fields empty. It reads frames
only, so that another transcriber does not make it run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from evicat.catalog.media.frame import Frame
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile
from evicat.schemas.records import LocalRecord, ObjectBox

from .base import Describer, Description, Reads, WindowInput
from .looks import Colour, Thumb, colours, main_colour, motion, place, thumb, views
from .ocr import TextReader, frames_to_read, ocr_model
from .sight_options import SightOptions
from .tracks import Track, on_screen, tracks
from .words import between, sentence, with_article

View = Sequence[Thumb]


class Sight(Describer[SightOptions]):
    """Measures the frames of a window."""

    component: ClassVar[str] = "sight"
    version: ClassVar[int] = 2
    kind: ClassVar[Literal["local", "narrative"]] = "local"
    reads: frozenset[Reads] = frozenset({"frames"})
    options_class: ClassVar[type[Model]] = SightOptions

    def __init__(self, options: SightOptions, profile: Profile) -> None:
        super().__init__(options, profile)
        self._reader = TextReader(options, profile.threads)

    @property
    def model(self) -> ModelRef | None:
        return ocr_model() if self.options.ocr_frames else None

    def describe(self, window: WindowInput) -> Description:
        """Describe the frames of a window; without any frame there is no record."""
        if not window.frames:
            return Description(record=None)
        thumbs = [thumb(frame, self.options) for frame in window.frames]
        shown = views(thumbs, self.options)
        if all(item.blank for item in thumbs):
            return _nothing_visible(shown)
        looks = [_look(view, self.options) for view in shown]
        texts = self._read_text(window.frames, thumbs)
        happenings = [*_changes(shown, looks), *_light(shown, self.options), *_motion(shown, self.options)]
        record = LocalRecord(
            scene=_scene(shown, self.options),
            colours=tuple(_colour_phrase(colour) for colour in colours(thumbs, self.options)),
            screen_text=tuple(dict.fromkeys(track.text for track in texts)),
            changes=tuple(happenings),
            boxes=tuple(sorted((box for track in texts for box in track.boxes), key=_reading_order)),
        )
        opening = looks[0] if len(shown) == 1 else f"at first {looks[0]}"
        parts = [sentence(text) for text in (opening, *happenings, on_screen(texts)) if text]
        return Description(record=record, text=" ".join(parts))

    def _read_text(self, frames: Sequence[Frame], thumbs: Sequence[Thumb]) -> list[Track]:
        indices = frames_to_read(thumbs, self.options)
        reading = {index: self._reader.read(frames[index]) for index in indices}
        return tracks(frames, reading, self.options)


def _reading_order(box: ObjectBox) -> tuple[float, float, float]:
    """Frame by frame, in each from top to bottom."""
    return box.time_s, box.y1, box.x1


def _nothing_visible(shown: Sequence[View]) -> Description:
    plain = [f"plain {main_colour(view[0])}" for view in shown]
    scene = f"nothing can be seen: the picture is {', then '.join(dict.fromkeys(plain))}"
    return Description(
        record=LocalRecord(scene=scene[:500]), text=sentence(scene), flags=("nothing_visible",)
    )


def _scene(shown: Sequence[View], options: SightOptions) -> str:
    """``a dark picture, then a bright picture``: the light of each view, repeats said once."""
    lights = [_picture(view, options) for view in shown]
    steps = [light for light, before in zip(lights, [None, *lights], strict=False) if light != before]
    more = f", and {len(steps) - 8} more changes of light" if len(steps) > 8 else ""
    return ", then ".join(steps[:8]) + more


def _look(view: View, options: SightOptions) -> str:
    """``a dark picture, mostly black (about 80%), some blue (about 10%) in the middle``."""
    picture = _picture(view, options)
    if all(item.blank for item in view):
        return picture
    named = [_colour_phrase(colour, with_share=True) for colour in colours(view, options)]
    return ", ".join([picture, *named]) if named else f"{picture} of many colours"


def _picture(view: View, options: SightOptions) -> str:
    if all(item.blank for item in view):
        return f"a plain {main_colour(view[0])} picture"
    brightness = float(np.mean([item.brightness for item in view]))
    if brightness < options.dark_below:
        return with_article("dark", "picture")
    if brightness < options.dim_below:
        return with_article("dim", "picture")
    if brightness >= options.bright_from:
        return with_article("bright", "picture")
    return "a picture of medium light"


def _colour_phrase(colour: Colour, *, with_share: bool = False) -> str:
    steps = ((0.95, "almost all"), (0.5, "mostly"), (0.25, "much"), (0.1, "some"), (0, "a little"))
    amount = next(word for least, word in steps if colour.share >= least)
    percent = 5 * round(colour.share * 20)
    share = f"(about {percent}%)" if with_share and 0.1 <= colour.share < 0.95 else ""
    return " ".join(word for word in (amount, colour.term, share, colour.place) if word)


def _changes(shown: Sequence[View], looks: Sequence[str]) -> list[str]:
    """What can be bounded of each change: the last frame before it and the first frame after it."""
    return [
        f"the picture changes {between(before[-1].time_us, after[0].time_us)}, to {look}"
        for before, after, look in zip(shown, shown[1:], looks[1:], strict=False)
    ]


def _light(shown: Sequence[View], options: SightOptions) -> list[str]:
    """Views that get brighter or darker from end to end and on the whole; flicker does neither."""
    phrases = []
    for view in shown:
        step = view[-1].brightness - view[0].brightness
        half = max(1, len(view) // 2)
        trend = np.mean([item.brightness for item in view[-half:]])
        trend -= np.mean([item.brightness for item in view[:half]])
        if abs(step) >= options.brightness_step and trend * np.sign(step) >= options.brightness_step / 2:
            word = "brighter" if step > 0 else "darker"
            phrases.append(f"it gets {word} {between(view[0].time_us, view[-1].time_us)}")
    return phrases


def _motion(shown: Sequence[View], options: SightOptions) -> list[str]:
    """How much moves within the views; nothing where no two frames show the same view."""
    differences = [difference for view in shown for difference in motion(view, options)]
    if not differences:
        return []
    where = np.mean(differences, axis=0)
    mean = float(where.mean())
    if mean < options.little_motion_from:
        return ["there is hardly any movement"]
    amount = "a little" if mean < options.motion_from else "some"
    amount = "much" if mean >= options.much_motion_from else amount
    side = place(where, options)
    return [f"there is {amount} movement" + (f", most of it {side}" if side else "")]
