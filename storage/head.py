"""The head: which versions of the tables belong together.

It stands in ``head.json``, and before that, for good, under its number in ``heads/``.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from evicat.schemas.errors import IntegrityError
from evicat.schemas.model import Model

from .files import write_durably
from .layout import Layout
from .tables import FIXED_TABLES


class Head(Model):
    """Versions of all tables after one group commit; ``number`` counts the commits of the catalog."""

    format: Literal["evicat-head"] = "evicat-head"
    number: int = Field(ge=1)
    written: str
    """When, as ISO 8601 in UTC."""
    tables: dict[str, int]
    """Name of every table of the catalog, and its Lance version."""

    @classmethod
    def first(cls, tables: dict[str, int]) -> Head:
        return cls(number=1, written=_now(), tables=tables)

    def following(self, tables: dict[str, int]) -> Head:
        """The next head, with these versions."""
        return Head(number=self.number + 1, written=_now(), tables=tables)


def read_head(path: Path) -> Head:
    """The head that stands in ``path``.

    Raises:
        IntegrityError: the file is missing or is not a head.
    """
    try:
        return Head.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise IntegrityError(
            f"{path} is missing: without it nobody knows which table versions belong together. "
            f"{_instead(path)}"
        ) from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"]) or "the whole file"
        raise IntegrityError(f"{path} is not a head of a catalog ({field}: {problem['msg']})") from None


def current_head(layout: Layout) -> Head:
    """The newest head of a catalog.

    Raises:
        IntegrityError: it is missing or no head, or it is not what was kept under its number.
    """
    head = read_head(layout.head)
    path = kept_path(layout, head.number)
    try:
        kept = read_head(path)
    except IntegrityError:  # not kept, or broken: a maintenance tells of that
        return head
    if kept != head:
        raise IntegrityError(
            f"{layout.head} and {path} are both head {head.number}, but {_difference(head, kept)}: "
            "one of the two was edited. Copy the right one over the other"
        )
    return head


def check_complete(head: Head, layout: Layout) -> None:
    """Look whether a head names the tables that every catalog has.

    Raises:
        IntegrityError: it lacks one; names it.
    """
    lacking = sorted(FIXED_TABLES.keys() - head.tables.keys())
    if lacking:
        raise IntegrityError(
            f"head {head.number} of {layout.root} does not name table {lacking[0]!r}, which every catalog "
            f"has. Restore {layout.head} from a copy of the catalog"
        )


def write_head(layout: Layout, head: Head) -> None:
    """Replace the head; readers that open later see the new versions, all at once. Earlier heads are kept."""
    content = (head.model_dump_json(indent=2) + "\n").encode()
    write_durably(kept_path(layout, head.number), content)
    write_durably(layout.head, content)


def kept_path(layout: Layout, number: int) -> Path:
    """Where the head of this number stays when it is no longer the newest."""
    return layout.heads / f"{number:08d}.json"


def earlier_heads(layout: Layout) -> list[Head]:
    """Every head that is kept, newest first; what cannot be read is left out."""
    newest = current_head(layout).number
    found = []
    for path in sorted(layout.heads.glob("[0-9]*.json"), reverse=True):
        with suppress(IntegrityError):
            head = read_head(path)
            if head.number <= newest:  # one beyond it was written just before a crash
                found.append(head)
    return found


def _instead(path: Path) -> str:
    """What can take the place of a ``head.json`` that is missing."""
    for kept in sorted((path.parent / "heads").glob("[0-9]*.json"), reverse=True):
        with suppress(IntegrityError):
            return f"Head {read_head(kept).number} is kept in {kept}: copy that to {path}"
    return "Restore it from a copy of the catalog"


def _difference(head: Head, kept: Head) -> str:
    for name in sorted(head.tables.keys() | kept.tables.keys()):
        versions = head.tables.get(name, "none"), kept.tables.get(name, "none")
        if versions[0] != versions[1]:
            return f"table {name!r} has version {versions[0]} in the one and {versions[1]} in the other"
    return f"their numbers ({kept.number} in the other) or dates differ"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
