"""Where sentences of a written text end.

No sentence splitter is among what is installed, so the rules are here: a full stop, question or exclamation
mark ends a sentence, together with the quotation marks and brackets that close behind it, where blanks and
then anything but a small letter follow. It does not after a title (``Dr.``), an initial (``J.``) or another
abbreviation that goes on, nor within quotation marks, nor where no letter was before it (``1. He sits.``). A
line ends a sentence, and so do the marks of scripts that write without blanks. Decimals and times
(``0:03.2``) hold no blank and so are never cut.
"""

from __future__ import annotations

import re

_QUOTATION_MARKS = frozenset("\"'\u201d\u2019\u00bb")
CLOSING = "\"'\u201d\u2019\u00bb\u300d\u300f)]"
_END = re.compile(
    rf"(?<![.!?\u2026])(?P<stop>[.!?\u2026]++)[{re.escape(CLOSING)}]*+(?=\s)|[\u3002\uff01\uff1f]+[{re.escape(CLOSING)}]*"
)
_LAST_WORD = re.compile(r"[^\s(\[\"\u201c\u2018\u00ab]+$")
_INITIALS = re.compile(r"(?:[A-Z]\.)*[A-Z]")
_ABBREVIATIONS = """
mr mrs ms dr prof st jr sr rev gen col sgt capt lt gov sen rep hon mt ft vs etc e.g i.e cf approx ca fig figs
vol ed eds al inc ltd co corp
"""
_GOES_ON = frozenset(_ABBREVIATIONS.split())
"""Words, without their full stop, after which a sentence goes on. (``p.m.`` often ends one.)"""
_BEFORE_NUMBER = ("no", "nos", "p", "pp", "ch", "sec", "art")
"""Words after whose full stop a number belongs to them."""
_PAIRS = {"\u201c": "\u201d", "\u00ab": "\u00bb", "\u300c": "\u300d", "\u300e": "\u300f"}


def sentences(text: str) -> list[str]:
    """The sentences of ``text`` in order, without the blanks around them; a blank text has none.

    Nothing but blanks is left out: all other characters stand in exactly one of them, in their order.
    """
    found = []
    for line in text.splitlines():
        quoted = _quoted(line)
        begin = 0
        for match in _END.finditer(line):
            if quoted[match.end() - 1] and quoted[min(match.end(), len(line) - 1)]:
                continue
            if match["stop"] and not _ends(line, match):
                continue
            if not _has_letter(line[begin : match.end()]):
                continue
            found.append(line[begin : match.end()])
            begin = match.end()
        if begin and not _has_letter(line[begin:]):
            found[-1] += line[begin:]
        else:
            found.append(line[begin:])
    return [sentence for each in found if (sentence := each.strip())]


def _ends(line: str, match: re.Match[str]) -> bool:
    """Whether a sentence ends with a mark that stands before a blank."""
    after = line[match.end() :].lstrip()
    if not after or after[0].islower():
        return not after
    behind = match.group().removeprefix(match["stop"])
    if after[0] in "([" and _QUOTATION_MARKS.intersection(behind):
        return False  # what stands in brackets behind a quotation belongs to it: "Yes." (0:03.2)
    if match["stop"] != ".":
        return True
    before = _LAST_WORD.search(line[: match.start()])
    word = before.group() if before else ""
    if word != "I" and _INITIALS.fullmatch(word):
        return False
    folded = word.casefold()
    return folded not in _GOES_ON and not (folded in _BEFORE_NUMBER and after[0].isdigit())


def _has_letter(text: str) -> bool:
    return any(map(str.isalpha, text))


def _quoted(line: str) -> list[bool]:
    """Of each character whether it stands within quotation marks, these included.

    Marks that have no partner in their line are taken for no marks.
    """
    inside = [False] * len(line)
    for begin, end in quotation_spans(line):
        inside[begin:end] = [True] * (end - begin)
    return inside


def quotation_spans(line: str) -> list[tuple[int, int]]:
    """Where the outermost quotations of ``line`` begin and end, their marks included."""
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(line):
        closing = _PAIRS.get(line[at], '"' if line[at] == '"' else "")
        end = line.find(closing, at + 1) if closing else -1
        if end >= 0:
            spans.append((at, end + 1))
            at = end
        at += 1
    return spans
