"""Engines, devices, models, and the parts that recipes can name."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evicat.flows.findings import Finding, attempt
from evicat.schemas.errors import UsageError
from evicat.schemas.recipe import Profile, Recipe

if TYPE_CHECKING:
    from evicat.schemas.identity import ModelRef


def engines(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """What runs models and decoders, and what each can use."""
    calls: dict[str, Callable[[], str]] = {
        "PyAV": _pyav,
        "torch": _torch,
        "CTranslate2": _ctranslate2,
        "ONNX Runtime": _onnxruntime,
    }
    for name, call in calls.items():
        yield attempt("engine", name, call)


def _pyav() -> str:
    import av

    return f"{av.__version__} with FFmpeg {av.ffmpeg_version_info}; an ffmpeg program is not needed"


def _torch() -> str:
    import torch

    return f"{torch.__version__}, {torch.get_num_threads()} threads"


def _ctranslate2() -> str:
    import ctranslate2

    types = ", ".join(sorted(ctranslate2.get_supported_compute_types("cpu")))
    return (
        f"{ctranslate2.__version__}; on the CPU: {types}; CUDA devices: {ctranslate2.get_cuda_device_count()}"
    )


def _onnxruntime() -> str:
    import onnxruntime

    return f"{onnxruntime.__version__}: {', '.join(onnxruntime.get_available_providers())}"


def devices(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """Where models can run; the profile's ``device`` is needed."""
    wanted = profile.device.partition(":")[0]
    yield attempt("device", "cpu", _cpu)
    for name, call in (("cuda", _cuda), ("mps", _mps)):
        needed = wanted == name
        mend = (
            "write another device into the profile, or install a torch build for this one" if needed else ""
        )
        yield attempt("device", name, call, needed=needed, mend=mend)


def _cpu() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} threads"


def _cuda() -> str:
    import torch

    if not torch.cuda.is_available():
        raise UsageError("torch sees none")
    return ", ".join(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def _mps() -> str:
    import torch

    if not torch.backends.mps.is_available():
        raise UsageError("torch sees none")
    return "Apple GPU"


def models(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """Packaged weights, and the models of the recipe's own parts: there, and with the right digest."""
    from evicat.catalog.weights import PACKAGED

    for name in (f"packaged:{short}" for short in PACKAGED):
        yield attempt("model", name, partial(_packaged, name, profile))
    for title, make in own_parts(recipe, profile):
        yield attempt("model", f"of {title}", partial(_model_of, make), needed=True)


def _packaged(name: str, profile: Profile) -> str:
    from evicat.catalog.weights import resolve

    return f"digest {resolve(name, profile=profile).ref.digest[:12]}"


def own_parts(recipe: Recipe, profile: Profile) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each part of the recipe, and the call that makes it. Loads no weights."""
    from evicat.catalog.describers.loaders import load_describer
    from evicat.catalog.embedders.loaders import load_embedder
    from evicat.catalog.transcribers.loaders import load_transcriber

    for scale in recipe.scales:
        yield f"{scale.name} by {scale.describer}", partial(load_describer, scale, profile)
    if recipe.speech and recipe.speech.transcriber:
        yield f"speech by {recipe.speech.transcriber}", partial(load_transcriber, recipe.speech, profile)
    if recipe.embedder:
        yield f"vectors by {recipe.embedder.name}", partial(load_embedder, recipe.embedder, profile)


def _model_of(make: Callable[[], Any]) -> str:
    model: ModelRef | None = make().model
    return _named(model) if model else "none"


def _named(model: ModelRef) -> str:
    known = f"digest {model.digest[:12]}" if model.digest else "its trial tells whether it is here"
    return f"{model.name}, {known}"


def parts(recipe: Recipe, profile: Profile) -> Iterator[Finding]:
    """Every describer, transcriber and embedder, and the modules that it lacks here."""
    from evicat.catalog.describers.loaders import DESCRIBERS
    from evicat.catalog.embedders.loaders import EMBEDDERS
    from evicat.catalog.transcribers.loaders import TRANSCRIBERS

    for what, known in (("describer", DESCRIBERS), ("transcriber", TRANSCRIBERS), ("embedder", EMBEDDERS)):
        for name, where in known.items():
            mend = "install the extra that adds it, if you want to use it"
            yield attempt("part", f"{what} {name}", partial(_part, where.partition(":")[0]), mend=mend)


def _part(module: str) -> str:
    missing = sorted(name for name in _asked_for(module, set()) if find_spec(name) is None)
    if missing:
        raise ModuleNotFoundError(f"not installed: {', '.join(missing)}")
    return "everything that it imports is here"


def _asked_for(module: str, seen: set[str]) -> set[str]:
    """Modules of others (first name) that ``module``, and what it imports of evicat, ask for anywhere."""
    spec = find_spec(module)
    if module in seen or spec is None or spec.origin is None:
        return set()
    seen.add(module)
    found: set[str] = set()
    for name in _imports(ast.parse(Path(spec.origin).read_text(encoding="utf-8")), spec.parent or ""):
        if name.startswith("evicat."):
            found |= _asked_for(name, seen)
        elif (top := name.partition(".")[0]) not in sys.stdlib_module_names:
            found.add(top)
    return found


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Absolute names of the modules that ``tree`` imports, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield resolve_name("." * node.level + (node.module or ""), package)
