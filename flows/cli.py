"""The command line ``evicat``. Heavy packages are imported by the commands that need them."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from evicat.flows import commands_keeping, commands_making, commands_reading
from evicat.flows.commands import EXIT_FAILURES, EXIT_USAGE, escaped, terminal
from evicat.flows.recipes import recipes_app
from evicat.flows.snapshots import snapshot_app
from evicat.flows.trace import trace_app
from evicat.flows.views import views_app
from evicat.schemas.errors import EvicatError, UsageError

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

for command in (
    commands_making.index,
    commands_making.reindex,
    commands_making.plan,
    commands_making.cost,
    commands_reading.search,
    commands_reading.show,
    commands_reading.status,
    commands_reading.producers,
    commands_reading.export,
    commands_reading.quality,
    commands_reading.view,
    commands_reading.mcp,
    commands_making.tag,
    commands_reading.report,
    commands_keeping.activate,
    commands_keeping.retire,
    commands_reading.diff,
    commands_keeping.weights,
    commands_keeping.doctor,
    commands_keeping.maintain,
    commands_keeping.migrate,
):
    app.command()(command)


def main() -> NoReturn:
    """Entry point: errors that people can mend are printed without a traceback."""
    try:
        app(standalone_mode=True)
    except UsageError as error:
        terminal(stderr=True).print(f"[bold red]Error:[/] {escaped(str(error))}", soft_wrap=True)
        sys.exit(EXIT_USAGE)
    except EvicatError as error:
        terminal(stderr=True).print(
            f"[bold red]{error.error_class}:[/] {escaped(str(error))}", soft_wrap=True
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
        what = f"[bold red]Integrity:[/] {escaped(reason_of(error))}"
    elif isinstance(error, OSError):
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        what = f"[bold red]Error:[/] {escaped(said)}"
    else:
        raise error
    terminal(stderr=True).print(what, soft_wrap=True)
    return EXIT_FAILURES if is_of_lance(error) else EXIT_USAGE


if __name__ == "__main__":
    main()
