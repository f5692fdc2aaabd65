"""Who says what in a cue, and what of it is no speech.

Speakers stand before their words, as captions write them: ``JOHN: Hello``, ``>> John: Hello``,
``[John]: Hello``, ``<v John>`` in WebVTT, the name of an ASS event. ``- `` and ``>>`` begin another speaker
without a name. A name in small letters alone is none: "Note: closed" is said or read.

No speech is what stands in square brackets, what stands in round brackets in capitals (of five letters or
more: "(CIA)" is said) or alone on its line, and what stands between music notes. Described sounds and sung
words are evidence, but not dialogue. Bump ``SUBTITLES_VERSION`` and ``CLEAN_VERSION`` when a rule changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LONGEST_NAME = 30
_NAME_WORDS = 4
_CAPITALS = 5
_TURN = re.compile(r"(?:-|\u2013|>{2,3})\s*(?=[^\W\d]|[\[(\"'\u201c\xbf\xa1\u266a\u266b])")
_PREFIX = re.compile(rf"(?:\[([^\]:]+)\]|([^:\[\]()]{{1,{_LONGEST_NAME}}}?))(?:\s*\([^)]*\))?:(?:\s+|$)")
_NOTES = "\u266a\u266b"
_SOUND = re.compile(
    rf"[{_NOTES}]+([^{_NOTES}]*)(?:[{_NOTES}]+|$)"  # a song, or a lone note
    r"|\[([^\[\]]*)\]"
    r"|\(([^()]*)\)"
)


class Line(NamedTuple):
    """A line of a cue without tags; ``voice`` is who the file's own markup says speaks it."""

    text: str
    voice: str | None = None


class Utterance(NamedTuple):
    """Words of one voice, or one sound described in words."""

    text: str
    speaker: str | None = None
    is_sound: bool = False


def utterances(lines: Sequence[Line]) -> list[Utterance]:
    """What the lines of one cue hold, in their order."""
    return [part for text, speaker in _turns(lines) for part in _parts(text, speaker)]


def sound_only(text: str) -> str | None:
    """The description where ``text`` is nothing but described sounds or song; else None."""
    parts = list(_parts(" ".join(text.split()), None))
    if not parts or not all(part.is_sound for part in parts):
        return None
    return "; ".join(part.text for part in parts)


def _turns(lines: Sequence[Line]) -> Iterator[tuple[str, str | None]]:
    """Text and speaker, one per turn; lines without a sign of another speaker go on with the turn."""
    text, speaker, voice = "", None, None
    for line in lines:
        sign = _TURN.match(line.text)
        rest = line.text[sign.end() :] if sign else line.text
        named, rest = _name(rest, signed=sign is not None)
        is_aside = _is_bracketed(rest)
        if sign or named or line.voice != voice or is_aside or _is_bracketed(text):
            if text:
                yield text, speaker
            # An aside between two lines does not take the floor.
            speaker = named or line.voice or (None if sign or line.voice != voice else speaker)
            text, voice = rest, line.voice
        else:
            text = f"{text} {rest}".strip()
    if text:
        yield text, speaker


def _name(text: str, *, signed: bool) -> tuple[str | None, str]:
    """The name before the words, and the words; ``signed``: after a sign that somebody else speaks."""
    found = _PREFIX.match(text)
    if not found:
        return None, text
    bracketed, bare = found.groups()
    name, rest = (bracketed or bare).strip(), text[found.end() :]
    fits = _is_called(name) if signed else _stands_out(name, rest)
    if bracketed or (fits and len(name.split()) <= _NAME_WORDS):
        return name, rest
    return None, text


def _is_called(name: str) -> bool:
    """Whether every word begins as a name does; ``- Remember this: never run`` is all said."""
    return all(not word[0].islower() for word in name.split())


def _stands_out(name: str, rest: str) -> bool:
    """In capitals, where the words after it are not."""
    return name.isupper() and not rest.isupper()


def _is_bracketed(text: str) -> bool:
    found = _SOUND.fullmatch(text)
    return found is not None and found[1] is None


def _parts(text: str, speaker: str | None) -> Iterator[Utterance]:
    """The sounds of a turn, each where it stands, and the words between them."""
    said: list[str] = []
    position = 0
    is_aside = not any(character.isalnum() for character in _SOUND.sub("", text))
    for found in _SOUND.finditer(text):
        song, square, rounded = found.groups()
        if rounded is not None and not is_aside and not (rounded.isupper() and len(rounded) >= _CAPITALS):
            continue  # said in passing
        said.append(text[position : found.start()])
        position = found.end()
        words = " ".join((song or square or rounded or "").split())
        if any(character.isalnum() for character in words) or song is not None:
            yield from _spoken(said, speaker)
            said = []
            yield Utterance(words or "music", speaker, is_sound=True)
    said.append(text[position:])
    yield from _spoken(said, speaker)


def _spoken(said: Sequence[str], speaker: str | None) -> Iterator[Utterance]:
    words = " ".join(" ".join(said).split())
    if words:
        yield Utterance(words, speaker)
