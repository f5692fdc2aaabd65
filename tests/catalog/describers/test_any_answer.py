"""Whatever a model says that fits the schema becomes a record that can be stored, or a window's error."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evicat.catalog.describers.base import Past, WindowInput
from evicat.catalog.describers.vlm_local import VlmLocal, VlmLocalOptions
from evicat.catalog.describers.vlm_narrative import VlmNarrative, VlmNarrativeOptions
from evicat.catalog.media.frame import Frame
from evicat.catalog.sentences import sentences
from evicat.schemas.errors import WindowError
from evicat.schemas.recipe import Profile
from evicat.schemas.span import US, Span

SPAN = Span(120 * US, 150 * US)
FRAMES = tuple(Frame(n, (121 + n) * US, np.zeros((32, 32, 3), np.uint8)) for n in range(3))
ANY = st.characters()  # lone surrogates and controls among them
clue = st.text(ANY, min_size=1, max_size=20)
clues = st.lists(clue, max_size=3)
seen = st.fixed_dictionaries({"descriptor": clue, "details": clues})
times = st.text(ANY, max_size=20) | st.floats(allow_nan=False) | st.sampled_from(["2:03.0", "02:03", "1e9"])
LOCAL = st.fixed_dictionaries(
    dict.fromkeys(("objects", "colours", "screen_text", "spoken_clues", "actions"), clues)
    | dict.fromkeys(("interactions", "social_cues"), clues)
    | {name: st.lists(seen, max_size=3) for name in ("people", "entities")}
    | {"place": st.text(ANY, max_size=20), "scene": clue}
    | {"changes": st.lists(st.fixed_dictionaries({"t": times, "what": clue}), max_size=3)}
)
NAMES = st.sampled_from(["Eve", "EVE", "eve ", "Paul", " ", "\u0130", "i\u0307", "\u00df", "SS"]) | clue
MEMBER = st.fixed_dictionaries({"name": NAMES, "descriptor": st.text(ANY, max_size=20), "formerly": NAMES})
NARRATIVE = st.fixed_dictionaries(
    {"narrative": st.text(ANY, min_size=1), "cast": st.lists(MEMBER, max_size=20)}
)


def described(engine, kind, options, answer, past=None):
    """What becomes of an answer; None: an error of the window."""
    describer = kind(options(model="m"), Profile())
    bound = engine(json.dumps(answer), json.dumps(answer))
    describer.bind(lambda _: bound)
    try:
        return describer.describe(WindowInput(SPAN, frames=FRAMES, past=past))
    except WindowError as error:
        str(error).encode()
        return None


@settings(max_examples=150, deadline=None)
@given(LOCAL)
def test_a_record_of_clues(engine, answer) -> None:
    made = described(engine, VlmLocal, VlmLocalOptions, answer)
    if made is None:
        return
    assert made.text.strip()
    f"{made.text}{made.message}{made.record.model_dump_json()}".encode()
    assert type(made.record).model_validate_json(made.record.model_dump_json()) == made.record


@settings(max_examples=150, deadline=None)
@given(NARRATIVE, NARRATIVE)
def test_a_narrative_and_the_next_one_that_knows_its_cast(engine, first, second) -> None:
    past = None
    for answer in (first, second):
        made = described(engine, VlmNarrative, VlmNarrativeOptions, answer, past)
        if made is None:
            continue
        assert made.text.strip()
        assert "".join("".join(sentences(made.text)).split()) == "".join(made.text.split())
        f"{made.text}{made.record.model_dump_json()}".encode()
        assert type(made.record).model_validate_json(made.record.model_dump_json()) == made.record
        names = [member.name.casefold() for member in made.record.cast]
        assert len(set(names)) == len(names) <= 20
        past = Past(Span(90 * US, 120 * US), made.record.narrative, made.record.cast)
