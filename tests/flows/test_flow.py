"""What Prefect sees of a run: its tasks, its state, its artifact."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from uuid import UUID

import pytest
from prefect.artifacts import Artifact
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

from evicat.flows.ingest import OBSERVER, ingest
from evicat.storage.reader import Reader

RECIPE = """
name = "flow"
[[scales]]
kind = "local"
window_seconds = 4
describer = "sight"
frames = { per_window = 2, max_width = 128 }
options = { ocr_frames = 0 }
"""


@pytest.fixture
def order(tmp_path: Path, evicat_samples: Path) -> list[str]:
    """Two videos, a copy of one, and a file that is none; catalog and recipe."""
    media = tmp_path / "media"
    media.mkdir()
    for name, sample in (("a.mp4", "phone.mp4"), ("b.mp4", "street.mp4"), ("copy of a.mp4", "phone.mp4")):
        shutil.copy(evicat_samples / sample, media / name)
    (media / "broken.mp4").write_text("not a video")
    (tmp_path / "flow.toml").write_text(RECIPE)
    return [str(media), str(tmp_path / "catalog"), str(tmp_path / "flow.toml")]


class Counter:
    """Observes a run."""

    def __init__(self) -> None:
        self.seconds = {"planned": 0.0, "advanced": 0.0}

    def planned(self, stage: str, seconds: float) -> None:
        self.seconds["planned"] += seconds

    def advanced(self, stage: str, seconds: float) -> None:
        self.seconds["advanced"] += seconds


def recorded_tasks(run_id: UUID, count: int) -> list[str]:
    """Names of a run's tasks. The server takes them down from events, some after the run has ended."""
    ours = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
    end_s = time.monotonic() + 60
    with get_client(sync_client=True) as client:
        while len(runs := client.read_task_runs(flow_run_filter=ours)) < count and time.monotonic() < end_s:
            time.sleep(0.1)
    return sorted(run.name.split()[0] for run in runs)


def test_a_run_with_failures_ends_under_that_name_with_one_task_per_stage_and_an_artifact(
    prefect_server, order
) -> None:
    media, catalog, recipe = order
    observer = Counter()
    token = OBSERVER.set(observer)
    try:
        state = ingest([media], catalog, recipe, return_state=True)
    finally:
        OBSERVER.reset(token)
    summary = state.result()
    assert state.name == "FinishedWithFailures"
    assert state.is_completed()
    assert sorted(summary.made) in (["a.mp4", "b.mp4"], ["b.mp4", "copy of a.mp4"])
    assert (summary.copies, list(summary.failures)) == (1, ["broken.mp4"])
    assert observer.seconds["advanced"] == pytest.approx(observer.seconds["planned"])
    assert observer.seconds["planned"] > 10

    run_id = state.state_details.flow_run_id
    stages = sorted(["probe"] * 3 + ["transcribe", "see", "narrate", "support", "embed"] * 2)
    assert recorded_tasks(run_id, len(stages)) == stages
    assert set(Reader.open(catalog).dataset("coverage").to_table()["run_id"].to_pylist()) == {str(run_id)}

    artifact = Artifact.get("evicat-ingest")
    assert artifact.flow_run_id == run_id
    assert "Finished with failures" in artifact.data
    assert "broken.mp4" in artifact.data
    assert "| local-4s | done | 4 | 4 |" in artifact.data


def test_a_run_without_failures_is_completed_and_a_second_makes_no_task(prefect_server, order) -> None:
    media, catalog, recipe = order
    (Path(media) / "broken.mp4").unlink()
    assert ingest([media], catalog, recipe, return_state=True).name == "Completed"
    again = ingest([media], catalog, recipe, return_state=True)
    assert again.result().unchanged == 2
    with get_client(sync_client=True) as client:
        ids = FlowRunFilter(id=FlowRunFilterId(any_=[again.state_details.flow_run_id]))
        assert client.read_task_runs(flow_run_filter=ids) == []
