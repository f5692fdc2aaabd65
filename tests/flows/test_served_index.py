"""A whole run over a served model: what is asked, what ends it, and what the next run still has to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from evicat.catalog.query import Catalog

from ..catalog.engines.chat_server import MODEL, ChatServer, Fault

pytest.importorskip("openai", reason="the served engine needs the package 'openai'")
pytestmark = pytest.mark.slow  # each starts whole runs

RECIPE = f"""
name = "served"
[[scales]]
kind = "local"
window_seconds = 2
describer = "vlm-local"
frames = {{ per_window = 2, max_width = 64 }}
options = {{ model = "{MODEL}" }}
[[scales]]
kind = "narrative"
window_seconds = 4
describer = "vlm-narrative"
frames = {{ per_window = 4, max_width = 64 }}
options = {{ model = "{MODEL}" }}
"""
WINDOWS = 4 + 2
"""Of one clip of 8 s."""
TRIALS = 4
"""Two requests for each of the two describers, before the first window of a run."""
SECRET = "sk-evicat-secret-0815"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


class Shelf:
    """Clips, a recipe that describes them with a served model, and the command that does so."""

    def __init__(self, rerun, evicat, server: ChatServer) -> None:
        self.rerun, self.evicat, self.server = rerun, evicat, server
        self.catalog = rerun.catalog
        rerun.recipe.write_text(RECIPE)
        self.profile = rerun.folder / "profile.toml"
        self.serve(server)
        rerun.put("a.mp4", "red")

    def serve(self, server: ChatServer, *lines: str) -> None:
        """Have the profile name this server."""
        self.server = server
        where = [f'endpoint = "{server.url}"', "patience_seconds = 0.5", "concurrency = 2", *lines]
        self.profile.write_text("\n".join([f'[engines."{MODEL}"]', *where]))

    def index(self, *options: object, catalog: Path | None = None):
        """Run the command; its streams as one text without line breaks, its code, and how often it asked."""
        before = len(self.server.asked)
        to = ("--catalog", catalog or self.catalog)
        run = self.evicat(
            "index", self.rerun.media, *to, "--recipe", self.rerun.recipe, "--profile", self.profile, *options
        )
        return run.code, " ".join(f"{run.out} {run.err}".split()), len(self.server.asked) - before

    def outcomes(self) -> dict[str, int]:
        rows = self.rerun.coverage()
        return dict(rows.group_by("outcome").len().iter_rows()) if len(rows) else {}


@pytest.fixture
def shelf(rerun, evicat, server) -> Shelf:
    return Shelf(rerun, evicat, server)


def test_every_window_is_asked_once_and_a_second_run_asks_nothing_even_with_the_server_off(shelf) -> None:
    assert shelf.index()[::2] == (0, WINDOWS + TRIALS)
    entries = Catalog.open(str(shelf.catalog)).entries("a.mp4")
    assert entries["kind"].value_counts().sort("kind").rows() == [("local", 4), ("narrative", 2)]
    assert all("imulated" in text for text in entries["text"])
    assert set(shelf.rerun.coverage()["completion_tokens"]) == {5}
    shelf.server.close()
    code, said, _ = shelf.index()
    assert code == 0, said


def test_a_server_that_is_off_ends_the_run_with_advice_and_leaves_all_windows_pending(
    shelf, equal_part, server
) -> None:
    server.close()
    code, said, _ = shelf.index()
    assert code == 3
    assert f"EngineDown: the server of '{MODEL}' at {server.url} has not answered" in said
    assert "run the same command once more" in said
    assert shelf.outcomes() == {}
    with ChatServer() as again:
        shelf.serve(again)
        assert shelf.index()[::2] == (0, WINDOWS + TRIALS)
        assert shelf.index(catalog=shelf.rerun.folder / "unbroken")[0] == 0
    assert equal_part(shelf.catalog).equals(equal_part(shelf.rerun.folder / "unbroken"))


@pytest.mark.parametrize("answered", [1, 3, 5])
def test_a_server_that_dies_on_the_way_costs_no_window_that_was_answered(shelf, server, answered) -> None:
    server.faults += [Fault()] * (TRIALS + answered)
    server.always = Fault(drops=True)
    code, said, _ = shelf.index()
    assert (code, "EngineDown" in said) == (3, True)
    with ChatServer() as again:
        shelf.serve(again)
        assert shelf.index()[::2] == (0, WINDOWS - answered + TRIALS)
    assert shelf.outcomes() == {"done": WINDOWS}


def test_another_model_than_the_recipe_names_is_wrong_usage_before_anything_is_asked(shelf, server) -> None:
    server.settings.model = "lab/other"
    code, said, asked = shelf.index()
    assert (code, asked) == (2, 0)
    assert f"runs 'lab/other', but the recipe asks for '{MODEL}'" in said


def test_a_server_without_schemas_says_what_to_write_and_then_works(shelf, server) -> None:
    server.settings.takes_schema = False
    code, said, asked = shelf.index()
    assert (code, asked) == (2, 2), "once as it is, once without schema"
    assert 'structured = "json_object" or "none"' in said
    assert shelf.outcomes() == {}
    shelf.serve(server, 'options = { structured = "none" }')
    code, said, _ = shelf.index()
    assert code == 3, "its made-up text is no JSON"
    assert shelf.outcomes() == {"failed": WINDOWS}


def test_a_request_that_is_refused_costs_its_window_alone(shelf, server) -> None:
    server.faults += [Fault()] * TRIALS + [Fault(status=400)]
    code, _, asked = shelf.index()
    assert (code, asked) == (3, WINDOWS + TRIALS)
    assert shelf.outcomes() == {"failed": 1, "done": WINDOWS - 1}
    (failed,) = shelf.rerun.coverage().filter(pl.col("outcome") == "failed").to_dicts()
    assert failed["error_class"] == "Request"
    assert shelf.index("--retry", "failed")[::2] == (0, 1 + TRIALS)
    assert shelf.outcomes() == {"done": WINDOWS}


def test_the_key_is_in_no_file_and_no_message(shelf, server, monkeypatch, capfd) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.settings.key = SECRET
    server.faults += [Fault()] * TRIALS + [
        Fault(status=400, body={"error": {"message": f"{SECRET} may not do this"}})
    ]
    code, said, _ = shelf.index("--verbose")
    assert (code, server.keys) == (3, {SECRET})
    assert {row["message"] for row in shelf.rerun.coverage().to_dicts() if row["outcome"] == "failed"} == {
        f"the server of '{MODEL}' at {server.url} refuses this request (400): (key) may not do this"
    }
    files = [path for path in shelf.rerun.folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in said + "".join(capfd.readouterr())


def test_where_the_model_runs_is_no_part_of_what_made_the_entries(shelf, server) -> None:
    assert shelf.index()[0] == 0
    with ChatServer(model="eye") as other:
        shelf.serve(other, 'alias = "eye"', "timeout_seconds = 50", 'options = { structured = "none" }')
        assert shelf.index()[::2] == (0, 0)
