"""SQL reads the tables of a catalog, and nothing else."""

import polars as pl
import pytest

from evicat.catalog.reading.ask_sql import answer
from evicat.schemas.errors import UsageError

TABLES = {"entries": pl.LazyFrame({"kind": ["local", "speech", "speech"], "start_s": [0.0, 1.0, 2.0]})}


def test_a_select_is_answered():
    found = answer("SELECT kind, count(*) AS n FROM entries GROUP BY kind ORDER BY kind", TABLES)
    assert found.rows() == [("local", 1), ("speech", 2)]


@pytest.mark.parametrize("function", ["read_csv", "READ_CSV", '"read_csv"', "read_csv/**/", "read_csv "])
@pytest.mark.parametrize("around", ["SELECT * FROM {}", "WITH t AS (SELECT * FROM {}) SELECT * FROM t"])
def test_no_file_is_read(tmp_path, function, around):
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(UsageError, match="no files"):
        answer(around.format(f"{function}('{file}')"), TABLES)


@pytest.mark.parametrize("form", ["parquet", "ipc", "json", "ndjson"])
def test_nor_by_another_table_function(form):
    with pytest.raises(UsageError, match="no files"):
        answer(f"SELECT * FROM read_{form}('x')", TABLES)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE entries",
        "SELECT 1; DROP TABLE entries",
        "WITH t AS (SELECT 1 AS a) DELETE FROM entries",
        "WITH t AS (SELECT 1 AS a) CREATE TABLE x AS SELECT * FROM t",
        "SELECT * INTO x FROM entries",
        "TRUNCATE entries",
        "",
        None,
    ],
)
def test_nothing_is_changed(query):
    with pytest.raises(UsageError):
        answer(query, TABLES)


def test_what_would_hang_or_crash_the_process_is_refused():
    with pytest.raises(UsageError, match="no recursion"):
        answer("WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT * FROM t", TABLES)
    with pytest.raises(UsageError, match="at most 1000"):
        answer("SELECT " + "1+" * 20_000 + "1", TABLES)
