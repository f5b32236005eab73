"""Operations by declaration: a path calls one function of the database with what is given.

The path's parameters, the query and the body become the arguments of their names: lengths of
time without their ``_ms``, JSON as text. The answer takes its members from the row that comes
back, and else from what was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import msgspec
from msgspec import Raw
from starlette.responses import Response

from jobq_http.errors import status_of
from jobq_http.operation import Answer, Operation, encoded, etag, json
from jobq_http.page import Paging, cut, page
from jobq_http.values import MILLISECOND, SPAN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobq_http.operation import Call
    from jobq_http.values import Said

__all__ = ["section"]

# Parameters that take an id as text, since they take a name too.
TEXTS: Final = frozenset({"schedule"})
# The attributes of `Declared` that are not those of every operation.
HOW: Final = frozenset(
    {"fixed", "names", "columns", "says", "value", "place", "order", "is_versioned"}
)


@dataclass(frozen=True, slots=True)
class Declared:
    """What calls a function.

    Attributes:
        function: its name, in the schema jobq where it names none.
        model: what the answer is; None for no content.
        status: of the answer; 201 too when it says ``created``.
        body: what the request's JSON must be.
        query: what the query string must be.
        fixed: arguments that are always the same.
        names: what the function calls what is given, where that has another name.
        columns: what the answer calls columns, where they have another name.
        says: members of the answer, or of each item of it, that are always the same.
        value: the member that is the function's one value.
        place: of a list the function's parameter for where it begins, the type of that, and its
            parameter for how many items it returns.
        order: of a list that the function returns as a whole, as rows or as one document, by
            what it is ordered.
        is_versioned: whether the answer's version is its ETag.
    """

    function: str
    model: Any
    status: int
    body: type[Said] | None
    query: type[Said] | None
    fixed: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    says: Mapping[str, object] = field(default_factory=dict)
    value: str | None = None
    place: tuple[str, Any, str] | None = None
    order: Callable[[Mapping[str, Any]], Any] | None = None
    is_versioned: bool = False

    async def __call__(self, call: Call) -> Response:
        """Answer a request."""
        given: dict[str, Any] = call.given()
        arguments = {**given, **self.fixed}
        wanted = call.query(self.query) if self.query else None
        body = await call.body(self.body) if self.body else None
        if body is not None and (inputs := body.inputs(given.get("name"))):
            await call.check(inputs)
        for part in (wanted, body):
            if part is not None:
                given |= part.given()
                arguments |= part.arguments()
        for name in Paging.__struct_fields__ if isinstance(wanted, Paging) else ():
            arguments.pop(name, None)
        if isinstance(wanted, Paging) and self.place:
            start, kind, size = self.place
            arguments |= {start: wanted.position(call, kind), size: wanted.limit}
        found = await call.fetch_named(self.function, **self._renamed(arguments))
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

    def _renamed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        renamed = {self.names.get(name, name): value for name, value in arguments.items()}
        return {k: str(v) if k in TEXTS else v for k, v in renamed.items()}

    def _answer(self, given: dict[str, Any], rows: list[dict[str, Any]]) -> Response:
        if self.model is None:
            return Response(status_code=self.status)
        only = only_value(rows)
        if self.value is None and isinstance(only, bytes):
            return json(only, self.status, {"etag": etag(only)} if self.is_versioned else None)
        names = self.model.__struct_fields__
        kind = item_of(self.model, names[0]) if len(names) == 1 else None
        if kind is not None:
            items = [picked(kind, {**row, **self.says}) for row in rows]
            return encoded({names[0]: items}, self.status)
        [row] = rows
        given |= {self.names.get(name, name): value for name, value in given.items()}
        said = {**given, **row, **({self.value: only} if self.value else {}), **self.says}
        answer = picked(self.model, said)
        return encoded(answer, 201 if answer.get("created") else self.status)


def only_value(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - any column's
    """Return the value of one row with one column; None where there are others."""
    return next(iter(rows[0].values())) if len(rows) == 1 and len(rows[0]) == 1 else None


def item_of(model: Any, name: str) -> Any:  # noqa: ANN401 - any type
    """Return of what a member is a list; None where it is none."""
    kind = next(f.type for f in msgspec.structs.fields(model) if f.name == name)
    return get_args(kind)[0] if get_origin(kind) is list else None


def picked(model: Any, row: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any type
    """Return of a row what a model has, as JSON has it; of other types the row's one value."""
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
        does: the function of the database that it calls, or a handler for what is special.
        summary: one line, for the specification.
        scopes: who may ask; the first that the key has decides the database role.
        answer: the type of its good answer; answers by status; or None for no content.
        errors: the codes of the errors that are its own.
        status: of its good answer.
        options: the other attributes of `Declared` and of `Operation`.
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
    how = {name: options.pop(name) for name in HOW & options.keys()}
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
    """Return a good answer that its type describes."""
    return Answer((model.__doc__ or "It.").strip().splitlines()[0], model)


def section(tag: str) -> Callable[..., Operation]:
    """Return what declares the operations of a section of the specification."""
    return partial(operation, tag=tag)
