"""Recipe: what to index with; it decides results. Profile: where and how fast; it never does."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError, model_validator

from .errors import RecipeError
from .model import Model
from .span import US

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


class FrameOptions(Model):
    """Which frames of a window are shown."""

    per_window: int = Field(default=8, ge=1, le=512)
    """Frames of a window: the middles of as many equal parts of it."""
    max_width: int = Field(default=448, ge=16, le=8192)
    """Pixels; wider pictures are scaled down to this, others stay as they are."""


class Scale(Model):
    """One window length with its purpose and who describes it."""

    kind: Literal["local", "narrative", "objects"]
    """Local entries say what a short window shows; narratives tell a longer one in order; objects say
    where in its frames things are."""
    policy: Literal["grid", "shots"] = "grid"
    """How the timeline is divided. ``grid``: windows of one length, ``window_seconds``. ``shots``: from cut
    to cut. To find the cuts, every frame is decoded and looked at, where a grid decodes what it shows: a pass
    over the pictures takes longer."""
    window_seconds: float | None = Field(default=None, ge=0.5, le=3600)
    """Length of the windows that tile the timeline; needed by ``grid``, and only there."""
    min_seconds: float = Field(default=1, ge=0.5, le=1800)
    """Of ``shots``: one that is shorter joins the one before it, the first one the next."""
    max_seconds: float = Field(default=30, ge=1, le=3600)
    """Of ``shots``: of a longer one so much is taken as long as twice as much is left; the rest is halved. At
    least twice ``min_seconds``."""
    describer: str
    """Name of the describer."""
    frames: FrameOptions | None = None
    """Left out: the describer shows no frames (``digest``)."""
    options: dict[str, Any] = {}
    """Options of the describer; checked by its own options class."""

    @model_validator(mode="after")
    def _has_its_lengths(self) -> Scale:
        bounds = sorted(self.model_fields_set & {"min_seconds", "max_seconds"})
        if self.policy == "grid":
            if self.window_seconds is None:
                raise ValueError("it needs window_seconds, or policy = 'shots'")
            if bounds:
                raise ValueError(f"{bounds[0]} is for policy = 'shots'; a grid has window_seconds")
        elif self.window_seconds is not None:
            raise ValueError("policy = 'shots' takes min_seconds and max_seconds; remove window_seconds")
        elif self.max_seconds < 2 * self.min_seconds:
            raise ValueError(
                "max_seconds must be at least twice min_seconds, "
                f"got min_seconds = {self.min_seconds:g} and max_seconds = {self.max_seconds:g}"
            )
        return self

    @property
    def name(self) -> str:
        """``local-10s`` or ``local-shots``: the scale as it stands in ids and tables."""
        if self.window_seconds is None:
            return f"{self.kind}-shots"
        return f"{self.kind}-{self.window_seconds:g}s".replace(".", "_")

    @property
    def window_us(self) -> int:
        """Length of the windows of a grid.

        Raises:
            ValueError: they are shots, which are found when the pictures are seen.
        """
        if self.window_seconds is None:
            raise ValueError(f"the windows of {self.name} are shots: they have no length in common")
        return round(self.window_seconds * US)

    @property
    def min_us(self) -> int:
        return round(self.min_seconds * US)

    @property
    def max_us(self) -> int:
        return round(self.max_seconds * US)


class SpeechOptions(Model):
    """Where the words come from."""

    subtitles: Literal["first", "only", "never"] = "first"
    """``first``: subtitles where there are any, else the transcriber; ``only``: no transcriber listens;
    ``never``: subtitles are not read."""
    languages: tuple[str, ...] = ()
    """Preferred languages of subtitles (BCP 47 or ISO 639), best first; empty: the file's default."""
    transcriber: str | None = None
    """Name of the transcriber; left out: nothing listens."""
    model: str = ""
    """Its model: ``packaged:NAME``, a folder, or a name on the model hub."""
    revision: str = ""
    """Revision on the model hub; empty: the newest."""
    compute_type: str = "int8"
    """Number type that it computes with, such as ``int8``, ``float16`` or ``float32``."""
    language: str | None = None
    """Spoken language, where it is known for the whole library; left out: detected."""
    audio_language: tuple[str, ...] = ()
    """Preferred languages of the sound stream that is transcribed, best first; then come streams of unknown
    language, then others. Empty: the file's default stream, then that with most channels, then the first."""
    audio_index: int | None = Field(default=None, ge=0)
    """Which sound stream is transcribed, counted from 0 among those of the file; it must be there."""
    options: dict[str, Any] = {}
    """Options of the transcriber; checked by its own options class."""

    @model_validator(mode="after")
    def _has_source(self) -> SpeechOptions:
        if self.subtitles == "only" and self.transcriber:
            raise ValueError(
                "subtitles = 'only' takes no transcriber; remove it or write subtitles = 'first'"
            )
        if self.subtitles == "never" and not self.transcriber:
            raise ValueError("subtitles = 'never' needs a transcriber")
        if self.audio_language and self.audio_index is not None:
            raise ValueError("audio_language and audio_index both choose the sound stream; write one of them")
        if (self.audio_language or self.audio_index is not None) and not self.transcriber:
            raise ValueError("audio_language and audio_index are for a transcriber, and none is named")
        return self


class EmbedderOptions(Model):
    """What turns texts into vectors."""

    name: str
    """Name of the embedder."""
    model: str
    """Its model: ``packaged:NAME``, a folder, or a name on the model hub."""
    revision: str = ""
    """Revision on the model hub; empty: the newest."""
    options: dict[str, Any] = {}
    """Options of the embedder; checked by its own options class."""


class NamedModel(Model):
    """Which model a recipe means."""

    model: str = Field(min_length=1)
    """Canonical name of the model; the profile says under `[engines."NAME"]` how it is run. Or
    `packaged:NAME`, or the path of a folder: then its weights' digest stands for it."""
    revision: str = ""
    """Its revision on the model hub; empty: whatever is served."""
    quantization: str = ""
    """How its weights are quantized, such as `awq` or `fp8`; empty: not."""
    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """Digest of its weights, as `evicat weights` prints it: then it alone says which model it is, and an
    engine that loads weights in this process compares them. A server cannot show its own, and is believed."""


class TextModelOptions(NamedModel):
    """Which text model is asked, and how."""

    max_tokens: int = Field(default=1024, ge=16, le=32_768)
    """Tokens of an answer; one that is cut is asked for once more, with twice as many and in fewer words."""
    temperature: float = Field(default=0.0, ge=0, le=2)
    """Randomness of the answers."""


INFERRED_WORDS = (
    *("because", "therefore", "in order to", "so that", "so as to", "due to", "as a result", "hence"),
    *("as if", "as though", "seems", "seem", "seemingly", "appears to", "appear to", "apparently"),
    *("suggests", "suggest", "suggesting", "implies", "imply", "implying", "indicates", "indicating"),
    *("probably", "perhaps", "maybe", "likely", "possibly", "presumably", "might", "must have", "could be"),
    *("intends", "intend", "intending", "intention", "wants", "want", "wanting", "hopes", "hoping"),
    *("plans to", "decides", "tries to", "trying to", "attempts to", "attempting to", "motive"),
    *("believes", "thinks", "realizes", "realises", "suspects", "fears", "regrets"),
)
"""Words and phrases that say an intention, cause, relation or judgement. A bare "to" is not among them: it
tells far more often where somebody goes than why."""


class SupportOptions(Model):
    """What the sentences of narratives rest on: how entries are weighed."""

    cosine_weight: float = Field(default=0.5, ge=0, le=1)
    """Weight of the likeness by vectors; the rest is that of the share of content words that an entry has."""
    min_score: float = Field(default=0.4, gt=0, le=1)
    """An entry with this score says what the sentence says."""
    related_score: float = Field(default=0.25, gt=0, le=1)
    """An entry with this score is what an inferred sentence rests on; at most ``min_score``."""
    max_links: int = Field(default=5, ge=1, le=100)
    """Entries that a sentence is linked to at most."""
    quote_words: int = Field(default=4, ge=1)
    """So many words in a row that a sentence quotes and a speech entry has make it quoted."""
    quote_share: float = Field(default=0.75, gt=0, le=1)
    """Of words in quotation marks, so does this share of them in a row."""
    inferred_words: tuple[str, ...] = INFERRED_WORDS
    """A sentence with one of these words or phrases is inferred, unless it is quoted."""

    @model_validator(mode="after")
    def _in_order(self) -> SupportOptions:
        if self.related_score > self.min_score:
            raise ValueError(
                "related_score must be at most min_score, "
                f"got related_score = {self.related_score:g} and min_score = {self.min_score:g}"
            )
        return self


class Recipe(Model):
    """Everything that decides what a catalog says about a video."""

    name: Name
    """Lower-case letters, digits, ``-`` and ``_``."""
    description: str = ""
    """One line, for ``evicat recipes``."""
    source: str = ""
    """Where its numbers come from: a paper's section, or ``chosen``."""
    scales: tuple[Scale, ...] = ()
    """Window lengths, each with who describes it: one ``[[scales]]`` each."""
    speech: SpeechOptions | None = None
    """``[speech]``; left out: no words are looked for."""
    embedder: EmbedderOptions | None = None
    """``[embedder]``; left out: no vectors, and search goes by words only."""
    supports: SupportOptions | None = None
    """``[supports]``; left out: sentences of narratives are not linked to what carries them."""

    @model_validator(mode="after")
    def _has_what_supports_need(self) -> Recipe:
        kinds = {scale.kind for scale in self.scales}
        if self.supports is None:
            return self
        if "narrative" not in kinds:
            raise ValueError("[supports] is about narratives: it needs one of [[scales]] of that kind")
        if "local" not in kinds and not self.speech:
            raise ValueError("[supports] needs what carries a narrative: local [[scales]] or [speech]")
        if not self.embedder:
            raise ValueError("[supports] compares texts by their vectors: it needs an [embedder]")
        return self

    @model_validator(mode="after")
    def _makes_something(self) -> Recipe:
        if not self.scales and not self.speech:
            raise ValueError("a recipe needs at least one of [[scales]] and [speech]")
        names = [scale.name for scale in self.scales]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(
                f"two scales are called {twice.pop()!r}; one kind and window length (or shots) can stand once"
            )
        return self


class ModelProfile(Model):
    """How one chat model of a recipe is run here. Nothing of it is part of a producer."""

    engine: str = "openai"
    """``openai``: a server that speaks OpenAI's protocol; ``transformers`` and ``vllm``: the model is loaded
    here; ``simulated`` and ``scripted``: no model at all, for trials."""
    endpoint: str = ""
    """Base URL of the server, such as ``http://127.0.0.1:8000/v1``."""
    alias: str = ""
    """What the server calls the model; empty: as the recipe does."""
    concurrency: int = Field(default=8, ge=1, le=4096)
    """Requests that are in flight at most; an overloaded server gets fewer."""
    timeout_seconds: float = Field(default=300, gt=0)
    """A request without an answer for so long is given up and asked again."""
    patience_seconds: float = Field(default=120, ge=0)
    """How long a server that is gone or overloaded is asked again before the run ends."""
    prompt_tokens_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Measured here, with all its requests in flight: prompt tokens that the engine takes in a second that it
    spends on them alone. Only `evicat plan` reads it; `evicat cost` prints it."""
    output_tokens_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """The same of answers. Its hours are prompt tokens by the one plus answer tokens by the other rate."""
    gpus: int = Field(default=1, ge=0)
    """GPUs that the engine takes: its hours times these are GPU hours. ``vllm`` spreads a model over them."""
    options: dict[str, Any] = {}
    """Settings of the engine; checked by its own options class."""

    @model_validator(mode="after")
    def _has_both_rates(self) -> ModelProfile:
        if (self.prompt_tokens_per_second is None) != (self.output_tokens_per_second is None):
            raise ValueError(
                "prompt_tokens_per_second and output_tokens_per_second stand together: write both or neither"
            )
        return self


class Profile(Model):
    """Where and how fast a recipe runs on this machine. Nothing here changes a result."""

    videos_at_once: int = Field(default=0, ge=0, le=256)
    """Videos that are worked on at the same time; 0: two, or with engines as many as they have slots, but at
    most four for each core of this machine (each video is decoded by a process of its own)."""
    device: str = "cpu"
    """Where models run: ``cpu``, ``cuda``, ``cuda:1`` or ``mps``, as far as their engine can use it."""
    threads: int = Field(default=0, ge=0)
    """Threads of the models on the CPU; 0: all cores."""
    decode_timeout_seconds: float = Field(default=60, gt=0)
    """A decoder that gives no sign of progress for this long is ended."""
    work_dir: str = ""
    """Local folder for journals; empty: inside a local catalog."""
    models: dict[str, str] = {}
    """Canonical model name of a recipe -> local folder (or checkpoint file) that holds its weights."""
    endpoints: dict[str, str] = {}
    """Canonical model name of a recipe -> base URL of the OpenAI-compatible server that serves it."""
    engines: dict[str, ModelProfile] = {}
    """Canonical name of a chat model -> how it is run; ``"*"`` stands for all that are not named."""
    decoder: str = "pyav"
    """Which library decodes the pictures: ``pyav`` or ``decord``. Both show the same frames."""


M = TypeVar("M", Recipe, Profile)


def parse_toml(kind: type[M], text: str, where: str | Path) -> M:
    """Check TOML text against ``Recipe`` or ``Profile``.

    Raises:
        RecipeError: not TOML, or a wrong, missing or unknown field; names the file, the field and the value.
    """
    what = kind.__name__.lower()
    try:
        return kind.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"{what} {where} is not valid TOML: {error}") from None
    except ValidationError as error:
        problems = [problem(item) for item in error.errors()]
        raise RecipeError(f"{what} {where} does not fit:\n" + "\n".join(problems)) from None


def problem(item: Any) -> str:
    """One line on one of pydantic's errors: field, what is wrong, value."""
    field = ".".join(str(part) for part in item["loc"]) or "(all of it)"
    shown = "" if isinstance(item["input"], dict) else f", got {item['input']!r}"
    return f"  {field}: {item['msg'].removeprefix('Value error, ')}{shown}"
