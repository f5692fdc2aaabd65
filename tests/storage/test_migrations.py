"""A catalog of the first schema is refused with what to do, and migrated without a change to its rows."""

import hashlib
import io
import json
import shutil
from pathlib import Path

import pyarrow.ipc as ipc
import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import BusyError, CatalogError, UnknownNameError
from evicat.schemas.identity import Producer
from evicat.storage import migrations
from evicat.storage.create import create_catalog
from evicat.storage.head import earlier_heads, read_head
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.locks import ProcessLock
from evicat.storage.maintain import maintain
from evicat.storage.migrations import migrate
from evicat.storage.reader import Reader
from evicat.storage.rows import producer_row
from evicat.storage.snapshots import snapshots
from evicat.storage.staging import ChunkFacts, StagingArea
from evicat.storage.store import Store
from evicat.storage.tables import FIXED_TABLES
from evicat.storage.transact import open_table

SCHEMA_1 = Path(__file__).parent / "catalogs" / "schema1"
SCHEMA_2 = Path(__file__).parent / "catalogs" / "schema2"
KEPT = ("before-schema-2", "before-schema-3")
NEW_IN_3 = {"tags": [], "vocabularies": []}
VIEW = {
    ("local", "local-10s"): "7168b464ad0690f22b15a8e0d58e7e93",
    ("narrative", "narrative-20s"): "453a5658f30218335890039a008667c4",
    ("speech", "speech"): "1c86edf647a3a5d14901d10897372c75",
    ("embedding", ""): "31006fbdf3e492e0effee87dcc6e83ac",
}
"""Of the two that wrote ``local-10s`` the one that did so last."""
OLDER_SIGHT = "b7fa7c01"
VECTORS = "vectors_31006fbd"
BREAKS = [
    ("write_manifest", "before"),
    ("make_folders", "before"),
    ("make_folders", "after"),
    ("_activate_missing", "before"),
    ("_activate_missing", "after"),
    ("add_columns_and_views", "after"),
    ("drain", "after"),
    ("commit_waiting", "after"),
    ("write_durably", "before"),
    ("write_durably", "after"),
]
"""A name that the migration calls, and on which side of its first call it is killed."""


@pytest.fixture
def old(tmp_path) -> Path:
    return Path(shutil.copytree(SCHEMA_1, tmp_path / "old"))


def rows(reader_of, names):
    """Rows by table, in whatever order they are stored."""
    return {name: sorted(reader_of(name).to_table().to_pylist(), key=_as_text) for name in names}


def rows_before(catalog):
    head = read_head(catalog / "head.json")
    layout = Layout.of(catalog)
    return rows(lambda name: open_table(layout, name, head.tables[name]), head.tables)


def content(catalog):
    """Rows by table of a migrated catalog."""
    reader = Reader.open(catalog)
    return rows(reader.dataset, reader.names())


def as_schema_2(before):
    views = [
        {"view": "default", "kind": kind, "scale": scale, "producer_id": producer}
        for (kind, scale), producer in VIEW.items()
    ]
    after = {}
    for name, table in before.items():
        empty = dict.fromkeys(FIXED_TABLES[name].names if name in FIXED_TABLES else ())
        after[name] = sorted((empty | row for row in table), key=_as_text)
    return after | {"views": sorted(views, key=_as_text), "supports": [], **NEW_IN_3}


def _as_text(row):
    return json.dumps(row, sort_keys=True)


def tree(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "use",
    [
        Reader.open,
        Store.connect,
        lambda uri: Store.connect(uri, write=True),
        lambda uri: Store.connect(uri, write=True, create=True),
        lambda uri: Catalog.open(str(uri)),
        maintain,
    ],
    ids=["reader", "store", "writer", "creator", "catalog", "maintenance"],
)
def test_an_older_catalog_is_refused_with_the_command_that_migrates_it(use, old):
    before = tree(old)
    with pytest.raises(CatalogError, match=rf"schema 1; this evicat uses schema 3.*evicat migrate .*{old}"):
        use(old)
    assert tree(old) == before


def test_no_row_is_lost_or_changed(old):
    before = rows_before(old)
    done = migrate(old)
    assert (done.before, done.after, done.kept) == (1, SCHEMA, KEPT)
    assert content(old) == as_schema_2(before)


def test_the_tables_are_those_of_a_new_catalog(old, empty_catalog):
    migrate(old)
    migrated, new = Reader.open(old), Reader.open(empty_catalog)
    for name in FIXED_TABLES:
        columns = {column.name: column for column in migrated.dataset(name).schema}
        assert columns == {column.name: column for column in new.dataset(name).schema}, name
    assert {path.name for path in new._layout.root.iterdir()} <= {path.name for path in old.iterdir()}
    assert read_head(old / "head.json") in earlier_heads(Layout.of(old))


def test_of_several_producers_the_one_that_wrote_last_is_shown(old):
    migrate(old)
    catalog = Catalog.open(str(old))
    shown = catalog.entries("walk.mp4", kind="local")["text"].to_list()
    assert shown == ["A man waits at a bus stop.", "A red bus arrives."]
    assert catalog.entries("walk.mp4", producer=OLDER_SIGHT)["text"].to_list() == ["a man", "a man walks"]


def test_a_migrated_catalog_is_searched(old):
    migrate(old)
    hits = Catalog.open(str(old)).search("boards", mode="text", video="day/bus.mp4")
    assert sorted(hits["kind"].to_list()) == ["local", "narrative"]
    vectors = Reader.open(old).table(VECTORS)
    nearest = vectors.search([0.5, 0.5, -0.5, -0.5]).limit(2).to_arrow()["entry_id"].to_pylist()
    assert all(".speech." in each for each in nearest), "'Yes, it is.' has no bus in it"


def test_a_migrated_catalog_is_written_to(making, old):
    migrate(old)
    unit = making.unit("new")
    with Store.connect(old, write=True) as store:
        store.add_producer(making.SIGHT)
        store.open(unit)
        store.write(unit, making.done(unit, 0, "a new bus"))
        store.close(unit, complete=True)
    assert "a new bus" in Reader.open(old).dataset("entries").to_table()["text"].to_pylist()
    views = Reader.open(old).dataset("views").to_table().to_pylist()
    assert {(row["kind"], row["scale"]): row["producer_id"] for row in views} == VIEW


def test_what_an_older_run_left_staged_is_committed_and_shown(old):
    sound = Producer(kind="sound", scale="sound", component="ears", version=1)
    producers = StagingArea(old / "staged")
    (old / "staged").mkdir()
    producers.stage_facts("producers", [producer_row(sound)])
    migrate(old)
    views = Reader.open(old).dataset("views").to_table().to_pylist()
    assert sound.producer_id in [row["producer_id"] for row in views]
    assert producers.files() == []


def test_results_that_an_older_run_left_staged_are_committed(making, old):
    """Its files lack the columns that came later."""
    unit, staging = making.unit("waiting"), StagingArea(old / "staged")
    (old / "staged").mkdir()
    chunk = staging.stage_chunk(ChunkFacts(unit=unit, run_id="r"), [making.done(unit, 0, "a late bus")])
    older = ipc.open_file(chunk).read_all().drop_columns("raw")
    chunk.unlink()
    content = io.BytesIO()
    with ipc.new_file(content, older.schema) as writer:
        writer.write_table(older)
    digest = hashlib.sha256(content.getvalue()).hexdigest()[:16]
    chunk.with_name(f"{chunk.stem.rpartition('-')[0]}-{digest}.arrow").write_bytes(content.getvalue())
    migrate(old)
    assert "a late bus" in Reader.open(old).dataset("entries").to_table()["text"].to_pylist()
    assert staging.files() == []


def test_a_second_migration_has_nothing_to_do(old):
    migrate(old)
    before = tree(old)
    done = migrate(old)
    assert (done.before, done.after, done.kept) == (SCHEMA, SCHEMA, ())
    assert tree(old) == before


def test_what_was_there_before_stays_through_maintenance(old):
    before = rows_before(old)
    migrate(old)
    maintain(old, keep_days=0)
    kept, _ = snapshots(Layout.of(old))
    assert (kept.name, kept.catalog_schema) == ("before-schema-2", 1)
    layout = Layout.of(old)
    names = kept.head.tables
    assert rows(lambda name: open_table(layout, name, names[name]), names) == before
    assert content(old) == as_schema_2(before)


class Killed(BaseException):
    """As sudden as an exception can be."""


@pytest.mark.parametrize(("name", "when"), BREAKS, ids="-".join)
def test_a_killed_migration_is_finished_by_the_next(old, monkeypatch, name, when):
    before = rows_before(old)
    head = read_head(old / "head.json")
    original = getattr(migrations, name)

    def mortal(*arguments):
        if when == "after":
            original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(migrations, name, mortal)
        steps = tuple(mortal if step is original else step for step in migrations.MIGRATIONS[1])
        patch.setitem(migrations.MIGRATIONS, 1, steps)
        with pytest.raises(Killed):
            migrate(old)
    if (name, when) != ("write_durably", "after"):
        with pytest.raises(CatalogError, match="evicat migrate"):
            Reader.open(old)
    migrate(old)
    assert content(old) == as_schema_2(before)
    kept, _ = snapshots(Layout.of(old))
    assert kept.head == head, "not a half-migrated one"
    opened = [Reader.open(old, each) for each in earlier_heads(Layout.of(old))]
    assert all(each.dataset("views").count_rows() == len(VIEW) for each in opened)


def test_a_catalog_of_schema_2_gets_tables_for_tags_and_keeps_all_else(making, tmp_path):
    path = Path(shutil.copytree(SCHEMA_2, tmp_path / "two"))
    before = rows_before(path)
    with pytest.raises(CatalogError, match="has catalog schema 2; this evicat uses schema 3"):
        Catalog.open(str(path))
    assert migrate(path).kept == ("before-schema-3",)
    assert content(path) == before | NEW_IN_3
    catalog = Catalog.open(str(path))
    assert catalog.supports("walk.mp4")["role"].to_list() == ["observed"]
    assert catalog.tags().is_empty()
    with pytest.raises(UnknownNameError, match="factor 'place:street'; known: none"):
        catalog.entries(factors="place:street")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", ["_ensure_tags", "add_tags", "move_head", "write_durably"])
def test_a_killed_migration_to_schema_3_is_finished_by_the_next(tmp_path, monkeypatch, name, when):
    path = Path(shutil.copytree(SCHEMA_2, tmp_path / "two"))
    before, head = rows_before(path), read_head(path / "head.json")
    original = getattr(migrations, name)

    def mortal(*arguments):
        if when == "after":
            original(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(migrations, name, mortal)
        steps = tuple(mortal if step is original else step for step in migrations.MIGRATIONS[2])
        patch.setitem(migrations.MIGRATIONS, 2, steps)
        with pytest.raises(Killed):
            migrate(path)
    migrate(path)
    assert content(path) == before | NEW_IN_3
    (kept,) = snapshots(Layout.of(path))
    assert kept.head == head


def test_not_while_a_run_is_writing(old):
    (old / "work" / "claims").mkdir(parents=True)
    with (
        ProcessLock(old / "work" / "claims" / "abc.lock", "x").held(timeout_s=0),
        pytest.raises(BusyError, match=r"cannot be migrated now: .*unit abc is held by process"),
    ):
        migrate(old)
    assert json.loads((old / "evicat.json").read_text())["schema"] == 1
    migrate(old)


def test_neither_a_newer_catalog_nor_another_folder(tmp_path):
    create_catalog(tmp_path / "new")
    (tmp_path / "new" / "evicat.json").write_text('{"format": "evicat-catalog", "schema": 99}')
    with pytest.raises(CatalogError, match="Use a release of evicat for schema 99"):
        migrate(tmp_path / "new")
    with pytest.raises(CatalogError, match="is not a catalog"):
        migrate(tmp_path)


def test_every_older_schema_has_its_steps():
    assert sorted(migrations.MIGRATIONS) == list(range(1, SCHEMA))
