"""Subtitles: which belong to a video, which is taken, and what is kept of them, at what time."""

from __future__ import annotations

from pathlib import Path

import pytest

from evicat.catalog.media.languages import language_rank, parse_language
from evicat.catalog.media.subtitles import (
    SubtitleTrack,
    choose_track,
    find_sidecars,
    read_track,
    read_track_isolated,
)
from evicat.schemas.asset import Asset, SubtitleFacts
from evicat.schemas.errors import AssetError
from evicat.schemas.span import US


def asset(duration_s: float = 3600, *, origin_s: float = 0, container_start_s: float = 0) -> Asset:
    return Asset(
        asset_id="a" * 32,
        source_id="a" * 32,
        size_bytes=1,
        container="test",
        duration_us=round(duration_s * US),
        origin_us=round(origin_s * US),
        container_start_us=round(container_start_s * US),
    )


def names(folder: Path, video: str) -> dict[str, tuple[str | None, bool, bool]]:
    return {t.path.name: (t.language, t.forced, t.default) for t in find_sidecars(folder / video)}


def read(path: Path, **options):
    return read_track(Path("film.mp4"), options.pop("of", asset()), SubtitleTrack(path=path), **options)


def spoken(text) -> list[tuple[float, float, str]]:
    return [(s.start_s, s.end_s, s.text) for s in text.segments]


def touch(folder: Path, *files: str) -> None:
    for file in files:
        (folder / file).write_text("")


def test_side_cars_bear_the_name_of_the_video(tmp_path: Path) -> None:
    touch(tmp_path, "film.mp4", "film.srt", "film.en.SRT", "film.eng.forced.vtt", "film.pt-BR.default.ass")
    touch(tmp_path, "film.mp4.de.ssa", "film.English commentary.srt", "film.en.sdh.srt")
    touch(tmp_path, "films.srt", "other.en.srt", "film.txt", "film2.srt", "xfilm.srt")
    (tmp_path / "film.folder.srt").mkdir()
    assert names(tmp_path, "film.mp4") == {
        "film.srt": (None, False, False),
        "film.en.SRT": ("en", False, False),
        "film.eng.forced.vtt": ("en", True, False),
        "film.pt-BR.default.ass": ("pt-br", False, True),
        "film.mp4.de.ssa": ("de", False, False),
        "film.English commentary.srt": (None, False, False),
        "film.en.sdh.srt": ("en", False, False),
    }


def test_the_longest_name_has_the_side_car(tmp_path: Path) -> None:
    touch(tmp_path, "film.mp4", "film.2.mkv", "film.en.srt", "film.2.en.srt", "film.2.srt", "film.3.srt")
    assert set(names(tmp_path, "film.mp4")) == {"film.en.srt"}
    assert set(names(tmp_path, "film.2.mkv")) == {"film.2.en.srt", "film.2.srt"}


def test_names_are_not_patterns(tmp_path: Path) -> None:
    touch(tmp_path, "a[1]*.mp4", "a[1]*.en.srt", "a1b.en.srt")
    assert set(names(tmp_path, "a[1]*.mp4")) == {"a[1]*.en.srt"}


@pytest.mark.parametrize(
    ("tag", "parsed"),
    [
        *[("en", "en"), ("ENG", "en"), ("ger", "de"), ("deu", "de"), ("chi", "zh"), ("zh-Hans", "zh-hans")],
        *[("pt_BR", "pt-br"), ("qq", None), ("english", None), ("director's cut", None), ("", None)],
    ],
)
def test_language_tags(tag: str, parsed: str | None) -> None:
    assert parse_language(tag) == parsed


def test_preferred_languages_come_in_their_order() -> None:
    tags = ["fr", None, "pt", "eng", "pt-BR", "en-GB"]
    ranked = sorted(tags, key=lambda tag: language_rank(tag, ("pt-BR", "en")))
    assert ranked == ["pt-BR", "pt", "eng", "en-GB", None, "fr"]


def test_the_choice_follows_the_written_rule(tmp_path: Path) -> None:
    def sidecar(name: str, language: str | None = None, *, forced: bool = False, default: bool = False):
        return SubtitleTrack(path=tmp_path / name, language=language, forced=forced, default=default)

    german = sidecar("a", "de")
    english = sidecar("b", "en")
    forced = sidecar("c", "en", forced=True)
    default = sidecar("d", "en", default=True)
    stream = SubtitleFacts(stream_index=3, codec="subrip", language="eng", default=True)
    assert choose_track([], (), ("en",)) is None
    assert choose_track([german, english], (stream,), ("en",)) == english
    assert choose_track([german, forced], (stream,), ("en",)).stream_index == 3
    assert choose_track([forced], (stream.model_copy(update={"forced": True}),), ("en",)) is None
    assert choose_track([english, default], (stream,), ("en",)) == default
    assert choose_track([german], (stream,), ("en", "de")).stream_index == 3
    assert choose_track([german], (stream,), ("de", "en")) == german
    assert choose_track([german, english], (), ()) == german
    assert choose_track([german], (), ("fr",)) == german


B30 = (
    b"1\r\n00:00:01,000 --> 00:00:02,500 X1:10 X2:20\r\n<i>Hi</i> {\\an8}\r\n\r\n"
    b"00:00:03.000 --> 00:00:02.000\nback\n\n"
    b"3\n00:00:02,000 --> 00:00:04,000\noverlap\n\n"
    b"4\n-00:00:01,000 --> 00:00:00,500\nneg\n\n"
    b"5\n00:59:59,000 --> 01:00:05,000\nlate\n"
)
B30_CUES = [(0.0, 0.5, "neg"), (1.0, 2.5, "Hi"), (2.0, 4.0, "overlap"), (3599.0, 3600.0, "late")]


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"\xef\xbb\xbf" + B30, "utf-8-sig"),
        (B30, "utf-8-sig"),
        (B30.decode().encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + B30.decode().encode("utf-16-be"), "utf-16"),
    ],
)
def test_srt_as_people_have_it(tmp_path: Path, content: bytes, encoding: str) -> None:
    (tmp_path / "film.srt").write_bytes(content)
    text = read(tmp_path / "film.srt")
    assert spoken(text) == B30_CUES
    assert [s.flags for s in text.segments] == [("cue_overruns",), (), (), ("cue_overruns",)]
    assert text.encoding == encoding
    assert text.rejected == ["line 5: ends at 0:00:02.000, not after its start at 0:00:03.000: 'back'"]


def test_other_encodings_are_guessed_and_named(tmp_path: Path) -> None:
    lines = ["Où êtes-vous allée, garçon ?", "C'est déjà l'été à la fenêtre.", "Ça va très bien, merci."]
    cues = [f"{k}\r\n00:00:0{k},000 --> 00:00:0{k},900\r\n{line}\r\n" for k, line in enumerate(lines, 1)]
    (tmp_path / "film.fr.srt").write_bytes("\r\n".join(cues).encode("cp1252"))
    text = read(tmp_path / "film.fr.srt")
    assert [s.text for s in text.segments] == lines
    assert text.encoding == "cp1252"


def test_an_empty_file_has_no_cues(tmp_path: Path) -> None:
    for suffix in ("srt", "vtt", "ass"):
        (tmp_path / f"film.{suffix}").write_bytes(b"")
        assert read(tmp_path / f"film.{suffix}")[:2] == ([], [])


def test_rejected_cues_take_their_words_with_them(tmp_path: Path) -> None:
    content = """1
00:00:01,000 --> 00:00:02,000
one

2
00:00:0x,000 --> 00:00:03,000
two

3
00:00:03,000 --> 00:00:04,000
<b></b>

4
00:00:05,000 --> 00:00:06,000
Count:

42

5
00:00:07 --> 00:00:08
3 --> 4 is <3, a < b
"""
    (tmp_path / "film.srt").write_text(content)
    text = read(tmp_path / "film.srt")
    assert [(s.start_s, s.text) for s in text.segments] == [
        (1.0, "one"),
        (5.0, "Count: 42"),
        (7.0, "3 --> 4 is <3, a < b"),
    ]
    assert text.rejected == ["line 6: its times cannot be read: 'two'", "line 10: no words: ''"]


def test_vtt_keeps_notes_names_and_settings_out(tmp_path: Path) -> None:
    content = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE about --nothing

intro
01:02.500 --> 01:04.000 align:start position:10%
<v Anna>Where <c.loud>are</c> <01:03.000>you?</v>
&lt;here&gt; &amp; there

NOTE
not said

1:00:00.000 --> 1:00:01.000
42
"""
    (tmp_path / "film.vtt").write_text(content)
    text = read(tmp_path / "film.vtt", of=asset(7200))
    assert [(s.start_s, s.end_s, s.speaker, s.text) for s in text.segments] == [
        (62.5, 64.0, "Anna", "Where are you?"),
        (62.5, 64.0, None, "<here> & there"),
        (3600.0, 3601.0, None, "42"),
    ]
    assert text.rejected == []


def test_ass_keeps_codes_comments_and_drawings_out(make) -> None:
    text = read(make("subs.mkv").with_name("styled.ass"))
    assert spoken(text) == [(1.5, 3.0, "Hallo, Welt")]
    assert text.rejected == ["cue 3: no words: ''"]


def test_a_broken_ass_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "film.ass").write_text("[Events]\nDialogue: 0,x,y\n")
    with pytest.raises(AssetError, match=r"film\.ass: not an ASS or SSA file"):
        read(tmp_path / "film.ass")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=r"film\.srt: No such file"):
        read(tmp_path / "film.srt")


def test_a_side_car_counts_from_the_players_zero(tmp_path: Path) -> None:
    (tmp_path / "film.srt").write_text("00:00:05,000 --> 00:00:06,000\nHi\n")
    # The player's zero is 7 s on the source's clock; the first picture comes at 8.5 s.
    late = asset(origin_s=8.5, container_start_s=7)
    assert spoken(read(tmp_path / "film.srt", of=late)) == [(3.5, 4.5, "Hi")]
    assert spoken(read(tmp_path / "film.srt", of=late, offset_us=-3 * US)) == [(0.5, 1.5, "Hi")]
    outside = read(tmp_path / "film.srt", of=late, offset_us=-60 * US)
    assert outside.segments == []
    assert outside.rejected == ["line 1: lies outside the video, which ends at 1:00:00.000: 'Hi'"]


HI = [(1.0, 2.5, "Hi there, you & I"), (3.0, 4.0, "late")]


@pytest.mark.parametrize("name", ["subs.mkv", "subs.mp4", "subs.webm", "subs_late.mkv"])
def test_embedded_text_is_read_on_the_timeline(make, kit, name: str) -> None:
    path = make(name)
    film = kit.facts(path)
    track = choose_track([], film.subtitles, ())
    text = read_track(path, film, track)
    assert spoken(text) == HI
    assert [s.flags for s in text.segments] == [(), ("cue_overruns",)]
    assert text.rejected == []


def test_embedded_streams_are_chosen_by_language(make, kit, pool) -> None:
    path = make("subs.mkv")
    film = kit.facts(path)
    track = choose_track([], film.subtitles, ("de",))
    text = read_track_isolated(pool, path, film, track, timeout_s=60)
    assert spoken(text) == [(1.5, 3.0, "Hallo, Welt")]
    assert text == read_track(path, film, track)
    assert {(s.source, s.language) for s in text.segments} == {("subtitles:stream 2 de", "de")}


def test_sources_do_not_tell_the_title(tmp_path: Path) -> None:
    path = tmp_path / "The Murderer Is The Butler.en.srt"
    path.write_text("00:00:05,000 --> 00:00:06,000\nHi\n")
    (track,) = find_sidecars(tmp_path / "The Murderer Is The Butler.mp4")
    text = read_track(tmp_path / "The Murderer Is The Butler.mp4", asset(), track)
    assert text.segments[0].source == "subtitles:sidecar en"


def test_the_hash_follows_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("one")
    (tmp_path / "b.srt").write_text("one")
    one, copy = SubtitleTrack(path=tmp_path / "a.srt"), SubtitleTrack(path=tmp_path / "b.srt")
    before = one.inputs_hash()
    assert before == copy.inputs_hash() != one.inputs_hash(US)
    (tmp_path / "a.srt").write_text("two")
    assert one.inputs_hash() != before
    assert SubtitleTrack(stream_index=2).inputs_hash() != SubtitleTrack(stream_index=3).inputs_hash()
