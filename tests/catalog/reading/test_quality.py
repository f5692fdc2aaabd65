"""The score card: each measure finds the fault that it is for, and nothing where there is none."""

import pytest

from evicat.catalog.measures.dialogue import DIALOGUE_SCHEMA
from evicat.catalog.measures.entries import RECORDS
from evicat.catalog.quality import CARD_SCHEMA, MEASURES, Bound, quality
from evicat.schemas.asset import Asset
from evicat.schemas.entry import KINDS, FrameRef
from evicat.schemas.errors import IntegrityError, UnknownNameError, UsageError
from evicat.schemas.identity import Producer
from evicat.schemas.span import US
from evicat.storage.store import Store

LOCAL = Producer(kind="local", scale="local-10s", component="words", version=1)
NARRATIVE = Producer(kind="narrative", scale="narrative-30s", component="tales", version=1)
SPEECH = Producer(kind="speech", scale="speech", component="ears", version=1)
TEXTS = [
    "a fisherman mends a torn net beside the harbour wall",
    "two children chase a striped ball across wet cobbles",
    "an old tram climbs the hill with its lamps lit",
    "a baker stacks warm loaves behind steamed windows",
]


def rows(texts, **more):
    return [(at * 10, at * 10 + 10, text, dict(more)) for at, text in enumerate(texts)]


def measured(shelf, **more):
    """Value of each measure, of the only producer that has it."""
    card = quality(shelf.catalog, **more)
    assert card.schema == CARD_SCHEMA
    return dict(card.select("measure", "value").iter_rows())


def test_what_is_in_order_has_no_faults(shelf):
    shelf.write("a.mp4", LOCAL, rows(TEXTS))
    found = measured(shelf)
    for name in (
        "failed_share",
        "empty_share",
        "partial_share",
        "flagged_share",
        "repeated_share",
        "outside",
    ):
        assert found[name] == 0, name
    assert found["cut_share"] == 0
    assert found["found_share"] == 1
    assert found["words_median"] == 9.5


def test_repeats_are_counted_between_neighbours_of_one_video(shelf):
    shelf.write("a.mp4", LOCAL, rows(["same words", "same  words", "other words", "same words"]))
    shelf.write("b.mp4", LOCAL, rows(["same words"]))
    assert measured(shelf)["repeated_share"] == pytest.approx(1 / 3)


def test_near_repeats_are_found_by_stored_vectors(shelf, direction):
    vectors = [direction(1, 0), direction(1, 0.01), direction(0, 1)]
    entries = [(at * 10, at * 10 + 10, TEXTS[at], {"vector": vector}) for at, vector in enumerate(vectors)]
    shelf.write("a.mp4", LOCAL, entries)
    assert measured(shelf)["near_share"] == 0.5


def test_descriptions_that_all_say_the_same_are_not_found_again(shelf):
    shelf.write("a.mp4", LOCAL, rows(["a man stands in a large room today"] * 40))
    assert measured(shelf)["found_share"] < 0.5


def test_long_texts_flags_and_frames_outside_are_counted(shelf):
    frames = [(FrameRef(pts=0, time_s=3.0),), (FrameRef(pts=1, time_s=99.0),)]
    entries = [
        (0, 10, "x " * 700, {"flags": ("frames_dropped",), "frames": frames[0]}),
        (10, 20, "short", {"frames": frames[1]}),
    ]
    shelf.write("a.mp4", LOCAL, entries)
    found = measured(shelf)
    assert (found["cut_share"], found["flagged_share"], found["outside"]) == (0.5, 0.5, 1)


def test_speech_that_is_too_fast_or_doubted_is_counted(shelf):
    shelf.write(
        "a.mp4",
        SPEECH,
        [
            (0, 2, "word " * 20),
            (2, 6, "four calm words here"),
            (6, 8, "hm", {"flags": ("no_voice",)}),
            (8, 8.02, "Okay."),
        ],
    )
    found = measured(shelf)
    assert found["crammed_share"] == pytest.approx(1 / 2), "a lone word has no rate"
    assert found["doubted_share"] == pytest.approx(2 / 8.02)


def test_narratives_are_compared_with_what_was_seen(shelf, direction):
    local = [(at * 10, at * 10 + 10, TEXTS[at], {"vector": direction(1, 0)}) for at in range(3)]
    shelf.write("a.mp4", LOCAL, local)
    shelf.write("a.mp4", NARRATIVE, [(0, 30, "A tale.", {"vector": direction(1, 1), "record": RECORD})])
    found = measured(shelf)
    assert found["agreement"] == pytest.approx(0.5**0.5, abs=1e-4)
    assert found["renamed_share"] == 0.5


RECORD = """{"narrative": "A tale.", "rests_on": [], "cast": [
    {"name": "Paul", "formerly": ["the man"], "first_seen_s": 0, "last_seen_s": 30},
    {"name": "the dog", "first_seen_s": 0, "last_seen_s": 30}]}"""


def test_a_record_that_is_none_is_counted_and_the_others_are_measured(shelf):
    broken = {"record": "{}"}
    shelf.write("a.mp4", NARRATIVE, [(0, 30, "A tale.", {"record": RECORD}), (30, 60, "Another.", broken)])
    found = measured(shelf)
    assert (found["broken_share"], found["renamed_share"]) == (0.5, 0.5)
    with pytest.raises(IntegrityError, match=r"the record of .*narrative-30s.* is not that of a narrative"):
        shelf.catalog.cast("a.mp4")


def test_every_kind_of_entry_has_its_record():
    assert set(RECORDS) == set(KINDS)


def test_what_is_worse_than_its_bound_is_doubtful(shelf):
    shelf.write("a.mp4", LOCAL, rows(["same words"] * 3))
    doubtful = {row["measure"] for row in quality(shelf.catalog).to_dicts() if row["doubtful"]}
    assert {"repeated_share", "words_median", "broken_share"} <= doubtful
    assert not {"failed_share", "cut_share", "outside"} & doubtful


def test_dialogue_is_told_by_source_and_language(shelf):
    def line(source, **more):
        return {"record": f'{{"source": "{source}"}}', "language": "en", **more}

    shelf.write("a.mp4", SPEECH, [(0, 4, "One.", line("subtitles:sidecar en"))])
    heard = [
        (0, 3, "Two.", line("faster-whisper")),
        (3, 4, "hm", line("faster-whisper", flags=("no_voice",))),
    ]
    shelf.write("b.mp4", SPEECH, [*heard, (9, 10, "drei", {"language": "de"})])
    found = shelf.catalog.dialogue()
    assert found.schema == DIALOGUE_SCHEMA
    assert found.rows() == [
        ("faster-whisper", "en", 1, 2, 4.0, 0.25),
        ("subtitles:sidecar", "en", 1, 1, 4.0, 0.0),
        ("", "de", 1, 1, 1.0, 0.0),
    ]
    assert len(shelf.catalog.dialogue("a.mp4")) == 1
    shelf.write("c.mp4", LOCAL, rows(TEXTS))
    assert shelf.catalog.dialogue("c.mp4").schema == DIALOGUE_SCHEMA


def test_a_card_may_be_of_one_video_and_is_the_same_again(shelf):
    shelf.write("a.mp4", LOCAL, rows(["same words"] * 4))
    shelf.write("b.mp4", LOCAL, rows(TEXTS))
    assert measured(shelf, video="b.mp4")["repeated_share"] == 0
    assert shelf.catalog.quality(seed=3).equals(shelf.catalog.quality(seed=3))


def test_the_share_that_is_spoken_is_of_the_videos_that_the_card_is_of(shelf):
    for video, said_s, length_s in (("a.mp4", 5, 10), ("b.mp4", 9, 90)):
        shelf.write(video, SPEECH, [(0, said_s, "hello there")])
        name = shelf.asset_id(video)
        asset = Asset(
            asset_id=name,
            source_id=name,
            size_bytes=1,
            container="wav",
            duration_us=length_s * US,
            origin_us=0,
            video=None,
        )
        with Store.connect(shelf.uri, write=True) as store:
            store.add_asset(asset)
    assert measured(shelf)["spoken_share"] == pytest.approx(14 / 100)
    assert measured(shelf, video="a.mp4")["spoken_share"] == pytest.approx(5 / 10)


def test_every_measure_that_is_made_is_documented(shelf):
    shelf.write("a.mp4", LOCAL, rows(TEXTS))
    shelf.write("a.mp4", SPEECH, [(0, 2, "hello there")])
    assert set(quality(shelf.catalog)["measure"]) <= set(MEASURES)


class TestBounds:
    def test_a_bound_is_kept_or_broken_by_its_direction(self, shelf):
        shelf.write("a.mp4", LOCAL, rows(["same words", "same words", *TEXTS]))
        card = quality(shelf.catalog)
        assert Bound.parse("repeated_share=0.2").broken(card).is_empty()
        assert len(Bound.parse("repeated_share=0.1").broken(card)) == 1
        assert Bound.parse("words_median=5").broken(card).is_empty()
        assert len(Bound.parse("words_median=50").broken(card)) == 1

    @pytest.mark.parametrize(
        "text", ["failed_share", "failed_share=", "failed_share=much", "failed_share=nan"]
    )
    def test_what_is_none_is_told(self, text):
        with pytest.raises(UsageError, match="not a bound"):
            Bound.parse(text)

    def test_unknown_measures_are_told(self):
        with pytest.raises(UnknownNameError, match=r"measure 'beauty'.*failed_share"):
            Bound.parse("beauty=1")
