"""Commands that make something: index, reindex, plan, cost, tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

from evicat.flows.commands import (
    EXIT_FAILURES,
    check_catalog,
    limits_from,
    quiet_prefect,
    run_flow,
    stay_offline,
    terminal,
)
from evicat.flows.options import (
    CanaryOption,
    CatalogOption,
    LimitWindowsOption,
    MaxCallsOption,
    MaxHoursOption,
    ProfileOption,
    RetryOption,
    VerboseOption,
)
from evicat.schemas.errors import UsageError

if TYPE_CHECKING:
    from evicat.flows.summary import Summary


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

    limits = limits_from(max_calls, max_hours, limit_windows, canary)
    Request.read(paths, catalog, recipe, profile, retry or ())  # what is wrong is said before Prefect starts
    quiet_prefect(verbose)

    def start() -> Summary:
        from evicat.flows.ingest import ingest

        return cast("Summary", ingest(paths, catalog, recipe, profile, retry, limits))

    run_flow(start)


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
    limits = limits_from(max_calls, max_hours, limit_windows, canary)
    quiet_prefect(verbose)
    from evicat.flows import tables_plan
    from evicat.flows.plan import plan_work
    from evicat.flows.reindex import catalog_request
    from evicat.flows.reindex import reindex as reindex_flow

    request = catalog_request(catalog, recipe, profile, retry or [])
    with terminal(stderr=True).status("") as status:
        work = plan_work(request, tell=lambda text: status.update(text))
    tables_plan.plan(terminal(), work)
    if plan:
        return
    if not work.has_work:
        raise typer.Exit(EXIT_FAILURES if request.problems else 0)
    run_flow(lambda: cast("Summary", reindex_flow(catalog, recipe, profile, retry, limits)))


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
    stay_offline()
    from evicat.flows.plan import plan_request, plan_work

    request = plan_request(paths, catalog or "", recipe, profile, retry or ())
    with terminal(stderr=True).status("") as status:
        work = plan_work(request, tell=lambda text: status.update(text))
    if as_json:
        typer.echo(work.model_dump_json())
        return
    from evicat.flows import tables_plan

    tables_plan.plan(terminal(), work)


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
    check_catalog(catalog)
    from evicat.flows import tables_plan
    from evicat.flows.cost import cost as sum_up

    spent = sum_up(catalog, videos or [], profile)
    if as_json:
        typer.echo(spent.model_dump_json())
        return
    tables_plan.cost(terminal(), spent)


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
        tagging.list_vocabularies(terminal(), as_json=as_json)
        return
    check_catalog(catalog)
    if label is not None:
        from evicat.flows.tag_labels import ask

        ask(terminal(), catalog, label, labels, factor or [], profile)
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

        order = measure(terminal(), order, calibrate, card, as_json=as_json)
        if card is not None:
            return
    if not tagging.tag(terminal(), order, plan=plan, as_json=as_json):
        raise typer.Exit(EXIT_FAILURES)
