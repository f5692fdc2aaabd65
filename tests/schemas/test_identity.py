import pytest

from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id

BASE = Producer(
    kind="local",
    scale="local-10s",
    component="sight",
    version=1,
    model=ModelRef(name="m", digest="d"),
    options={"a": 1},
)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "narrative"},
        {"scale": "local-4s"},
        {"component": "other"},
        {"version": 2},
        {"model": None},
        {"model": ModelRef(name="m", digest="e")},
        {"model": ModelRef(name="m", digest="d", quantization="int8")},
        {"options": {"a": 2}},
        {"reads": ("x",)},
    ],
)
def test_whatever_changes_an_output_changes_the_producer(change: dict[str, object]) -> None:
    assert BASE.model_copy(update=change).producer_id != BASE.producer_id


def test_same_weights_from_elsewhere_are_the_same_producer() -> None:
    copy = BASE.model_copy(update={"model": ModelRef(name="/somewhere/else", revision="r", digest="d")})
    assert copy.producer_id == BASE.producer_id


def test_order_of_options_does_not_matter() -> None:
    one = BASE.model_copy(update={"options": {"a": 1, "b": 2}})
    two = BASE.model_copy(update={"options": {"b": 2, "a": 1}})
    assert one.producer_id == two.producer_id


def test_entry_ids_sort_in_time_beyond_ten_hours() -> None:
    unit = Unit(asset_id="a" * 32, producer_id=BASE.producer_id, kind="local", scale="local-10s")
    hours = [entry_id(unit, h * 3_600_000_000, 0) for h in (0, 1, 2, 10, 99)]
    assert hours == sorted(hours)
    assert len(set(hours)) == len(hours)


def test_a_condition_is_part_of_the_entry_id() -> None:
    unit = Unit(
        asset_id="a" * 32, producer_id="b" * 32, kind="local", scale="local-10s", condition_id="c" * 32
    )
    assert entry_id(unit, 5, 0) == f"{'a' * 12}.{'b' * 8}.{'c' * 8}.local-10s.00000000000005.00"


def test_a_changed_copy_has_an_id_of_its_own():
    before = BASE.producer_id
    assert BASE.model_copy(update={"version": 2}).producer_id != before
    assert BASE.model_copy().producer_id == before


def test_an_id_that_was_asked_for_is_no_part_of_the_value():
    fresh = Producer.model_validate(BASE.model_dump())
    assert BASE.producer_id
    assert fresh == BASE
    assert fresh.model_dump_json() == BASE.model_dump_json()


@pytest.mark.parametrize("value", [object(), {"a", "b"}, float("nan"), float("inf"), b"bytes"])
def test_what_cannot_be_hashed_is_an_error_and_never_no_key(value: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"not JSON (serializable|compliant)"):
        _ = BASE.model_copy(update={"options": {"a": value}}).producer_id
