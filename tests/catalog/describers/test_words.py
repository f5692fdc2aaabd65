import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.describers.words import (
    between,
    listed,
    one_line,
    sentence,
    short_span,
    short_time,
    with_article,
)
from evicat.schemas.span import Span, parse_time

HOURS_30_US = 30 * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("time_us", "expected"),
    [
        (0, "0:00.0"),
        (99_999, "0:00.0"),
        (31_267_000, "0:31.2"),
        (59_999_999, "0:59.9"),
        (60_000_000, "1:00.0"),
        (3_599_990_000, "59:59.9"),
        (3_723_250_000, "1:02:03.2"),
        (35_990_000_000, "9:59:50.0"),
    ],
)
def test_a_time_is_cut_to_its_tenth(time_us, expected):
    assert short_time(time_us) == expected


@given(st.integers(0, HOURS_30_US))
def test_printed_bounds_enclose_the_instant(time_us):
    low, high = parse_time(short_time(time_us)), parse_time(short_time(time_us, up=True))
    assert low <= time_us <= high
    assert high - low in (0, 100_000)


def test_bounds_and_spans():
    assert between(12_566_000, 13_601_000) == "between 0:12.5 and 0:13.7"
    assert short_span(Span(10_000_000, 20_000_001)) == "0:10.0-0:20.1"


def test_joining():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert one_line(" Hello,\n  you ") == "Hello, you"
    assert sentence("it moves") == "It moves."
    assert sentence("Really?") == "Really?"
    assert with_article("orange", "picture") == "an orange picture"
    assert with_article("", "picture") == "a picture"
