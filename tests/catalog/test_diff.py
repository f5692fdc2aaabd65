"""Comparing producers: how windows are laid side by side, and what is said of words and likeness."""

import math

import polars as pl
import pytest

from evicat.catalog.diff import align, align_by_overlap, counts, diff, diff_views, window_texts
from evicat.catalog.query import Catalog
from evicat.catalog.words import over_represented, shared_words, vocabulary, words
from evicat.schemas.entry import Entry, Outcome, Vector, WindowResult
from evicat.schemas.errors import UsageError
from evicat.schemas.identity import ModelRef, Producer, Unit, entry_id
from evicat.schemas.naming import FileStamp, Root, VideoName
from evicat.schemas.span import US, Span
from evicat.storage.store import Store

ASSETS = {"one.mp4": "1" * 32, "two.mp4": "2" * 32}


def windows(*rows, asset="a" * 32):
    """What ``window_texts`` gives, from ``(start, end, text)``."""
    frame = pl.DataFrame(
        [{"video": "v", "asset_id": asset, "start_s": float(start), "end_s": float(end), "text": text,
          "ids": [f"{start}.{text}"]} for start, end, text in rows],
        schema={"video": pl.String, "asset_id": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
                "text": pl.String, "ids": pl.List(pl.String)},
    )  # fmt: skip
    return frame.sort("asset_id", "start_s", "end_s")


def side_by_side(pairs):
    return pairs.select("start_s", "end_s", "text_a", "text_b").rows()


class TestAligned:
    def test_windows_of_equal_span_and_what_one_side_lacks(self):
        pairs = align(windows((0, 10, "x"), (10, 20, "y")), windows((10, 20, "z"), (20, 30, "w")))
        assert side_by_side(pairs) == [
            (0.0, 10.0, "x", None),
            (10.0, 20.0, "y", "z"),
            (20.0, 30.0, None, "w"),
        ]
        assert counts(pairs) == {"only_a": 1, "only_b": 1, "same": 0, "changed": 1}

    def test_white_space_is_no_change(self):
        pairs = align(windows((0, 10, "a  man\nwaits")), windows((0, 10, "a man waits ")))
        assert counts(pairs)["same"] == 1

    def test_equal_spans_of_two_assets_stay_apart(self):
        pairs = align(windows((0, 10, "x"), asset="a" * 32), windows((0, 10, "x"), asset="b" * 32))
        assert counts(pairs) == {"only_a": 1, "only_b": 1, "same": 0, "changed": 0}

    @pytest.mark.parametrize("swapped", [False, True])
    def test_shorter_windows_are_joined_where_they_overlap_most_each_once(self, swapped):
        coarse = windows((0, 10, "A"), (10, 20, "B"))
        fine = windows((0, 4, "1"), (4, 8, "2"), (8, 12, "3"), (12, 16, "4"), (16, 20, "5"))
        pairs = align_by_overlap(fine, coarse) if swapped else align_by_overlap(coarse, fine)
        joined = [(0.0, 10.0, "A", "1\n2\n3"), (10.0, 20.0, "B", "4\n5")]
        expected = [(start, end, b, a) for start, end, a, b in joined] if swapped else joined
        assert side_by_side(pairs) == expected

    def test_what_overlaps_nothing_stands_by_itself(self):
        pairs = align_by_overlap(windows((0, 9, "A")), windows((2, 3, "in"), (9, 10, "touches")))
        assert side_by_side(pairs) == [(0.0, 9.0, "A", "in"), (9.0, 10.0, None, "touches")]

    def test_nothing_with_nothing(self):
        for how in (align, align_by_overlap):
            assert counts(how(windows(), windows())) == dict.fromkeys(
                ("only_a", "only_b", "same", "changed"), 0
            )


def test_entries_of_one_span_are_one_text_in_their_order():
    rows = [("e.01", 0.0, "second"), ("e.00", 0.0, "first"), ("e.02", 4.0, "next")]
    entries = pl.DataFrame(
        [{"entry_id": name, "video": "v", "asset_id": "a", "start_s": start, "end_s": start + 4, "text": text}
         for name, start, text in rows]
    )  # fmt: skip
    made = window_texts(entries)
    assert made["text"].to_list() == ["first\nsecond", "next"]
    assert made["ids"].to_list() == [["e.00", "e.01"], ["e.02"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's the Café, at 0:03.2.", ["it's", "the", "café", "at", "0:03.2"]),
        ("don\u2019t stop", ["don't", "stop"]),
        ("然後離開", ["然", "後", "離", "開"]),
        ("", []),
        (None, []),
    ],
)
def test_words_are_found_in_any_script(text, expected):
    assert words(pl.Series([text], dtype=pl.String)).to_list() == [expected]


def test_log_odds_are_those_of_the_formula():
    scores = over_represented({"car": 30, "the": 70}, {"car": 10, "the": 90})
    prior_car, prior_the = 500 * 40 / 200, 500 * 160 / 200
    ours = math.log((30 + prior_car) / (70 + prior_the))
    theirs = math.log((10 + prior_car) / (90 + prior_the))
    deviation = math.sqrt(1 / (30 + prior_car) + 1 / (10 + prior_car))
    assert scores["car"] == pytest.approx((ours - theirs) / deviation)
    assert scores["the"] < 0


def test_vocabulary_tells_what_each_side_says_more():
    a = pl.Series(["a red car waits at 5", "a red car"])
    b = pl.Series(["a blue car waits at 7"])
    found = vocabulary(a, b, limit=1)
    assert (found.size_a, found.size_b, found.common) == (6, 6, 4)
    assert found.jaccard == 0.5
    assert [(each.word, each.a, each.b) for each in found.more_in_a] == [("red", 2, 0)]
    assert [(each.word, each.a, each.b) for each in found.more_in_b] == [("blue", 0, 1)]


def test_equal_texts_and_no_texts_have_no_words_of_their_own():
    same, none = pl.Series(["a red car"]), pl.Series([], dtype=pl.String)
    assert vocabulary(same, same).more_in_a == ()
    assert vocabulary(none, none).jaccard is None
    assert vocabulary(same, none).more_in_a == ()
    assert shared_words(pl.Series(["a b", "", "x"]), pl.Series(["b c", "", "y"])).to_list() == [
        pytest.approx(1 / 3), None, 0.0,
    ]  # fmt: skip


SIGHT = Producer(kind="local", scale="local-10s", component="sight", version=1)
NEWER = SIGHT.model_copy(update={"version": 2})
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)
EMBEDDER = Producer(
    kind="embedding", scale="vectors", component="unheard-of", version=1, model=ModelRef(name="m")
)
DIRECTIONS = {"red": (1.0, 0.0), "blue": (0.0, 1.0), "both": (0.6, 0.8)}
"""Vectors of texts by their first word."""


def unit(asset, producer):
    return Unit(
        asset_id=ASSETS[asset], producer_id=producer.producer_id, kind=producer.kind, scale=producer.scale
    )


def write(store, asset, producer, texts, *, embed=True):
    """One window a text (None: nothing to see there), and vectors of them."""
    store.add_producer(producer)
    own, entries = unit(asset, producer), []
    store.open(own)
    for number, text in enumerate(texts):
        span = Span(number * 10 * US, (number + 1) * 10 * US)
        made = ()
        if text is not None:
            made = (
                Entry(
                    entry_id=entry_id(own, span.start_us, 0), unit_id=own.unit_id, asset_id=own.asset_id,
                    producer_id=own.producer_id, kind=own.kind, scale=own.scale, span=span, text=text,
                ),
            )  # fmt: skip
        entries += made
        store.write(
            own, WindowResult(span=span, outcome=Outcome.DONE if made else Outcome.EMPTY, entries=made)
        )
    store.close(own, complete=True)
    if embed:
        _write_vectors(store, asset, producer, entries, len(texts))


def _write_vectors(store, asset, producer, entries, count):
    embedding = EMBEDDER.model_copy(update={"reads": (producer.producer_id,)})
    store.add_producer(embedding)
    chunk = unit(asset, embedding)
    same = ("entry_id", "unit_id", "asset_id", "producer_id", "kind", "scale", "span")
    vectors = tuple(
        Vector(
            **{name: getattr(each, name) for name in same}, part=0, vector=DIRECTIONS[each.text.split()[0]]
        )
        for each in entries
    )
    store.open(chunk)
    outcome = Outcome.DONE if vectors else Outcome.EMPTY
    store.write(chunk, WindowResult(span=Span(0, count * 10 * US), outcome=outcome, vectors=vectors))
    store.close(chunk, complete=True)


@pytest.fixture
def uri(tmp_path):
    """Two videos by one producer, the first of them also by a newer one."""
    uri = tmp_path / "catalog"
    with Store.connect(uri, write=True, create=True) as store:
        root = Root(root_id="r", kind="folder", location="/media")
        store.add_root(root)
        for name, asset_id in ASSETS.items():
            store.add_name(VideoName("r", name, asset_id, name, FileStamp(1, 2, 3, 4)))
        write(store, "one.mp4", SIGHT, ["red car", "blue car", "red door", None])
        write(store, "two.mp4", SIGHT, ["red car"])
        write(store, "one.mp4", NEWER, ["red car", "both cars", "blue door", "red bus"])
    return uri


def test_two_producers_are_compared_on_the_videos_that_both_have(uri):
    catalog = Catalog.open(str(uri))
    found = diff(catalog, catalog, SIGHT.producer_id, NEWER.producer_id)
    assert (found.videos, found.videos_only_a, found.videos_only_b) == (1, 1, 0)
    assert (found.same, found.changed, found.only_a, found.only_b) == (1, 2, 0, 1)
    assert (found.aligned, found.a.windows, found.b.windows, found.a.words_mean) == ("span", 3, 4, 2.0)


def test_agreement_is_the_cosine_of_stored_vectors_and_the_least_alike_come_first(uri):
    catalog = Catalog.open(str(uri))
    found = diff(catalog, catalog, SIGHT.producer_id, NEWER.producer_id)
    agreement = found.agreement
    assert agreement.how.startswith("stored vectors (vectors_")
    assert (agreement.compared, agreement.lowest, agreement.median) == (3, 0.0, 0.8)
    assert agreement.mean == pytest.approx((1 + 0.8 + 0) / 3, abs=1e-4)
    assert agreement.mean_of_changed == pytest.approx(0.4)
    told = [(pair.start_s, pair.text_a, pair.text_b, pair.similarity) for pair in found.most_different]
    assert told == [
        (20.0, "red door", "blue door", 0.0),
        (10.0, "blue car", "both cars", 0.8),
        (30.0, None, "red bus", None),
    ]
    assert diff(catalog, catalog, SIGHT.producer_id, NEWER.producer_id, limit=1).most_different == (
        found.most_different[0],
    )


def test_without_vectors_it_says_why_and_words_decide(uri):
    with Store.connect(uri, write=True) as store:
        bare = SIGHT.model_copy(update={"version": 3})
        write(store, "one.mp4", bare, ["red car", "green tree", "red gate", None], embed=False)
    catalog = Catalog.open(str(uri))
    found = diff(catalog, catalog, SIGHT.producer_id, bare.producer_id)
    assert found.agreement.how.startswith("none: unknown embedder 'unheard-of'")
    assert (found.agreement.compared, found.agreement.mean) == (0, None)
    told = [(pair.text_b, pair.similarity, pair.shared_words) for pair in found.most_different]
    assert told == [("green tree", None, 0.0), ("red gate", None, 0.3333)]


def test_another_video_or_kind(uri):
    with Store.connect(uri, write=True) as store:
        write(store, "one.mp4", SPEECH, ["red"])
    catalog = Catalog.open(str(uri))
    none = diff(catalog, catalog, SIGHT.producer_id, NEWER.producer_id, video="two.mp4")
    assert (none.videos, none.videos_only_a, none.same, none.agreement.compared) == (0, 1, 0, 0)
    with pytest.raises(UsageError, match=r"writes local entries and .* speech ones"):
        diff(catalog, catalog, SIGHT.producer_id, SPEECH.producer_id)


def test_views_at_two_heads_are_compared_by_what_they_show(uri):
    before = Catalog.open(str(uri))
    with Store.connect(uri, write=True) as store:
        store.activate(NEWER)
        write(store, "one.mp4", SPEECH, ["red"])
    after = Catalog.open(str(uri))
    found = diff_views(before, after)
    assert [(part.kind, part.a.version, part.b.version, part.changed) for part in found.parts] == [
        ("local", 1, 2, 2)
    ]
    assert (found.only_a, found.only_b) == ((), ("speech",))
    unchanged = diff_views(after, after)
    assert [(part.kind, part.aligned, part.changed) for part in unchanged.parts] == [
        ("local", "span", 0),
        ("speech", "span", 0),
    ]
