"""How right a tagger is by labels, and thresholds that come from them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evicat.catalog.tagging.calibrate import Share, best_threshold, calibrate, card
from evicat.catalog.tagging.embedding import EmbeddingTagger, EntryVectors
from evicat.catalog.tagging.fields import FieldTagger
from evicat.catalog.tagging.labels import Label, append_label, labelled, read_labels
from evicat.schemas.errors import UnknownNameError, UsageError

from .library import KITCHEN, PLACES, AxesEmbedder, Library, vocabulary


def likeness() -> EmbeddingTagger:
    """By vectors that are made of the texts as they come."""
    embedder = AxesEmbedder()

    def vectors(entries):
        return EntryVectors(embedder.embed(entries["text"].to_list()), np.arange(len(entries)))

    return EmbeddingTagger(embedder, vectors)


def label_all(library: Library, path: Path, word: str = "kitchen") -> Path:
    for row in library.rows("entries"):
        says = word in row["text"].lower()
        append_label(path, Label(entry_id=row["entry_id"], factor="place:kitchen", label=says))
    return path


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilsons_interval(hits: int, of: int, low: float, high: float) -> None:
    assert Share(hits, of).interval == pytest.approx((low, high), abs=1e-4)


def test_of_nothing_nothing_is_known() -> None:
    assert Share(0, 0).interval == (0.0, 1.0)
    assert math.isnan(Share(0, 0).value)
    assert str(Share(0, 0)) == "none"
    assert str(Share(8, 10)) == "0.80 (0.49 to 0.94, of 10)"


@given(st.lists(st.tuples(st.floats(-1, 1, width=32), st.booleans()), min_size=2, max_size=12))
def test_no_other_threshold_has_a_higher_f1(pairs: list[tuple[float, bool]]) -> None:
    scores, truth = np.array([s for s, _ in pairs]), np.array([t for _, t in pairs])
    if not truth.any():
        return

    def f1(threshold: float) -> float:
        said = scores >= threshold
        return 2 * (said & truth).sum() / max(1, said.sum() + truth.sum())

    found = f1(best_threshold(scores, truth))
    gaps = np.diff(np.unique(scores))
    if len(gaps) and gaps.min() < 1e-3:
        return  # nearer together than a threshold is written
    assert found == pytest.approx(max(f1(each) for each in scores))


def test_the_card_counts_what_is_right(library: Library, tmp_path: Path) -> None:
    known = labelled(library.reader, read_labels(label_all(library, tmp_path / "l.jsonl")), PLACES.filled)
    one, total = card(FieldTagger(), known)
    assert (one.factor, one.labels, one.positive) == ("place:kitchen", 6, 3)
    assert (one.precision, one.recall) == (Share(3, 3), Share(3, 3))
    assert (total.factor, total.precision) == ("", Share(3, 3))
    wrong = read_labels(label_all(library, tmp_path / "w.jsonl", word="rain"))
    one, _ = card(FieldTagger(), labelled(library.reader, wrong, PLACES.filled))
    assert (one.precision, one.recall) == (Share(0, 3), Share(0, 2))


def test_a_threshold_is_measured_on_what_it_was_not_chosen_by(library: Library, tmp_path: Path) -> None:
    known = labelled(library.reader, read_labels(label_all(library, tmp_path / "l.jsonl")), PLACES.filled)
    one, _ = calibrate(likeness(), known)
    assert 0.6 < one.threshold < 0.7071, "below the entry with two places, and above those without"
    assert one.recall.of == 3
    found = EmbeddingTagger(AxesEmbedder(), likeness()._vectors, thresholds={"place:kitchen": one.threshold})
    (row, _) = card(found, known)
    assert (row.precision, row.recall) == (Share(3, 3), Share(3, 3))


def test_labels_of_one_class_are_refused(library: Library, tmp_path: Path) -> None:
    path = label_all(library, tmp_path / "l.jsonl", word="")
    with pytest.raises(
        UsageError, match=r"all 6 labels of place:kitchen say yes: .*label with --factor place:kitchen"
    ):
        calibrate(likeness(), labelled(library.reader, read_labels(path), PLACES.filled))


def test_labels_are_read_again_whatever_their_texts_hold_and_however_the_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text('{"entry_id": "a", "factor": "place:kitchen", "label": false}')
    said = Label(entry_id="b", factor="place:kitchen", label=True)
    append_label(path, said, text="one\u2028two\x85three\x0cfour")
    assert read_labels(path) == {("a", "place:kitchen"): False, ("b", "place:kitchen"): True}


def test_labels_of_entries_and_factors_that_are_not_there(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    append_label(path, Label(entry_id="gone.entry", factor="place:kitchen", label=True))
    with pytest.raises(UsageError, match=r"1 labels are of entries .* such as gone\.entry"):
        labelled(library.reader, read_labels(path), PLACES.filled)
    append_label(path, Label(entry_id="gone.entry", factor="place:kichen", label=True))
    with pytest.raises(UnknownNameError, match=r"factor 'place:kichen'; known: .*place:kitchen"):
        labelled(library.reader, read_labels(path), PLACES.filled)
    other = vocabulary(KITCHEN | {"id": "other:x"}, vocabulary="other")
    with pytest.raises(UsageError, match="no label is of other"):
        labelled(library.reader, read_labels(path), other.filled)


def test_the_last_line_about_an_entry_counts_and_none_is_no_label(library: Library, tmp_path: Path) -> None:
    path = label_all(library, tmp_path / "l.jsonl")
    first = library.rows("entries")[0]["entry_id"]
    append_label(path, Label(entry_id=first, factor="place:kitchen", label=None), text="shown")
    assert read_labels(path)[first, "place:kitchen"] is None
    assert len(labelled(library.reader, read_labels(path), PLACES.filled).labels) == 5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"entry_id": "x", "fac', "line 2 is not JSON"),
        ('{"entry_id": "x"}', "line 2 is no label: factor: Field required"),
        ('{"entry_id": "x", "factor": "a:b", "label": "perhaps"}', "line 2 is no label: label: .*'perhaps'"),
        ("[]", "line 2 is no label"),
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "l.jsonl"
    path.write_text(json.dumps({"entry_id": "x", "factor": "a:b", "label": True}) + "\n" + line + "\n")
    with pytest.raises(UsageError, match=said):
        read_labels(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert read_labels(tmp_path / "l.jsonl", may_be_new=True) == {}
    with pytest.raises(UsageError, match=r"l\.jsonl cannot be read"):
        read_labels(tmp_path / "l.jsonl")
