"""A small server that speaks OpenAI's protocol of chat completions, with faults on request.

It runs no model: answers fit the schema that was asked for, and say so. In a test's own process it is a
:class:`ChatServer`; as a process of its own, to be killed, ``python chat_server.py PORT '{"latency_s": 1}'``.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evicat.catalog.engines.made_up import made_up

MODEL = "lab/eye-9b"


@dataclass
class Fault:
    """What happens to one chat request in place of its answer."""

    status: int = 200
    body: dict[str, Any] | str | None = None
    """Sent as it is; None: the usual answer, or an error with the status."""
    headers: dict[str, str] = field(default_factory=dict)
    drops: bool = False
    """The connection is closed without an answer."""
    hangs: bool = False
    """No answer until the server ends."""


@dataclass
class Settings:
    """How the server behaves; a test may change it while it runs."""

    model: str = MODEL
    """Its name in answers and in the list of models."""
    root: str | None = None
    """Where the list of models says that it is from; None: it does not say."""
    lists_models: bool = True
    listed: dict[str, Any] | str | None = None
    """Told in place of the list of models."""
    key: str = ""
    """Other keys are refused with 401; empty: all are taken."""
    latency_s: float = 0.0
    tells: bool = False
    """Whether a line is printed for every chat request as it begins: the last text of its prompt."""
    capacity: int = 10_000
    """Requests at once; more are turned away with 429."""
    takes_schema: bool = True
    takes_images: bool = True
    image_status: int = 400
    sees_images: bool = True
    """False: images are passed over without a word."""
    max_images: int = 10_000
    too_many: str = "At most {0} image(s) may be provided in one prompt."
    """What is said of more."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Put into every answer, over its own."""


class ChatServer:
    """Serves on loopback; ``asked`` holds the body of every chat request, also of those that got a fault."""

    def __init__(self, port: int = 0, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.faults: deque[Fault] = deque()
        self.always: Fault | None = None
        """A fault for every chat request."""
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.look_ups = 0
        self.running = self.most_running = 0
        self.ended, self.is_hanging = threading.Event(), threading.Event()
        self.lock = threading.Lock()
        handler = type("ServingHandler", (_Handler,), {"state": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def next_fault(self) -> Fault:
        with self.lock:
            return self.faults.popleft() if self.faults else self.always or Fault()

    def close(self) -> None:
        self.ended.set()
        self.http.shutdown()
        self.http.server_close()

    def __enter__(self) -> ChatServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: ChatServer

    def do_GET(self) -> None:
        state = self.state
        state.look_ups += 1
        settings = state.settings
        if not self.has_key():
            self.say(401, error(f"wrong key: {self.key}"))
        elif not settings.lists_models or self.path != "/v1/models":
            self.say(404, error("no such page"))
        elif settings.listed is not None:
            self.say(200, settings.listed)
        else:
            model = {"id": settings.model, "object": "model", "created": 0, "owned_by": "lab"}
            root = {} if settings.root is None else {"root": settings.root}
            self.say(200, {"object": "list", "data": [model | root]})

    def do_POST(self) -> None:
        state = self.state
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if not sent:  # whoever asked has gone
            self.close_connection = True
            return
        body = json.loads(sent)
        with state.lock:
            state.asked.append(body)
            state.keys.add(self.key)
            state.running += 1
            too_many = state.running > state.settings.capacity
            state.most_running = max(state.most_running, state.running)
            if state.settings.tells:
                print(body["messages"][-1]["content"][-1]["text"], flush=True)
        try:
            self.chat(body, too_many)
        finally:
            with state.lock:
                state.running -= 1

    def chat(self, body: dict[str, Any], too_many: bool) -> None:
        if too_many:
            self.say(429, error("too many requests"))
            return
        fault = self.state.next_fault()
        if fault.hangs:
            self.state.is_hanging.set()
            self.state.ended.wait()
        if fault.drops or fault.hangs:
            self.close_connection = True
            return
        time.sleep(self.state.settings.latency_s)  # what a model takes
        status, answer = self.reply(body)
        if fault.body is not None or fault.status != 200:
            status, answer = (
                fault.status,
                fault.body if fault.body is not None else error("as the test wants"),
            )
        self.say(status, answer, fault.headers)

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        settings = self.state.settings
        images = images_of(body)
        if not self.has_key():
            return 401, error(f"wrong key: {self.key}")
        if body["model"] != settings.model:
            return 404, error(f"the model {body['model']} does not exist")
        if not settings.takes_schema and body.get("response_format", {}).get("type") == "json_schema":
            return 400, error("features not supported")
        if not settings.takes_images and images:
            return settings.image_status, error("unsupported content")
        if len(images) > settings.max_images:
            return 400, error(settings.too_many.format(settings.max_images))
        return 200, completion(body, settings)

    @property
    def key(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def has_key(self) -> bool:
        return self.state.settings.key in ("", self.key)

    def say(self, status: int, content: dict[str, Any] | str, headers: dict[str, str] | None = None) -> None:
        is_text = isinstance(content, str)
        data = content.encode() if is_text else json.dumps(content).encode()
        headers = {"Content-Type": "application/json", "retry-after-ms": "10"} | (headers or {})
        try:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(data))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


def error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": None, "param": None}}


def images_of(body: dict[str, Any]) -> list[bytes]:
    """The JPEG files of a request; anything else in their place is a fault of the client."""
    found = []
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part["type"] == "image_url":
                head, _, data = part["image_url"]["url"].partition(",")
                assert head == "data:image/jpeg;base64"
                found.append(base64.b64decode(data, validate=True))
                assert found[-1].startswith(b"\xff\xd8")
    return found


def completion(body: dict[str, Any], settings: Settings) -> dict[str, Any]:
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    seed = json.dumps([body["messages"], body.get("seed")])
    prompt = 7 + 4 * len(images_of(body)) * settings.sees_images
    message = {"role": "assistant", "content": made_up(schema, seed), "refusal": None}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": settings.model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5},
    }
    return answer | settings.fields


if __name__ == "__main__":
    with ChatServer(int(sys.argv[1]), **json.loads(sys.argv[2])) as server:
        print(server.url, flush=True)
        sys.stdin.read()
