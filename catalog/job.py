"""What one asset asks for under one recipe: its units, and where its bytes are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from evicat.catalog.kit import Kit
from evicat.catalog.media.subtitles import SubtitleTrack, choose_track, find_sidecars
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.grid import windows
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.model import content_hash
from evicat.schemas.sink import Sink
from evicat.schemas.span import Span


@dataclass(frozen=True)
class Job:
    """One asset under one recipe. ``local``, ``narrative`` and ``objects`` go by scale name.

    Units are made when they are asked for: of most assets of a library nothing is left to make.
    """

    path: Path
    asset: Asset
    track: SubtitleTrack | None
    subtitle_offset_us: int
    language: str | None
    """What is spoken; None: to be detected."""
    inputs_hash: str
    """Hash of what speech, and what reads it, reads beside the asset's bytes."""
    kit: Kit = field(repr=False)

    @cached_property
    def speech(self) -> Unit | None:
        return _unit(self.asset, self.kit.speech, self.inputs_hash) if self.kit.speech else None

    @cached_property
    def local(self) -> dict[str, Unit]:
        return self._of_scales(self.kit.local)

    @cached_property
    def narrative(self) -> dict[str, Unit]:
        return self._of_scales(self.kit.narrative)

    @cached_property
    def objects(self) -> dict[str, Unit]:
        return self._of_scales(self.kit.objects)

    @cached_property
    def support(self) -> Unit | None:
        """None where the recipe wants no supports, or no narrative can be made."""
        producer = self.kit.support
        return _unit(self.asset, producer, self.inputs_hash) if producer and self.narrative else None

    @property
    def timeline(self) -> Span:
        return Span(0, self.asset.duration_us)

    @property
    def units(self) -> list[Unit]:
        """Units that write entries, in the order in which they run."""
        made = [*self.local.values(), *self.objects.values(), *self.narrative.values()]
        return [self.speech, *made] if self.speech else made

    def grid(self, kit: Kit, scale: str) -> list[Span]:
        """The windows of a scale over this asset.

        Raises:
            ValueError: they are shots, which only a pass over the pictures finds.
        """
        return windows(self.asset.duration_us, kit.scale(scale).window_us)

    def embedding(self, kit: Kit, source: Unit) -> Unit | None:
        """The unit that embeds the entries of ``source``; None where the recipe embeds nothing."""
        producer = kit.embedding_of(source.producer_id)
        return None if producer is None else _unit(self.asset, producer, source.inputs_hash)

    def is_complete(self, kit: Kit, sink: Sink) -> bool:
        """Whether nothing is left to make."""
        if not sink.has(self.asset.asset_id, self._inputs(kit)):
            return False
        if not sink.retry:
            return True
        wanted = [*self.units, self.support, *(self.embedding(kit, unit) for unit in self.units)]
        return all(sink.is_complete(unit) for unit in wanted if unit is not None)

    def _of_scales(self, producers: Mapping[str, Producer]) -> dict[str, Unit]:
        """Units by scale; one that shows frames has none without a picture stream."""
        return {
            scale: _unit(self.asset, producer, self._read_by(producer))
            for scale, producer in producers.items()
            if self._can_show(scale)
        }

    def _can_show(self, scale: str) -> bool:
        return self.asset.video is not None or "frames" not in self.kit.describers[scale].reads

    def _read_by(self, producer: Producer) -> str:
        """Hash of what a producer of entries reads beside the asset's bytes; few local ones hear speech."""
        always = producer.kind in ("speech", "narrative")
        return self.inputs_hash if always or self._hears(producer) else ""

    def _hears(self, producer: Producer) -> bool:
        """Whether it reads speech, itself or by the local entries that it reads."""
        read = [each for each in self.kit.local.values() if each.producer_id in producer.reads]
        own = self.kit.speech is not None and self.kit.speech.producer_id in producer.reads
        return own or any(map(self._hears, read))

    def _inputs(self, kit: Kit) -> dict[str, str]:
        """What the units read beside the asset's bytes, by producer."""
        inputs: dict[str, str] = {}
        for source in kit.sources:
            if source.kind != "speech" and not self._can_show(source.scale):
                continue
            read = self._read_by(source)
            inputs[source.producer_id] = read
            if embedding := kit.embedding_of(source.producer_id):
                inputs[embedding.producer_id] = read
        if self.kit.support and any(self._can_show(scale) for scale in self.kit.narrative):
            inputs[self.kit.support.producer_id] = self.inputs_hash
        return inputs


def plan(
    asset: Asset,
    path: Path,
    kit: Kit,
    *,
    subtitle: Path | None = None,
    subtitle_offset_us: int = 0,
    language: str | None = None,
    places: Sequence[Path] = (),
) -> Job:
    """The units of ``asset``. No media is opened; the folder is looked through for subtitles.

    ``subtitle`` names a side-car file, as a manifest does; else one is looked for beside the video.
    ``places`` are all files with these bytes: the first that has a side-car counts. ``language`` is what is
    spoken in this file; None: as the recipe says.
    """
    speech = kit.recipe.speech
    track = None
    if speech and speech.subtitles != "never":
        track = subtitle_track(places or [path], asset, speech.languages, subtitle)
    inputs = speech_inputs(track, subtitle_offset_us, language) if speech else ""
    spoken = language or (speech.language if speech else None)
    return Job(path, asset, track, subtitle_offset_us, spoken, inputs, kit)


def subtitle_track(
    places: Iterable[Path], asset: Asset, languages: Sequence[str], subtitle: Path | None
) -> SubtitleTrack | None:
    """The subtitles that are read of a video: those named, beside it, or inside it."""
    sidecars = [SubtitleTrack(path=subtitle)] if subtitle else _first_sidecars(places)
    return choose_track(sidecars, asset.subtitles, tuple(languages))


def _first_sidecars(places: Iterable[Path]) -> list[SubtitleTrack]:
    for place in places:
        for path in (place, place.resolve()) if place.is_symlink() else (place,):
            if path.parent.is_dir() and (found := find_sidecars(path)):
                return found
    return []


def speech_inputs(track: SubtitleTrack | None, offset_us: int, language: str | None) -> str:
    """Hash of what speech reads beside the asset's bytes; ``language``: where it is said of this file."""
    try:
        inputs = track.inputs_hash(offset_us) if track else ""
    except AssetError:
        inputs = "unreadable"  # the speech stage says why; when it becomes readable, that stage runs again
    return content_hash([inputs, language]) if language else inputs


def _unit(asset: Asset, producer: Producer, inputs_hash: str = "") -> Unit:
    return Unit(
        asset_id=asset.asset_id,
        producer_id=producer.producer_id,
        kind=producer.kind,
        scale=producer.scale,
        inputs_hash=inputs_hash,
    )
