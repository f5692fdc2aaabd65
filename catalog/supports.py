"""What the sentences of a narrative rest on: pure, and the same for the same texts and vectors.

A narrative is split into sentences (``sentences.py``). For each, the local and speech entries that overlap
the narrative in time are its candidates. The score of a candidate is

    cosine_weight * cosine + (1 - cosine_weight) * coverage

where ``cosine`` is the highest of any part of the sentence with any part of the candidate, not below 0, and
``coverage`` the share of the sentence's content words that the candidate has. Content words are all but
function words and figures, without case and English endings.

A sentence is

- ``quoted`` where words in its quotation marks, or those behind a verb of speaking, are found in a speech
  entry: a run of ``quote_words`` common words, or, of words in quotation marks, of ``quote_share`` of them.
  Such a link has the share that the run is of the quoted words as its score, unless the one above is higher.
- ``inferred`` where it says an intention, cause, relation or judgement (one of ``inferred_words``, outside of
  quotation marks), or where nothing scores ``min_score``. It is linked to what scores ``related_score``.
- else ``observed``. Observed and quoted sentences are linked to what scores ``min_score``.

At most ``max_links`` links are kept, best first; of equals the earlier entry. Scores are rounded to four
digits before they are compared, so that the last bits of vectors decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from evicat.catalog.sentences import quotation_spans, sentences
from evicat.schemas.entry import Entry, Link, Role, Support
from evicat.schemas.recipe import SupportOptions

VERSION = 1
"""Bumped when the same texts begin to get other supports."""
Vectors = Mapping[str, npt.NDArray[np.float32]]
"""By text: its parts as rows of length 1, ``(parts, dimension)``, without those that cannot be embedded."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:['\u2019][^\W_{_UNSPACED}]+)*")
"""Of scripts that write without blanks, each character is a word."""
_FUNCTION = """
a about above after again all also am an and another any are around as at away back be been before
being below between both but by can did do does down during each else for from further get gets had
has have he her here hers him his how i if in into is it its itself me more most my no nor not now
of off on once one only or other our out over own same she so some still such than that the their
them then there these they this those through to too under until up very was we were what when where
which while who whom whose will with you your
"""
_FUNCTION_WORDS = frozenset(_FUNCTION.split())
_ENDINGS = ("'s", "ing", "ed", "es", "s")
_SPEAKING = """
say says said tell tells told ask asks asked answer answers answered reply replies replied shout
shouts shouted whisper whispers whispered announce announces announced explain explains explained
claim claims claimed warn warns warned promise promises promised declare declares declared add adds
added
"""
_REPORTED = re.compile(rf"\b(?:{'|'.join(_SPEAKING.split())})\b(?:\s+that\b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Scored:
    """A candidate of one sentence."""

    entry: Entry
    score: float
    quoted: float
    """Share of quoted words that it holds in one run; 0 where that is not enough."""

    @property
    def best(self) -> float:
        return max(self.score, self.quoted)


def weigh(
    narrative: Entry, candidates: Sequence[Entry], vectors: Vectors, options: SupportOptions
) -> list[Support]:
    """One support per sentence of ``narrative``, in order.

    Args:
        candidates: Entries that overlap it in time.
        vectors: Of the texts of all candidates, and of all sentences.
    """
    found = []
    for number, text in enumerate(sentences(narrative.text)):
        scored = [_scored(text, entry, vectors, options) for entry in candidates]
        role, links = _judged(text, scored, options)
        found.append(
            Support(
                entry_id=narrative.entry_id,
                sentence=number,
                unit_id=narrative.unit_id,
                asset_id=narrative.asset_id,
                producer_id=narrative.producer_id,
                span=narrative.span,
                text=text,
                role=role,
                rests_on=links,
            )
        )
    return found


def _judged(text: str, scored: Sequence[_Scored], options: SupportOptions) -> tuple[Role, tuple[Link, ...]]:
    role: Role = "observed"
    if any(each.quoted for each in scored):
        role = "quoted"
    elif concludes(text, options) or not any(each.score >= options.min_score for each in scored):
        role = "inferred"
    least = options.related_score if role == "inferred" else options.min_score
    kept = [each for each in scored if each.quoted or each.score >= least]
    kept.sort(key=lambda each: (-each.best, each.entry.span, each.entry.entry_id))
    links = (Link(entry_id=each.entry.entry_id, score=each.best) for each in kept[: options.max_links])
    return role, tuple(links)


def _scored(text: str, entry: Entry, vectors: Vectors, options: SupportOptions) -> _Scored:
    cosine = _cosine(vectors[text], vectors[entry.text])
    score = options.cosine_weight * cosine + (1 - options.cosine_weight) * coverage(text, entry.text)
    share = quoted_share(text, entry.text, options) if entry.kind == "speech" else 0.0
    return _Scored(entry, round(score, 4), round(share, 4))


def _cosine(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
    return float(np.clip((a @ b.T).max(), 0.0, 1.0)) if len(a) and len(b) else 0.0


def coverage(text: str, other: str) -> float:
    """Share of the content words of ``text`` that ``other`` has; 0 where there is none."""
    wanted = _content(text)
    return len(wanted & _content(other)) / len(wanted) if wanted else 0.0


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    return frozenset(
        _stem(word) for word in _words(text) if word not in _FUNCTION_WORDS and not word[0].isdigit()
    )


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    """Words without case and punctuation; of an apostrophe there is one kind."""
    return tuple(match.group().casefold().replace("\u2019", "'") for match in _WORD.finditer(text))


def _stem(word: str) -> str:
    """Without one English ending: ``walks``, ``walked`` and ``walking`` are ``walk``."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def concludes(text: str, options: SupportOptions) -> bool:
    """Whether ``text`` says an intention, cause, relation or judgement, outside of quotation marks."""
    for begin, end in reversed(quotation_spans(text)):
        text = f"{text[:begin]} . {text[end:]}"
    spoken = f" {' '.join(_words(text))} "
    return any(f" {' '.join(_words(phrase))} " in spoken for phrase in options.inferred_words)


def quoted_share(text: str, speech: str, options: SupportOptions) -> float:
    """Of what ``text`` quotes, the share that ``speech`` holds in one run; 0 where that is not enough.

    Of several quotations the best counts.
    """
    heard = _words(speech)
    marked = [text[begin + 1 : end - 1] for begin, end in quotation_spans(text)]
    verb = None if marked else _REPORTED.search(text)
    shares = [0.0]
    for words in map(_words, marked or ([text[verb.end() :]] if verb else [])):
        run = _longest_run(words, heard)
        enough = run >= options.quote_words or (marked and run >= options.quote_share * len(words))
        if run and enough:
            shares.append(run / len(words))
    return max(shares)


def _longest_run(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest run of words that both have."""
    longest, before = 0, [0] * (len(b) + 1)
    for word in a:
        now = [0] * (len(b) + 1)
        for at, other in enumerate(b, start=1):
            if word == other:
                now[at] = before[at - 1] + 1
                longest = max(longest, now[at])
        before = now
    return longest
