"""The audit of a catalog: every promise of its tables, looked at row by row at one head.

    for proof in audit(Reader.open("my.catalog")).proofs:
        print(proof.name, proof.looked, "holds" if proof.holds else proof.cases)

Nothing is changed. The rows of windows, entries and vectors are read in portions of about
``evidence.PORTION_ROWS``, so that memory does not grow with the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from evicat.catalog import proofs_entries, proofs_inputs, proofs_ledger, proofs_supports, proofs_tags
from evicat.catalog.evidence import Evidence
from evicat.catalog.proof import Proof
from evicat.schemas.errors import IntegrityError
from evicat.storage.reader import Reader
from evicat.storage.tables import FIXED_TABLES


@dataclass(frozen=True)
class Audit:
    """All proofs, in order, and how the videos that their cases name are called."""

    head: int
    proofs: list[Proof]
    video_names: dict[str, str]

    @property
    def holds(self) -> bool:
        return all(proof.holds for proof in self.proofs)


def _proofs() -> list[Proof]:
    return [
        Proof("tables", "the tables are those that the head names, and their counts agree", "rows"),
        Proof("windows", "the windows of every complete unit tile its video", "windows"),
        Proof(
            "entries", "every window has the entries it says, every entry its window", "windows and entries"
        ),
        Proof("ids", "ids are unique and well-formed", "rows"),
        Proof("times", "entries lie on the timeline, and their frames lie in them", "entries"),
        Proof(
            "units",
            "units equal the sums of their windows, and whatever is named is there",
            "units and names",
        ),
        Proof(
            "contexts", "whatever reads other entries read those that are there", "windows, chunks, producers"
        ),
        Proof("inputs", "units were made from the same subtitles, those beside the videos", "units"),
        Proof("vectors", "every vector has its entry and length 1, every entry its vectors", "vectors"),
        Proof("supports", "every sentence of weighed narratives has its support, on entries", "sentences"),
        Proof("tags", "every tag has its entry and its window, and the entries' factors follow", "tags"),
    ]


def audit(reader: Reader) -> Audit:
    """Look at everything that the head of ``reader`` holds. What is wrong is in the answer, never raised."""
    evidence, proofs = Evidence(reader), {proof.name: proof for proof in _proofs()}
    result = Audit(reader.version, list(proofs.values()), {})
    if _readable(proofs["tables"], evidence):
        try:
            _look(proofs, evidence)
        except IntegrityError as error:
            proofs["tables"].fail(str(error))
        else:
            names = evidence.names.sort("name", descending=True)
            result.video_names.update(names.select("asset_id", "name").iter_rows())
            return result
    for proof in result.proofs[1:]:
        proof.skipped = True
    return result


def _look(proofs: dict[str, Proof], evidence: Evidence) -> None:
    proofs_entries.fixed_ids(proofs["ids"], evidence)
    proofs_ledger.references(proofs["units"], evidence)
    proofs_inputs.producer_facts(proofs["contexts"], evidence)
    proofs_inputs.shared_inputs(proofs["inputs"], evidence)
    proofs_inputs.sidecars(proofs["inputs"], evidence)
    for portion in evidence.portions():
        proofs_ledger.tiling(proofs["windows"], evidence, portion)
        proofs_ledger.written(proofs["entries"], evidence, portion)
        proofs_entries.ids(proofs["ids"], evidence, portion)
        proofs_entries.spans(proofs["times"], evidence, portion)
        proofs_ledger.unit_sums(proofs["units"], evidence, portion)
        proofs_inputs.contexts(proofs["contexts"], evidence, portion)
        proofs_entries.vectors(proofs["vectors"], evidence, portion)
        proofs_supports.supports(proofs["supports"], evidence, portion)
        proofs_tags.tags(proofs["tags"], evidence, portion)
    _counts(proofs["tables"], evidence)


def _readable(proof: Proof, evidence: Evidence) -> bool:
    """Whether every table of the head opens at its version, with its columns and all its files."""
    reader, unreadable = evidence.reader, sorted(set(FIXED_TABLES) - set(evidence.reader.names()))
    for name in unreadable:
        proof.fail(f"the head lists no table {name!r}")
    for name in reader.names():
        try:
            table = reader.dataset(name)
        except IntegrityError as error:
            proof.fail(str(error))
            unreadable.append(name)
            continue
        if name in FIXED_TABLES and not table.schema.equals(FIXED_TABLES[name]):
            wrong = _other_columns(table.schema, FIXED_TABLES[name])
            proof.fail(f"table {name!r} has other columns than this release writes: {wrong}")
            unreadable.append(name)
        data = Path(table.uri.removeprefix("file://"), "data")
        files = [file.path for fragment in table.get_fragments() for file in fragment.data_files()]
        for file in files:
            if not (data / file).is_file():
                proof.fail(f"table {name!r}: its file {file} is missing")
                unreadable.append(name)
        if table.latest_version > table.version:
            proof.notes.append(
                f"table {name!r} is at version {table.latest_version}, the head names {table.version}: "
                "a commit is under way or broke off, or an earlier head is looked at"
            )
    return not unreadable


def _other_columns(found: pa.Schema, right: pa.Schema) -> str:
    """Columns that are not those of ``right``, or allow nulls where it does not."""
    wrong = [field for field in found if field not in list(right)]
    lacking = [field for field in right if field.name not in found.names]
    told = [f"{each.name} is {each.type}, null{'' if each.nullable else ' not'} allowed" for each in wrong]
    return "; ".join([*told, *(f"no {each.name}" for each in lacking)]) or "their order"


def _counts(proof: Proof, evidence: Evidence) -> None:
    """After all portions: nothing escaped them, and unit rows account for all rows."""
    reader = evidence.reader
    counts = {name: reader.dataset(name).count_rows() for name in reader.names()}
    proof.looked += sum(counts.values())
    for column, table in (("windows", "coverage"), ("entries", "entries")):
        told = evidence.units[column].sum()
        if told != counts[table]:
            proof.fail(f"table {table!r} has {counts[table]} rows, the units say {told}")
    by_unit = {"coverage": "unit_id", "entries": "unit_id"}
    by_unit |= {"supports": "support_unit_id", "tags": "tag_unit_id"}
    by_unit |= dict.fromkeys(evidence.vector_tables, "embed_unit_id")
    for table, column in by_unit.items():
        strangers = evidence.strangers(table, column).select(pl.col("rows").sum()).item()
        found = evidence.seen.get(table, 0) + strangers
        if found != counts[table]:
            proof.fail(
                f"table {table!r}: {found} of {counts[table]} rows are found by {column}; its index is wrong"
            )
