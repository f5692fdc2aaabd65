"""The served engine where servers, environments and profiles do what nobody would expect of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from evicat.catalog.engines.protocol import refusal_of
from evicat.catalog.engines.served import ServedEngine
from evicat.schemas.errors import EngineDownError, RequestError, TooLongError, UsageError

from .chat_server import MODEL, ChatServer, Fault

SECRET = "sk-evicat-secret-0815"


def choice(**message: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": "stop"}


class TestFormOfAnAnswer:
    @pytest.mark.parametrize(
        "choices",
        [
            "abc",
            {"0": 1},
            [None],
            [{"message": None}],
            [{"message": "abc"}],
            [choice(content=5)],
            [choice(content={"text": "a"})],
            [choice(content="a", refusal=True)],
            [choice(content="a") | {"finish_reason": ["stop"]}],
        ],
    )
    def test_that_is_wrong_fails_the_window_and_no_more(self, server, engine, request_of, choices) -> None:
        server.settings.fields = {"choices": choices}
        with pytest.raises(RequestError, match="has not the form of a chat completion: choices"):
            engine.submit(request_of()).result()
        server.settings.fields = {}
        assert engine.submit(request_of()).result().text

    def test_in_parts_is_read_without_its_thoughts(self, server, engine, request_of) -> None:
        parts = [
            {"type": "thinking", "text": "Well."},
            {"type": "text", "text": "It "},
            {"type": "text", "text": "rains."},
        ]
        server.settings.fields = {"choices": [choice(content=parts)]}
        assert engine.submit(request_of()).result().text == "It rains."

    @pytest.mark.parametrize(
        "message",
        [
            {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
            {"content": None, "reasoning_content": "Well."},
        ],
    )
    def test_without_words_has_no_text(self, server, engine, request_of, message) -> None:
        server.settings.fields = {"choices": [choice(**message)]}
        assert engine.submit(request_of()).result().text == ""

    @pytest.mark.parametrize(
        "usage",
        [
            {"prompt_tokens": "12", "completion_tokens": "many"},
            {"prompt_tokens": 12.5, "completion_tokens": -4},
            {"prompt_tokens": 10**30, "completion_tokens": 1e30},
            [1],
            "many",
        ],
    )
    def test_that_counts_no_tokens_counts_as_not_told(self, server, engine, request_of, usage) -> None:
        server.settings.fields = {"usage": usage}
        answer = engine.submit(request_of()).result()
        assert (answer.prompt_tokens, answer.completion_tokens) == (0, 0)


class TestListOfModels:
    @pytest.mark.parametrize(
        "listed",
        [
            "<html>",
            '{"data": [{',
            "[]",
            {"data": 7},
            {"data": "abc"},
            {"data": [None]},
            {"data": [{"x": 1}]},
            {"data": [{"id": 1}]},
            {"data": [{"id": MODEL, "root": 5}]},
            {"data": [{"id": MODEL, "root": ["a/b"]}]},
        ],
    )
    def test_that_is_none_tells_nothing(self, server, engine, request_of, listed) -> None:
        server.settings.listed = listed
        assert engine.submit(request_of()).result().model == MODEL


class TestEndlessTrouble:
    """None of it may be asked for ever."""

    def test_of_redirects_ends_the_run(self, server, engine_for, request_of) -> None:
        server.always = Fault(status=307, body="", headers={"Location": "/v1/chat/completions"})
        engine = engine_for(server.url, patience_seconds=0.5)
        with pytest.raises(EngineDownError, match="redirects"):
            engine.submit(request_of()).result(timeout=30)

    def test_of_bodies_that_do_not_unpack_ends_the_run(self, server, engine_for, request_of) -> None:
        server.always = Fault(body="not packed", headers={"Content-Encoding": "gzip"})
        engine = engine_for(server.url, patience_seconds=0.5)
        with pytest.raises(EngineDownError, match="decompress"):
            engine.submit(request_of()).result(timeout=30)

    def test_of_one_body_that_does_not_unpack_passes(self, server, engine, request_of) -> None:
        server.faults.append(Fault(body="not packed", headers={"Content-Encoding": "gzip"}))
        assert engine.submit(request_of()).result(timeout=30).text


class TestTooLongAPrompt:
    @pytest.mark.parametrize(
        "said",
        [
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
            "The decoder prompt (length 12345) is longer than the maximum model length of 8192.",
            "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
            "At most 8 image(s) may be provided in one prompt.",
            "the request exceeds the available context size, try increasing it",
            "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
            "Too many images in request. Max is 10.",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ],
    )
    def test_is_known_by_the_words_of_servers(self, said) -> None:
        assert isinstance(refusal_of("the server", 400, said), TooLongError)

    @pytest.mark.parametrize("said", ["features not supported", "unsupported content", "bad request", ""])
    def test_is_not_seen_in_other_words(self, said) -> None:
        assert not isinstance(refusal_of("the server", 400, said), TooLongError)

    def test_is_known_by_status_413(self, server, engine, request_of) -> None:
        server.always = Fault(status=413, body="<html>nginx</html>", headers={"Content-Type": "text/html"})
        with pytest.raises(TooLongError, match=r"refuses this request \(413\): <html>nginx"):
            engine.submit(request_of()).result()
        assert len(server.asked) == 1

    def test_is_known_where_it_comes_with_status_200(self, server, engine, request_of) -> None:
        """As llama.cpp has sent it."""
        said = {"error": {"code": 400, "message": "the request exceeds the available context size"}}
        server.always = Fault(body=said)
        with pytest.raises(TooLongError, match="available context size"):
            engine.submit(request_of()).result()

    def test_is_told_at_the_start_with_what_to_do(self, server, engine, request_of) -> None:
        server.settings.max_images = 2
        request = request_of()
        three = request_of(schema={"type": "object"})
        three = type(three)(three.system, request.parts * 3, max_tokens=50, schema=three.schema)
        with pytest.raises(
            UsageError,
            match=r"takes an image, but not 3 in one request.*--limit-mm-per-prompt.*image.: 3.*At most 2",
        ):
            engine.check(three)
        server.settings.max_images = 3
        engine.check(three)


class TestEnvironment:
    @pytest.fixture(autouse=True)
    def no_proxies(self, monkeypatch) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.lower(), raising=False)

    def test_with_a_proxy_that_does_not_answer_names_it_and_the_way_around(
        self, server, engine_for, request_of, monkeypatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:{SECRET}@127.0.0.1:9")
        engine = engine_for(server.url, patience_seconds=0.2)
        with pytest.raises(EngineDownError, match=r"proxy of HTTP_PROXY: NO_PROXY=127\.0\.0\.1") as error:
            engine.submit(request_of()).result(timeout=30)
        assert SECRET not in str(error.value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert engine_for(server.url).submit(request_of()).result().text

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("ALL_PROXY", "ftp://127.0.0.1:9"),
            ("HTTP_PROXY", "gopher://x"),
            ("SSL_CERT_FILE", "/no/such/file"),
        ],
    )
    def test_that_no_client_can_follow_is_wrong_usage(
        self, server, engine_for, request_of, monkeypatch, name, value
    ) -> None:
        monkeypatch.setenv(name, value)
        engine = engine_for(server.url)
        for _ in range(2):
            with pytest.raises(UsageError, match=r"cannot be asked as the environment says .*SSL_CERT_FILE"):
                engine.submit(request_of())


class TestKey:
    def test_read_from_a_file_with_its_line_end_is_taken_without_it(
        self, server, engine, request_of, monkeypatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\n")
        server.settings.key = SECRET
        assert engine.submit(request_of()).result().text
        assert server.keys == {SECRET}

    def test_with_its_line_end_is_hidden_without_it(
        self, server, engine, request_of, monkeypatch, caplog
    ) -> None:
        caplog.set_level(logging.DEBUG)
        monkeypatch.setenv("OPENAI_API_KEY", f" {SECRET}\n")
        server.always = Fault(status=400, body={"error": {"message": f"{SECRET} is worn out"}})
        with pytest.raises(RequestError, match=r"\(key\) is worn out") as error:
            engine.submit(request_of()).result()
        assert SECRET not in f"{error.value}{caplog.text}"

    @pytest.mark.parametrize("key", [f"{SECRET}\u00fc", f"{SECRET}\n{SECRET}"])
    def test_that_no_header_can_hold_is_wrong_usage_and_not_repeated(
        self, engine_for, monkeypatch, key
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with pytest.raises(UsageError, match="characters that no key has") as error:
            engine_for("http://127.0.0.1:9/v1")
        assert SECRET not in str(error.value)


class TestEndpoint:
    @pytest.mark.parametrize(
        "endpoint",
        [
            "http://",
            "http:///v1",
            "http://[::1/v1",
            "http://127.0.0.1:99999/v1",
            "http://127.0.0.1:port/v1",
            "http://exa mple/v1",
            "http://\x00/v1",
        ],
    )
    def test_that_is_none_is_wrong_usage(self, engine_for, endpoint) -> None:
        with pytest.raises(UsageError, match="endpoint must be like http://HOST:PORT/v1, got"):
            engine_for(endpoint)

    @pytest.mark.parametrize("end", ["/chat/completions", "?api-version=1"])
    def test_with_more_than_its_base_says_so(self, engine_for, end) -> None:
        with pytest.raises(UsageError, match="what comes before /chat/completions"):
            engine_for(f"http://127.0.0.1:9/v1{end}")

    def test_without_v1_is_told_where_nothing_is_found(self, server, engine_for, request_of) -> None:
        server.always = Fault(status=404)
        server.settings.lists_models = False
        with pytest.raises(UsageError, match=r"\(404\).*is /v1 missing at the end of the endpoint\?"):
            engine_for(server.url.removesuffix("/v1")).submit(request_of()).result()

    def test_in_large_letters_is_the_same(self, server: ChatServer, engine_for, request_of) -> None:
        engine: ServedEngine = engine_for(server.url.replace("http", "HTTP"))
        assert engine.submit(request_of()).result().text


def test_requests_that_were_under_way_when_a_server_hung_are_not_blamed_for_it(
    server, engine_for, request_of
) -> None:
    """Others were answered after they had been sent, and none since they failed: the windows stay pending."""
    engine = engine_for(server.url, timeout_seconds=0.5, patience_seconds=4, concurrency=4)
    server.faults += [Fault(hangs=True)] * 2
    under_way = [engine.submit(request_of(str(number))) for number in range(2)]
    assert server.is_hanging.wait(10)
    assert engine.submit(request_of("another")).result(timeout=10).text
    server.always = Fault(hangs=True)
    for each in under_way:
        with pytest.raises(EngineDownError):
            each.result(timeout=30)
