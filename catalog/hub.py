"""Weights that the model hub has, as a local folder: its own cache, filled where that is allowed."""

from __future__ import annotations

import glob
import logging
import re
from pathlib import Path
from typing import NoReturn

from evicat.catalog.digests import FORMATS, Formats, counted, files_of, holds_weights
from evicat.schemas.errors import UsageError, first_line

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 10.0
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


def snapshot(repository: str, *, revision: str = "", formats: Formats = FORMATS, known_as: str = "") -> Path:
    """The folder in the hub's cache that holds ``repository``; what is missing there is fetched first.

    Of the files those are fetched that the digest is of, and no others. Where the hub cannot be reached, or
    ``HF_HUB_OFFLINE`` is set, the cache must have them. ``known_as`` is what the recipe calls it, if that is
    another name.

    Raises:
        UsageError: there is no such model or revision, it may not be read, or it is not in the cache and
            cannot be fetched; says what to do.
    """
    from httpx2 import HTTPError
    from huggingface_hub import is_offline_mode, snapshot_download
    from huggingface_hub.errors import HFValidationError

    wanted, why = revision or None, "HF_HUB_OFFLINE is set" if is_offline_mode() else ""
    try:
        names = None if why else _told_names(repository, wanted)
        if names is None:
            why = why or "the model hub cannot be reached"
            names = _cached_names(repository, wanted)
        read = None if names is None else _checked(repository, counted(names, formats))
        folder = snapshot_download(
            repository,
            revision=wanted,
            allow_patterns=None if read is None else [glob.escape(name) for name in read],
            local_files_only=bool(why),
        )
    except (HTTPError, OSError, HFValidationError) as error:
        _refuse(repository, known_as or repository, revision, why, error)
    _checked(repository, files_of(Path(folder), formats))
    return Path(folder)


def _told_names(repository: str, revision: str | None) -> list[str] | None:
    """Files of the repository, as the hub tells them; None: it cannot be reached."""
    from httpx2 import ConnectError, TimeoutException
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        told = HfApi().model_info(repository, revision=revision, timeout=TIMEOUT_SECONDS)
        return [each.rfilename for each in told.siblings or []]
    except (ConnectError, TimeoutException, HfHubHTTPError) as error:
        if isinstance(error, HfHubHTTPError) and _is_refusal(error.response.status_code):
            raise  # it was reached, and said no
        log.warning("the model hub cannot be reached (%s): %s is taken from its cache", error, repository)
        return None


def _is_refusal(status: int) -> bool:
    """Whether a server that answers so will not answer otherwise later: 429 is "too many requests"."""
    return status < 500 and status != 429


def _cached_names(repository: str, revision: str | None) -> list[str] | None:
    """Files of the repository, as they were told when it was fetched; None: they were not, or it was not."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        return [file.path for file in get_cached_repo_tree(repository, revision=revision)]
    except CachedRepoTreeNotFoundError:
        return None


def _checked(repository: str, names: list[str]) -> list[str]:
    """The files that count, which must hold the weights of one model.

    Raises:
        UsageError: they do not.
    """
    packed = [name for name in names if name.endswith(".gguf") and "mmproj" not in name]
    models = sorted({_PART.sub(".gguf", name) for name in packed})
    if len(models) > 1:
        raise UsageError(
            f"{repository!r} on the model hub holds {len(models)} models as GGUF files, such as {models[0]} "
            f"and {models[1]}; put the one that you want into a folder of its own, and name that under "
            "[models] of the profile"
        )
    if not holds_weights(names):
        raise UsageError(
            f"{repository!r} on the model hub holds no weights that can be read ({len(names)} other files)"
        )
    return names


def _refuse(repository: str, known_as: str, revision: str, why: str, error: Exception) -> NoReturn:
    """Say what an error of the hub's client means."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    model = f"model {repository!r}" + (f", revision {revision!r}," if revision else "")
    if isinstance(error, LocalEntryNotFoundError):
        raise UsageError(
            f"{model} is not whole in the model hub's cache, and {why or 'it cannot be fetched'}; fetch it "
            f"once with a network: HF_HUB_OFFLINE=0 evicat weights {repository!r}; or put it into a folder, "
            f'and write under [models] of the profile: "{known_as}" = "/FOLDER"'
        ) from error
    match error:
        case GatedRepoError():
            mend = "accept its terms on its page on the hub, and log in with: hf auth login"
        case RepositoryNotFoundError() | HFValidationError():
            mend = "write its name as on the hub (OWNER/NAME), or the path of a folder beginning with ./ or /"
        case RevisionNotFoundError():
            mend = "write another revision into the recipe"
        case _:
            mend = "try again later, or name a local folder under [models] of the profile"
    raise UsageError(f"{model} cannot be had from the model hub: {first_line(error)}; {mend}") from error
