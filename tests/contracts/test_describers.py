"""What every describer keeps to. A new one is picked up from its line in ``loaders.py``."""

import json
import subprocess
import sys
from concurrent.futures import Future

import cv2
import numpy as np
import pytest

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.loaders import DESCRIBERS, describer_class, load_describer
from evicat.catalog.engines.base import ChatAnswer, Engine
from evicat.catalog.media.frame import Frame
from evicat.schemas.entry import FLAGS, Entry
from evicat.schemas.identity import ModelRef, Producer
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale
from evicat.schemas.records import LocalRecord, NarrativeRecord, ObjectsRecord, SpeechSegment, Word
from evicat.schemas.span import US, Span

RECORDS = {"local": LocalRecord, "narrative": NarrativeRecord, "objects": ObjectsRecord}
NAMES = sorted(DESCRIBERS)
OPTIONS = {"vlm-local": {"model": "echo", "dialogue": True}, "vlm-narrative": {"model": "echo"}}
"""What a describer does not do without."""


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """The same, with that of the detector: a model, which is made here."""
    from ..catalog.describers.tiny_detectors import owlv2

    folder = owlv2(tmp_path_factory.mktemp("owlv2"))
    return OPTIONS | {"detector": {"model": str(folder), "names": ["a lamp"], "confidence": 0.1}}


class EchoEngine(Engine):
    """A model that says what it was told, and nothing of black pictures."""

    name = "echo"

    def check(self, request): ...

    def submit(self, request):
        said = [line[:160] for part in request.parts if isinstance(part, str) for line in part.splitlines()]
        pictures = [np.frombuffer(picture.jpeg, np.uint8) for picture in request.pictures]
        is_dark = all(cv2.imdecode(each, cv2.IMREAD_COLOR).max() < 16 for each in pictures)
        lists = dict.fromkeys(request.schema["properties"])
        for name, field in request.schema["properties"].items():
            lists[name] = [] if field["type"] == "array" else ""
        heard = {"spoken_clues": [] if is_dark else [line for line in said if "says" in line][:12]}
        words = {"scene": "a picture"} | heard if "scene" in lists else {"narrative": " ".join(said)[:6000]}
        future = Future()
        future.set_result(ChatAnswer(json.dumps(lists | words), "stop", 10, 10, "echo"))
        return future

    def close(self): ...


def image(seed, text=""):
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 16, 3), dtype=np.uint8)
    drawn = cv2.resize(coarse, (640, 360), interpolation=cv2.INTER_CUBIC) // 3
    return cv2.putText(drawn, text, (60, 300), cv2.FONT_HERSHEY_SIMPLEX, 1.4, (255, 255, 255), 3, cv2.LINE_AA)


def frames(span, count=6, text="Harbour Street"):
    step_us = span.duration_us // count
    shown = []
    for index in range(count):
        picture = image(index // 3, text if index % 2 else "")
        picture.setflags(write=False)
        shown.append(Frame(pts=index, time_us=span.start_us + index * step_us, image=picture))
    return tuple(shown)


def speech(span):
    """A sentence that crosses the window's start, one inside, one across its end, one that is doubted."""
    said = [
        (span.start_s - 1.5, " Outside", " before.", ()),
        (span.start_s + 2, " Inside", " now.", ()),
        (span.end_s - 0.5, " Nearly", " afterwards.", ()),
        (span.start_s + 4, " Thank", " you.", ("unsure_speech",)),
    ]
    return tuple(
        SpeechSegment(
            start_s=start,
            end_s=start + 2,
            text=(one + two).strip(),
            words=(
                Word(start_s=start, end_s=start + 1, text=one),
                Word(start_s=start + 1, end_s=start + 2, text=two),
            ),
            source="faster-whisper",
            flags=flags,
        )
        for start, one, two, flags in sorted(said)
    )


def entry(kind, number, span, text, record, flags=()):
    return Entry(
        entry_id=f"{kind}.{number}",
        unit_id="unit",
        asset_id="asset",
        producer_id=kind,
        kind=kind,
        scale="local-10s" if kind == "local" else "speech",
        span=span,
        text=text,
        record=record.model_dump_json(),
        flags=flags,
    )


def entries(span):
    third_us = span.duration_us // 3
    spans = [Span(span.start_us + i * third_us, span.start_us + (i + 1) * third_us) for i in range(3)]
    record = LocalRecord(scene="a dim picture", objects=("a lamp",))
    rows = [entry("local", i, part, "a dim picture", record) for i, part in enumerate(spans)]
    for i, said in enumerate(speech(span)):
        rows.append(
            entry("speech", i, Span.from_seconds(said.start_s, said.end_s), said.text, said, said.flags)
        )
    return tuple(sorted(rows, key=lambda row: row.span))


@pytest.fixture(scope="module", params=NAMES)
def describer(request, options):
    found = describer_class(request.param)
    shown = FrameOptions() if "frames" in found.reads else None
    given = options.get(request.param, {})
    scale = Scale(kind=found.kind, window_seconds=30, describer=request.param, frames=shown, options=given)
    made = load_describer(scale, Profile(threads=1))
    made.bind(lambda model: EchoEngine(model, ModelProfile(), Profile()))
    return made


def window(describer, start_s=60):
    """A full window with only what the describer reads."""
    span = Span(start_s * US, (start_s + 30) * US)
    wanted = {"local"} & describer.reads | {"speech"} & describer.reads
    return WindowInput(
        span=span,
        frames=frames(span) if "frames" in describer.reads else (),
        speech=speech(span) if "speech" in describer.reads else (),
        entries=tuple(row for row in entries(span) if row.kind in wanted),
    )


def empty(describer):
    """A window in which there is nothing: no speech, no entries, black frames."""
    given = window(describer)
    black = tuple(Frame(f.pts, f.time_us, np.zeros_like(f.image)) for f in given.frames)
    return WindowInput(span=given.span, frames=black)


def test_its_facts_make_a_producer(describer):
    assert DESCRIBERS[describer.component]
    producer = Producer(
        kind=describer.kind,
        scale="any",
        component=describer.component,
        version=describer.version,
        model=describer.model,
        options=describer.facts(),
    )
    assert len(producer.producer_id) == 32
    assert describer.version >= 1
    assert describer.reads <= {"frames", "speech", "local", "past"}
    assert type(describer).reads <= describer.reads
    assert describer.model is None or isinstance(describer.model, ModelRef)


def test_it_describes_a_window(describer):
    done = describer.describe(window(describer))
    record = RECORDS[describer.kind]
    assert record.model_validate_json(done.record.model_dump_json()) == done.record
    assert done.text.strip() == done.text != ""
    assert "\n" not in done.text
    assert set(done.flags) <= set(FLAGS)
    assert done.prompt_tokens >= 0
    assert done.completion_tokens >= 0


def test_it_is_deterministic_whatever_came_before(describer):
    first = describer.describe(window(describer))
    describer.describe(window(describer, start_s=300))
    assert describer.describe(window(describer)) == first


def test_boxes_are_at_times_of_shown_frames(describer):
    given = window(describer)
    record = describer.describe(given).record
    times = {frame.time_s for frame in given.frames}
    assert {box.time_s for box in getattr(record, "boxes", ())} <= times


def test_frames_stay_as_they_are(describer):
    given = window(describer)
    before = [frame.image.copy() for frame in given.frames]
    describer.describe(given)
    assert all((frame.image == copy).all() for frame, copy in zip(given.frames, before, strict=True))


def test_it_says_nothing_from_outside_the_window_and_nothing_doubted(describer):
    done = describer.describe(window(describer))
    said = done.text + done.record.model_dump_json()
    assert not [word for word in ("Outside", "afterwards", "Thank") if word in said]


def test_it_rests_on_entries_that_it_was_given(describer):
    given = window(describer)
    rests_on = getattr(describer.describe(given).record, "rests_on", ())
    assert set(rests_on) <= {row.entry_id for row in given.entries}
    assert len(set(rests_on)) == len(rests_on)


def test_where_there_is_nothing_it_claims_nothing(describer):
    done = describer.describe(empty(describer))
    if describer.kind == "local":
        assert done.record.is_empty()
        assert done.flags == ("nothing_visible",)
        assert done.text
    elif describer.kind == "objects":
        assert (done.record, done.text) == (None, "")
    elif "frames" in describer.reads:
        assert (done.record.cast, done.record.rests_on) == ((), ())
    else:
        assert done.record is None
        assert done.text == ""


def test_no_input_at_all_has_no_record(describer):
    done = describer.describe(WindowInput(span=Span(0, US)))
    assert done.record is None
    assert done.text == ""


@pytest.mark.parametrize("name", NAMES)
def test_loading_is_lazy(name, options):
    program = f"""
import sys
from evicat.catalog.describers.loaders import describer_class, load_describer
from evicat.schemas.recipe import FrameOptions, Profile, Scale
assert {DESCRIBERS[name].partition(":")[0]!r} not in sys.modules
found = describer_class({name!r})
frames = FrameOptions() if "frames" in found.reads else None
options = {options.get(name, {})!r}
scale = Scale(kind=found.kind, window_seconds=10, describer={name!r}, frames=frames, options=options)
load_describer(scale, Profile()).model
heavy = {{"av", "cv2", "rapidocr", "onnxruntime", "torch", "transformers", "lancedb"}} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
