"""Validation of the input of endpoints by JSON Schema, draft 2020-12.

Schemas are never fetched: references lead into the schema itself or to those of the draft. A
validation takes at most 2 s of CPU time.
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

DRAFT: Final = "https://json-schema.org/draft/2020-12/"
# Keywords that contain values instead of schemas; references may lead into them.
VALUES: Final = frozenset({"const", "default", "enum", "examples"})
# Keywords that contain schemas by name.
MAPS: Final = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
# Errors of keywords if a reference leads to something else than a schema, or a number is too large.
UNFIT: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re2.error)
REFERENCES: Final = frozenset({"$ref", "$dynamicRef"})
# Values that reveal a schema that refers to itself endlessly.
SAMPLES: Final[tuple[Json, ...]] = ({}, [[]], "", 0, None)
MAX_TEXT: Final = 1000
META: Final[Any] = BoundedValidator(Draft202012Validator.META_SCHEMA, registry=REGISTRY)


def check_schema(schema: Json) -> None:
    """Check that a schema can be used.

    Raises:
        PayloadInvalid: it cannot; with the code SCHEMA_INVALID.
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
    """Yield why a schema cannot be used; problems after the first may be consequences."""
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
    # In a schema with ids, a reference can only be resolved by following it.
    if not any(texts([*schema.values()], frozenset({"$id"}))):
        yield from (f"{r} leads nowhere" for r in led if not leads_somewhere(r, schema))
    try:
        for sample in SAMPLES:
            first_error(validator_of(schema), sample)
    except UnusableError as unusable:
        yield str(unusable)


def validator_of(schema: Json) -> Any:  # noqa: ANN401 - jsonschema's own
    """Return a validator for values."""
    return BoundedValidator(schema, registry=REGISTRY)


def first_error(validator: Any, value: Json) -> ValidationError | None:  # noqa: ANN401
    """Return the most relevant error of a value, or None.

    Raises:
        UnusableError: the schema cannot be used for it.
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
    """Whether a reference can be resolved."""
    resource = DRAFT202012.create_resource(schema)
    try:
        REGISTRY.resolver_with_root(resource).lookup(reference)
    except Unresolvable:
        return False
    return True


def shorten(text: str) -> str:
    """Return a text, cut if it is long: it may contain a whole schema or input."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def texts(schema: Json, names: frozenset[str]) -> Iterator[str]:
    """Yield the texts with one of these names anywhere in a schema."""
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
    """Yield the patterns of a schema and its subschemas.

    Args:
        schema: the schema.
        values: keywords that contain no schemas.
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
    """A schema cannot be used for a value."""


class InputSchema:
    """A validator of input.

    Args:
        schema: a JSON Schema of draft 2020-12; an invalid one accepts nothing.
    """

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._validator = validator_of(schema)

    @cached_property
    def _problem(self) -> str | None:
        return schema_problem(self._schema)

    def violation(self, value: Json) -> str | None:
        """Return the problem of a value, or None."""
        if self._problem is not None:
            return f"the payload spec is no JSON Schema: {self._problem}"
        deadline.set(time.thread_time() + SECONDS)
        try:
            error = first_error(self._validator, value)
        except UnusableError as unusable:
            return str(unusable)
        return None if error is None else told(error)


def told(error: ValidationError) -> str:
    """Return an error as text with its location, cut if it is long."""
    return shorten(f"{error.json_path}: {error.message}")
