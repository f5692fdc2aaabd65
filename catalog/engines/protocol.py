"""OpenAI's protocol of chat completions: what of a request is sent, and what an answer means."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from evicat.catalog.served import hide_key
from evicat.schemas.errors import RequestError
from evicat.schemas.model import Model

from .base import ChatAnswer, ChatRequest, FinishReason, Picture

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

FINISHES: dict[str | None, FinishReason] = {"length": "length", "content_filter": "refused"}
"""What ends an answer other than the model's own full stop."""
OURS = frozenset({"model", "messages", "temperature", "seed", "response_format", "stream", "n", "tools"}) | {
    "max_tokens",
    "max_completion_tokens",
}
"""Fields that the request decides; a profile must not change them."""


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


def answer_of(completion: ChatCompletion, named: str) -> ChatAnswer:
    """What the model said. No choice or no content is an answer without text, which no schema accepts.

    Raises:
        RequestError: an error stands in the place of an answer, as gateways send it with status 200.
    """
    error = (completion.model_extra or {}).get("error")
    if error and not completion.choices:
        raise RequestError(hide_key(f"the server answered with an error: {error}")[:500])
    usage = completion.usage
    text, finish = _said(completion)
    return ChatAnswer(
        text=text,
        finish_reason=finish,
        prompt_tokens=(usage and usage.prompt_tokens) or 0,
        completion_tokens=(usage and usage.completion_tokens) or 0,
        model=completion.model or named,
    )


def _said(completion: ChatCompletion) -> tuple[str, FinishReason]:
    if not completion.choices:
        return "", "stop"
    choice = completion.choices[0]
    if choice.message.refusal:
        return choice.message.refusal, "refused"
    return choice.message.content or "", FINISHES.get(choice.finish_reason, "stop")
