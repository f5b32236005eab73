"""The input of endpoints against their JSON Schemas, draft 2020-12.

Schemas are never fetched: a reference leads into the schema itself, or to the draft's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from jobq.errors import PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobq.models import Json

__all__ = ["InputSchema", "check_schema", "schema_problem"]

DRAFT: Final = "https://json-schema.org/draft/2020-12/"


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
    return f"{away[0]} leads out of the schema" if away else None


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


class InputSchema:
    """What input must be.

    Args:
        schema: a JSON Schema of draft 2020-12; one that is none fits nothing.
    """

    def __init__(self, schema: Json) -> None:
        self._problem = schema_problem(schema)
        self._validator = Draft202012Validator(schema, registry=REGISTRY)

    def violation(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""
        if self._problem is not None:
            return f"the payload spec is no JSON Schema: {self._problem}"
        try:
            error = best_match(self._validator.iter_errors(value))
        except Unresolvable:
            return "the schema refers to what is not there"
        except RecursionError:
            return "the schema leads back to itself for ever"
        return None if error is None else f"{error.json_path}: {error.message}"
