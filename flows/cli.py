"""The command line ``evicat``. Heavy packages are imported by the commands that need them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from evicat.flows.options import (
    AtOption,
    CanaryOption,
    CatalogOption,
    FactorsOption,
    JsonOption,
    LimitWindowsOption,
    MaxCallsOption,
    MaxHoursOption,
    ProducerOption,
    ProducersArgument,
    ProfileOption,
    RetryOption,
    VerboseOption,
    ViewOption,
)
from evicat.flows.recipes import recipes_app
from evicat.flows.snapshots import snapshot_app
from evicat.flows.trace import trace_app
from evicat.flows.views import views_app
from evicat.schemas.errors import EvicatError, UnknownNameError, UsageError
from evicat.schemas.span import Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from evicat.catalog.query import Catalog
    from evicat.flows.limits import Limits
    from evicat.flows.summary import Summary

EXIT_UNUSABLE = 1
EXIT_BROKEN = 1
EXIT_USAGE = 2
EXIT_FAILURES = 3
EXIT_STOPPED = 4
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="evicat",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Turn libraries of long videos into [bold]evidence catalogs[/]: timestamped text, each
line of which leads back to the exact seconds and frames that it came from.

[bold]Start here[/]

  evicat index my_videos/ --catalog my.catalog

  evicat search "thanks for watching" --catalog my.catalog

  evicat show my_video.mp4 --catalog my.catalog

Exit codes: 0 all done, 1 the recipe cannot run here (doctor) or a proof does not hold (status --check),
2 wrong usage, 3 finished with failures, 4 stopped at a limit.
EVICAT_CATALOG stands in for --catalog.""",
)

app.add_typer(snapshot_app, name="snapshot")
app.add_typer(recipes_app, name="recipes")
app.add_typer(views_app, name="views")
app.add_typer(trace_app, name="trace")


@app.command()
def index(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Videos, folders, globs, or manifests (.csv, .jsonl).", show_default=False
        ),
    ],
    catalog: CatalogOption,
    recipe: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What to index with; see: evicat recipes.")
    ] = "default",
    profile: ProfileOption = None,
    retry: RetryOption = None,
    max_calls: MaxCallsOption = None,
    max_hours: MaxHoursOption = None,
    limit_windows: LimitWindowsOption = None,
    canary: CanaryOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Index videos into a catalog; what is there already is not made again.

    The catalog is created if it does not exist. A file that cannot be used is reported, and the others go on.
    Run the same command again after an interruption: it continues where it was.

    A manifest has one row per video: id, path, and optionally benchmark, split, source_id, in_s, out_s,
    duration_s, subtitle, subtitle_offset_s, language; paths are relative to the manifest.
    """
    from evicat.flows.request import Request

    limits = _limits(max_calls, max_hours, limit_windows, canary)
    Request.read(paths, catalog, recipe, profile, retry or ())  # what is wrong is said before Prefect starts
    _quiet_prefect(verbose)

    def start() -> Summary:
        from evicat.flows.ingest import ingest

        return cast("Summary", ingest(paths, catalog, recipe, profile, retry, limits))

    _run(start)


@app.command()
def reindex(
    catalog: CatalogOption,
    recipe: Annotated[str, typer.Option(metavar="NAME|FILE", help="What to index with from now on.")],
    profile: ProfileOption = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only print what is to be made.")] = False,
    retry: RetryOption = None,
    max_calls: MaxCallsOption = None,
    max_hours: MaxHoursOption = None,
    limit_windows: LimitWindowsOption = None,
    canary: CanaryOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Make what another recipe asks for of the videos in a catalog, and only that.

    Videos that the catalog has no name for are left alone. What is there already stays, and is shown until
    `evicat activate` switches to the new producers.
    """
    limits = _limits(max_calls, max_hours, limit_windows, canary)
    _quiet_prefect(verbose)
    from evicat.flows import tables_plan
    from evicat.flows.plan import plan_work
    from evicat.flows.reindex import catalog_request
    from evicat.flows.reindex import reindex as reindex_flow

    request = catalog_request(catalog, recipe, profile, retry or [])
    with _console(stderr=True).status("") as status:
        work = plan_work(request, tell=lambda text: status.update(text))
    tables_plan.plan(_console(), work)
    if plan:
        return
    if not work.has_work:
        raise typer.Exit(EXIT_FAILURES if request.problems else 0)
    _run(lambda: cast("Summary", reindex_flow(catalog, recipe, profile, retry, limits)))


@app.command()
def plan(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Videos, folders, globs, or manifests, as for index.", show_default=False
        ),
    ],
    recipe: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What to index with; see: evicat recipes.")
    ] = "default",
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog", "-c", envvar="EVICAT_CATALOG", metavar="URI", help="What it holds is left out."
        ),
    ] = None,
    profile: ProfileOption = None,
    retry: RetryOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what index would make, and what it would take: windows, calls, tokens, hours, disk.

    No model is asked and no catalog is touched; there need not be one. New files are probed, which reads all
    of them, once. Hours of engines need rates in the profile, which evicat cost prints.
    """
    _offline()
    from evicat.flows.plan import plan_request, plan_work

    request = plan_request(paths, catalog or "", recipe, profile, retry or ())
    with _console(stderr=True).status("") as status:
        work = plan_work(request, tell=lambda text: status.update(text))
    if as_json:
        typer.echo(work.model_dump_json())
        return
    from evicat.flows import tables_plan

    tables_plan.plan(_console(), work)


@app.command()
def cost(
    catalog: CatalogOption,
    videos: Annotated[
        list[str] | None, typer.Argument(metavar="VIDEO...", help="Only these videos.", show_default=False)
    ] = None,
    profile: ProfileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show what the producers of a catalog took: attempts, tokens, seconds, in all and for an hour of video.

    Beside it stands what plan would have said, and the rates of models for the profile: with --profile those
    of the engine with all its slots full, if it was as busy as that.
    """
    _check_catalog(catalog)
    from evicat.flows import tables_plan
    from evicat.flows.cost import cost as sum_up

    spent = sum_up(catalog, videos or [], profile)
    if as_json:
        typer.echo(spent.model_dump_json())
        return
    tables_plan.cost(_console(), spent)


@app.command()
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
    span = _span(between)
    hits = _open(catalog, profile, at, view).search(
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

    tables.hits(_console(), rows)


@app.command()
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
    span = _span(between)
    _check_kind(kind)
    if supports and kind not in (None, "narrative"):
        raise UsageError(f"--supports is about narratives, got --kind {kind}")
    if media_root and frames is None:
        raise UsageError("--media-root says where the frames are taken from: give --frames DIR too")
    if boxes and frames is None:
        raise UsageError("--boxes draws on the frames that are written: give --frames DIR too")
    opened = _open(catalog, at=at, view=view)
    if supports:
        from evicat.flows.supports import show_supports

        kind = "narrative"
        show_supports(_console(), opened, video, between=span, producer=producer, as_json=as_json)
    else:
        _show_entries(opened, video, kind, span, producer, as_json)
    if frames is not None:
        from evicat.flows.frames import save_cited_frames

        report = save_cited_frames(
            opened, video, frames, media_roots=media_root or (), kind=kind, between=span, boxes=boxes
        )
        console = _console(stderr=True)
        console.print(_escape(report.headline()), soft_wrap=True)
        for problem in report.problems:
            console.print(f"[red]failed[/] {_escape(problem)}", soft_wrap=True)
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

    tables.entries(_console(), video, entries.to_dicts())


@app.command()
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

        if not prove(_console(), reader, as_json=as_json):
            raise typer.Exit(EXIT_BROKEN)
        return
    from evicat.flows.status import show as show_status

    show_status(_console(), reader, video, strips=strips, as_json=as_json)


@app.command()
def producers(catalog: CatalogOption, at: AtOption = None, as_json: JsonOption = False) -> None:
    """List what makes entries and vectors in a catalog, how much each made, and which of them are shown."""
    _check_catalog(catalog)
    from dataclasses import asdict

    from evicat.flows.producers import listing, print_listing
    from evicat.storage.reader import Reader
    from evicat.storage.snapshots import reader_at

    rows = listing(Reader.open(catalog) if at is None else reader_at(catalog, at))
    if as_json:
        for row in rows:
            typer.echo(json.dumps(asdict(row), ensure_ascii=False))
        return
    print_listing(_console(), rows)


@app.command()
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
    opened = _open(catalog, at=at, view=view)
    from evicat.flows.export import run_export

    is_whole = run_export(
        opened,
        destination,
        form,
        videos=video or (),
        kinds=kind or (),
        between=_span(between),
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


@app.command()
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
    _check_catalog(catalog)
    from evicat.flows.quality import Wanted, score

    wanted = Wanted(redescribe, blank, recipe, profile, max_calls, motion, gold, media_root or ())
    opened = _open(catalog, profile, at, view)
    found = score(_console(), opened, video, gate or [], wanted, seed=seed, as_json=as_json, every=every)
    if not found.keeps_bounds:
        raise typer.Exit(EXIT_BROKEN)
    if not found.is_whole:
        raise typer.Exit(EXIT_FAILURES)


@app.command()
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
    _check_catalog(catalog)
    from evicat.flows.view import serve
    from evicat.viewer.app_catalogs import Place

    serve(
        _console(),
        catalog,
        host=host,
        port=port,
        place=Place(at, view),
        profile=profile,
        media_roots=media_root or (),
    )


@app.command()
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

    opened = _open(catalog, profile, at, view)
    serve(_console(stderr=True), opened, video=video, port=http, is_traced=trace)


@app.command()
def tag(
    catalog: CatalogOption,
    vocabulary: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME|FILE", help="A packaged vocabulary, or a TOML file; repeatable."),
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Only this factor of it; repeatable.")
    ] = None,
    tagger: Annotated[str, typer.Option(help="fields, embedding or llm.")] = "fields",
    plan: Annotated[bool, typer.Option("--plan", help="Only print what is to be tagged.")] = False,
    label: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="Ask you about the most uncertain entries, one by one."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where --label writes to, or goes on (JSONL).")
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Labels by which the embedding tagger gets its thresholds."),
    ] = None,
    card: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Only print how right the tagger is, by these labels."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the tagger llm asks; the profile runs it.")
    ] = None,
    profile: ProfileOption = None,
    retry: RetryOption = None,
    max_calls: MaxCallsOption = None,
    packaged: Annotated[
        bool, typer.Option("--list", help="Only list the vocabularies that come with evicat.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, for scripts.")] = False,
) -> None:
    """Tag entries with the factors of a vocabulary; what is tagged already is not tagged again.

    No describer is called and no entry is changed. The taggers fields and embedding ask no model, llm asks
    one. Run the same command again after an interruption or after indexing: it does what is missing.
    """
    from evicat.flows import tag as tagging

    if packaged:
        tagging.list_vocabularies(_console(), as_json=as_json)
        return
    _check_catalog(catalog)
    if label is not None:
        from evicat.flows.tag_labels import ask

        ask(_console(), catalog, label, labels, factor or [], profile)
        return
    if labels is not None:
        raise UsageError("--labels is where --label writes to: give both, or --calibrate FILE")
    if not vocabulary:
        raise UsageError("name what to tag with: --vocabulary NAME or FILE; --list shows the packaged ones")
    order = tagging.Order.read(
        catalog,
        vocabulary,
        factors=tuple(factor or ()),
        tagger=tagger,
        model=model,
        profile=profile,
        retry=tuple(retry or ()),
        max_calls=max_calls,
    )
    if card is not None or calibrate is not None:
        from evicat.flows.tag_labels import measure

        order = measure(_console(), order, calibrate, card, as_json=as_json)
        if card is not None:
            return
    if not tagging.tag(_console(), order, plan=plan, as_json=as_json):
        raise typer.Exit(EXIT_FAILURES)


@app.command()
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
    opened = _open(catalog, at=at, view=view)
    from evicat.flows.report import report_library, report_video

    roots = media_root or []
    if video is None:
        is_whole = report_library(opened, output, pictures=pictures, media_roots=roots)
    else:
        is_whole = report_video(opened, video, output, pictures=pictures, media_roots=roots)
    if not is_whole:
        raise typer.Exit(EXIT_FAILURES)


@app.command()
def activate(producers: ProducersArgument, catalog: CatalogOption) -> None:
    """Show what these producers made, in place of others of their kind and scale; all at once.

    Nothing is made or lost: activate the former producers to switch back.
    """
    _check_catalog(catalog)
    from evicat.flows.producers import print_activated

    print_activated(_console(), catalog, producers)


@app.command()
def retire(
    producers: ProducersArgument,
    catalog: CatalogOption,
    undo: Annotated[
        bool, typer.Option("--undo", help="Bring back what they had made, from an earlier head or snapshot.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Take all that these producers made, and its vectors and supports, out of a catalog.

    Snapshots and earlier heads still show it, and --undo brings it back, until a clean-up removes it. An
    active producer stays while another could be active, and so does what a producer that stays reads.
    """
    _check_catalog(catalog)
    from evicat.flows.producers import print_retired

    print_retired(_console(), catalog, producers, undo=undo, as_json=as_json)


@app.command()
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
    _check_catalog(catalog)
    from evicat.flows.diff import compare, print_diff

    found = compare(catalog, a, b, video=video, limit=limit, profile=profile)
    if as_json:
        typer.echo(found.model_dump_json())
        return
    print_diff(_console(), found)


@app.command()
def weights(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="As a recipe names it: packaged:NAME, a folder, or a name on the model hub."
        ),
    ],
    revision: Annotated[str, typer.Option(help="Its revision on the model hub; empty: the newest.")] = "",
    profile: ProfileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say where the weights of a model lie, and the digest that identifies them.

    A copy of the same weights from elsewhere has the same digest, and is the same model. What is not here yet
    is fetched from the model hub, unless HF_HUB_OFFLINE=1 forbids it. Loads nothing.
    """
    from evicat.flows.weights import find, print_found

    found = find(model, revision=revision, profile=profile)
    if as_json:
        typer.echo(found.model_dump_json())
        return
    print_found(_console(), found)


@app.command()
def doctor(
    recipe: Annotated[str, typer.Option(metavar="NAME|FILE", help="The recipe that is to run.")] = "default",
    profile: ProfileOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say what is installed and usable, and whether a recipe can run here.

    Decodes a tiny clip in a worker process, and has every part of the recipe do a little of its work. Nothing
    is fetched from the model hub. Exit code 1 where the recipe could not run; what to do is said.
    """
    from evicat.flows.doctor import examine

    _offline()
    _quiet_prefect(verbose=False)
    with redirect_stdout(sys.stderr):  # broken packages print what is wrong with them
        report = examine(recipe, profile)
    if as_json:
        typer.echo(report.model_dump_json(indent=1))
    else:
        from evicat.flows.doctor_report import print_report

        print_report(_console(), report)
    if not report.usable:
        raise typer.Exit(EXIT_UNUSABLE)


@app.command()
def maintain(
    catalog: CatalogOption,
    keep_days: Annotated[
        float, typer.Option(min=0, help="Keep heads, and the table versions that they need, for so long.")
    ] = 7.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Compact the tables, bring their indexes up to date, and remove table versions that nothing needs.

    Afterwards the newest head, snapshots, and heads that were the newest within the days to keep can still be
    opened, and readers that have them open now go on. Exit code 3 where a table failed; the others are done.
    """
    from evicat.flows import tables_maintain
    from evicat.storage.maintain import maintain as maintain_catalog

    with _console(stderr=True).status("") as status:
        report = maintain_catalog(catalog, keep_days=keep_days, tell=lambda text: status.update(text))
    if as_json:
        typer.echo(report.model_dump_json())
    else:
        tables_maintain.maintained(_console(), report)
    if report.failed:
        raise typer.Exit(EXIT_FAILURES)


@app.command()
def migrate(catalog: CatalogOption) -> None:
    """Bring a catalog that an older evicat wrote to the schema of this one.

    A snapshot keeps the tables as they were. Run it again where it was interrupted.
    """
    from evicat.storage.migrations import migrate as migrate_catalog

    done = migrate_catalog(catalog)
    if done.before == done.after:
        typer.echo(f"Nothing to do: {catalog} has schema {done.after} already.")
        return
    typer.echo(
        f"Migrated {catalog} from schema {done.before} to {done.after}; "
        f"what was there before is kept as snapshot {', '.join(done.kept)}."
    )


def main() -> NoReturn:
    """Entry point: errors that people can mend are printed without a traceback."""
    try:
        app(standalone_mode=True)
    except UsageError as error:
        _console(stderr=True).print(f"[bold red]Error:[/] {_escape(str(error))}", soft_wrap=True)
        sys.exit(EXIT_USAGE)
    except EvicatError as error:
        _console(stderr=True).print(
            f"[bold red]{error.error_class}:[/] {_escape(str(error))}", soft_wrap=True
        )
        sys.exit(EXIT_FAILURES)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(_tell_foreign(error))
    sys.exit(0)


def _tell_foreign(error: OSError | RuntimeError | ValueError) -> int:
    """Print an error of the system or of the storage engine on one line; returns the exit code for it.

    Raises:
        Exception: it is neither; somebody has to see where it comes from.
    """
    from evicat.storage.damage import is_of_lance, reason_of

    if is_of_lance(error):
        what = f"[bold red]Integrity:[/] {_escape(reason_of(error))}"
    elif isinstance(error, OSError):
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        what = f"[bold red]Error:[/] {_escape(said)}"
    else:
        raise error
    _console(stderr=True).print(what, soft_wrap=True)
    return EXIT_FAILURES if is_of_lance(error) else EXIT_USAGE


def _run(start: Callable[[], Summary]) -> None:
    """Start a flow, watch it, print what it did, and leave with the exit code that tells it."""
    console = _console(stderr=True)
    from evicat.flows.engine import flow_server
    from evicat.flows.progress import bars

    try:
        with ExitStack() as stack:
            with console.status("Starting the flow engine"):
                from evicat.flows.ingest import OBSERVER

                stack.enter_context(flow_server())
            OBSERVER.set(stack.enter_context(bars(console)))
            summary = start()
    except KeyboardInterrupt:
        console.print("Interrupted; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    from evicat.flows import tables

    tables.summary(_console(), summary)
    if summary.stopped:
        raise typer.Exit(EXIT_STOPPED)
    if not summary.all_done:
        raise typer.Exit(EXIT_FAILURES)


def _limits(
    max_calls: int | None, max_hours: float | None, limit_windows: int | None, canary: int | None
) -> Limits:
    from evicat.flows.limits import Limits

    if max_hours is not None and not 0 < max_hours < float("inf"):
        raise UsageError(f"--max-hours must be above 0, got {max_hours}")
    return Limits(max_calls=max_calls, max_hours=max_hours, limit_windows=limit_windows, canary=canary)


def _quiet_prefect(verbose: bool) -> None:
    """Prefect reads its settings at import; what the user has set stays."""
    level = "INFO" if verbose else "CRITICAL"
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", level)
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", level)
    os.environ.setdefault("PREFECT_LOGGING_TO_API_ENABLED", "false")
    os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
    os.environ.setdefault("DO_NOT_TRACK", "1")


def _offline() -> None:
    """The model hub's client reads this at import: it looks into its cache, and fetches nothing."""
    os.environ["HF_HUB_OFFLINE"] = "1"


def _span(text: str | None) -> Span | None:
    try:
        return Span.parse(text) if text else None
    except ValueError as error:
        raise UsageError(f"--between: {error}") from None


def _check_kind(kind: str | None) -> None:
    from evicat.schemas.entry import KINDS

    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind", kind, list(KINDS))


def _check_catalog(uri: str) -> None:
    from evicat.storage.layout import Layout

    Layout.of(uri).check_is_catalog()


def _open(uri: str, profile: str | None = None, at: str | None = None, view: str | None = None) -> Catalog:
    """Open for reading; what is wrong with ``uri`` is said before the storage engine is imported."""
    _check_catalog(uri)
    from evicat.catalog.query import Catalog
    from evicat.catalog.recipes import load_profile

    opened = Catalog.open(uri, load_profile(profile), at=at)
    return opened if view is None else opened.view(view)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, emoji=False)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
