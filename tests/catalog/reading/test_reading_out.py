"""Entries by place and time, lazy scans, SQL, and what notebooks show."""

import duckdb
import polars as pl
import pytest

from evicat.catalog import Catalog
from evicat.catalog.reading.columns import ENTRY_SCHEMA
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)


@pytest.fixture
def catalog(shelf):
    rows = [(at, at + 10, f"picture {at}", {"flags": ("times_dropped",)}) for at in range(0, 60, 10)]
    shelf.write("a.mp4", LOCAL, rows)
    shelf.write("a.mp4", SPEECH, [(12, 15, "said"), (40, 41, "[bell]", {"kind": "sound"})])
    shelf.write("b.mp4", LOCAL, [(0, 10, "elsewhere")])
    return Catalog.open(shelf.uri)


def test_entries_have_all_columns_also_where_none_match(catalog):
    assert catalog.entries().schema == ENTRY_SCHEMA
    assert catalog.entries(kind="narrative").schema == ENTRY_SCHEMA
    assert catalog.entries("a.mp4", kind="local")["flags"].to_list()[0] == ["times_dropped"]
    assert list(catalog.entries().to_pandas().columns) == ENTRY_SCHEMA.names()
    assert catalog.entries().to_arrow().num_rows == 9


def test_what_lies_around_an_entry(catalog):
    (said,) = catalog.speech("a.mp4", between="0:10-0:20")["entry_id"]
    near = catalog.around(said, before=3, after=6)
    assert near["text"].to_list() == ["picture 0", "picture 10", "said", "picture 20"]
    assert catalog.around(said, before=0, after=0, kind="local")["text"].to_list() == ["picture 10"]
    with pytest.raises(UsageError, match="before must be at least 0"):
        catalog.around(said, before=-1)
    with pytest.raises(UsageError, match="no entry of this catalog has the id 'ghost'"):
        catalog.around("ghost")


def test_what_shares_time_with_a_span_and_what_is_heard(catalog):
    assert catalog.overlapping("a.mp4", (10, 15))["text"].to_list() == ["picture 10", "said"]
    assert catalog.speech("a.mp4")["kind"].to_list() == ["speech", "sound"]


def test_a_lazy_scan_filters_in_the_storage_engine(catalog):
    lazy = catalog.scan().filter(pl.col("start_s") >= 30, pl.col("kind") == "local").select("text")
    assert sorted(lazy.collect()["text"]) == ["picture 30", "picture 40", "picture 50"]
    with pytest.raises(UnknownNameError, match="table 'tales'"):
        catalog.scan("tales")


def test_sql_reads_and_writes_nothing(catalog):
    found = catalog.sql("SELECT kind, count(*) AS n FROM entries GROUP BY kind ORDER BY kind")
    assert found.rows() == [("local", 7), ("sound", 1), ("speech", 1)]
    for query in (
        "DROP TABLE entries",
        "DELETE FROM entries",
        "COPY entries TO 'x'",
        "  insert into entries",
    ):
        with pytest.raises(UsageError, match="only SELECT"):
            catalog.sql(query)
    for query in ("SELECT nothing FROM entries", "SELECT * FROM tales", "SELECT (", "WITH x AS (SELECT 1"):
        with pytest.raises(UsageError, match="cannot be answered"):
            catalog.sql(query)


def test_duckdb_reads_the_same_tables(catalog):
    with duckdb.connect() as connection:
        connection.register("shown", catalog.entries().to_arrow())
        assert connection.sql("SELECT count(*) FROM shown WHERE kind = 'local'").fetchall() == [(7,)]
        connection.register("entries", catalog.dataset("entries"))
        query = "SELECT text FROM entries WHERE start_s >= 40 AND kind = 'local' ORDER BY start_s"
        assert connection.sql(query).fetchall() == [("picture 40",), ("picture 50",)]


def test_a_notebook_is_shown_what_the_catalog_holds(catalog):
    shown = catalog._repr_html_()
    assert "2 videos" in shown
    assert "7 local, 1 sound, 1 speech" in shown
