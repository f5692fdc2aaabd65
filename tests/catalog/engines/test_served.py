"""The served engine, against a real server on this machine: what it sends, and what it makes of answers."""

from __future__ import annotations

import base64
import json
import logging
import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from evicat.catalog.engines.served import ServedEngine
from evicat.schemas.errors import EngineDownError, MissingExtraError, RecipeError, RequestError, UsageError
from evicat.schemas.identity import ModelRef

from .chat_server import MODEL, ChatServer, Fault, images_of

SCHEMA = {
    "title": "Local record",
    "type": "object",
    "properties": {"scene": {"type": "string"}},
    "required": ["scene"],
    "additionalProperties": False,
}
SECRET = "sk-evicat-secret-0815"


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class TestRequests:
    def test_are_sent_system_first_and_parts_in_order(self, server, engine, request_of, jpeg) -> None:
        request = request_of("What?", schema=SCHEMA, temperature=0.25, seed=7, max_tokens=99)
        answer = engine.submit(request).result()
        (body,) = server.asked
        system, user = body["messages"]
        assert system == {"role": "system", "content": "You describe pictures."}
        kinds = [part["type"] for part in user["content"]]
        assert kinds == ["text", "image_url", "text"]
        assert user["content"][2]["text"] == "What?"
        url = user["content"][1]["image_url"]["url"]
        assert url == "data:image/jpeg;base64," + base64.b64encode(jpeg).decode()
        assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.25, 7, 99)
        form = body["response_format"]["json_schema"]
        assert form == {"name": "Local_record", "strict": True, "schema": SCHEMA}
        assert set(json.loads(answer.text)) == {"scene"}
        assert (answer.prompt_tokens, answer.completion_tokens, answer.model) == (11, 5, MODEL)

    def test_without_schema_and_seed_name_neither(self, server, engine, request_of) -> None:
        engine.submit(request_of()).result()
        assert not {"response_format", "seed"} & server.asked[0].keys()

    @pytest.mark.parametrize(
        ("structured", "sent"), [("json_object", {"type": "json_object"}), ("none", None)]
    )
    def test_name_the_form_as_the_profile_says(
        self, server, engine_for, request_of, structured, sent
    ) -> None:
        engine = engine_for(server.url, options={"structured": structured})
        engine.submit(request_of(schema=SCHEMA)).result()
        assert server.asked[0].get("response_format") == sent

    def test_carry_what_the_profile_adds(self, server, engine_for, request_of) -> None:
        thinking = {"chat_template_kwargs": {"enable_thinking": False}}
        options = {"extra_body": thinking, "max_tokens_field": "max_completion_tokens"}
        engine_for(server.url, options=options).submit(request_of()).result()
        assert server.asked[0]["chat_template_kwargs"] == {"enable_thinking": False}
        assert server.asked[0]["max_completion_tokens"] == 50
        assert "max_tokens" not in server.asked[0]

    def test_ask_for_the_alias(self, server, engine_for, request_of) -> None:
        server.settings.model = "eye"
        answer = engine_for(server.url, alias="eye").submit(request_of()).result()
        assert server.asked[0]["model"] == answer.model == "eye"


class TestAnswers:
    @pytest.mark.parametrize(
        ("message", "finish", "expected"),
        [
            ({"content": "half of"}, "length", ("half of", "length")),
            ({"content": None}, "length", ("", "length")),
            ({"content": None}, "stop", ("", "stop")),
            ({"content": "no"}, "content_filter", ("no", "refused")),
            ({"content": None, "refusal": "I cannot."}, "stop", ("I cannot.", "refused")),
            ({"content": "done"}, None, ("done", "stop")),
        ],
    )
    def test_end_as_the_server_says(self, server, engine, request_of, message, finish, expected) -> None:
        choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
        server.settings.fields = {"choices": [choice], "usage": None}
        answer = engine.submit(request_of()).result()
        assert (answer.text, answer.finish_reason) == expected
        assert (answer.prompt_tokens, answer.completion_tokens) == (0, 0)

    @pytest.mark.parametrize("choices", [[], None])
    def test_without_choices_have_no_text(self, server, engine, request_of, choices) -> None:
        server.settings.fields = {"choices": choices}
        answer = engine.submit(request_of()).result()
        assert (answer.text, answer.finish_reason) == ("", "stop")

    def test_that_are_an_error_with_status_200_fail_the_window(self, server, engine, request_of) -> None:
        server.faults.append(Fault(body={"error": {"message": "provider is gone", "code": 502}}))
        with pytest.raises(RequestError, match="provider is gone"):
            engine.submit(request_of()).result()
        assert engine.submit(request_of()).result().model == MODEL

    def test_that_are_broken_json_fail_the_window(self, server, engine, request_of) -> None:
        server.faults.append(Fault(body='{"choices": [', status=200))
        with pytest.raises(RequestError, match="cannot be read"):
            engine.submit(request_of()).result()

    def test_that_are_a_web_page_stop_the_run(self, server, engine, request_of) -> None:
        server.always = Fault(body="<html>Hello</html>", headers={"Content-Type": "text/html"})
        with pytest.raises(UsageError, match=r"something else than chat$"):
            engine.submit(request_of()).result()

    def test_that_are_a_web_page_tell_of_a_missing_v1(self, server, engine_for, request_of) -> None:
        server.always = Fault(body="<html>Hello</html>", headers={"Content-Type": "text/html"})
        engine = engine_for(server.url.removesuffix("/v1"))
        with pytest.raises(UsageError, match=r"something else than chat; is /v1 missing at the end"):
            engine.submit(request_of()).result()


class TestErrors:
    @pytest.mark.parametrize("status", [400, 413, 422])
    def test_of_a_request_are_not_tried_again(self, server, engine, request_of, status) -> None:
        server.faults.append(Fault(status=status))
        with pytest.raises(RequestError, match=rf"refuses this request \({status}\): as the test wants"):
            engine.submit(request_of()).result()
        assert len(server.asked) == 1
        assert engine.submit(request_of()).result().text

    @pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
    def test_that_pass_are_tried_again(self, server, engine, request_of, status) -> None:
        server.faults += [Fault(status=status)] * 2
        assert engine.submit(request_of()).result().text
        assert len(server.asked) == 3

    def test_of_a_lost_connection_are_tried_again(self, server, engine, request_of) -> None:
        server.faults.append(Fault(drops=True))
        assert engine.submit(request_of()).result().text
        assert len(server.asked) == 2

    @pytest.mark.parametrize("status", [401, 403])
    def test_of_the_key_say_where_it_comes_from(self, server, engine, request_of, status) -> None:
        server.always = Fault(status=status)
        with pytest.raises(UsageError, match=rf"refuses the key \({status}\).*set OPENAI_API_KEY"):
            engine.submit(request_of()).result()
        assert len(server.asked) == 1

    def test_of_an_unknown_model_list_what_is_served(self, server, engine, request_of) -> None:
        server.always = Fault(status=404)
        with pytest.raises(UsageError, match=rf"does not know '{MODEL}' \(404\).*it serves {MODEL}"):
            engine.submit(request_of()).result()

    def test_of_one_request_alone_cost_its_window(self, server, engine_for, request_of) -> None:
        """A request on which the server fails each time, while others are answered, is not asked for ever."""
        engine = engine_for(server.url, patience_seconds=60)
        ask = server.next_fault

        def fault() -> Fault:
            return Fault(status=500) if "poison" in json.dumps(server.asked[-1]) else ask()

        server.next_fault = fault
        poisoned = engine.submit(request_of("poison"))
        while not poisoned.done():
            assert engine.submit(request_of("sound")).result().text
        with pytest.raises(RequestError, match="failed 3 times on this request: 500"):
            poisoned.result()

    def test_of_time_are_tried_again_and_halve_the_limit(self, server, engine_for, request_of) -> None:
        engine = engine_for(server.url, timeout_seconds=0.5, concurrency=8)
        server.faults.append(Fault(hangs=True))
        assert engine.submit(request_of()).result().text
        assert engine.limit == 4

    def test_of_a_server_that_hangs_end_the_run(self, server, engine_for, request_of) -> None:
        engine = engine_for(server.url, timeout_seconds=0.3, patience_seconds=0.5)
        server.always = Fault(hangs=True)
        with pytest.raises(EngineDownError, match=r"no answer within 0\.3 s"):
            engine.submit(request_of()).result(timeout=30)


class TestOverload:
    def test_makes_it_send_less_and_everything_is_answered(self, server, engine_for, request_of) -> None:
        server.settings.capacity = 4
        server.settings.latency_s = 0.05
        engine = engine_for(server.url, concurrency=64)
        answers = [engine.submit(request_of(str(number))) for number in range(120)]
        assert all(answer.result().text for answer in answers)
        assert server.most_running <= 64
        assert engine.limit < 16
        assert len(server.asked) < 2 * 120 + 64

    def test_never_sends_more_than_the_profile_allows(self, server, engine_for, request_of) -> None:
        server.settings.latency_s = 0.2  # long beside what a busy machine takes to send three
        engine = engine_for(server.url, concurrency=3)
        for answer in [engine.submit(request_of(str(number))) for number in range(9)]:
            answer.result()
        assert server.most_running == 3

    def test_that_does_not_end_ends_the_run(self, server, engine_for, request_of) -> None:
        server.always = Fault(status=429)
        engine = engine_for(server.url, patience_seconds=0.4)
        with pytest.raises(EngineDownError, match="429 Too Many Requests"):
            engine.submit(request_of()).result(timeout=30)


class TestServerThatIsGone:
    def test_is_told_with_endpoint_and_advice_to_all_that_wait(self, engine_for, request_of) -> None:
        url = f"http://127.0.0.1:{closed_port()}/v1"
        engine = engine_for(url, patience_seconds=0.5, concurrency=4)
        futures = [engine.submit(request_of(str(number))) for number in range(50)]
        for future in futures:
            with pytest.raises(EngineDownError, match="has not answered for") as gone:
                future.result(timeout=30)
        assert url in str(gone.value)
        assert "start it again" in str(gone.value)
        with pytest.raises(EngineDownError):
            engine.submit(request_of()).result(timeout=1)

    def test_costs_only_what_was_in_flight_when_it_comes_back(self, engine_for, request_of) -> None:
        """A real process is killed with calls in flight, and started again on the same port."""
        port = closed_port()
        engine = engine_for(f"http://127.0.0.1:{port}/v1", patience_seconds=60, concurrency=4)
        first = start(port, latency_s=1.0)
        answers = [engine.submit(request_of(str(number))) for number in range(16)]
        asked = [first.stdout.readline() for _ in range(6)]  # the sixth begins when two are answered
        asked += kill(first)
        second = start(port, latency_s=0.05)
        assert all(answer.result(timeout=60).text for answer in answers)
        asked += kill(second)
        times = Counter(asked)
        assert len(times) == 16
        assert max(times.values()) == 2
        assert 1 <= len(asked) - 16 <= 4, "asked twice: those in flight"

    def test_is_not_taken_for_gone_while_it_works_on_long_answers(
        self, server, engine_for, request_of
    ) -> None:
        """It comes back, holds the requests longer than patience lasts, and tells its models meanwhile."""
        server.faults.append(Fault(status=503))
        server.settings.latency_s = 2.5
        engine = engine_for(server.url, patience_seconds=1)
        assert engine.submit(request_of()).result().text


def start(port: int, *, latency_s: float) -> subprocess.Popen[str]:
    """A server process that listens, and prints what it is asked."""
    settings = json.dumps({"latency_s": latency_s, "tells": True})
    command = [sys.executable, Path(__file__).with_name("chat_server.py"), str(port), settings]
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout.readline()
    return made


def kill(server: subprocess.Popen[str]) -> list[str]:
    """End a server at once; what it has printed since."""
    server.kill()
    return server.communicate()[0].splitlines(keepends=True)


class TestModel:
    def test_that_is_not_served_stops_before_anything_is_asked(self, server, engine, request_of) -> None:
        server.settings.model = "lab/other"
        with pytest.raises(UsageError, match=rf"runs 'lab/other', but the recipe asks for '{MODEL}'"):
            engine.submit(request_of()).result()
        assert server.asked == []

    def test_named_by_answers_is_enough_where_no_list_is(self, server, engine, request_of) -> None:
        server.settings.lists_models = False
        assert engine.submit(request_of()).result().model == MODEL

    def test_that_changes_later_stops_everything(self, server, engine, request_of) -> None:
        engine.submit(request_of()).result()
        server.settings.fields = {"model": "lab/other"}
        with pytest.raises(UsageError, match=rf"runs 'lab/other', but the recipe asks for '{MODEL}'"):
            engine.submit(request_of()).result()
        with pytest.raises(UsageError, match="lab/other"):
            engine.submit(request_of()).result()

    def test_that_changes_under_the_same_alias_is_found_at_the_next_look(
        self, server, engine_for, request_of
    ) -> None:
        server.settings.model, server.settings.root = "eye", MODEL
        engine = engine_for(server.url, alias="eye")
        engine.submit(request_of()).result()
        server.settings.root = "lab/other-7b"
        server.faults.append(Fault(drops=True))
        with pytest.raises(UsageError, match=rf"runs 'lab/other-7b'.*asks for '{MODEL}' as 'eye'"):
            engine.submit(request_of()).result()

    def test_that_changes_unseen_is_found_within_a_minute(
        self, server, engine_for, request_of, monkeypatch
    ) -> None:
        monkeypatch.setattr("evicat.catalog.engines.served.LOOK_UP_SECONDS", 0.0)
        server.settings.model, server.settings.root = "eye", "/weights/a"
        engine = engine_for(server.url, alias="eye")
        engine.submit(request_of()).result()
        server.settings.root = "/weights/b"
        with pytest.raises(UsageError, match=r"runs '/weights/b' \(before, it was '/weights/a'\)"):
            engine.submit(request_of()).result()

    def test_is_looked_up_once_for_many_requests(self, server, engine, request_of) -> None:
        for answer in [engine.submit(request_of(str(number))) for number in range(20)]:
            answer.result()
        assert server.look_ups == 1

    def test_quantized_as_the_recipe_says_is_the_same(self, server, engine_for, request_of) -> None:
        server.settings.model, server.settings.root = "eye", f"{MODEL}-FP8"
        model = ModelRef(name=MODEL, quantization="fp8")
        assert engine_for(server.url, model, alias="eye").submit(request_of()).result().text
        with pytest.raises(UsageError, match="FP8"):
            engine_for(server.url, alias="eye").submit(request_of()).result()


class TestCheck:
    def test_sends_the_request_as_it_is_and_without_its_image(self, server, engine, request_of) -> None:
        engine.check(request_of(schema=SCHEMA))
        assert [len(images_of(body)) for body in server.asked] == [1, 0]
        assert all("response_format" in body for body in server.asked)

    def test_where_images_are_passed_over_says_so(self, server, engine_for, request_of) -> None:
        """As `transformers serve` does with a model of words: it answers as if there were none."""
        server.settings.sees_images = False
        with pytest.raises(UsageError, match=r"counts no tokens for an image.*counts_images = false"):
            engine_for(server.url).check(request_of())
        engine_for(server.url, options={"counts_images": False}).check(request_of())

    def test_where_no_tokens_are_told_passes(self, server, engine, request_of) -> None:
        server.settings.fields = {"usage": None}
        engine.check(request_of())

    def test_without_schemas_says_what_to_do(self, server, engine, request_of) -> None:
        server.settings.takes_schema = False
        with pytest.raises(UsageError, match=r"does not take a JSON schema.*json_object.*features not supp"):
            engine.check(request_of(schema=SCHEMA))

    def test_without_schemas_passes_where_none_is_sent(self, server, engine_for, request_of) -> None:
        server.settings.takes_schema = False
        engine_for(server.url, options={"structured": "none"}).check(request_of(schema=SCHEMA))

    @pytest.mark.parametrize("status", [400, 500])
    def test_without_images_says_so(self, server, engine, request_of, status) -> None:
        server.settings.takes_images, server.settings.image_status = False, status
        with pytest.raises(UsageError, match=r"does not take the images.*vision-language model"):
            engine.check(request_of(schema=SCHEMA))

    def test_without_both_says_both(self, server, engine, request_of) -> None:
        server.settings.takes_images = server.settings.takes_schema = False
        with pytest.raises(UsageError, match=r"does not take the images.*does not take a JSON schema"):
            engine.check(request_of(schema=SCHEMA))

    def test_of_a_request_that_is_refused_for_else_tells_the_servers_words(
        self, server, engine, request_of
    ) -> None:
        server.always = Fault(status=400)
        with pytest.raises(UsageError, match=r"refuses what the recipe asks it.*as the test wants"):
            engine.check(request_of(schema=SCHEMA))

    def test_without_server_says_where_it_should_be(self, engine_for, request_of) -> None:
        engine = engine_for(f"http://127.0.0.1:{closed_port()}/v1", patience_seconds=0)
        with pytest.raises(EngineDownError, match=r"server of 'lab/eye-9b' at http://127"):
            engine.check(request_of())


class TestKey:
    def test_goes_to_the_server_and_nowhere_else(
        self, server, engine_for, request_of, monkeypatch, caplog
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        server.settings.key = SECRET
        caplog.set_level(logging.DEBUG)
        engine = engine_for(server.url, patience_seconds=0.3)
        engine.submit(request_of()).result()
        assert server.keys == {SECRET}
        said = []
        for status in (400, 429):
            server.always = Fault(status=status, body={"error": {"message": f"key {SECRET} is worn out"}})
            with pytest.raises((RequestError, EngineDownError), match=r"key \(key\) is worn out") as error:
                engine.submit(request_of()).result(timeout=30)
            said.append(str(error.value))
        assert SECRET not in f"{said}{caplog.text}{engine.__dict__}"

    def test_that_is_refused_is_not_repeated(self, server, engine, request_of, monkeypatch) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        server.settings.key = "another"
        with pytest.raises(UsageError, match=r"wrong key: \(key\); set OPENAI_API_KEY"):
            engine.submit(request_of()).result()

    def test_in_the_endpoint_is_refused(self, engine_for) -> None:
        with pytest.raises(UsageError, match="put it in OPENAI_API_KEY") as error:
            engine_for(f"http://user:{SECRET}@127.0.0.1/v1")
        assert SECRET not in str(error.value)


class TestProfile:
    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ({"endpoint": ""}, r'\[engines."lab/eye-9b"\] of the profile: write endpoint'),
            ({"endpoint": "localhost:8000/v1"}, "must begin with http, got 'localhost:8000/v1'"),
        ],
    )
    def test_without_usable_endpoint_says_what_to_write(self, engine_for, where, message) -> None:
        with pytest.raises(UsageError, match=message):
            engine_for(**where)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"structured": "xml"}, "structured.*got 'xml'"),
            (
                {"temperature": 1},
                "temperature.*known options: structured, counts_images, max_tokens_field",
            ),
            ({"extra_body": {"temperature": 1}}, "temperature: decided by the recipe"),
        ],
    )
    def test_with_options_that_do_not_fit_names_them(self, engine_for, options, message) -> None:
        with pytest.raises(RecipeError) as error:
            engine_for("http://127.0.0.1:1/v1", options=options)
        assert re.search(message, str(error.value), re.DOTALL)

    def test_without_the_package_its_extra_is_named(self, engine_for, monkeypatch) -> None:
        monkeypatch.setattr("evicat.catalog.engines.served.importlib.util.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=r"evicat\[openai\]"):
            engine_for("http://127.0.0.1:1/v1")

    def test_loads_no_client_before_it_is_needed(self) -> None:
        code = (
            "import sys\n"
            "from evicat.catalog.engines.loaders import open_engine\n"
            "from evicat.schemas.identity import ModelRef\n"
            "from evicat.schemas.recipe import ModelProfile, Profile\n"
            "where = ModelProfile(endpoint='http://127.0.0.1:9/v1')\n"
            "engine = open_engine(ModelRef(name='m'), Profile(engines={'m': where}))\n"
            "engine.close()\n"
            "assert not {'openai', 'httpx2', 'torch'} & set(sys.modules)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


def threads_of(engine: ServedEngine) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if engine.where.endpoint in each.name]


class TestClosing:
    def test_cancels_what_is_asked_and_joins_its_thread(self, server, engine_for, request_of) -> None:
        engine = engine_for(server.url)
        server.always = Fault(hangs=True)
        future = engine.submit(request_of())
        assert server.is_hanging.wait(10)
        assert threads_of(engine)
        engine.close()
        assert not threads_of(engine)
        with pytest.raises(CancelledError):
            future.result(timeout=5)
        with pytest.raises(EngineDownError, match="closed"):
            engine.submit(request_of())
        engine.close()

    def test_a_cancelled_future_frees_its_place(self, server, engine_for, request_of) -> None:
        engine = engine_for(server.url, concurrency=1)
        engine.submit(request_of()).result()
        server.faults.append(Fault(hangs=True))
        hanging = engine.submit(request_of())
        following = engine.submit(request_of("next"))
        assert server.is_hanging.wait(10)
        hanging.cancel()
        assert following.result(timeout=10).text


def test_the_server_of_the_tests_is_real(server: ChatServer) -> None:
    """Another client than ours gets its answers too."""
    from urllib.request import urlopen

    with urlopen(f"{server.url}/models") as answer:
        assert json.load(answer)["data"][0]["id"] == MODEL
