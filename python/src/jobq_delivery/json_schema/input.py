"""Validation of the input of endpoints by JSON Schema, draft 2020-12.

The database has checked the schemas when they were stored, except for what only using them shows.
Schemas are never fetched: references lead into the schema itself or to those of the draft. A
validation takes at most 2 s of CPU time.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any, Final

import re2
from jsonschema.exceptions import best_match
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from jobq.models import Json
from jobq_delivery.json_schema.keywords import SECONDS, BoundedValidator, TooSlow, deadline

# Values that reveal a schema that refers to itself endlessly.
SAMPLES: Final[tuple[Json, ...]] = ({}, [[]], "", 0, None)
MAX_TEXT: Final = 1000


class UnusableError(Exception):
    """A schema cannot be used for a value."""


def schema_problem(schema: Json) -> str | None:
    """Return why a schema cannot be used, or None; the database finds other problems."""
    checks = InputSchema(schema)
    try:
        for sample in SAMPLES:
            checks.first_error(sample)
    except UnusableError as unusable:
        return str(unusable)
    return None


class InputSchema:
    """A validator of input by a JSON Schema of draft 2020-12."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema

    @cached_property
    def _validator(self) -> Any:  # noqa: ANN401 - jsonschema's own
        return BoundedValidator(self._schema, registry=REGISTRY)

    def violation(self, value: Json) -> str | None:
        """Return the problem of a value, or None; of an unusable schema, every value has one."""
        try:
            return self.first_error(value)
        except UnusableError as unusable:
            return str(unusable)

    def first_error(self, value: Json) -> str | None:
        """Return the most relevant error of a value with its location, or None."""
        deadline.set(time.thread_time() + SECONDS)
        try:
            error = best_match(self._validator.iter_errors(value))
        except TooSlow:
            words = f"checking it against the schema takes more than {SECONDS:g} s"
            raise UnusableError(words) from None
        except Unresolvable:
            raise UnusableError("a reference of the schema leads nowhere") from None
        except RecursionError:
            raise UnusableError("the schema leads back to itself for ever") from None
        except re2.error:
            raise UnusableError("a pattern cannot be checked in linear time") from None
        except Exception:  # of keywords, where a reference leads to no schema
            raise UnusableError(
                "the schema refers to what is no schema, or a number is too large for it"
            ) from None
        if error is None:
            return None
        # It may contain a whole schema or input.
        text = f"{error.json_path}: {error.message}"
        return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
