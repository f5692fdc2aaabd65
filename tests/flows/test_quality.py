"""``evicat quality``: the printed card, and the gate."""

import json
from dataclasses import replace

import pytest

from evicat.catalog.describers.vlm_narrative import VlmNarrative
from evicat.catalog.query import Catalog
from evicat.schemas.errors import WindowError


@pytest.fixture(scope="module")
def library(new_rerun, tmp_path_factory):
    library = new_rerun(tmp_path_factory.mktemp("quality"))
    library.put("clip.mp4")
    assert library.index().all_done
    return library


def test_the_card_says_first_what_is_worth_a_look(library, evicat):
    run = evicat("quality", "--catalog", library.catalog)
    assert (run.code, run.err) == (0, "")
    assert "local-2s by sight" in run.out
    assert "0: failed_share" in run.out
    assert "windows that failed" not in run.out, "what is in order is not explained"
    full = evicat("quality", "--all", "--catalog", library.catalog)
    assert "windows that failed or were refused" in full.out
    assert "good: <= 0.02" in full.out
    rows = map(json.loads, evicat("quality", "--json", "--catalog", library.catalog).out.splitlines())
    values = {(row["component"], row["measure"]): row["value"] for row in rows}
    assert values["sight", "failed_share"] == 0
    assert values["sight", "repeated_share"] == 0, "no two colours read alike"


def test_what_is_doubtful_is_explained(rerun, evicat):
    rerun.put("clip.mp4")
    rerun.failing = {("sight", 0): WindowError("no answer")}
    rerun.index()
    run = evicat("quality", "--catalog", rerun.catalog)
    assert "failed_share 0.25 n=4 windows that failed or were refused" in " ".join(run.out.split())
    assert "worth a look" in run.out


def test_windows_are_described_again_and_from_grey_frames(library, evicat):
    ask = ("quality", "--redescribe", "1%", "--blank", "--recipe", library.recipe)
    run = evicat(*ask, "--json", "--catalog", library.catalog)
    assert run.code == 0
    assert "Describing again: at most 12 calls for 6 windows of 1 video" in " ".join(run.err.split())
    rows = [json.loads(line) for line in run.out.splitlines()]
    values = {(row["component"], row["measure"]): row["value"] for row in rows}
    assert values["sight", "again_same_share"] == values["digest", "again_words"] == 1
    assert values["sight", "blank_share"] < 1
    assert evicat(*ask, "--gate", "again_words=1", "--catalog", library.catalog).code == 0
    bounded = evicat(*ask, "--max-calls", 4, "--catalog", library.catalog)
    assert "at most 4 calls for 2 windows" in " ".join(bounded.err.split())


LOOKS_AWAY = """
name = "looks-away"
[[scales]]
kind = "narrative"
window_seconds = 2
describer = "vlm-narrative"
frames = { per_window = 2, max_width = 64 }
options = { model = "m" }
"""


def test_what_is_said_of_grey_frames_and_said_otherwise_is_printed(rerun, evicat, monkeypatch):
    script, profile = rerun.folder / "answers.jsonl", rerun.folder / "profile.toml"
    script.write_text('{"answer": {"narrative": "A man waits in a room.", "cast": []}}\n')
    profile.write_text(f'[engines."*"]\nengine = "scripted"\noptions = {{ file = "{script}" }}\n')
    rerun.recipe.write_text(LOOKS_AWAY)
    rerun.put("clip.mp4")
    rerun.profile = str(profile)
    rerun.index()
    ask = ("quality", "--recipe", rerun.recipe, "--profile", profile, "--catalog", rerun.catalog)
    run = evicat(*ask, "--blank", "--gate", "blank_share=0.5")
    assert run.code == 1
    assert "Said of grey frames too (windows) A man waits in a room. (2)" in " ".join(run.out.split())
    assert "blank_share is 1, wanted <= 0.5: narrative-2s by vlm-narrative" in run.err

    real = VlmNarrative.describe
    monkeypatch.setattr(VlmNarrative, "describe", lambda *asked: replace(real(*asked), text="Rain falls."))
    told = " ".join(evicat(*ask, "--redescribe", "100%").out.split())
    assert "Described otherwise the second time" in told
    assert "A man waits in a room. Rain falls." in told


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--redescribe", "many"), "not a share of windows: 'many'"),
        (("--redescribe", "1%"), "recipe default (with this profile) makes"),
        (("--max-calls", "5"), "--max-calls bounds --redescribe and --blank"),
        (("--redescribe", "1%", "--blank", "--max-calls", "1"), "2 calls a window"),
        (("--gold", "nowhere.jsonl"), "cannot read gold texts nowhere.jsonl"),
        (("--recipe", "video-holmes"), "give --redescribe or --blank too"),
        (("--media-root", "."), "give --redescribe, --blank or --motion too"),
    ],
)
def test_what_cannot_be_asked_is_told(library, evicat, options, says):
    run = evicat("quality", *options, "--catalog", library.catalog)
    assert run.code == 2
    assert says in " ".join(run.err.split())


def test_gold_texts_and_motion_have_their_rows(library, evicat, tmp_path):
    seen = Catalog.open(str(library.catalog)).entries(kind="local").to_dicts()
    gold = [
        {"video": "clip.mp4", **{name: row[name] for name in ("start_s", "end_s", "text")}} for row in seen
    ]
    gold.append({"video": "clip.mp4", "start_s": 9000, "end_s": 9004, "text": "far behind"})
    file = tmp_path / "gold.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in gold))
    run = evicat("quality", "--gold", file, "--motion", "--catalog", library.catalog)
    assert run.code == 0
    assert "gold texts fit" in run.out
    assert "1 gold text ends after the end of the video; the first is at 9000 to 9004 s" in run.err
    file.write_text(json.dumps(gold[-1] | {"text": " "}))
    blank = evicat("quality", "--gold", file, "--catalog", library.catalog)
    assert (blank.code, "text must say something" in " ".join(blank.err.split())) == (2, True)
    assert "unseen_s" in run.out


def test_videos_that_are_gone_end_with_3(rerun, evicat):
    rerun.put("clip.mp4")
    rerun.index()
    (rerun.media / "clip.mp4").unlink()
    for asked in (("--motion",), ("--redescribe", "1%", "--recipe", rerun.recipe)):
        run = evicat("quality", *asked, "--catalog", rerun.catalog)
        assert run.code == 3
        assert "1 of 1 video could not be looked at" in " ".join(run.err.split())
    gated = evicat("quality", "--motion", "--gate", "words_median=1000", "--catalog", rerun.catalog)
    assert gated.code == 1


def test_a_gate_that_is_broken_ends_with_1_and_names_the_producer(library, evicat):
    kept = evicat("quality", "--gate", "failed_share=0", "--catalog", library.catalog)
    assert (kept.code, kept.err) == (0, "")
    broken = evicat("quality", "--gate", "words_median=1000", "--catalog", library.catalog)
    assert broken.code == 1
    assert "words_median is" in broken.err
    assert "wanted >= 1000: local-2s by sight" in broken.err


def test_a_gate_on_what_nobody_has_proves_nothing(library, evicat):
    run = evicat("quality", "--gate", "bare_share=0.1", "--catalog", library.catalog)
    assert run.code == 2
    assert "measured of no producer" in run.err
