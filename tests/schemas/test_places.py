"""Home folders, and texts without the folders of a machine."""

import pytest

from evicat.schemas.errors import UsageError
from evicat.schemas.places import expanded, without_folders


def test_a_home_folder_that_is_not_there_is_told(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert str(expanded("~/films")) == "/home/me/films"
    assert str(expanded("films/~nobody-here")) == "films/~nobody-here"
    with pytest.raises(UsageError, match="begins with ~nobody-here"):
        expanded("~nobody-here/films")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/data/films/a.mp4: moov atom not found", "a.mp4: moov atom not found"),
        ("Looked in '/my films/b.mp4', /my films/c", "Looked in 'b.mp4', c"),
        ("see https://example.org/a/b and 1/2", "see https://example.org/a/b and 1/2"),
        ("<b>bold</b> </script>", "<b>bold</b> </script>"),
    ],
)
def test_paths_are_cut_to_names(text, left) -> None:
    assert without_folders(text, ["/my films"]) == left
