"""Operations: the handler of a path and method, its scopes, and its description."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import unquote
from uuid import UUID

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from jobq_http.database import Database, Fetch
from jobq_http.errors import ApiError
from jobq_http.limits import check_address, read_json
from jobq_http.standby import Standby
from jobq_http.values import RequestPart

T = TypeVar("T")

CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# The maximum lag of an answer of a standby, in seconds.
LAG: Final = "x-jobq-lag"
# Query parameters that are not texts.
TYPES: Final = {
    "limit": int, "max_buckets": int, "period_ms": int, "wait_ms": int, "newest": bool,
}  # fmt: skip
# Characters that remain escaped in a path until its parameters are read.
KEPT: Final = str.maketrans({"%": "%25", "/": "%2F"})
NUMBER: Final = re.compile("0*[1-9][0-9]{0,9}")
# The errors if an id in a path is not valid.
IDS: Final = {
    "batch_id": "BATCH_NOT_FOUND", "execution_id": "JOB_NOT_FOUND", "job_id": "JOB_NOT_FOUND",
}  # fmt: skip
CANONICAL: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer of an operation, for the specification; headers have descriptions."""

    description: str
    model: Any = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation of a path and method.

    Attributes:
        method: GET, POST, PUT or DELETE.
        path: the path with parameters in braces.
        handler: the function that answers a call.
        summary: one line, for the specification.
        scopes: the scopes that allow it: the first that the key has determines the database role;
            empty for everybody.
        answers: its successful answers, by status.
        errors: codes of its own errors, by status.
        tag: section of the specification.
        name: its name in the specification.
        body: type of the request's JSON, or None.
        query: type of the query string, or None; without a key, other parameters are ignored.
        headers: types of the headers that it reads.
        examples: requests, by name.
        is_long: whether it may exceed the server's time limit.
        may_lag: whether a standby may answer.
    """

    method: str
    path: str
    handler: Callable[[Call], Awaitable[Response]]
    summary: str
    scopes: tuple[str, ...]
    answers: Mapping[int, Answer]
    errors: Mapping[int, Sequence[str]] = field(default_factory=dict)
    tag: str = "jobs"
    name: str = ""
    body: Any = None
    query: Any = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    examples: Mapping[str, Any] = field(default_factory=dict)
    is_long: bool = False
    may_lag: bool = False

    @property
    def reads_body(self) -> bool:
        """Whether it reads a request's body, or checks that it is empty."""
        return self.body is not None or bool(self.scopes and self.method in CHANGING)

    @property
    def refuses_key(self) -> bool:
        """Whether it creates something without supporting the header Idempotency-Key."""
        return 201 in self.answers and "Idempotency-Key" not in self.headers


class Version(Struct):
    """The version of a document."""

    version: int


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

    async def fetch(self, function: str, **arguments: object) -> list[tuple[Any, ...]]:
        """Call a function of the database and return its rows."""
        return await self._database.fetch(self.role, function, self.acting_for, **arguments)

    def transaction(self) -> AbstractAsyncContextManager[Fetch]:
        """Open a transaction that sees one state of the database, and yield its calls."""
        return self._database.transaction(self.role, self.acting_for)

    async def check(self, inputs: Sequence[tuple[str, Any]]) -> None:
        """Refuse payloads, given with their kinds, that do not match the schemas."""
        await self._database.check(self.role, inputs)

    async def fetch_named(self, function: str, **arguments: object) -> list[dict[str, Any]]:
        """Call a function of the database and return its rows as dicts."""
        return await self._database.fetch_named(self.role, function, self.acting_for, **arguments)

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
        for name in given.keys() & TYPES.keys():
            given[name] = msgspec.convert(given[name], TYPES[name], strict=False)
        return msgspec.convert(given, model)

    def text(self, name: str) -> str:
        """Return a parameter of the path."""
        value: str = self.request.path_params[name]
        return value

    def given(self) -> dict[str, Any]:
        """Return the parameters of the path; an id that is no UUID is one of nothing."""
        given: dict[str, Any] = dict(self.request.path_params)
        for name in IDS.keys() & given.keys():
            given[name] = id_of(given[name], ApiError(IDS[name]))
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


def is_known(request: Request, etag: str) -> bool:
    """Whether the client already has this version."""
    if request.method not in {"GET", "HEAD"}:
        return False
    known = request.headers.get("if-none-match", "")
    return etag in (tag.strip().removeprefix("W/") for tag in known.split(",")) or known == "*"


def json(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer with encoded JSON."""
    return Response(body, status, headers, media_type="application/json")


def encoded(value: object, status: int = 200) -> Response:
    """Answer with a value as JSON."""
    return json(msgspec.json.encode(value), status)


def routes(operations: Sequence[Operation]) -> list[Route]:
    """Return one route for each path."""
    methods: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        methods.setdefault(operation.path, {})[operation.method] = operation
    return [Route(path, Endpoint(chosen)) for path, chosen in methods.items()]


def path_of(scope: Scope) -> str:
    """Return the path of a request; a slash that is part of a name remains escaped."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    if b"%" not in raw:
        path: str = scope["path"]
        return path
    segments = raw.decode("latin-1").split("/")
    return "/".join(unquote(segment).translate(KEPT) for segment in segments)


class Endpoint:
    """The ASGI application of one path."""

    def __init__(self, operations: Mapping[str, Operation]) -> None:
        self._operations = dict(operations)
        if "GET" in operations:
            self._operations["HEAD"] = operations["GET"]
        self._allow = ", ".join(self._operations)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the operation of its method."""
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise HTTPException(405, headers={"allow": self._allow})
        scope["jobq.operation"] = operation
        check_address(scope)
        given = scope["path_params"]
        scope["path_params"] = {name: unquote(value) for name, value in given.items()}
        key = scope.get("jobq.key")
        role = key.role(operation.scopes) if key and operation.scopes else "jobq_reader"
        state = scope["app"].state
        is_audited = "operate" in operation.scopes and scope["method"] in CHANGING
        standby: Standby | None = state.standby if operation.may_lag else None
        source = standby if standby and standby.is_fit else state
        call = Call(Request(scope, receive), source.database, role)
        if operation.refuses_key and "idempotency-key" in call.request.headers:
            raise ApiError("INVALID_REQUEST", "Idempotency-Key: only POST /jobs takes it")
        if is_audited:
            call.audit()
        async with asyncio.timeout(None if operation.is_long else state.patience):
            if operation.query is None and operation.scopes:
                call.query(RequestPart)
            if operation.reads_body and operation.body is None:
                await call.body(RequestPart)
            response = await operation.handler(call)
        if "etag" in response.headers and is_known(call.request, response.headers["etag"]):
            response = Response(status_code=304, headers={"etag": response.headers["etag"]})
        if source is standby:
            response.headers[LAG] = f"{standby.lag:.3f}"
        await response(scope, receive, send)
