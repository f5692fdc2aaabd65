"""Files of tables that are gone, cut or changed: whoever reads them is told which table it is."""

import shutil
from pathlib import Path

import pytest

from evicat.catalog.query import Catalog
from evicat.schemas.errors import DiskFullError, IntegrityError
from evicat.schemas.naming import FileStamp, VideoName
from evicat.storage.content import content_hash_of
from evicat.storage.damage import damage_told, is_of_lance, reason_of
from evicat.storage.disk import full_disk_told
from evicat.storage.export import export_snapshot
from evicat.storage.layout import Layout
from evicat.storage.maintain import maintain
from evicat.storage.reader import Reader
from evicat.storage.snapshots import create_snapshot
from evicat.storage.store import Store


@pytest.fixture(scope="module")
def whole(making, empty_catalog, tmp_path_factory):
    path = Path(shutil.copytree(empty_catalog, tmp_path_factory.mktemp("whole") / "catalog"))
    unit = making.unit()
    with Store.connect(path, write=True) as store:
        store.add_producer(making.SIGHT)
        store.add_asset(making.asset(windows=3))
        store.add_name(VideoName("r", "one.mp4", unit.asset_id, "one.mp4", FileStamp(1, 2, 3, 4)))
        store.open(unit)
        for window in range(3):
            store.write(unit, making.done(unit, window, f"A bus arrives {window}. " * 20))
        store.close(unit, complete=True)
    create_snapshot(path, "paper")
    return path


@pytest.fixture
def hurt(whole, tmp_path):
    """A copy of it, of one test's own."""
    return Path(shutil.copytree(whole, tmp_path / "hurt"))


def data(catalog, table="entries"):
    (path,) = (Layout.of(catalog).table(table) / "data").iterdir()
    return path


def lose(path):
    path.unlink()


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[-60:] = bytes(byte ^ 0x55 for byte in content[-60:])
    path.write_bytes(content)


HARM = [lose, cut, flip]
READS = {
    "all": lambda uri: Reader.open(uri).dataset("entries").to_table(),
    "filtered": lambda uri: Reader.open(uri).dataset("entries").to_table(filter="text = 'x'"),
    "batches": lambda uri: list(Reader.open(uri).dataset("entries").scanner(columns=["text"]).to_batches()),
    "a scan": lambda uri: Reader.open(uri).dataset("entries").scanner(columns=["text"]).to_table(),
    "count": lambda uri: Reader.open(uri).dataset("entries").count_rows(filter="start_s > 5"),
    "content hash": lambda uri: content_hash_of(Reader.open(uri)),
    "export": lambda uri: export_snapshot(uri, "paper", uri.with_name("exported")),
    "entries": lambda uri: Catalog.open(str(uri)).entries(),
}


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("read", READS.values(), ids=list(READS))
def test_reading_names_the_table_and_not_the_source_of_lance(hurt, harm, read):
    harm(data(hurt))
    with pytest.raises(IntegrityError, match=r"table 'entries' cannot be read: .+ from a copy") as told:
        read(hurt)
    assert ".rs:" not in str(told.value)


@pytest.mark.parametrize("harm", HARM)
def test_so_does_a_search_whose_index_is_broken(hurt, harm):
    for path in (hurt / "tables" / "entries.lance" / "_indices").rglob("*.lance"):
        harm(path)
    with pytest.raises(IntegrityError, match="table 'entries' cannot be read"):
        Catalog.open(str(hurt)).search("bus", mode="text")


def test_a_writer_is_told_before_it_writes(making, hurt):
    cut(data(hurt, "coverage"))
    unit = making.unit()
    before = Reader.open(hurt).version
    store = Store.connect(hurt, write=True)
    with pytest.raises(IntegrityError, match="table 'coverage' cannot be read"):
        store.open(unit)
    store.release()
    assert Reader.open(hurt).version == before


def test_other_tables_can_be_read(hurt):
    lose(data(hurt))
    assert Reader.open(hurt).dataset("coverage").count_rows() == 3


def test_a_full_disk_is_no_damage(tmp_path):
    with pytest.raises(DiskFullError), full_disk_told(tmp_path), damage_told("entries"):
        raise OSError("LanceError(IO): No space left on device (os error 28), /x/src/io.rs:10:3")


def test_what_a_caller_raises_between_batches_stays_as_it_is(whole):
    batches = Reader.open(whole).dataset("entries").scanner().to_batches()
    assert next(batches).num_rows
    with pytest.raises(RuntimeError, match="mine"):
        batches.throw(RuntimeError("mine"))


def test_errors_of_lance_are_known_by_where_they_come_from():
    error = OSError("Not found: /c/data/1.lance, /builder/.cargo/registry/src/lance-io/src/reader.rs:335:56")
    assert is_of_lance(error)
    assert reason_of(error) == "Not found: /c/data/1.lance"
    assert not is_of_lance(FileNotFoundError(2, "No such file or directory", "video.mp4"))
    assert not is_of_lance(KeyError("x.rs:1"))


class TestMaintenance:
    def failed(self, catalog):
        return {table.table: table.error for table in maintain(catalog, keep_days=0).failed}

    @pytest.mark.parametrize(("harm", "said"), [(lose, "is missing"), (cut, "bytes, its manifest says")])
    def test_notices_rows_that_are_gone(self, hurt, harm, said):
        path = data(hurt)
        harm(path)
        failed = self.failed(hurt)
        assert set(failed) == {"entries"}
        assert f"data/{path.name}" in failed["entries"]
        assert said in failed["entries"]

    def test_notices_a_lost_file_of_deleted_rows(self, making, hurt):
        unit = making.unit()
        with Store.connect(hurt, write=True) as store:
            store.open(unit)
            store.write(unit, making.done(unit, 0, "changed"))
            store.close(unit, complete=True)
        (path,) = (hurt / "tables" / "entries.lance" / "_deletions").iterdir()
        lose(path)
        assert f"_deletions/{path.name} is missing" in self.failed(hurt)["entries"]

    @pytest.mark.parametrize("harm", HARM)
    @pytest.mark.parametrize("file", ["page_data", "page_lookup", "metadata", "part_0_invert", "part_0_docs"])
    def test_makes_broken_indexes_anew_and_says_so(self, hurt, harm, file):
        harm(next((hurt / "tables" / "entries.lance" / "_indices").rglob(f"{file}.lance")))
        report = maintain(hurt, keep_days=0)
        assert not report.failed
        (entries,) = [table for table in report.tables if table.rebuilt]
        assert entries.table == "entries"
        assert len(entries.rebuilt) == 1
        assert len(Catalog.open(str(hurt)).search("bus", mode="text")) == 3
        assert len(Catalog.open(str(hurt)).entries("one.mp4")) == 3
        assert [table.rebuilt for table in maintain(hurt, keep_days=0).tables if table.rebuilt] == []

    def test_of_a_whole_catalog_rebuilds_nothing(self, hurt):
        assert not [table for table in maintain(hurt).tables if table.rebuilt or table.error]
