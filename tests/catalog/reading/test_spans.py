"""Spans as callers give them."""

import pytest

from evicat.catalog.reading.filters import span_of
from evicat.schemas.errors import UsageError


def test_what_is_no_span_is_told() -> None:
    with pytest.raises(UsageError, match="between: 5 is no span; give"):
        span_of(5)
