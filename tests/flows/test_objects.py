"""Boxes around objects, from the clip to the picture on which they are drawn: a red square that moves.

The chat model's part is played by a server that looks for red in the pictures that it is sent. The detector
is a real OWLv2 whose network is replaced by the same. What each answers is in its own coordinates.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import cv2
import numpy as np
import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import WindowError
from evicat.schemas.records import LocalRecord, ObjectsRecord

from ..catalog.describers import tiny_detectors as tiny
from ..catalog.engines import chat_server

pytest.importorskip("openai", reason="the served engine needs the package 'openai'")
pytestmark = pytest.mark.slow  # a whole run
SIZE = (640, 360)
SIDE = 100
SECONDS, RATE = 6, 5
CLIPS = {"plain.mp4": SIZE, "turned.mp4": (360, 640), "wide.mp4": (640, 180)}
"""By clip, the size at which its frames are shown."""
LISTS = "objects colours screen_text spoken_clues people entities actions interactions social_cues changes"
LOCAL = {key: [] for key in LISTS.split()} | {"place": "", "scene": "a square moves"}

RECIPE = """
name = "boxes"
[[scales]]
kind = "local"
window_seconds = 2
describer = "vlm-local"
frames = {{ per_window = 2, max_width = 640 }}
options = {{ model = "lab/eye-9b", family = "qwen2.5-vl", ground = true, max_pixels = 1000000 }}
[[scales]]
kind = "local"
window_seconds = 3
describer = "vlm-local"
frames = {{ per_window = 2, max_width = 640 }}
options = {{ model = "lab/eye-9b", ground = true, check_crop = {{ model = "lab/eye-9b" }} }}
[[scales]]
kind = "local"
window_seconds = 6
describer = "sight"
frames = {{ per_window = 2, max_width = 640 }}
[[scales]]
kind = "objects"
window_seconds = 2
describer = "detector"
frames = {{ per_window = 2, max_width = 640 }}
options = {{ model = "{model}", names = ["red square", "dog"] }}
"""


def draw_clip(path: Path) -> None:
    """A red square on grey that goes right and down, and a line of text that stays."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "4"})
        stream.width, stream.height = SIZE
        stream.pix_fmt = "yuv420p"
        for number in range(SECONDS * RATE):
            image = np.full((SIZE[1], SIZE[0], 3), 90, np.uint8)
            cv2.putText(image, "PLATFORM 27", (330, 60), cv2.FONT_HERSHEY_SIMPLEX, 1.2, (255, 255, 255), 3)
            left, top = 20 + 8 * number, 100 + 4 * number
            image[top : top + SIDE, left : left + SIDE] = (220, 20, 20)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


@pytest.fixture(scope="module")
def media(tmp_path_factory, ffmpeg):
    """The same moving square: plain, turned by a quarter, and with pixels twice as wide as high."""
    folder = tmp_path_factory.mktemp("media")
    draw_clip(folder / "plain.mp4")
    run = [str(ffmpeg), "-v", "error", "-y"]
    turned = [*run, "-display_rotation:v:0", "90", "-i", "plain.mp4", "-c", "copy", "turned.mp4"]
    pixels = "h264_metadata=sample_aspect_ratio=2/1"
    wide = [*run, "-i", "plain.mp4", "-c", "copy", "-bsf:v", pixels, "wide.mp4"]
    for command in (turned, wide):
        subprocess.run(command, check=True, cwd=folder)
    return folder


def red_box(image: np.ndarray) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of what is red, in pixels; the last two are exclusive."""
    is_red = image[:, :, 0].astype(int) - image[:, :, 1] > 100
    if not is_red.any():
        return None
    rows, columns = np.nonzero(is_red.any(axis=1))[0], np.nonzero(is_red.any(axis=0))[0]
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def rgb(jpeg: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]


def smart_resize(height: int, width: int) -> tuple[int, int]:
    """What Qwen2.5-VL's own processor makes of a picture."""
    made = importlib.import_module("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    return made.smart_resize(height, width, factor=28)


def seeing(body: dict, settings: object) -> dict:
    """The answer of a model that sees red, and counts as the family does for which it was prompted."""
    schema = body["response_format"]["json_schema"]["schema"]
    images = [rgb(jpeg) for jpeg in chat_server.images_of(body)]
    if "shows" in schema["properties"]:
        answer = {"shows": any(map(red_box, images))}
    else:
        times = re.findall(r"Frame at (\S+):\"", json.dumps(body["messages"][-1]))
        in_pixels = "in pixels" in json.dumps(body["messages"][0])
        boxes = []
        for time, image in zip(times, images, strict=False):  # a trial comes without images
            height, width = image.shape[:2]
            tall, broad = smart_resize(height, width) if in_pixels else (1000, 1000)
            scale = (broad / width, tall / height) * 2
            if found := red_box(image):
                box = [round(edge * each) for edge, each in zip(found, scale, strict=True)]
                boxes.append({"t": time, "name": "the red square", "box": box})
        answer = LOCAL | {"boxes": boxes}
    message = {"role": "assistant", "content": json.dumps(answer), "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    tokens = 10 + 4 * len(images)
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    facts = {"id": "1", "object": "chat.completion", "created": 0, "model": chat_server.MODEL}
    return facts | {"choices": [choice], "usage": usage}


@pytest.fixture(scope="module")
def boxed(media, evicat, tmp_path_factory):
    """The three clips, indexed by all that gives boxes."""
    folder = tmp_path_factory.mktemp("boxed")
    catalog, recipe, profile = folder / "catalog", folder / "boxes.toml", folder / "profile.toml"
    recipe.write_text(RECIPE.format(model=tiny.owlv2(folder / "owlv2", side=640)))
    with chat_server.ChatServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat_server, "completion", seeing)
        patch.setattr(tiny.CLASSES["owlv2"], "forward", tiny.finds_red)
        profile.write_text(f'[engines."lab/eye-9b"]\nendpoint = "{server.url}"\npatience_seconds = 2\n')
        command = ("index", media, "--catalog", catalog, "--recipe", recipe, "--profile", profile)
        run = evicat(*command)
        assert run.code == 0, run.out + run.err
        asked = len(server.asked)
        yield SimpleNamespace(catalog=catalog, again=lambda: (evicat(*command), len(server.asked) - asked))


@pytest.fixture(scope="module")
def pictures(boxed, evicat, tmp_path_factory):
    """By clip and entry: each cited frame as it is, and with its boxes."""
    folder = tmp_path_factory.mktemp("pictures")
    for clip in CLIPS:
        for name, options in (("plain", ()), ("drawn", ("--boxes",))):
            where = folder / name / clip
            run = evicat("show", clip, "--catalog", boxed.catalog, "--frames", where, *options)
            assert run.code == 0, run.err
    return folder


def entries(boxed, **wanted):
    return Catalog.open(str(boxed.catalog)).entries(**wanted)


def test_every_producer_of_boxes_writes_them_into_one_column(boxed) -> None:
    found = entries(boxed).explode("objects").unnest("objects").group_by("scale", "source", "name").len()
    read = pl.col("source").replace("same_pixels", "ocr")  # text that a later frame shows unchanged
    assert set(found.select("scale", read, "name").rows()) == {
        ("local-2s", "vlm", "the red square"),
        ("local-3s", "vlm", "the red square"),
        ("local-6s", "ocr", "PLATFORM 27"),
        ("objects-2s", "detector", "red square"),
    }


def test_entries_of_objects_say_what_was_found_when_and_stand_beside_the_others(boxed) -> None:
    found = entries(boxed, video="plain.mp4", kind="objects")
    assert found["scale"].to_list() == ["objects-2s"] * 3
    assert found["text"][0] == "Seen: red square (at 0:00.4 and 0:01.4)."
    record = ObjectsRecord.model_validate_json(found["record"][0])
    assert record.wanted == ("red square", "dog")
    assert len(record.boxes) == len(found["objects"][0]) == 2
    cited = {frame["time_s"] for frame in found["frames"][0]}
    assert {box["time_s"] for box in found["objects"][0]} <= cited
    local = entries(boxed, video="plain.mp4", kind="local")
    assert all(LocalRecord.model_validate_json(record).boxes for record in local["record"])


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("scale", ["local-2s", "local-3s", "objects-2s"])
def test_boxes_drawn_on_their_frames_sit_where_the_object_is(pictures, clip, scale) -> None:
    """Within a thousandth of the picture's side and one pixel."""
    drawn = sorted((pictures / "drawn" / clip).glob(f"*.{scale}.*.jpg"))
    assert len(drawn) == {"local-2s": 6, "local-3s": 4, "objects-2s": 6}[scale]
    for file in drawn:
        plain, boxed = rgb((pictures / "plain" / clip / file.name).read_bytes()), rgb(file.read_bytes())
        assert plain.shape[1::-1] == CLIPS[clip]
        left, top, right, bottom = red_box(plain)
        line = boxed[:, :, 1].astype(int) - boxed[:, :, [0, 2]].max(axis=2) > 60
        across = np.nonzero(line[(top + bottom) // 2])[0]
        down = np.nonzero(line[:, (left + right) // 2])[0]
        down = down[(down > top - 4) & (down < bottom + 4)]  # the name stands above the box
        height, width = plain.shape[:2]
        assert across[[0, -1]] == pytest.approx([left, right - 1], abs=width / 1000 + 1)
        assert down[[0, -1]] == pytest.approx([top, bottom - 1], abs=height / 1000 + 1)
        assert len(across) <= 4
        assert len(down) <= 4


def test_boxes_are_drawn_on_frames_that_are_written(boxed, evicat) -> None:
    run = evicat("show", "plain.mp4", "--catalog", boxed.catalog, "--boxes")
    assert run.code == 2
    assert "give --frames DIR too" in run.err


def test_the_catalog_is_proved_and_nothing_is_made_twice(boxed, evicat) -> None:
    check = evicat("status", "--catalog", boxed.catalog, "--check")
    assert check.code == 0, check.out + check.err
    run, asked = boxed.again()
    assert (run.code, asked) == (0, 0), run.err
    rows = Catalog.open(str(boxed.catalog)).coverage().filter(pl.col("kind") == "objects")
    assert rows["outcome"].to_list() == ["done"] * 9


def test_objects_are_found_listed_and_shown_by_their_kind(boxed, evicat) -> None:
    how = ("--kind", "objects", "--mode", "text", "--json")
    run = evicat("search", "red square", "--catalog", boxed.catalog, *how)
    hits = [json.loads(line) for line in run.out.splitlines()]
    assert {hit["kind"] for hit in hits} == {"objects"}
    assert {hit["video"] for hit in hits} == set(CLIPS)
    shown = evicat("show", "plain.mp4", "--catalog", boxed.catalog, "--kind", "objects")
    assert "Seen: red square (at 0:00.4 and 0:01.4)." in shown.out
    assert "objects-2s" in evicat("producers", "--catalog", boxed.catalog).out


CHECKED = """
name = "checked"
[[scales]]
kind = "local"
window_seconds = 3
describer = "vlm-local"
frames = { per_window = 2, max_width = 640 }
options = { model = "lab/eye-9b", ground = true, check_crop = { model = "lab/eye-9b" } }
"""


def test_calls_that_check_boxes_count_for_the_limit_of_calls(media, evicat, tmp_path, monkeypatch) -> None:
    """A window takes three: one describes it, and one is about each of its two boxes."""
    monkeypatch.setattr(chat_server, "completion", seeing)
    recipe, profile = tmp_path / "checked.toml", tmp_path / "profile.toml"
    recipe.write_text(CHECKED)
    with chat_server.ChatServer() as server:
        profile.write_text(f'[engines."lab/eye-9b"]\nendpoint = "{server.url}"\nconcurrency = 1\n')
        catalog = ("--catalog", tmp_path / "catalog", "--recipe", recipe, "--profile", profile)
        run = evicat("index", media / "plain.mp4", *catalog, "--max-calls", 3)
    assert run.code == 4, run.err
    assert "Stopped (--max-calls 3)" in " ".join(run.out.split())
    (window,) = Catalog.open(str(tmp_path / "catalog")).coverage().to_dicts()
    assert (window["outcome"], window["attempts"]) == ("done", 1)


FROM_LOCAL = """
name = "from-local"
[[scales]]
kind = "local"
window_seconds = 2
describer = "sight"
frames = {{ per_window = 2, max_width = 64 }}
options = {{ ocr_frames = 0 }}
[[scales]]
kind = "objects"
window_seconds = 4
describer = "detector"
frames = {{ per_window = 2, max_width = 64 }}
options = {{ model = "{model}", names = ["box"], names_from_local = true }}
"""


def test_boxes_by_names_from_local_entries_follow_those_entries(
    rerun, evicat, equal_part, tmp_path, monkeypatch
) -> None:
    """What read an entry that came later is stale, and made again equals a catalog without any failure."""
    monkeypatch.setattr(tiny.CLASSES["owlv2"], "forward", tiny.finds_red)
    rerun.recipe.write_text(FROM_LOCAL.format(model=tiny.owlv2(tmp_path / "owlv2")))
    rerun.put("a.mp4", "red")
    whole = tmp_path / "whole"
    rerun.index(catalog=whole)
    rerun.failing[("sight", 2)] = WindowError("no answer")

    def objects() -> list[str]:
        return rerun.coverage().filter(pl.col("kind") == "objects")["outcome"].to_list()

    rerun.index()
    assert objects() == ["empty", "done"]  # red all over is no box
    rerun.failing.clear()
    rerun.index(retry=("failed",))
    assert objects() == ["stale", "done"]
    rerun.index(retry=("stale",))
    assert objects() == ["empty", "done"]
    assert equal_part(rerun.catalog).equals(equal_part(whole))
    check = evicat("status", "--catalog", rerun.catalog, "--check")
    assert check.code == 0, check.out + check.err
