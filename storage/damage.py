"""What Lance raises where a table is damaged, told as what it is.

Lance raises OSError, RuntimeError or ValueError (Arrow's errors are among these) for a file that is missing,
short, or not what its manifest says; which of them depends on the place, and says nothing more. It has no
checksums: a changed value that can still be decoded is noticed by a content hash only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from evicat.schemas.errors import IntegrityError

from .disk import is_full

OF_LANCE = (OSError, RuntimeError, ValueError)
"""What Lance raises where a table cannot be read or written."""
_SOURCE = re.compile(r"\.rs:\d+")
_MEND = "Restore the catalog from a copy, or read a snapshot or an earlier head of it with --at"
Reading = Callable[[], AbstractContextManager[None]]


def reason_of(error: BaseException) -> str:
    """What Lance says is wrong, without where in its own source it was raised."""
    return str(error).partition("\n")[0].partition(", /")[0]


def is_of_lance(error: BaseException) -> bool:
    """Whether an error that went astray is Lance's: it names a line of its source."""
    return isinstance(error, (*OF_LANCE, pa.ArrowException)) and _SOURCE.search(str(error)) is not None


@contextmanager
def damage_told(table: str) -> Iterator[None]:
    """Around reading ``table``: what Lance raises becomes an error that names the table.

    Raises:
        IntegrityError: the table cannot be read.
    """
    try:
        yield
    except OF_LANCE as error:
        if isinstance(error, OSError) and is_full(error):
            raise
        raise IntegrityError(f"table {table!r} cannot be read: {reason_of(error)}. {_MEND}") from error


class ReadTable:
    """A ``lance.LanceDataset`` that is read only, and whose reads happen inside ``reading``."""

    def __init__(self, dataset: Any, reading: Reading) -> None:
        self._dataset = dataset
        self._reading = reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    @property
    def raw(self) -> Any:
        """The data set itself, for engines that scan it; what they raise of damage is not told apart."""
        return self._dataset

    def to_table(self, *arguments: Any, **options: Any) -> pa.Table:
        with self._reading():
            rows: pa.Table = self._dataset.to_table(*arguments, **options)
        return rows

    def count_rows(self, *arguments: Any, **options: Any) -> int:
        with self._reading():
            return int(self._dataset.count_rows(*arguments, **options))

    def scanner(self, *arguments: Any, **options: Any) -> Scan:
        with self._reading():
            return Scan(self._dataset.scanner(*arguments, **options), self._reading)


class Scan:
    """A ``lance.LanceScanner`` of a :class:`ReadTable`."""

    def __init__(self, scanner: Any, reading: Reading) -> None:
        self._scanner = scanner
        self._reading = reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scanner, name)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        with self._reading():
            batches = iter(self._scanner.to_batches())
        while True:
            with self._reading():  # not around the yield: what the caller raises is not damage
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def to_table(self) -> pa.Table:
        with self._reading():
            rows: pa.Table = self._scanner.to_table()
        return rows


def missing_files(dataset: Any, folder: Path) -> list[str]:
    """Data and deletion files of a table that are gone or have another size than its manifest says."""
    missing = []
    for fragment in dataset.get_fragments():
        for file in fragment.metadata.files:
            path = folder / "data" / file.path
            if not path.is_file():
                missing.append(f"data/{file.path} is missing")
            elif file.file_size_bytes and path.stat().st_size != file.file_size_bytes:
                sizes = f"{path.stat().st_size} bytes, its manifest says {file.file_size_bytes}"
                missing.append(f"data/{file.path} has {sizes}")
        deleted = fragment.metadata.deletion_file
        if deleted is not None and not (folder / deleted.path(fragment.fragment_id)).is_file():
            missing.append(f"{deleted.path(fragment.fragment_id)} is missing")
    return missing


def check_files(dataset: Any, folder: Path) -> None:
    """Look whether all files that hold the rows of a table are there, without reading them.

    Raises:
        IntegrityError: some are gone or were cut; names the first.
    """
    missing = missing_files(dataset, folder)
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise IntegrityError(f"{folder.name}/{missing[0]}{more}. {_MEND}")
