"""The digest of model weights: it tells which weights they are, wherever they lie.

The digest of a folder is SHA-256 over one line ``RELATIVE/NAME SHA256-OF-THE-FILE`` per file that counts,
sorted by name. A copy without readme, licence, or formats that are not read has the same digest. What counts:

- settings and vocabularies (:data:`_SETTINGS`, :data:`_TEXTS`), at any depth, but not hidden ones and those
  that only training reads (:data:`_NOT_READ`);
- weights, in each folder of one format only: the first of :data:`FORMATS` that it has. Beside
  ``model.safetensors``, ``pytorch_model.bin`` and its index do not count;
- nothing in folders named after another format (:data:`_OTHER_FORMATS`), where weights lie outside of them.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from platformdirs import user_cache_path
from pydantic import TypeAdapter

from evicat.schemas.errors import UsageError
from evicat.schemas.model import Model

log = logging.getLogger(__name__)

Formats = tuple[frozenset[str], ...]
"""Suffixes of weights, format by format; a loader reads the first that is there."""

_TORCH: Final = frozenset({".bin", ".pt", ".pth"})
_OTHERS: Final = (frozenset({".gguf"}), frozenset({".onnx", ".onnx_data"}))
FORMATS: Final[Formats] = (frozenset({".safetensors"}), _TORCH, *_OTHERS)
"""As transformers and sentence-transformers choose."""
CTRANSLATE2_FORMATS: Final[Formats] = (_TORCH,)
"""CTranslate2 reads ``model.bin``, whatever lies beside it."""

_SETTINGS: Final = frozenset({".jinja", ".json", ".model", ".tiktoken"})
_TEXTS: Final = frozenset({"merges.txt", "vocab.txt", "vocabulary.txt"})
_NOT_READ: Final = frozenset({"data_config.json", "trainer_state.json", "training_args.bin"}) | {
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
}
"""``data_config.json`` lists training data in sentence-transformers repositories."""
_OTHER_FORMATS: Final = frozenset(
    {"coreml", "flax", "gguf", "metal", "onnx", "openvino", "original", "tflite"}
)
_INDEX: Final = ".index.json"
"""``model.safetensors.index.json`` says in which file each weight is."""
_WEIGHTS: Final = frozenset().union(*FORMATS)
_UNREAD_INDEX: Final = frozenset({".h5", ".msgpack"})


def counted(names: Iterable[str], formats: Formats = FORMATS) -> list[str]:
    """Those of the files of one model (``/`` between folders) that its digest is of, sorted."""
    paths = [path for path in map(PurePosixPath, names) if _may_count(path)]
    outside = [path for path in paths if not _OTHER_FORMATS.intersection(path.parts[:-1])]
    if any(path.suffix.lower() in _WEIGHTS for path in outside):
        paths = outside
    suffixes = defaultdict[PurePosixPath, set[str]](set)
    for path in paths:
        suffixes[path.parent].add(path.suffix.lower())
    read = {
        folder: next((one for one in formats if one & there), frozenset())
        for folder, there in suffixes.items()
    }
    return sorted(str(path) for path in paths if _is_of(path, read[path.parent]))


def holds_weights(names: Iterable[str]) -> bool:
    """Whether any of the files holds weights."""
    return any(PurePosixPath(name).suffix.lower() in _WEIGHTS for name in names)


def _may_count(path: PurePosixPath) -> bool:
    if path.name in _NOT_READ or any(part.startswith(".") for part in path.parts):
        return False
    return path.suffix.lower() in _WEIGHTS | _SETTINGS or path.name in _TEXTS


def _is_of(path: PurePosixPath, read: frozenset[str]) -> bool:
    """Whether a file is no weights, nor about weights, of a format that is not ``read``."""
    about = PurePosixPath(path.name.removesuffix(_INDEX)) if path.name.endswith(_INDEX) else path
    suffix = about.suffix.lower()
    return suffix in read or suffix not in _WEIGHTS | _UNREAD_INDEX


def file_digest(path: Path) -> str:
    """SHA-256 (64 hexadecimal digits) of one file."""
    cache = _DigestCache()
    digest = cache.sha256(path)
    cache.save()
    return digest


def folder_digest(folder: Path, formats: Formats = FORMATS) -> str:
    """SHA-256 (64 hexadecimal digits) of the model files in ``folder``; the module's docstring has the rule.

    Raises:
        UsageError: the folder holds no model files.
    """
    names = files_of(folder, formats)
    cache = _DigestCache()
    lines = [f"{name} {cache.sha256(folder / name)}\n" for name in names]
    cache.save()
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def files_of(folder: Path, formats: Formats = FORMATS) -> list[str]:
    """The files in ``folder`` that its digest is of, by their names relative to it, sorted.

    Raises:
        UsageError: there are none.
    """
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    if names := counted(files, formats):
        return names
    raise UsageError(f"{folder} holds no model files; give the folder that holds the weights")


class _Hashed(Model):
    """A file's digest, and what changes when its bytes do; ctime because a rewrite can restore the rest."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str


_Known = TypeAdapter(dict[str, _Hashed])


class _DigestCache:
    """SHA-256 of files that were hashed before, in ``weights.json`` of the user's cache folder.

    Files go by their real paths: revisions in the model hub's cache link to the same ones.
    """

    def __init__(self) -> None:
        self._path = user_cache_path("evicat", appauthor=False) / "weights.json"
        self._known: dict[str, _Hashed] = {}
        self._is_changed = False
        try:
            self._known = _Known.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            log.warning("cannot read %s (%s): weights are hashed again", self._path, error)

    def sha256(self, path: Path) -> str:
        path = path.resolve()
        stat = path.stat()
        known = self._known.get(str(path))
        now = _Hashed(
            size=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            ctime_ns=stat.st_ctime_ns,
            inode=stat.st_ino,
            sha256=known.sha256 if known else "",
        )
        if now == known:
            return known.sha256
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self._known[str(path)] = now.model_copy(update={"sha256": digest})
        self._is_changed = True
        return digest

    def save(self) -> None:
        if not self._is_changed:
            return
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(_Known.dump_json(self._known, indent=1))
            part.replace(self._path)
        except OSError as error:
            log.warning("cannot write %s (%s): weights are hashed again next time", self._path, error)
