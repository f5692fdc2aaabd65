"""The ledger as the command line shows it, and its proofs over real runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import lance
import pytest

from evicat.catalog.audit import audit
from evicat.catalog.strips import MARKS, PENDING, WIDTH, plain, strip
from evicat.flows.status import FAILURES
from evicat.schemas.entry import Outcome
from evicat.schemas.errors import WindowError
from evicat.storage.head import read_head, write_head
from evicat.storage.layout import Layout
from evicat.storage.reader import Reader


def lines(run) -> list[dict]:
    assert run.code == 0, run.err
    return [json.loads(line) for line in run.out.splitlines()]


# Strips


def test_every_outcome_has_a_character_of_its_own() -> None:
    assert set(MARKS) == {*(outcome.value for outcome in Outcome), PENDING}
    assert len({mark for mark, _ in MARKS.values()}) == len(MARKS)


def test_a_strip_is_equally_long_for_every_video_and_lies_along_it() -> None:
    halves = [(0.0, 30.0, "done"), (30.0, 60.0, "failed")]
    assert plain(strip(halves, 60.0)) == "#" * 30 + "X" * 30
    assert plain(strip([(0.0, 0.5, "empty")], 0.5)) == "-" * WIDTH
    assert strip([], 0.0) == []


def test_what_nothing_covers_is_pending_however_short() -> None:
    assert plain(strip([], 60.0)) == "." * WIDTH
    gap = [(0.0, 600.0, "done"), (601.0, 3600.0, "done")]
    assert plain(strip(gap, 3600.0)) == "#" * 10 + "." + "#" * 49
    assert plain(strip([(0.0, 59.0, "done")], 60.0)) == "#" * 59 + "."


@pytest.mark.parametrize("worse", ["failed", "refused", "stale", "no_frames", "partial", "empty"])
def test_a_cell_with_several_outcomes_shows_the_worst(worse: str) -> None:
    rows = [(float(start), start + 1.0, "done") for start in range(3600)]
    rows[125] = (125.0, 126.0, worse)
    assert plain(strip(rows, 3600.0)) == "##" + MARKS[worse][0] + "#" * 57


# The ledger


@pytest.fixture
def failing(rerun):
    """Two videos; of one of them a local window failed, whose message looks like markup."""
    return fail_once(rerun)


@pytest.fixture(scope="module")
def failed(new_rerun, count_calls, tmp_path_factory):
    """The same for tests that change nothing of it."""
    with pytest.MonkeyPatch.context() as patch:
        made = new_rerun(tmp_path_factory.mktemp("failed") / "library")
        count_calls(made, patch)
        return fail_once(made)


def fail_once(rerun):
    rerun.put("red.mp4", "red")
    rerun.put("deep/blue.mp4", "blue")
    rerun.index(rerun.media / "red.mp4")
    rerun.failing["sight", 2] = WindowError("no [bold]answer[/bold]")
    rerun.index()
    rerun.failing.clear()
    return rerun


def test_status_shows_units_strips_and_what_failed(evicat, failed) -> None:
    out = evicat("status", "blue.mp4", "--catalog", failed.catalog).out
    assert "3 done, 1 failed" in out
    assert re.search(r"local-2s +\|#{15}X{15}#{30}\|", out)
    assert ". pending" in out
    assert "X failed" in out
    assert "deep/blue.mp4 local-2s 0:00:02.000-0:00:04.000: Window: no [bold]answer[/bold]" in out
    assert "red.mp4" not in out
    assert "|" not in evicat("status", "--catalog", failed.catalog).out
    every = evicat("status", "--strips", "--catalog", failed.catalog).out
    assert len(re.findall(r"\|[^|]{60}\|$", every, re.MULTILINE)) == 6
    unknown = evicat("status", "green.mp4", "--catalog", failed.catalog)
    assert unknown.code == 2
    assert "unknown video 'green.mp4'" in unknown.err


def test_status_as_json_says_the_same(evicat, failed) -> None:
    blue, red = lines(evicat("status", "--json", "--strips", "--catalog", failed.catalog))
    assert (blue["video"], red["video"]) == ("deep/blue.mp4", "red.mp4")
    assert red["failures"] == []
    assert [row["message"] for row in blue["failures"]] == ["no [bold]answer[/bold]"]
    local = next(unit for unit in blue["units"] if unit["kind"] == "local")
    assert local["outcomes"] == {"done": 3, "failed": 1}
    assert local["strip"] == "#" * 15 + "X" * 15 + "#" * 30
    assert local["active"] is True
    assert "strip" not in lines(evicat("status", "--json", "--catalog", failed.catalog))[0]["units"][0]


def test_many_failures_are_counted(evicat, rerun) -> None:
    for number in range(6):
        clip = rerun.put(f"{number}.mp4")
        clip.write_bytes(clip.read_bytes() + bytes(number + 1))  # other bytes, same picture
    rerun.failing = {("sight", start): WindowError(f"at {start}") for start in range(0, 8, 2)}
    rerun.index()
    out = evicat("status", "--catalog", rerun.catalog).out
    assert out.count("Window: at") == FAILURES
    assert "and 4 more windows failed" in out


def test_a_missing_file_is_shown_with_its_units(evicat, failing) -> None:
    (failing.media / "red.mp4").unlink()
    failing.index()
    assert "red.mp4 missing since" in evicat("status", "--catalog", failing.catalog).out
    (red,) = lines(evicat("status", "red.mp4", "--catalog", failing.catalog, "--json"))
    assert red["missing_since"]
    assert red["units"][0]["strip"].count(".") == 0


def test_a_producer_that_is_not_active_is_marked(evicat, failing) -> None:
    failing.recipe.write_text(failing.recipe.read_text().replace("max_width = 64", "max_width = 48"))
    failing.index()
    blue, _ = lines(evicat("status", "--json", "--catalog", failing.catalog))
    active = [unit["active"] for unit in blue["units"] if unit["kind"] == "local"]
    assert sorted(active) == [False, True]
    assert "(not active)" in evicat("status", "--catalog", failing.catalog).out


def test_a_window_that_took_two_attempts_is_counted(evicat, failed, tmp_path: Path) -> None:
    layout = Layout.of(shutil.copytree(failed.catalog, tmp_path / "catalog"))
    table = layout.table("coverage")
    written = lance.dataset(str(table))
    written.update({"attempts": "3"}, where="kind = 'local' AND start_s = 2.0")
    head = read_head(layout.head)
    version = lance.dataset(str(table)).version
    write_head(layout, head.following(head.tables | {"coverage": version}))
    blue, _ = lines(evicat("status", "--json", "--catalog", tmp_path / "catalog"))
    assert [unit["retried"] for unit in blue["units"] if unit["kind"] == "local"] == [1]


# Proofs


def holds(catalog: Path) -> list[str]:
    """What the proofs say against a catalog."""
    return [
        f"{proof.name}: {case.what}" for proof in audit(Reader.open(catalog)).proofs for case in proof.cases
    ]


@pytest.mark.slow
def test_all_holds_after_failures_retries_other_recipes_and_changed_files(failing) -> None:
    assert holds(failing.catalog) == []
    failing.index(retry=("failed",))
    assert holds(failing.catalog) == []
    failing.put("red.mp4", "grey")
    failing.index()
    assert holds(failing.catalog) == []
    (failing.media / "red.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nWords.\n")
    assert [case[:20] for case in holds(failing.catalog)] == ["inputs: out of date:"]
    failing.index()
    assert holds(failing.catalog) == []
    failing.recipe.write_text(failing.recipe.read_text().replace("max_width = 64", "max_width = 48"))
    failing.index()
    assert holds(failing.catalog) == []


@pytest.mark.slow
def test_all_holds_after_a_run_that_was_stopped_at_a_limit(rerun) -> None:
    rerun.put("red.mp4", "red")
    rerun.put("blue.mp4", "blue")
    for _ in range(4):
        rerun.index(limit_windows=3)
        assert holds(rerun.catalog) == []


@pytest.mark.slow
def test_all_holds_for_a_library_by_the_default_recipe(evicat, indexed: Path) -> None:
    run = evicat("status", "--check", "--catalog", indexed)
    assert run.code == 0, run.out
    assert run.out.count("holds ") == 11
    assert "All hold, at head" in run.out


def test_what_does_not_hold_is_named_and_the_exit_code_says_so(evicat, failed, tmp_path: Path) -> None:
    catalog = Path(shutil.copytree(failed.catalog, tmp_path / "broken"))
    layout = Layout.of(catalog)
    lance.dataset(str(layout.table("entries"))).delete("kind = 'local' AND start_s = 4.0")
    head = read_head(layout.head)
    version = lance.dataset(str(layout.table("entries"))).version
    write_head(layout, head.following(head.tables | {"entries": version}))
    run = evicat("status", "--check", "--catalog", catalog)
    assert run.code == 1
    assert re.search(r"broken +entries: ", run.out)
    unit = r"\(unit [0-9a-f]{32}\)"
    window = rf"deep/blue\.mp4 local-2s 0:00:04\.000-0:00:06\.000 {unit}: has 0 entries, its row says 1"
    assert re.search(window, run.out)
    told = {line["proof"]: line for line in map(json.loads, _json(evicat, catalog))}
    assert told["entries"]["holds"] is False
    assert told["entries"]["broken"] == 2
    assert {case["video"] for case in told["entries"]["cases"]} == {"deep/blue.mp4", "red.mp4"}
    assert told["vectors"]["holds"] is True


def _json(evicat, catalog: Path) -> list[str]:
    run = evicat("status", "--check", "--json", "--catalog", catalog)
    assert run.code == 1
    return run.out.splitlines()


def test_check_takes_no_video(evicat) -> None:
    run = evicat("status", "red.mp4", "--check", "--catalog", "any")
    assert run.code == 2
    assert "takes no VIDEO" in run.err
