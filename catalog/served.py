"""Models behind a server that speaks OpenAI's protocol: where it is, and what its failures mean.

``[endpoints]`` of the profile says where the server of a model is; the key is read from ``OPENAI_API_KEY``
and goes nowhere but to that server. Retries and timeouts are those of the ``openai`` package.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from evicat.schemas.errors import BusyError, MissingExtraError, UsageError
from evicat.schemas.recipe import Profile

if TYPE_CHECKING:
    from openai import OpenAI

_NO_KEY = "none"
"""Sent where no key is set: a server on one's own machine asks for none."""


def api_key() -> str:
    """The key for servers, without the line end that a file leaves behind it; it must go nowhere else.

    Raises:
        UsageError: no header can hold it. It is not repeated.
    """
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError("OPENAI_API_KEY holds characters that no key has; set it anew")
    return key or _NO_KEY


def hide_key(text: str) -> str:
    """``text`` without the key, for servers that repeat it in what they say."""
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    return text.replace(key, "(key)") if key else text


class Endpoint:
    """The server of one model. Nothing is sent before the first call.

    Raises:
        MissingExtraError: the package ``openai`` is not installed.
        UsageError: no model is named, or the profile does not say where it is served.
    """

    def __init__(self, model: str, profile: Profile) -> None:
        if importlib.util.find_spec("openai") is None:
            raise MissingExtraError("openai", "openai")
        if not model.strip():
            raise UsageError("the recipe names no model; write the name by which the server knows it")
        if model not in profile.endpoints:
            raise UsageError(
                f"the profile does not say where {model!r} is served; write under [endpoints]: "
                f'"{model}" = "http://HOST:PORT/v1"'
            )
        self.model = model
        self.url = profile.endpoints[model]

    @cached_property
    def client(self) -> OpenAI:
        from openai import OpenAI

        return OpenAI(base_url=self.url, api_key=api_key())

    def check_model(self, named: str) -> None:
        """Compare what the server says of an answer with what the recipe asks for.

        Raises:
            UsageError: they differ.
        """
        if named != self.model:
            raise UsageError(
                f"the server at {self.url} answered as {named!r}, but the recipe asks for {self.model!r}; "
                "serve that model, or name the served one in the recipe"
            )

    def check_served(self) -> None:
        """Ask the server for its models, where answers do not say what made them.

        Raises:
            UsageError: the model is not among them.
        """
        with self.answering() as client:
            served = sorted(model.id for model in client.models.list())
        if self.model not in served:
            known = ", ".join(served) or "nothing"
            raise UsageError(
                f"the server at {self.url} serves {known}, but the recipe asks for {self.model!r}"
            )

    @contextmanager
    def answering(self) -> Iterator[OpenAI]:
        """The client; its errors become those of evicat.

        Raises:
            BusyError: the server cannot be reached, or is overloaded, after the client's own retries.
            UsageError: it refuses the request, or what it answers cannot be read.
        """
        import openai

        try:
            yield self.client
        except (openai.APIConnectionError, openai.InternalServerError, openai.RateLimitError) as error:
            raise BusyError(f"the server of {self.model!r} at {self.url} does not answer: {error}") from None
        except (openai.APIStatusError, openai.APIResponseValidationError) as error:
            raise UsageError(
                f"the server at {self.url} refuses the request to {self.model!r}: {error}"
            ) from None
