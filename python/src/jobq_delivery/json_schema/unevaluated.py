"""The keywords unevaluatedProperties and unevaluatedItems in bounded time.

Those of the library use Python's regular expressions, and search each member and item in a list of
evaluated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jobq.models import Json
from jobq_delivery.json_schema.patterns import check_time, compiled


def unevaluated(
    keyword: str, kind: type[dict[Any, Any] | list[Any]]
) -> Callable[..., Iterator[Any]]:
    """Return a keyword for the members or items that no other keyword has evaluated."""

    def check(validator: Any, wanted: Json, value: Json, schema: Json) -> Iterator[Any]:  # noqa: ANN401
        if isinstance(value, kind):
            others = {name: each for name, each in schema.items() if name != keyword}
            seen = evaluated(validator, value, others)
            for place in value if isinstance(value, dict) else range(len(value)):
                if place not in seen:
                    yield from validator.descend(value[place], wanted, path=place)

    return check


def evaluated(validator: Any, value: Any, schema: Any) -> set[Any]:  # noqa: ANN401
    """Return the names of members or indexes of items that a schema has evaluated."""
    check_time()
    if not isinstance(schema, dict):
        return set()
    found = members(value, schema) if isinstance(value, dict) else items(validator, value, schema)
    for inner, part in parts(validator, value, schema):
        found |= evaluated(inner, value, part)
    return found


def members(value: dict[str, Json], schema: dict[str, Any]) -> set[str]:
    """Return the names of members that a schema's own keywords have evaluated."""
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(value)
    found: set[str] = value.keys() & schema.get("properties", {}).keys()
    for wanted in schema.get("patternProperties", ()):
        check_time()
        expression = compiled(wanted)
        found |= {name for name in value if expression.search(name)}
    return found


def items(validator: Any, value: list[Json], schema: dict[str, Any]) -> set[int]:  # noqa: ANN401
    """Return the indexes of items that a schema's own keywords have evaluated."""
    if "items" in schema or "unevaluatedItems" in schema:
        return set(range(len(value)))
    found = set(range(min(len(value), len(schema.get("prefixItems", ())))))
    if "contains" in schema:
        inner = validator.evolve(schema=schema["contains"])
        found |= {place for place, item in enumerate(value) if inner.is_valid(item)}
    return found


def parts(validator: Any, value: Any, schema: dict[str, Any]) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Yield the subschemas for the same value, each with its validator."""
    for name in schema.keys() & {"$ref", "$dynamicRef"}:
        there = validator._resolver.lookup(schema[name])  # noqa: SLF001 - there is no other
        inner = validator.evolve(schema=there.contents, _resolver=there.resolver)
        yield inner, there.contents
    for name in schema.keys() & {"allOf", "anyOf", "oneOf"}:
        for part in schema[name]:
            if validator.evolve(schema=part).is_valid(value):
                yield validator, part
    if isinstance(value, dict):
        for name in value.keys() & schema.get("dependentSchemas", {}).keys():
            yield validator, schema["dependentSchemas"][name]
    if "if" in schema:
        holds = validator.evolve(schema=schema["if"]).is_valid(value)
        for name in ("if", "then") if holds else ("else",):
            yield validator, schema.get(name)
