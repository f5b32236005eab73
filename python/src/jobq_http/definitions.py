"""Definitions: payload specs, configs and secrets, and what endpoints have in common with them."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec
import psycopg
from msgspec import Meta, defstruct
from starlette.responses import Response

from jobq.calls import definitions
from jobq_http import examples
from jobq_http.declared import section
from jobq_http.errors import ApiError
from jobq_http.operation import Answer, Operation, etag, json
from jobq_http.page import Paging
from jobq_http.values import (
    JsonMembers,
    JsonObject,
    Moment,
    Request,
    answer,
    answer_of,
    page_of,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jobq_http.operation import Call

IfMatch = Annotated[
    str, Meta(description="The ETag of the version to change; 412 if the version is another.")
]
IfNoneMatch = Annotated[str, Meta(description="The ETag of the cached version.")]
DefinitionName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,127}$")]


SHOW: Final = "show_definition"
# What the database says when somebody else has made the next version at the same time.
CHANGED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)
ETAG: Final = {"ETag": "The version, in quotes; send it as If-Match to change only this one."}
IF_MATCH: Final = {"If-Match": IfMatch}


SHOWN: Final = Meta(
    description="As returned by GET; ignored.", extra_json_schema={"readOnly": True}
)


Definition = answer(
    "Definition", "What every definition has.", "name version created_at updated_at"
)
PastVersion = answer_of(definitions.Version, "PastVersion")
Versions = page_of(
    "Versions", "A page of the versions of a definition, the newest first.", PastVersion
)


class Named(Request, kw_only=True):
    """A definition as a request has it; its name is in the path, or here.

    What GET shows and nobody can give stands here too, so that a PUT takes what GET gave.
    """

    name: DefinitionName | None = None
    version: Annotated[Annotated[float, Meta(ge=1, multiple_of=1)] | None, SHOWN] = None
    created_at: Annotated[Moment | None, SHOWN] = None
    updated_at: Annotated[Moment | None, SHOWN] = None

    def arguments(self) -> dict[str, Any]:
        """Return what the database's function takes but the name and the mode."""
        raise NotImplementedError


@contextmanager
def delivery() -> Iterator[None]:
    """Say so when the extra that makes deliveries is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ApiError("DELIVERY_MISSING", f"{error.name} is not installed") from error


def versioned(item: bytes, status: int = 200) -> Response:
    """Answer with a definition, its version as the ETag."""
    return json(item, status, {"etag": etag(item)})


def check_version(wanted: str, present: str) -> None:
    """Compare the ETag of a definition with an If-Match header.

    Raises:
        ApiError: PRECONDITION_FAILED, since it is of another version.
    """
    if wanted.strip() != "*" and present not in [tag.strip() for tag in wanted.split(",")]:
        raise ApiError("PRECONDITION_FAILED", f"the version is {present}")


@dataclass(frozen=True)
class Sort:
    """A sort of definitions, and its six operations.

    Attributes:
        path: where they are.
        table: what the database calls one.
        noun: what people call one.
        change: what replaces one.
        document: what one looks like.
        example: of a request.
        errors: that only putting one can have.
    """

    path: str
    table: str
    noun: str
    change: type[Named]
    document: type[msgspec.Struct]
    example: Mapping[str, Any]
    errors: str = ""

    @cached_property
    def new(self) -> type[Named]:
        """What creates one: what replaces one, with a name."""
        made: Any = defstruct(
            f"New{self.document.__name__}",
            [("name", DefinitionName)],
            bases=(self.change,),
            kw_only=True,
            namespace={"__doc__": self.change.__doc__},
        )
        return cast("type[Named]", made)

    async def create_definition(self, call: Call) -> Response:
        """Create a definition."""
        body = await call.body(self.new)
        return versioned(await self._put(call, body, "create"), 201)

    async def update_definition(self, call: Call) -> Response:
        """Replace a definition. Existing jobs keep their version."""
        body = await call.body(self.change)
        name = call.text("name")
        if body.name not in (None, name):
            raise ApiError("INVALID_REQUEST", "name: not the one in the path")
        body.name = name
        return versioned(await self._put(call, body, "update"))

    async def _put(self, call: Call, body: Named, mode: str) -> bytes:
        names = {self.table: body.name, "mode": mode}
        given = await asyncio.to_thread(body.arguments)
        [(item,)] = await self._change(call, f"put_{self.table}", **names, **given)
        return bytes(item)

    async def _change(self, call: Call, function: str, **arguments: Any) -> list[Any]:  # noqa: ANN401
        """Call a function, if what it changes is as If-Match says.

        Raises:
            ApiError: PRECONDITION_FAILED, since it is not.
        """
        wanted = call.request.headers.get("if-match")
        if wanted is None or "name" not in call.request.path_params:
            return await call.fetch(function, **arguments)
        try:
            async with call.transaction() as fetch:
                [(item,)] = await fetch(SHOW, type=self.table, name=call.text("name"))
                check_version(wanted, etag(item))
                return await fetch(function, **arguments)
        except CHANGED as error:
            raise ApiError("PRECONDITION_FAILED", "it has just changed") from error

    async def delete_definition(self, call: Call) -> Response:
        """Delete a definition that nothing depends on."""
        await self._change(call, "delete_definition", type=self.table, name=call.text("name"))
        return Response(status_code=204)

    def operations(self) -> tuple[Operation, ...]:
        """Return the six operations."""
        missing = f"{self.table.upper()}_NOT_FOUND"
        many = f"{self.noun.split(' ', 1)[1]}s"
        name = self.document.__name__
        refused = self.errors.replace("KIND_EXISTS", "")
        example = {"one": self.example}
        one = f"{self.path}/{{name}}"
        of = partial(section("definitions"), headers={})
        shown = Answer("It.", self.document, headers=ETAG)
        # fmt: off
        return (
            of(f"POST {self.path}", self.create_definition, f"Create {self.noun}", "operate",
               {201: shown}, body=self.new, examples=example,
               errors=f"DEFINITION_EXISTS {self.errors}"),
            of(f"GET {self.path}", "page_definitions",
               f"List {many}, by name", "read operate",
               page_of(f"{name}Page", f"A page of {many}, by name.", self.document),
               query=Paging, place=("after", DefinitionName, "max_definitions"), may_lag=True,
               fixed={"type": self.table}),
            of(f"GET {one}", SHOW, f"Get {self.noun}", "read operate",
               {200: shown, 304: Answer("The version is that of If-None-Match.")},
               headers={"If-None-Match": IfNoneMatch}, errors=missing, is_versioned=True,
               name="get_definition", fixed={"type": self.table}),
            of(f"PUT {one}", self.update_definition, f"Replace {self.noun}", "operate",
               {200: shown}, headers=IF_MATCH, body=self.change, examples=example,
               errors=f"{missing} PRECONDITION_FAILED {refused}"),
            of(f"DELETE {one}", self.delete_definition, f"Delete {self.noun}", "operate",
               headers=IF_MATCH, errors=f"{missing} CONFLICT PRECONDITION_FAILED"),
            of(f"GET {one}/versions", "list_versions", f"List the versions of {self.noun}",
               "read operate", Versions, query=Paging, fixed={"type": self.table},
               order=lambda row: -row["version"], errors=missing),
        )
        # fmt: on


class ConfigChange(Named, kw_only=True):
    """Values for the templates of endpoints."""

    values: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_config() takes."""
        return {"entries": text(self.values)}


class PayloadSpecChange(Named, kw_only=True):
    """The JSON Schema for the input of an endpoint."""

    schema: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_payload_spec() takes.

        Raises:
            ApiError: it is no JSON Schema; delivery could not use it.
        """
        schema = text(self.schema)
        with delivery():
            from jobq_delivery.json_schema.input import schema_problem  # noqa: PLC0415 - an extra

            problem = schema_problem(msgspec.json.decode(schema))
        if problem:
            raise ApiError("INVALID_SCHEMA", problem)
        return {"schema": schema}


class SecretChange(Named, kw_only=True):
    """A secret; the server encrypts its value and never shows it."""

    value: Annotated[str, Meta(max_length=65_536)]

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_secret() takes.

        Raises:
            SecretKeyError: this server has no key to encrypt it with.
        """
        with delivery():
            from jobq_delivery.keyring import Keyring  # noqa: PLC0415 - an extra

        keyring = Keyring.from_environment()
        ciphertext, key_id = keyring.encrypt(str(self.name), self.value)
        return {"ciphertext": ciphertext, "key_id": key_id}


Config = answer(
    "Config",
    "Values for the templates of endpoints.",
    "values",
    Definition,
    values=JsonObject,
)
PayloadSpec = answer(
    "PayloadSpec",
    "The JSON Schema for the input of endpoints.",
    "schema",
    Definition,
    schema=JsonObject,
)
Secret = answer("Secret", "A secret, without its value.", "", Definition)
DELIVERY = "SECRET_KEY_MISSING DELIVERY_MISSING"
# fmt: off
OPERATIONS = (
    *Sort("/payload-specs", "payload_spec", "a payload spec", PayloadSpecChange, PayloadSpec,
          examples.PAYLOAD_SPEC, f"INVALID_SCHEMA {DELIVERY}",
          ).operations(),
    *Sort("/configs", "config", "a config", ConfigChange, Config,
          examples.CONFIG, "TEMPLATE_RESOLUTION_FAILED").operations(),
    *Sort("/secrets", "secret", "a secret", SecretChange, Secret,
          examples.SECRET, DELIVERY).operations(),
)
# fmt: on
