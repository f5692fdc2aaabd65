"""Snapshots: kept as they were, equal where catalogs were built alike, and whole catalogs when handed on."""

from __future__ import annotations

import errno
import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from evicat.schemas.errors import (
    BusyError,
    CatalogError,
    IntegrityError,
    UnknownNameError,
    UnreadableMediaError,
    UsageError,
)
from evicat.schemas.identity import ModelRef
from evicat.schemas.model import content_hash
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.storage import content
from evicat.storage import snapshots as snapshots_module
from evicat.storage.content import content_hash_of
from evicat.storage.create import create_catalog
from evicat.storage.export import export_snapshot, import_snapshot
from evicat.storage.head import Head, read_head, write_head
from evicat.storage.layout import Layout
from evicat.storage.locks import ProcessLock
from evicat.storage.maintain import maintain
from evicat.storage.reader import Reader
from evicat.storage.rows import entry_row
from evicat.storage.snapshots import (
    check_content,
    create_snapshot,
    delete_snapshot,
    find_snapshot,
    readable_snapshots,
    reader_at,
    snapshots,
)
from evicat.storage.store import Store
from evicat.storage.transact import Tables

WINDOWS = 4
HOME = "/home/alice/films"


@pytest.fixture(scope="module")
def fill(making):
    """Fills a catalog with two videos, their names, and vectors; the order and the run may differ."""

    def fill_catalog(catalog, *, order=1, run_id="", home=HOME, text="A man waits."):
        with Store.connect(catalog, write=True, run_id=run_id) as store:
            store.add_root(Root(content_hash(home), "folder", home))
            store.add_producer(making.SIGHT)
            store.add_producer(making.MINILM)
            for name in ("one", "two")[::order]:
                write_video(store, name, home, text)
        return catalog

    def write_video(store, name, home, text):
        unit = making.unit(name)
        store.add_asset(making.asset(name, windows=WINDOWS))
        stamp = FileStamp(12345, len(home), 0, len(home))
        store.add_name(VideoName(content_hash(home), f"{name}.mp4", unit.asset_id, f"{name}.mp4", stamp))
        store.open(unit)
        entries = []
        for window in range(WINDOWS):
            result = making.done(unit, window, f"{text} {name} {window}", entries=2)
            if window == 3:
                result = making.failed(window, f"{home}/{name}.mp4: no answer")
            store.write(unit, result)
            entries += result.entries
        store.close(unit, complete=True)
        embedding = making.unit(name, producer=making.MINILM)
        store.open(embedding)
        store.write(embedding, making.embedded(0, entries))
        store.close(embedding, complete=False)

    return fill_catalog


@pytest.fixture(scope="module")
def full(fill, empty_catalog, tmp_path_factory) -> Path:
    """Read only."""
    return fill(shutil.copytree(empty_catalog, tmp_path_factory.mktemp("full") / "catalog"))


@pytest.fixture
def filled(full, tmp_path) -> Path:
    """A copy of it, of one test's own."""
    return Path(shutil.copytree(full, tmp_path / "catalog"))


@pytest.fixture
def another(empty_catalog, tmp_path) -> Path:
    return Path(shutil.copytree(empty_catalog, tmp_path / "another"))


def found(reader, query):
    hits = reader.table("entries").search(query, query_type="fts").limit(100).to_arrow()
    return sorted(hits["text"].to_pylist())


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


TOLD = (b"A man waits", b"A secret", b"/home/alice", b"alice")


def bytes_of(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def everything(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*"))


class TestKept:
    def test_a_snapshot_is_read_as_it_was_whatever_comes_later(self, making, fill, filled):
        made = create_snapshot(filled, "first")
        before = found(reader_at(filled, "first"), "man")
        fill(filled, text="A dog runs.")
        unit = making.unit("three")
        with Store.connect(filled, write=True) as store:
            store.open(unit)
            store.write(unit, making.done(unit, 0, "A man again."))
            store.close(unit, complete=False)
        assert len(before) == 12
        assert found(reader_at(filled, "first"), "man") == before
        assert found(Reader.open(filled), "man") == ["A man again."]
        assert found(reader_at(filled, str(made.head.number)), "man") == before
        assert content_hash_of(reader_at(filled, "first")) == made.content_hash

    def test_what_is_staged_is_committed_and_indexed_first(self, making, filled):
        unit = making.unit("three")
        store = Store.connect(filled, write=True)
        store.open(unit)
        store.write(unit, making.done(unit, 0, "A zebra."))
        store.seal(unit)
        before = read_head(Layout.of(filled).head).number
        made = create_snapshot(filled, "busy")
        store.release()
        assert made.head.number > before
        assert found(reader_at(filled, "busy"), "zebra") == ["A zebra."]
        assert made.head == read_head(Layout.of(filled).head)

    def test_of_a_catalog_without_rows(self, catalog):
        made = create_snapshot(catalog, "empty")
        assert set(made.rows.values()) == {0}
        assert reader_at(catalog, "empty").head == made.head

    def test_the_manifest_says_what_is_there(self, making, filled):
        create_snapshot(filled, "v1.0", note="for the paper", recipes=["default"])
        made = find_snapshot(Layout.of(filled), "v1.0")
        assert (made.name, made.note, made.recipes) == ("v1.0", "for the paper", ("default",))
        assert {row.kind: row.producer_id[:8] for row in made.view}["local"] == making.SIGHT.producer_id[:8]
        assert made.producers[making.SIGHT.producer_id] == making.SIGHT
        assert {name: made.rows[name] for name in ("entries", "videos", "names")} == {
            "entries": 12,
            "videos": 2,
            "names": 2,
        }
        check_content(reader_at(filled, "v1.0"), made)

    def test_snapshots_are_listed_by_name_with_their_heads(self, filled):
        layout = Layout.of(filled)
        assert snapshots(layout) == []
        made = [create_snapshot(filled, name) for name in ("b", "a")]
        assert [each.name for each in snapshots(layout)] == ["a", "b"]
        assert {each.name: each.head for each in snapshots(layout)} == {each.name: each.head for each in made}

    def test_deleting_removes_the_manifest_and_nothing_else(self, filled):
        create_snapshot(filled, "gone")
        before = everything(filled)
        delete_snapshot(filled, "gone")
        assert sorted({*before} - {*everything(filled)}) == [Path("snapshots/gone.json")]
        create_snapshot(filled, "gone")

    def test_a_catalog_that_somebody_commits_to_is_waited_for(self, filled):
        layout = Layout.of(filled)
        with (
            ProcessLock(layout.commit_lock, "commit").held(timeout_s=0),
            pytest.raises(BusyError, match="right to commit"),
        ):
            create_snapshot(filled, "late", lock_timeout_s=0)
        assert snapshots(layout) == []


class TestWhileItIsRead:
    """Naming a head reads all of it, and keeps nobody from committing meanwhile."""

    @pytest.fixture
    def meanwhile(self, monkeypatch):
        """Calls something once, while the content is being read."""

        def patch(act):
            def read(reader):
                monkeypatch.setattr(snapshots_module, "content_hash_of", content_hash_of)
                act()
                return content_hash_of(reader)

            monkeypatch.setattr(snapshots_module, "content_hash_of", read)

        return patch

    def add(self, making, catalog):
        with Store.connect(catalog, write=True, lock_timeout_s=0) as store:
            store.add_asset(making.asset("three"))

    def test_others_commit_and_it_names_the_head_that_it_read(self, making, filled, meanwhile):
        meanwhile(lambda: self.add(making, filled))
        made = create_snapshot(filled, "first")
        assert (made.rows["videos"], Reader.open(filled).dataset("videos").count_rows()) == (2, 3)
        check_content(reader_at(filled, "first"), made)
        maintain(filled, keep_days=0)
        check_content(reader_at(filled, "first"), made)

    def test_a_maintenance_that_keeps_young_heads_does_no_harm(self, making, filled, meanwhile):
        meanwhile(lambda: (self.add(making, filled), maintain(filled, lock_timeout_s=0)))
        made = create_snapshot(filled, "first")
        check_content(reader_at(filled, "first"), made)

    def test_a_head_that_was_removed_gets_no_name(self, making, filled, meanwhile):
        meanwhile(lambda: (self.add(making, filled), maintain(filled, keep_days=0, lock_timeout_s=0)))
        with pytest.raises(BusyError):
            create_snapshot(filled, "first")
        assert snapshots(Layout.of(filled)) == []
        assert create_snapshot(filled, "first").rows["videos"] == 3

    def test_a_name_that_somebody_took_meanwhile_stays_theirs(self, filled, meanwhile):
        meanwhile(lambda: create_snapshot(filled, "first", note="theirs"))
        with pytest.raises(UsageError, match="has a snapshot 'first' already"):
            create_snapshot(filled, "first", note="ours")
        assert find_snapshot(Layout.of(filled), "first").note == "theirs"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize(
    "write",
    [
        lambda uri: create_snapshot(uri, "first"),
        lambda uri: maintain(uri),
        lambda uri: Store.connect(uri, write=True),
    ],
)
def test_a_catalog_that_cannot_be_written_to_is_told_to_be_so(filled, monkeypatch, number, write):
    lock = Layout.of(filled).commit_lock

    def refuse(*_, **__):
        raise OSError(number, os.strerror(number), str(lock))

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    with pytest.raises(CatalogError, match=f"cannot be written to: {lock}: {os.strerror(number)}"):
        write(filled)


class TestRefused:
    @pytest.mark.parametrize(
        "name", ["", "12", ".hidden", "-x", "a/b", "../up", "a b", "é", "x" * 101, "a\n"]
    )
    def test_a_name_that_is_no_name(self, name, filled):
        with pytest.raises(UsageError, match="name of a snapshot has letters"):
            create_snapshot(filled, name)

    def test_a_name_that_is_taken(self, filled):
        create_snapshot(filled, "first")
        with pytest.raises(UsageError, match="has a snapshot 'first' already"):
            create_snapshot(filled, "first")

    @pytest.mark.parametrize("ask", [reader_at, delete_snapshot])
    def test_a_name_that_nobody_gave(self, ask, filled):
        create_snapshot(filled, "first")
        with pytest.raises(UnknownNameError, match=r"unknown snapshot 'frist'; known: first"):
            ask(filled, "frist")

    def test_a_head_that_never_was(self, filled):
        with pytest.raises(UnknownNameError, match=r"unknown head '999'; known: 1, "):
            reader_at(filled, "999")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "not JSON"),
            ("[]", "the whole file"),
            ("{}", "no seal"),
            ('{"seal": "", "name": 3}', r"\(\w+: "),
        ],
    )
    def test_a_broken_manifest(self, text, said, filled):
        create_snapshot(filled, "first")
        path = Layout.of(filled).snapshots / "first.json"
        path.write_text(text)
        for ask in (lambda: reader_at(filled, "first"), lambda: snapshots(Layout.of(filled))):
            with pytest.raises(IntegrityError, match=said) as error:
                ask()
            assert str(path) in str(error.value)
        create_snapshot(filled, "second")
        found, (error,) = readable_snapshots(Layout.of(filled))
        assert ([each.name for each in found], str(path) in str(error)) == (["second"], True)
        delete_snapshot(filled, "first")

    def test_an_edited_manifest(self, filled):
        create_snapshot(filled, "first")
        path = Layout.of(filled).snapshots / "first.json"
        edit(path, note="better")
        with pytest.raises(IntegrityError, match=r"was edited after it was written.*snapshot delete first"):
            reader_at(filled, "first")

    def test_a_manifest_of_another_name(self, filled):
        create_snapshot(filled, "first")
        folder = Layout.of(filled).snapshots
        (folder / "first.json").rename(folder / "second.json")
        with pytest.raises(IntegrityError, match="manifest of snapshot 'first'"):
            reader_at(filled, "second")

    def test_a_snapshot_of_another_schema(self, filled):
        create_snapshot(filled, "old")
        path = Layout.of(filled).snapshots / "old.json"
        facts = json.loads(path.read_text()) | {"catalog_schema": 1}
        seal = content_hash({name: value for name, value in facts.items() if name != "seal"})
        path.write_text(json.dumps(facts | {"seal": seal}))
        with pytest.raises(CatalogError, match="has catalog schema 1; this evicat uses schema 3"):
            reader_at(filled, "old")

    def test_versions_that_were_cleaned_away(self, fill, filled):
        create_snapshot(filled, "first")
        fill(filled, text="A dog runs.")
        table = lance.dataset(str(Layout.of(filled).table("entries")))
        table.cleanup_old_versions(older_than=timedelta(0))
        with pytest.raises(
            IntegrityError, match=r"snapshot 'first' cannot be opened any more: table 'entries'"
        ):
            reader_at(filled, "first")

    def test_content_that_is_not_what_the_manifest_says(self, filled):
        made = create_snapshot(filled, "first")
        reader = reader_at(filled, "first")
        with pytest.raises(IntegrityError, match=r"counts: entries 12 \(manifest: 11\)"):
            check_content(reader, made.model_copy(update={"rows": made.rows | {"entries": 11}}))
        with pytest.raises(IntegrityError, match="has content hash"):
            check_content(reader, made.model_copy(update={"content_hash": "0" * 32}))


class TestContentHash:
    def test_is_equal_for_catalogs_built_alike_elsewhere_and_in_another_order(self, fill, filled, another):
        fill(another, order=-1, run_id="other", home="/mnt/b")
        first, second = create_snapshot(filled, "a"), create_snapshot(another, "b")
        assert first.content_hash == second.content_hash

    def test_does_not_see_how_often_or_in_which_pieces_it_was_written(self, fill, filled, monkeypatch):
        before = content_hash_of(Reader.open(filled))
        fill(filled, text="Something else.")
        assert content_hash_of(Reader.open(filled)) != before
        fill(filled)
        assert content_hash_of(Reader.open(filled)) == before
        monkeypatch.setattr(content, "_BATCH_ROWS", 3)
        assert content_hash_of(Reader.open(filled)) == before

    @pytest.mark.parametrize(
        "change",
        [
            {"asset_id": "0" * 32},
            {"producer_id": "0" * 32},
            {"condition_id": "c"},
            {"kind": "speech"},
            {"scale": "local-4s"},
            {"start_s": 0.000001},
            {"end_s": 9.999999},
            {"text": "A man waits!"},
            {"record": '{"scene":1}'},
            {"frames": [{"pts": 1, "time_s": 0.0}]},
            {"flags": ["repeated"]},
            {"boundary": "question"},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_sees_each_compared_column_of_entries(self, change, making, filled):
        entry = entry_row(making.entry(making.unit("new"), 0), 0)
        assert hash_with(filled, "entries", entry) != hash_with(filled, "entries", entry | change)

    @pytest.mark.parametrize(
        "change",
        [{"entry_id": "x"}, {"tokens": {"prompt": 5, "completion": 5}}, {"factors": ["x"]}],
        ids=lambda change: next(iter(change)),
    )
    def test_sees_no_other_column(self, change, making, filled):
        entry = entry_row(making.entry(making.unit("new"), 0), 0)
        assert hash_with(filled, "entries", entry) == hash_with(filled, "entries", entry | change)

    def test_sees_a_row_that_stands_twice(self, making, filled):
        entry = entry_row(making.entry(making.unit("new"), 0), 0)
        assert hash_with(filled, "entries", entry) != hash_with(filled, "entries", entry, entry)

    def test_sees_names_and_whether_they_are_missing_but_not_paths(self, filled):
        row = Reader.open(filled).dataset("names").to_table().to_pylist()[0]
        same = hash_with(filled, "names", row)
        assert hash_with(filled, "names", row | {"path": "elsewhere", "root_id": "r", "inode": 3}) == same
        assert hash_with(filled, "names", row | {"name": "other.mp4"}) != same
        missing = [
            hash_with(filled, "names", row | {"missing_since": day}) for day in ("2026-01-01", "2026-02-02")
        ]
        assert missing[0] == missing[1] != same

    def test_sees_outcomes_but_not_messages_or_attempts(self, filled):
        row = Reader.open(filled).dataset("coverage").to_table(filter="outcome = 'failed'").to_pylist()[0]
        same = hash_with(filled, "coverage", row)
        assert hash_with(filled, "coverage", row | {"message": "x", "attempts": 9, "seconds": 1.0}) == same
        assert hash_with(filled, "coverage", row | {"outcome": "refused"}) != same


def hash_with(catalog, table, *rows):
    """The content hash of a catalog with these rows on top, which the head does not get."""
    reader = Reader.open(catalog)
    dataset = reader.dataset(table)

    more = lance.write_dataset(
        pa.concat_tables([dataset.to_table(), pa.Table.from_pylist(list(rows), schema=dataset.schema)]),
        "memory://more",
    )
    reader._datasets[table] = more
    return content_hash_of(reader)


class TestHandedOn:
    @pytest.fixture
    def exported(self, filled, fill, tmp_path) -> Path:
        create_snapshot(filled, "first", note="to share")
        fill(filled, text="A secret.")
        export_snapshot(filled, "first", tmp_path / "out" / "first")
        return tmp_path / "out" / "first"

    def test_an_export_is_a_catalog_of_exactly_the_snapshot(self, exported, filled, making):
        made = find_snapshot(Layout.of(filled), "first")
        copied = find_snapshot(Layout.of(exported), "first")
        assert copied.head == Reader.open(exported).head
        assert copied.model_copy(update={"head": made.head}) == made
        check_content(reader_at(exported, "first"), copied)
        assert found(Reader.open(exported), "man") == found(reader_at(filled, "first"), "man")
        reader = Reader.open(exported)
        assert len(reader.dataset("entries").get_fragments()) == 1
        assert reader.embedders().keys() == {making.VECTORS}
        vectors = [
            table.dataset(making.VECTORS).to_table().to_pylist()
            for table in (reader, reader_at(filled, "first"))
        ]
        assert sorted(map(str, vectors[0])) == sorted(map(str, vectors[1]))
        with Store.connect(exported, write=True) as store:
            assert store.is_complete(making.unit("one"))

    def test_it_holds_nothing_made_later_and_no_place_of_this_machine(self, exported, filled, tmp_path):
        assert {b"A man waits", b"A secret", b"/home/alice"} <= {
            text for text in TOLD if text in bytes_of(filled)
        }
        assert [text for text in TOLD if text in bytes_of(exported)] == [b"A man waits"]
        assert str(tmp_path).encode() not in bytes_of(exported)
        assert not (exported / "work").exists()
        reader = Reader.open(exported)
        assert reader.dataset("roots").to_table()["location"].to_pylist() == [""]
        assert set(reader.dataset("names").to_table()["path"].to_pylist()) == {"one.mp4", "two.mp4"}
        failed = reader.dataset("coverage").to_table(filter="outcome = 'failed'")["message"].to_pylist()
        assert sorted(failed) == ["one.mp4: no answer", "two.mp4: no answer"]

    def test_folders_leave_messages_and_what_only_looks_like_them_stays(self, catalog, tmp_path):
        with Store.connect(catalog, write=True) as store:
            store.add_root(Root("m", "manifest", "/data/set 1/list.csv"))
            texts = {
                "/data/set 1/a b.mp4: gone": "a b.mp4: gone",
                "cannot read '/opt/models/x.bin' (EOF)": "cannot read 'x.bin' (EOF)",
                "http://localhost:8000/v1/chat said 1/2, and/or 3 / 4": None,
            }
            for number, text in enumerate(texts):
                store.add_video_failed(f"{number}", 1, UnreadableMediaError(text))
        create_snapshot(catalog, "s")
        export_snapshot(catalog, "s", tmp_path / "out")
        rows = Reader.open(tmp_path / "out").dataset("videos").to_table().to_pylist()
        said = {row["asset_id"]: row["message"] for row in rows}
        assert said == {f"{number}": clean or text for number, (text, clean) in enumerate(texts.items())}

    def test_the_place_of_weights_is_dropped_where_a_digest_says_which_they_are(
        self, making, catalog, tmp_path
    ):
        producers = [
            making.SIGHT.model_copy(update={"model": ModelRef(name="/opt/weights/tiny", digest="ab")}),
            making.SIGHT.model_copy(update={"model": ModelRef(name="/opt/weights/served"), "scale": "x"}),
        ]
        with Store.connect(catalog, write=True) as store:
            for producer in producers:
                store.add_producer(producer)
        create_snapshot(catalog, "s")
        made = export_snapshot(catalog, "s", tmp_path / "out")
        assert set(made.producers) == {producer.producer_id for producer in producers}
        names = {
            row["model_name"]
            for row in Reader.open(tmp_path / "out").dataset("producers").to_table().to_pylist()
        }
        assert (
            names == {each.model.name for each in made.producers.values()} == {"tiny", "/opt/weights/served"}
        )
        assert {key: each.producer_id for key, each in made.producers.items()} == {
            key: key for key in made.producers
        }

    def test_exporting_an_import_of_an_export_changes_nothing_more(self, exported, tmp_path):
        first = find_snapshot(Layout.of(exported), "first")
        imported = import_snapshot(exported, tmp_path / "imported")
        again = export_snapshot(tmp_path / "imported", "first", tmp_path / "again")
        kept = [each.model_dump(exclude={"head": {"written"}}) for each in (first, imported, again)]
        assert kept[0] == kept[1] == kept[2]

    @pytest.mark.parametrize("ask", [export_snapshot, lambda uri, name, at: import_snapshot(uri, at, name)])
    def test_no_place_that_holds_something_is_written_to(self, ask, filled, tmp_path):
        create_snapshot(filled, "first")
        place = tmp_path / "taken"
        place.mkdir()
        (place / "film.mp4").touch()
        with pytest.raises(CatalogError, match="is not empty"):
            ask(filled, "first", place)
        assert [path.name for path in place.iterdir()] == ["film.mp4"]
        (place / "film.mp4").unlink()
        ask(filled, "first", place)
        assert find_snapshot(Layout.of(place), "first")

    @pytest.mark.parametrize("inner", ["inner", "tables/inner", "deep/er/inner"])
    @pytest.mark.parametrize("ask", [export_snapshot, lambda uri, name, at: import_snapshot(uri, at, name)])
    def test_no_catalog_is_written_into_a_catalog(self, ask, filled, tmp_path, inner):
        create_snapshot(filled, "first")
        (tmp_path / "link").symlink_to(filled)
        before = everything(filled)
        for root in (filled, tmp_path / "link"):
            with pytest.raises(CatalogError, match=f"lies inside the catalog {filled}; choose a folder"):
                ask(filled, "first", root / inner)
            with pytest.raises(CatalogError, match="lies inside the catalog"):
                create_catalog(root / inner)
        assert everything(filled) == before

    def test_an_import_that_was_tampered_with_leaves_nothing(self, exported, making, tmp_path):
        layout = Layout.of(exported)
        tables = Tables(layout)
        row = entry_row(making.entry(making.unit("one"), 0, "A lie."), 0)
        old = tables.find("entries", "entry_id", [row["entry_id"]], ["entry_id"])

        new = pa.Table.from_pylist([row], schema=tables.dataset("entries").schema)
        tables.replace("entries", new, old["_rowaddr"].to_pylist())
        head = Head.first(tables.versions())
        write_head(layout, head)
        path = layout.snapshots / "first.json"
        facts = json.loads(path.read_text()) | {"head": head.model_dump()}
        del facts["seal"]
        path.write_text(json.dumps(facts | {"seal": content_hash(facts)}))  # by somebody who knows the seal
        with pytest.raises(IntegrityError, match="content hash"):
            import_snapshot(exported, tmp_path / "imported")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["catalog", "out"]

    def test_a_folder_must_say_which_snapshot_is_meant(self, filled, tmp_path):
        with pytest.raises(UsageError, match="holds no snapshot"):
            import_snapshot(filled, tmp_path / "new")
        for name in "ab":
            create_snapshot(filled, name)
        with pytest.raises(UsageError, match="holds several snapshots: a, b; say which one with --name"):
            import_snapshot(filled, tmp_path / "new")
        assert import_snapshot(filled, tmp_path / "new", "b").name == "b"

    def test_what_is_no_catalog_is_not_imported(self, tmp_path):
        (tmp_path / "folder").mkdir()
        with pytest.raises(CatalogError, match="is not a catalog"):
            import_snapshot(tmp_path / "folder", tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_an_empty_catalog_can_be_handed_on(self, catalog, tmp_path):
        create_snapshot(catalog, "empty")
        export_snapshot(catalog, "empty", tmp_path / "out")
        assert Reader.open(tmp_path / "out").dataset("entries").count_rows() == 0
