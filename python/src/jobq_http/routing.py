"""The routes of operations: an ASGI application for each path."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from jobq_http.call import Call
from jobq_http.errors import ApiError
from jobq_http.limits import check_address
from jobq_http.operation import CHANGING, Operation
from jobq_http.standby import Standby
from jobq_http.values import RequestPart

# The maximum lag of an answer of a standby, in seconds.
LAG: Final = "x-jobq-lag"
# Characters that remain escaped in a path until its parameters are read.
KEPT: Final = str.maketrans({"%": "%25", "/": "%2F"})


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
        async with asyncio.timeout(None if operation.is_long else state.settings.patience):
            if operation.query is None and operation.scopes:
                call.query(RequestPart)
            if operation.reads_body and operation.body is None:
                await call.body(RequestPart)
            response = await operation.respond(call)
        if "etag" in response.headers and is_known(call.request, response.headers["etag"]):
            response = Response(status_code=304, headers={"etag": response.headers["etag"]})
        if source is standby:
            response.headers[LAG] = f"{standby.lag:.3f}"
        await response(scope, receive, send)


def is_known(request: Request, etag: str) -> bool:
    """Whether the client already has this version."""
    if request.method not in {"GET", "HEAD"}:
        return False
    known = request.headers.get("if-none-match", "")
    return etag in (tag.strip().removeprefix("W/") for tag in known.split(",")) or known == "*"
