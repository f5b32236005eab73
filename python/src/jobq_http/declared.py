"""Operations by declaration: a request calls one function of the database.

Parameters of the path and the query and members of the body become arguments by their names:
durations without ``_ms``, JSON as text. The answer takes its members from the returned row, or else
from the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from decimal import Decimal
from functools import cache, partial
from typing import Any, Final, get_args, get_origin

import msgspec
import psycopg
from msgspec import Raw
from starlette.responses import Response

from jobq_http.errors import ApiError, status_of
from jobq_http.operation import Answer, Call, Operation, encoded, etag, json
from jobq_http.page import Paging, cut, page
from jobq_http.values import MILLISECOND, SPAN, RequestPart

# Errors of the database if another request has stored the next version at the same time.
CHANGED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.UniqueViolation)
# Parameters that take an id or a name.
TEXTS: Final = frozenset({"schedule"})


@dataclass(frozen=True, slots=True)
class Declared:
    """A handler that calls one function.

    Attributes:
        function: its name, by default in the schema jobq.
        model: type of the answer; None for no content.
        status: status of the answer; 201 also if its member ``created`` is true.
        body: type of the request's JSON.
        query: type of the query string.
        fixed: constant arguments.
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

    function: str
    model: Any
    status: int
    body: type[RequestPart] | None
    query: type[RequestPart] | None
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

    async def __call__(self, call: Call) -> Response:
        """Answer a request."""
        given: dict[str, Any] = call.given()
        arguments = {**given, **self.fixed}
        wanted = call.query(self.query) if self.query else None
        body = await call.body(self.body) if self.body else None
        if wanted is not None:
            given |= wanted.given()
            arguments |= wanted.arguments()
        if body is not None:
            join(body, given)
            if inputs := body.inputs(given.get("name")):
                await call.check(inputs)
            given |= body.given()
            own = body.arguments
            arguments |= await asyncio.to_thread(own) if self.in_thread else own()
        for name in Paging.__struct_fields__ if isinstance(wanted, Paging) else ():
            arguments.pop(name, None)
        if isinstance(wanted, Paging) and self.place:
            start, kind, size = self.place
            arguments |= {start: wanted.position(call, kind), size: wanted.limit}
        arguments = {self.names.get(name, name): value for name, value in arguments.items()}
        arguments |= {name: str(arguments[name]) for name in TEXTS & arguments.keys()}
        found = await self._fetch(call, arguments)
        if self.absent and only_value(found) is None:
            raise ApiError(self.absent, ", ".join(f"{n} {v}" for n, v in call.given().items()))
        if self.then:
            function, name = self.then
            given.setdefault(name, only_value(found))
            found = await call.fetch_named(function, **{name: given[name]})
        rows = [{self.columns.get(name, name): row[name] for name in row} for row in found]
        if isinstance(wanted, Paging) and self.order:
            kind, document = item_of(self.model, "items"), only_value(rows)
            items = (
                msgspec.json.decode(document)
                if isinstance(document, bytes)
                else [picked(kind, row) for row in rows]
            )
            return cut(call, wanted, items, self.order)
        if isinstance(wanted, Paging):
            return page(call, [(row["item"], row["cursor"]) for row in rows])
        return self._answer(given, rows)

    async def _fetch(self, call: Call, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """Call the function, if the definition has the version of If-Match."""
        wanted = call.request.headers.get("if-match")
        if self.guards is None or wanted is None:
            return await call.fetch_named(self.function, **arguments)
        try:
            async with call.transaction() as fetch:
                shown = await fetch("show_definition", type=self.guards, name=call.text("name"))
                check_version(wanted, etag(only_value(shown)))
                return await fetch(self.function, **arguments)
        except CHANGED as error:
            raise ApiError("PRECONDITION_FAILED", "it has just changed") from error

    def _answer(self, given: dict[str, Any], rows: list[dict[str, Any]]) -> Response:
        if self.model is None:
            return Response(status_code=self.status)
        only = only_value(rows)
        if self.value is None and isinstance(only, bytes):
            return json(only, self.status, {"etag": etag(only)} if self.is_versioned else None)
        names = self.model.__struct_fields__
        kind = item_of(self.model, names[0]) if len(names) == 1 else None
        if kind is not None:
            items = [picked(kind, {**row, **self.always}) for row in rows]
            return encoded({names[0]: items}, self.status)
        [row] = rows
        given |= {self.names.get(name, name): value for name, value in given.items()}
        # Members of the request that are not given are null, if the answer must have them.
        asked = set(self.body.__struct_fields__) if self.body else set()
        said = dict.fromkeys(required(self.model) & asked) | given | row
        said |= {**({self.value: only} if self.value else {}), **self.always}
        answer = picked(self.model, said)
        return encoded(answer, 201 if answer.get("created") else self.status)


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


def only_value(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - any column's
    """Return the value of a single row with a single column, else None."""
    return next(iter(rows[0].values())) if len(rows) == 1 and len(rows[0]) == 1 else None


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


def operation(
    route: str,
    does: str | Callable[[Call], Any],
    summary: str,
    scopes: str,
    answer: Any = None,  # noqa: ANN401 - any type
    *,
    errors: str = "",
    status: int = 200,
    **options: Any,  # noqa: ANN401 - the other attributes of Operation
) -> Operation:
    """Declare an operation.

    Args:
        route: its method and path.
        does: the function of the database that it calls, or a handler.
        summary: one line, for the specification.
        scopes: the scopes that allow it; the first that the key has determines the database role.
        answer: the type of its successful answer; answers by status; or None for no content.
        errors: codes of its own errors.
        status: status of its successful answer.
        options: other attributes of `Declared` and `Operation`.
    """
    method, path = route.split()
    if answer is None:
        status = 204
        answers = {204: Answer("It is done.")}
    elif isinstance(answer, dict):
        answers = {n: a if isinstance(a, Answer) else answered(a) for n, a in answer.items()}
        answer = next(iter(answers.values())).model
    else:
        answers = {status: answered(answer)}
    of_status: dict[int, list[str]] = {}
    for code in errors.split():
        of_status.setdefault(status_of(code), []).append(code)
    own = {each.name for each in fields(Declared)} - {"body", "query"}
    how = {name: options.pop(name) for name in own & options.keys()}
    if isinstance(does, str):
        how |= {name: options.get(name) for name in ("body", "query")}
        handler: Any = Declared(does, answer, status, **how)
        name = does.split(".")[-1]
    else:
        handler, name = does, does.__name__
    options = {"name": name, **options}
    return Operation(
        method, path, handler, summary, tuple(scopes.split()), answers, of_status, **options
    )


def answered(model: Any) -> Answer:  # noqa: ANN401 - any type
    """Return a successful answer, described by its type."""
    return Answer((model.__doc__ or "It.").strip().splitlines()[0], model)


def section(tag: str) -> Callable[..., Operation]:
    """Return a function that declares operations of a section of the specification."""
    return partial(operation, tag=tag)
