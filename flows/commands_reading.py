"""Commands that only read a catalog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evicat.flows.commands import (
    EXIT_BROKEN,
    EXIT_FAILURES,
    check_catalog,
    check_kind,
    escaped,
    open_catalog,
    parse_span,
    terminal,
)
from evicat.flows.options import (
    AtOption,
    CatalogOption,
    FactorsOption,
    JsonOption,
    ProducerOption,
    ProfileOption,
    ViewOption,
)
from evicat.schemas.errors import UsageError
from evicat.schemas.span import Span

if TYPE_CHECKING:
    from evicat.catalog.query import Catalog


def search(
    query: Annotated[str, typer.Argument(help="Words, or a description of what is seen.")],
    catalog: CatalogOption,
    video: Annotated[str | None, typer.Option(help="Only in this video.")] = None,
    between: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Only what overlaps these seconds: 30:90, 0:30-1:30."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only local, narrative, speech, sound or objects.")] = None,
    factors: FactorsOption = None,
    mode: Annotated[str, typer.Option(help="hybrid, vector or text.")] = "hybrid",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many entries at most.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the embedder's weights lie, as for index.")
    ] = None,
    producer: ProducerOption = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Find where something is said, written or seen, with cited times."""
    span = parse_span(between)
    hits = open_catalog(catalog, profile, at, view).search(
        query,
        mode=mode,  # type: ignore[arg-type]  # checked by search, which names the known modes
        limit=limit,
        video=video,
        kind=kind,
        between=span,
        producer=producer,
        factors=factors,
    )
    rows = hits.select("entry_id", "video", "start_s", "end_s", "kind", "text", "score").to_dicts()
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    from evicat.flows import tables

    tables.hits(terminal(), rows)


def show(
    video: Annotated[
        str, typer.Argument(help="Video name, as `evicat status` lists it, or the end of its path.")
    ],
    catalog: CatalogOption,
    between: Annotated[
        str | None, typer.Option(metavar="START:END", help="Only what overlaps these seconds.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only local, narrative, speech, sound or objects.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    frames: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write the frames that the entries cite there, as JPEG files."),
    ] = None,
    media_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Where media is looked for that is not in its place; repeatable."),
    ] = None,
    boxes: Annotated[
        bool, typer.Option("--boxes", help="With --frames: draw the boxes of the entries on their frames.")
    ] = False,
    supports: Annotated[
        bool,
        typer.Option("--supports", help="Only narratives: each sentence, and the times that it rests on."),
    ] = False,
    producer: ProducerOption = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Show what is written about one video: rank, time span, description. Narratives come first.

    With --supports each sentence of a narrative is observed (an entry says it), quoted (it has words of a
    speech entry) or inferred (it concludes, or no entry says it), with the entries that carry it and scores.
    """
    span = parse_span(between)
    check_kind(kind)
    if supports and kind not in (None, "narrative"):
        raise UsageError(f"--supports is about narratives, got --kind {kind}")
    if media_root and frames is None:
        raise UsageError("--media-root says where the frames are taken from: give --frames DIR too")
    if boxes and frames is None:
        raise UsageError("--boxes draws on the frames that are written: give --frames DIR too")
    opened = open_catalog(catalog, at=at, view=view)
    if supports:
        from evicat.flows.supports import show_supports

        kind = "narrative"
        show_supports(terminal(), opened, video, between=span, producer=producer, as_json=as_json)
    else:
        _show_entries(opened, video, kind, span, producer, as_json)
    if frames is not None:
        from evicat.flows.frames import save_cited_frames

        report = save_cited_frames(
            opened, video, frames, media_roots=media_root or (), kind=kind, between=span, boxes=boxes
        )
        console = terminal(stderr=True)
        console.print(escaped(report.headline()), soft_wrap=True)
        for problem in report.problems:
            console.print(f"[red]failed[/] {escaped(problem)}", soft_wrap=True)
        if report.problems:
            raise typer.Exit(EXIT_FAILURES)


def _show_entries(
    opened: Catalog, video: str, kind: str | None, span: Span | None, producer: str | None, as_json: bool
) -> None:
    entries = opened.listing(video, kind=kind, between=span, producer=producer)
    if as_json:
        for row in entries.to_dicts():
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    from evicat.flows import tables

    tables.entries(terminal(), video, entries.to_dicts())


def status(
    catalog: CatalogOption,
    video: Annotated[
        str | None, typer.Argument(help="Only this video, with its strips.", show_default=False)
    ] = None,
    strips: Annotated[
        bool, typer.Option("--strips", help="A line per unit: what became of its windows, along the video.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Prove that the tables keep what they promise; 1 if not.")
    ] = False,
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show units and windows of every video and producer, and what failed.

    --check reads the whole catalog and changes nothing. It proves that windows tile their videos, that ids,
    sums, times and vectors are right, and that what read entries or subtitles read those that are there.
    """
    from evicat.storage.layout import Layout

    if check and (video or strips):
        raise UsageError("--check looks at the whole catalog: it takes no VIDEO and no --strips")
    Layout.of(catalog).check_is_catalog()  # said before the storage engine is imported
    from evicat.flows.status import open_reader

    reader = open_reader(catalog, at)
    if check:
        from evicat.flows.status_check import check as prove

        if not prove(terminal(), reader, as_json=as_json):
            raise typer.Exit(EXIT_BROKEN)
        return
    from evicat.flows.status import show as show_status

    show_status(terminal(), reader, video, strips=strips, as_json=as_json)


def producers(catalog: CatalogOption, at: AtOption = None, as_json: JsonOption = False) -> None:
    """List what makes entries and vectors in a catalog, how much each made, and which of them are shown."""
    check_catalog(catalog)
    from dataclasses import asdict

    from evicat.flows.producers import listing, print_listing
    from evicat.storage.reader import Reader
    from evicat.storage.snapshots import reader_at

    rows = listing(Reader.open(catalog) if at is None else reader_at(catalog, at))
    if as_json:
        for row in rows:
            typer.echo(json.dumps(asdict(row), ensure_ascii=False))
        return
    print_listing(terminal(), rows)


def export(
    form: Annotated[
        str, typer.Argument(metavar="FORMAT", help="parquet, jsonl, webdataset, srt, vtt or csv (markers).")
    ],
    destination: Annotated[str, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    catalog: CatalogOption,
    video: Annotated[list[str] | None, typer.Option(help="Only this video; repeatable.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only local, narrative, speech, sound or objects; repeatable."),
    ] = None,
    between: Annotated[
        str | None, typer.Option(metavar="START:END", help="Only what overlaps these seconds.")
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(metavar="NAME=SHARE,...", help="Divide by source: train=0.8,validation=0.1,test=0.1."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the splits; a source stays where it is.")] = 0,
    vectors: Annotated[bool, typer.Option("--vectors", help="Their vectors too (parquet, jsonl).")] = False,
    flagged: Annotated[bool, typer.Option("--flagged", help="Doubted speech too.")] = False,
    factors: FactorsOption = None,
    per_factor: Annotated[
        int | None,
        typer.Option(min=1, help="Of each factor so many entries in each split, rare factors first."),
    ] = None,
    partial: Annotated[
        bool, typer.Option(" /--no-partial", help="Leave out what only a part of its window was seen for.")
    ] = True,
    media_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Where media is looked for that is not in its place; repeatable."),
    ] = None,
    producer: ProducerOption = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Write entries into files that other tools read; all of them, or nothing.

    Re-encodings and trims of one source never end up in two splits.
    """
    opened = open_catalog(catalog, at=at, view=view)
    from evicat.flows.export import run_export

    is_whole = run_export(
        opened,
        destination,
        form,
        videos=video or (),
        kinds=kind or (),
        between=parse_span(between),
        producer=producer,
        splits=splits,
        seed=seed,
        vectors=vectors,
        flagged=flagged,
        partial=partial,
        factors=factors,
        per_factor=per_factor,
        media_roots=media_root or (),
    )
    if not is_whole:
        raise typer.Exit(EXIT_FAILURES)


def quality(
    catalog: CatalogOption,
    video: Annotated[str | None, typer.Option(help="Only of this video.")] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=NUMBER",
            help="At most (or, where more is better, at least) so much of it; repeatable. Else exit code 1.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Explain every measure, not only the doubtful.")
    ] = False,
    redescribe: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Describe 1% (or more) of the windows again, and compare."),
    ] = None,
    blank: Annotated[
        bool, typer.Option("--blank", help="Describe them from grey frames: what is said without looking?")
    ] = False,
    recipe: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What it was indexed with, for these two.")
    ] = "default",
    profile: ProfileOption = None,
    max_calls: Annotated[
        int | None, typer.Option(min=1, help="Describe so many windows at most; --blank counts too.")
    ] = None,
    motion: Annotated[
        bool, typer.Option("--motion", help="Read the videos: does the picture change where none was shown?")
    ] = False,
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Check the clock by texts with known times: JSONL of video, start_s, end_s, text.",
        ),
    ] = None,
    media_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Where media is looked for that is not in its place; repeatable."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Chooses what is looked for, or described, again.")] = 0,
    as_json: JsonOption = False,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Measure what each producer wrote: failures, repeats, impossible times, bare sentences.

    This finds what is broken, not what is wrong. No model is asked, unless --redescribe or --blank have the
    model of the recipe describe windows once more; what that takes is said first. Nothing is written.
    Exit code 3 where a video that was to be read for this could not be; a broken gate comes first.
    """
    check_catalog(catalog)
    from evicat.flows.quality import Wanted, score

    wanted = Wanted(redescribe, blank, recipe, profile, max_calls, motion, gold, media_root or ())
    opened = open_catalog(catalog, profile, at, view)
    found = score(terminal(), opened, video, gate or [], wanted, seed=seed, as_json=as_json, every=every)
    if not found.keeps_bounds:
        raise typer.Exit(EXIT_BROKEN)
    if not found.is_whole:
        raise typer.Exit(EXIT_FAILURES)


def view(
    catalog: CatalogOption,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any that is free.")] = 8642,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; others than this machine can read there.")
    ] = "127.0.0.1",
    media_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Where media is looked for that is not in its place; repeatable."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the embedder's weights lie, as for index.")
    ] = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Show a catalog in a browser: library, search, videos with their timelines, producers side by side.

    Nothing is written. Runs until Ctrl-C, and follows the catalog while others write to it.
    """
    check_catalog(catalog)
    from evicat.flows.view import serve
    from evicat.viewer.app_catalogs import Place

    serve(
        terminal(),
        catalog,
        host=host,
        port=port,
        place=Place(at, view),
        profile=profile,
        media_roots=media_root or (),
    )


def mcp(
    catalog: CatalogOption,
    video: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this video; without it every call names one.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="PORT", help="Serve at this port of this machine; 0: any that is free."
        ),
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Store what is called beside the catalog; see: evicat trace.")
    ] = False,
    profile: ProfileOption = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Serve the tools over a catalog to agents, by the Model Context Protocol.

    Speaks over standard input and output, as agents start it themselves, or over HTTP. Nothing is written
    without --trace. The catalog is shown as it is when the server starts.
    """
    from evicat.flows.mcp import serve

    opened = open_catalog(catalog, profile, at, view)
    serve(terminal(stderr=True), opened, video=video, port=http, is_traced=trace)


def report(
    catalog: CatalogOption,
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE|DIR", help="The page; with --library also a folder."),
    ],
    video: Annotated[
        str | None, typer.Argument(help="Video name, or the end of its path.", show_default=False)
    ] = None,
    library: Annotated[
        bool, typer.Option("--library", help="All videos; into a folder, with a page of each beside it.")
    ] = False,
    pictures: Annotated[bool, typer.Option(" /--no-pictures", help="Without the cited frames.")] = True,
    media_root: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Where media is looked for that is not in its place; repeatable."),
    ] = None,
    at: AtOption = None,
    view: ViewOption = None,
) -> None:
    """Write a page that shows a video's entries on its timeline, or all videos: one file, no network.

    Pictures are the frames that were really shown, small enough that the page stays below 8 MB. Where they
    cannot be had the page says why, and the exit code is 3. A file that is not such a page is not replaced.
    """
    if (video is None) == (not library):
        raise UsageError("give a VIDEO, or --library for all of them")
    if media_root and not pictures:
        raise UsageError("--media-root says where pictures are taken from, --no-pictures wants none")
    opened = open_catalog(catalog, at=at, view=view)
    from evicat.flows.report import report_library, report_video

    roots = media_root or []
    if video is None:
        is_whole = report_library(opened, output, pictures=pictures, media_roots=roots)
    else:
        is_whole = report_video(opened, video, output, pictures=pictures, media_roots=roots)
    if not is_whole:
        raise typer.Exit(EXIT_FAILURES)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A producer, a snapshot, or the number of a head.")],
    catalog: CatalogOption,
    b: Annotated[
        str | None, typer.Argument(metavar="B", help="Another; left out: the catalog as it is now.")
    ] = None,
    video: Annotated[str | None, typer.Option(help="Only this video.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many of the most different windows.")] = 5,
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the embedder's weights lie, as for index.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compare what two producers wrote, or a catalog with what it showed before.

    Windows that changed, length and choice of words, likeness by vectors, and the most different windows side
    by side. Only videos that both sides have are compared.
    """
    check_catalog(catalog)
    from evicat.flows.diff import compare, print_diff

    found = compare(catalog, a, b, video=video, limit=limit, profile=profile)
    if as_json:
        typer.echo(found.model_dump_json())
        return
    print_diff(terminal(), found)
