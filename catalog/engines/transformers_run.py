"""Has a loaded chat model answer several requests at once.

Each row of a batch keeps to its own grammar, limit, temperature and seed, so that what shares the batch with
it changes nothing but the last bits of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evicat.schemas.errors import RequestError, TooLongError, UsageError

from .base import ChatAnswer, ChatRequest, Picture
from .transformers_grammar import Grammars
from .transformers_load import Chat

if TYPE_CHECKING:
    import torch


class Row:
    """One request on its way through a batch."""

    def __init__(self, request: ChatRequest, chat: Chat, matcher: Any) -> None:
        import torch

        self.request = request
        self.matcher = matcher
        self.tokens: list[int] = []
        self.error = ""
        """Why no further token can be chosen."""
        self._ends = chat.ends
        self._draws = torch.Generator().manual_seed(request.seed or 0)

    @property
    def is_over(self) -> bool:
        return self.has_ended or len(self.tokens) >= self.request.max_tokens or bool(self.error)

    @property
    def has_ended(self) -> bool:
        """Whether the model itself has ended its answer."""
        return bool(self.tokens) and self.tokens[-1] in self._ends

    def take(self, token: int) -> None:
        """The token that came next."""
        if self.is_over:
            return
        self.tokens.append(token)
        if self.matcher is not None and not self.has_ended and not self.matcher.consume_token(token):
            self.error = self.matcher.get_error()

    def noise(self, vocabulary: int) -> torch.Tensor:
        """What, added to the scores, makes the highest of them a draw by their weights (Gumbel-max).

        Drawn on the CPU, so that a seed means the same on every device.
        """
        import torch

        return -torch.log(torch.empty(vocabulary).exponential_(generator=self._draws))


def run(
    chat: Chat, grammars: Grammars | None, requests: Sequence[ChatRequest], is_stopped: Callable[[], bool]
) -> list[ChatAnswer | RequestError]:
    """Answer all of ``requests`` in one batch; ``is_stopped`` ends it early.

    Raises:
        TooLongError: one of them has no room in what the model takes.
        RequestError: one of them cannot be put into a prompt.
        RuntimeError, MemoryError: too little memory, or torch fails.
    """
    import torch

    with torch.inference_mode():
        inputs = _inputs(chat, requests)
        counts = inputs["attention_mask"].sum(dim=1).tolist()
        for request, count in zip(requests, counts, strict=True):
            _check_length(chat, request, count)
        rows = [Row(request, chat, matcher_of(grammars, request)) for request in requests]
        _generate(chat, grammars, rows, inputs, is_stopped)
    return [_answer(chat, row, count) for row, count in zip(rows, counts, strict=True)]


def check(chat: Chat, grammars: Grammars | None, request: ChatRequest, who: str) -> None:
    """What can be told of a request without the model.

    Raises:
        UsageError: it shows pictures to a model of words, or its schema cannot be kept to.
    """
    if request.pictures and not chat.sees:
        raise UsageError(
            f"{who} takes words only, and the recipe shows it pictures: name a vision-language model "
            "in the recipe"
        )
    matcher_of(grammars, request)


def matcher_of(grammars: Grammars | None, request: ChatRequest) -> Any:
    return grammars.matcher(request.schema) if grammars and request.schema is not None else None


def _inputs(chat: Chat, requests: Sequence[ChatRequest]) -> Any:
    """All prompts as tensors, short ones padded in front."""
    from jinja2 import TemplateError

    # Control tokens in dialogue or on a screen are words: they end no turn and stand for no picture.
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True}
    options |= {"sanitize_control_tokens": True}
    if chat.may_think:
        options |= {"enable_thinking": False}  # an answer begins with its record
    padded = {"padding": True, "return_tensors": "pt"}
    told = [_messages(request, chat.sees) for request in requests]
    given: dict[str, Any] = {"processor_kwargs": padded} if chat.sees else padded
    try:
        made = chat.processor.apply_chat_template(told, **options, **given)
    except (ValueError, TypeError, LookupError, TemplateError) as error:
        raise RequestError(f"the model's processor cannot make a prompt of this request: {error}") from error
    numbers = [chat.model.dtype] if chat.sees else []
    return made.to(chat.model.device, *numbers)


def _messages(request: ChatRequest, sees: bool) -> list[dict[str, Any]]:
    """The request as chat templates take it: a list of parts where pictures are among them, else one text."""
    if not sees:
        turns = {"system": request.system, "user": "\n".join(request.texts[1:])}
        return [{"role": role, "content": text} for role, text in turns.items() if text]
    user = [
        {"type": "image", "image": part.decoded()}
        if isinstance(part, Picture)
        else {"type": "text", "text": part}
        for part in request.parts
    ]
    system = [{"role": "system", "content": [{"type": "text", "text": request.system}]}]
    return [*(system if request.system else []), {"role": "user", "content": user}]


def _check_length(chat: Chat, request: ChatRequest, count: int) -> None:
    if chat.most_tokens and count + request.max_tokens > chat.most_tokens:
        raise TooLongError(
            f"the prompt has {count} tokens and the answer may have {request.max_tokens}, but the model "
            f"takes {chat.most_tokens} together; show fewer or smaller frames, or lower max_tokens "
            "in the recipe",
            prompt_tokens=count,
        )


def _generate(
    chat: Chat, grammars: Grammars | None, rows: list[Row], inputs: Any, is_stopped: Callable[[], bool]
) -> None:
    """Let the model write all rows to their ends."""
    import torch
    from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

    prompt = inputs["input_ids"].shape[1]

    class Choose(LogitsProcessor):
        """Leaves each row only what may come next, and has those of a temperature draw."""

        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            _take(rows, input_ids, prompt)
            return _allowed(chat, grammars, rows, scores)

    class Over(StoppingCriteria):
        """Ends each row at its own limit, and all of them when the engine closes."""

        def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
            written = input_ids.shape[1] - prompt
            over = [is_stopped() or bool(row.error) or written >= row.request.max_tokens for row in rows]
            return torch.tensor(over, device=input_ids.device)

    written = chat.model.generate(
        **inputs,
        do_sample=False,
        max_new_tokens=max(row.request.max_tokens for row in rows),
        logits_processor=LogitsProcessorList([Choose()]),
        stopping_criteria=StoppingCriteriaList([Over()]),
    )
    _take(rows, written, prompt)


def _take(rows: list[Row], input_ids: torch.Tensor, prompt: int) -> None:
    """Tell the rows what was written since they last heard; what follows a row's end is padding."""
    heard = max(len(row.tokens) for row in rows)
    for new in input_ids[:, prompt + heard :].T.tolist():
        for row, token in zip(rows, new, strict=True):
            row.take(token)


def _allowed(chat: Chat, grammars: Grammars | None, rows: list[Row], scores: torch.Tensor) -> torch.Tensor:
    import torch

    scores = scores.float()
    kept = [
        (row.matcher, index) for index, row in enumerate(rows) if row.matcher is not None and not row.is_over
    ]
    if grammars and kept:
        mask = torch.from_numpy(grammars.masks(kept, len(rows), chat.vocabulary)).to(scores.device)
        bits = torch.arange(32, device=scores.device, dtype=torch.int32)
        may = (mask.unsqueeze(-1) >> bits & 1).flatten(1)[:, : scores.shape[1]].bool()
        scores = scores.masked_fill(~may, -torch.inf)
    for index, row in enumerate(rows):
        if row.matcher is not None and row.matcher.is_error() and not row.is_over:
            row.error = row.matcher.get_error()
        if row.request.temperature and not row.is_over:
            noise = row.noise(scores.shape[1]).to(scores.device)
            scores[index] = scores[index] / row.request.temperature + noise
    return scores


def _answer(chat: Chat, row: Row, prompt_tokens: int) -> ChatAnswer | RequestError:
    count = len(row.tokens)
    if row.error:
        return RequestError(
            f"llguidance cannot go on with this answer: {row.error[:300]}",
            prompt_tokens=prompt_tokens,
            completion_tokens=count,
        )
    said = row.tokens[:-1] if row.has_ended else row.tokens
    text = chat.tokenizer.decode(said, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return ChatAnswer(
        text=text,
        finish_reason="stop" if row.has_ended else "length",
        prompt_tokens=prompt_tokens,
        completion_tokens=count,
        model=chat.name,
    )
