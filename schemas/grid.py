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
    if length_us <= 0 or duration_us < 0:
        raise ValueError(
            f"need length > 0 and duration >= 0, got length={length_us} us, duration={duration_us} us"
        )
    if duration_us == 0:
        return []
    starts = list(range(0, duration_us, length_us))
    if len(starts) > 1:
        remainder = duration_us - starts[-1]
        if remainder < US and remainder * 10 < length_us:
            starts.pop()
    return [Span(start, end) for start, end in zip(starts, [*starts[1:], duration_us], strict=True)]


def chunks(grid: list[Span], length_us: int = CHUNK_US) -> list[list[Span]]:
    """Runs of whole windows of about ``length_us``: what is described, staged and retried together."""
    runs: dict[int, list[Span]] = {}
    for window in grid:
        runs.setdefault(window.start_us // length_us, []).append(window)
    return list(runs.values())
