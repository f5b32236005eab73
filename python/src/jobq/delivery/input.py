"""The input of endpoints against their JSON Schemas, draft 2020-12.

Schemas are never fetched: a reference leads into the schema itself, or to the draft's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from jobq.errors import PayloadInvalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jobq.models import Json

__all__ = ["check_schema", "schema_problem", "validator_of", "violation"]

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


def validator_of(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Return what checks values under a schema; it fetches nothing."""
    return Draft202012Validator(schema, registry=REGISTRY)


def violation(validator: Draft202012Validator, value: Json) -> str | None:
    """Return what is wrong with a value under a schema, or None."""
    try:
        error = best_match(validator.iter_errors(value))
    except Unresolvable:
        return "the schema refers to what is not there"
    return None if error is None else f"{error.json_path}: {error.message}"
