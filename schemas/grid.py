"""The window grid: spans of one length that tile a timeline without gap or overlap."""

from .span import US, Span

CHUNK_US = 600 * US


def windows(duration_us: int, length_us: int) -> list[Span]:
    """Tile ``[0, duration_us)`` with windows of ``length_us``.

    A remainder shorter than both 1 s and a tenth of the window joins the window before it; any other
    remainder is a window of its own. A timeline shorter than one window is one window.

    Raises:
        ValueError: ``length_us`` is not positive, or ``duration_us`` is negative.
    """
    starts = _starts(duration_us, length_us)
    ends = [*starts[1:], duration_us] if starts else []
    return [Span(start, end) for start, end in zip(starts, ends, strict=True)]


def count_windows(duration_us: int, length_us: int) -> int:
    """How many :func:`windows` there are; raises as it does."""
    return len(_starts(duration_us, length_us))


def _starts(duration_us: int, length_us: int) -> range:
    """Where the windows begin."""
    if length_us <= 0 or duration_us < 0:
        raise ValueError(
            f"need length > 0 and duration >= 0, got length={length_us} us, duration={duration_us} us"
        )
    starts = range(0, duration_us, length_us)
    if len(starts) > 1:
        remainder = duration_us - starts[-1]
        if remainder < US and remainder * 10 < length_us:
            return starts[:-1]
    return starts


def chunks(grid: list[Span], length_us: int = CHUNK_US) -> list[list[Span]]:
    """Runs of whole windows of about ``length_us``: what is described, staged and retried together."""
    runs: dict[int, list[Span]] = {}
    for window in grid:
        runs.setdefault(window.start_us // length_us, []).append(window)
    return list(runs.values())
