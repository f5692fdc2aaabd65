"""crop_video: frames of an interval at one of three densities (Open-o3-Video-v2). Never repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from evicat.catalog.media.frames import frame_times
from evicat.readers.base import Arguments, Returned, Seconds, Tool
from evicat.readers.looking import check_inside, references
from evicat.schemas.span import US, Span

if TYPE_CHECKING:
    from evicat.readers.session import Session

Density = Literal["coarse", "medium", "fine"]
FPS: Final[dict[Density, int]] = {"coarse": 1, "medium": 2, "fine": 4}
CAPS: Final[dict[Density, int]] = {"coarse": 8, "medium": 16, "fine": 32}
MOST: Final = 96


class CropVideoArguments(Arguments):
    start_time: Seconds
    end_time: Seconds
    sampling_strategy: Density


def crop_times(span: Span, density: Density, sampler: Literal["fps", "cap"]) -> tuple[int, ...]:
    """Instants in microseconds, inside ``span``: the middles of equal parts of it.

    ``fps`` takes 1, 2 or 4 a second, at most 96; ``cap`` takes 8, 16 or 32, however long the span is.
    """
    if sampler == "cap":
        return frame_times(span, CAPS[density])
    return frame_times(span, min(MOST, max(1, round(span.duration_us / US * FPS[density]))))


class CropVideo(Tool[CropVideoArguments]):
    """Which sampler it uses is a limit of the session."""

    name = "crop_video"
    description = (
        "See an interval of the video (seconds) again, at a coarse, medium or fine sampling of frames."
    )
    Arguments = CropVideoArguments

    def run(self, session: Session, arguments: CropVideoArguments) -> Returned:
        start, end = arguments.start_time, arguments.end_time
        check_inside(session, start, end)
        n = len(
            crop_times(
                Span.from_seconds(start, end), arguments.sampling_strategy, session.limits.crop_sampler
            )
        )
        found = session.catalog.frames(
            session.video, (start, end), n=n, max_frames=MOST, width=session.limits.width
        )
        frames = tuple(found)
        return Returned(
            f"{len(frames)} frames of {start:g}-{end:g} s",
            frames,
            spans=((start, end),),
            frames=references(frames),
        )
