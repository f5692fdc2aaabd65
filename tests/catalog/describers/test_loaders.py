import pytest

from evicat.catalog.describers.digest import Digest
from evicat.catalog.describers.loaders import describer_class, load_describer
from evicat.catalog.describers.sight import Sight
from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import FrameOptions, Profile, Scale


def scale(**facts):
    given = {"kind": "local", "window_seconds": 10, "describer": "sight", "frames": FrameOptions()}
    return Scale(**(given | facts))


def test_a_scale_gets_its_describer_with_its_options():
    sight = load_describer(scale(options={"ocr_frames": 2}), Profile(threads=1))
    digest = load_describer(scale(kind="narrative", describer="digest", frames=None), Profile())
    assert isinstance(sight, Sight)
    assert sight.options.ocr_frames == 2
    assert sight.profile.threads == 1
    assert isinstance(digest, Digest)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match="unknown describer 'sigth'; known: detector, digest, sight"):
        describer_class("sigth")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"options": {"ocr_frames": "many"}}, r"local-10s.*\n  ocr_frames: .*integer.*, got 'many'"),
        ({"options": {"dark_below": 300}}, r"dark_below: .*less than or equal to 255, got 300"),
        (
            {"options": {"ocr_frame": 2}},
            r"ocr_frame: .*got 2\n  known options: blank_deviation, .*ocr_frames",
        ),
        (
            {"describer": "digest", "kind": "narrative", "frames": None, "options": {"a": 1}},
            "known options: none",
        ),
        ({"kind": "narrative"}, "makes kind = 'local', got kind = 'narrative'"),
        ({"frames": None}, "needs frames"),
        ({"describer": "digest", "kind": "narrative"}, "reads no frames; remove frames"),
    ],
)
def test_a_scale_that_does_not_fit_is_explained(facts, message):
    with pytest.raises(RecipeError, match=message):
        load_describer(scale(**facts), Profile())
