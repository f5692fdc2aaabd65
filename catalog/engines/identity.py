"""Whether a server runs the model that the recipe names: what it says of itself, now and later."""

from __future__ import annotations

import asyncio
import time

from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef


class Identity:
    """Which model the server has to be running, and what it said of it."""

    def __init__(self, model: ModelRef, named: str, endpoint: str) -> None:
        self._model, self._named, self._endpoint = model, named, endpoint
        self._root = ""
        self.looked_up_s = float("-inf")
        self.asking = asyncio.Lock()

    def check_answer(self, named: str) -> None:
        """Compare what an answer names with what was asked for.

        Raises:
            UsageError: another model answered.
        """
        if named not in (self._named, self._model.name):
            raise self._other(named)

    def check_served(self, served: dict[str, str]) -> None:
        """Compare the server's list of models, and where it says that ours is from.

        A name on the model hub must be the recipe's; a folder may be called anything, but stays what it was.

        Raises:
            UsageError: the model is not among them, or another one goes by its name.
        """
        self.looked_up_s = time.monotonic()
        if not served:
            return
        name = next((each for each in (self._named, self._model.name) if each in served), None)
        if name is None:
            raise self._other(", ".join(sorted(served)))
        root = served[name]
        if root.count("/") == 1 and root[0] not in "/.~" and root not in (self._named, *self._known_roots()):
            raise self._other(root)
        if self._root and root != self._root:
            raise self._other(root, f" (before, it was {self._root!r})")
        self._root = root

    def _known_roots(self) -> list[str]:
        name, quantization = self._model.name, self._model.quantization
        return [name, *(f"{name}-{each}" for each in (quantization, quantization.upper()) if each)]

    def _other(self, named: str, more: str = "") -> UsageError:
        asked = f"{self._model.name!r}" + (f" as {self._named!r}" if self._named != self._model.name else "")
        return UsageError(
            f"the server at {self._endpoint} runs {named!r}{more}, but the recipe asks for {asked}; "
            "serve that model, name the served one in the recipe, or write an alias in the profile if it is "
            "the same under another name"
        )
