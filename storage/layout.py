"""Where the parts of a catalog lie, and how a catalog is recognised. The only code that reads URIs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from evicat.schemas.errors import CatalogError
from evicat.schemas.model import content_hash
from evicat.schemas.places import expanded

FORMAT = "evicat-catalog"
SCHEMA = 3
"""Number of the catalog layout and table schemas that this release reads and writes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths of one catalog. Locks always lie inside it, so that all its writers meet there."""

    root: Path
    journals: Path
    """Journals of unfinished chunks: local, also where the catalog is not."""

    @classmethod
    def of(cls, uri: str | Path, work_dir: str | Path = "") -> Layout:
        """Paths for a local folder or ``file://`` URI.

        Raises:
            CatalogError: a URI of another scheme.
        """
        root = _local_folder(uri)
        if not work_dir:
            return cls(root, root / "work" / "journal")
        own = content_hash(str(root.resolve()))[:16]
        return cls(root, expanded(work_dir).absolute() / own / "journal")

    @property
    def marker(self) -> Path:
        return self.root / "evicat.json"

    @property
    def head(self) -> Path:
        return self.root / "head.json"

    @property
    def heads(self) -> Path:
        """Every head that can still be opened, by number."""
        return self.root / "heads"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def staged(self) -> Path:
        return self.root / "staged"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def claims(self) -> Path:
        return self.work / "claims"

    @property
    def commit_lock(self) -> Path:
        return self.work / "commit.lock"

    def table(self, name: str) -> Path:
        return self.tables / f"{name}.lance"

    def check_is_catalog(self) -> None:
        """Touch nothing, and fail unless this is a catalog that this release can use.

        Raises:
            CatalogError: no catalog, a broken marker, or another schema; of an older one says how to migrate.
        """
        schema = self.schema()
        if schema < SCHEMA:
            raise CatalogError(
                f"{self.root} has catalog schema {schema}; this evicat uses schema {SCHEMA}. "
                f"Migrate it with: evicat migrate --catalog {self.root}"
            )
        if schema > SCHEMA:
            raise CatalogError(
                f"{self.root} has catalog schema {schema}; this evicat uses schema {SCHEMA}. "
                f"Use a release of evicat for schema {schema}; nothing was changed"
            )

    def schema(self) -> int:
        """Number of the schema that the catalog has; any is right here.

        Raises:
            CatalogError: no catalog, or a broken marker.
        """
        if not self.marker.is_file():
            raise CatalogError(
                f"{self.root} is not a catalog (it has no {self.marker.name}); "
                f"make one with: evicat index MEDIA --catalog {self.root}"
            )
        return _read_schema(self.marker)


def _local_folder(uri: str | Path) -> Path:
    text = str(uri)
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", text):
        return expanded(text).absolute()
    parts = urlsplit(text)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise CatalogError(f"catalogs lie in local folders (a path or file:///path), got {text!r}")
    return Path(unquote(parts.path))


def _read_schema(marker: Path) -> int:
    try:
        content = json.loads(marker.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise CatalogError(f"{marker} says format {content['format']!r}, expected {FORMAT!r}")
        return int(content["schema"])
    except (ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{marker} is broken ({error!r}); it should say format and schema") from None
