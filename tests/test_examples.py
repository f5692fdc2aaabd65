"""The example notebooks run from a clean kernel, one after the other, on one catalog that the first makes."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "examples"
BOOKS = sorted(FOLDER.glob("*.ipynb"))
FIRST = BOOKS[0]
TIMEOUT_S = 500


def read(book: Path) -> NotebookNode:
    return nbformat.read(book, as_version=4)


def run(book: Path, catalog: Path) -> NotebookNode:
    """The notebook as it is after all of its cells ran in a new process of this Python."""
    found = read(book)
    resources = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(found, timeout=TIMEOUT_S, kernel_name="python3", resources=resources)
    client.execute(env=os.environ | {"EVICAT_EXAMPLE_CATALOG": str(catalog)})
    return found


def shown(book: NotebookNode, kind: str) -> str:
    """All outputs of one MIME type, joined; ``stream`` is what was printed."""
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    if kind == "stream":
        return "".join(output.text for output in outputs if output.output_type == "stream")
    return "".join(output.data[kind] for output in outputs if kind in output.get("data", {}))


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples") / "sample.catalog"


@pytest.fixture(scope="module")
def first(catalog: Path) -> NotebookNode:
    """The first notebook, which makes the catalog."""
    return run(FIRST, catalog)


@pytest.mark.slow
def test_the_first_indexes_and_finds(first: NotebookNode) -> None:
    assert "Finished: 4 indexed." in shown(first, "stream")
    page = shown(first, "text/html")
    assert "sample.catalog</b> at head" in page
    assert "This is Diane in New Jersey." in page
    assert len(re.findall(r'<img src="data:image/jpeg;base64,', page)) == 8, "the frames that an entry cites"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        (
            "02-compare-two-describers",
            "stream",
            "unread: A dim picture, almost all grey. There is a little movement.",
        ),
        ("03-training-split", "text/plain", "('07.jpg', (144, 193, 3))"),
        ("04-timeline", "image/svg+xml", "Timeline of interview.mp4"),
    ],
    ids=["compare", "split", "timeline"],
)
def test_the_others_run_on_its_catalog(name, kind, said: str, first: NotebookNode, catalog: Path) -> None:
    assert said in shown(run(FOLDER / f"{name}.ipynb", catalog), kind)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_notebooks_are_kept_without_outputs(book: Path) -> None:
    found = read(book)
    nbformat.validate(found)
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    assert code
    assert [cell.id for cell in code if cell.outputs or cell.execution_count] == []
    assert {name for cell in found.cells for name in cell.metadata} == set()
    assert set(found.metadata) == {"kernelspec", "language_info"}


def test_every_notebook_is_told_of() -> None:
    page = (FOLDER / "README.md").read_text()
    assert len(BOOKS) == 4
    assert [book.name for book in BOOKS if f"({book.name})" not in page] == []
