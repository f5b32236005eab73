"""Calls of jobq's functions: one pool of connections for each database role."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
import psycopg
from psycopg import IsolationLevel
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row

from jobq.calls.call import statement
from jobq.client.json_schemas import JsonSchemas
from jobq.database import OWN_CALLS, AsyncPool, confirmed, renewed
from jobq_operations.reachability import ready

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from psycopg import AsyncConnection, AsyncCursor
    from psycopg.abc import Buffer

T = TypeVar("T")
Fetch: TypeAlias = "Callable[..., Awaitable[list[tuple[Any, ...]]]]"

PATIENCE_OF_READY = 0.5  # seconds
# Seconds that a pool tries in vain before it waits for the next call to ask: short, or after
# an outage calls fail while it still waits for the end of a pause, and /ready says ok.
RECONNECTING = 0.5
CHECKS_AT_A_TIME = 2  # threads that check payloads, each for 2 s of the CPU at most
ROLES = ("jobq_producer", "jobq_worker", "jobq_operator", "jobq_reader")
LOG_IN = ""  # in place of a role: what the log-in may by itself


class Database:
    """A database with jobq in it.

    Every connection acts as one of jobq's roles (the setting `role`, given when it is
    opened), so that a route can do in the database what its scope allows and no more.
    The user of the URL must be a member of all of them.

    Args:
        url: a PostgreSQL connection string.
        pool_size: at most as many connections for each role.
        patience: seconds that a call waits for a connection, and may then run.
        roles: what connections act as; LOG_IN is the user of the URL itself.
    """

    def __init__(
        self, url: str, pool_size: int, patience: float, roles: Sequence[str] = ROLES
    ) -> None:
        self._pools = {
            role: AsyncPool(
                conninfo_for(url, role, patience),
                kwargs={"autocommit": True, "prepare_threshold": 1},
                configure=configure,
                min_size=1,
                max_size=pool_size,
                timeout=min(patience, 5.0),
                reconnect_timeout=RECONNECTING,
                name=role,
                open=False,
            )
            for role in roles
        }
        self._schemas = JsonSchemas(lifetime=1.0)
        self._url = conninfo_for(url, "jobq_reader", patience)
        self._trying = asyncio.Lock()
        self._checking = asyncio.Semaphore(CHECKS_AT_A_TIME)

    async def open(self) -> None:
        """Start connecting; does not wait for the database to answer."""
        for pool in self._pools.values():
            await pool.open(wait=False)

    async def close(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            await pool.close()

    @asynccontextmanager
    async def _connection(
        self, role: str, acting_for: str | None
    ) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection of a role, whose next call the audit lays to somebody."""
        async with self._pools[role].connection() as connection:
            with renewed(connection), confirmed(connection):
                if acting_for is None:
                    yield connection
                    return
                # One transaction and one round trip: both go out before an answer comes.
                async with connection.pipeline():
                    await connection.execute("select jobq_http.act_for(%s)", [acting_for])
                    yield connection

    async def fetch(
        self, role: str, function: str, acting_for: str | None = None, **arguments: object
    ) -> list[tuple[Any, ...]]:
        """Call a function as a role and return its rows; JSON comes as it is written.

        Args:
            role: one of jobq's four roles.
            function: its name in the schema jobq.
            acting_for: whom the audit is to name beside the database's user.
            **arguments: by the names of its parameters.

        Raises:
            psycopg.Error: the function refused, or the database did not answer.
        """
        async with self._connection(role, acting_for) as connection:
            return await called(connection.cursor(), function, arguments)

    async def fetch_named(
        self, role: str, function: str, acting_for: str | None = None, **arguments: object
    ) -> list[dict[str, Any]]:
        """Call a function as fetch() does, and return its rows by their columns."""
        async with self._connection(role, acting_for) as connection:
            return await called(connection.cursor(row_factory=dict_row), function, arguments)

    @asynccontextmanager
    async def transaction(self, role: str, acting_for: str | None) -> AsyncIterator[Fetch]:
        """Lend the calls of one transaction: what it has read stays true until it commits.

        Raises:
            SerializationFailure: another transaction has changed what this one changes.
            psycopg.Error: as fetch().
        """
        async with self._pools[role].connection() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            try:
                with renewed(connection), confirmed(connection):
                    async with connection.transaction():
                        if acting_for is not None:
                            await connection.execute("select jobq_http.act_for(%s)", [acting_for])
                        yield lambda function, **arguments: called(
                            connection.cursor(), function, arguments
                        )
            finally:
                if not connection.closed:
                    await connection.set_isolation_level(None)

    async def ready(self) -> tuple[str, str]:
        """Return whether jobs can be taken in (queue) and looked up (repo), and why not.

        Where the pool has no connection to give, the database is asked, or tried, on
        another, since the pool does not say why; and where one may only read, since it may
        be older than the reason.
        """
        with suppress(psycopg.Error):
            async with self._pools["jobq_reader"].connection(PATIENCE_OF_READY) as connection:
                cursor = await connection.execute(statement("ready", ()))
                [(queue, repo)] = await cursor.fetchall()
                if queue == "ok":
                    return queue, repo
                connection.pgconn.finish()
        async with self._trying:
            return await asyncio.to_thread(ready, self._url)

    async def check(self, role: str, inputs: Sequence[tuple[str, Any]]) -> None:
        """Refuse payloads that do not fit the schemas that the database cannot enforce.

        Args:
            role: one of jobq's roles that enqueue.
            inputs: kinds and payloads.

        Raises:
            PayloadInvalid: one does not fit.
            psycopg.Error: the database did not answer.
        """
        kinds = self._schemas.unknown(kind for kind, _ in inputs)
        if kinds:
            rows = await self.fetch(role, "list_payload_schemas", kinds=kinds)
            found = {kind: msgspec.json.decode(schema) for kind, schema in rows}
            self._schemas.learn(kinds, found)
        if self._schemas.are_for(inputs):
            async with self._checking:
                await asyncio.to_thread(self._schemas.check, inputs)


async def called(cursor: AsyncCursor[T], function: str, arguments: Mapping[str, object]) -> list[T]:
    """Call a function and return its rows."""
    await cursor.execute(statement(function, tuple(arguments)), arguments)
    return await cursor.fetchall()


def conninfo_for(url: str, role: str, patience: float) -> str:
    """Return a connection string whose sessions act as a role, in UTC."""
    given = conninfo_to_dict(url).get("options") or ""
    acting = f"-c role={role} " if role else ""
    settings = f"{acting}-c timezone=UTC -c statement_timeout={patience:.0f}s"
    options = f"{given} {settings} {OWN_CALLS}".strip()
    return make_conninfo(url, options=options, application_name=f"jobq http {role}".rstrip())


class Verbatim(Loader):
    """Leaves JSON as it is written, so that no digit of a number is lost."""

    def load(self, data: Buffer) -> bytes:
        """Return the text of a value."""
        return bytes(data)


async def configure(connection: AsyncConnection[Any]) -> None:
    """Prepare a new connection."""
    connection.adapters.register_loader("json", Verbatim)
    connection.adapters.register_loader("jsonb", Verbatim)
