import pytest
from pydantic import ValidationError

from evicat.schemas.entry import Outcome
from evicat.schemas.records import LocalRecord, ObjectBox, SpeechSegment


def test_a_box_must_have_an_area_and_lie_in_the_picture() -> None:
    box = {"time_s": 1.0, "name": "sign", "x1": 10, "y1": 10, "x2": 20, "y2": 20}
    assert ObjectBox(**box).x2 == 20
    with pytest.raises(ValidationError, match="is empty"):
        ObjectBox(**box | {"x2": 10})
    with pytest.raises(ValidationError, match="less than or equal to 1000"):
        ObjectBox(**box | {"x2": 1001})


def test_unknown_fields_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        LocalRecord(scene="a room", mood="dark")


def test_an_empty_record_is_one_with_a_scene_alone() -> None:
    assert LocalRecord(scene="Nothing is visible.").is_empty()
    assert not LocalRecord(scene="A room.", colours=("red",)).is_empty()


@pytest.mark.parametrize(("start", "end"), [(2.0, 2.0), (3.0, 2.0), (-1.0, 2.0), (float("nan"), 2.0)])
def test_impossible_segments_are_refused(start: float, end: float) -> None:
    with pytest.raises(ValidationError, match="need 0 <= start < end"):
        SpeechSegment(start_s=start, end_s=end, text="hi", source="test")


def test_only_finished_work_writes_entries() -> None:
    assert [o.value for o in Outcome if o.writes_entries] == ["done", "partial"]
