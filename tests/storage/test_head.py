"""Opening: what is a catalog, which versions belong together, and what is said where they do not."""

import json
import shutil

import lance
import pytest

from evicat.schemas.errors import BusyError, CatalogError, IntegrityError, UnknownNameError, UsageError
from evicat.schemas.naming import Root
from evicat.storage import reader as reader_module
from evicat.storage import transact
from evicat.storage.create import create_catalog
from evicat.storage.head import kept_path, read_head
from evicat.storage.layout import SCHEMA, Layout
from evicat.storage.maintain import maintain
from evicat.storage.reader import Reader
from evicat.storage.snapshots import reader_at
from evicat.storage.store import Store


def fill(making, catalog, windows=2):
    unit = making.unit()
    with Store.connect(catalog, write=True) as store:
        store.open(unit)
        for window in range(windows):
            store.write(unit, making.done(unit, window))
        store.close(unit, complete=True)
    return unit


def tree(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob("*")}


def newest_kept(catalog):
    return kept_path(Layout.of(catalog), read_head(catalog / "head.json").number)


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("open_it", [Reader.open, Store.connect, lambda uri: Store.connect(uri, write=True)])
class TestRefused:
    def test_a_folder_that_is_no_catalog(self, open_it, tmp_path):
        (tmp_path / "video.mp4").touch()
        before = tree(tmp_path)
        with pytest.raises(CatalogError, match=r"is not a catalog .* make one with"):
            open_it(tmp_path)
        assert tree(tmp_path) == before

    def test_nothing_there(self, open_it, tmp_path):
        with pytest.raises(CatalogError, match="is not a catalog"):
            open_it(tmp_path / "none")
        assert list(tmp_path.iterdir()) == []

    def test_a_newer_schema(self, open_it, catalog):
        newer = SCHEMA + 1
        edit(catalog / "evicat.json", schema=newer)
        before = tree(catalog)
        told = rf"schema {newer}; this evicat uses schema {SCHEMA}.*for schema {newer}"
        with pytest.raises(CatalogError, match=told):
            open_it(catalog)
        assert tree(catalog) == before

    @pytest.mark.parametrize(
        "text", ["", "{}", '{"format": "other", "schema": 1}', '{"format": "evicat-catalog"}']
    )
    def test_a_broken_marker(self, open_it, catalog, text):
        (catalog / "evicat.json").write_text(text)
        with pytest.raises(CatalogError, match=r"evicat\.json"):
            open_it(catalog)

    def test_another_scheme(self, open_it):
        with pytest.raises(CatalogError, match="'s3://bucket/c'"):
            open_it("s3://bucket/c")

    @pytest.mark.parametrize("text", ["", "{", '{"format": "evicat-head", "number": "x"}'])
    def test_a_broken_head(self, open_it, catalog, text):
        (catalog / "head.json").write_text(text)
        with pytest.raises(IntegrityError, match=r"head\.json is not a head"):
            open_it(catalog)

    def test_no_head(self, open_it, catalog):
        (catalog / "head.json").unlink()
        with pytest.raises(IntegrityError, match=r"head\.json is missing"):
            open_it(catalog)


@pytest.mark.parametrize("write", [False, True])
def test_a_missing_table_is_named(making, catalog, write):
    fill(making, catalog)
    shutil.rmtree(catalog / "tables" / "videos.lance")
    with pytest.raises(IntegrityError, match=r"table 'videos' is missing"):
        Store.connect(catalog, write=write)


@pytest.mark.parametrize("write", [False, True])
def test_a_head_that_names_a_version_that_is_not_there(making, catalog, write):
    fill(making, catalog)
    tables = read_head(catalog / "head.json").tables | {"units": 999}
    for path in (catalog / "head.json", newest_kept(catalog)):
        edit(path, tables=tables)
    with pytest.raises(
        IntegrityError, match=r"table 'units' has no usable version 999, which the head names"
    ):
        Store.connect(catalog, write=write)


class TestKeptHeads:
    """The newest head lies in two files, and each helps where the other is gone or was edited."""

    def test_a_missing_head_is_told_where_it_is_kept(self, making, catalog):
        fill(making, catalog)
        rows = making.content(catalog)
        kept = newest_kept(catalog)
        (catalog / "head.json").unlink()
        with pytest.raises(IntegrityError) as told:
            Reader.open(catalog)
        assert f"is kept in {kept}: copy that to {catalog / 'head.json'}" in str(told.value)
        shutil.copy(kept, catalog / "head.json")
        assert making.content(catalog) == rows

    @pytest.mark.parametrize("change", [{"number": 2}, {"written": "2020-01-01"}, {"tables": {}}])
    @pytest.mark.parametrize("open_it", [Reader.open, lambda uri: Store.connect(uri, write=True)])
    def test_an_edited_head_is_refused_and_both_files_are_named(self, making, catalog, change, open_it):
        fill(making, catalog)
        edit(catalog / "head.json", **change)
        with pytest.raises(IntegrityError, match=r"head\.json and .*heads/0000000[23]\.json are both head"):
            open_it(catalog)

    def test_a_head_that_was_written_just_before_a_crash_changes_nothing(self, making, catalog):
        unit = fill(making, catalog)
        head = read_head(catalog / "head.json")
        ahead = head.following(head.tables | {"units": head.tables["units"] + 1})
        kept_path(Layout.of(catalog), ahead.number).write_text(ahead.model_dump_json())
        rows = making.content(catalog)
        with Store.connect(catalog, write=True) as store:
            store.open(unit)
            store.write(unit, making.done(unit, 2))
            store.close(unit, complete=True)
        assert len(making.content(catalog)["entries"]) == len(rows["entries"]) + 1

    def test_one_that_is_broken_hinders_nobody(self, making, catalog):
        fill(making, catalog)
        newest_kept(catalog).write_text("{")
        assert len(making.content(catalog)["entries"]) == 2


class TestWithoutAFixedTable:
    def test_nobody_writes(self, making, catalog):
        fill(making, catalog)
        self.forget(catalog, "videos")
        with pytest.raises(IntegrityError, match="does not name table 'videos', which every catalog has"):
            Store.connect(catalog, write=True)

    def test_it_is_told_when_it_is_asked_for(self, making, catalog):
        fill(making, catalog)
        self.forget(catalog, "videos")
        assert Reader.open(catalog).dataset("entries").count_rows() == 2
        with pytest.raises(IntegrityError, match="does not name table 'videos'"):
            Reader.open(catalog).dataset("videos")
        with pytest.raises(IntegrityError, match="does not name table 'videos'"):
            Store.connect(catalog)

    def test_a_head_that_is_older_than_the_table_is_no_damage(self, making, catalog):
        fill(making, catalog)
        kept = newest_kept(catalog)
        number = json.loads(kept.read_text())["number"]
        with Store.connect(catalog, write=True) as store:
            store.add_root(Root(root_id="later", kind="folder", location="/later"))
        without = json.loads(kept.read_text())
        del without["tables"]["tags"]
        kept.write_text(json.dumps(without))
        with pytest.raises(UsageError, match="was written before catalogs had a table 'tags'"):
            reader_at(catalog, str(number)).dataset("tags")

    def forget(self, catalog, table):
        tables = {name: at for name, at in read_head(catalog / "head.json").tables.items() if name != table}
        for path in (catalog / "head.json", newest_kept(catalog)):
            edit(path, tables=tables)


class TestWhileAMaintenanceRuns:
    """It removes the versions of a head between reading that and opening its tables."""

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Calls something once, just before the first table is opened."""

        def patch(act):
            opened = []

            def late(*arguments):
                if not opened:
                    opened.append(arguments)
                    act()
                return transact.open_table(*arguments)

            monkeypatch.setattr(reader_module, "open_table", late)

        return patch

    def say(self, making, catalog, text):
        unit = making.unit()
        with Store.connect(catalog, write=True) as store:
            store.open(unit)
            store.write(unit, making.done(unit, 0, text))
            store.close(unit, complete=True)

    @pytest.mark.parametrize(
        "entries_of",
        [
            lambda uri: Reader.open(uri).dataset("entries"),
            lambda uri: Store.connect(uri).reader().dataset("entries"),
        ],
    )
    def test_the_new_head_is_taken(self, making, catalog, meanwhile, entries_of):
        fill(making, catalog)

        def change():
            self.say(making, catalog, "changed")
            maintain(catalog, keep_days=0)

        meanwhile(change)
        assert "changed" in entries_of(catalog).to_table()["text"].to_pylist()

    def test_a_head_that_was_asked_for_is_never_exchanged(self, making, catalog):
        fill(making, catalog)
        early = Reader.open(catalog).head
        self.say(making, catalog, "changed")
        maintain(catalog, keep_days=0)
        with pytest.raises(IntegrityError, match="no usable version"):
            Reader.open(catalog, early).dataset("entries")

    def test_a_reader_whose_rows_go_is_told_that_it_was_no_damage(self, making, catalog):
        fill(making, catalog)
        early = Reader.open(catalog)
        self.say(making, catalog, "changed")
        maintain(catalog, keep_days=0)
        with pytest.raises(BusyError, match=r"a maintenance removed head 3 .* open the catalog again"):
            early.dataset("entries").to_table()

    def test_what_is_damaged_is_told_for_that_table_alone(self, making, catalog):
        fill(making, catalog)
        shutil.rmtree(catalog / "tables" / "names.lance")
        reader = Reader.open(catalog)
        assert reader.dataset("entries").count_rows() == 2
        with pytest.raises(IntegrityError, match="table 'names' is missing"):
            reader.dataset("names")


def test_a_destroyed_table_is_named(making, catalog):
    fill(making, catalog)
    for manifest in (catalog / "tables" / "names.lance" / "_versions").iterdir():
        manifest.write_bytes(b"garbage")
    with pytest.raises(IntegrityError, match="table 'names'"):
        Store.connect(catalog, write=True)


def test_tables_ahead_of_the_head_are_invisible_and_rolled_back(making, catalog, caplog):
    fill(making, catalog)
    before = making.content(catalog)
    path = str(catalog / "tables" / "entries.lance")
    lance.dataset(path).delete("true")
    assert making.content(catalog) == before, "readers open by head"
    with Store.connect(catalog, write=True):
        pass
    assert "table 'entries'" in caplog.text
    assert "rolled back" in caplog.text
    assert making.content(catalog) == before
    assert lance.dataset(path).version == read_head(catalog / "head.json").tables["entries"]
    caplog.clear()
    with Store.connect(catalog, write=True):
        pass
    assert "rolled back" not in caplog.text


def test_after_a_roll_back_the_catalog_goes_on(making, catalog):
    unit = fill(making, catalog)
    for name in ("entries", "coverage", "units"):
        lance.dataset(str(catalog / "tables" / f"{name}.lance")).delete("true")
    with Store.connect(catalog, write=True) as store:
        assert len(store.open(unit)) == 2
        store.write(unit, making.done(unit, 1, "again"))
        store.write(unit, making.done(unit, 2))
        store.close(unit, complete=True)
    texts = [row["text"] for row in making.content(catalog)["entries"]]
    assert texts == ["A man waits.", "again", "A man waits."]


def test_a_table_that_a_crash_left_outside_the_head_is_made_anew(making, catalog):
    (catalog / "tables" / f"{making.VECTORS}.lance").mkdir()
    lance.write_dataset(
        making.Reader.open(catalog).dataset("roots").to_table(),
        str(catalog / "tables" / f"{making.VECTORS}.lance"),
        mode="overwrite",
    )
    source, unit = making.unit(), making.unit(producer=making.MINILM)
    with Store.connect(catalog, write=True) as store:
        store.add_producer(making.MINILM)
        store.open(unit)
        store.write(unit, making.embedded(0, [making.entry(source, 0)]))
        store.close(unit, complete=True)
    assert len(making.content(catalog)[making.VECTORS]) == 1


def test_a_reader_stays_at_its_head(making, catalog):
    unit = fill(making, catalog)
    early = Reader.open(catalog)
    with Store.connect(catalog, write=True) as store:
        store.open(unit)
        store.write(unit, making.done(unit, 0, "changed"))
        store.close(unit, complete=True)
    late = Reader.open(catalog)
    assert late.version > early.version
    for reader, text in (
        (early, "A man waits."),
        (late, "changed"),
        (Reader.open(catalog, early.head), "A man waits."),
    ):
        assert reader.dataset("entries").to_table(filter="start_s = 0")["text"].to_pylist() == [text]
        assert reader.table("entries").search().where("start_s = 0").to_arrow()["text"].to_pylist() == [text]


def test_reading_writes_nothing(making, catalog):
    unit = fill(making, catalog)
    before = tree(catalog)
    reader = Reader.open(catalog)
    for name in reader.names():
        reader.table(name).count_rows()
    reader.table("entries").search("man", query_type="fts").limit(3).to_arrow()
    assert reader.embedders() == {}
    store = Store.connect(catalog)
    assert store.is_complete(unit)
    assert len(store.results(unit)) == 2
    assert tree(catalog) == before


def test_a_store_opened_for_reading_refuses_to_write(making, catalog):
    store = Store.connect(catalog)
    for act in (
        store.open,
        store.seal,
        lambda unit: store.add_producer(making.SIGHT),
        lambda unit: store.commit(),
    ):
        with pytest.raises(UsageError, match="for reading only"):
            act(making.unit())


def test_unknown_tables_are_named_with_the_known(catalog):
    with pytest.raises(UnknownNameError, match=r"unknown table 'entry'; known: coverage, entries"):
        Reader.open(catalog).dataset("entry")


class TestCreate:
    def test_new_and_empty_folders(self, tmp_path):
        (tmp_path / "empty").mkdir()
        for path in (tmp_path / "deep" / "new", tmp_path / "empty"):
            create_catalog(path)
            assert json.loads((path / "evicat.json").read_text())["schema"] == SCHEMA
            assert Reader.open(path).version == 1

    def test_a_folder_with_something_else(self, tmp_path):
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "thesis.tex").touch()
        with pytest.raises(CatalogError, match="is not empty and not a catalog"):
            Store.connect(tmp_path, write=True, create=True)
        assert {path.name for path in tmp_path.rglob("*")} == {"work", "thesis.tex"}

    def test_a_file(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(CatalogError, match="is a file"):
            create_catalog(tmp_path / "file")

    def test_a_catalog(self, catalog):
        with pytest.raises(CatalogError, match="is a catalog already"):
            create_catalog(catalog)
        assert Store.connect(catalog, create=True).head.number == 1

    def test_goes_on_where_a_creation_was_interrupted(self, tmp_path):
        create_catalog(tmp_path / "c")
        (tmp_path / "c" / "evicat.json").unlink()
        shutil.rmtree(tmp_path / "c" / "tables" / "units.lance")
        create_catalog(tmp_path / "c")
        assert Reader.open(tmp_path / "c").dataset("units").count_rows() == 0


def test_uris(tmp_path):
    assert Layout.of(f"file://{tmp_path}/a%20b").root == tmp_path / "a b"
    assert Layout.of(str(tmp_path / "a")) == Layout.of(tmp_path / "a")
