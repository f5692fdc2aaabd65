import pytest

from evicat.catalog.recipes import load_profile, load_recipe
from evicat.schemas.errors import RecipeError, UnknownNameError
from evicat.schemas.recipe import Recipe, parse_toml

GOOD = """
name = "mine"
[[scales]]
kind = "local"
window_seconds = 4
describer = "sight"
"""


def test_scale_names_stand_in_ids() -> None:
    recipe = parse_toml(Recipe, GOOD, "mine.toml")
    assert recipe.scales[0].name == "local-4s"
    half = parse_toml(Recipe, GOOD.replace("= 4", "= 2.5"), "mine.toml")
    assert half.scales[0].name == "local-2_5s"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (GOOD.replace("window_seconds = 4", "window_seconds = -4"), "scales.0.window_seconds", "-4"),
        (GOOD.replace('describer = "sight"', 'describber = "sight"'), "scales.0.describber", "sight"),
        (GOOD.replace('"local"', '"locale"'), "scales.0.kind", "locale"),
        (GOOD + '[speech]\nsubtitles = "maybe"\n', "speech.subtitles", "maybe"),
        (GOOD + '[speech]\nsubtitles = "never"\n', "speech", "needs a transcriber"),
        (GOOD + GOOD.split("\n", 2)[2], "(all of it)", "local-4s"),
        ('name = "empty"', "(all of it)", "at least one of"),
    ],
)
def test_a_wrong_field_is_named_with_file_and_value(text: str, field: str, value: str) -> None:
    with pytest.raises(RecipeError) as error:
        parse_toml(Recipe, text, "mine.toml")
    assert "mine.toml" in str(error.value)
    assert f"  {field}: " in str(error.value)
    assert value in str(error.value)


def test_broken_toml_names_file_and_place() -> None:
    with pytest.raises(RecipeError, match=r"mine\.toml is not valid TOML.*line 2"):
        parse_toml(Recipe, "name = 'a'\nb = \nc = 1", "mine.toml")


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown recipe 'defualt'; known: .*default"):
        load_recipe("defualt")


def test_missing_files_are_named(tmp_path) -> None:
    with pytest.raises(RecipeError, match=r"gone\.toml: No such file"):
        load_recipe(str(tmp_path / "gone.toml"))
    with pytest.raises(RecipeError, match=r"gone\.toml: No such file"):
        load_profile(str(tmp_path / "gone.toml"))
