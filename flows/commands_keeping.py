"""Commands that keep catalogs and this machine in order."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import Annotated

import typer

from evicat.flows.commands import (
    EXIT_FAILURES,
    EXIT_UNUSABLE,
    check_catalog,
    quiet_prefect,
    stay_offline,
    terminal,
)
from evicat.flows.options import CatalogOption, ProducersArgument, ProfileOption


def activate(producers: ProducersArgument, catalog: CatalogOption) -> None:
    """Show what these producers made, in place of others of their kind and scale; all at once.

    Nothing is made or lost: activate the former producers to switch back.
    """
    check_catalog(catalog)
    from evicat.flows.producers import print_activated

    print_activated(terminal(), catalog, producers)


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
    check_catalog(catalog)
    from evicat.flows.producers import print_retired

    print_retired(terminal(), catalog, producers, undo=undo, as_json=as_json)


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
    print_found(terminal(), found)


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

    stay_offline()
    quiet_prefect(verbose=False)
    with redirect_stdout(sys.stderr):  # broken packages print what is wrong with them
        report = examine(recipe, profile)
    if as_json:
        typer.echo(report.model_dump_json(indent=1))
    else:
        from evicat.flows.doctor_report import print_report

        print_report(terminal(), report)
    if not report.usable:
        raise typer.Exit(EXIT_UNUSABLE)


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

    with terminal(stderr=True).status("") as status:
        report = maintain_catalog(catalog, keep_days=keep_days, tell=lambda text: status.update(text))
    if as_json:
        typer.echo(report.model_dump_json())
    else:
        tables_maintain.maintained(terminal(), report)
    if report.failed:
        raise typer.Exit(EXIT_FAILURES)


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
