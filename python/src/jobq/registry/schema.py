"""Converts the type of a handler's payload to the JSON Schema that the database enforces.

The database supports a subset of JSON Schema. The worker checks the rest against the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

_KEPT: Final = frozenset("type required enum minimum maximum minLength maxLength pattern".split())


def payload_schema(payload_type: Any) -> dict[str, Any] | None:  # noqa: ANN401 - any type
    """Return the schema of a type, or None if every value matches.

    Args:
        payload_type: a dataclass, a pydantic model, a TypedDict or another type that
            msgspec supports.
    """
    if payload_type in (None, Any, object):
        return None
    of_model = getattr(payload_type, "model_json_schema", None)
    if of_model is not None:
        whole = of_model()
        definitions = whole.get("$defs", {})
    else:
        [whole], definitions = msgspec.json.schema_components(
            [payload_type], ref_template="#/$defs/{name}"
        )
    return _reduced(whole, definitions, ()) or None


def _reduced(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], open_refs: tuple[str, ...]
) -> dict[str, Any]:
    """Return the part of a schema that the database enforces, its references resolved."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in open_refs:
            return {}
        return _reduced(definitions[name], definitions, (*open_refs, name))
    if "anyOf" in schema:
        return _united([_reduced(s, definitions, open_refs) for s in schema["anyOf"]])
    if "const" in schema:
        return {"enum": [schema["const"]]}
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    if isinstance(schema.get("additionalProperties"), bool):
        kept["additionalProperties"] = schema["additionalProperties"]
    if isinstance(schema.get("items"), dict):
        kept["items"] = _reduced(schema["items"], definitions, open_refs)
    if "properties" in schema:
        kept["properties"] = {
            name: _reduced(value, definitions, open_refs)
            for name, value in schema["properties"].items()
        }
    return kept


def _united(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the union of several schemas: exact for a type or null, else only their types."""
    types: list[str] = []
    for part in parts:
        known = part.get("type")
        if known is None:
            return {}
        types += [known] if isinstance(known, str) else known
    ruled = [part for part in parts if part.keys() - {"type"}]
    rules = ruled[0] if len(ruled) == 1 and "enum" not in ruled[0] else {}
    return {**rules, "type": sorted(set(types))}
