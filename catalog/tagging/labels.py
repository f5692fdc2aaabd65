"""Labels by people: which entries carry which factors, as a JSONL file.

A line is ``{"entry_id": "...", "factor": "place:kitchen", "label": true}``; ``label`` is ``null`` where
somebody was asked and would not say. Further keys (``text``) are for people. Of two lines about one entry
and factor the last counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ConfigDict, ValidationError

from evicat.catalog.tagging.base import ENTRY_COLUMNS
from evicat.catalog.tagging.names import nearest
from evicat.catalog.tagging.vocabulary import Factor
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.model import Model, canonical_json
from evicat.schemas.places import expanded
from evicat.schemas.recipe import problem
from evicat.storage.reader import Reader
from evicat.storage.sql import sql_in

_READ_TOGETHER = 1_000


class Label(Model):
    """What somebody says of one entry and factor."""

    model_config = ConfigDict(extra="ignore")

    entry_id: str
    factor: str
    label: bool | None


@dataclass(frozen=True)
class Labelled:
    """Entries with labels, and the labels as places: ``(row, factor, label)``."""

    entries: pl.DataFrame
    factors: tuple[Factor, ...]
    labels: tuple[tuple[int, int, bool], ...]

    def of(self, factor: int) -> tuple[list[int], list[bool]]:
        """Rows and labels of one factor."""
        own = [(row, label) for row, number, label in self.labels if number == factor]
        return [row for row, _ in own], [label for _, label in own]


def read_labels(path: str | Path, *, may_be_new: bool = False) -> dict[tuple[str, str], bool | None]:
    """Labels by entry id and factor.

    Args:
        may_be_new: Whether there may be no such file, which is a file without labels.

    Raises:
        UsageError: it cannot be read, or a line is no label; names the line.
    """
    file = expanded(path)
    if may_be_new and not file.exists():
        return {}
    try:
        lines = file.read_text(encoding="utf-8").split(
            "\n"
        )  # texts may hold what splitlines takes for an end
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"labels {file} cannot be read: {error}") from None
    found: dict[tuple[str, str], bool | None] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            label = _parsed(line, f"{file}, line {number}")
            found[label.entry_id, label.factor] = label.label
    return found


def _parsed(line: str, where: str) -> Label:
    try:
        return Label.model_validate(json.loads(line))
    except json.JSONDecodeError as error:
        raise UsageError(f"{where} is not JSON ({error}); remove or mend that line") from None
    except ValidationError as error:
        raise UsageError(f"{where} is no label: {problem(error.errors()[0]).strip()}") from None


def append_label(path: str | Path, label: Label, **shown: Any) -> None:
    """Add one line, which is on the disk when this returns; ``shown``: what people want to see beside it."""
    file = expanded(path)
    line = canonical_json(label.model_dump() | shown) + "\n"
    with file.open("ab+") as stream:
        if stream.tell() and (stream.seek(-1, os.SEEK_END), stream.read(1))[1] != b"\n":
            line = "\n" + line  # somebody's hand ended the file without one
        stream.write(line.encode())
        stream.flush()
        os.fsync(stream.fileno())


def labelled(
    reader: Reader, labels: dict[tuple[str, str], bool | None], factors: Sequence[Factor]
) -> Labelled:
    """The labels of these factors with their entries.

    Raises:
        UsageError: labels are of factors or entries that are not there, or none is of these factors.
    """
    known = {factor.id: number for number, factor in enumerate(factors)}
    vocabularies = {factor.id.partition(":")[0] for factor in factors}
    for _, factor_id in labels:
        if factor_id not in known and factor_id.partition(":")[0] in vocabularies:
            raise UnknownNameError("factor", factor_id, nearest(factor_id, known))
    own = {key: label for key, label in labels.items() if label is not None and key[1] in known}
    if not own:
        raise UsageError(f"no label is of {', '.join(sorted(vocabularies))}; make some: evicat tag --label")
    entries = entries_with(reader, sorted({entry_id for entry_id, _ in own}))
    rows = {entry_id: row for row, entry_id in enumerate(entries["entry_id"].to_list())}
    lost = sorted({entry_id for entry_id, _ in own} - set(rows))
    if lost:
        raise UsageError(
            f"{len(lost)} labels are of entries that this catalog does not have, such as {lost[0]}: they "
            "are of another catalog, or their entries were made again since"
        )
    return Labelled(
        entries,
        tuple(factors),
        tuple((rows[entry_id], known[factor_id], label) for (entry_id, factor_id), label in own.items()),
    )


def entries_with(reader: Reader, entry_ids: Sequence[str]) -> pl.DataFrame:
    """Entries of these ids, as taggers are given them."""
    parts = [
        pl.DataFrame(
            reader.dataset("entries").to_table(
                columns=ENTRY_COLUMNS, filter=sql_in("entry_id", entry_ids[at : at + _READ_TOGETHER])
            )
        )
        for at in range(0, max(1, len(entry_ids)), _READ_TOGETHER)
    ]
    return pl.concat(parts).sort("entry_id")
