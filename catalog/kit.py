"""The working parts of a recipe in this process: loaded once, shared by all videos."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from evicat.catalog.callers import Callers
from evicat.catalog.describers.base import Describer
from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.embedders.base import Embedder
from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.engines.base import Engine
from evicat.catalog.engines.loaders import open_engine
from evicat.catalog.media.loaders import load_decoder
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.supports import VERSION as SUPPORTS_VERSION
from evicat.catalog.transcribers.base import Transcriber
from evicat.catalog.transcribers.clean import CLEAN_VERSION
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.catalog.windows import policy_facts
from evicat.schemas.errors import EvicatError, RecipeError
from evicat.schemas.identity import ModelRef, Producer
from evicat.schemas.recipe import EmbedderOptions, Profile, Recipe, Scale, SpeechOptions

T = TypeVar("T")

VIDEOS_PER_CORE = 4
"""Videos whose frames are decoded at once, at most, where the profile leaves it open."""
FRAMES_VERSION = 2
"""Bumped when the same frame options begin to show other pictures."""
SUBTITLES_VERSION = 3
"""Bumped when the same subtitle track begins to give other cues."""


class Kit:
    """Describers, transcriber, embedder and decoding workers of one recipe, with their producers.

    Components load their weights at first use. Each is used by one thread at a time: take it with
    :meth:`using`. Close the kit to end its worker processes.

    Raises:
        UsageError: a component is unknown, its options do not fit, or its weights or package are missing.
    """

    def __init__(self, recipe: Recipe, profile: Profile) -> None:
        self.recipe = recipe
        self.profile = profile
        self.describers: dict[str, Describer[Any]] = {s.name: self._load_describer(s) for s in recipe.scales}
        self.transcriber: Transcriber[Any] | None = None
        if recipe.speech and recipe.speech.transcriber:
            self.transcriber = self._load_transcriber(recipe.speech)
        self.embedder: Embedder[Any] | None = (
            self._load_embedder(recipe.embedder) if recipe.embedder else None
        )
        load_decoder(profile.decoder)  # an unknown name is said now, not by a worker
        self.workers = WorkerPool()
        self.admit: Callable[[], None] = lambda: None
        """Called before each call of a describer or transcriber; it may raise to stop the run."""
        self._engines: dict[ModelRef, Engine] = {}
        self._callers: dict[int, Callers] = {}
        for describer in self.describers.values():
            describer.bind(self.engine)
        self._locks: dict[int, threading.Lock] = {}
        self._guard = threading.Lock()
        self._checking = threading.Lock()
        self._unchecked = list(reversed(self.describers.values()))
        self._unusable: EvicatError | None = None
        self.speech = self._speech_producer()
        self.local = {s.name: self._scale_producer(s) for s in recipe.scales if s.kind == "local"}
        self.narrative = {s.name: self._scale_producer(s) for s in recipe.scales if s.kind == "narrative"}
        self.objects = {s.name: self._scale_producer(s) for s in recipe.scales if s.kind == "objects"}
        self.support = self._support_producer()
        self._embeddings = {each.producer_id: self._embedding_producer(each) for each in self.sources}

    def _load_describer(self, scale: Scale) -> Describer[Any]:
        return load_describer(scale, self.profile)

    def _load_transcriber(self, speech: SpeechOptions) -> Transcriber[Any]:
        return load_transcriber(speech, self.profile)

    def _load_embedder(self, embedder: EmbedderOptions) -> Embedder[Any]:
        return load_embedder(embedder, self.profile)

    @property
    def sources(self) -> list[Producer]:
        """Producers that write entries, in the order in which they run."""
        made = [*self.local.values(), *self.objects.values(), *self.narrative.values()]
        return [self.speech, *made] if self.speech else made

    @contextmanager
    def using(self, component: T) -> Iterator[T]:
        """Hold ``component`` for this thread alone."""
        with self._guard:
            lock = self._locks.setdefault(id(component), threading.Lock())
        with lock:
            yield component

    def scale(self, name: str) -> Scale:
        """The scale of the recipe that has this name."""
        return next(scale for scale in self.recipe.scales if scale.name == name)

    def engine(self, model: ModelRef) -> Engine:
        """The engine of a chat model: one for all that use it."""
        if model not in self._engines:
            self._engines[model] = open_engine(model, self.profile)
        return self._engines[model]

    def callers(self, describer: Describer[Any]) -> Callers:
        """The threads that call ``describer``, and all others that wait for the same engine."""
        with self._guard:
            key = id(describer.served_by)
            if key not in self._callers:
                self._callers[key] = Callers(describer.slots, describer.component)
            return self._callers[key]

    @property
    def videos_at_once(self) -> int:
        """How many videos to work on at the same time: a chain of narratives keeps one slot busy at most."""
        slots = max((engine.slots for engine in self._engines.values()), default=0)
        return self.profile.videos_at_once or max(2, min(slots, VIDEOS_PER_CORE * (os.cpu_count() or 1)))

    def check(self) -> None:
        """Make sure that every describer can work: once, and whoever asks again hears what came of it.

        Raises:
            UsageError, EngineDownError: one cannot; says what to do.
        """
        with self._checking:
            if self._unusable:
                raise self._unusable
            try:
                while self._unchecked:
                    self._unchecked[-1].check()
                    self._unchecked.pop()
            except EvicatError as error:
                self._unusable = error
                raise

    @property
    def producers(self) -> list[Producer]:
        """Everything that writes: the sources, what supports narratives, and what embeds each source."""
        supports = [self.support] if self.support else []
        embeddings = (made for each in self.sources if (made := self.embedding(each)))
        return [*self.sources, *supports, *embeddings]

    def embedding(self, source: Producer) -> Producer | None:
        """What embeds the entries of ``source``; None where the recipe embeds nothing."""
        return self.embedding_of(source.producer_id)

    def embedding_of(self, producer_id: str) -> Producer | None:
        """:meth:`embedding` of the source with this id."""
        return self._embeddings[producer_id]

    def _embedding_producer(self, source: Producer) -> Producer | None:
        if self.embedder is None:
            return None
        return Producer(
            kind="embedding",
            scale="vectors",
            component=self.embedder.component,
            version=self.embedder.version,
            model=self.embedder.model,
            options=self.embedder.options.model_dump(mode="json"),
            reads=(source.producer_id,),
        )

    def _support_producer(self) -> Producer | None:
        if self.recipe.supports is None or self.embedder is None:
            return None
        embedder = {
            "component": self.embedder.component,
            "version": self.embedder.version,
            "options": self.embedder.options.model_dump(mode="json"),
        }
        return Producer(
            kind="support",
            scale="supports",
            component="supports",
            version=SUPPORTS_VERSION,
            model=self.embedder.model,
            options=self.recipe.supports.model_dump(mode="json") | {"embedder": embedder},
            reads=tuple(source.producer_id for source in self.sources),
        )

    def _speech_producer(self) -> Producer | None:
        speech, part = self.recipe.speech, self.transcriber
        if speech is None:
            return None
        options = speech.model_dump(mode="json", include={"subtitles", "languages", "language"})
        options |= {"subtitles_version": SUBTITLES_VERSION}
        if part:
            options |= {"clean_version": CLEAN_VERSION, "transcriber": part.options.model_dump(mode="json")}
            options |= speech.model_dump(mode="json", include={"audio_language", "audio_index"})
        return Producer(
            kind="speech",
            scale="speech",
            component=part.component if part else "subtitles",
            version=part.version if part else SUBTITLES_VERSION,
            model=part.model if part else None,
            options=options,
        )

    def _scale_producer(self, scale: Scale) -> Producer:
        part = self.describers[scale.name]
        options: dict[str, Any] = policy_facts(scale) | {"describer": part.facts()}
        if scale.frames:
            options |= {"frames": scale.frames.model_dump(mode="json"), "frames_version": FRAMES_VERSION}
        if "past" in part.reads:
            options |= {"reads_past": True}
        reads = []
        if scale.kind == "objects" and "local" in part.reads and not self.local:
            raise RecipeError(
                f"scale {scale.name}: its describer {scale.describer!r} reads names from local entries, and "
                "the recipe makes none; add one of [[scales]] with kind = 'local', or write names = [...]"
            )
        if "local" in part.reads:
            reads += [producer.producer_id for producer in self.local.values()]
        if "speech" in part.reads and self.speech:
            reads.append(self.speech.producer_id)
        return Producer(
            kind=scale.kind,
            scale=scale.name,
            component=part.component,
            version=part.version,
            model=self._runs(part.model),
            options=options,
            reads=tuple(reads),
        )

    def _runs(self, model: ModelRef | None) -> ModelRef | None:
        """What a describer's answers really come from: another than ``model`` where no model is run."""
        engine = self._engines.get(model) if model else None
        return engine.runs if engine else model

    def close(self) -> None:
        for callers in self._callers.values():
            callers.close()
        for engine in self._engines.values():
            engine.close()
        self.workers.close()

    def __enter__(self) -> Kit:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
