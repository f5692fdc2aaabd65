import json
from concurrent.futures import Future

import cv2
import numpy as np
import pytest

from evicat.catalog.describers.loaders import load_describer
from evicat.catalog.engines.base import ChatAnswer, Engine
from evicat.catalog.media.frame import Frame
from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import FrameOptions, ModelProfile, Profile, Scale


def picture(colour=(0, 0, 0), *, height=360, width=640):
    return np.full((height, width, 3), colour, dtype=np.uint8)


def write(image, text, *, at=(60, 200), size=1.2, colour=(255, 255, 255)):
    written = image.copy()
    return cv2.putText(written, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, colour, 2, cv2.LINE_AA)


def textured(seed, *, height=360, width=640):
    """A picture of soft blobs in many colours, another one for every seed."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 16, 3), dtype=np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


def in_time(images, *, start_us=0, step_us=1_200_000):
    return tuple(
        Frame(pts=index, time_us=start_us + index * step_us, image=image)
        for index, image in enumerate(images)
    )


class Draw:
    """Made pictures with known content."""

    picture = staticmethod(picture)
    write = staticmethod(write)
    textured = staticmethod(textured)
    in_time = staticmethod(in_time)


@pytest.fixture(scope="session")
def draw():
    return Draw


class ScriptedEngine(Engine):
    """Gives prepared answers one after another, and keeps what it was asked.

    An answer is a text, an answer with its finish reason, an error to raise, or a function of the request.
    """

    name = "scripted"

    def __init__(self, *answers):
        super().__init__(ModelRef(name="m"), ModelProfile(concurrency=3), Profile())
        self.answers = list(answers)
        self.asked = []
        self.checked = []

    def check(self, request):
        self.checked.append(request)

    def submit(self, request):
        self.asked.append(request)
        answer = self.answers.pop(0)
        answer = answer(request) if callable(answer) else answer
        future = Future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            text, reason = answer if isinstance(answer, tuple) else (answer, "stop")
            future.set_result(ChatAnswer(text, reason, prompt_tokens=100, completion_tokens=10, model="m"))
        return future

    def close(self):
        self.answers.clear()


LOCAL_ANSWER = {
    "objects": ["a red mug"],
    "colours": [],
    "place": "a kitchen",
    "screen_text": ["EXIT 27"],
    "spoken_clues": [],
    "people": [{"descriptor": "the woman in grey", "details": ["short hair"]}],
    "entities": [],
    "actions": ["she pours tea"],
    "interactions": [],
    "social_cues": [],
    "changes": [],
    "scene": "a woman pours tea in a kitchen",
}


@pytest.fixture(scope="session")
def engine():
    return ScriptedEngine


@pytest.fixture
def local_answer():
    """JSON of an answer to ``vlm-local``, with some fields changed."""
    return lambda **facts: json.dumps(LOCAL_ANSWER | facts)


@pytest.fixture
def told():
    """JSON of an answer to ``vlm-narrative``; each of the cast is ``(name, descriptor, formerly)``."""

    def answer(narrative="She leaves.", *cast):
        fields = ("name", "descriptor", "formerly")
        people = [dict(zip(fields, (*one, "", ""), strict=False)) for one in cast]
        return json.dumps({"narrative": narrative, "cast": people})

    return answer


@pytest.fixture
def describer(engine):
    """Loads a describer by name and binds it: ``describer("vlm-local", *answers, dialogue=True)``."""

    def load(name, *answers, profile=None, **options):
        kind = "narrative" if name == "vlm-narrative" else "local"
        scale = Scale(
            kind=kind,
            window_seconds=30,
            describer=name,
            frames=FrameOptions(),
            options={"model": "m"} | options,
        )
        made = load_describer(scale, profile or Profile())
        bound = engine(*answers)
        made.bind(lambda model: bound)
        return made

    return load
