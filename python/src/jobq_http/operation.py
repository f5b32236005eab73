"""Operations by declaration: a request calls one function of the database, or a handler.

Parameters of the path and the query and members of the body become arguments by their names:
durations without ``_ms``, JSON as text. The answer takes its members from the returned row, or else
from the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final, get_args, get_origin

import msgspec
import psycopg
from msgspec import Raw
from starlette.responses import Response

from jobq_http.call import Call, encoded, etag, json
from jobq_http.errors import ApiError
from jobq_http.page import Paging, cut, page
from jobq_http.values import MILLISECOND, SPAN, RequestPart

CHANGING: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
# Errors of the database if another request has stored the next version at the same time.
CHANGED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)
# Parameters that take an id or a name.
TEXTS: Final = frozenset({"schedule"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer of an operation, for the specification; headers have descriptions."""

    description: str
    model: Any = None
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Operation:
    """The operation of a path and method.

    Attributes:
        route: its method and path, which has parameters in braces.
        does: the function that it calls, by default in the schema jobq; or a handler.
        summary: one line, for the specification.
        scope: the scopes that allow it: the first that the key has determines the database role;
            empty for everybody.
        answer: type of its successful answer; answers by status; or None for no content.
        tag: section of the specification.
        errors: codes of its own errors, except that nothing has an id in its path.
        status: status of its successful answer; 201 also if it, or an item, has ``created``.
        name: its name in the specification, by default that of what it does.
        body: type of the request's JSON, or None.
        query: type of the query string, or None; without a key, other parameters are ignored.
        headers: types of the headers that it reads.
        examples: requests, by name.
        is_long: whether it may exceed the server's time limit.
        may_lag: whether a standby may answer.
        fixed: constant arguments of the function.
        names: names of arguments that differ from those in the request.
        columns: names of members of the answer that differ from those of the columns.
        always: constant members of the answer, or of each of its items.
        value: name of the member that is the function's single value.
        place: of a list, the function's parameter for its start, the type of that, and the
            parameter for the number of items.
        order: of a list that the function returns as a whole, the sort key of an item.
        is_versioned: whether the answer's version is its ETag.
        in_thread: whether to compute the arguments of the body outside of the event loop.
        guards: the type of the definition in the path, whose version the header If-Match names.
        absent: the code of the error if the function returns null.
        then: the function whose row is the answer, and its parameter: a path's parameter, or the
            value of the first function.
    """

    route: InitVar[str]
    does: Any
    summary: str
    scope: InitVar[str]
    answer: InitVar[Any] = None
    _: KW_ONLY
    tag: str
    errors: str = ""
    status: int = 200
    name: str = ""
    body: Any = None
    query: type[RequestPart] | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    examples: Mapping[str, Any] = field(default_factory=dict)
    is_long: bool = False
    may_lag: bool = False
    fixed: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    always: Mapping[str, object] = field(default_factory=dict)
    value: str | None = None
    place: tuple[str, Any, str] | None = None
    order: Callable[[Mapping[str, Any]], Any] | None = None
    is_versioned: bool = False
    in_thread: bool = False
    guards: str | None = None
    absent: str | None = None
    then: tuple[str, str] | None = None

    def __post_init__(self, route: str, scope: str, answer: Any) -> None:  # noqa: ANN401 - any type
        self.method, self.path = route.split()
        self.scopes = tuple(scope.split())
        self.name = self.name or getattr(self.does, "__name__", str(self.does)).split(".")[-1]
        if answer is None:
            self.status = 204
            answer = Answer("It is done.")
        if not isinstance(answer, dict):
            answer = {self.status: answer}
        self.answers = {
            status: each if isinstance(each, Answer) else Answer(meaning(each), each)
            for status, each in answer.items()
        }
        self.model = next(iter(self.answers.values())).model

    @property
    def reads_body(self) -> bool:
        """Whether it reads a request's body, or checks that it is empty."""
        return self.body is not None or bool(self.scopes and self.method in CHANGING)

    @property
    def refuses_key(self) -> bool:
        """Whether it creates something without supporting the header Idempotency-Key."""
        return 201 in self.answers and "Idempotency-Key" not in self.headers

    async def respond(self, call: Call) -> Response:
        """Answer a request."""
        if not isinstance(self.does, str):
            answer: Response = await self.does(call)
            return answer
        given: dict[str, Any] = call.given()
        wanted = call.query(self.query) if self.query else None
        arguments = await self._arguments(call, given, wanted)
        found = await self._fetch(call, arguments)
        if self.absent and only_value(found) is None:
            raise ApiError(self.absent, ", ".join(f"{n} {v}" for n, v in call.given().items()))
        if self.then:
            function, name = self.then
            given.setdefault(name, only_value(found))
            found = await call.fetch(function, **{name: given[name]})
        if isinstance(wanted, Paging) and not self.order:
            return page(call, found)
        rows = [
            {self.columns.get(name, name): value for name, value in row._asdict().items()}
            for row in found
        ]
        if isinstance(wanted, Paging) and self.order:
            kind, document = item_of(self.model, "items"), only_value(found)
            items = (
                msgspec.json.decode(document)
                if isinstance(document, bytes)
                else [picked(kind, row) for row in rows]
            )
            return cut(call, wanted, items, self.order)
        return self._answer(given, rows, only_value(found))

    async def _arguments(
        self, call: Call, given: dict[str, Any], wanted: RequestPart | None
    ) -> dict[str, Any]:
        """Return the arguments of the function, and add what the request says to `given`."""
        arguments = {**given, **self.fixed}
        if wanted is not None:
            given |= wanted.given()
            arguments |= wanted.arguments()
        if self.body is not None:
            body = await call.body(self.body)
            join(body, given)
            if inputs := body.inputs(given.get("name")):
                await call.check(inputs)
            given |= body.given()
            own = body.arguments
            arguments |= await asyncio.to_thread(own) if self.in_thread else own()
        if isinstance(wanted, Paging):
            for name in Paging.__struct_fields__:
                arguments.pop(name, None)
            if self.place:
                start, kind, size = self.place
                arguments |= {start: wanted.position(call, kind), size: wanted.limit}
        arguments = {self.names.get(name, name): value for name, value in arguments.items()}
        return arguments | {name: str(arguments[name]) for name in TEXTS & arguments.keys()}

    async def _fetch(self, call: Call, arguments: dict[str, Any]) -> list[Any]:
        """Call the function, if the definition has the version of If-Match."""
        wanted = call.request.headers.get("if-match")
        if self.guards is None or wanted is None:
            return await call.fetch(self.does, **arguments)
        try:
            async with call.transaction() as fetch:
                shown = await fetch("show_definition", type=self.guards, name=call.text("name"))
                check_version(wanted, etag(only_value(shown)))
                return await fetch(self.does, **arguments)
        except CHANGED as error:
            raise ApiError("PRECONDITION_FAILED", "it has just changed") from error

    def _answer(self, given: dict[str, Any], rows: list[dict[str, Any]], only: Any) -> Response:  # noqa: ANN401 - any column's
        if self.model is None:
            return Response(status_code=self.status)
        if self.value is None and isinstance(only, bytes):
            return json(only, self.status, {"etag": etag(only)} if self.is_versioned else None)
        names = self.model.__struct_fields__
        kind = item_of(self.model, names[0]) if len(names) == 1 else None
        if kind is not None:
            items = [picked(kind, {**row, **self.always}) for row in rows]
            return encoded({names[0]: items}, self._status(*items))
        [row] = rows
        given |= {self.names.get(name, name): value for name, value in given.items()}
        # Members of the request that are not given are null, if the answer must have them.
        asked = set(self.body.__struct_fields__) if self.body else set()
        said = dict.fromkeys(required(self.model) & asked) | given | row
        said |= {**({self.value: only} if self.value else {}), **self.always}
        answer = picked(self.model, said)
        return encoded(answer, self._status(answer))

    def _status(self, *items: Any) -> int:  # noqa: ANN401 - of objects or values
        """Return the status of an answer with these items."""
        is_new = any(isinstance(item, dict) and item.get("created") for item in items)
        return 201 if is_new else self.status


def join(body: RequestPart, given: Mapping[str, Any]) -> None:
    """Set the members of a body that the path names too; refuse another value."""
    for name in given.keys() & set(body.__struct_fields__):
        if getattr(body, name) not in (None, given[name]):
            raise ApiError("INVALID_REQUEST", f"{name}: not the one in the path")
        setattr(body, name, given[name])


def check_version(wanted: str, present: str) -> None:
    """Compare the ETag of a definition with an If-Match header."""
    if wanted.strip() != "*" and present not in [tag.strip() for tag in wanted.split(",")]:
        raise ApiError("PRECONDITION_FAILED", f"the version is {present}")


def only_value(rows: list[Any]) -> Any:  # noqa: ANN401 - any column's
    """Return the value of a single row with a single column, else None."""
    return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None


@cache
def required(model: Any) -> frozenset[str]:  # noqa: ANN401 - any type
    """Return the names of the members that a type must have."""
    return frozenset(f.name for f in msgspec.structs.fields(model) if f.required)


def item_of(model: Any, name: str) -> Any:  # noqa: ANN401 - any type
    """Return the type of the items of a member that is a list, else None."""
    kind = next(f.type for f in msgspec.structs.fields(model) if f.name == name)
    return get_args(kind)[0] if get_origin(kind) is list else None


def picked(model: Any, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any type
    """Return the members of a type from a row, ready for JSON; of a simple type, the value."""
    if not hasattr(model, "__struct_fields__"):
        [value] = row.values()
        return value
    found = {}
    for name in model.__struct_fields__:
        column = name if name in row else name.removesuffix(SPAN)
        if column in row:
            value = row[column]
            if isinstance(value, bytes):
                value = Raw(value)
            elif isinstance(value, timedelta):
                value = round(value / MILLISECOND)
            elif isinstance(value, Decimal):
                value = float(value)
            found[name] = value
    return found


def meaning(model: Any) -> str:  # noqa: ANN401 - any type
    """Return the description of a type, its first line."""
    return (model.__doc__ or "It.").strip().splitlines()[0]


def section(tag: str) -> Callable[..., Operation]:
    """Return a function that declares operations of a section of the specification."""
    return partial(Operation, tag=tag)
