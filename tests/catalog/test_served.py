"""What the served backends ask a server, and what they make of answers that do not fit."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from evicat.catalog.embedders.loaders import load_embedder
from evicat.catalog.transcribers.loaders import load_transcriber
from evicat.catalog.transcribers.served import language_code
from evicat.schemas.errors import BusyError, IntegrityError, MissingExtraError, UsageError
from evicat.schemas.recipe import EmbedderOptions, Profile, SpeechOptions

RATE = 16_000


@pytest.fixture(scope="module", autouse=True)
def openai():
    return pytest.importorskip("openai", reason="the served backends need the package 'openai'")


class Server:
    """Answers with what stands in ``answers``, path by path, one after another; notes what it was sent."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[int, dict]]] = {}
        self.asked: list[tuple[str, Message, bytes]] = []
        self.profile = Profile()

    def answer(self, path: str, *contents: dict, status: int = 200) -> None:
        self.answers.setdefault(path, []).extend((status, content) for content in contents)


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            state.asked.append((self.path, self.headers, body))
            status, content = state.answers[self.path].pop(0)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        state.profile = Profile(endpoints={"m": f"http://127.0.0.1:{http.server_port}/v1"})
        yield state
        http.shutdown()


def embeddings(*rows: list[float], model: str = "m") -> dict:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": model, "data": data[::-1], "usage": usage}


def served(*names: str) -> dict:
    return {
        "object": "list",
        "data": [{"id": n, "object": "model", "created": 0, "owned_by": ""} for n in names],
    }


def heard(segments: list[tuple[float, float, str]], words: list[tuple[float, float, str]] | None) -> dict:
    facts = {"id": 0, "seek": 0, "tokens": [], "temperature": 0, "compression_ratio": 1}
    facts |= {"avg_logprob": -0.25, "no_speech_prob": 0.125}
    found = {
        "text": "",
        "language": "german",
        "duration": 9.0,
        "segments": [facts | {"start": a, "end": b, "text": text} for a, b, text in segments],
    }
    return (
        found
        if words is None
        else found | {"words": [{"start": a, "end": b, "word": w} for a, b, w in words]}
    )


@pytest.fixture
def embedder(server: Server) -> Callable:
    def make(**options):
        return load_embedder(EmbedderOptions(name="openai", model="m", options=options), server.profile)

    return make


@pytest.fixture
def transcribe(server: Server) -> Callable:
    def run(speech=((0, 9 * RATE),), language=None):
        made = load_transcriber(SpeechOptions(transcriber="openai", model="m"), server.profile)
        return made.transcribe(np.zeros(20 * RATE, np.float32), speech, language)

    return run


def test_vectors_come_in_the_order_of_the_texts_and_have_length_one(server, embedder):
    server.answer("/v1/embeddings", embeddings([3.0, 4.0], [0.0, 0.0], [0.0, 2.0]))
    found = embedder().embed(["a", "b", "c"])
    assert np.isnan(found[1]).all()
    assert found[[0, 2]].tolist() == [pytest.approx([0.6, 0.8]), [0, 1]]
    assert json.loads(server.asked[0][2])["input"] == ["a", "b", "c"]


def test_prompts_are_put_before_texts(server, embedder):
    server.answer("/v1/embeddings", embeddings([1.0]), embeddings([1.0]))
    made = embedder(document_prompt="passage: ", query_prompt="query: ")
    made.embed(["dog"]), made.embed_query("dog")
    assert [json.loads(body)["input"] for *_, body in server.asked] == [["passage: dog"], ["query: dog"]]


def test_a_dimension_that_changes_stops_the_run(server, embedder):
    server.answer("/v1/embeddings", embeddings([1.0, 0.0]), embeddings([1.0, 0.0, 0.0]))
    made = embedder()
    made.embed(["a"])
    with pytest.raises(IntegrityError, match=r"a vector of 3 numbers for 'm', after vectors of 2"):
        made.embed(["b"])


def test_another_model_than_asked_is_refused(server, embedder):
    server.answer("/v1/embeddings", embeddings([1.0], model="other"))
    with pytest.raises(UsageError, match="answered as 'other', but the recipe asks for 'm'"):
        embedder().embed(["a"])


def test_too_few_vectors_are_refused(server, embedder):
    server.answer("/v1/embeddings", embeddings([1.0]))
    with pytest.raises(UsageError, match="gave 1 vectors for 2 texts"):
        embedder().embed(["a", "b"])


def test_the_key_comes_from_the_environment_and_goes_to_the_server_only(
    server, embedder, monkeypatch, caplog
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.answer("/v1/embeddings", {"error": {"message": "no"}}, status=400)
    made = embedder()
    with pytest.raises(UsageError, match="refuses the request to 'm'") as refused:
        made.embed(["a"])
    assert server.asked[0][1]["Authorization"] == "Bearer sk-secret"
    assert "sk-secret" not in f"{refused.value}{caplog.text}{made.model}"


def test_a_server_that_stays_overloaded_is_for_later(server, embedder):
    server.answer("/v1/embeddings", *[{"error": {"message": "busy"}}] * 3, status=503)
    with pytest.raises(BusyError, match=r"server of 'm' at http.* does not answer"):
        embedder().embed(["a"])
    assert len(server.asked) == 3, "the client tries again twice"


def test_words_are_placed_in_the_text_of_their_segments(server, transcribe):
    """Words come without punctuation; one is missing from the text, one from the list."""
    words = [(0.0, 0.5, "ja"), (0.5, 0.6, "hm"), (1.0, 2.0, "gut"), (5.0, 6.0, "Nein"), (7.0, 8.0, "nie")]
    server.answer("/v1/models", served("m", "n"))
    segments = [(0.0, 2.0, " Na ja, sehr gut!"), (5.0, 8.0, " Nein, nie.")]
    server.answer("/v1/audio/transcriptions", heard(segments, words))
    first, second = transcribe()
    assert [(word.text, word.start_s) for word in first.words] == [(" Na ja, sehr", 0.0), (" gut!", 1.0)]
    assert [(word.text, word.start_s) for word in second.words] == [(" Nein,", 5.0), (" nie.", 7.0)]
    assert (first.text, first.language, first.average_log_probability) == (" Na ja, sehr gut!", "de", -0.25)
    assert b"timestamp_granularities" in server.asked[1][2]


def test_words_go_back_to_the_stretches_they_were_said_in(server, transcribe):
    server.answer("/v1/models", served("m"))
    server.answer(
        "/v1/audio/transcriptions", heard([(0.5, 2.5, " a b")], [(0.5, 0.75, "a"), (2.25, 2.5, "b")])
    )
    (segment,) = transcribe(((RATE, 3 * RATE), (10 * RATE, 12 * RATE)), "de-AT")
    assert [(word.start_s, word.end_s) for word in segment.words] == [(1.5, 1.75), (10.25, 10.5)]
    assert b'name="language"\r\n\r\nde\r\n' in server.asked[1][2]


def test_a_model_that_is_not_served_is_refused(server, transcribe):
    server.answer("/v1/models", served("x", "a"))
    with pytest.raises(UsageError, match="serves a, x, but the recipe asks for 'm'"):
        transcribe()


def test_an_answer_without_times_is_refused(server, transcribe):
    server.answer("/v1/models", served("m"))
    server.answer("/v1/audio/transcriptions", heard([(0.0, 1.0, " a")], None))
    with pytest.raises(UsageError, match="no times of segments and words"):
        transcribe()


def test_no_server_is_asked_where_nobody_speaks(server, transcribe):
    assert transcribe(()) == []
    assert server.asked == []


@pytest.mark.parametrize(
    ("name", "code"), [("german", "de"), ("English", "en"), ("de", "de"), ("klingon", "klingon")]
)
def test_names_of_languages_become_codes(name, code):
    assert language_code(name) == code


def test_a_model_without_endpoint_says_what_to_write():
    with pytest.raises(UsageError, match=r'write under \[endpoints\]: "m" = "http'):
        load_embedder(EmbedderOptions(name="openai", model="m"), Profile())


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setattr("evicat.catalog.served.importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"openai is not installed; .*evicat\[openai\]"):
        load_transcriber(SpeechOptions(transcriber="openai", model="m"), Profile(endpoints={"m": "http://x"}))
