import pytest

from evicat.catalog.describers.base import WindowInput
from evicat.catalog.describers.digest import LONGEST, Digest, DigestOptions
from evicat.schemas.entry import Entry
from evicat.schemas.errors import WindowError
from evicat.schemas.recipe import Profile
from evicat.schemas.records import Entity, LocalRecord, ObjectBox, SpeechSegment
from evicat.schemas.span import Span

MINUTE = Span.from_seconds(0, 60)


def local(start_s, end_s, *, flags=(), scale="local-10s", **fields):
    record = LocalRecord(**({"scene": "a dark picture"} | fields))
    return Entry(
        entry_id=f"{scale}.{start_s:03d}",
        unit_id="unit",
        asset_id="asset",
        producer_id=scale,
        kind="local",
        scale=scale,
        span=Span.from_seconds(start_s, end_s),
        text="text of the local entry",
        record=record.model_dump_json(),
        flags=flags,
    )


def segment(start_s, end_s, text, **facts):
    return SpeechSegment(start_s=start_s, end_s=end_s, text=text, **({"source": "faster-whisper"} | facts))


def heard(said):
    return Entry(
        entry_id=f"speech.{said.start_s}",
        unit_id="unit",
        asset_id="asset",
        producer_id="speech",
        kind="speech",
        scale="speech",
        span=Span.from_seconds(said.start_s, said.end_s),
        text=said.text,
        record=said.model_dump_json(),
        flags=said.flags,
    )


def digest(*entries, speech=(), span=MINUTE):
    rows = sorted([*entries, *map(heard, speech)], key=lambda entry: entry.span)
    window = WindowInput(span=span, speech=tuple(speech), entries=tuple(rows))
    return Digest(DigestOptions(), Profile()).describe(window)


def test_one_paragraph_in_time_order_with_quotes():
    done = digest(
        local(0, 10, colours=("mostly black",), screen_text=("THE END",)),
        local(10, 20, scene="a bright picture", changes=("it gets brighter between 0:10.4 and 0:19.1",)),
        speech=[segment(2.5, 4.25, "Come in."), segment(12, 13, "Who is there?")],
    )
    assert done.text == (
        '0:00.0-0:10.0: a dark picture; colours: mostly black; on screen: "THE END". '
        'A voice says: "Come in." (0:02.5-0:04.3). '
        "0:10.0-0:20.0: a bright picture; it gets brighter between 0:10.4 and 0:19.1. "
        'A voice says: "Who is there?" (0:12.0-0:13.0).'
    )
    assert done.record.narrative == done.text
    assert done.record.rests_on == ("local-10s.000", "local-10s.010", "speech.2.5", "speech.12.0")


def test_what_neighbours_repeat_is_said_once_with_its_span():
    done = digest(
        *(
            local(start, start + 10, colours=("mostly green",), screen_text=("LIVE",))
            for start in range(0, 50, 10)
        ),
        local(50, 60, colours=("mostly blue",), screen_text=("LIVE",)),
    )
    assert done.text == (
        '0:00.0-1:00.0: a dark picture; on screen: "LIVE". '
        "0:00.0-0:50.0: colours: mostly green. 0:50.0-1:00.0: colours: mostly blue."
    )
    assert len(done.record.rests_on) == 6


def test_a_repeat_after_a_pause_or_a_gap_is_said_again():
    pause = digest(local(0, 10, objects=("a red car",)), local(10, 20), local(20, 30, objects=("a red car",)))
    assert "0:00.0-0:10.0: objects: a red car." in pause.text
    assert "0:20.0-0:30.0: objects: a red car." in pause.text
    gap = digest(local(0, 10), local(20, 30))
    assert gap.text == "0:00.0-0:10.0: a dark picture. 0:20.0-0:30.0: a dark picture."


def text_box(time_s, name):
    return ObjectBox(time_s=time_s, name=name, x1=0, y1=0, x2=10, y2=10, source="ocr")


def test_text_over_several_windows_has_its_first_and_last_sight():
    done = digest(
        local(0, 10, screen_text=("LIVE", "GOAL"), boxes=(text_box(2.1, "LIVE"), text_box(9.3, "GOAL"))),
        local(10, 20, screen_text=("LIVE",), boxes=(text_box(11.25, "LIVE"), text_box(14.5, "LIVE"))),
    )
    assert done.text == (
        '0:00.0-0:20.0: a dark picture; on screen: "LIVE" (first seen at 0:02.1, last at 0:14.5). '
        '0:00.0-0:10.0: on screen: "GOAL" (seen at 0:09.3).'
    )


def test_a_colour_that_changes_its_place_goes_on_without_it():
    places = ("some brown in the middle", "some brown", "some brown at the top left")
    done = digest(*(local(10 * i, 10 * i + 10, colours=(place,)) for i, place in enumerate(places)))
    assert done.text == "0:00.0-0:30.0: a dark picture; colours: some brown."


@pytest.mark.parametrize(
    "phrases", [("some brown", "much brown"), ("some red", "some red-haired people"), ("red", "red coat")]
)
def test_other_colours_stay_apart(phrases):
    done = digest(*(local(10 * i, 10 * i + 10, colours=(each,)) for i, each in enumerate(phrases)))
    assert [
        f"0:{10 * i:02d}.0-0:{10 * i + 10}.0: colours: {each}." in done.text for i, each in enumerate(phrases)
    ]
    assert all(f"colours: {each}." in done.text for each in phrases)


def test_every_field_of_a_local_record_is_told():
    done = digest(
        local(
            0,
            10,
            scene="A kitchen.",
            place="a kitchen",
            people=(Entity(descriptor="the man in the blue coat", details=("wet hair", "tired")),),
            entities=(Entity(descriptor="the grey dog"),),
            objects=("a kettle",),
            colours=("blue coat",),
            actions=("he pours tea",),
            interactions=("he looks at the dog",),
            social_cues=("a frown",),
            changes=("the light goes out",),
            screen_text=("LATER",),
            spoken_clues=("a paraphrase of what is said",),
        )
    )
    assert done.text == (
        "0:00.0-0:10.0: A kitchen; the place: a kitchen; colours: blue coat; "
        "people: the man in the blue coat (wet hair, tired); also: the grey dog; objects: a kettle; "
        "actions: he pours tea; interactions: he looks at the dog; social cues: a frown; "
        'the light goes out; on screen: "LATER".'
    )


def test_voices_are_named_as_far_as_they_are_known():
    done = digest(
        speech=[
            segment(1, 2, "Hello."),
            segment(3, 4, "Are you in?"),
            segment(5, 6, "[door closes]", source="subtitles:film.srt"),
            segment(7, 8, "Yes.", speaker="Anna"),
        ]
    )
    assert done.text == (
        'A voice says: "Hello." (0:01.0-0:02.0) and "Are you in?" (0:03.0-0:04.0). '
        'The subtitles read: "[door closes]" (0:05.0-0:06.0). Anna says: "Yes." (0:07.0-0:08.0).'
    )


def test_doubtful_speech_is_neither_quoted_nor_rested_on():
    doubted = segment(1, 2, "Thank you for watching.", flags=("unsure_speech",))
    sure = segment(1, 2, "Good night.")
    done = digest(speech=[doubted, sure])
    assert done.text == 'A voice says: "Good night." (0:01.0-0:02.0).'
    assert done.record.rests_on == ("speech.1.0",)


def test_a_cue_of_the_next_window_is_not_rested_on():
    done = digest(local(50, 60), speech=[segment(59, 63, "Later.")])
    assert done.record.rests_on == ("local-10s.050",)
    assert "Later" not in done.text


def test_nothing_to_digest():
    assert digest().record is None
    assert digest(speech=[segment(1, 2, "you you you", flags=("repeated",))]).record is None
    assert digest(local(0, 10, flags=("nothing_visible",))).record is None
    assert digest(local(0, 10, scene="...")).record is None


def test_a_blank_window_with_dialogue_is_told():
    scene = "nothing can be seen: the picture is plain black"
    done = digest(local(0, 10, flags=("nothing_visible",), scene=scene), speech=[segment(1, 2, "Hello?")])
    assert done.text == f'0:00.0-0:10.0: {scene}. A voice says: "Hello?" (0:01.0-0:02.0).'


def test_two_local_scales_are_told_side_by_side():
    done = digest(
        local(0, 4, scale="local-4s", objects=("a cup",)),
        local(0, 10, scale="local-10s"),
        local(4, 8, scale="local-4s", objects=("a cup",)),
    )
    assert done.text == "0:00.0-0:10.0: a dark picture. 0:00.0-0:08.0: a dark picture; objects: a cup."


def test_dense_dialogue_is_kept_whole():
    speech = [segment(i, i + 1, f"Sentence number {i} of a long and lively talk.") for i in range(60)]
    done = digest(speech=speech)
    assert len(done.text) > 1200
    assert all(said.text in done.text for said in speech)
    assert len(done.record.rests_on) == 60


def test_too_long_for_a_narrative_is_an_error_that_says_what_to_do():
    speech = [segment(i, i + 1, "word " * 100) for i in range(60)]
    with pytest.raises(WindowError, match=rf"{LONGEST} are possible; write a smaller window_seconds"):
        digest(speech=speech)


def test_a_broken_local_record_is_an_error_that_names_the_entry():
    broken = local(0, 10).model_copy(update={"record": '{"scenery": "x"}'})
    with pytest.raises(WindowError, match=r"the record of entry local-10s\.000 is not a local record"):
        digest(broken)


def test_the_longest_narrative_is_what_the_schema_takes():
    speech = [segment(i, i + 1, "w" * 300) for i in range(59)]
    done = digest(speech=speech)
    assert len(done.text) < LONGEST
    fields = type(done.record).model_fields["narrative"].metadata
    assert any(getattr(rule, "max_length", None) == LONGEST for rule in fields)
