"""A call of one of the database's functions: which, with what, and how to read the rows.

A call says nothing about connections: `jobq.client` runs it, waiting or awaiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import Format
from psycopg.rows import tuple_row
from psycopg.types.json import JsonbLoader

from jobq.calls.arguments import as_given

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobq.models import Json

T = TypeVar("T")
C = TypeVar("C", "psycopg.Cursor[Any]", "psycopg.AsyncCursor[Any]")

# To select one value costs the server less than to read a record from a function: of those that
# return one, the function that is called often.
SCALARS: Final = frozenset({"enqueue"})

# In the schema jobq_internal: lists, and what only jobq's own programs call.
INTERNAL: Final = frozenset(
    """
    advance_clock batch_status confirm_jobs endpoint_stats get_delivery get_schedule list_attempts
    list_budgets list_ciphertexts list_declarations list_epochs list_inputs list_kinds
    list_leftovers list_limits list_logs list_moved list_payload_schemas list_queue_grants
    list_queues list_router_statements
    list_schedule_versions list_schedules list_shards list_undeclared_kinds list_undeliverable
    list_versions list_workers page_definitions preview_cron preview_schedule ready receive_jobs
    replica_lag rotate_secret schedule_status send_jobs show_definition show_graph
    """.split()
)

_JSONB = psycopg.adapters.types["jsonb"].oid


class Caller(Protocol):
    """What makes calls and waits for their answers, such as a `jobq.Client`."""

    def run(self, call: Call[T], /) -> T:
        """Make a call and return what it answers."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One call of a function in the schema jobq or jobq_internal.

    Attributes:
        function: its name.
        arguments: by the names of its parameters, which most functions that describe a call have
            too: their ``locals()``; None is left to the default.
        read: makes the answer of the rows.
        row_factory: makes rows, as psycopg's row factories do.
        inputs: kinds and payloads, to be checked against schemas that the database cannot
            enforce by itself.
        may_lag: whether a standby may answer, where the client has one.
        from_now: an argument that says how long from now, by the database's clock.
    """

    function: str
    arguments: Mapping[str, object]
    read: Callable[[list[Any]], T]
    row_factory: Any = tuple_row
    inputs: Sequence[tuple[str, Json]] = ()
    may_lag: bool = False
    from_now: str | None = None

    @property
    def given(self) -> dict[str, object]:
        """The arguments that are not left to their defaults, as PostgreSQL takes them.

        Raises:
            InvalidArgument: one does not have the form of its name.
        """
        return as_given(self.arguments)


@cache
def statement(function: str, parameters: tuple[str, ...], from_now: str | None = None) -> bytes:
    """Return the statement that calls a function with named parameters.

    Args:
        function: its name, with a schema before it where that is neither jobq nor jobq_internal.
        parameters: their names, in the order of the arguments.
        from_now: that of them, if any, which is given as a time from now.
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
    """Have a cursor read jsonb as values, whatever a framework has set on its connection."""
    if cursor.adapters.get_loader(_JSONB, Format.TEXT) is not JsonbLoader:
        cursor.adapters.register_loader("jsonb", JsonbLoader)
    return cursor


def nothing(_rows: list[Any]) -> None:
    """Read the answer of a function that returns void."""


def first(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the row factory makes
    """Read an answer of one record."""
    return rows[0]


def column(rows: list[Any]) -> list[Any]:
    """Read an answer of one value in each row."""
    return [row[0] for row in rows]


def scalar(rows: list[Any]) -> Any:  # noqa: ANN401 - whatever the column holds
    """Read an answer of one value."""
    return rows[0][0]
