"""Small pieces of English that describers put their sentences together from."""

from __future__ import annotations

from collections.abc import Sequence

from evicat.schemas.span import US, Span

_TENTH_US = US // 10


def short_time(time_us: int, *, up: bool = False) -> str:
    """``31.267 s`` as ``0:31.2``, from an hour on ``1:02:03.2``: cut to the tenth of a second before it.

    Cutting keeps an instant inside its half-open window. ``up`` goes to the next tenth instead: for the
    later one of two bounds, so that what happened between them is still between their printed forms.
    """
    tenths = -(-time_us // _TENTH_US) if up else time_us // _TENTH_US
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{tenths // 10:02d}.{tenths % 10}"
    return f"{hours}:{minutes:02d}:{seconds}" if hours else f"{minutes}:{seconds}"


def short_span(span: Span) -> str:
    """``0:31.2-0:33.0``: a span that holds all of ``span``."""
    return f"{short_time(span.start_us)}-{short_time(span.end_us, up=True)}"


def between(earlier_us: int, later_us: int) -> str:
    """``between 0:12.5 and 0:13.7``."""
    return f"between {short_time(earlier_us)} and {short_time(later_us, up=True)}"


def listed(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *head, last = items
    return f"{', '.join(head)} and {last}" if head else last


def one_line(text: str) -> str:
    """``text`` with every run of blanks and line ends as one blank."""
    return " ".join(text.split())


def sentence(text: str) -> str:
    """``text`` with a capital letter at its start and a full stop at its end."""
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def with_article(adjective: str, noun: str) -> str:
    """``a dark picture``, ``an orange picture``; without an adjective ``a picture``."""
    words = f"{adjective} {noun}".strip()
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
