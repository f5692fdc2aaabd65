"""Gold texts: what people wrote about a span of a video, as a benchmark has it.

They are read here and by the clock check alone: nothing that makes entries imports this module.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError, model_validator

from evicat.schemas.errors import UsageError
from evicat.schemas.model import Model
from evicat.schemas.recipe import problem


class Gold(Model):
    """What people wrote about a span of a video; ``video`` is its name in the catalog."""

    video: str = Field(min_length=1)
    start_s: float = Field(ge=0, allow_inf_nan=False)
    end_s: float = Field(gt=0, allow_inf_nan=False)
    text: str = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> Gold:
        if self.end_s <= self.start_s:
            raise ValueError(f"end_s must be > start_s, got start_s={self.start_s}, end_s={self.end_s}")
        if not self.text.strip():
            raise ValueError(f"text must say something, got {self.text!r}")
        return self


def read_gold(file: str | Path) -> list[Gold]:
    """Gold texts from a file with one JSON object a line: ``video, start_s, end_s, text``.

    Raises:
        UsageError: it cannot be read, or a line does not fit; says which and why.
    """
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read gold texts {file}: {error}") from None
    found = []
    for number, line in enumerate(text.split("\n"), start=1):  # a JSON text may hold other line ends
        if not line.strip():
            continue
        try:
            found.append(Gold.model_validate_json(line))
        except ValidationError as error:
            wrong = "; ".join(problem(each).strip() for each in error.errors())
            raise UsageError(f"{file}, line {number}: {wrong}") from None
    if not found:
        raise UsageError(f"{file} holds no gold text")
    return found
