"""The head: which versions of the tables belong together."""

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
            "Restore it from a copy of the catalog"
        ) from None
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"]) or "the whole file"
        raise IntegrityError(f"{path} is not a head of a catalog ({field}: {problem['msg']})") from None


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
    newest = read_head(layout.head).number
    found = []
    for path in sorted(layout.heads.glob("[0-9]*.json"), reverse=True):
        with suppress(IntegrityError):
            head = read_head(path)
            if head.number <= newest:  # one beyond it was written just before a crash
                found.append(head)
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
