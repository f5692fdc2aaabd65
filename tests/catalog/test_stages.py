"""The stages over a sink in memory: every window gets one outcome, whatever describer or file do."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from evicat.catalog import build
from evicat.catalog.describers.base import Description
from evicat.catalog.describers.sight import Sight
from evicat.catalog.job import plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.identity import hash_file
from evicat.catalog.seeing import see
from evicat.catalog.stages import embed, narrate, transcribe
from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.errors import DecoderCrashedError, WindowError
from evicat.schemas.grid import windows
from evicat.schemas.identity import Producer, Unit
from evicat.schemas.naming import VideoName
from evicat.schemas.recipe import Profile, Recipe, parse_toml

LOOK = """
name = "test"
[[scales]]
kind = "local"
window_seconds = 2
describer = "sight"
frames = { per_window = 3, max_width = 160 }
options = { ocr_frames = 0 }
"""
DIGEST = """
[[scales]]
kind = "narrative"
window_seconds = 6
describer = "digest"
"""
SUBTITLES = """
[speech]
subtitles = "only"
"""


class MemorySink:
    """Fulfils ``Sink`` with dicts, and counts."""

    retry: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.names: list[tuple[str, str]] = []
        self.held: dict[str, dict[int, WindowResult]] = {}
        self.inputs: dict[str, str] = {}
        self.done: dict[str, str] = {}
        self.writes = 0
        self.open_now: set[str] = set()

    def add_producer(self, producer: Producer) -> None: ...

    def add_asset(self, asset: object) -> None: ...

    def add_root(self, root: object) -> None: ...

    def add_name(self, name: VideoName) -> None:
        self.names.append((name.name, name.asset_id))

    def is_complete(self, unit: Unit) -> bool:
        return self.done.get(unit.unit_id) == unit.inputs_hash

    def open(self, unit: Unit) -> dict[int, WindowResult]:
        self.open_now.add(unit.unit_id)
        if self.inputs.setdefault(unit.unit_id, unit.inputs_hash) != unit.inputs_hash:
            self.held.pop(unit.unit_id, None)
        self.inputs[unit.unit_id] = unit.inputs_hash
        return dict(self.held.get(unit.unit_id, {}))

    def results(self, unit: Unit) -> dict[int, WindowResult]:
        return self.held.get(unit.unit_id, {})

    def write(self, unit: Unit, result: WindowResult) -> None:
        assert unit.unit_id in self.open_now
        self.writes += 1
        self.held.setdefault(unit.unit_id, {})[result.span.start_us] = result

    def seal(self, unit: Unit) -> None: ...

    def close(self, unit: Unit, *, complete: bool) -> None:
        self.open_now.remove(unit.unit_id)
        if complete:
            self.done[unit.unit_id] = unit.inputs_hash

    def outcomes(self, unit: Unit) -> list[Outcome]:
        return [result.outcome for _, result in sorted(self.held[unit.unit_id].items())]


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
def film(tmp_path: Path, evicat_samples: Path) -> Path:
    """10 s of street, without sound."""
    return Path(shutil.copy(evicat_samples / "street.mp4", tmp_path / "film.mp4"))


def _kit(text: str) -> Kit:
    return Kit(parse_toml(Recipe, text, "test.toml"), Profile())


def _job(path: Path, kit: Kit):
    return plan(build.probe(path, kit, *hash_file(path)), path, kit)


def test_the_whole_way_without_a_scheduler_tiles_every_scale(film: Path, sink: MemorySink) -> None:
    with _kit(LOOK + DIGEST) as kit:
        job = build.build(film, kit, sink)
        for name, unit in {**job.local, **job.narrative}.items():
            spans = [result.span for _, result in sorted(sink.held[unit.unit_id].items())]
            assert spans == windows(job.asset.duration_us, 2_000_000 if name == "local-2s" else 6_000_000)
            assert set(sink.outcomes(unit)) == {Outcome.DONE}
        assert sink.names == [("film.mp4", job.asset.asset_id)]
        writes = sink.writes
        build.build(film, kit, sink)
        assert sink.writes == writes
    assert not sink.open_now


def _failing(at: int, error: Exception) -> Callable[[Sight, object], Description]:
    real, calls = Sight.describe, []

    def describe(self: Sight, window: object) -> Description:
        calls.append(window)
        if len(calls) == at:
            raise error
        return real(self, window)

    return describe


def test_a_window_that_fails_is_an_outcome_and_the_others_go_on(film, sink, monkeypatch) -> None:
    monkeypatch.setattr(Sight, "describe", _failing(2, WindowError("the model said nothing")))
    with _kit(LOOK) as kit:
        job = _job(film, kit)
        see(job, kit, sink)
    (unit,) = job.local.values()
    assert sink.outcomes(unit) == [Outcome.DONE, Outcome.FAILED, Outcome.DONE, Outcome.DONE, Outcome.DONE]
    failed = sink.held[unit.unit_id][2_000_000]
    assert (failed.error_class, failed.message, failed.entries) == ("Window", "the model said nothing", ())


def test_our_own_fault_is_raised_keeps_what_was_made_and_is_continued(film, sink, monkeypatch) -> None:
    with _kit(LOOK) as kit:
        job = _job(film, kit)
        (unit,) = job.local.values()
        with monkeypatch.context() as patch:
            patch.setattr(Sight, "describe", _failing(4, ZeroDivisionError("a bug")))
            with pytest.raises(ZeroDivisionError):
                see(job, kit, sink)
        assert len(sink.held[unit.unit_id]) == 3
        assert not sink.is_complete(unit)
        assert not sink.open_now
        see(job, kit, sink)
    assert sink.writes == 5
    assert sink.is_complete(unit)


def test_a_file_that_breaks_half_way_fails_what_is_left_of_it(film, sink, monkeypatch) -> None:
    from evicat.catalog import seeing

    real = seeing.read_windows

    def breaking(*args, **options):
        for number, shown in enumerate(real(*args, **options)):
            if number == 2:
                raise DecoderCrashedError("film.mp4: the decoding process died (SIGSEGV)")
            yield shown

    monkeypatch.setattr(seeing, "read_windows", breaking)
    with _kit(LOOK) as kit:
        job = _job(film, kit)
        see(job, kit, sink)
    (unit,) = job.local.values()
    assert sink.outcomes(unit) == [Outcome.DONE] * 2 + [Outcome.FAILED] * 3
    assert sink.held[unit.unit_id][4_000_000].error_class == "DecoderCrashed"


def test_windows_in_a_hole_of_the_film_have_no_frames_and_cost_no_call(tmp_path, ffmpeg, sink, monkeypatch):
    import subprocess

    hole = "setpts='if(gte(N,50),PTS+10/TB,PTS)'"
    make = [ffmpeg, "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=s=64x64:r=25:d=4", "-vf", hole]
    subprocess.run([*map(str, make), "-fps_mode", "vfr", str(tmp_path / "hole.mkv")], check=True)
    calls = []
    real = Sight.describe
    monkeypatch.setattr(Sight, "describe", lambda self, window: calls.append(window) or real(self, window))
    with _kit(LOOK) as kit:
        job = _job(tmp_path / "hole.mkv", kit)
        see(job, kit, sink)
    (unit,) = job.local.values()
    assert sink.outcomes(unit) == [Outcome.DONE, *[Outcome.NO_FRAMES] * 5, Outcome.DONE]
    assert len(calls) == 2


def test_subtitles_changed_beside_an_unchanged_film_replace_speech_and_narrative_only(film, sink) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,500\n{}\n"
    film.with_suffix(".srt").write_text(cue.format("Look, a taxi."))
    with _kit(LOOK + DIGEST + SUBTITLES) as kit:
        first = build.build(film, kit, sink)
        film.with_suffix(".srt").write_text(cue.format("Look, a bus."))
        writes = sink.writes
        second = build.build(film, kit, sink)
    assert second.local == first.local
    assert second.speech.unit_id == first.speech.unit_id
    assert second.speech.inputs_hash != first.speech.inputs_hash
    (entry,) = sink.results(second.speech)[0].entries
    assert (entry.text, entry.span.start_s, entry.span.end_s) == ("Look, a bus.", 1.0, 2.5)
    (told,) = sink.results(second.narrative["narrative-6s"])[0].entries
    assert "Look, a bus." in told.text
    assert sink.writes > writes


def test_no_sound_and_no_picture_have_outcomes_of_their_own(film, evicat_samples, sink) -> None:
    speech = (
        '[speech]\nsubtitles = "first"\ntranscriber = "faster-whisper"\nmodel = "packaged:whisper-tiny.en"\n'
    )
    with _kit(LOOK + speech) as kit:
        silent, sound = _job(film, kit), _job(evicat_samples / "conversation.wav", kit)
        transcribe(silent, kit, sink)
        assert sound.local == {}
    (result,) = sink.results(silent.speech).values()
    assert (result.outcome, result.message) == (Outcome.EMPTY, "no sound")


def test_without_an_embedder_nothing_is_embedded(film, sink) -> None:
    with _kit(LOOK + DIGEST) as kit:
        job = _job(film, kit)
        see(job, kit, sink)
        narrate(job, kit, sink)
        writes = sink.writes
        embed(job, kit, sink)
    assert sink.writes == writes
