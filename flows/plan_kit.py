"""The parts of a recipe where none of them is going to run, so that some may be missing on this machine."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from evicat.catalog.describers.base import Describer, Description, WindowInput
from evicat.catalog.describers.loaders import describer_class
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import embedder_class
from evicat.catalog.engines.base import ChatAnswer, ChatRequest, Engine
from evicat.catalog.kit import Kit
from evicat.catalog.registry import check_options
from evicat.catalog.transcribers.base import Transcriber
from evicat.catalog.transcribers.loaders import transcriber_class
from evicat.schemas.errors import RecipeError, UnknownNameError, UsageError
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import Model
from evicat.schemas.recipe import EmbedderOptions, ModelProfile, Profile, Recipe, Scale, SpeechOptions

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Absent:
    """What goes into the producer of a part that cannot be opened here, its weights by name only."""

    component: str
    version: int
    options: Model
    model: ModelRef


class _AbsentDescriber(Describer[Any]):
    """Stands for a describer whose weights are not here: it shows frames, and what it takes is not known."""

    def __init__(self, kind: type[Describer[Any]], options: Model, profile: Profile) -> None:
        super().__init__(options, profile)
        self.reads = kind.reads
        for name in ("component", "version", "kind", "options_class"):
            setattr(self, name, getattr(kind, name))

    @property
    def model(self) -> ModelRef | None:
        name = getattr(self.options, "model", "")
        return ModelRef(name=name) if name else None

    def describe(self, window: WindowInput) -> Description:
        raise RuntimeError(f"a plan asked describer {self.component}")


class _NoEngine(Engine):
    """Stands for an engine that cannot be opened here, and is not asked."""

    name = "none"

    def check(self, request: ChatRequest) -> None:
        raise RuntimeError(f"a plan asked the engine of {self.model.name!r}")

    def submit(self, request: ChatRequest) -> Future[ChatAnswer]:
        raise RuntimeError(f"a plan asked the engine of {self.model.name!r}")

    def close(self) -> None: ...


class PlanningKit(Kit):
    """A kit to plan with: engines, weights and packages may be missing, and what is missing is told.

    Raises:
        UsageError: the recipe names a part that nobody has, or options that do not fit.
    """

    def __init__(self, recipe: Recipe, profile: Profile) -> None:
        self.missing: list[str] = []
        """What a run would end with."""
        super().__init__(recipe, profile)

    def engine(self, model: ModelRef) -> Engine:
        if model not in self._engines:
            engines = self.profile.engines
            where = engines.get(model.name) or engines.get("*") or ModelProfile()
            self._engines[model] = self._or(
                lambda: super(PlanningKit, self).engine(model),
                lambda: _NoEngine(model, where, self.profile),
            )
        return self._engines[model]

    def _load_describer(self, scale: Scale) -> Describer[Any]:
        kind = describer_class(scale.describer)

        def part() -> Describer[Any]:
            found = super(PlanningKit, self)._load_describer(scale)
            found.model  # noqa: B018  some look for their weights only now
            return found

        return self._or(
            part,
            lambda: _AbsentDescriber(
                kind, check_options(f"scale {scale.name}", kind.options_class, scale.options), self.profile
            ),
        )

    def _load_transcriber(self, speech: SpeechOptions) -> Transcriber[Any]:
        kind = transcriber_class(speech.transcriber or "")
        options = check_options("transcriber", kind.options_class, speech.options)
        model = ModelRef(name=speech.model, quantization=speech.compute_type)
        absent: Any = _Absent(kind.component, kind.version, options, model)
        return self._or(lambda: super(PlanningKit, self)._load_transcriber(speech), lambda: absent)

    def _load_embedder(self, embedder: EmbedderOptions) -> Embedder[Any]:
        kind = embedder_class(embedder.name)
        options = check_options("embedder", kind.options_class, embedder.options)
        model = ModelRef(name=embedder.model, revision=embedder.revision)
        absent: Any = _Absent(kind.component, kind.version, options, model)
        return self._or(lambda: super(PlanningKit, self)._load_embedder(embedder), lambda: absent)

    def _or(self, part: Callable[[], T], stand_in: Callable[[], T]) -> T:
        """The part itself, or what stands for it where it is missing here."""
        try:
            return part()
        except (RecipeError, UnknownNameError):
            raise
        except UsageError as error:
            self.missing.append(str(error))
            return stand_in()
