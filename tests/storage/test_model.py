"""Any sequence of writing, sealing, committing, repeating and restarting ends as a plain dictionary says."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evicat.storage.staging import StagingArea
from evicat.storage.store import Store

WINDOWS = 4
NAMES = ("one", "two")
TABLES = ("entries", "coverage", "units")

windows = st.integers(0, WINDOWS - 1)
write = st.tuples(windows, st.integers(0, 2), st.integers(0, 2))
"""Window, version of its text, number of entries (none: it failed)."""
step = st.one_of(
    st.tuples(st.just("run"), st.sampled_from(NAMES), st.sampled_from("ab"), st.lists(write, max_size=6)),
    st.tuples(st.just("embed"), st.sampled_from(NAMES), st.lists(windows, max_size=4, unique=True)),
    st.tuples(st.sampled_from(["commit", "commit twice", "restart", "crash in a chunk"])),
)


@dataclass
class Model:
    """What the catalog must hold: texts by unit and window, which units were closed as complete, and which
    windows are embedded."""

    complete: set[str] = field(default_factory=set)
    inputs: dict[str, str] = field(default_factory=dict)
    texts: dict[str, dict[int, list[str]]] = field(default_factory=lambda: {name: {} for name in NAMES})
    embedded: dict[str, dict[int, list[str]]] = field(default_factory=lambda: {name: {} for name in NAMES})

    def write(self, name: str, inputs: str, window: int, texts: list[str]) -> None:
        if self.inputs.setdefault(name, inputs) != inputs:
            self.inputs[name] = inputs
            self.complete.discard(name)
            for old in list(self.texts[name]):
                self._lose(name, old, [])
            self.texts[name] = {}
        self._lose(name, window, texts)
        self.texts[name][window] = texts

    def _lose(self, name: str, window: int, texts: list[str]) -> None:
        if self.embedded[name].get(window) != texts:
            self.embedded[name].pop(window, None)


class Run:
    """One example: a store and its model, driven together."""

    def __init__(self, making, catalog: Path) -> None:
        self.making, self.catalog, self.model = making, catalog, Model()
        self.store = self.connect()

    def connect(self) -> Store:
        store = Store.connect(self.catalog, write=True)
        store.add_producer(self.making.MINILM)
        return store

    def result(self, unit, window, texts):
        if not texts:
            return self.making.failed(window)
        entries = [self.making.entry(unit, window, text, ordinal=number) for number, text in enumerate(texts)]
        return self.making.done(unit, window).model_copy(update={"entries": tuple(entries)})

    def run(self, name, inputs, writes):
        unit = self.making.unit(name, inputs=inputs)
        self.store.open(unit)
        for chunk in (writes[:3], writes[3:]):
            latest = {}
            for window, version, count in chunk:
                latest[window] = [f"{inputs} {version} {ordinal}" for ordinal in range(count)]
                self.store.write(unit, self.result(unit, window, latest[window]))
            for window, texts in latest.items():
                self.model.write(name, inputs, window, texts)
            if len(writes) > 3:
                self.store.seal(unit)
        results = self.store.open(unit)
        expected = self.model.texts[name] if self.model.inputs.get(name) == inputs else {}
        assert {
            start // self.making.WINDOW_US: [entry.text for entry in result.entries]
            for start, result in results.items()
        } == expected
        is_whole = len(results) == WINDOWS
        self.store.close(unit, complete=is_whole)
        assert self.store.is_complete(unit) == is_whole
        if is_whole:
            self.model.complete.add(name)

    def embed(self, name, chosen):
        source = self.making.unit(name, inputs=self.model.inputs.get(name, ""))
        unit = self.making.unit(name, producer=self.making.MINILM)
        self.store.open(unit)
        for window in chosen:
            texts = self.model.texts[name].get(window, [])
            self.store.write(
                unit, self.making.embedded(window, list(self.result(source, window, texts).entries))
            )
            if texts:
                self.model.embedded[name][window] = texts
            else:
                self.model.embedded[name].pop(window, None)
        self.store.close(unit, complete=False)

    def commit(self):
        self.store.commit(force=True)

    def commit_twice(self):
        """Crash after a commit, with the last two of its files still there."""
        batches, remove = [[]], StagingArea.remove

        def remember(staging, paths):
            batches.append([(path, path.read_bytes()) for path in paths])
            remove(staging, paths)

        with mock.patch.object(StagingArea, "remove", remember):
            self.commit()
        for path, content in batches[-1][-2:]:
            path.write_bytes(content)
        self.commit()

    def restart(self):
        self.store.release()
        self.store = self.connect()

    def crash_in_a_chunk(self):
        unit = self.making.unit("one", inputs=self.model.inputs.get("one", "a"))
        self.store.open(unit)
        self.store.write(unit, self.result(unit, 2, ["from the journal"]))
        self.model.write("one", unit.inputs_hash, 2, ["from the journal"])
        self.restart()

    def check(self):
        self.store.finish()
        content = self.making.content(self.catalog)
        for name in NAMES:
            asset_id = self.making.unit(name).asset_id
            rows = {table: [row for row in content[table] if row["asset_id"] == asset_id] for table in TABLES}
            texts = self.model.texts[name]
            assert [row["text"] for row in rows["entries"]] == [
                text for _, of in sorted(texts.items()) for text in of
            ]
            sight = [row for row in rows["coverage"] if row["kind"] == "local"]
            assert [row["start_s"] / 10 for row in sight] == sorted(texts)
            assert [row["entries"] for row in sight] == [len(of) for _, of in sorted(texts.items())]
            for unit in [row for row in rows["units"] if row["kind"] == "local"]:
                assert unit["inputs_hash"] == self.model.inputs.get(name, unit["inputs_hash"])
                assert unit["windows"] == len(texts)
                assert unit["entries"] == sum(map(len, texts.values()))
                assert unit["complete"] == (name in self.model.complete)
            vectors = [row for row in content.get(self.making.VECTORS, []) if row["asset_id"] == asset_id]
            assert [row["vector"][0] for row in vectors] == [
                float(len(text)) for _, of in sorted(self.model.embedded[name].items()) for text in of
            ]
            covered = {row["start_s"] / 10 for row in rows["coverage"] if row["kind"] == "embedding"}
            assert covered >= {window for window, of in self.model.embedded[name].items() if of}


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(step, min_size=1, max_size=8))
def test_the_store_does_what_the_model_says(making, empty_catalog, steps):
    with tempfile.TemporaryDirectory() as folder:
        run = Run(making, Path(shutil.copytree(empty_catalog, Path(folder) / "catalog")))
        for name, *arguments in steps:
            getattr(run, name.replace(" ", "_"))(*arguments)
        run.check()
        run.store.release()
