"""Looks up in vLLM's sources every name that evicat uses of it, without importing them.

So a release can be looked at on any machine: ``pip download --no-deps vllm==VERSION``, unpack the wheel, and
``python tests/catalog/engines/vllm_names.py FOLDER/vllm``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from evicat.catalog.engines.base import ChatRequest
from evicat.catalog.engines.vllm_calls import engine_arguments, sampling_arguments
from evicat.catalog.engines.vllm_load import ENVIRONMENT
from evicat.catalog.engines.vllm_options import SET_HERE, VllmOptions
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile

ARGUMENTS = engine_arguments(ModelRef(name="m"), "/weights", ModelProfile(), "cuda:0", VllmOptions())
SAMPLING = sampling_arguments(ChatRequest("", ("a",), max_tokens=1), None)

MEMBERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("engine/arg_utils.py", "EngineArgs", (*ARGUMENTS, *SET_HERE, "create_engine_config")),
    ("v1/engine/async_llm.py", "AsyncLLM", ("generate", "shutdown", "errored", "renderer", "model_config")),
    ("sampling_params.py", "SamplingParams", tuple(SAMPLING)),
    ("sampling_params.py", "StructuredOutputsParams", ("json",)),
    ("config/structured_outputs.py", "StructuredOutputsConfig", ("backend",)),
    ("renderers/params.py", "ChatParams", ("chat_template_kwargs",)),
    ("renderers/params.py", "TokenizeParams", ("with_kwargs", "add_special_tokens")),
    ("renderers/base.py", "BaseRenderer", ("default_chat_tok_params", "tokenizer")),
    ("tokenizers/protocol.py", "TokenizerLike", ("all_special_tokens", "get_added_vocab")),
    ("outputs.py", "RequestOutput", ("prompt_token_ids", "outputs")),
    ("outputs.py", "CompletionOutput", ("text", "token_ids", "finish_reason")),
    ("config/model.py", "ModelConfig", ("is_multimodal_model", "quantization")),
    ("platforms/interface.py", "Platform", ("is_unspecified",)),
)
"""File, class, and what it must have: fields, methods, properties, or what its methods set."""

PARAMETERS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("v1/engine/async_llm.py", "AsyncLLM", "generate", ("prompt", "sampling_params", "request_id")),
    (
        *("v1/engine/async_llm.py", "AsyncLLM", "from_vllm_config"),
        ("vllm_config", "enable_log_requests", "disable_log_stats"),
    ),
    (
        *("renderers/base.py", "BaseRenderer", "render_chat_async"),
        ("conversations", "chat_params", "tok_params"),
    ),
)
"""File, class, method, and the parameters that it must take."""

WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("__init__.py", ("SamplingParams", "__version__")),
    ("entrypoints/cli/main.py", ("__main__",)),
    ("renderers/__init__.py", ("ChatParams",)),
    ("engine/arg_utils.py", ("AsyncEngineArgs",)),
    ("platforms/__init__.py", ("current_platform",)),
    ("config/__init__.py", ("StructuredOutputsConfig",)),
    ("envs.py", tuple(ENVIRONMENT)),
)
"""File, and names that it must hold."""

PICTURE_PARTS = (
    "entrypoints/chat_utils.py",
    "renderers/chat_utils.py",
    "renderers/chat_utils/chat_message.py",
)
"""Where a release knows the part ``image_pil`` of a message: one of them."""


def missing(package: Path) -> list[str]:
    """Every name that evicat uses and ``package`` does not have."""
    return list(_missing(package))


def _missing(package: Path) -> Iterator[str]:
    for file, kind, names in MEMBERS:
        found = members(package / file, kind)
        yield from (f"{file}: {kind} has no {name}" for name in sorted({*names} - found))
    for file, kind, method, wanted in PARAMETERS:
        taken = parameters(package / file, kind, method)
        yield from (f"{file}: {kind}.{method} takes no {name}" for name in wanted if name not in taken)
    for file, wanted in WORDS:
        held = words(package / file)
        yield from (f"{file}: no {name}" for name in wanted if name not in held)
    if not any("image_pil" in words(package / file) for file in PICTURE_PARTS):
        yield f"{' and '.join(PICTURE_PARTS)}: no image_pil"


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8") if file.is_file() else "")


def _class(file: Path, kind: str) -> list[ast.stmt]:
    found = (node for node in _tree(file).body if isinstance(node, ast.ClassDef) and node.name == kind)
    return next((node.body for node in found), [])


def members(file: Path, kind: str) -> set[str]:
    found: set[str] = set()
    for node in _class(file, kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
            found |= {each.attr for each in ast.walk(node) if _is_set_on_self(each)}
    return found


def _is_set_on_self(node: ast.AST) -> bool:
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def parameters(file: Path, kind: str, method: str) -> set[str]:
    for node in _class(file, kind):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == method:
            return {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    return set()


def words(file: Path) -> set[str]:
    """All names, and all texts that could be names."""
    found: set[str] = set()
    for node in ast.walk(_tree(file)):
        match node:
            case ast.Name(id=name) | ast.ClassDef(name=name) | ast.Constant(value=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
    return found


if __name__ == "__main__":
    lacking = missing(Path(sys.argv[1]))
    print("\n".join(lacking) or "nothing is missing")
    sys.exit(1 if lacking else 0)
