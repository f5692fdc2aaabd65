"""The catalog as readers get it, and citations back."""

import json

import polars as pl
import pytest

from evicat.catalog.reading.serialize import MAX_CHARACTERS, parse_citations, serialize
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.span import Span

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
NARRATIVE = Producer(kind="narrative", scale="narrative-30s", component="tales", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)


def rows(*entries):
    """Entries from ``(kind, start, end, text)`` and, where it matters, the record."""
    return pl.DataFrame(
        [
            {"entry_id": f"e{number}", "asset_id": "a", "video": "v", "scale": kind, "kind": kind,
             "start_s": float(start), "end_s": float(end), "text": text,
             "record": json.dumps(more[0] if more else {})}
            for number, (kind, start, end, text, *more) in enumerate(entries)
        ]
    )  # fmt: skip


@pytest.fixture
def four():
    return rows(
        ("local", 0, 10.04, "a man waits"), ("speech", 2, 4, "hello"), ("narrative", 0, 30, "A man\nwaits."),
        ("local", 10.04, 20, "a woman comes"), ("narrative", 30, 63.25, "They leave."),
    )  # fmt: skip


def words(text):
    return len(text.split())


def test_narratives_come_first_then_locals_and_nothing_else(four):
    made = serialize(four)
    assert made.text == (
        "rank: 1 time_span: [0.0, 30.0] s description: A man waits.\n"
        "rank: 2 time_span: [30.0, 63.2] s description: They leave.\n"
        "rank: 3 time_span: [0.0, 10.0] s description: a man waits\n"
        "rank: 4 time_span: [10.0, 20.0] s description: a woman comes\n"
    )
    assert str(made) == made.text
    assert [entry.entry_id for entry in made.entries] == ["e2", "e4", "e0", "e3"]


def test_citations_lead_to_entries_and_their_exact_spans(four):
    cited = serialize(four).cited("(clip 3) shows it; also clip 1, clip 2 and Clip 3.")
    assert cited.entry_ids == ["e0", "e2", "e4"]
    assert cited.spans[0] == Span.from_seconds(0, 10.04), "not the rounded one"
    assert (cited.repeated, cited.unknown) == ((3,), ())


@pytest.mark.parametrize(
    ("answer", "ranks", "unknown"),
    [
        ("nothing cited, 3 men and 4 dogs", [], ()),
        ("clips 1, 2 and 4", [1, 2, 4], ()),
        ("clips 2-4", [2, 3, 4], ()),
        ("clips 2\u20134", [2, 3, 4], ()),
        ("clips 1, 2, and 4", [1, 2, 4], ()),
        ("clip " + "9" * 5000, [], (10**18 - 1,)),
        ("clip 1 - clip 3", [1, 2, 3], ()),
        ("(CLIP 2)(clip 1)", [2, 1], ()),
        ("clip 9 and clip 0", [], (9, 0)),
        ("clips 1-900000000000", [1], (900000000000,)),
        ("clips 3-1", [3, 1], ()),
        ("clip one, eclipse 3, clip3", [], ()),
    ],
)
def test_the_forms_that_readers_write(four, answer, ranks, unknown):
    cited = parse_citations(answer, serialize(four))
    assert [entry.rank for entry in cited.entries] == ranks
    assert cited.unknown == unknown


def test_a_long_description_is_cut_with_its_clues_first():
    record = {
        "actions": ["opens the red door"],
        "people": [{"descriptor": "the man with the bag"}],
        "scene": "x",
    }
    text = "word " * 400 + "opens the red door"
    made = serialize(rows(("local", 0, 1, text, record), ("local", 1, 2, "short")))
    (cut, whole) = made.entries
    assert cut.description.startswith("opens the red door; the man with the bag. word word")
    assert len(cut.description) <= MAX_CHARACTERS
    assert cut.description.endswith("word...")
    assert (cut.is_cut, whole.is_cut, made.cut) == (True, False, 1)


def test_a_long_text_without_blanks_is_cut_all_the_same():
    (entry,) = serialize(rows(("narrative", 0, 1, "語" * 3000))).entries
    assert len(entry.description) == MAX_CHARACTERS


class TestBudget:
    def test_over_it_says_by_how_much(self, four):
        with pytest.raises(UsageError, match="4 serialized entries have 39 tokens, and 38 are allowed"):
            serialize(four, max_tokens=38, count_tokens=words)
        assert serialize(four, max_tokens=39, count_tokens=words).dropped == ()

    def test_whole_entries_are_dropped_from_the_end(self, four):
        made = serialize(four, max_tokens=29, count_tokens=words, over_budget="drop_last")
        assert [entry.rank for entry in made.entries] == [1, 2, 3]
        assert made.dropped == ("e3",)
        assert words(made.text) <= 29

    def test_narratives_are_kept_where_the_rule_says_so(self, four):
        made = serialize(four, max_tokens=19, count_tokens=words, over_budget="drop_locals")
        assert made.dropped == ("e0", "e3")
        with pytest.raises(UsageError, match="2 serialized entries have"):
            serialize(four, max_tokens=18, count_tokens=words, over_budget="drop_locals")
        assert serialize(four, max_tokens=0, count_tokens=words, over_budget="drop_last").text == ""

    def test_without_a_tokenizer_no_budget_can_be_held(self, four):
        with pytest.raises(UsageError, match="count_tokens"):
            serialize(four, max_tokens=5)


def test_the_other_systems_get_local_entries_in_their_forms(four):
    assert serialize(four, form="pace").text.splitlines()[0] == "[clip 1] 0.0s-10.0s: a man waits"
    first = json.loads(serialize(four, form="videoseal").text.splitlines()[0])
    assert first == {"clip": 1, "start": 0.0, "end": 10.0, "caption": "a man waits"}
    assert serialize(four, form="dvd").text.splitlines()[1] == "00:00:10_00:00:20: a woman comes"


def test_unknown_forms_and_rules_are_told(four):
    with pytest.raises(UnknownNameError, match=r"form 'xml'.*assemble"):
        serialize(four, form="xml")
    with pytest.raises(UnknownNameError, match="rule 'some'"):
        serialize(four, max_tokens=1, count_tokens=words, over_budget="some")


def test_the_same_view_of_the_same_head_gives_the_same_bytes_and_subsets_are_renumbered(shelf):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car"), (10, 20, "a blue car"), (20, 30, "no car")])
    shelf.write("a.mp4", NARRATIVE, [(0, 30, "Cars pass.")])
    shelf.write("a.mp4", SPEECH, [(0, 3, "look")])
    catalog = shelf.catalog
    whole = catalog.serialize("a.mp4")
    assert whole == shelf.catalog.serialize("a.mp4")
    ids = whole.cited("clip 3").entry_ids
    assert catalog.only(ids).serialize("a.mp4").text.startswith("rank: 1 time_span: [10.0, 20.0] s")
    assert len(catalog.without(ids).serialize("a.mp4").entries) == 3
    assert len(catalog.view("w/o narrative").serialize("a.mp4").entries) == 3
    ranks = catalog.listing("a.mp4").select("rank", "text").rows()
    assert ranks == [(1, "Cars pass."), (2, "a red car"), (3, "a blue car"), (4, "no car"), (5, "look")]
