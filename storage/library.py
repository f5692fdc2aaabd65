"""What a catalog knows of an asset beside its entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from evicat.schemas.asset import Asset

Status = Literal["ok", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class Video:
    """An asset of the catalog."""

    asset_id: str
    status: Status
    size_bytes: int
    facts: str | None
    """All facts as JSON; None where its file could not be read at all."""
    error_class: str = ""
    message: str = ""

    @property
    def asset(self) -> Asset | None:
        """The facts as a value, parsed here: most of a library is never asked for them."""
        return None if self.facts is None else Asset.model_validate_json(self.facts)

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Video:
        return cls(
            asset_id=row["asset_id"],
            status=row["status"],
            size_bytes=row["size_bytes"],
            facts=row["facts"],
            error_class=row["error_class"],
            message=row["message"],
        )
