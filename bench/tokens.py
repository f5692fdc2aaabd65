"""What a prompt of the shipped describers takes, counted by Qwen-VL's own picture processor; no weights.

- Tokens of the pictures, as the processor cuts what is really sent, over the stated formula on the frames
  (``Family.processed``: one for 32 x 32 pixels of a picture as the family scales it): 1.05. Padding, scaling
  and repeated frames would show here. Beside it stands what the budget of a prompt counts for them.
- Tokens for a second of video over the 1,758 of PACE, for windows of 30 s at one frame a second and width
  448: 0.05, which is 87.9 tokens. Words are counted as four characters to a token. Beside it stands what
  the pictures alone take, and what they would take as a video, of which the family takes two frames together.

Example of a line: ``16:9, 30 frames: ... 112.0 a second, 135.1 in all: 0.077 of 1758 (bound 0.05)``.
"""

from __future__ import annotations

import io
from concurrent.futures import Future
from typing import Any

import numpy as np
from sides import end, keep

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine
from evicat.catalog.media.frame import Frame
from evicat.catalog.media.frames import frame_times
from evicat.catalog.tokens import FAMILIES, likely_text_tokens
from evicat.schemas.errors import RefusedError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale
from evicat.schemas.span import US, Span

SECONDS = 30
WIDTH = 448
SHAPES = {"16:9": (448, 252), "4:3": (448, 336), "upright 9:16": (252, 448), "small 4:3": (160, 120)}
PACE = 1_758
BOUND, SHARE = 1.05, 0.05
FAMILY = FAMILIES["qwen3-vl"]


class Declining(Engine):
    """Keeps the request, and declines."""

    name = "declining"
    asked: ChatRequest

    def check(self, request: ChatRequest) -> None: ...

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        self.asked = request
        answer: Future[ChatAnswer] = Future()
        answer.set_result(ChatAnswer("", "refused", 0, 0, self.model.name))
        return answer

    def close(self) -> None: ...


def request(size: tuple[int, int]) -> ChatRequest:
    """What ``vlm-local`` asks about a window of noise of this size."""
    frames = FrameOptions(per_window=SECONDS, max_width=WIDTH)
    scale = Scale(
        kind="local", window_seconds=SECONDS, describer="vlm-local", frames=frames, options={"model": "m"}
    )
    describer = load_describer(scale, Profile())
    engine = Declining(ModelRef(name="m"), ModelProfile(), Profile())
    describer.bind(lambda _: engine)
    span = Span(0, SECONDS * US)
    image = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), np.uint8)
    shown = tuple(Frame(at // 1000, at, image) for at in frame_times(span, SECONDS))
    try:
        describer.describe(WindowInput(span, frames=shown))
    except RefusedError:
        return engine.asked
    raise AssertionError("it was not asked")


def processor_tokens(jpegs: list[bytes]) -> int:
    """Tokens that the family's processor makes of these pictures."""
    from PIL import Image
    from transformers import Qwen2VLImageProcessor

    patch = FAMILY.cell // 2
    bounds = {"shortest_edge": FAMILY.server_min_pixels, "longest_edge": 16_777_216}
    processor = Qwen2VLImageProcessor(patch_size=patch, merge_size=2, size=bounds)
    images: list[Any] = [Image.open(io.BytesIO(jpeg)) for jpeg in jpegs]
    grids = processor(images=images, return_tensors="np")["image_grid_thw"]
    return int(np.prod(grids, axis=1).sum()) // 4


def measure(name: str, size: tuple[int, int]) -> bool:
    asked = request(size)
    pictures = processor_tokens([each.jpeg for each in asked.pictures])
    formula = SECONDS * int(np.prod(FAMILY.processed(*size))) // FAMILY.cell**2
    budget = SECONDS * FAMILY.picture_tokens(*size)
    per_s = pictures / SECONDS
    whole_s = (pictures + sum(map(likely_text_tokens, asked.texts))) / SECONDS
    over, share = pictures / formula, whole_s / PACE
    print(
        f"{name}, {len(asked.pictures)} frames: {pictures} tokens of pictures, {over:.3f} of the formula's "
        f"{formula} (bound {BOUND}), where the budget counts {budget}; {per_s:.1f} a second, "
        f"{whole_s:.1f} in all: {share:.3f} of {PACE} (bound {SHARE}); as a video {whole_s - per_s / 2:.1f}",
        flush=True,
    )
    keep(
        f"tokens of pictures / formula, {name}",
        {"ours": pictures, "other": formula, "ratio": over, "bound": BOUND},
    )
    keep(f"tokens a second / PACE, {name}", {"ours": whole_s, "other": PACE, "ratio": share, "bound": SHARE})
    return over <= BOUND and share <= SHARE


def main() -> None:
    end(*[measure(name, size) for name, size in SHAPES.items()])


if __name__ == "__main__":
    main()
