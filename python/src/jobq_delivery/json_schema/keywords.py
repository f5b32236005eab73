"""Keywords of JSON Schema in bounded time.

Those of the library use Python's regular expressions, which some texts keep busy for very long, and
compare all pairs of items of an array. These use RE2, which is linear in the text, and every
keyword checks the time that the validation has used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from jobq.models import Json

SECONDS: Final = 2.0

deadline: ContextVar[float] = ContextVar("jobq_schema_deadline")
"""The CPU time of this thread at which the validation is ended."""


class TooSlow(Exception):  # noqa: N818 - as it reads
    """A validation has exceeded its time limit."""


def check_time() -> None:
    """End a validation that has exceeded its time limit."""
    if time.thread_time() > deadline.get():
        raise TooSlow


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - RE2 has no types
    """Return a compiled pattern of RE2."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def pattern(validator: Any, wanted: str, value: Json, _schema: Json) -> Iterator[ValidationError]:  # noqa: ANN401
    """Yield an error if a string does not match."""
    if validator.is_type(value, "string") and not compiled(wanted).search(value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def pattern_properties(
    validator: Any,  # noqa: ANN401 - jsonschema's own
    schemas: dict[str, Json],
    value: Json,
    _schema: Json,
) -> Iterator[ValidationError]:
    """Yield the errors of members whose names match."""
    if not validator.is_type(value, "object"):
        return
    for wanted, schema in schemas.items():
        expression = compiled(wanted)
        for name, member in value.items():
            check_time()
            if expression.search(name):
                yield from validator.descend(member, schema, path=name, schema_path=wanted)


def additional_properties(
    validator: Any,  # noqa: ANN401 - jsonschema's own
    wanted: Json,
    value: Json,
    schema: dict[str, Json],
) -> Iterator[ValidationError]:
    """Yield the errors of members that no other keyword covers."""
    if not validator.is_type(value, "object"):
        return
    expressions = [compiled(each) for each in schema.get("patternProperties", ())]
    for name in value.keys() - schema.get("properties", {}).keys():
        check_time()
        if not any(expression.search(name) for expression in expressions):
            yield from validator.descend(value[name], wanted, path=name)


def unique_items(validator: Any, wanted: Json, value: Json, _schema: Json) -> Iterator[Any]:  # noqa: ANN401
    """Yield an error if two items of an array are equal."""
    if wanted and validator.is_type(value, "array"):
        known = {frozen(item) for item in value}
        if len(known) < len(value):
            yield ValidationError(f"{value!r} has non-unique elements")


def frozen(value: Json) -> Hashable:
    """Return a hashable value, equal for equal JSON: 1 equals 1.0, but not true."""
    if isinstance(value, dict):
        return "object", frozenset((name, frozen(item)) for name, item in value.items())
    if isinstance(value, list):
        return "array", tuple(frozen(item) for item in value)
    return isinstance(value, bool), value


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


def bounded(keyword: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Return a keyword that checks the time first."""

    def check(validator: Any, wanted: Json, value: Json, schema: Json) -> Iterator[Any]:  # noqa: ANN401
        check_time()
        yield from keyword(validator, wanted, value, schema) or ()

    return check


BoundedValidator: Final[Any] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        name: bounded(keyword)
        for name, keyword in {
            **Draft202012Validator.VALIDATORS,
            "pattern": pattern,
            "patternProperties": pattern_properties,
            "additionalProperties": additional_properties,
            "uniqueItems": unique_items,
            "unevaluatedItems": unevaluated("unevaluatedItems", list),
            "unevaluatedProperties": unevaluated("unevaluatedProperties", dict),
        }.items()
    },
)
