"""Windows that are shots: found where the picture changes, tiled by their rules, made in one pass."""

from __future__ import annotations

import shutil
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog import seeing
from evicat.catalog.audit import audit
from evicat.catalog.build import build
from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.loaders import DESCRIBERS
from evicat.catalog.job import Job, plan
from evicat.catalog.kit import Kit
from evicat.catalog.media.frames import Candidate, Frame, Shot, ShotsWanted, find_steps
from evicat.catalog.media.identity import hash_file
from evicat.catalog.media.probe import probe
from evicat.catalog.media.shot_windows import ShotWindows, Tiling
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.seeing import see
from evicat.catalog.windows import tiles
from evicat.schemas.entry import Outcome, WindowResult
from evicat.schemas.errors import DecoderCrashedError, EngineDownError, RecipeError
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.schemas.span import US, Span
from evicat.storage.reader import Reader
from evicat.storage.store import Store

from .asking import Asking, Sink, Telling
from .asking import film as film_of

RATE = 25
FRAME_US = US // RATE
SIZE = (96, 64)
COLOURS = [(200, 100, 40), (40, 160, 60), (50, 70, 210), (210, 190, 60), (120, 50, 140), (60, 180, 190)]
CUTS_S = [2.0, 3.6, 6.4, 8.0]
"""Where ``film`` changes its colour; it lasts 10 s."""


def picture(colour: tuple[int, int, int], shift: int = 0) -> np.ndarray:
    """A colour with a pattern that moves with ``shift``."""
    width, height = SIZE
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    light = 0.75 + 0.25 * np.sin((x + y + shift) / 9)
    return (np.array(colour) * light[:, :, None]).astype(np.uint8)


def write(path: Path, pictures: list[np.ndarray], rate: int = RATE) -> Path:
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for image in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def shots_of(seconds: float, cuts_s: list[float], rate: int = RATE) -> list[np.ndarray]:
    cuts = [round(cut * rate) for cut in cuts_s]
    return [
        picture(COLOURS[sum(cut <= number for cut in cuts) % len(COLOURS)], number)
        for number in range(round(seconds * rate))
    ]


def found(path: Path, wanted: ShotsWanted | None = None, decoder: str = "pyav") -> list[Shot]:
    asset_id, size_bytes = hash_file(path)
    asset = probe(path, asset_id=asset_id, size_bytes=size_bytes)
    wanted = wanted or ShotsWanted(500_000, 60 * US, 4, 64)
    steps = find_steps(path, asset, [], [wanted], decoder)
    return [step for step in steps if isinstance(step, Shot)]


def starts_s(shots: list[Shot]) -> list[float]:
    return [shot.span.start_s for shot in shots]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("film") / "film.mp4", shots_of(10, CUTS_S))


DECODERS = ("pyav", "decord")


# Cuts


@pytest.mark.parametrize("rate", [10, 25, 60])
def test_cuts_are_found_at_the_frame_where_the_picture_changes(tmp_path, rate):
    path = write(tmp_path / "cuts.mp4", shots_of(10, CUTS_S, rate), rate)
    assert starts_s(found(path)) == pytest.approx([0, *CUTS_S], abs=1e-6)


def test_both_decoders_find_the_same_windows_and_show_the_same_instants(film):
    pyav, decord = (
        [(s.span, [f.pts for f in s.frames]) for s in found(film, None, name)] for name in DECODERS
    )
    assert pyav == decord


def test_a_fade_to_black_and_back_is_no_cut(evicat_samples, ffmpeg, tmp_path):
    path = tmp_path / "fade.mp4"
    fades = "scale=160:-2,fade=out:st=1:d=1,fade=in:st=2.5:d=1"
    source = ["-i", str(evicat_samples / "bunny.mp4"), "-t", "5", "-an", "-vf", fades, "-c:v", "libx264"]
    subprocess.run([ffmpeg, "-v", "error", "-y", *source, str(path)], check=True)
    assert starts_s(found(path)) == [0]


def test_a_dissolve_is_no_cut(tmp_path):
    parts = np.clip((np.arange(4 * RATE) - RATE) / (2 * RATE), 0, 1)
    one, other = picture(COLOURS[1]), picture(COLOURS[3])
    mixed = [(one * (1 - part) + other * part).astype(np.uint8) for part in parts]
    assert starts_s(found(write(tmp_path / "dissolve.mp4", mixed))) == [0]


@pytest.mark.parametrize("frames", [1, 4])
def test_a_flash_is_no_cut_and_one_at_a_cut_hides_it_not(tmp_path, frames):
    pictures = shots_of(6, [4.0])
    white = np.full_like(pictures[0], 250)
    for start in (2 * RATE, 4 * RATE):
        pictures[start : start + frames] = [white] * frames
    assert starts_s(found(write(tmp_path / "flash.mp4", pictures))) == [0, 4]


def test_cuts_in_quick_succession_are_judged_in_time(tmp_path):
    """Each frame is another picture for 3 s: no calm ever comes, and windows come all the same."""
    strobe = [picture(COLOURS[1 + number % 2]) for number in range(3 * RATE)]
    path = write(tmp_path / "strobe.mp4", shots_of(2, []) + strobe + shots_of(2, []))
    shots = found(path)
    assert shots[0].span == Span(0, 2 * US)
    assert [shot.span.start_us for shot in shots[1:]] == [shot.span.end_us for shot in shots[:-1]]
    assert shots[-1].span.end_us == 7 * US


def test_frames_are_those_nearest_to_the_middles_of_equal_parts(film):
    for shot in found(film):
        part_us = shot.span.duration_us // 4
        assert len(shot.frames) == 4
        for number, frame in enumerate(shot.frames):
            middle_us = shot.span.start_us + part_us * (2 * number + 1) // 2
            assert abs(frame.time_us - middle_us) <= part_us // 4 + FRAME_US
            assert frame.width == 64


def test_a_film_without_cuts_is_divided(tmp_path):
    path = write(tmp_path / "one.mp4", shots_of(9, []))
    spans = [(shot.span.start_s, shot.span.end_s) for shot in found(path, ShotsWanted(US, 4 * US, 2, 64))]
    assert spans == [(0, 4), (4, 6.5), (6.5, 9)]


def test_a_still_picture_is_shown_in_the_window_where_it_begins(make_still):
    shots = found(make_still, ShotsWanted(US, 4 * US, 2, 64))
    assert [shot.span for shot in shots] == [Span(0, 3 * US), Span(3 * US, 6 * US)]
    assert [len(shot.frames) for shot in shots] == [1, 0]


@pytest.fixture
def make_still(tmp_path: Path) -> Path:
    """One frame that lasts 6 s."""
    path = tmp_path / "still.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=1)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        (packet,) = [
            *stream.encode(av.VideoFrame.from_ndarray(picture(COLOURS[0]), format="rgb24")),
            *stream.encode(None),
        ]
        packet.duration = round(6 / packet.time_base)
        container.mux(packet)
    return path


# Rules


class TestTiling:
    @given(st.data())
    def test_any_cuts_give_a_tiling_within_the_bounds(self, data):
        duration = data.draw(st.integers(1, 400))
        shortest = data.draw(st.integers(1, 40))
        longest = data.draw(st.integers(2 * shortest, 200))
        cuts = sorted(data.draw(st.sets(st.integers(1, max(1, duration - 1)), max_size=40)))
        spans = self.tiled(duration, shortest, longest, [cut for cut in cuts if cut < duration])
        assert [span.start_us for span in spans] == [0, *(span.end_us for span in spans[:-1])]
        assert spans[-1].end_us == duration
        assert all(span.duration_us <= longest for span in spans)
        assert all(span.duration_us >= min(shortest, duration) for span in spans)

    @given(st.data())
    def test_it_does_not_matter_when_it_is_heard_that_no_cut_has_come(self, data):
        duration = data.draw(st.integers(1, 400))
        cuts = sorted(data.draw(st.sets(st.integers(1, 399), max_size=20)))
        told = sorted(data.draw(st.sets(st.integers(1, 399))))
        cuts = [cut for cut in cuts if cut < duration]
        asked = self.tiled(duration, 7, 30, cuts, [time for time in told if time < duration])
        assert asked == self.tiled(duration, 7, 30, cuts)

    @pytest.mark.parametrize(
        ("cuts", "ends"),
        [
            ([10, 13, 40], [13, 40, 60]),  # the short one joins the one before it
            ([3, 20], [20, 40, 60]),  # the first joins the next
            ([30, 57], [30, 60]),  # the last joins the one before it
            ([10, 12, 14, 16, 40], [16, 40, 60]),  # each of several
            ([], [30, 60]),
            ([10], [10, 35, 60]),  # halves where no two whole ones are left
        ],
    )
    def test_by_example(self, cuts, ends):
        assert [span.end_us for span in self.tiled(60, 5, 30, cuts)] == ends

    @staticmethod
    def tiled(
        duration: int, shortest: int, longest: int, cuts: list[int], told: Sequence[int] = ()
    ) -> list[Span]:
        tiling = Tiling(duration, shortest, longest)
        spans: list[Span] = []
        for time in sorted({*cuts, *told}):
            spans += tiling.cut(time) if time in cuts else tiling.reach(time)
        return spans + list(tiling.end())


def test_the_frames_that_are_kept_do_not_grow_with_the_video():
    alive, most = 0, 0

    def image(_: int) -> np.ndarray:
        nonlocal alive, most
        array = np.zeros((1, 1, 3), np.uint8)
        alive += 1
        most = max(most, alive)
        weakref.finalize(array, gone)
        return array

    def gone() -> None:
        nonlocal alive
        alive -= 1

    hours = 2 * 3600 * US
    shots = ShotWindows(0, ShotsWanted(US, 30 * US, 8, 64), hours)
    windows = 0
    for time_us in range(0, hours, 200_000):
        shots.show(Candidate(time_us, time_us, image), may_begin=False)
        windows += sum(1 for _ in shots.settle(None, time_us + 1))
    assert windows + sum(1 for _ in shots.end(None)) == 240
    assert most < 200


def test_known_windows_divide_a_span_and_one_that_was_given_up_counts_only_until_others_are_made():
    whole = Span(0, 100)
    assert tiles(whole, []) == [whole]
    assert tiles(whole, [Span(30, 50), Span(0, 20)]) == [
        Span(0, 20),
        Span(20, 30),
        Span(30, 50),
        Span(50, 100),
    ]
    assert tiles(whole, [Span(0, 20), Span(20, 100), Span(60, 80)]) == [
        Span(0, 20),
        Span(20, 60),
        Span(60, 80),
        Span(80, 100),
    ]
    assert tiles(Span(10, 40), [Span(0, 20), Span(30, 60)]) == [Span(20, 30), Span(30, 60)]


# Recipes


SHOTS = """
[[scales]]
kind = "local"
policy = "shots"
min_seconds = 0.5
max_seconds = 60
describer = "asking"
frames = { per_window = 2, max_width = 64 }
"""
CHAIN = SHOTS.replace('"local"', '"narrative"').replace('"asking"', '"telling"')
GRID = """
[[scales]]
kind = "local"
window_seconds = 2
describer = "asking"
frames = { per_window = 2, max_width = 64 }
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SHOTS + "window_seconds = 4\n", "policy = 'shots' takes min_seconds and max_seconds"),
        (GRID + "min_seconds = 1\n", "min_seconds is for policy = 'shots'"),
        (GRID.replace("window_seconds = 2\n", ""), "it needs window_seconds, or policy = 'shots'"),
        (SHOTS.replace("max_seconds = 60", "max_seconds = 0.9"), "max_seconds"),
        (
            SHOTS.replace("min_seconds = 0.5", "min_seconds = 31"),
            "at least twice min_seconds, got min_seconds = 31",
        ),
        (SHOTS + SHOTS, "two scales are called 'local-shots'"),
    ],
)
def test_lengths_that_do_not_fit_the_policy_are_told(text, message):
    with pytest.raises(RecipeError, match=message):
        recipe(text)


def test_a_describer_that_reads_no_frames_takes_no_shots():
    digest = '[[scales]]\nkind = "narrative"\npolicy = "shots"\ndescriber = "digest"\n'
    with pytest.raises(
        RecipeError, match="narrative-shots, describer 'digest': shots are found by the pictures"
    ):
        Kit(recipe(digest), Profile())


def test_the_bounds_are_part_of_the_producer_and_a_grid_is_what_it_was():
    with (
        Kit(recipe(SHOTS + GRID), Profile()) as kit,
        Kit(recipe(SHOTS.replace("0.5", "1") + GRID), Profile()) as other,
    ):
        assert kit.local["local-shots"].producer_id != other.local["local-shots"].producer_id
        assert kit.local["local-2s"].producer_id == other.local["local-2s"].producer_id
        assert kit.local["local-2s"].options["window_us"] == 2 * US
        assert "shots" not in kit.local["local-2s"].options
        facts = kit.local["local-shots"].options["shots"]
    assert facts["min_us"] == US // 2
    assert {"detector", "version", "threshold", "rate", "max_us"} < set(facts)


def recipe(scales: str) -> Recipe:
    return parse_toml(Recipe, f'name = "test"\n{scales}', "test.toml")


# The pass over the pictures


@pytest.fixture(autouse=True)
def describers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DESCRIBERS, "asking", f"{Asking.__module__}:Asking")
    monkeypatch.setitem(DESCRIBERS, "telling", f"{Telling.__module__}:Telling")
    for kind in (Asking, Telling):
        monkeypatch.setattr(kind, "slots_now", 4)
        monkeypatch.setattr(kind, "on_call", lambda window: None, raising=False)


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool() as pool:
        yield pool


class Seen:
    """What came of one pass, and what may be asked about it."""

    def __init__(self, path: Path, scales: str, pool: WorkerPool, sink: Sink | None = None) -> None:
        self.sink = sink or Sink()
        with Kit(recipe(scales), Profile()) as kit:
            kit.workers.close()
            kit.workers = pool
            self.job = job_of(path, kit)
            try:
                see(self.job, kit, self.sink)
            finally:
                kit.workers = WorkerPool()
        assert not self.sink.open_now

    def results(self, scale: str) -> list[WindowResult]:
        unit = {**self.job.local, **self.job.narrative}[scale]
        assert unit.unit_id in self.sink.complete
        return [result for _, result in sorted(self.sink.held[unit.unit_id].items())]

    def facts(self, scale: str) -> list[dict[str, object]]:
        return [result.model_dump(exclude={"seconds", "attempts"}) for result in self.results(scale)]

    def ends_s(self, scale: str) -> list[float]:
        return [result.span.end_s for result in self.results(scale)]


def job_of(path: Path, kit: Kit) -> Job:
    asset_id, size_bytes = hash_file(path)
    return plan(probe(path, asset_id=asset_id, size_bytes=size_bytes), path, kit)


def calls_of(monkeypatch: pytest.MonkeyPatch, kind: type[Asking], stop_at: set[float]) -> list[float]:
    """The starts of the windows that it is called for; at some of them the engine is gone."""
    called: list[float] = []

    def call(window: WindowInput) -> None:
        called.append(window.span.start_s)
        if window.span.start_s in stop_at:
            raise EngineDownError("gone")

    monkeypatch.setattr(kind, "on_call", call, raising=False)
    return called


ENDS_S = [*CUTS_S, 10.0]


def test_one_pass_serves_shots_of_both_kinds_and_a_grid(film, pool, monkeypatch):
    passes: list[str] = []
    run = WorkerPool.run

    def counting(self: WorkerPool, function: object, *arguments: object, **options: object):
        passes.append(function.__name__)
        return run(self, function, *arguments, **options)

    monkeypatch.setattr(WorkerPool, "run", counting)
    seen = Seen(film, SHOTS + GRID + CHAIN, pool)
    assert passes == ["find_steps"]
    assert seen.ends_s("local-shots") == seen.ends_s("narrative-shots") == ENDS_S
    assert seen.ends_s("local-2s") == [2, 4, 6, 8, 10]
    texts = [result.entries[0].text for result in seen.results("narrative-shots")]
    assert texts[:3] == [
        "0 after nothing, number 1",
        "2 after 0-2, number 2 <- 0 after nothing, number 1",
        "3 after 2-3, number 3 <- 2 after 0-2, number 2",
    ]


def test_shots_are_the_same_whatever_else_is_asked_for_and_a_grid_shows_the_same(film, pool):
    both = Seen(film, SHOTS + GRID, pool)
    assert both.facts("local-shots") == Seen(film, SHOTS, pool).facts("local-shots")
    assert both.facts("local-2s") == Seen(film, GRID, pool).facts("local-2s")


@pytest.mark.parametrize("slots", [1, 4])
@pytest.mark.parametrize(("scale", "kind"), [("local-shots", Asking), ("narrative-shots", Telling)])
def test_a_stopped_run_goes_on_with_what_is_missing(film, pool, monkeypatch, slots, scale, kind):
    text = SHOTS if kind is Asking else CHAIN
    monkeypatch.setattr(kind, "slots_now", slots)
    unbroken = Seen(film, text, pool)
    sink = Sink()
    calls_of(monkeypatch, kind, {3.6})
    with pytest.raises(EngineDownError):
        Seen(film, text, pool, sink)
    (held,) = sink.held.values()
    assert 3_600_000 not in held
    before = {start_us / US for start_us in held}
    called = calls_of(monkeypatch, kind, set())
    again = Seen(film, text, pool, sink)
    assert sorted(called) == sorted({0, *CUTS_S} - before)
    assert again.facts(scale) == unbroken.facts(scale)
    called.clear()
    Seen(film, text, pool, sink)
    assert called == []


def crashing(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The decoder dies when it has brought so many windows."""
    reading = seeing.read_windows_and_shots

    def read(*arguments: object, **options: object):
        for number, found in enumerate(reading(*arguments, **options)):
            if number == after:
                raise DecoderCrashedError("it died")
            yield found

    monkeypatch.setattr(seeing, "read_windows_and_shots", read)


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("text", [SHOTS, CHAIN])
def test_what_a_crash_leaves_fails_in_one_piece_and_a_retry_makes_it_whole(film, pool, text, after):
    scale = "local-shots" if text == SHOTS else "narrative-shots"
    unbroken = Seen(film, text, pool)
    with pytest.MonkeyPatch.context() as patch:
        crashing(patch, after)
        broken = Seen(film, text, pool)
    assert broken.ends_s(scale) == [*ENDS_S[:after], 10]
    last = broken.results(scale)[-1]
    assert (last.outcome, last.message) == (Outcome.FAILED, "it died")
    retried = Sink(frozenset({"failed"}))
    retried.held = broken.sink.held
    again = Seen(film, text, pool, retried)
    assert again.facts(scale) == unbroken.facts(scale)


def test_windows_made_out_of_order_in_a_retry_that_was_killed_are_kept(film, pool, monkeypatch):
    """The rest was given up; of the retry only its last window was written: what lies before it is made."""
    unbroken = Seen(film, SHOTS, pool)
    (unit_id,) = unbroken.sink.held
    sink = Sink()
    results = unbroken.sink.held[unit_id]
    given_up = results[2 * US].model_copy(
        update={"span": Span(2 * US, 10 * US), "outcome": Outcome.FAILED, "entries": ()}
    )
    sink.held[unit_id] = {0: results[0], 2 * US: given_up, 8 * US: results[8 * US]}
    called = calls_of(monkeypatch, Asking, set())
    assert Seen(film, SHOTS, pool, sink).facts("local-shots") == unbroken.facts("local-shots")
    assert sorted(called) == [2, 3.6, 6.4]


def test_windows_that_were_found_otherwise_are_kept_and_the_rest_is_filled(film, pool):
    unbroken = Seen(film, SHOTS, pool)
    (unit_id,) = unbroken.sink.held
    odd = unbroken.sink.held[unit_id][2 * US].model_copy(update={"span": Span(2 * US, 5 * US)})
    sink = Sink()
    sink.held[unit_id] = {2 * US: odd}
    seen = Seen(film, SHOTS, pool, sink)
    assert seen.ends_s("local-shots") == [2, 5, 6.4, 8, 10]
    (filled,) = [each for each in seen.results("local-shots") if each.span == Span(5 * US, 6_400_000)]
    assert all(5 <= frame.time_s < 6.4 for entry in filled.entries for frame in entry.frames)


def test_stale_narratives_of_shots_are_made_again_in_order(film, pool, monkeypatch):
    seen = Seen(film, CHAIN, pool)
    unbroken = seen.facts("narrative-shots")
    (held,) = seen.sink.held.values()
    start_us = round(CUTS_S[1] * US)
    held[start_us] = held[start_us].model_copy(update={"outcome": Outcome.STALE, "context_hash": "of old"})
    sink = Sink(frozenset({"stale"}))
    sink.held = seen.sink.held
    called = calls_of(monkeypatch, Telling, set())
    assert Seen(film, CHAIN, pool, sink).facts("narrative-shots") == unbroken
    assert called == [3.6]


@pytest.mark.parametrize("slots", [1, 4])
def test_chunks_are_sealed_on_the_way(monkeypatch, slots):
    """Windows of 100 s over 25 min: what lies in ten minutes is staged when the pass has left them."""
    windows = [Span(start * US, (start + 100) * US) for start in range(0, 1500, 100)]

    def read(*_: object, **__: object) -> Iterator[Shot]:
        image = np.zeros((16, 16, 3), np.uint8)
        for span in windows:
            yield Shot(0, span, (Frame(0, span.start_us, image),))

    monkeypatch.setattr(seeing, "read_windows_and_shots", read)
    monkeypatch.setattr(Asking, "slots_now", slots)
    sink = Sink()
    with Kit(recipe(SHOTS), Profile()) as kit:
        see(plan(film_of(1500), Path("no-such-film.mp4"), kit), kit, sink)
    assert len(sink.seals) == 2
    assert sink.seals[0][1] >= 6
    assert sink.seals[1][1] >= 12


def test_a_song_has_no_shots(ffmpeg, tmp_path, pool):
    path = tmp_path / "song.mp3"
    subprocess.run([ffmpeg, "-v", "error", *["-f", "lavfi", "-i", "sine=440:d=3", "-y"], path], check=True)
    seen = Seen(path, SHOTS, pool)
    assert seen.job.local == {}
    assert seen.sink.held == {}


# The whole way


@pytest.mark.slow
def test_a_catalog_of_shots_is_proved_and_made_once(evicat_samples, tmp_path):
    film = Path(shutil.copy(evicat_samples / "street.mp4", tmp_path / "street.mp4"))
    text = """
    [[scales]]
    kind = "local"
    policy = "shots"
    describer = "sight"
    frames = { per_window = 4, max_width = 160 }
    options = { ocr_frames = 0 }
    [[scales]]
    kind = "narrative"
    window_seconds = 5
    describer = "digest"
    """
    for _ in range(2):
        with (
            Kit(recipe(text), Profile()) as kit,
            Store.connect(tmp_path / "catalog", write=True, create=True) as store,
        ):
            build(film, kit, store)
            head = store.head.number
    reader = Reader.open(tmp_path / "catalog")
    rows = reader.dataset("coverage").to_table(filter="scale = 'local-shots'").sort_by("start_s").to_pylist()
    assert [row["start_s"] for row in rows] == [0, 1.2, 3.04, 5.48, 7.48]
    assert {row["outcome"] for row in rows} == {"done"}
    checked = audit(reader)
    assert [(proof.name, proof.cases) for proof in checked.proofs if not proof.holds] == []
    assert head >= 1


def test_frames_know_their_place() -> None:
    """A window shows a frame once, however few there are."""
    shots = ShotWindows(0, ShotsWanted(US, 4 * US, 8, 64), 2 * US)
    for time_us in (0, US):
        shots.show(Candidate(time_us, time_us, lambda _: np.zeros((1, 1, 3), np.uint8)), may_begin=False)
        assert list(shots.settle(None, time_us + 1)) == []
    (shot,) = shots.end(None)
    assert [frame.time_us for frame in shot.frames] == [0, US]
    assert all(isinstance(frame, Frame) for frame in shot.frames)
