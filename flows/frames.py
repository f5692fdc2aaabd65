"""Writing the frames that entries cite, wherever their media lies now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from evicat.catalog.cited_frames import Citation, write_frames
from evicat.catalog.media.frames import read_windows
from evicat.catalog.media.worker import WorkerPool
from evicat.catalog.media_files import MediaFiles
from evicat.catalog.query import Catalog
from evicat.schemas.asset import Asset
from evicat.schemas.errors import AssetError
from evicat.schemas.places import expanded
from evicat.schemas.recipe import Profile
from evicat.schemas.records import ObjectBox
from evicat.schemas.span import Span
from evicat.storage.create import check_not_within


@dataclass
class FrameReport:
    """What was written, and what was not, for people."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def headline(self) -> str:
        return f"{len(self.files)} cited frames are in {self.folder}"


def save_cited_frames(
    catalog: Catalog,
    video: str,
    folder: str | Path,
    *,
    media_roots: Sequence[str] = (),
    kind: str | None = None,
    between: Span | None = None,
    boxes: bool = False,
    profile: Profile | None = None,
) -> FrameReport:
    """Write the frames that the shown entries of ``video`` cite as JPEG files into ``folder``.

    Args:
        boxes: Whether the boxes of each entry are drawn on its frames.

    Raises:
        UsageError: no such video, or a media root that is no folder.
    """
    profile = profile or Profile()
    report = FrameReport(expanded(folder).absolute())
    check_not_within(report.folder)
    media = catalog.media_files(media_roots)
    with WorkerPool() as pool:
        decode = partial(
            read_windows, pool, timeout_s=profile.decode_timeout_seconds, decoder=profile.decoder
        )
        for asset_id, citations in _citations(catalog, video, kind, between, boxes=boxes):
            asset = catalog.asset(asset_id)
            path = media.find(asset) if asset else None
            if asset is None or path is None:
                report.problems.append(_not_found(video, asset_id, asset, media))
                continue
            try:
                written = write_frames(path, asset, citations, report.folder, decode=decode)
            except AssetError as error:
                report.problems.append(f"{path} was found, but cannot be decoded: {error}")
                continue
            report.files += written.files
            if written.not_decoded:
                first = written.not_decoded[0]
                report.problems.append(
                    f"{path}: {len(written.not_decoded)} cited frames do not decode any more; the first is "
                    f"PTS {first.pts} of entry {first.entry_id}"
                )
    return report


def _citations(
    catalog: Catalog, video: str, kind: str | None, between: Span | None, *, boxes: bool
) -> Iterator[tuple[str, Iterable[Citation]]]:
    """By asset, the frames that its shown entries cite, with the boxes in them where those are wanted."""
    drawn: dict[tuple[str, float], list[ObjectBox]] = defaultdict(list)
    if boxes:
        entries = catalog.entries(video, kind=kind, between=between).select("entry_id", "objects")
        for entry_id, objects in entries.iter_rows():
            for box in objects:
                drawn[entry_id, box["time_s"]].append(ObjectBox(**box))
    rows = catalog.cited_frames(video, kind=kind, between=between).to_dicts()
    for asset_id in catalog.asset_ids(video):
        own = [
            Citation(
                row["entry_id"],
                row["pts"],
                row["shown_width"],
                tuple(drawn.get((row["entry_id"], row["time_s"]), ())),
            )
            for row in rows
            if row["asset_id"] == asset_id
        ]
        if own:
            yield asset_id, own


def _not_found(video: str, asset_id: str, asset: Asset | None, media: MediaFiles) -> str:
    if asset is None:
        return f"the file of {video} (asset {asset_id}) could not be read when it was indexed"
    looked = ", ".join(media.looked_at(asset)) or "nowhere: this catalog knows no place of it"
    unreadable = f"; not readable: {', '.join(media.unreadable)}" if media.unreadable else ""
    return (
        f"the media of {video} was not found (asset {asset_id}, {asset.size_bytes} bytes). Looked in {looked}"
        f"{unreadable}. Name the folder that holds it, under whatever name, with --media-root"
    )
