"""The commands ``evicat recipes``: what ships, and the text of one."""

from __future__ import annotations

from typing import Annotated

import typer

recipes_app = typer.Typer(invoke_without_command=True)


@recipes_app.callback()
def list_(context: typer.Context) -> None:
    """List the recipes that ship, and what each of them makes."""
    if context.invoked_subcommand:
        return
    from rich.console import Console

    from evicat.catalog.recipes import shipped
    from evicat.flows import tables

    tables.recipes(Console(emoji=False), shipped())


@recipes_app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A recipe that ships, or a TOML file.")],
) -> None:
    """Print a recipe as it is written, with comments that say which numbers a paper states.

    It is checked before. Save it under another name to begin a recipe of your own.
    """
    from evicat.catalog.recipes import recipe_text

    typer.echo(recipe_text(name), nl=False)
