"""Replacing one unit (350 entries) in a catalog of 1 M entries. Bounds: 100 ms a commit, 500 MB, queries 1.2.

Committed are the entries, which voids their vectors, and then the new vectors. Queries run on the head after
that, its indexes refreshed as at the end of every run, and on the head before it: a fresh, maintained table.
"""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import library
import numpy as np
from sides import compare, end, keep

from evicat.schemas.asset import Asset
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.grid import CHUNK_US, windows
from evicat.schemas.identity import Producer, Unit, entry_id
from evicat.schemas.span import US
from evicat.storage.head import Head
from evicat.storage.reader import Reader
from evicat.storage.store import Store
from evicat.storage.tables import embedder_id, vectors_table

ASSETS = 2_858
WINDOWS = 350
WINDOW_US = 10 * US
DIMENSIONS = 32
REPLACED = 5
"""Units that are replaced, one commit each."""
COMMIT_S = 0.1
PEAK_MB = 500
QUERIES = 20

LOCAL = Producer(kind="local", scale="local-10s", component="bench", version=1)
EMBEDDING = Producer(
    kind="embedding", scale="vectors", component="bench", version=1, reads=(LOCAL.producer_id,)
)
TABLE = vectors_table(embedder_id(EMBEDDING))


def make(uri: Path) -> None:
    layers = [
        library.Layer(LOCAL, WINDOW_US, writes_entries=True),
        library.Layer(EMBEDDING, WINDOW_US, embeds=LOCAL, dimensions=DIMENSIONS),
    ]
    library.write_catalog(uri, _assets(), layers)


def _assets() -> list[Asset]:
    return library.numbered_assets(ASSETS, WINDOWS * WINDOW_US)


def described(unit: Unit, words: np.random.Generator) -> list[WindowResult]:
    """New entries for all windows of a unit."""
    results = []
    for span in windows(WINDOWS * WINDOW_US, WINDOW_US):
        entry = Entry(
            entry_id=entry_id(unit, span.start_us, 0),
            unit_id=unit.unit_id,
            asset_id=unit.asset_id,
            producer_id=unit.producer_id,
            kind="local",
            scale=unit.scale,
            span=span,
            text="renewed " + " ".join(words.choice(library.WORDS, library.TEXT_WORDS)),
        )
        results.append(WindowResult(span=span, outcome=Outcome.DONE, entries=(entry,)))
    return results


def embedded(results: list[WindowResult], numbers: np.random.Generator) -> list[WindowResult]:
    """A vector for each entry, by chunks."""
    entries = [entry for result in results for entry in result.entries]
    chunks = []
    for chunk in windows(WINDOWS * WINDOW_US, CHUNK_US):
        vectors = tuple(
            Vector(
                part=0,
                vector=tuple(library.directions(1, DIMENSIONS, numbers)[0].tolist()),
                **{name: getattr(entry, name) for name in Vector.model_fields if name in Entry.model_fields},
            )
            for entry in entries
            if entry.span.start_us in chunk
        )
        chunks.append(WindowResult(span=chunk, outcome=Outcome.DONE, vectors=vectors))
    return chunks


def replace(store: Store, unit: Unit, results: list[WindowResult]) -> float:
    """Write all results of a unit anew; seconds that the commit took."""
    store.open(unit)
    for result in results:
        store.write(unit, result)
    store.close(unit, complete=True)
    started = time.perf_counter()
    store.commit(force=True)
    return time.perf_counter() - started


def text_queries(reader: Reader) -> Callable[[], object]:
    table, random = reader.table("entries"), np.random.default_rng(3)
    words = [" ".join(random.choice(library.WORDS, 2)) for _ in range(QUERIES)]
    return lambda: [table.search(each, query_type="fts").limit(10).to_arrow() for each in words]


def vector_queries(reader: Reader) -> Callable[[], object]:
    table = reader.table(TABLE)
    vectors = library.directions(QUERIES, DIMENSIONS, np.random.default_rng(4))
    return lambda: [
        table.search(each, vector_column_name="vector").distance_type("cosine").limit(10).to_arrow()
        for each in vectors
    ]


def replace_some(uri: Path) -> bool:
    """Replace some units; whether commits and memory are within their bounds."""
    random, seconds = np.random.default_rng(1), []
    store = Store.connect(uri, write=True)
    for asset in _assets()[:: ASSETS // REPLACED][: REPLACED + 1]:
        results = described(library.unit_of(asset, LOCAL), random)
        seconds.append(replace(store, library.unit_of(asset, LOCAL), results))
        vectors = embedded(results, random)
        seconds.append(replace(store, library.unit_of(asset, EMBEDDING), vectors))
    commit_s = statistics.median(seconds[2:])  # the first of each loads what is loaded lazily
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.finish()
    store.release()
    print(f"replacing one unit of 1 M rows: {commit_s * 1000:.0f} ms a commit (< {COMMIT_S * 1000:.0f})")
    print(f"peak memory: {peak_mb:.0f} MB (< {PEAK_MB})", flush=True)
    facts = {"ours_s": commit_s, "other_s": COMMIT_S, "ratio": commit_s / COMMIT_S, "bound": 1.0}
    keep("replacing one unit of 1 M rows / 100 ms", facts | {"peak_mb": peak_mb, "runs": seconds})
    return commit_s <= COMMIT_S and peak_mb <= PEAK_MB


def compare_queries(uri: Path, before: Head) -> list[bool]:
    fresh, now = Reader.open(uri, before), Reader.open(uri)
    found = now.table("entries").search("renewed", query_type="fts").limit(1_000_000).to_arrow().num_rows
    assert found == (REPLACED + 1) * WINDOWS, f"{found} renewed entries are found"
    return [
        compare(
            f"{kind} queries after a replacement / before it",
            ours=queries(now),
            other=queries(fresh),
            bound=1.2,
            runs=9,
        )
        for kind, queries in (("text", text_queries), ("vector", vector_queries))
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        uri = Path(name, "catalog")
        maker = multiprocessing.get_context("spawn").Process(target=make, args=(uri,))
        maker.start()
        maker.join()
        assert maker.exitcode == 0, "the catalog could not be made"
        before = Reader.open(uri).head
        end(replace_some(uri), *compare_queries(uri, before))


if __name__ == "__main__":
    main()
