"""JSON Schemas that the database cannot enforce, so clients do: those of payload specs.

A client reads the schema of a kind before each enqueue, so that it does not use an old one. For a
kind without a schema it asks again after a while. Input that was not checked, for example from
SQL, fails when it is delivered.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from jobq.calls.arguments import encode
from jobq.calls.definitions import of_delivery
from jobq.errors import PayloadInvalid
from jobq.models import Json


class InputSchema(Protocol):
    """A validator: `jobq_delivery.json_schema.input.InputSchema`."""

    def violation(self, value: Json) -> str | None:
        """Return what is wrong with a value, or None."""


LIFETIME: Final = 60.0
MOST: Final = 10_000
UNKNOWN: Final[tuple[bytes, InputSchema | None, float]] = (b"", None, 0.0)


class JsonSchemas:
    """The schemas of kinds that a client knows; most kinds have none."""

    def __init__(self, lifetime: float = LIFETIME) -> None:
        self._lifetime = lifetime  # seconds until a kind without a schema is looked up again
        self._known: dict[str, tuple[bytes, InputSchema | None, float]] = {}

    def unknown(self, kinds: Iterable[str]) -> list[str]:
        """Return the kinds to look up."""
        now = time.monotonic()
        # Other threads may forget kinds meanwhile.
        return [kind for kind in set(kinds) if self._known.get(kind, UNKNOWN)[2] <= now]

    def learn(self, kinds: Iterable[str], found: Mapping[str, Json]) -> None:
        """Store the schemas that were found for kinds."""
        if len(self._known) > MOST:
            self._known.clear()
        until = time.monotonic() + self._lifetime
        for kind in kinds:
            text = msgspec.json.encode(found[kind]) if kind in found else b""
            known, schema, _ = self._known.get(kind, UNKNOWN)
            if schema is None or known != text:
                schema = input_schema(found[kind]) if text else None
                self._known[kind] = text, schema, until if schema is None else 0.0

    def are_for(self, inputs: Iterable[tuple[str, Json]]) -> bool:
        """Whether any of these kinds has a schema, so that `check` takes time."""
        return any(self._of(kind) is not None for kind, _ in inputs)

    def _of(self, kind: str) -> InputSchema | None:
        return self._known.get(kind, UNKNOWN)[1]

    def check(self, inputs: Iterable[tuple[str, Json]]) -> None:
        """Check kinds and payloads.

        Raises:
            PayloadInvalid: a payload does not match its schema; the detail says which and why.
        """
        for number, (kind, payload) in enumerate(inputs, 1):
            schema = self._of(kind)
            if schema is None:
                continue
            value = {} if payload is None else msgspec.json.decode(encode(payload))
            problem = schema.violation(value)
            if problem is not None:
                raise PayloadInvalid(
                    "the payload does not match the schema of its kind",
                    sqlstate="JQ006",
                    detail=f"job {number}, kind {kind}: {problem}",
                )


def input_schema(schema: Json) -> InputSchema | None:
    """Return the validator of a schema; None if the extra ``delivery`` is not installed."""
    with suppress(ModuleNotFoundError):
        return of_delivery("json_schema.input").InputSchema(schema)  # type: ignore[no-any-return]
    return None
