"""Keywords of JSON Schema in bounded time.

Those of the library use Python's regular expressions, which some texts keep busy for very long, and
compare all pairs of items of an array. These use RE2, which is linear in the text, and every
keyword checks the time that the validation has used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from jobq.models import Json
from jobq_delivery.json_schema.patterns import check_time, compiled
from jobq_delivery.json_schema.unevaluated import unevaluated


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
