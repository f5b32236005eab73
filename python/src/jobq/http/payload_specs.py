"""Payload specs: what endpoints take, as JSON Schemas."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from jobq.http import examples
from jobq.http.definitions import DefinitionName, Named, Sort, delivery
from jobq.http.errors import ApiError
from jobq.http.operation import text
from jobq.http.page import Next
from jobq.http.values import JsonMembers, JsonObject, Moment


class PayloadSpecChange(Named, kw_only=True):
    """The JSON Schema of what an endpoint takes."""

    schema: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_payload_spec() takes.

        Raises:
            ApiError: it is no JSON Schema; delivery could not use it.
        """
        schema = text(self.schema)
        with delivery():
            from jobq.delivery.input import schema_problem  # noqa: PLC0415 - an extra

            problem = schema_problem(msgspec.json.decode(schema))
        if problem:
            raise ApiError("INVALID_SCHEMA", problem)
        return {"schema": schema}


class NewPayloadSpec(PayloadSpecChange, kw_only=True):
    """The JSON Schema of what an endpoint takes, with its name."""

    name: DefinitionName


class PayloadSpec(Struct):
    """The JSON Schema of what endpoints take."""

    name: str
    schema: JsonObject
    version: int
    created_at: Moment
    updated_at: Moment


class PayloadSpecPage(Struct):
    """A page of payload specs, by name."""

    items: list[PayloadSpec]
    cursor: Next


OPERATIONS = Sort(
    "/payload-specs",
    "payload_spec",
    "a payload spec",
    NewPayloadSpec,
    PayloadSpecChange,
    PayloadSpec,
    PayloadSpecPage,
    examples.PAYLOAD_SPEC,
    ["INVALID_SCHEMA"],
).operations()
