"""Forms for the data of an answer, made from a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from jobq_http.errors import ApiError

# Begins the names of fields in HTML.
PREFIX: Final = "data."


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a form.

    Attributes:
        name: the member of the data; empty for the data as a whole.
        label: what the person reads.
        hint: a description, or an empty text.
        kind: number, text, choice, check or json.
        is_required: whether an approval must have it.
        given: the default.
        choices: of a choice, the JSON of each value and what the person reads.
        schema: the JSON Schema.
    """

    name: str
    label: str
    hint: str
    kind: str
    is_required: bool
    given: str
    choices: tuple[tuple[str, str], ...]
    schema: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The name in HTML."""
        return PREFIX + self.name


def fields_of(form: Mapping[str, Any] | None) -> list[Field]:
    """Return the fields for a JSON Schema: of an object, one for each member."""
    if form is None:
        return []
    members = form.get("properties")
    if not isinstance(members, dict):
        return [_field("", {"title": "Data", **form}, is_required=True)]
    required = form.get("required", [])
    return [_field(name, each, is_required=name in required) for name, each in members.items()]


def _field(name: str, schema: Mapping[str, Any], *, is_required: bool) -> Field:
    choices = tuple((_json(value), _shown(value)) for value in schema.get("enum", []))
    kind = "choice" if choices else KINDS.get(str(schema.get("type")), "json")
    given = ""
    if "default" in schema:
        value = schema["default"]
        given = _json(value) if kind in {"choice", "json", "check"} else _shown(value)
    title, hint = str(schema.get("title") or name), str(schema.get("description", ""))
    return Field(name, title, hint, kind, is_required, given, choices, schema)


# The fields of types; others are written as JSON.
KINDS: Final = {"string": "text", "number": "number", "integer": "number", "boolean": "check"}


def data_of(form: Mapping[str, Any] | None, sent: Mapping[str, str]) -> str:
    """Return the data of a sent form as JSON; refuse a field that must be JSON and is not."""
    fields = fields_of(form)
    found = {field.name: text for field in fields if (text := _value(field, sent)) is not None}
    if not fields:
        return "null"
    if not fields[0].name:
        return found.get("", "null")
    return f"{{{', '.join(f'{_json(name)}: {text}' for name, text in found.items())}}}"


def _value(field: Field, sent: Mapping[str, str]) -> str | None:
    """Return the value of a field as JSON; None if it is left out."""
    text = sent.get(field.key, "").strip()
    if field.kind == "check":
        return "true" if text else "false"
    if not text and not (field.kind == "text" and field.is_required):
        return None
    if field.kind == "text":
        return _json(sent[field.key])
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        what = "a number" if field.kind == "number" else "JSON"
        raise ApiError("INVALID_REQUEST", message=f"{field.label} must be {what}.") from error
    return text


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shown(value: object) -> str:
    return value if isinstance(value, str) else _json(value)
