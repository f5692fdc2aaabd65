"""Subtitles as people have them: encodings, rolling captions, speakers and sounds among the words."""

from __future__ import annotations

from pathlib import Path

import pytest

from evicat.catalog.media.subtitles import SubtitleTrack, choose_track, read_track
from evicat.catalog.media.utterances import Line, sound_only, utterances
from evicat.schemas.asset import Asset
from evicat.schemas.span import US

FILM = Asset(
    asset_id="a" * 32, source_id="a" * 32, size_bytes=1, container="test", duration_us=3600 * US, origin_us=0
)


def read(path: Path, content: str | bytes):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_track(Path("film.mp4"), FILM, SubtitleTrack(path=path))


def said(text) -> list[tuple[float, float, str]]:
    return [(s.start_s, s.end_s, s.text) for s in text.segments]


def srt(*cues: str, lasts_s: float = 1.5) -> str:
    """Cues of ``lasts_s`` seconds from second 1, 2, 3, ... on."""
    rows = []
    for number, cue in enumerate(cues, 1):
        end_ms = round((number + lasts_s) * 1000)
        end = f"00:{end_ms // 60000:02d}:{end_ms % 60000 // 1000:02d},{end_ms % 1000:03d}"
        rows.append(f"{number}\n00:{number // 60:02d}:{number % 60:02d},000 --> {end}\n{cue}\n")
    return "\n".join(rows)


B30 = (
    "1\r\n00:00:01,000 --> 00:00:02,500 X1:10 X2:20\r\n<i>Hi</i> {\\an8}\r\n\r\n"
    "00:00:03.000 --> 00:00:02.000\nback\n\n"
    "3\n00:00:02,000 --> 00:00:04,000\noverlap\n\n"
    "4\n-00:00:01,000 --> 00:00:00,500\nneg\n\n"
    "5\n00:59:59,000 --> 01:00:05,000\nlate\n"
)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"\xef\xbb\xbf" + B30.encode(), "utf-8-sig"),
        (B30.encode("cp1252"), "utf-8-sig"),  # plain letters: one as well as the other
        (B30.encode("utf-16"), "utf-16"),
        (B30.encode("utf-16-le"), "utf-16-le"),
        (B30.encode("utf-16-be"), "utf-16-be"),
    ],
)
def test_every_cue_is_read_or_named_with_its_line(tmp_path: Path, content: bytes, encoding: str) -> None:
    text = read(tmp_path / "film.srt", content)
    assert said(text) == [(0, 0.5, "neg"), (1, 2.5, "Hi"), (2, 4, "overlap"), (3599, 3600, "late")]
    assert [s.flags for s in text.segments] == [("cue_overruns",), (), (), ("cue_overruns",)]
    assert text.rejected == ["line 5: ends at 0:00:02.000, not after its start at 0:00:03.000: 'back'"]
    assert (text.encoding, text.folded) == (encoding, 0)


# ruff: noqa: RUF001 (other scripts have marks of their own)
SAYINGS = {
    "cp1252": ["Où êtes-vous allée, garçon ?", "C'est déjà l'été à la fenêtre.", "Ça va très bien, merci."],
    "cp1251": ["Почему ты уходишь отсюда?", "Он сказал, что не делал этого.", "Закройте дверь, холодно."],
    "gb18030": ["你为什么要离开这里？我们明天还要去北京。", "他说这件事情不是他做的，可是没有人相信他。"],
    "big5": ["你為什麼要離開這裡？我們明天還要去北京。", "他說這件事情不是他做的，可是沒有人相信他。"],
    "cp932": ["彼はそれをやっていないと言いました。", "ドアを閉めてください、外はとても寒いです。"],
    "euc_jp": ["どうしてここを離れるのですか。"],
    "cp949": ["왜 여기를 떠나는 거예요?", "그는 그 일을 하지 않았다고 말했습니다."],
}


@pytest.mark.parametrize("encoding", SAYINGS)
def test_old_encodings_are_recognised_and_named(tmp_path: Path, encoding: str) -> None:
    text = read(tmp_path / "film.srt", srt(*SAYINGS[encoding]).encode(encoding))
    assert [s.text for s in text.segments] == SAYINGS[encoding]
    assert text.encoding == encoding


@pytest.mark.parametrize(
    ("language", "encoding", "line"),
    [
        ("pl", "cp1250", "Źle, że stąd wyjeżdżasz, łąka."),
        ("tr", "cp1254", "Işığı söndür, şimdi gidiyoruz."),
        ("lt", "cp1257", "Kodėl išvažiuoji iš čia?"),
        ("el", "cp1253", "Γιατί φεύγεις από εδώ;"),
    ],
)
def test_the_language_of_the_file_name_helps(tmp_path: Path, language, encoding, line) -> None:
    path = tmp_path / f"film.{language}.srt"
    path.write_bytes(srt(line).encode(encoding))
    text = read_track(Path("film.mp4"), FILM, SubtitleTrack(path=path, language=language))
    assert ([s.text for s in text.segments], text.encoding) == ([line], encoding)


ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.160 --> 00:00:02.070 align:start position:0%
 
so<00:00:00.480><c> welcome</c><00:00:00.900><c> back</c>

00:00:02.070 --> 00:00:02.080 align:start position:0%
so welcome back
 

00:00:02.080 --> 00:00:04.000 align:start position:0%
so welcome back
to<00:00:02.500><c> the</c><00:00:02.900><c> workshop</c>

00:00:04.000 --> 00:00:04.010 align:start position:0%
to the workshop
 

00:00:04.010 --> 00:00:06.500 align:start position:0%
to the workshop
today<00:00:04.300><c> we</c><00:00:05.000><c> build</c>

00:00:06.500 --> 00:00:06.510 align:start position:0%
today we build
 

00:00:06.510 --> 00:00:08.000 align:start position:0%
today we build
a<00:00:06.900><c> chair</c>
"""  # noqa: W293 (a line of one blank, as the site writes it)


def test_rolling_captions_say_every_word_once_at_its_first_time(tmp_path: Path) -> None:
    text = read(tmp_path / "film.vtt", ROLLING)
    assert said(text) == [
        (0.16, 2.07, "so welcome back"),
        (2.08, 4.0, "to the workshop"),
        (4.01, 6.5, "today we build"),
        (6.51, 8.0, "a chair"),
    ]
    assert text.rejected == []
    assert text.folded == 18


def test_captions_that_grow_word_by_word_are_folded_too(tmp_path: Path) -> None:
    words = ["we", "have", "just", "received", "news", "from", "the", "harbour"]
    cues = [" ".join(words[: n + 1]) for n in range(len(words))]
    text = read(tmp_path / "film.srt", srt(*cues, lasts_s=1))
    assert [s.text for s in text.segments] == words
    assert [s.start_s for s in text.segments] == list(range(1, len(words) + 1))


@pytest.mark.parametrize(
    "cues",
    [
        ["No.", "No.", "No.", "No.", "Yes.", "Yes."],
        [
            "Row, row your boat",
            "Row, row your boat",
            "gently down",
            "gently down",
            "the stream",
            "the stream",
        ],
        ["Come in.", "Come in. Sit down.", "Thank you.", "What is it?", "I do not know."],
        [
            *["No.", "No. Never.", "So?", "So? I leave.", "Why?", "Why? You know why."],
            *["I do not.", "You do.", "Tell me.", "It is late.", "Not yet.", "The train waits.", "Farewell."],
        ],
    ],
)
def test_what_is_said_twice_stays_twice(tmp_path: Path, cues: list[str]) -> None:
    text = read(tmp_path / "film.srt", srt(*cues, lasts_s=1))
    assert [s.text for s in text.segments] == cues
    assert text.folded == 0


def test_overlapping_cues_are_both_kept(tmp_path: Path) -> None:
    text = read(tmp_path / "film.srt", srt("one two", "three", lasts_s=3))
    assert said(text) == [(1, 4, "one two"), (2, 5, "three")]


SPEECH, SOUND = False, True


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        (["JOHN: Hello there"], [("Hello there", "JOHN", SPEECH)]),
        (["JOHN:", "Hello there", "my friend"], [("Hello there my friend", "JOHN", SPEECH)]),
        (["MRS. O'NEIL (O.S.): Come in!"], [("Come in!", "MRS. O'NEIL", SPEECH)]),
        (["JOHN: Hi", "MARY: Hello"], [("Hi", "JOHN", SPEECH), ("Hello", "MARY", SPEECH)]),
        (["- Hi", "- Hello, you"], [("Hi", None, SPEECH), ("Hello, you", None, SPEECH)]),
        ([">> John: Good evening"], [("Good evening", "John", SPEECH)]),
        (["[Speaker 1]: hi"], [("hi", "Speaker 1", SPEECH)]),
        (["[door slams]"], [("door slams", None, SOUND)]),
        (["[door", "slams]"], [("door slams", None, SOUND)]),
        (["[sighs] I know"], [("sighs", None, SOUND), ("I know", None, SPEECH)]),
        (["(MUSIC)"], [("MUSIC", None, SOUND)]),
        (
            ["I saw it", "(he sighs)", "and left."],
            [("I saw it", None, False), ("he sighs", None, True), ("and left.", None, False)],
        ),
        (["♪ one", "two ♪"], [("one two", None, SOUND)]),
        (["♪"], [("music", None, SOUND)]),
        (["MAN 2: ♪ Sing ♪ and talk"], [("Sing", "MAN 2", SOUND), ("and talk", "MAN 2", SPEECH)]),
    ],
)
def test_speakers_and_sounds_are_told_from_words(lines, parts) -> None:
    assert [tuple(part) for part in utterances([Line(line) for line in lines])] == parts


@pytest.mark.parametrize(
    "text",
    [
        *["-5 degrees", "At 10:30 we go", "Note: closed", "REMEMBER: DON'T GO", "I know (really)", "..."],
        *["the agency (CIA) said so", "Do you know 3:10 to Yuma?", "a < b & c", "a well-known man"],
    ],
)
def test_what_only_looks_like_a_speaker_or_a_sound_stays(text: str) -> None:
    assert [tuple(part) for part in utterances([Line(text)])] == [(text, None, False)]


def test_empty_brackets_are_named_as_without_words(tmp_path: Path) -> None:
    text = read(tmp_path / "film.srt", srt("[ ]", "Hi"))
    assert [s.text for s in text.segments] == ["Hi"]
    assert text.rejected == ["line 2: no words: '[ ]'"]


def test_what_a_transcriber_puts_in_brackets_is_a_sound() -> None:
    assert sound_only(" [Music]") == "Music"
    assert sound_only("(laughing) (clapping)") == "laughing; clapping"
    assert sound_only("♪ la la ♪") == "la la"
    assert sound_only("(laughing) I know") is None
    assert sound_only("...") is None


def test_the_markup_of_webvtt_and_ass_names_speakers(tmp_path: Path) -> None:
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v.loud Anna>Where <b>are</b> you?\n<v Bob>Here.</v>\n[rain]"
    found = read(tmp_path / "film.vtt", vtt).segments
    assert [(s.speaker, s.text, s.kind) for s in found] == [
        ("Anna", "Where are you?", "speech"),
        ("Bob", "Here.", "speech"),
        (None, "rain", "sound"),
    ]
    ass = (
        "[Events]\nFormat: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        "Dialogue: 0,0:00:01.00,0:00:02.00,Default,Anna,0,0,0,,Where are\\Nyou?\n"
    )
    found = read(tmp_path / "film.ass", "[Script Info]\nScriptType: v4.00+\n\n" + ass).segments
    assert [(s.speaker, s.text) for s in found] == [("Anna", "Where are you?")]


def test_embedded_text_has_speakers_and_sounds_as_well(make, kit) -> None:
    folder = make("src.mp4").parent
    (folder / "voices.srt").write_text(srt("JOHN: Hello there", "- Hi\n- Hello, you", "[door slams]"))
    path = make("voices.mkv", "-i src.mp4 -i voices.srt -map 0:v -map 1 -c copy")
    film = kit.facts(path)
    found = read_track(path, film, choose_track([], film.subtitles, ())).segments
    assert [(s.kind, s.speaker, s.text) for s in found] == [
        ("speech", "JOHN", "Hello there"),
        ("speech", None, "Hi"),
        ("speech", None, "Hello, you"),
        ("sound", None, "door slams"),
    ]
