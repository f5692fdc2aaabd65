"""The command line ``evicat``. Heavy packages are imported by the commands that need them."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from evicat.schemas.errors import EvicatError, UnknownNameError, UsageError
from evicat.schemas.span import Span

if TYPE_CHECKING:
    from rich.console import Console

    from evicat.catalog.query import Catalog
    from evicat.flows.summary import Summary

EXIT_UNUSABLE = 1
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

Exit codes: 0 all done, 1 the recipe cannot run here (doctor), 2 wrong usage, 3 finished with failures,
4 stopped at a limit.
EVICAT_CATALOG stands in for --catalog.""",
)

CatalogOption = Annotated[
    str,
    typer.Option("--catalog", "-c", envvar="EVICAT_CATALOG", metavar="URI", help="Folder of the catalog."),
]


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
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where and how fast to run (TOML).")
    ] = None,
    retry: Annotated[
        list[str] | None,
        typer.Option(metavar="OUTCOME", help="Make again: failed, truncated, refused or stale; repeatable."),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, help="Stop after so many calls of models.")] = None,
    max_hours: Annotated[float | None, typer.Option(help="Begin nothing after so many hours.")] = None,
    limit_windows: Annotated[int | None, typer.Option(min=1, help="Stop after so many windows.")] = None,
    canary: Annotated[
        int | None, typer.Option(min=1, help="So many windows first; the rest unless most of them failed.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log of the run.")] = False,
) -> None:
    """Index videos into a catalog; what is there already is not made again.

    The catalog is created if it does not exist. A file that cannot be used is reported, and the others go on.
    Run the same command again after an interruption: it continues where it was.

    A manifest has one row per video: id, path, and optionally benchmark, split, source_id, in_s, out_s,
    duration_s, subtitle, subtitle_offset_s; paths are relative to the manifest.
    """
    from evicat.flows.limits import Limits
    from evicat.flows.request import Request

    if max_hours is not None and not max_hours > 0:
        raise UsageError(f"--max-hours must be above 0, got {max_hours}")
    limits = Limits(max_calls=max_calls, max_hours=max_hours, limit_windows=limit_windows, canary=canary)
    Request.read(paths, catalog, recipe, profile, retry or ())  # what is wrong is said before Prefect starts
    _quiet_prefect(verbose)
    console = _console(stderr=True)
    from evicat.flows.engine import flow_server
    from evicat.flows.progress import bars

    try:
        with ExitStack() as stack:
            with console.status("Starting the flow engine"):
                from evicat.flows.ingest import OBSERVER, ingest

                stack.enter_context(flow_server())
            OBSERVER.set(stack.enter_context(bars(console)))
            summary = cast("Summary", ingest(paths, catalog, recipe, profile, retry, limits))
    except KeyboardInterrupt:
        console.print("Interrupted; nothing is lost. Run the same command again to go on.")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    from evicat.flows import tables

    tables.summary(_console(), summary)
    if summary.stopped:
        raise typer.Exit(EXIT_STOPPED)
    if not summary.all_done:
        raise typer.Exit(EXIT_FAILURES)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="Words, or a description of what is seen.")],
    catalog: CatalogOption,
    video: Annotated[str | None, typer.Option(help="Only in this video.")] = None,
    between: Annotated[
        str | None,
        typer.Option(metavar="START:END", help="Only what overlaps these seconds: 30:90, 0:30-1:30."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Only local, narrative or speech.")] = None,
    mode: Annotated[str, typer.Option(help="hybrid, vector or text.")] = "hybrid",
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many entries at most.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where the embedder's weights lie, as for index.")
    ] = None,
) -> None:
    """Find where something is said, written or seen, with cited times."""
    span = _span(between)
    hits = _open(catalog, profile).search(
        query,
        mode=mode,  # type: ignore[arg-type]  # checked by search, which names the known modes
        limit=limit,
        video=video,
        kind=kind,
        between=span,
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
    kind: Annotated[str | None, typer.Option(help="Only local, narrative or speech.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show what is written about one video: rank, time span, description. Narratives come first."""
    span = _span(between)
    _check_kind(kind)
    entries = _open(catalog).serialize(video, kind=kind, between=span)
    if as_json:
        for row in entries.to_dicts():
            typer.echo(json.dumps(row, ensure_ascii=False))
        return
    from evicat.flows import tables

    tables.entries(_console(), video, entries.to_dicts())


@app.command()
def status(catalog: CatalogOption) -> None:
    """Show units and windows of every video and producer, and what failed."""
    from evicat.flows import tables

    tables.status(_console(), _open(catalog))


@app.command()
def recipes() -> None:
    """List the recipes that ship, and what each of them makes."""
    from evicat.catalog.recipes import shipped
    from evicat.flows import tables

    tables.recipes(_console(), shipped())


@app.command()
def doctor(
    recipe: Annotated[str, typer.Option(metavar="NAME|FILE", help="The recipe that is to run.")] = "default",
    profile: Annotated[
        str | None, typer.Option(metavar="FILE", help="Where and how fast to run (TOML).")
    ] = None,
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
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _console(stderr=True).print(f"[bold red]Error:[/] {_escape(what)}", soft_wrap=True)
        sys.exit(EXIT_USAGE)
    sys.exit(0)


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


def _open(uri: str, profile: str | None = None) -> Catalog:
    """Open for reading; what is wrong with ``uri`` is said before the storage engine is imported."""
    from evicat.storage.layout import Layout

    Layout.of(uri).check_is_catalog()
    from evicat.catalog.query import Catalog
    from evicat.catalog.recipes import load_profile

    return Catalog.open(uri, load_profile(profile))


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)


if __name__ == "__main__":
    main()
