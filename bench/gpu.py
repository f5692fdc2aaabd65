"""The engine ``vllm`` on a GPU: our path against vLLM's own bench. Needs a GPU and evicat[vllm].

    python bench/gpu.py --model Qwen/Qwen3-VL-8B-Instruct [--profile PROFILE.toml] [--windows 256]

- Ours: the describer ``vlm-local`` shows windows of a generated film to the engine, from packed frames to
  records, with as many callers as the profile has ``concurrency``. Useful tokens are those of prompts and
  answers that became records: of a window that was asked twice one half, of one that failed none.
- Other: ``vllm bench throughput`` with as many requests, as many pictures of the same size, and as many words
  and output tokens as ours had in the mean, in one engine with the same memory and the same limits.

Ours over other in tokens per second: at least 0.90. Then it prints the rates for the profile, which
``evicat plan`` reads. Decoding is not in it (``bench/decode.py``). ``make bench`` leaves this script out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evicat.catalog.describers.base import Description, WindowInput
from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.describers.packed import PackedFrame
from evicat.catalog.engines.base import ChatRequest, Engine
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.engines.trial import without_images
from evicat.catalog.engines.vllm_calls import engine_arguments
from evicat.catalog.engines.vllm_engine import VllmEngine
from evicat.catalog.weights import weights_of
from evicat.schemas.errors import EvicatError, WindowError
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale, parse_toml

BOUND = 0.90
WINDOW_S = 10
FRAMES = 8
WIDTH, HEIGHT = 448, 252
FRAMES_PER_SECOND = 2
"""Of the generated film: enough that every frame that is shown is another one."""
ALIKE = 0.1
"""Share by which the tokens of a request may differ between the sides."""
VLLM = "vllm.entrypoints.cli.main"
"""The command ``vllm``, of the same environment as this script."""


@dataclass(frozen=True, slots=True)
class Side:
    """What one side did."""

    seconds: float
    requests: int
    tokens: float

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Ours:
    """Our side: what it did, and of what make-up its requests were."""

    side: Side
    prompt_tokens: float
    """Of one request, in the mean."""
    output_tokens: float
    words: int
    """Prompt tokens of one request that are not pictures."""
    failed: int


def main() -> None:
    args = arguments()
    require_gpu()
    model = ModelRef(name=args.model, revision=args.revision, quantization=args.quantization)
    profile = profile_of(args, model)
    where = profile.engines[model.name]
    with tempfile.TemporaryDirectory() as folder:
        frames = packed_frames(Path(folder), 2 * args.windows + args.warm_up)
        warm, reading, asked = split(frames, args.warm_up, args.windows)
        engine = open_engine(model, profile)
        assert isinstance(engine, VllmEngine)
        try:
            our = measure(engine, model, profile, warm, asked)
            prompt_rate = reading_rate(engine, model, profile, reading)
        finally:
            engine.close()
        other = bare(model, where, profile, our, Path(folder), args.warm_up)
    end(model, our, other, prompt_rate)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, help="as a recipe names it")
    parser.add_argument("--revision", default="")
    parser.add_argument("--quantization", default="")
    parser.add_argument("--profile", type=Path, help="left out: engine vllm with 64 requests at once")
    parser.add_argument("--windows", type=int, default=256)
    parser.add_argument("--warm-up", type=int, default=16)
    return parser.parse_args()


def require_gpu() -> None:
    """End here where there is no GPU."""
    import torch

    if not torch.cuda.is_available():
        sys.exit(f"bench/gpu.py needs a GPU, and torch {torch.__version__} sees none: nothing was measured")


def profile_of(args: argparse.Namespace, model: ModelRef) -> Profile:
    if args.profile is None:
        return Profile(device="cuda", engines={model.name: ModelProfile(engine="vllm", concurrency=64)})
    profile = parse_toml(Profile, args.profile.read_text(encoding="utf-8"), args.profile)
    where = profile.engines.get(model.name) or profile.engines.get("*")
    if where is None or where.engine != "vllm":
        sys.exit(f'{args.profile}: write [engines."{model.name}"] with engine = "vllm"')
    return profile.model_copy(update={"engines": {model.name: where}})


def packed_frames(folder: Path, windows: int) -> list[tuple[PackedFrame, ...]]:
    """Frames of so many windows of a film that shows something else at every instant, as they are sent."""
    from media import FFMPEG

    from evicat.catalog.media.frames import Wanted, decode_windows, frame_times
    from evicat.catalog.media.identity import hash_file
    from evicat.catalog.media.probe import probe
    from evicat.schemas.grid import windows as grid
    from evicat.schemas.span import US

    film = folder / "film.mp4"
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate={FRAMES_PER_SECOND},noise=alls=12:allf=t"
    encode = ["-t", str(windows * WINDOW_S), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
    subprocess.run([*FFMPEG, "-f", "lavfi", "-i", source, *encode, str(film)], check=True)
    asset_id, size_bytes = hash_file(film)
    asset = probe(film, asset_id=asset_id, size_bytes=size_bytes)
    looks = [
        Wanted(span, frame_times(span, FRAMES), WIDTH)
        for span in grid(asset.duration_us, WINDOW_S * US)[:windows]
    ]
    describer = describer_of(ModelRef(name="any"), Profile())
    return [describer.prepare(shown) for _, shown in decode_windows(film, asset, looks)]


def split(frames: list[Any], warm_up: int, windows: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Three parts that share no picture, so that none is answered from a cache."""
    return frames[:warm_up], frames[warm_up : warm_up + windows], frames[warm_up + windows :]


def describer_of(model: ModelRef, profile: Profile) -> Any:
    scale = Scale(
        kind="local",
        window_seconds=WINDOW_S,
        describer="vlm-local",
        frames=FrameOptions(per_window=FRAMES, max_width=WIDTH),
        options={
            "model": model.name,
            "revision": model.revision,
            "quantization": model.quantization,
            "max_tokens": 600,
        },
    )
    return load_describer(scale, profile)


def measure(
    engine: Engine,
    model: ModelRef,
    profile: Profile,
    warm: Sequence[tuple[PackedFrame, ...]],
    asked: Sequence[tuple[PackedFrame, ...]],
) -> Ours:
    describer = describer_of(model, profile)
    describer.bind(lambda _: engine)
    describer.check()
    words = engine.submit(without_images(short(describer, warm[0]))).result().prompt_tokens
    described(describer, warm, engine.slots)
    started = time.perf_counter()
    made = described(describer, asked, engine.slots)
    seconds = time.perf_counter() - started
    whole = [each for each in made if isinstance(each, Description)]
    if not whole:
        sys.exit(f"no window got a record, so nothing was measured; the first failed with: {made[0]}")
    useful = sum((each.prompt_tokens + each.completion_tokens) / each.attempts for each in whole)
    return Ours(
        side=Side(seconds, len(asked), useful),
        prompt_tokens=statistics.fmean(each.prompt_tokens / each.attempts for each in whole),
        output_tokens=statistics.fmean(each.completion_tokens / each.attempts for each in whole),
        words=words,
        failed=len(made) - len(whole),
    )


def described(
    describer: Any, frames: Sequence[tuple[PackedFrame, ...]], callers: int
) -> list[Description | WindowError]:
    def one(shown: tuple[PackedFrame, ...]) -> Description | WindowError:
        try:
            description: Description = describer.describe(WindowInput(span_of(shown), frames=shown))
        except WindowError as error:
            return error
        return description

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(one, frames))


def span_of(shown: Sequence[PackedFrame]) -> Any:
    from evicat.schemas.span import US, Span

    number = shown[0].time_us // (WINDOW_S * US)
    return Span(number * WINDOW_S * US, (number + 1) * WINDOW_S * US)


def reading_rate(
    engine: Engine, model: ModelRef, profile: Profile, frames: Sequence[tuple[PackedFrame, ...]]
) -> float:
    """Prompt tokens in a second, of requests that are answered with one token."""
    describer = describer_of(model, profile)
    describer.bind(lambda _: engine)
    requests = [short(describer, shown) for shown in frames]
    started = time.perf_counter()
    futures = [engine.submit(request) for request in requests]
    wait(futures)
    seconds = time.perf_counter() - started
    return sum(future.result().prompt_tokens for future in futures) / seconds


def short(describer: Any, shown: tuple[PackedFrame, ...]) -> ChatRequest:
    told = describer.told(WindowInput(span_of(shown), frames=shown))
    request: ChatRequest = describer._request(
        [part for part in (told.text, *describer._pictures(shown)) if part]
    )
    return replace(request, max_tokens=1, schema=None)


def bare(
    model: ModelRef, where: ModelProfile, profile: Profile, our: Ours, folder: Path, warm_up: int
) -> Side:
    """vLLM's own bench, over requests of the same make-up."""
    result = folder / "bench.json"
    command = bench_command(model, where, profile, our, result, warm_up)
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True)
    told = json.loads(result.read_text())
    return Side(told["elapsed_time"], told["num_requests"], told["total_num_tokens"])


def bench_command(
    model: ModelRef, where: ModelProfile, profile: Profile, our: Ours, result: Path, warm_up: int
) -> list[str]:
    from evicat.catalog.engines.vllm_options import VllmOptions

    options = VllmOptions.model_validate(where.options)
    location = weights_of(model, profile).location
    engine = engine_arguments(model, location, where, profile.device, options)
    facts: dict[str, Any] = {
        "backend": "vllm-chat",
        "dataset-name": "random-mm",
        "num-prompts": our.side.requests,
        "num-warmups": warm_up,
        "random-input-len": our.words,
        "random-output-len": max(1, round(our.output_tokens)),
        "random-mm-base-items-per-request": FRAMES,
        "random-mm-num-mm-items-range-ratio": 0,
        "random-mm-limit-mm-per-prompt": json.dumps({"image": FRAMES, "video": 0}),
        "random-mm-bucket-config": str({(HEIGHT, WIDTH, 1): 1.0}),
        "output-json": result,
    }
    return [sys.executable, "-m", VLLM, "bench", "throughput", *flags(facts), *flags(engine)]


def flags(facts: dict[str, Any]) -> list[str]:
    """``{"a_b": 1}`` as ``--a-b 1``; None and False are left out, tables are JSON, lists have commas."""
    found: list[str] = []
    for name, value in facts.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            found.append(flag)
        elif isinstance(value, dict):
            found += [flag, json.dumps(value)]
        elif isinstance(value, list):
            found += [flag, ",".join(map(str, value))]
        elif value is not None and value is not False:
            found += [flag, str(value)]
    return found


def end(model: ModelRef, our: Ours, other: Side, prompt_rate: float) -> None:
    """Print both sides, their ratio and the rates; exit 1 where the bound was missed."""
    ratio = our.side.rate / other.rate
    ours_each, other_each = our.prompt_tokens + our.output_tokens, other.tokens / other.requests
    alike = abs(other_each / ours_each - 1) <= ALIKE
    print(f"ours:  {our.side.rate:9.0f} useful tokens/s ({our.side.requests} windows, {our.failed} failed)")
    print(f"       {our.prompt_tokens:.0f} prompt and {our.output_tokens:.0f} output tokens each")
    print(f"other: {other.rate:9.0f} tokens/s, {other_each:.0f} tokens each")
    if alike:
        print(f"ratio: {ratio:.2f} ({'within' if ratio >= BOUND else 'BELOW'} {BOUND})")
    else:
        print(f"no ratio: a request had {ours_each:.0f} tokens here and {other_each:.0f} there")
    print(f'\n[engines."{model.name}"]\n{rates(our, prompt_rate)}')
    sys.exit(0 if alike and ratio >= BOUND else 1)


def rates(our: Ours, prompt_rate: float) -> str:
    """The lines of the profile: seconds are prompt tokens by the one plus output tokens by the other rate."""
    requests = our.side.requests - our.failed
    writing_s = our.side.seconds - requests * our.prompt_tokens / prompt_rate
    if writing_s <= 0:
        return "# answers took no time beside their prompts: show more windows (--windows) to measure rates"
    return (
        f"prompt_tokens_per_second = {prompt_rate:.0f}\n"
        f"output_tokens_per_second = {requests * our.output_tokens / writing_s:.0f}"
    )


if __name__ == "__main__":
    try:
        main()
    except EvicatError as error:
        sys.exit(f"bench/gpu.py: {error}")
