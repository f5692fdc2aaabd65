"""Named views of a catalog: which producers each of them shows."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from evicat.flows.options import AtOption, CatalogOption, JsonOption

views_app = typer.Typer(no_args_is_help=True, help="Named views: which producers are shown together.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the view.")]


@views_app.command("list")
def list_views(catalog: CatalogOption, at: AtOption = None, as_json: JsonOption = False) -> None:
    """List the stored views with their producers."""
    from evicat.storage.reader import Reader
    from evicat.storage.roster import Roster
    from evicat.storage.snapshots import reader_at
    from evicat.storage.views import stored_views

    reader = Reader.open(catalog) if at is None else reader_at(catalog, at)
    roster = Roster.read(reader)
    rows = [
        {
            "view": name,
            "kind": kind,
            "scale": scale,
            "producer_id": made,
            "component": roster.called(made)[0].component,
        }
        for name, places in stored_views(reader).items()
        for (kind, scale), made in sorted(places.items())
    ]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    from rich.console import Console

    from evicat.flows.tables_views import views

    views(Console(emoji=False), rows)


@views_app.command("set")
def set_stored(
    name: NameArgument,
    producers: Annotated[
        list[str],
        typer.Argument(
            metavar="PRODUCER...",
            help="First digits of their ids; see: evicat producers.",
            show_default=False,
        ),
    ],
    catalog: CatalogOption,
) -> None:
    """Store a view that shows these producers and no others; read it with `--view NAME`.

    The default view's embedders are taken too, unless others are named.
    """
    from evicat.storage.store import Store
    from evicat.storage.views import set_view

    with Store.connect(catalog, write=True) as store:
        places = set_view(store, name, producers)
    shown = ", ".join(f"{scale or kind} {made[:8]}" for (kind, scale), made in sorted(places.items()))
    typer.echo(f"View {name} shows: {shown}.")


@views_app.command("delete")
def delete_stored(name: NameArgument, catalog: CatalogOption) -> None:
    """Forget a stored view; nothing that it showed is lost."""
    from evicat.storage.store import Store
    from evicat.storage.views import delete_view

    with Store.connect(catalog, write=True) as store:
        delete_view(store, name)
    typer.echo(f"View {name} is forgotten.")
