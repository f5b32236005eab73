"""A call of a function of the database: its name, its arguments, and how to read the rows.

`jobq.client` runs it on a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Protocol, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types.json import JsonbLoader

from jobq.calls.arguments import TEXTS, as_given
from jobq.models import Json
from jobq.models.generated import INTERNAL

T = TypeVar("T")
C = TypeVar("C", "psycopg.Cursor[Any]", "psycopg.AsyncCursor[Any]")

# The functions that return one value and are called often: to select the value costs the server
# less than to read a record from a function.
SCALARS: Final = frozenset({"enqueue"})

_JSONB = psycopg.adapters.types["jsonb"].oid


class Caller(Protocol):
    """Runs calls and waits for their results, such as a `jobq.Client`."""

    def run(self, call: Call[T], /) -> T:
        """Run a call and return its result."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call of a function in the schema jobq or jobq_internal.

    Most functions of `jobq.calls` pass their ``locals()``, because they have the same parameters.
    """

    function: str
    arguments: Mapping[str, object]  # None means the default
    read: Callable[[list[Any]], T]  # converts the rows to the result
    row_factory: Any = tuple_row
    inputs: Sequence[tuple[str, Json]] = ()  # kinds and payloads, for schemas that clients check
    may_lag: bool = False  # whether a standby may answer, if the client has one
    from_now: str | None = None  # an argument that is a duration from now, by the database's clock

    @property
    def given(self) -> dict[str, object]:
        """The arguments that are not None, as parameters for PostgreSQL."""
        # A kind has the path of its dedup key.
        paths = {"dedup_key"} if self.function == "put_kind" else set()
        return as_given(self.arguments, TEXTS - paths)


@cache
def statement(function: str, parameters: tuple[str, ...], from_now: str | None = None) -> bytes:
    """Return the statement that calls a function with named parameters.

    The name has its schema unless that is jobq or jobq_internal.
    """
    schema = "jobq_internal" if function in INTERNAL else "jobq"
    path = function.split(".") if "." in function else [schema, function]
    arguments = [
        sql.SQL("{} => now() + {}" if name == from_now else "{} => {}").format(
            sql.Identifier(name), sql.Placeholder(name)
        )
        for name in parameters
    ]
    return (
        sql.SQL("select {}({})" if function in SCALARS else "select * from {}({})")
        .format(sql.Identifier(*path), sql.SQL(", ").join(arguments))
        .as_bytes()
    )


def reading_json(cursor: C) -> C:
    """Make a cursor decode jsonb, whatever a framework has set on its connection."""
    if cursor.adapters.get_loader(_JSONB, Format.TEXT) is not JsonbLoader:
        cursor.adapters.register_loader("jsonb", JsonbLoader)
    return cursor


def nothing(_rows: list[Any]) -> None:
    """Read the result of a function that returns void."""


def first(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the row factory makes
    """Read a result of one record."""
    return rows[0]


def column(rows: list[Any]) -> list[Any]:
    """Read a result of one value in each row."""
    return [row[0] for row in rows]


def scalar(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the column holds
    """Read a result of one value."""
    return rows[0][0]
