"""Definitions: what payload specs, configs, secrets and endpoints have in common."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import psycopg
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from jobq.http.database import Condition
from jobq.http.errors import ApiError
from jobq.http.operation import Answer, Operation, encoded, json
from jobq.http.page import Paging, page
from jobq.http.values import JsonObject, Moment, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jobq.http.operation import Call

IfMatch = Annotated[
    str, Meta(description="The ETag of the version to change; 412 when it is another by now.")
]
DefinitionName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,127}$")]


SHOW: Final = "show_definition"
# What the database says when somebody else has made the next version at the same time.
CHANGED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)
ETAG: Final = {"ETag": "The version, in quotes; send it as If-Match to change only this one."}
IF_MATCH: Final = {"If-Match": IfMatch}


SHOWN: Final = Meta(
    description="As GET shows it; not looked at.", extra_json_schema={"readOnly": True}
)


class Version(Struct):
    """Just the version of a definition."""

    version: int


class PastVersion(Struct):
    """A version of a definition; of a secret only when it was put."""

    version: int
    document: JsonObject
    created_at: Moment


class Versions(Struct):
    """Every version of a definition, the newest first."""

    items: list[PastVersion]


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


def etag(item: bytes) -> str:
    """Return the entity tag of a definition."""
    return f'"{msgspec.json.decode(item, type=Version).version}"'


def check_version(wanted: str, rows: list[tuple[Any, ...]]) -> None:
    """Compare a definition with an If-Match header.

    Raises:
        ApiError: PRECONDITION_FAILED, since it is of another version.
    """
    [(item,)] = rows
    present = etag(item)
    if wanted.strip() != "*" and present not in [tag.strip() for tag in wanted.split(",")]:
        raise ApiError("PRECONDITION_FAILED", f"the version is {present}")


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of definitions, and its six operations.

    Attributes:
        path: where they are.
        table: what the database calls one.
        noun: what people call one.
        new: what creates one.
        change: what replaces one.
        document: what one looks like.
        page: what a page of them looks like.
        example: of a request.
        errors: that only putting one can have.
    """

    path: str
    table: str
    noun: str
    new: type[Named]
    change: type[Named]
    document: type[Struct]
    page: type[Struct]
    example: Mapping[str, Any]
    errors: Sequence[str] = ()

    async def create_definition(self, call: Call) -> Response:
        """Declare one that is not there yet."""
        body = await call.body(self.new)
        return versioned(await self._put(call, body, "create"), 201)

    async def update_definition(self, call: Call) -> Response:
        """Replace one. A job that exists keeps the version that it was made under."""
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
        present = {"type": self.table, "name": call.text("name")}
        condition = Condition(SHOW, present, partial(check_version, wanted))
        try:
            return await call.fetch_if(condition, function, **arguments)
        except CHANGED as error:
            raise ApiError("PRECONDITION_FAILED", "it has just changed") from error

    async def get_definition(self, call: Call) -> Response:
        """Return one."""
        [(item,)] = await call.fetch(SHOW, type=self.table, name=call.text("name"))
        return versioned(item)

    async def list_definitions(self, call: Call) -> Response:
        """Return a page of them, by name."""
        wanted = call.query(Paging)
        return page(
            call,
            await call.fetch(
                "page_definitions",
                type=self.table,
                after=wanted.position(call, DefinitionName),
                max_definitions=wanted.limit,
            ),
        )

    async def delete_definition(self, call: Call) -> Response:
        """Delete one that nothing depends on."""
        await self._change(call, "delete_definition", type=self.table, name=call.text("name"))
        return Response(status_code=204)

    async def list_definition_versions(self, call: Call) -> Response:
        """Return every version, the newest first; those of a deleted one stay."""
        rows = await call.fetch("list_versions", type=self.table, name=call.text("name"))
        items = [
            {"version": version, "document": Raw(document), "created_at": created_at}
            for version, document, created_at in rows
        ]
        return encoded({"items": items})

    def operations(self) -> tuple[Operation, ...]:
        """Return the six operations."""
        missing = f"{self.table.upper()}_NOT_FOUND"
        refused = {422: self.errors} if self.errors else {}
        if self.table in ("secret", "payload_spec"):
            refused = {**refused, 503: ["SECRET_KEY_MISSING", "DELIVERY_MISSING"]}
        taken = ["KIND_EXISTS"] if self.table == "endpoint" else []
        example = {"one": self.example}
        one = f"{self.path}/{{name}}"
        found = Answer("It.", self.document, headers=ETAG)
        return (
            Operation(
                "POST",
                self.path,
                self.create_definition,
                f"Create {self.noun}",
                ("operate",),
                {201: Answer("It is created.", self.document, headers=ETAG)},
                {409: ["DEFINITION_EXISTS", *taken], **refused},
                tag="definitions",
                body=self.new,
                examples=example,
            ),
            Operation(
                "GET",
                self.path,
                self.list_definitions,
                f"List {self.noun.split(' ', 1)[1]}s, by name",
                ("read", "operate"),
                {200: Answer("A page of them.", self.page)},
                tag="definitions",
                query=Paging,
                may_lag=True,
            ),
            Operation(
                "GET",
                one,
                self.get_definition,
                f"Look {self.noun} up",
                ("read", "operate"),
                {200: found},
                {404: [missing]},
                tag="definitions",
            ),
            Operation(
                "PUT",
                one,
                self.update_definition,
                f"Replace {self.noun}",
                ("operate",),
                {200: Answer("It is replaced.", self.document, headers=ETAG)},
                {404: [missing], 412: ["PRECONDITION_FAILED"], **refused},
                headers=IF_MATCH,
                tag="definitions",
                body=self.change,
                examples=example,
            ),
            Operation(
                "DELETE",
                one,
                self.delete_definition,
                f"Delete {self.noun}",
                ("operate",),
                {204: Answer("It is deleted.")},
                {404: [missing], 409: ["CONFLICT"], 412: ["PRECONDITION_FAILED"]},
                headers=IF_MATCH,
                tag="definitions",
            ),
            Operation(
                "GET",
                f"{one}/versions",
                self.list_definition_versions,
                f"List the versions of {self.noun}",
                ("read", "operate"),
                {200: Answer("Its versions.", Versions)},
                {404: [missing]},
                tag="definitions",
            ),
        )
