"""Scripts of the repository as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


@cache
def script(path: str) -> ModuleType:
    """The script at ``path``, relative to the top of the repository; it runs once."""
    name = "evicat_script_" + path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
