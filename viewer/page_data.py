"""The page of one video, read from a catalog; its pictures excepted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from evicat.catalog.query import Catalog
from evicat.schemas.asset import ASSET_FLAGS, Asset

from .page_makers import makers_of
from .page_model import PageBox, PageEntry, PageFrame, PageLink, PageSentence, VideoPage
from .page_places import placeless
from .page_tracks import Track, drawn_tracks, made_tracks, sound_track
from .page_words import clock, exact_clock, made_from, record_pairs, size_words, spoken_words

__all__ = ["VideoPage", "video_page"]

SOUND = "sound"


def video_page(catalog: Catalog, video: str) -> VideoPage:
    """Read the page of ``video``: its name, the end of its path, or an asset id.

    Raises:
        UsageError: no video has this name, or it is the end of several.
    """
    row, names = _named(catalog, video)
    asset_id = row["asset_id"]
    asset = catalog.asset(asset_id)
    makers = makers_of(catalog, asset_id)
    duration_s = row["duration_s"] or 0.0
    rows = catalog.entries(asset_id).sort("start_s", pl.col("end_s").neg(), "kind", "entry_id").to_dicts()
    made = () if row["missing_since"] else made_tracks(catalog, asset_id, makers, duration_s)
    tracks = _with_sound(made, rows)
    entries = tuple(_entries(rows, tracks, [maker.producer_id for maker in makers]))
    drawn = drawn_tracks(rows, [_screen_text(entry) for entry in entries])
    return VideoPage(
        video=names[0],
        names=names,
        asset_id=asset_id,
        duration_s=duration_s,
        width=row["width"],
        height=row["height"],
        facts=_facts(asset) if asset else (),
        problems=tuple(map(placeless(catalog), _problems(row, asset))),
        catalog=catalog.uri.rstrip("/").rpartition("/")[2],
        head=catalog.version,
        written=catalog.written,
        snapshot=catalog.snapshot,
        view=catalog.view_name,
        makers=makers,
        tracks=(*tracks, *drawn),
        entries=entries,
        sentences=tuple(_sentences(catalog, asset_id, entries)),
    )


def _named(catalog: Catalog, video: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The asset that ``video`` means, and its names; of several assets, and of its names, what is present."""
    rows = catalog.videos(missing=True).filter(pl.col("asset_id").is_in(catalog.asset_ids(video)))
    rows = rows.sort(pl.col("missing_since").is_not_null(), "asset_id", "video")
    row = rows.row(0, named=True)
    own = rows.filter(pl.col("asset_id") == row["asset_id"])
    present = own.filter(pl.col("missing_since").is_null())
    return row, tuple((present if len(present) else own)["video"].to_list())


def _with_sound(tracks: Sequence[Track], rows: Sequence[dict[str, Any]]) -> tuple[Track, ...]:
    """With a track for other sounds beside that of the speech that they were heard with."""
    heard = {row["producer_id"][:8] for row in rows if row["kind"] == SOUND}
    made = (
        (each, sound_track(each)) if each.name.rpartition(".")[2] in heard else (each,) for each in tracks
    )
    return tuple(track for pair in made for track in pair)


def _entries(
    rows: Sequence[dict[str, Any]], tracks: Sequence[Track], maker_ids: Sequence[str]
) -> Iterator[PageEntry]:
    at = {row["entry_id"]: index for index, row in enumerate(rows)}
    places = {
        (maker_ids[track.maker], track.kind == SOUND): index
        for index, track in enumerate(tracks)
        if track.maker is not None
    }
    for row in rows:
        yield PageEntry(
            entry_id=row["entry_id"],
            track=places[row["producer_id"], row["kind"] == SOUND],
            start_s=row["start_s"],
            end_s=row["end_s"],
            text=row["text"],
            speaker=row["speaker"],
            language=row["language"],
            flags=tuple(row["flags"]),
            factors=tuple(row["factors"]),
            record=record_pairs(row["record"]),
            words=spoken_words(row["record"]),
            frames=tuple(PageFrame(**frame) for frame in row["frames"]),
            boxes=tuple(PageBox(**box) for box in row["objects"]),
            time_base=row["time_base"],
            shown_width=row["shown_width"],
            shown_height=row["shown_height"],
            made_from=tuple(at[each] for each in made_from(row["record"]) if each in at),
        )


def _screen_text(entry: PageEntry) -> tuple[str, ...]:
    return dict(entry.record).get("screen text", ())


def _sentences(catalog: Catalog, asset_id: str, entries: Sequence[PageEntry]) -> Iterator[PageSentence]:
    """Sentences of the narratives that the view shows, in order."""
    at = {entry.entry_id: index for index, entry in enumerate(entries)}
    for row in catalog.supports(asset_id).to_dicts():
        if row["entry_id"] in at:
            links = tuple(PageLink(entry=at.get(link["entry_id"]), **link) for link in row["rests_on"])
            yield PageSentence(at[row["entry_id"]], row["text"], row["role"], links)


def _facts(asset: Asset) -> tuple[str, ...]:
    """Length, picture, sound and size of a file, in words."""
    video, audio = asset.video, asset.audio
    seen = f"{video.width} \N{MULTIPLICATION SIGN} {video.height} {video.codec}" if video else "no picture"
    rate = f" at {video.average_rate:.4g} fps" if video and video.average_rate else ""
    heard = f"{audio.codec} sound" if audio else "no sound"
    texts = [each.language or each.codec for each in asset.subtitles]
    told = [clock(asset.duration_us / 1e6), seen + rate, heard, size_words(asset.size_bytes)]
    if texts:
        told.append(f"subtitles {', '.join(texts)}")
    if asset.clip:
        told.append(f"cut {asset.clip} of a longer file")
    return tuple(told)


def _problems(row: dict[str, Any], asset: Asset | None) -> tuple[str, ...]:
    """What is wrong with the file, as the catalog knows it."""
    told = []
    if row["missing_since"]:
        told.append(f"The file is missing since {row['missing_since']}; its entries are not shown.")
    if row["status"] == "failed":
        told.append(f"The file could not be used: {row['error_class']}: {row['message']}")
    if asset and asset.decoded_until_us is not None:
        until = exact_clock(asset.decoded_until_us / 1e6)
        told.append(f"The file ends before its header says so; it is good until {until}.")
    told += [f"{flag}: {ASSET_FLAGS[flag]}" for flag in (asset.flags if asset else ()) if flag in ASSET_FLAGS]
    return tuple(told)
