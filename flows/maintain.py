"""The Prefect flow that maintains a catalog, to be run on a schedule; ``evicat maintain`` does the same."""

from __future__ import annotations

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.logging import get_run_logger
from prefect.states import Completed

from evicat.flows.tables_maintain import headline, markdown
from evicat.storage import maintain as storage
from evicat.storage.maintain import Report


@flow(name="evicat-maintain", flow_run_name="maintain {catalog}")
def maintain(catalog: str, keep_days: float = 7.0) -> State[Report]:
    """Compact and index the tables of a catalog, and remove what is older than ``keep_days``.

    The run ends ``Completed``; its state is named ``FinishedWithFailures`` where a table failed. Its result
    is the :class:`Report`, which is also published as a Markdown artifact.

    Raises:
        UsageError: ``keep_days`` is negative, or there is no catalog that this release can use.
        BusyError: somebody else was committing all the time.
        IntegrityError: head, tables or snapshots contradict themselves; nothing was removed.
    """
    report = storage.maintain(catalog, keep_days=keep_days, tell=get_run_logger().info)
    for table in report.failed:
        get_run_logger().error("table %s failed: %s", table.table, table.error)
    create_markdown_artifact(markdown(report), key="evicat-maintain", description=f"Maintained {catalog}")
    name = "FinishedWithFailures" if report.failed else "Completed"
    return Completed(name=name, message=headline(report), data=report)
