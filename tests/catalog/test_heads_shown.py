"""A catalog that was opened stays as it was, says which head it shows, and is opened anew to see more."""

from __future__ import annotations

from pathlib import Path

from evicat.catalog.query import Catalog
from evicat.storage.store import Store


def test_rows_written_later_show_in_a_catalog_opened_later(making, tmp_path: Path) -> None:
    uri, unit = str(tmp_path / "catalog"), making.unit()
    opened = []
    for window in range(2):
        with Store.connect(uri, write=True, create=True) as store:
            store.add_producer(making.SIGHT)
            store.open(unit)
            store.write(unit, making.done(unit, window, f"text {window}"))
            store.close(unit, complete=False)
        opened.append(Catalog.open(uri))
    first, second = opened
    assert first.entries()["text"].to_list() == ["text 0"]
    assert second.entries()["text"].to_list() == ["text 0", "text 1"]
    assert first.version < second.version == store.head.number
    again = Catalog.open(uri, at=str(first.version))
    assert again.version == first.version
    assert again.entries().equals(first.entries())
