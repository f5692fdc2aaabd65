"""Short subtitle files in the encodings of old: read right or refused, never garbled."""

from __future__ import annotations

from pathlib import Path

import pytest

from evicat.catalog.media.cues import parse_cues
from evicat.catalog.media.encodings import decode
from evicat.catalog.media.subtitles import find_sidecars, read_track
from evicat.schemas.errors import AssetError

TEXTS = {
    ("fr", "cp1252"): "Où êtes-vous allée, garçon ?\nÇa a été très dur, même après l'été.",
    ("de", "cp1252"): "Wir müssen zurück über die Brücke.\nSchöne Grüße aus Köln!",
    ("es", "cp1252"): "¿Dónde está el niño?\n¡Mañana será tarde, señor!",
    ("pt", "cp1252"): "Não há nenhuma razão para a ação.\nAmanhã será melhor, irmão.",
    ("pl", "cp1250"): "Gdzie jest mój płaszcz?\nNie wiem, co się stało z tą książką.",
    ("cs", "cp1250"): "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    ("ru", "cp1251"): "Где мы были вчера вечером?",
    ("ru", "koi8_r"): "Где мы были вчера вечером?",
    ("zh", "gb18030"): "我们昨天在哪里。\n今天天气很好。",
    ("ja", "cp932"): "昨日はどこにいましたか。",
    ("ko", "cp949"): "우리는 어제 어디에 있었습니까?",
    ("el", "cp1253"): "Πού ήμασταν χθες το βράδυ;",
}


def srt(text: str) -> str:
    return "".join(
        f"{number}\n00:00:0{number},000 --> 00:00:0{number + 1},000\n{line}\n\n"
        for number, line in enumerate(text.split("\n"), start=1)
    )


@pytest.mark.parametrize("is_named", [True, False])
@pytest.mark.parametrize(("language", "encoding"), TEXTS)
def test_one_or_two_lines_are_read_right(language: str, encoding: str, is_named: bool) -> None:
    text = srt(TEXTS[language, encoding])
    found = decode(text.encode(encoding), language if is_named else None)
    assert found is not None
    assert found[0] == text


ACCENTS = "Il était là, à côté."


def test_what_is_too_short_to_judge_is_read_by_its_language() -> None:
    text = srt(ACCENTS)
    assert decode(text.encode("cp1252"), "fr-ca") == (text, "cp1252")


def test_a_wrong_language_garbles_nothing() -> None:
    data = srt(TEXTS["ru", "cp1251"]).encode("cp1251")
    found = decode(data, "fr")
    assert found is None or found[0] == data.decode("cp1251")


def test_what_cannot_be_told_is_refused_and_says_what_to_do(make, kit, tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(make("src.mp4").read_bytes())
    nameless, named = tmp_path / "film.srt", tmp_path / "film.fr.srt"
    nameless.write_bytes(srt(ACCENTS).encode("cp1252"))
    asset = kit.facts(film)
    (track,) = find_sidecars(film)
    with pytest.raises(
        AssetError, match=r"save it as UTF-8, or let its name say its language \(film\.fr\.srt"
    ):
        read_track(film, asset, track)
    nameless.rename(named)
    (track,) = find_sidecars(film)
    assert read_track(film, asset, track).segments[0].text == ACCENTS


HELLO = srt("Hello there.\nÇa va ?")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_zeros_behind_the_text_do_not_matter(encoding: str) -> None:
    for padding in (0, 4, 300, 301):
        found = decode(HELLO.encode(encoding) + bytes(padding))
        assert found is not None
        assert found[0].rstrip("\0") == HELLO


@pytest.mark.parametrize("text", ["<html><body>Not found</body></html>", "{25}{50}Hello|World", "\n\nHello."])
def test_a_text_that_is_no_subtitle_is_not_taken_for_an_empty_one(text: str) -> None:
    (cue,) = parse_cues(text, ".srt")
    assert cue.start_us is None
    assert cue.where == f"line {text.count(chr(10)) + 1}"


def test_a_webvtt_file_without_cues_is_empty() -> None:
    assert parse_cues("WEBVTT - nothing is said\n\nNOTE\nsilence\n", ".vtt") == []
