"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

CatalogOption = Annotated[
    str,
    typer.Option("--catalog", "-c", envvar="EVICAT_CATALOG", metavar="URI", help="Folder of the catalog."),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at", metavar="NAME|NUMBER", help="As it was: a snapshot's name, or the number of an earlier head."
    ),
]
ViewOption = Annotated[
    str | None,
    typer.Option(
        "--view", metavar="NAME", help="Through this view: a stored one, 'w/o narrative' or '+narrative'."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]
ProducersArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="PRODUCER...", help="First digits of their ids; see: evicat producers.", show_default=False
    ),
]
ProducerOption = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Of this producer, active or not; see: evicat producers."),
]
FactorsOption = Annotated[
    str | None,
    typer.Option(metavar="EXPR", help="Only with these factors: 'place:kitchen and not people:crowd'."),
]
ProfileOption = Annotated[str | None, typer.Option(metavar="FILE", help="Where and how fast to run (TOML).")]
RetryOption = Annotated[
    list[str] | None,
    typer.Option(metavar="OUTCOME", help="Make again: failed, truncated, refused or stale; repeatable."),
]
MaxCallsOption = Annotated[int | None, typer.Option(min=1, help="Stop after so many calls of models.")]
MaxHoursOption = Annotated[float | None, typer.Option(help="Begin nothing after so many hours.")]
LimitWindowsOption = Annotated[int | None, typer.Option(min=1, help="Stop after so many windows.")]
CanaryOption = Annotated[
    int | None, typer.Option(min=1, help="So many windows first; the rest unless most of them failed.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show the log of the run.")]
