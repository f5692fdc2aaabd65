"""The pass over the pictures with its lanes: order, pasts, failures, limits, stopping and going on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from evicat.catalog import seeing
from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.loaders import DESCRIBERS
from evicat.catalog.kit import Kit
from evicat.catalog.seeing import HELD_WINDOWS, see
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import DecoderCrashedError, EngineDownError, WindowError
from evicat.schemas.identity import Unit
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US

from .asking import Asking, Sink, Telling, film, job_of, recipe, tiny_frames

CHAIN = ("telling", 30.0)
PARALLEL = ("asking", 10.0)


@pytest.fixture(autouse=True)
def describers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DESCRIBERS, "asking", f"{Asking.__module__}:Asking")
    monkeypatch.setitem(DESCRIBERS, "telling", f"{Telling.__module__}:Telling")
    monkeypatch.setattr(seeing, "read_windows", tiny_frames)
    monkeypatch.setattr(Asking, "slots_now", 4)
    monkeypatch.setattr(Asking, "on_call", lambda window: None, raising=False)


@pytest.fixture
def kit() -> Iterator[Kit]:
    with Kit(recipe(PARALLEL, CHAIN), Profile()) as made:
        yield made


def at(window: WindowInput) -> int:
    return window.span.start_us // US


def failing(patch: pytest.MonkeyPatch, kind: type[Asking], errors: dict[int, BaseException]) -> list[int]:
    """Have ``kind`` raise these at the windows that start so; the windows that it is called for."""
    called: list[int] = []

    def call(window: WindowInput) -> None:
        called.append(at(window))
        if at(window) in errors:
            raise errors[at(window)]

    patch.setattr(kind, "on_call", call, raising=False)
    return called


def run(kit: Kit, sink: Sink, seconds: float = 180) -> tuple[Unit, Unit]:
    """See a film; its local and its narrative unit."""
    job = job_of(kit, film(seconds))
    in_time(lambda: see(job, kit, sink))
    assert not sink.open_now
    return job.local["local-10s"], job.narrative["narrative-30s"]


def in_time(work: Callable[[], None]) -> None:
    """Do ``work``, and fail where it hangs."""
    errors: list[BaseException] = []

    def watched() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  the test's own thread raises it
            errors.append(error)

    thread = threading.Thread(target=watched, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]


def narrated(kit: Kit, seconds: float) -> Sink:
    """See a film by the narrative scale alone, or with it."""
    sink, job = Sink(), job_of(kit, film(seconds))
    in_time(lambda: see(job, kit, sink))
    return sink


def test_every_window_of_every_scale_gets_its_outcome(kit):
    sink = Sink()
    local, narrative = run(kit, sink)
    assert list(sink.texts(local)) == list(range(0, 180, 10))
    assert list(sink.texts(narrative)) == list(range(0, 180, 30))
    assert sink.complete == {local.unit_id, narrative.unit_id}


def test_a_chain_runs_in_order_one_at_a_time_and_each_reads_the_narrative_before_it(kit, monkeypatch):
    called = failing(monkeypatch, Telling, {})
    sink = Sink()
    _, narrative = run(kit, sink, 120)
    assert called == [0, 30, 60, 90]
    assert list(sink.texts(narrative).values()) == [
        "0 after nothing, number 1",
        "30 after 0-30, number 2 <- 0 after nothing, number 1",
        "60 after 30-60, number 3 <- 30 after 0-30, number 2",
        "90 after 60-90, number 3 <- 60 after 30-60, number 3",
    ]


@pytest.mark.parametrize("gone", [{30}, {30, 60}, {0}])
def test_behind_a_failed_window_comes_the_last_narrative_before_it_marked_by_its_span(kit, monkeypatch, gone):
    failing(monkeypatch, Telling, {start: WindowError("no answer") for start in gone})
    sink = Sink()
    _, narrative = run(kit, sink, 120)
    after = max(gone) + 30
    expected = f"{after} after 0-30" if 0 not in gone else f"{after} after nothing"
    assert sink.texts(narrative)[after].startswith(expected)
    assert [start for start, text in sink.texts(narrative).items() if text == "-"] == sorted(gone)
    assert sink.is_complete(narrative)


def test_windows_of_a_parallel_scale_run_at_once_and_no_more_than_there_are_slots(kit, monkeypatch):
    all_in = threading.Barrier(4, timeout=30)
    now, most, lock = [0], [0], threading.Lock()

    def call(window: WindowInput) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        if at(window) < 40:
            all_in.wait()  # passes only with four calls at once
        with lock:
            now[0] -= 1

    monkeypatch.setattr(Asking, "on_call", call)
    monkeypatch.setattr(Telling, "on_call", lambda window: None, raising=False)
    run(kit, Sink(), 120)
    assert most[0] == 4


def _stale(sink: Sink, unit: Unit, start_s: int) -> None:
    """As a commit does where what a window has read is another now."""
    before = sink.held[unit.unit_id][start_s * US]
    sink.held[unit.unit_id][start_s * US] = before.model_copy(update={"outcome": Outcome.STALE})


def test_when_a_failed_window_is_made_later_all_behind_it_are_redone_in_order(kit, monkeypatch):
    unbroken, sink = Sink(), Sink()
    with monkeypatch.context() as patch:
        failing(patch, Telling, {60: WindowError("no answer")})
        _, narrative = run(kit, sink)
    sink.retry = frozenset({"failed", "stale"})
    called = failing(monkeypatch, Telling, {})
    run(kit, sink)
    assert called == [60, 90, 120, 150]
    run(kit, unbroken)
    assert sink.facts(narrative) == unbroken.facts(narrative)


def test_stale_windows_are_redone_until_what_they_have_read_is_what_it_was(kit, monkeypatch):
    """Window 30 says the same again, so what read it holds; 90 is stale by itself and says the same."""
    sink = Sink()
    _, narrative = run(kit, sink)
    before = sink.facts(narrative)
    _stale(sink, narrative, 30)
    _stale(sink, narrative, 90)
    sink.retry = frozenset({"stale"})
    sink.seals.clear()
    called = failing(monkeypatch, Telling, {})
    run(kit, sink)
    assert called == [30, 90]
    assert [scale for scale, _ in sink.seals] == ["narrative-30s"]
    assert sink.facts(narrative) == before


def test_a_retry_of_stale_windows_loses_nothing_that_holds_where_the_file_breaks(kit, monkeypatch):
    """Window 60 can be made again, and says the same; what comes behind it has no frames, but holds."""
    sink = Sink()
    _, narrative = run(kit, sink)
    before = sink.texts(narrative)
    _stale(sink, narrative, 60)
    sink.retry = frozenset({"stale"})

    def breaking(*arguments: object, **options: object):
        yield next(tiny_frames(*arguments, **options))
        raise DecoderCrashedError("gone")

    monkeypatch.setattr(seeing, "read_windows", breaking)
    run(kit, sink)
    assert sink.texts(narrative) == before


@pytest.mark.parametrize(("failing_kind", "other"), [(Asking, Telling), (Telling, Asking)])
def test_a_call_that_is_under_way_is_waited_for_and_written_when_another_lane_ends_it(
    kit, monkeypatch, failing_kind, other
):
    begun, go_on = threading.Event(), threading.Event()

    def slow(window: WindowInput) -> None:
        begun.set()
        assert go_on.wait(30)

    def broken(window: WindowInput) -> None:
        assert begun.wait(30)
        raise EngineDownError("gone")

    monkeypatch.setattr(other, "on_call", slow, raising=False)
    monkeypatch.setattr(failing_kind, "on_call", broken, raising=False)
    sink, ended = Sink(), threading.Event()
    job = job_of(kit, film(180))

    def seen() -> None:
        with pytest.raises(EngineDownError):
            see(job, kit, sink)
        ended.set()

    thread = threading.Thread(target=seen, daemon=True)
    thread.start()
    assert not ended.wait(0.3), "it waits for the call"
    go_on.set()
    thread.join(30)
    assert ended.is_set()
    unit = job.narrative["narrative-30s"] if other is Telling else job.local["local-10s"]
    assert 0 in sink.texts(unit)
    assert not sink.open_now


def test_a_file_that_breaks_half_way_fails_what_is_left_in_every_lane(kit, monkeypatch):
    def breaking(*arguments: object, **options: object):
        for number, shown in enumerate(tiny_frames(*arguments, **options)):
            if number == 12:
                raise DecoderCrashedError("the decoding process died")
            yield shown

    monkeypatch.setattr(seeing, "read_windows", breaking)
    sink = Sink()
    local, narrative = run(kit, sink)
    assert list(sink.texts(local).values()).count("-") == 18 - 9
    assert list(sink.texts(narrative).values()).count("-") == 6 - 3
    outcomes = {each.error_class for each in sink.held[narrative.unit_id].values()}
    assert outcomes == {"", "DecoderCrashed"}
    assert sink.complete == {local.unit_id, narrative.unit_id}


@pytest.mark.parametrize("kind", [Asking, Telling])
@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), EngineDownError("gone"), SystemExit("end")])
def test_what_is_no_windows_error_ends_the_stage_and_keeps_what_was_begun(kit, monkeypatch, kind, error):
    other = Telling if kind is Asking else Asking
    begun = failing(monkeypatch, other, {})
    called = failing(monkeypatch, kind, {90: error})
    sink = Sink()
    with pytest.raises(type(error), match=str(error)):
        run(kit, sink, 600)
    job = job_of(kit, film(600))
    mine, others = (job.local["local-10s"], job.narrative["narrative-30s"])[:: 1 if kind is Asking else -1]
    assert sorted(sink.texts(mine)) == sorted(set(called) - {90})
    assert sorted(sink.texts(others)) == sorted(begun)
    assert not sink.complete
    assert not sink.open_now


@pytest.mark.parametrize("scales", [(CHAIN,), (PARALLEL, CHAIN)])
def test_nothing_hangs_when_a_lane_stops_while_frames_still_come(monkeypatch, scales):
    """The first narrative fails after the pass waits for room: it must wake up and end."""
    full = threading.Event()
    failing(monkeypatch, Asking, {})
    given = []

    def counting(*arguments: object, **options: object):
        for index, frames in tiny_frames(*arguments, **options):
            given.append(index)
            if len(given) > HELD_WINDOWS:
                full.set()
            yield index, frames

    def call(window: WindowInput) -> None:
        assert full.wait(30)
        raise EngineDownError("gone")

    monkeypatch.setattr(seeing, "read_windows", counting)
    monkeypatch.setattr(Telling, "on_call", call, raising=False)
    with Kit(recipe(*scales), Profile()) as kit, pytest.raises(EngineDownError):
        narrated(kit, 30 * HELD_WINDOWS * 3)
    assert len(given) < HELD_WINDOWS * 3 * 4


def test_a_pass_that_is_ahead_of_its_chain_waits(monkeypatch):
    """While the first narrative is under way, no more than the bound (and one in hand) are given out."""
    given: list[int] = []
    waits = threading.Event()

    def counting(*arguments: object, **options: object):
        for index, frames in tiny_frames(*arguments, **options):
            given.append(index)
            if len(given) == HELD_WINDOWS + 2:
                waits.set()
            yield index, frames

    seen_at_first: list[int] = []

    def call(window: WindowInput) -> None:
        if not at(window):
            assert waits.wait(30)
            seen_at_first.append(len(given))

    monkeypatch.setattr(seeing, "read_windows", counting)
    monkeypatch.setattr(Telling, "on_call", call, raising=False)
    with Kit(recipe(CHAIN), Profile()) as kit:
        sink = narrated(kit, 30 * HELD_WINDOWS * 2)
    assert seen_at_first == [HELD_WINDOWS + 2]
    assert len(given) == len(next(iter(sink.held.values()))) == HELD_WINDOWS * 2


def test_chains_of_instant_windows_do_not_nest(monkeypatch):
    """Calls that end before their callback is there: thousands of them must not pile up on the stack."""
    monkeypatch.setattr(seeing, "HELD_WINDOWS", 5_000)
    monkeypatch.setattr(Telling, "on_call", lambda window: None, raising=False)

    class AtOnce:
        def submit(self, call, *, behind):
            from concurrent.futures import Future

            future = Future()
            future.set_running_or_notify_cancel()
            future.set_result(call())
            return future

        def close(self) -> None: ...

    def late(*arguments: object, **options: object):
        shown = list(tiny_frames(*arguments, **options))
        yield from [*shown[1:], shown[0]]  # the first comes last: then all can begin

    monkeypatch.setattr(seeing, "read_windows", late)
    with Kit(recipe(CHAIN), Profile()) as kit:
        monkeypatch.setattr(kit, "callers", lambda describer: AtOnce())
        sink = narrated(kit, 30 * 3_000)
    assert len(next(iter(sink.held.values()))) == 3_000


class LimitReachedError(Exception):
    """As that of the flow."""


@pytest.mark.parametrize("limit", [1, 5, 17])
def test_a_limit_ends_it_cleanly_after_exactly_so_many_calls(kit, limit):
    lock, admitted = threading.Lock(), [0]

    def admit() -> None:
        with lock:
            if admitted[0] >= limit:
                raise LimitReachedError
            admitted[0] += 1

    kit.admit = admit
    sink = Sink()
    with pytest.raises(LimitReachedError):
        run(kit, sink)
    assert sum(len(held) for held in sink.held.values()) == limit
    kit.admit = lambda: None
    unbroken = Sink()
    for unit in run(kit, sink):
        run(kit, unbroken)
        assert sink.facts(unit) == unbroken.facts(unit)


@pytest.mark.parametrize("stop_at", range(0, 180, 30))
@pytest.mark.parametrize("kind", [Asking, Telling])
def test_a_run_stopped_at_any_window_and_taken_up_again_equals_an_unbroken_one(
    kit, monkeypatch, kind, stop_at
):
    stopped, unbroken = Sink(), Sink()
    with monkeypatch.context() as patch:
        failing(patch, Telling if kind is Asking else Asking, {})
        failing(patch, kind, {stop_at: KeyboardInterrupt()})
        with pytest.raises(KeyboardInterrupt):
            run(kit, stopped)
    made = {unit_id: set(held) for unit_id, held in stopped.held.items()}
    again = {Asking: failing(monkeypatch, Asking, {}), Telling: failing(monkeypatch, Telling, {})}
    for kind_now, unit in zip((Asking, Telling), run(kit, stopped), strict=True):
        done = {start // US for start in made.get(unit.unit_id, ())}
        assert not done & set(again[kind_now]), "nothing is made twice"
    for unit in run(kit, unbroken):
        assert stopped.facts(unit) == unbroken.facts(unit)


def test_what_is_in_the_way_of_the_longest_chain_comes_first(kit, monkeypatch):
    """A local window counts as much as the narratives whose frames come behind it."""
    asked: list[tuple[str, int]] = []
    real = kit.callers(kit.describers["local-10s"])

    class Noting:
        def submit(self, call, *, behind):
            asked.append((threading.current_thread().name, behind))
            return real.submit(call, behind=behind)

    monkeypatch.setattr(kit, "callers", lambda describer: Noting())
    run(kit, Sink(), 90)
    behind = [behind for _, behind in asked]
    assert sorted(behind, reverse=True) == [3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0]


def test_a_chunk_is_sealed_when_its_last_window_is_written(kit):
    sink = Sink()
    run(kit, sink, 1_500)
    seals = [count for scale, count in sink.seals if scale == "narrative-30s"]
    assert seals == [20, 40, 50]


def test_a_pass_that_brings_too_little_is_said_and_does_not_hang(kit, monkeypatch):
    def short(*arguments: object, **options: object):
        yield from list(tiny_frames(*arguments, **options))[:-1]

    monkeypatch.setattr(seeing, "read_windows", short)
    with pytest.raises(RuntimeError, match="no frames came for the window"):
        run(kit, Sink())
