"""1,000 units of 100 entries that arrive one by one, against as many bare Lance adds. Bound: 1.0.

Ours takes each unit as a run does: claimed, staged durably, and committed with others when that is due; at
the end all is committed and audited. The other side appends each unit's rows to a bare table. Both begin with
entries as they are made, and neither makes indexes.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import lance
import library
import pyarrow as pa
from sides import compare, end

from evicat.schemas.entry import Entry, Outcome, WindowResult
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.span import US, Span
from evicat.storage.rows import entry_row
from evicat.storage.store import Store
from evicat.storage.tables import ENTRIES, FILE_FORMAT

UNITS = 1_000
ENTRIES_EACH = 100
SPEECH = Producer(kind="speech", scale="speech", component="bench", version=1)
FILM = Span(0, 600 * US)


def spoken(unit: Unit) -> WindowResult:
    """A unit's only window: a sentence every 6 s."""
    entries = tuple(
        Entry(
            entry_id=entry_id(unit, number * 6 * US, 0),
            unit_id=unit.unit_id,
            asset_id=unit.asset_id,
            producer_id=unit.producer_id,
            kind="speech",
            scale=unit.scale,
            span=Span(number * 6 * US, (number + 1) * 6 * US),
            text=f"What the speaker says in sentence {number}, of about the usual length of one.",
            language="en",
        )
        for number in range(ENTRIES_EACH)
    )
    return WindowResult(span=FILM, outcome=Outcome.DONE, entries=entries)


def arrive(uri: Path, empty: Path, results: list[tuple[Unit, WindowResult]]) -> None:
    """``empty``: a catalog that knows the assets, as it does before their sound is heard."""
    shutil.rmtree(uri, ignore_errors=True)
    shutil.copytree(empty, uri)
    store = Store.connect(uri, write=True)
    store.add_producer(SPEECH)
    for unit, result in results:
        store.open(unit)
        store.write(unit, result)
        store.close(unit, complete=True)
        store.commit()
    store.commit(force=True)
    store.release()
    count = store.reader().dataset("entries").count_rows()
    assert count == UNITS * ENTRIES_EACH, count


def add(uri: Path, results: list[tuple[Unit, WindowResult]]) -> None:
    shutil.rmtree(uri, ignore_errors=True)
    dataset = lance.write_dataset(ENTRIES.empty_table(), str(uri), data_storage_version=FILE_FORMAT)
    for _, result in results:
        table = pa.Table.from_pylist([entry_row(entry, 0) for entry in result.entries], schema=ENTRIES)
        dataset = lance.write_dataset(table, dataset, mode="append")
    assert dataset.count_rows() == UNITS * ENTRIES_EACH


def main() -> None:
    assets = library.numbered_assets(UNITS, FILM.duration_us)
    units = [library.unit_of(asset, SPEECH) for asset in assets]
    results = [(unit, spoken(unit)) for unit in units]
    with tempfile.TemporaryDirectory() as name:
        empty = Path(name, "empty")
        library.write_catalog(empty, assets, [])
        end(
            compare(
                f"{UNITS * ENTRIES_EACH} rows in {UNITS} units / in {UNITS} bare adds",
                ours=lambda: arrive(Path(name, "catalog"), empty, results),
                other=lambda: add(Path(name, "bare.lance"), results),
                bound=1.0,
                runs=3,
            )
        )


if __name__ == "__main__":
    main()
