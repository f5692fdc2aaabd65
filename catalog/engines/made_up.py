"""Made-up JSON that satisfies a schema and says of every text that it is made up."""

from __future__ import annotations

import json
import random
import re
from typing import Any

from evicat.schemas.errors import UsageError

MORE_ITEMS = 2
"""So many items a list has beyond what it must have, at most."""
PARAGRAPH = 1_000
"""Characters from which on a text has room for a paragraph."""
SENTENCES = 12
DEEPEST = 8
"""Nesting from which on lists are as short as they may be, so that what refers to itself ends."""


def made_up(schema: dict[str, Any] | None, seed: str) -> str:
    """JSON text that follows ``schema`` (None: a plain sentence); the same ``seed`` gives the same text.

    Numbers of one object or list rise in their order, so that a box or span of them has a size.

    Raises:
        UsageError: the schema holds what this cannot make.
    """
    maker = _Maker(schema or {}, random.Random(seed))
    if schema is None:
        return maker.text({}, "answer")
    return json.dumps(maker.value(schema, "answer"))


class _Maker:
    """Draws one value after another."""

    def __init__(self, schema: dict[str, Any], draw: random.Random) -> None:
        self._root = schema
        self._draw = draw

    def value(self, schema: dict[str, Any], name: str, depth: int = 0, place: float = 0.5) -> Any:
        """A value for the property ``name``; ``place`` is where in its range a number lies, in ``[0, 1)``."""
        if "$ref" in schema:
            return self.value(self._referred(schema["$ref"]), name, depth + 1, place)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._draw.choice(schema["enum"])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return self.value(self._chosen(schema, key), name, depth, place)
        match _kind(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return self.text(schema, name)
            case "boolean":
                return self._draw.random() < 0.5
            case "null":
                return None
            case "integer" | "number" as kind:
                return _number(schema, kind, place)
            case other:
                raise UsageError(f"the simulated engine cannot make a value of type {other!r} ({name})")

    def text(self, schema: dict[str, Any], name: str) -> str:
        """``simulated NAME 3f2a``, as long as the schema wants; where there is room, many of them."""
        longest, shortest = schema.get("maxLength"), schema.get("minLength", 0)
        sentences = SENTENCES if longest and longest >= PARAGRAPH else 1
        what = f"simulated {name.replace('_', ' ')}"
        made = [f"{what} {self._draw.getrandbits(16):04x}" for _ in range(sentences)]
        text = ". ".join(made)
        while len(text) < shortest:
            text += f" {self._draw.getrandbits(16):04x}"
        text = text if longest is None else text[:longest]
        if "pattern" in schema and not re.search(schema["pattern"], text):
            raise UsageError(f"the simulated engine cannot make text like {schema['pattern']!r} ({name})")
        return text

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        step = 1 / max(1, len(properties))
        return {
            name: self.value(each, name, depth + 1, (number + self._draw.random()) * step)
            for number, (name, each) in enumerate(properties.items())
        }

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        fixed = [self.value(each, name, depth + 1) for each in schema.get("prefixItems", ())]
        least, items = schema.get("minItems", 0), schema.get("items")
        if not isinstance(items, dict):
            return fixed
        most = min(schema.get("maxItems", least + MORE_ITEMS), least + MORE_ITEMS)
        count = least if depth > DEEPEST else self._draw.randint(least, max(least, most))
        places = ((number + 0.5) / count for number in range(len(fixed), count))
        return fixed + [self.value(items, name, depth + 1, place) for place in places]

    def _chosen(self, schema: dict[str, Any], key: str) -> dict[str, Any]:
        """One of the ways that a schema leaves open; what may be null mostly is not."""
        ways = schema[key]
        if key == "allOf":
            merged: dict[str, Any] = {}
            for way in ways:
                merged |= self._referred(way["$ref"]) if "$ref" in way else way
            return merged
        full = [way for way in ways if way.get("type") != "null"]
        if not full or (len(full) < len(ways) and self._draw.random() < 0.25):
            return {"type": "null"}
        chosen: dict[str, Any] = self._draw.choice(full)
        return chosen

    def _referred(self, reference: str) -> dict[str, Any]:
        found: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            if not isinstance(found, dict) or part not in found:
                raise UsageError(f"the schema refers to {reference!r}, which it does not hold")
            found = found[part]
        resolved: dict[str, Any] = found
        return resolved


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next(each for each in [*kind, "null"] if each != "null" or len(kind) == 1)
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
    return str(kind)


def _number(schema: dict[str, Any], kind: str, place: float) -> float:
    """A number within its bounds, at ``place`` of them."""
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10))
    if kind == "number":
        return float(round(low + (high - low) * (0.01 + 0.98 * place), 3)) if high > low else float(low)
    first = low + 1 if "exclusiveMinimum" in schema else low
    last = high - 1 if "exclusiveMaximum" in schema else high
    return int(first + (last - first + 1) * place)
