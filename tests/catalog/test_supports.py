"""What sentences of narratives rest on: the judgement on given vectors, and the stage over a memory sink."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from evicat.catalog import build
from evicat.catalog.job import Job
from evicat.catalog.kit import Kit
from evicat.catalog.sentences import sentences
from evicat.catalog.stages import narrate, transcribe
from evicat.catalog.supporting import support
from evicat.catalog.supports import concludes, coverage, quoted_share, weigh
from evicat.schemas.entry import Entry, Outcome, Support
from evicat.schemas.errors import RecipeError
from evicat.schemas.recipe import Recipe, SupportOptions, parse_toml
from evicat.schemas.span import US, Span

from .test_stages import DIGEST, LOOK, MemorySink, _job, _kit

OPTIONS = SupportOptions()
EMBEDDER = """
[embedder]
name = "sentence-transformers"
model = "packaged:all-MiniLM-L6-v2"
"""
SPEECH = """
[speech]
subtitles = "only"
"""
SUPPORTED = LOOK + DIGEST + SPEECH + EMBEDDER + "[supports]\n"
CUE = "1\n00:00:01,000 --> 00:00:02,500\n{}\n"


def entry(kind: str, text: str, start: int = 0, end: int = 4, name: str = "") -> Entry:
    return Entry(
        entry_id=f"{name or kind}.{start}",
        unit_id="unit",
        asset_id="asset",
        producer_id="producer",
        kind=kind,
        scale=kind,
        span=Span(start * US, end * US),
        text=text,
    )


class Judged:
    """One sentence, judged with vectors whose cosine with each candidate is given."""

    def __init__(self, text: str, *candidates: tuple[Entry, float], **options: float) -> None:
        chosen = OPTIONS.model_copy(update=options)
        vectors = {text: np.array([[1, 0]], np.float32)}
        for each, cosine in candidates:
            vectors[each.text] = np.array([[cosine, (1 - cosine**2) ** 0.5]], np.float32)
        narrative = entry("narrative", text, 0, 20)
        (self.support,) = weigh(narrative, [each for each, _ in candidates], vectors, chosen)

    @property
    def links(self) -> dict[str, float]:
        return {link.entry_id: link.score for link in self.support.rests_on}

    @property
    def role(self) -> str:
        return self.support.role


def test_what_an_entry_says_is_observed_and_linked_to_it_alone() -> None:
    seen = entry("local", "A woman washes knives.")
    other = entry("local", "A blue car passes.", 4, 8)
    judged = Judged("The woman is washing knives.", (seen, 0.8), (other, 0.1))
    assert (judged.role, judged.links) == ("observed", {"local.0": 0.5 * 0.8 + 0.5 * 1})


def test_the_score_is_the_weighted_sum_of_cosine_and_covered_words() -> None:
    seen = entry("local", "A woman washes a knife.")
    for weight, score in ((0.0, 1.0), (0.25, 0.9), (1.0, 0.6)):
        judged = Judged("The woman washes the knife.", (seen, 0.6), cosine_weight=weight)
        assert judged.links == {"local.0": pytest.approx(score, abs=1e-4)}


def test_words_in_quotation_marks_that_are_heard_are_quoted() -> None:
    said = entry("speech", "I told you not to come here, Daniel!")
    other = entry("speech", "Where did you get this?", 4, 8)
    judged = Judged('"I told you NOT to come here," she says.', (said, 0.2), (other, 0.2))
    assert (judged.role, judged.links) == ("quoted", {"speech.0": 1.0})


def test_reported_words_are_quoted_if_enough_of_them_stand_in_a_row() -> None:
    said = entry("speech", "They will be here at five.")
    assert Judged("He warns that they will be here at five.", (said, 0.0)).role == "quoted"
    assert Judged("He warns that five of them come here.", (said, 0.0)).role == "inferred"
    assert Judged("They will be here at five.", (said, 0.0)).role == "observed"


def test_quotation_marks_around_what_nobody_says_make_nothing_quoted() -> None:
    seen = entry("local", 'On screen: "THE END".')
    judged = Judged('The screen reads "The end".', (seen, 0.9))
    assert (judged.role, list(judged.links)) == ("observed", ["local.0"])


def test_a_conclusion_is_inferred_and_linked_to_what_it_rests_on() -> None:
    seen = entry("local", "A woman steps back, her hand over her mouth.")
    judged = Judged("The woman steps back because she is frightened.", (seen, 0.9))
    assert judged.role == "inferred"
    assert list(judged.links) == ["local.0"]


def test_what_nothing_says_is_inferred_from_related_entries_or_from_nothing() -> None:
    related = entry("local", "A suitcase full of banknotes lies there.")
    sentence = "They robbed a bank."
    assert (OPTIONS.related_score, OPTIONS.min_score) == (0.25, 0.4)
    for cosine, links in ((0.6, ["local.0"]), (0.4, [])):
        judged = Judged(sentence, (related, cosine))
        assert (judged.role, list(judged.links)) == ("inferred", links)
    alone = Judged(sentence)
    assert (alone.role, alone.links, alone.support.text) == ("inferred", {}, sentence)


def test_links_are_the_best_and_of_equals_the_earlier_ones() -> None:
    cosines = (0.9, 0.95, 0.9, 0.85)
    seen = [(entry("local", f"{n} men", n * 4, n * 4 + 4), cosine) for n, cosine in enumerate(cosines)]
    judged = Judged("Somebody came.", *reversed(seen), max_links=3)
    assert list(judged.links) == ["local.4", "local.0", "local.8"]


def test_a_text_that_cannot_be_embedded_is_weighed_by_its_words() -> None:
    seen, text = entry("local", "A woman washes a knife."), "The woman washes a knife."
    nothing = np.empty((0, 2), np.float32)
    (judged,) = weigh(entry("narrative", text), [seen], {text: nothing, seen.text: nothing}, OPTIONS)
    assert (judged.role, judged.rests_on[0].score) == ("observed", 0.5)


def test_every_sentence_stands_under_its_narrative_in_order() -> None:
    text = "She came. He left. Nobody stayed."
    vectors = {each: np.array([[1, 0]], np.float32) for each in sentences(text)}
    found = weigh(entry("narrative", text, 8, 12), [], vectors, OPTIONS)
    assert [(each.sentence, each.text) for each in found] == list(enumerate(sentences(text)))
    assert {(each.entry_id, each.span) for each in found} == {("narrative.8", Span(8 * US, 12 * US))}


@pytest.mark.parametrize(
    ("text", "other", "share"),
    [
        ("The man walks to 3 doors.", "A man is walking; a door.", 1.0),
        ("The man walks.", "It rains.", 0.0),
        ("It is over there.", "It is over there.", 0.0),  # no content words
        ("Она идёт домой.", "Домой она бежит.", 2 / 3),
        ("男人走", "女人走", 2 / 3),
    ],
)
def test_coverage_is_the_share_of_content_words(text: str, other: str, share: float) -> None:
    assert coverage(text, other) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "speech", "share"),
    [
        ('"Yes," he says.', "Yes, I know.", 1.0),
        ('"We have to leave now," he says.', "We have to leave right now.", 4 / 5),
        ('"We have to go now," he says.', "We must go now.", 0.0),
        ('"No" and "That is my old house."', "That is my old house", 1.0),
        ("\u201cDon\u2019t go.\u201d", "Don't go!", 1.0),
        ("She says so.", "So be it, she says.", 0.0),
        ('"..."', "Well...", 0.0),
    ],
)
def test_the_share_of_a_quotation_is_that_of_its_longest_run(text: str, speech: str, share: float) -> None:
    assert quoted_share(text, speech, OPTIONS) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She runs because it rains.", True),
        ("He SEEMS tired.", True),
        ("He opens it in order to look.", True),
        ("He walks to the door.", False),
        ('She says "Because I want to."', False),
        ("The seems-like word", True),
        ("A becauseway", False),
    ],
)
def test_conclusions_are_told_by_words_outside_of_quotations(text: str, expected: bool) -> None:
    assert concludes(text, OPTIONS) is expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (LOOK + EMBEDDER + "[supports]\n", "needs one of .*scales.* of that kind"),
        (LOOK + DIGEST + "[supports]\n", "needs an .embedder."),
        ('name = "t"\n' + DIGEST + EMBEDDER + "[supports]\n", "needs what carries a narrative"),
        (SUPPORTED + "related_score = 0.5\n", "related_score = 0.5 and min_score = 0.4"),
    ],
)
def test_a_recipe_whose_supports_cannot_be_made_is_refused(text: str, problem: str) -> None:
    with pytest.raises(RecipeError, match=problem):
        parse_toml(Recipe, text, "test.toml")


class Film:
    """A film with subtitles, and a sink that holds what was made of it."""

    def __init__(self, folder: Path, sample: Path, sink: MemorySink) -> None:
        self.path = Path(shutil.copy(sample, folder / "film.mp4"))
        self.sink = sink
        self.say("Look, a taxi.")

    def say(self, text: str) -> None:
        self.path.with_suffix(".srt").write_text(CUE.format(text))

    def build(self, kit: Kit) -> Job:
        return build.build(self.path, kit, self.sink)

    def supports(self, job: Job) -> tuple[Support, ...]:
        (result,) = self.sink.results(job.support).values()
        return result.supports

    def entries(self, job: Job) -> list[Entry]:
        return [
            e for unit in job.units for result in self.sink.results(unit).values() for e in result.entries
        ]


@pytest.fixture(scope="module")
def kit() -> Iterator[Kit]:
    with _kit(SUPPORTED) as kit:
        yield kit


@pytest.fixture(scope="module")
def built(kit: Kit, tmp_path_factory: pytest.TempPathFactory, evicat_samples: Path) -> MemorySink:
    """All that is made of the film, once; to be copied."""
    film = Film(tmp_path_factory.mktemp("film"), evicat_samples / "street.mp4", MemorySink())
    film.build(kit)
    return film.sink


@pytest.fixture
def film(tmp_path: Path, evicat_samples: Path, built: MemorySink) -> Film:
    """The film, made already, in a folder of the test's own."""
    return Film(tmp_path, evicat_samples / "street.mp4", deepcopy(built))


def test_the_sentences_of_digests_rest_on_what_they_retell(film: Film, kit: Kit) -> None:
    job = _job(film.path, kit)
    found, written = film.supports(job), film.entries(job)
    by_id = {each.entry_id: each for each in written}
    narratives = [each for each in written if each.kind == "narrative"]
    assert [each.text for each in found] == [s for n in narratives for s in sentences(n.text)]
    (said,) = [each for each in found if "Look, a taxi." in each.text]
    assert said.role == "quoted"
    assert by_id[said.rests_on[0].entry_id].text == "Look, a taxi."
    for each in found:
        assert each.rests_on, each
        assert all(by_id[link.entry_id].span.overlap_us(each.span) for link in each.rests_on)


def test_what_is_made_is_not_made_again_also_where_failures_are_retried(film: Film, kit: Kit) -> None:
    writes = film.sink.writes
    film.build(kit)
    film.sink.retry = frozenset({"failed"})
    film.build(kit)
    assert film.sink.writes == writes


def test_other_options_make_other_supports_and_nothing_else(film: Film, kit: Kit) -> None:
    first, writes = film.build(kit), film.sink.writes
    with _kit(SUPPORTED + "max_links = 1\n") as other:
        other.embedder = kit.embedder  # its weights are loaded
        second = film.build(other)
    assert film.sink.writes == writes + 1
    assert {len(each.rests_on) for each in film.supports(second)} == {1}
    assert first.units == second.units
    assert first.support != second.support


def test_supports_are_weighed_again_when_what_they_read_changed(film: Film, kit: Kit) -> None:
    before = film.supports(film.build(kit))
    film.say("Look, a bus.")
    after = film.supports(film.build(kit))
    assert [each.text for each in before] != [each.text for each in after]
    assert any("Look, a bus." in each.text and each.role == "quoted" for each in after)


def test_without_a_narrative_the_result_is_empty(film: Film, kit: Kit) -> None:
    film.path.with_suffix(".srt").unlink()
    job, sink = _job(film.path, kit), MemorySink()
    for stage in (transcribe, narrate, support):
        stage(job, kit, sink)
    (result,) = sink.results(job.support).values()
    assert (result.outcome, result.message, result.span) == (Outcome.EMPTY, "no narratives", job.timeline)


def test_without_the_section_nothing_is_weighed(film: Film) -> None:
    with _kit(LOOK + DIGEST + EMBEDDER) as kit:
        assert (kit.support, _job(film.path, kit).support) == (None, None)
        assert {each.kind for each in kit.producers} == {"local", "narrative", "embedding"}
