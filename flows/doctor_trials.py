"""A little real work: a tiny clip is decoded, and every part of the recipe is used once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evicat.flows.doctor_parts import own_parts
from evicat.flows.findings import Finding, attempt, timed
from evicat.schemas.errors import AssetError, WindowError
from evicat.schemas.recipe import Profile, Recipe
from evicat.schemas.span import US

if TYPE_CHECKING:
    from evicat.catalog.describers.base import Describer
    from evicat.catalog.embedders.base import Embedder
    from evicat.catalog.engines.base import Engine
    from evicat.catalog.media.frame import Frame
    from evicat.catalog.media.worker import WorkerPool
    from evicat.catalog.transcribers.base import Transcriber
    from evicat.schemas.identity import ModelRef

FRAMES = 16
RATE = 8
SIZE = (48, 64)
"""The clip: frames, frames per second, height and width."""
SHOWN = 4
"""Frames that are asked for."""
SENTENCE = "A man says hello."


def trials(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """One test decode by each decoder, then one test of each part of the recipe."""
    frames: list[Frame] = []
    yield from decoders(profile, frames)
    for title, make in own_parts(recipe, profile):
        yield attempt("trial", title, timed(partial(_use, make, frames)), needed=True)


def _use(make: Callable[[], Any], frames: list[Frame]) -> str:
    """Have a describer describe, a transcriber listen, or an embedder embed."""
    from evicat.catalog.describers.base import Describer
    from evicat.catalog.transcribers.base import Transcriber

    part = make()
    if isinstance(part, Describer):
        return _describe(part, frames)
    return _transcribe(part) if isinstance(part, Transcriber) else _embed(part)


def decoders(profile: Profile, frames: list[Frame]) -> Iterator[Finding]:
    """Decode the clip in a worker process by each decoder; ``frames`` gets what the profile's shows."""
    from evicat.catalog.media.loaders import DECODERS
    from evicat.catalog.media.worker import WorkerPool

    with tempfile.TemporaryDirectory(prefix="evicat-doctor-") as folder, WorkerPool() as pool:
        clip = Path(folder) / "clip.mp4"
        made = attempt("trial", "make a clip", partial(_make_clip, clip), needed=True)
        if not made.works:
            yield made
            return
        for name in DECODERS:
            shown = frames if name == profile.decoder else []
            call = timed(partial(_decode, pool, clip, name, profile, shown))
            yield attempt("decoder", name, call, needed=name == profile.decoder)


def _make_clip(path: Path) -> str:
    """2 s of a picture whose left half grows brighter with every frame; its right half is white."""
    import av
    import numpy as np

    height, width = SIZE
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=RATE)
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        for index in range(FRAMES):
            image = np.full((height, width, 3), 255, np.uint8)
            image[:, : width // 2] = index * 10
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return f"{FRAMES} frames"


def _decode(pool: WorkerPool, clip: Path, decoder: str, profile: Profile, shown: list[Frame]) -> str:
    from evicat.catalog.media.frames import Wanted, frame_times, read_windows
    from evicat.catalog.media.identity import hash_file
    from evicat.catalog.media.loaders import load_decoder
    from evicat.catalog.media.probe import probe_isolated
    from evicat.schemas.span import Span

    load_decoder(decoder)
    timeout_s = profile.decode_timeout_seconds
    asset_id, size_bytes = hash_file(clip)
    asset = probe_isolated(pool, clip, asset_id=asset_id, size_bytes=size_bytes, timeout_s=timeout_s)
    span = Span(0, asset.duration_us)
    wanted = [Wanted(span, frame_times(span, SHOWN), max_width=SIZE[1])]
    ((_, frames),) = read_windows(pool, clip, asset, wanted, timeout_s=timeout_s, decoder=decoder)
    shown.extend(frames)
    light = [float(frame.image[:, : SIZE[1] // 4].mean()) for frame in frames]
    if len(light) != SHOWN or any(after <= before for before, after in pairwise(light)):
        raise AssetError(f"the test clip grows brighter from frame to frame, but was decoded as {light}")
    return (
        f"{len(frames)} frames of {asset.video.codec if asset.video else 'nothing'} through a worker process"
    )


def _describe(describer: Describer[Any], frames: list[Frame]) -> str:
    from evicat.catalog.describers.base import WindowInput
    from evicat.catalog.engines.loaders import open_engine
    from evicat.schemas.span import Span

    reads_frames = "frames" in describer.reads
    if reads_frames and not frames:
        raise WindowError("no frames to describe, for the test decode failed")
    span = Span(0, FRAMES * US // RATE)
    engines: list[Engine] = []

    def engine(model: ModelRef) -> Engine:
        engines.append(open_engine(model, describer.profile))
        return engines[-1]

    describer.bind(engine)
    try:
        describer.check()
        made = describer.describe(WindowInput(span, frames=tuple(frames) if reads_frames else ()))
    finally:
        for each in engines:
            each.close()
    return f"{len(made.text)} characters on the test clip" if made.text else "nothing to describe"


def _transcribe(transcriber: Transcriber[Any]) -> str:
    import numpy as np

    from evicat.catalog.transcribers.base import SAMPLE_RATE

    silence = np.zeros(SAMPLE_RATE // 2, np.float32)
    transcriber.transcribe(silence, ((0, len(silence)),))
    return "half a second of silence listened to"


def _embed(embedder: Embedder[Any]) -> str:
    import numpy as np

    vectors = embedder.embed([SENTENCE])
    if not np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3):
        raise WindowError(f"the vector of {SENTENCE!r} is not of length 1")
    return f"a sentence as {vectors.shape[1]} numbers"
