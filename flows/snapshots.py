"""The commands ``evicat snapshot ...``: name a head, look at it, hand it on, forget it."""

from __future__ import annotations

from typing import Annotated

import typer

from evicat.flows.options import CatalogOption, JsonOption

snapshot_app = typer.Typer(
    no_args_is_help=True,
    help="""Name the state of a catalog, read it later with --at, and hand it on as a catalog of its own.""",
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the snapshot.")]


@snapshot_app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '_', '-'; not only digits.")
    ],
    catalog: CatalogOption,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    recipe: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What it was made with, to stand in the manifest; repeatable."),
    ] = None,
) -> None:
    """Name the catalog as it is now, so that it can be read so for good.

    Results that wait are committed, and the indexes brought up to date, before.
    """
    from evicat.storage.snapshots import create_snapshot

    made = create_snapshot(catalog, name, note=note, recipes=recipe or ())
    typer.echo(f"snapshot {name}: head {made.head.number}, content hash {made.content_hash}")


@snapshot_app.command("list")
def list_(catalog: CatalogOption, as_json: JsonOption = False) -> None:
    """List the snapshots of a catalog. Exit code 3 where the manifest of one is broken; it is named."""
    from rich.console import Console

    from evicat.flows import tables_snapshots
    from evicat.storage.layout import Layout
    from evicat.storage.snapshots import readable_snapshots

    layout = Layout.of(catalog)
    layout.check_is_catalog()
    found, errors = readable_snapshots(layout)
    if as_json:
        for snapshot in found:
            typer.echo(snapshot.model_dump_json())
    else:
        tables_snapshots.snapshots(Console(emoji=False), found)
    for error in errors[:-1]:
        tables_snapshots.broken(Console(stderr=True, emoji=False), error)
    if errors:
        raise errors[-1]


@snapshot_app.command()
def show(
    name: NameArgument,
    catalog: CatalogOption,
    check: Annotated[
        bool, typer.Option("--check", help="Read all of it, and compare it with the manifest.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the manifest of a snapshot: what it holds, what made it, and its content hash."""
    from rich.console import Console

    from evicat.flows import tables_snapshots
    from evicat.storage.layout import Layout
    from evicat.storage.snapshots import check_content, find_snapshot, reader_at

    layout = Layout.of(catalog)
    layout.check_is_catalog()
    snapshot = find_snapshot(layout, name)
    if check:
        check_content(reader_at(catalog, name), snapshot)
    if as_json:
        typer.echo(snapshot.model_dump_json())
        return
    tables_snapshots.snapshot(Console(emoji=False), snapshot)
    if check:
        typer.echo("checked: rows and content hash are those of the manifest")


@snapshot_app.command()
def export(
    name: NameArgument,
    destination: Annotated[str, typer.Argument(metavar="DEST", help="Folder that is new or empty.")],
    catalog: CatalogOption,
) -> None:
    """Write a snapshot as a catalog of its own: without media, and without paths of this machine."""
    from evicat.storage.export import export_snapshot

    made = export_snapshot(catalog, name, destination)
    typer.echo(f"snapshot {name} is in {destination}; content hash {made.content_hash}, checked")


@snapshot_app.command("import")
def import_(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="What export wrote.")],
    catalog: CatalogOption,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which snapshot, where the folder holds several.")
    ] = None,
) -> None:
    """Make a new catalog of an exported snapshot, after its content was checked."""
    from evicat.storage.export import import_snapshot

    made = import_snapshot(folder, catalog, name)
    typer.echo(f"snapshot {made.name} is in {catalog}; content hash {made.content_hash}, checked")


@snapshot_app.command()
def delete(name: NameArgument, catalog: CatalogOption) -> None:
    """Forget a snapshot. What only it kept stays on the disk until the next clean-up."""
    from evicat.storage.snapshots import delete_snapshot

    delete_snapshot(catalog, name)
    typer.echo(f"snapshot {name} is deleted")
