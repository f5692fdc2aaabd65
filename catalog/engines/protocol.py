"""OpenAI's protocol of chat completions: what of a request is sent, and what an answer means."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from evicat.catalog.served import hide_key
from evicat.schemas.errors import RequestError, TooLongError
from evicat.schemas.model import Model
from evicat.schemas.recipe import problem

from .base import ChatAnswer, ChatRequest, FinishReason, Picture
from .too_long import says_too_long

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

FINISHES: dict[str | None, FinishReason] = {"length": "length", "content_filter": "refused"}
"""What ends an answer other than the model's own full stop."""
OURS = frozenset({"model", "messages", "temperature", "seed", "response_format", "stream", "n", "tools"}) | {
    "max_tokens",
    "max_completion_tokens",
}
"""Fields that the request decides; a profile must not change them."""
MOST_TOKENS: Final = 100_000_000
"""No request takes so many; a server that tells more, or no whole number, has not told."""
TOO_LARGE: Final = 413
"""HTTP status of a body that is too large."""


class ServedOptions(Model):
    """Settings of the engine ``openai``, written under ``[engines."MODEL".options]`` of the profile."""

    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the server is told the form of an answer: its JSON schema; only that it is JSON; or nothing.
    Whatever it is told, every answer is checked against the schema here."""
    counts_images: bool = True
    """Whether the server counts the tokens of images. One that counts none for the image of the first request
    is taken for one that passes over images, and the run ends; false: that is not looked at."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """Name under which the limit of an answer is sent; some hosted models insist on the second."""
    extra_body: dict[str, Any] = Field(default={})
    """Further fields of the request's body, such as
    ``{ chat_template_kwargs = { enable_thinking = false } }``. They are not part of the producer: keep them
    as they are for a whole catalog."""

    @field_validator("extra_body")
    @classmethod
    def _leaves_the_request_alone(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(OURS & value.keys()):
            raise ValueError(f"{', '.join(taken)}: decided by the recipe, and must not stand in extra_body")
        return value


def body_of(request: ChatRequest, named: str, options: ServedOptions) -> dict[str, Any]:
    """Arguments of ``chat.completions.create``; ``named`` is what the server calls the model."""
    body: dict[str, Any] = {
        "model": named,
        "messages": _messages(request),
        "temperature": request.temperature,
        options.max_tokens_field: request.max_tokens,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    if request.schema is not None and options.structured != "none":
        body["response_format"] = _response_format(request.schema, options)
    if options.extra_body:
        body["extra_body"] = options.extra_body
    return body


def _messages(request: ChatRequest) -> list[dict[str, Any]]:
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, {"role": "user", "content": [_part(part) for part in request.parts]}]


def _part(part: str | Picture) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = "data:image/jpeg;base64," + base64.b64encode(part.jpeg).decode("ascii")
    return {"type": "image_url", "image_url": {"url": url}}


def _response_format(schema: dict[str, Any], options: ServedOptions) -> dict[str, Any]:
    if options.structured == "json_object":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", str(schema.get("title", "answer")))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def refusal_of(who: str, status: int, said: str) -> RequestError:
    """The error of a request that the server refuses for what it is, in the server's own words."""
    is_too_long = status == TOO_LARGE or says_too_long(said)
    kind = TooLongError if is_too_long else RequestError
    return kind(f"{who} refuses this request ({status}): {said}")


class _Read(BaseModel, from_attributes=True):
    """What is read of an answer; the client checks nothing, and servers add much else."""


class _Part(_Read):
    type: str = ""
    text: str | None = None


class _Message(_Read):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(_Read):
    message: _Message
    finish_reason: str | None = None


class _Completion(_Read):
    choices: list[_Choice] | None = None
    model: str | None = None


def answer_of(completion: ChatCompletion, named: str) -> ChatAnswer:
    """What the model said. No choice or no content is an answer without text, which no schema accepts.

    Raises:
        RequestError: it has not the form of an answer, or an error stands in its place, as gateways send it
            with status 200.
    """
    error = (completion.model_extra or {}).get("error")
    if error and not completion.choices:
        kind = TooLongError if says_too_long(str(error)) else RequestError
        raise kind(hide_key(f"the server answered with an error: {error}")[:500])
    try:
        read = _Completion.model_validate(completion)
    except ValidationError as wrong:
        where = "; ".join(problem(item).strip() for item in wrong.errors()[:3])
        said = hide_key(f"the answer has not the form of a chat completion: {where}")[:500]
        raise RequestError(said) from None
    text, finish = _said(read)
    return ChatAnswer(
        text=text,
        finish_reason=finish,
        prompt_tokens=_told(completion.usage, "prompt_tokens"),
        completion_tokens=_told(completion.usage, "completion_tokens"),
        model=read.model or named,
    )


def _said(completion: _Completion) -> tuple[str, FinishReason]:
    if not completion.choices:
        return "", "stop"
    choice = completion.choices[0]
    content = choice.message.content or ""
    if choice.message.refusal:
        return choice.message.refusal, "refused"
    if not isinstance(content, str):  # in parts, of which some servers send thoughts too
        content = "".join(part.text or "" for part in content if part.type == "text")
    return content, FINISHES.get(choice.finish_reason, "stop")


def _told(usage: object, name: str) -> int:
    """How many tokens the server counted; 0: it does not tell."""
    count = getattr(usage, name, 0)
    return count if isinstance(count, int) and 0 <= count <= MOST_TOKENS else 0
