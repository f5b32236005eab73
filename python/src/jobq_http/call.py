"""A request to an operation, and answers as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.inspect import BoolType, IntType, Metadata, type_info
from starlette.requests import Request
from starlette.responses import Response

from jobq_http.database import Database, Fetch
from jobq_http.errors import ApiError
from jobq_http.limits import read_json

T = TypeVar("T")

NUMBER: Final = re.compile("0*[1-9][0-9]{0,9}")
CANONICAL: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Version(Struct):
    """The version of a document."""

    version: int


@cache
def others_of(model: Any) -> dict[str, type]:  # noqa: ANN401 - any type of a query
    """Return the types of the parameters that are not texts: numbers and flags."""
    kinds = {IntType: int, BoolType: bool}
    found = {}
    for field in msgspec.structs.fields(model):
        kind = type_info(field.type)
        plain = type(kind.type if isinstance(kind, Metadata) else kind)
        if plain in kinds:
            found[field.name] = kinds[plain]
    return found


def etag(item: bytes) -> str:
    """Return the entity tag of a document."""
    return f'"{msgspec.json.decode(item, type=Version).version}"'


class Call:
    """One request to an operation.

    Attributes:
        request: Starlette's request.
        role: the database role.
        acting_for: the name for the audit; None if the call is not audited.
    """

    __slots__ = ("_database", "acting_for", "request", "role")

    def __init__(self, request: Request, database: Database, role: str) -> None:
        self.request = request
        self.role = role
        self.acting_for: str | None = None
        self._database = database

    def audit(self) -> None:
        """Let the audit name the key of this call, at the cost of a statement."""
        key = self.request.scope.get("jobq.key")
        self.acting_for = f"API key {key.name}" if key else None

    async def fetch(self, function: str, **arguments: object) -> list[Any]:
        """Call a function of the database and return its rows, named tuples."""
        return await self._database.fetch(self.role, function, self.acting_for, **arguments)

    def transaction(self) -> AbstractAsyncContextManager[Fetch]:
        """Open a transaction that sees one state of the database, and yield its calls."""
        return self._database.transaction(self.role, self.acting_for)

    async def check(self, inputs: Sequence[tuple[str, Any]]) -> None:
        """Refuse payloads, given with their kinds, that do not match the schemas."""
        await self._database.check(self.role, inputs)

    async def body(self, model: type[T]) -> T:
        """Return the request's JSON as a model.

        Raises:
            ApiError: it is too large.
            RecursionError: it is nested too deeply; the database limits payloads further.
            msgspec.MsgspecError: it is not JSON, or does not match the model.
        """
        bounds = self.request.app.state.bounds
        body = await read_json(self.request, bounds)
        return msgspec.json.decode(body or b"{}", type=model)

    async def stay_admitted(self) -> None:
        """Check that the key of a long request is still valid."""
        scope = self.request.scope
        address = (scope.get("client") or ("",))[0]
        await scope["app"].state.keys.look_up(scope["jobq.bearer"], address)

    def query(self, model: type[T]) -> T:
        """Return the query string's parameters as a model; refuse one that is given twice."""
        items = self.request.query_params.multi_items()
        given: dict[str, object] = dict(items)
        if len(given) < len(items):
            raise ApiError("INVALID_REQUEST", "a query parameter is given twice")
        for name, kind in others_of(model).items():  # type: ignore[arg-type]  # mypy's bug
            if name in given:
                given[name] = msgspec.convert(given[name], kind, strict=False)
        return msgspec.convert(given, model)

    def text(self, name: str) -> str:
        """Return a parameter of the path."""
        value: str = self.request.path_params[name]
        return value

    def given(self) -> dict[str, Any]:
        """Return the parameters of the path; an id that is no UUID is one of nothing."""
        given: dict[str, Any] = dict(self.request.path_params)
        for name, value in given.items():
            if name.endswith("_id"):
                missing = "BATCH_NOT_FOUND" if name == "batch_id" else "JOB_NOT_FOUND"
                given[name] = id_of(value, ApiError(missing))
        if "attempt" in given:
            if not NUMBER.fullmatch(given["attempt"]) or int(given["attempt"]) >= 2**31:
                raise ApiError("INVALID_REQUEST", "attempt: a number from 1")
            given["attempt"] = int(given["attempt"])
        return given

    def job_id(self) -> UUID:
        """Return the id of the job in the path."""
        job_id: UUID = self.given()["job_id"]
        return job_id


def id_of(text: str, missing: ApiError) -> UUID:
    """Return an id in a path; raise `missing` if it is no UUID, so that nothing has it."""
    if not CANONICAL.fullmatch(text):
        raise missing
    return UUID(text)


def json(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with encoded JSON."""
    return Response(body, status, headers, media_type="application/json")


def encoded(value: object, status: int = 200) -> Response:
    """Answer with a value as JSON."""
    return json(msgspec.json.encode(value), status)
