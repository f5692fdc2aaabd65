"""A scale that reads local entries and frames: its windows come in a second pass, and know those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from evicat.catalog import seeing
from evicat.catalog.describers.base import Description, Reads, WindowInput
from evicat.catalog.describers.loaders import DESCRIBERS
from evicat.catalog.kit import Kit
from evicat.catalog.seeing import see
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import DecoderCrashedError, RecipeError, WindowError
from evicat.schemas.recipe import Profile, Recipe, parse_toml
from evicat.schemas.records import ObjectBox, ObjectsRecord
from evicat.schemas.span import US

from .asking import Asking, Sink, film, job_of, tiny_frames

LOCAL = """
name = "test"
[[scales]]
kind = "local"
window_seconds = 10
describer = "asking"
frames = { per_window = 1, max_width = 16 }
"""
OBJECTS = """
[[scales]]
kind = "objects"
window_seconds = 20
describer = "looking"
frames = { per_window = 2, max_width = 16 }
"""


class Looking(Asking):
    """Finds what the local entries of its window are called."""

    component = "looking"
    kind = "objects"
    reads: ClassVar[frozenset[Reads]] = frozenset({"frames", "local"})
    slots_now = 1

    def describe(self, window: WindowInput) -> Description:
        type(self).on_call(window)
        names = tuple(entry.text for entry in window.entries)
        if not names:
            return Description(None, message="nothing to look for")
        time_s = window.frames[0].time_s
        box = ObjectBox(time_s=time_s, name=names[0], x1=0, y1=0, x2=10, y2=10)
        return Description(ObjectsRecord(wanted=names, objects=names[:1], boxes=(box,)), "; ".join(names))


@pytest.fixture(autouse=True)
def passes(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """By pass over the pictures: starts of the windows whose frames are wanted, in seconds."""
    made: list[list[int]] = []

    def read(pool: Any, path: Any, asset: Any, wanted: Any, **more: Any) -> Any:
        made.append([each.span.start_us // US for each in wanted])
        return tiny_frames(pool, path, asset, wanted, **more)

    monkeypatch.setitem(DESCRIBERS, "asking", f"{Asking.__module__}:Asking")
    monkeypatch.setitem(DESCRIBERS, "looking", f"{Looking.__module__}:Looking")
    monkeypatch.setattr(seeing, "read_windows", read)
    monkeypatch.setattr(Asking, "on_call", lambda window: None, raising=False)
    monkeypatch.setattr(Looking, "on_call", lambda window: None, raising=False)
    return made


@pytest.fixture
def kit() -> Iterator[Kit]:
    with Kit(parse_toml(Recipe, LOCAL + OBJECTS, "test.toml"), Profile()) as made:
        yield made


def test_frames_come_again_when_the_local_entries_are_there(kit, passes) -> None:
    sink, job = Sink(), job_of(kit, film(40))
    see(job, kit, sink)
    assert passes == [[0, 10, 20, 30], [0, 20]]
    unit = job.objects["objects-20s"]
    assert sink.texts(unit) == {0: "scene at 0; scene at 10", 20: "scene at 20; scene at 30"}
    (entry,) = sink.held[unit.unit_id][0].entries
    assert (entry.kind, entry.scale, entry.objects[0].name) == ("objects", "objects-20s", "scene at 0")
    assert [frame.time_s for frame in entry.frames] == [5.0, 15.0]
    assert kit.objects["objects-20s"].reads == (kit.local["local-10s"].producer_id,)
    see(job, kit, sink)
    assert len(passes) == 2, "nothing is left to make"


def test_names_of_the_recipe_alone_need_no_second_pass(kit, passes, monkeypatch) -> None:
    monkeypatch.setattr(Looking, "reads", frozenset({"frames"}))
    with Kit(parse_toml(Recipe, LOCAL + OBJECTS, "test.toml"), Profile()) as plain:
        see(job_of(plain, film(40)), plain, Sink())
    assert passes == [[0, 10, 20, 30, 0, 20]]


def test_a_window_whose_local_entries_changed_is_made_again(kit, monkeypatch) -> None:
    def fail(window: WindowInput) -> None:
        if window.span.start_us == 10 * US:
            raise WindowError("no answer")

    monkeypatch.setattr(Asking, "on_call", fail, raising=False)
    sink, job = Sink(), job_of(kit, film(40))
    see(job, kit, sink)
    unit = job.objects["objects-20s"]
    assert sink.texts(unit)[0] == "scene at 0"
    monkeypatch.setattr(Asking, "on_call", lambda window: None, raising=False)
    sink.retry = frozenset({"failed", "stale"})
    looked: list[int] = []
    monkeypatch.setattr(Looking, "on_call", lambda window: looked.append(window.span.start_us // US))
    see(job, kit, sink)
    assert sink.texts(unit) == {0: "scene at 0; scene at 10", 20: "scene at 20; scene at 30"}
    assert looked == [0], "the other window read what it reads now"


def test_a_file_that_breaks_in_the_second_pass_fails_what_is_left(kit, monkeypatch) -> None:
    sink, job = Sink(), job_of(kit, film(40))
    see(job_of(kit, film(40)), kit, sink)
    unit = job.objects["objects-20s"]
    del sink.held[unit.unit_id]
    sink.complete.remove(unit.unit_id)

    def broken(*_: Any, **__: Any) -> Any:
        raise DecoderCrashedError("gone")

    monkeypatch.setattr(seeing, "read_windows", broken)
    see(job, kit, sink)
    assert {result.outcome for result in sink.held[unit.unit_id].values()} == {Outcome.FAILED}


def test_the_inputs_of_speech_count_where_the_local_entries_hear_it(monkeypatch) -> None:
    words = '[speech]\nsubtitles = "only"\n'
    for hears in (False, True):
        reads = frozenset({"frames", "speech"} if hears else {"frames"})
        monkeypatch.setattr(Asking, "reads", reads)
        with Kit(parse_toml(Recipe, LOCAL + OBJECTS + words, "test.toml"), Profile()) as kit:
            heard = job_of(kit, film(40)).kit
            assert heard.objects["objects-20s"].reads == (heard.local["local-10s"].producer_id,)
            job = job_of(kit, film(40))
            assert job._hears(kit.objects["objects-20s"]) is hears


def test_names_from_local_entries_need_local_entries() -> None:
    with pytest.raises(RecipeError, match="the recipe makes none; add one of"):
        Kit(parse_toml(Recipe, 'name = "test"\n' + OBJECTS, "test.toml"), Profile())


def test_a_describer_of_objects_makes_no_local_scale() -> None:
    wrong = OBJECTS.replace('kind = "objects"', 'kind = "local"')
    with pytest.raises(RecipeError, match="makes kind = 'objects'"):
        Kit(parse_toml(Recipe, 'name = "test"\n' + wrong, "test.toml"), Profile())
