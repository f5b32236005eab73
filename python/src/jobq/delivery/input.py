"""The input of endpoints against their JSON Schemas, draft 2020-12.

Schemas are never fetched: a reference leads into the schema itself, or to the draft's own.
No input keeps a check busy for more than 2 s.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from jobq.delivery.keywords import (
    SECONDS,
    BoundedValidator,
    TooSlow,
    deadline,
    pattern_problem,
)
from jobq.errors import PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobq.models import Json

__all__ = ["InputSchema", "check_schema", "schema_problem"]

DRAFT: Final = "https://json-schema.org/draft/2020-12/"
# Keywords that hold values, and no schemas.
VALUES: Final = frozenset({"const", "default", "enum", "examples"})
PATTERN_OF_NAMES: Final = "a name in patternProperties"


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
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return f"{error.json_path}: {error.message}"
    away = [r for r in references(schema) if not r.startswith(("#", DRAFT))]
    if away:
        return f"{away[0]} leads out of the schema"
    keywords = set(members(schema))
    if {"patternProperties", "unevaluatedProperties"} <= {name for name, _ in keywords}:
        return "unevaluatedProperties beside patternProperties cannot be checked in linear time"
    patterns = (text for name, text in keywords if name in ("pattern", PATTERN_OF_NAMES) and text)
    return next(filter(None, map(pattern_problem, patterns)), None)


def references(schema: Json) -> Iterator[str]:
    """Yield where a schema's references lead."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from references(item)


def members(schema: Json) -> Iterator[tuple[str, str | None]]:
    """Yield a schema's members and those of the schemas in it, with their text if they have one.

    Names that are patterns come as texts, too.
    """
    if isinstance(schema, list):
        for item in schema:
            yield from members(item)
    if not isinstance(schema, dict):
        return
    for name, value in schema.items():
        yield name, value if isinstance(value, str) else None
        if name == "patternProperties" and isinstance(value, dict):
            yield from ((PATTERN_OF_NAMES, pattern) for pattern in value)
        if name not in VALUES:
            yield from members(value)


class InputSchema:
    """What input must be.

    Args:
        schema: a JSON Schema of draft 2020-12; one that is none fits nothing.
    """

    def __init__(self, schema: Json) -> None:
        self._problem = schema_problem(schema)
        self._validator = BoundedValidator(schema, registry=REGISTRY)

    def violation(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if self._problem is not None:
            return f"the payload spec is no JSON Schema: {self._problem}"
        deadline.set(time.thread_time() + SECONDS)
        try:
            error = best_match(self._validator.iter_errors(value))
        except TooSlow:
            return f"checking it against the schema takes more than {SECONDS:g} s"
        except Unresolvable:
            return "the schema refers to what is not there"
        except RecursionError:
            return "the schema leads back to itself for ever"
        return None if error is None else f"{error.json_path}: {error.message}"
