"""The input of endpoints against their JSON Schemas, draft 2020-12.

Schemas are never fetched: a reference leads into the schema itself, or to the draft's own.
No input keeps a check busy for more than 2 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final
from urllib.parse import unquote

import re2
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from jobq.errors import PayloadInvalid
from jobq.models import Json
from jobq_delivery.json_schema.keywords import BoundedValidator
from jobq_delivery.json_schema.patterns import SECONDS, TooSlow, deadline, pattern_problem

__all__ = ["InputSchema", "check_schema", "schema_problem"]

DRAFT: Final = "https://json-schema.org/draft/2020-12/"
# Keywords that hold values, and no schemas; but a reference may lead into them.
VALUES: Final = frozenset({"const", "default", "enum", "examples"})
# Keywords that hold schemas under names that are no keywords.
MAPS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
# What keywords raise where a reference has led to what is no schema, and big numbers do.
UNFIT: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re2.error)
REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
# A schema that leads back to itself does so for one of these.
SAMPLES: Final[tuple[Json, ...]] = ({}, [[]], "", 0, None)
MOST_TOLD: Final = 1000
META: Final[Any] = BoundedValidator(Draft202012Validator.META_SCHEMA, registry=REGISTRY)


def check_schema(schema: Json) -> None:
    """Refuse what is no JSON Schema of draft 2020-12.

    Raises:
        PayloadInvalid: with the code SCHEMA_INVALID.
    """
    problem = schema_problem(schema)
    if problem is not None:
        raise PayloadInvalid(
            "the schema is not one of JSON Schema 2020-12",
            code="SCHEMA_INVALID",
            sqlstate="JQ006",
            detail=problem,
        )


def schema_problem(schema: Json) -> str | None:
    """Return why a schema cannot be used, or None."""
    if not isinstance(schema, dict):
        return "it must be an object"
    deadline.set(time.thread_time() + SECONDS)
    found = next(problems(schema), None)
    return found if found is None else shorten(found)


def problems(schema: dict[str, Json]) -> Iterator[str]:
    """Yield why a schema cannot be used; what comes after the first may make no sense."""
    try:
        yield from map(told, META.iter_errors(schema))
    except TooSlow:
        yield f"checking it takes more than {SECONDS:g} s"
    except RecursionError:
        yield "it is nested too deeply"
    led = list(texts(schema, REFERENCES))
    yield from (f"{r} leads out of the schema" for r in led if not r.startswith(("#", DRAFT)))
    steps = unquote("/".join(led)).split("/")
    values = VALUES if VALUES.isdisjoint(steps) else frozenset()
    yield from filter(None, map(pattern_problem, patterns(schema, values)))
    # Of a schema with ids in it, only who follows a reference knows where it leads.
    if not any(texts([*schema.values()], frozenset({"$id"}))):
        yield from (f"{r} leads nowhere" for r in led if not leads_somewhere(r, schema))
    try:
        for sample in SAMPLES:
            first_error(validator_of(schema), sample)
    except UnusableError as unusable:
        yield str(unusable)


def validator_of(schema: Json) -> Any:  # noqa: ANN401 - jsonschema's own
    """Return what validates values."""
    return BoundedValidator(schema, registry=REGISTRY)


def first_error(validator: Any, value: Json) -> ValidationError | None:  # noqa: ANN401
    """Return the error that says most of what is wrong with a value, or None.

    Raises:
        UnusableError: the schema cannot be used on it.
    """
    try:
        return best_match(validator.iter_errors(value))  # type: ignore[no-any-return]
    except TooSlow:
        raise UnusableError(
            f"checking it against the schema takes more than {SECONDS:g} s"
        ) from None
    except Unresolvable:
        raise UnusableError("the schema refers to what is not there") from None
    except RecursionError:
        raise UnusableError("the schema leads back to itself for ever") from None
    except UNFIT:
        raise UnusableError(
            "the schema refers to what is no schema, or a number is too large for it"
        ) from None


def leads_somewhere(reference: str, schema: dict[str, Json]) -> bool:
    """Tell whether there is something where a reference leads."""
    resource = DRAFT202012.create_resource(schema)
    try:
        REGISTRY.resolver_with_root(resource).lookup(reference)
    except Unresolvable:
        return False
    return True


def shorten(text: str) -> str:
    """Return the beginning of a text that may hold all of a schema or an input."""
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]}…"


def texts(schema: Json, names: frozenset[str]) -> Iterator[str]:
    """Yield the texts that have one of these names, wherever they are in a schema."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in names and isinstance(value, str):
                yield value
            else:
                yield from texts(value, names)
    elif isinstance(schema, list):
        for item in schema:
            yield from texts(item, names)


def patterns(schema: Json, values: frozenset[str]) -> Iterator[str]:
    """Yield the patterns of a schema and of the schemas in it.

    Args:
        schema: the schema.
        values: the keywords that hold no schemas.
    """
    if isinstance(schema, list):
        for item in schema:
            yield from patterns(item, values)
    if not isinstance(schema, dict):
        return
    for name, value in schema.items():
        if name == "pattern" and isinstance(value, str):
            yield value
        elif name in MAPS and isinstance(value, dict):
            if name == "patternProperties":
                yield from value
            yield from patterns(list(value.values()), values)
        elif name not in values:
            yield from patterns(value, values)


class UnusableError(Exception):
    """A schema cannot be used on a value."""


class InputSchema:
    """What input must be.

    Args:
        schema: a JSON Schema of draft 2020-12; one that is none fits nothing.
    """

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._validator = validator_of(schema)

    @cached_property
    def _problem(self) -> str | None:
        return schema_problem(self._schema)

    def violation(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if self._problem is not None:
            return f"the payload spec is no JSON Schema: {self._problem}"
        deadline.set(time.thread_time() + SECONDS)
        try:
            error = first_error(self._validator, value)
        except UnusableError as unusable:
            return str(unusable)
        return None if error is None else told(error)


def told(error: ValidationError) -> str:
    """Return what is wrong, and where; of long values the beginning."""
    return shorten(f"{error.json_path}: {error.message}")
