"""The text encoding of a subtitle file: Unicode where it is, else the likeliest of those that people use.

Old encodings cannot be told apart by their bytes alone, so ``charset-normalizer`` judges which reading looks
like a language. It is asked only about encodings in which subtitles are written, and where the file's name
says its language, only about that language's own.
"""

from __future__ import annotations

import re
from contextlib import suppress

_OF_LANGUAGE = {
    "cp1250": "bs cs hr hu pl ro sk sl sq",
    "cp1251": "be bg kk mk mn ru sr uk",
    "cp1252": "af ca da de en es eu fi fo fr ga gl id is it ms nb nl nn no pt sv",
    "cp1253": "el",
    "cp1254": "az tr",
    "cp1255": "he yi",
    "cp1256": "ar fa ur",
    "cp1257": "et lt lv",
    "cp1258": "vi",
    "cp874": "th",
    "koi8_r": "ru",
    "koi8_u": "uk",
    "gb18030": "zh",
    "big5": "zh",
    "cp932": "ja",
    "euc_jp": "ja",
    "cp949": "ko",
}
"""Python's name of an encoding -> ISO 639-1 codes of the languages that are written in it."""
_ONLY_BY_LANGUAGE = frozenset({"cp1254", "cp1257", "cp1258", "koi8_u"})
"""Rare, and close to others: not thought of unless the language is known."""
_WESTERN = "cp1252"
_REPLACED = "\ufffd"
_UTF32_MARKS = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_PADDING = 4
"""Zeros in a row that are no letters."""
_WHOLE_PER_BROKEN = 3
"""Chosen: so many letters beyond ASCII must be whole for each that is broken."""
_JAPANESE = ("cp932", "euc_jp")
_HIRAGANA = re.compile("[\u3041-\u3096]")
_HIRAGANA_SHARE = 0.2
"""Chosen: of Japanese letters, about half; Chinese and Korean bytes read as Japanese give next to none."""
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
"""Katakana that no subtitle is written in; bytes of other encodings read as Japanese are full of it."""
_CYRILLIC = ("cp1251", "koi8_r", "koi8_u")
_COMMON_CYRILLIC = frozenset("оеаинтсрвл")
"""Two thirds of a Russian text, and most of any other Cyrillic one."""


def decode(data: bytes, language: str | None = None) -> tuple[str, str] | None:
    """The text of ``data`` and Python's name of its encoding; None where none fits.

    ``language``: of the text, where it is known (ISO 639-1, or BCP 47).
    """
    data = _without_padding(data)
    encoding = _unicode(data)
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        return _damaged(data, encoding) or _japanese(data) or _guessed(data, language)


def _without_padding(data: bytes) -> bytes:
    """A file that was never written to its end has zeros there; the last letter may hold some, too."""
    text = data.rstrip(b"\0")
    if len(data) - len(text) < _PADDING:
        return data
    wide = 4 if data.startswith(_UTF32_MARKS) else 2
    return text + bytes(-len(text) % wide if b"\0" in text else 0)


def _damaged(data: bytes, encoding: str) -> tuple[str, str] | None:
    """Unicode of which few characters are broken: far fewer than text of another encoding would give."""
    text = data.decode(encoding, "replace")
    broken = text.count(_REPLACED)
    whole = sum(1 for character in text if character > "\x7f") - broken
    is_marked = encoding == "utf-16" or data.startswith(b"\xef\xbb\xbf")
    return (text, encoding) if is_marked or broken * _WHOLE_PER_BROKEN <= whole else None


def _unicode(data: bytes) -> str:
    """UTF-32 and UTF-16 by the byte order mark, UTF-16 also by the zeros of plain letters; else UTF-8."""
    if data.startswith(_UTF32_MARKS):
        return "utf-32"
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    zeros = data.count(0)
    if not zeros or 4 * zeros < len(data):
        return "utf-8-sig"
    return "utf-16-le" if data[1::2].count(0) > zeros // 2 else "utf-16-be"


def _japanese(data: bytes) -> tuple[str, str] | None:
    """Read as Japanese where that gives hiragana: short texts are often taken for Korean."""
    for encoding in _JAPANESE:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        letters = sum(1 for character in text if character.isalpha())
        if len(_HIRAGANA.findall(text)) >= _HIRAGANA_SHARE * max(1, letters):
            return text, encoding
    return None


def _guessed(data: bytes, language: str | None) -> tuple[str, str] | None:
    import charset_normalizer

    guesses = charset_normalizer.from_bytes(data, cp_isolation=_candidates(language))
    likely = [guess for guess in guesses if not _HALF_WIDTH.search(str(guess))]
    if not likely:
        return (_in_own_encoding(data, language) or _guessed(data, None)) if language else None
    best = likely[0]
    if best.encoding in _CYRILLIC:
        return _cyrillic(data, best.encoding)
    # By far the most common one, and easily taken for its neighbours where these read as well.
    western = next((guess for guess in likely if _WESTERN in guess.could_be_from_charset), None)
    if western is not None and western.coherence >= best.coherence:
        return str(western), _WESTERN
    return str(best), best.encoding


def _in_own_encoding(data: bytes, language: str) -> tuple[str, str] | None:
    """Text too short to be judged, in the one encoding of its language: mostly plain letters, nothing odd."""
    own = _own_encodings(language)
    if len(own) != 1:
        return None
    try:
        text = data.decode(own[0])
    except UnicodeDecodeError:
        return None
    letters = [character for character in text if character.isalpha()]
    plain = sum(1 for character in letters if character.isascii())
    is_odd = any(not character.isprintable() and not character.isspace() for character in text)
    return None if is_odd or 2 * plain < len(letters) else (text, own[0])


def _cyrillic(data: bytes, guessed: str) -> tuple[str, str]:
    """In the Cyrillic encoding that gives most common letters: in others the same bytes are rare ones."""
    readings = {}
    for encoding in dict.fromkeys((guessed, "cp1251", "koi8_r")):
        with suppress(UnicodeDecodeError):
            readings[encoding] = data.decode(encoding)
    best = max(readings, key=lambda encoding: _common_share(readings[encoding]))
    return readings[best], best


def _common_share(text: str) -> float:
    letters = [character for character in text.lower() if character.isalpha() and not character.isascii()]
    return sum(1 for letter in letters if letter in _COMMON_CYRILLIC) / max(1, len(letters))


def _candidates(language: str | None) -> list[str]:
    return _own_encodings(language) or [name for name in _OF_LANGUAGE if name not in _ONLY_BY_LANGUAGE]


def _own_encodings(language: str | None) -> list[str]:
    primary = (language or "").split("-")[0]
    return [name for name, languages in _OF_LANGUAGE.items() if primary in languages.split()]
