import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.schemas.span import Span, format_time, parse_time, to_us

TIMES = st.integers(min_value=0, max_value=200 * 3600 * 1_000_000)


@given(TIMES)
def test_printed_time_parses_back(us: int) -> None:
    assert parse_time(format_time(us)) == us


@given(TIMES)
def test_seconds_are_an_exact_inverse(us: int) -> None:
    assert to_us(us / 1e6) == us


@given(TIMES, st.integers(min_value=1, max_value=10**10))
def test_printed_span_parses_back(start: int, length: int) -> None:
    span = Span(start, start + length)
    assert Span.parse(str(span)) == span


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("1:02:03.250", 3_723_250_000),
        ("02:03", 123_000_000),
        ("63.5", 63_500_000),
        ("0", 0),
        ("90", 90_000_000),
    ],
)
def test_forms_of_a_time(text: str, us: int) -> None:
    assert parse_time(text) == us


@pytest.mark.parametrize("text", ["", "abc", "-3", "1:75", "1:61:00", "1:2:3:4", "nan", "1e3"])
def test_what_is_no_time_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(ValueError, match="not a time") as error:
        parse_time(text)
    assert repr(text) in str(error.value)


@pytest.mark.parametrize("text", ["30", "0:30:1:30", "1:2:3", "1-2-3", "", "-5:3", "5--3"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (span|time)"):
        Span.parse(text)


def test_between_takes_plain_seconds_and_clock_times() -> None:
    assert (
        Span.parse("30:90") == Span.parse("30-90") == Span.parse("0:30-1:30") == Span(30_000_000, 90_000_000)
    )


@pytest.mark.parametrize(("start", "end"), [(3.0, 3.0), (3.0, 2.0), (-1.0, 2.0)])
def test_impossible_spans_print_their_values(start: float, end: float) -> None:
    with pytest.raises(ValueError, match=f"got start={start}"):
        Span.from_seconds(start, end)


def test_a_boundary_belongs_to_the_later_span() -> None:
    early, late = Span(0, 10), Span(10, 20)
    assert 10 not in early
    assert 10 in late
    assert early.overlap_us(late) == 0
    assert early.clip(late) is None
    assert Span(5, 15).clip(late) == Span(10, 15)
