"""Searching: what is found, in which order, and what odd queries and filters do."""

import numpy as np
import polars as pl
import pytest

from evicat.catalog.query import Catalog
from evicat.catalog.reading.columns import HIT_SCHEMA
from evicat.catalog.reading.ranking import Ranked, fuse
from evicat.schemas.errors import UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.storage.store import Store

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)


@pytest.fixture(scope="module")
def odd(tmp_path_factory, making_shelf):
    """Texts in which odd queries are to be found."""
    shelf = making_shelf(tmp_path_factory.mktemp("odd") / "catalog")
    texts = [
        "It's the man with the quick brown bag",
        "a brown dog that is quick",
        "A café at the corner, 100% full_house",
        "日本語の看板 beside a door",
        "C++ (fast) 'quote' and \"quote\"",
        "the car and the bus",
    ]
    shelf.write("a.mp4", LOCAL, [(at * 10, at * 10 + 10, text) for at, text in enumerate(texts)])
    return shelf.catalog


def starts(found):
    return [round(start / 10) for start in found["start_s"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"quick brown"', [0]),
        ('"brown quick"', []),
        ('"quick brown" dog', [0]),
        ("it's", [0]),
        ("IT'S", [0]),
        ("cafe", [2]),
        ("日本語", [3]),
        ("C++ (fast)", [4]),
        ("100%", [2]),
        ("", []),
        ("   \n", []),
        ('"', []),
        ("*", []),
        ("🎈", []),
        ("Message: {0}, StackTrace: {1}", []),
    ],
)
def test_words_are_found_by_the_written_rules(odd, query, expected):
    assert starts(odd.search(query, mode="text")) == expected


CURLY = "\u2019"


@pytest.mark.parametrize("apostrophe", ["'", CURLY])
def test_either_apostrophe_finds_the_other(shelf, apostrophe):
    texts = ["He didn't wait there", f"She didn{CURLY}t wait here", "They waited", "They did wait there"]
    shelf.write("a.mp4", LOCAL, [(at * 10, at * 10 + 10, text) for at, text in enumerate(texts)])
    word = f"didn{apostrophe}t"
    assert set(starts(shelf.catalog.search(word, mode="text"))) == {0, 1}
    assert set(starts(shelf.catalog.search(f'"{word} wait"', mode="text"))) == {0, 1}
    assert starts(shelf.catalog.occurrences(f"there {word}")) == [0]
    assert starts(shelf.catalog.occurrences(f'"{word} wait" here')) == [1]


def test_words_that_are_everywhere_are_words_like_others(odd):
    assert set(starts(odd.search("the", mode="text"))) == {0, 2, 5}


def test_and_not_are_no_syntax(odd):
    assert starts(odd.search("car AND NOT bus", mode="text"))[0] == 5


def test_a_very_long_query_is_answered(odd):
    assert starts(odd.search("dog " + "x" * 5000, mode="text")) == [1]


def test_an_unpaired_quotation_mark_is_no_syntax(odd):
    assert starts(odd.search('dog "', mode="text")) == [1]


def test_occurrences_have_every_word_and_stand_in_time(odd):
    assert starts(odd.occurrences("brown quick")) == [0, 1]
    assert starts(odd.occurrences('"quick brown"')) == [0]
    assert starts(odd.occurrences('the "brown bag"')) == [0]
    assert odd.occurrences("zebra").is_empty()
    assert odd.occurrences("*").is_empty()


def test_what_was_written_in_the_last_run_is_found(shelf):
    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    assert len(shelf.catalog.search("zeppelin", mode="text")) == 0
    with Store.connect(shelf.uri, write=True) as store:
        shelf._write(store, "b.mp4", LOCAL, [(0, 10, "a zeppelin")])
        store.commit(force=True)  # committed, and not indexed yet
        assert shelf.catalog.search("zeppelin", mode="text")["video"].to_list() == ["b.mp4"]


class TestByVector:
    @pytest.fixture(scope="class")
    @classmethod
    def catalog(cls, tmp_path_factory, making_shelf, direction):
        shelf = making_shelf(tmp_path_factory.mktemp("vectors") / "catalog")
        for video, tilt in (("a.mp4", 0.1), ("b.mp4", 0.2)):
            rows = [
                (at * 10, at * 10 + 10, f"window {at}", {"vector": direction(1, tilt + at)})
                for at in range(4)
            ]
            shelf.write(video, LOCAL, rows)
        return shelf.catalog

    def test_the_nearest_stand_first_and_the_score_is_their_cosine(self, catalog, direction):
        found = catalog.search(vector=direction(1, 0.1), limit=3)
        assert found.select("video", "start_s").rows() == [("a.mp4", 0.0), ("b.mp4", 0.0), ("a.mp4", 10.0)]
        assert found["score"][0] == pytest.approx(1.0, abs=1e-5)
        assert found["score"].is_sorted(descending=True)

    def test_of_each_video_at_most_so_many(self, catalog, direction):
        found = catalog.search(vector=direction(1, 0.1), limit=2, per_video=1)
        assert found.select("video", "start_s").rows() == [("a.mp4", 0.0), ("b.mp4", 0.0)]
        assert len(catalog.search(vector=direction(1, 0.1), limit=5, per_video=1)) == 2

    def test_filters_apply_before_the_best_are_taken(self, catalog, direction):
        nearest = direction(1, 0.1)
        found = catalog.search(vector=nearest, limit=1, between=(30, 40), video="b.mp4")
        assert found.select("video", "start_s").rows() == [("b.mp4", 30.0)]
        found = catalog.search(vector=nearest, limit=2, text="window 3")
        assert found.select("video", "start_s").rows() == [("a.mp4", 30.0), ("b.mp4", 30.0)]

    def test_as_many_as_match_where_fewer_do_than_are_asked(self, catalog, direction):
        assert len(catalog.search(vector=direction(1, 0), limit=100)) == 8
        assert len(catalog.search(vector=direction(1, 0), limit=100, text="window 3")) == 2

    def test_words_and_vector_are_fused(self, catalog, direction):
        found = catalog.search("3", vector=direction(1, 0.1), mode="hybrid", limit=8)
        by_words = {"window 3": 1 / 61 + 1 / 62}  # both of them, at ranks 1 and 2
        by_vector = [1 / (60 + rank) for rank in range(1, 9)]
        assert found["score"].sum() == pytest.approx(sum(by_vector) + by_words["window 3"])
        assert found["score"].is_sorted(descending=True)

    def test_neighbouring_hits_are_one_moment(self, catalog, direction):
        found = catalog.moments(vector=direction(1, 0.1), limit=5)
        assert found.select("video", "start_s", "end_s").rows() == [
            ("a.mp4", 0.0, 40.0),
            ("b.mp4", 0.0, 40.0),
        ]
        assert [len(ids) for ids in found["entry_ids"]] == [4, 4]
        assert found["text"].to_list() == ["window 0", "window 0"]

    @pytest.mark.parametrize(
        "filters_",
        [{}, {"video": "b.mp4"}, {"between": (10, 30)}, {"text": "WINDOW 2"}, {"per_video": 2}, {"kind": []}],
    )
    def test_fewer_are_the_first_of_more(self, catalog, direction, filters_):
        asked = {"vector": direction(1, 0.7), **filters_}
        whole = catalog.search(limit=100, **asked)["entry_id"].to_list()
        for limit in range(1, 9):
            assert catalog.search(limit=limit, **asked)["entry_id"].to_list() == whole[:limit]

    @pytest.mark.parametrize(
        ("vector", "said"),
        [
            ([1.0, 2.0], r"has 2 numbers, but those of .*MiniLM.* have 384"),
            ([float("nan")] * 384, "not finite"),
            ([1e300] * 384, "not finite"),
            ([0.0] * 384, "all zeros"),
            ([[1.0] * 384], "one dimension"),
            (["a", "b"], "must be numbers"),
        ],
    )
    def test_a_vector_that_is_none_is_refused(self, catalog, vector, said):
        with pytest.raises(UsageError, match=said):
            catalog.search(vector=vector)

    def test_a_vector_with_mode_text_or_without_words_for_hybrid_is_refused(self, catalog, direction):
        with pytest.raises(UsageError, match="mode text takes no vector"):
            catalog.search("x", mode="text", vector=direction(1))
        with pytest.raises(UsageError, match="needs a text"):
            catalog.search(vector=direction(1), mode="hybrid")


class TestOfManyEquals:
    """Entries that say the same: which of them stand first does not hang on where a ranking was cut."""

    @pytest.fixture(scope="class")
    @classmethod
    def catalog(cls, tmp_path_factory, making_shelf, direction):
        shelf = making_shelf(tmp_path_factory.mktemp("equals") / "catalog")
        for number in range(2):
            ends = [at * 10 + (10 if at % 7 else 5) for at in range(90)]
            rows = [
                (at * 10, end, "nothing visible", {"vector": direction(1)}) for at, end in enumerate(ends)
            ]
            shelf.write(f"{number}.mp4", LOCAL, rows)
        return shelf.catalog

    @pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
    @pytest.mark.parametrize("limit", [1, 3, 20, 30])
    def test_the_shortest_and_then_the_lowest_ids_stand_first(self, catalog, direction, mode, limit):
        vector = {} if mode == "text" else {"vector": direction(1)}
        rows = catalog.entries().with_columns(length=pl.col("end_s") - pl.col("start_s"))
        expected = rows.sort("length", "entry_id")["entry_id"].head(limit).to_list()
        found = catalog.search("" if mode == "vector" else "nothing", mode=mode, limit=limit, **vector)
        assert found["entry_id"].to_list() == expected

    @pytest.mark.parametrize("mode", ["text", "vector", "hybrid"])
    def test_what_a_view_leaves_out_is_made_up_for(self, catalog, direction, mode):
        vector = {} if mode == "text" else {"vector": direction(1)}
        rows = catalog.entries().with_columns(length=pl.col("end_s") - pl.col("start_s"))
        in_order = rows.sort("length", "entry_id")["entry_id"].to_list()
        asked = {"query": "" if mode == "vector" else "nothing", "mode": mode, **vector}
        found = catalog.without(in_order[:150]).search(limit=10, **asked)
        assert found["entry_id"].to_list() == in_order[150:160]
        assert len(catalog.without(in_order[:150]).search(limit=100, **asked)) == 30
        assert len(catalog.only(in_order[:25]).search(limit=100, **asked)) == 25


class TestByAnIndexOfVectors:
    """An index looks where the query is; what is asked for may lie elsewhere."""

    COUNT = 600

    @pytest.fixture(scope="class")
    @classmethod
    def catalog(cls, tmp_path_factory, making_shelf):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("evicat.storage.indexes.VECTOR_INDEX_ROWS", 1000)
            patch.setattr("evicat.storage.indexes.PARTITION_ROWS", 300)
            patch.setattr("evicat.catalog.reading.search.EXACT_ROWS", 50)
            patch.setattr("evicat.catalog.reading.search.PROBES", 1)
            shelf = making_shelf(tmp_path_factory.mktemp("indexed") / "catalog")
            numbers = np.random.default_rng(5).normal(size=(2, cls.COUNT, 384))
            numbers[0, np.arange(cls.COUNT), 1 + np.arange(cls.COUNT) % 3] += 100
            numbers[1, :, 0] += 100  # four heaps, one of them the second video
            for video, rows in zip(("a.mp4", "b.mp4"), numbers, strict=True):
                unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
                spans = [(at * 10, at * 10 + 10, f"window {at}") for at in range(cls.COUNT)]
                written = [(*span, {"vector": row.tolist()}) for span, row in zip(spans, unit, strict=True)]
                shelf.write(video, LOCAL, written)
            yield shelf.catalog

    def test_there_is_one(self, catalog):
        (table,) = catalog.embedder_tables()
        (found,) = catalog.dataset(table).stats.index_stats("vector_idx")["indices"]
        assert found["index_type"] == "IVF_FLAT"
        assert found["num_partitions"] > 1

    @pytest.mark.parametrize("limit", [1, 10, 400])
    def test_a_filter_far_from_the_query_gives_as_many_as_match(self, catalog, direction, limit):
        for filters_ in ({"video": "b.mp4"}, {"kind": "local", "video": "b.mp4"}):
            found = catalog.search(vector=direction(-1, 0.5), limit=limit, **filters_)
            assert len(found) == limit
            assert set(found["video"]) == {"b.mp4"}

    def test_all_are_found_where_all_are_asked_for(self, catalog, direction):
        assert len(catalog.search(vector=direction(-1), limit=5000)) == 2 * self.COUNT
        assert len(catalog.search(vector=direction(-1), limit=5000, between=(0, 100))) == 20

    def test_the_nearest_are_found(self, catalog):
        (table,) = catalog.embedder_tables()
        rows = catalog.scan(table).select("entry_id", "vector").collect()
        matrix = np.stack(rows["vector"].to_numpy())
        queries = np.random.default_rng(6).normal(size=(20, 384)) * 0.01 + matrix[:20]
        hits = 0
        for query in queries:
            exact = rows["entry_id"].gather(np.argsort(-(matrix @ query))[:10].tolist())
            hits += len(set(exact) & set(catalog.search(vector=query, limit=10)["entry_id"]))
        assert hits >= 0.95 * 200


def test_doubted_speech_is_not_found_by_word_or_vector(shelf, direction):
    rows = [
        (at, at + 1, "thank you", {"vector": direction(1), "flags": ("no_voice",) if at else ()})
        for at in range(40)
    ]
    shelf.write("a.mp4", SPEECH, rows)
    catalog = shelf.catalog
    for found in (
        catalog.search("thank", mode="text"),
        catalog.search(vector=direction(1)),
        catalog.search("thank", vector=direction(1)),
        catalog.occurrences("thank you"),
    ):
        assert found["start_s"].to_list() == [0.0]
    assert len(catalog.speech("a.mp4")) == 40


def test_of_the_hybrid_ten_are_the_first_of_twenty(shelf, direction):
    rows = [
        (at, at + 1, "car " * (at % 9) + "dog", {"vector": direction(1, (at * 7) % 150)}) for at in range(150)
    ]
    shelf.write("a.mp4", LOCAL, rows)
    found = [shelf.catalog.search("car", vector=direction(1), limit=limit) for limit in (1, 10, 20)]
    assert found[1].equals(found[2].head(10))
    assert found[0].equals(found[2].head(1))


def test_occurrences_are_all_there_however_many(shelf):
    shelf.write("a.mp4", LOCAL, [(at, at + 1, "a red car") for at in range(1200)])
    assert len(shelf.catalog.occurrences("red")) == 1200


def test_answers_have_one_schema_whatever_matched(odd):
    for found in (odd.search("car", mode="text"), odd.search("zebra", mode="text"), odd.search("")):
        assert found.schema == HIT_SCHEMA


def test_fusion_adds_reciprocal_ranks():
    def ranking(*ids):
        return [Ranked(each, "asset", 10.0, 1 / at) for at, each in enumerate(ids, start=1)]

    fused = {row.entry_id: row.score for row in fuse(ranking("a", "b"), ranking("b", "c"))}
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert list(fused) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"mode": "fuzzy"}, "mode 'fuzzy'.*hybrid"),
        ({"kind": "lokal"}, "kind 'lokal'.*local"),
        ({"video": "b.mp4"}, "video 'b.mp4'.*a.mp4"),
        ({"scale": "local-11s"}, "scale 'local-11s'.*local-10s"),
        ({"factors": "place:kitchen"}, "factor 'place:kitchen'"),
        ({"producer": "zz"}, "producer 'zz'"),
    ],
)
def test_unknown_names_are_told_with_the_choices(odd, arguments, said):
    with pytest.raises(UnknownNameError, match=said):
        odd.search("car", **({"mode": "text"} | arguments))


@pytest.mark.parametrize(
    "between", [(5, 1), (1, 1), (-1, 3), (0, float("inf")), (0, float("nan")), "5-1", "soon", (1,), 7]
)
def test_a_span_that_is_none_is_told(odd, between):
    with pytest.raises(UsageError, match="between"):
        odd.entries(between=between)


class TestValuesAreLiteral:
    """Quotes, wildcards and SQL in values stand for themselves."""

    NAMES = (
        "it's.mp4",
        "zzz' OR 1=1 --",
        "a_b.mp4",
        "axb.mp4",
        "100%.mp4",
        "back\\slash.mp4",
        'q"q.mp4',
        "n\nl.mp4",
    )

    @pytest.fixture(scope="class")
    @classmethod
    def catalog(cls, tmp_path_factory, making_shelf):
        shelf = making_shelf(tmp_path_factory.mktemp("names") / "catalog")
        with Store.connect(shelf.uri, write=True) as store:
            for name in cls.NAMES:
                shelf._write(store, name, LOCAL, [(0, 10, f"text of {name}")])
        return shelf.catalog

    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_its_own_video_and_no_other(self, catalog, name):
        assert catalog.entries(name)["text"].to_list() == [f"text of {name}"]
        assert catalog.search("text", mode="text", video=name)["video"].to_list() == [name]

    def test_many_names_at_once(self, catalog):
        assert set(catalog.entries(list(self.NAMES))["video"]) == set(self.NAMES)

    @pytest.mark.parametrize("name", ["", "x" * 10_000, "a%b.mp4", "' OR ''='"])
    def test_what_is_no_name_is_no_video(self, catalog, name):
        with pytest.raises(UnknownNameError):
            catalog.entries(name)

    @pytest.mark.parametrize("part", ["it's", "100%", "a_b", "back\\slash", 'q"q', "' OR 1=1 --"])
    def test_text_is_looked_for_as_it_stands(self, catalog, part):
        found = catalog.entries(text=part)["text"].to_list()
        assert found == [f"text of {name}" for name in self.NAMES if part in name]

    def test_five_thousand_ids_are_a_filter(self, catalog):
        ids = catalog.entries()["entry_id"].to_list()
        many = [f"none{number}" for number in range(5000)]
        assert len(catalog.only([*many, ids[0]]).entries()) == 1
        assert len(catalog.without([*many, ids[0]]).entries()) == len(ids) - 1


def test_a_view_is_searched_like_the_whole(odd):
    first = odd.search("quick", mode="text")["entry_id"].to_list()
    assert odd.only(first[:1]).search("quick", mode="text")["entry_id"].to_list() == first[:1]
    assert odd.without(first[:1]).search("quick", mode="text")["entry_id"].to_list() == first[1:]


def test_a_catalog_survives_being_pickled_at_its_head(shelf):
    import pickle

    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    catalog = shelf.catalog
    pickled = pickle.dumps(catalog)
    shelf.write("b.mp4", LOCAL, [(0, 10, "another red car")])
    again = pickle.loads(pickled)
    assert again.entries().equals(catalog.entries())
    assert len(again.refresh().entries()) == 1, "it stays at its head"
    assert len(catalog.refresh().entries()) == 2


@pytest.mark.filterwarnings("ignore")  # lance's own warning, which is shown once the fork is made
def test_a_forked_process_is_told_to_open_its_own(shelf):
    import multiprocessing

    shelf.write("a.mp4", LOCAL, [(0, 10, "a red car")])
    catalog = Catalog.open(shelf.uri)
    assert len(catalog.entries()) == 1
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_try, args=(catalog, sender))
    child.start()
    try:
        assert receiver.poll(30), "the forked process hangs"
        assert "opened before the process was forked" in receiver.recv()
    finally:
        child.kill()
        child.join()


def _try(catalog, sender):
    try:
        sender.send(str(len(catalog.entries())))
    except UsageError as error:
        sender.send(str(error))


def test_it_answers_inside_a_running_event_loop(odd):
    import asyncio

    async def ask():
        return len(odd.search("car", mode="text")), len(odd.entries())

    assert asyncio.run(ask()) == (1, 6)
