"""Whatever stands in a value, a filter finds that value and nothing else."""

import lance
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evicat.storage.sql import sql_equals, sql_in, sql_literal

NASTY = [
    "zzz' OR 1=1 --",
    "''",
    "'",
    "a\nb",
    'say "x"',
    "back\\slash",
    "\\'",
    "%_",
    "`",
    "é語\u2028",
    "",
    "; DROP",
    "\t",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rows = pa.table({"text": NASTY, "number": [float(number) for number in range(len(NASTY))]})
    return lance.write_dataset(rows, str(tmp_path_factory.mktemp("sql") / "t.lance"))


@pytest.mark.parametrize("value", NASTY)
def test_a_value_finds_itself_alone(table, value):
    assert table.to_table(filter=sql_equals("text", value))["text"].to_pylist() == [value]
    assert table.to_table(filter=sql_in("text", [value]))["text"].to_pylist() == [value]


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_other_values_find_nothing(table, value):
    found = table.to_table(filter=sql_equals("text", value))["text"].to_pylist()
    assert found == [text for text in NASTY if text == value]


def test_lists(table):
    assert table.count_rows(filter=sql_in("text", NASTY)) == len(NASTY)
    assert table.count_rows(filter=sql_in("text", [])) == 0


def test_numbers_and_booleans(table):
    assert table.to_table(filter=sql_equals("number", 2.0))["number"].to_pylist() == [2.0]
    assert sql_literal(True) == "TRUE"
    assert sql_literal(-7) == "-7"
    with pytest.raises(ValueError, match="nan"):
        sql_literal(float("nan"))
