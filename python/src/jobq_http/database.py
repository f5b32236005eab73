"""Calls of jobq's functions: one pool of connections for each database role."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeAlias

import msgspec
import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row

from jobq.calls.call import statement
from jobq.client.json_schemas import JsonSchemas
from jobq.database import OWN_CALLS, AsyncPool, confirmed, renewed
from jobq_operations.reachability import ready

Fetch: TypeAlias = "Callable[..., Awaitable[list[Any]]]"

PATIENCE_OF_READY = 0.5  # seconds
# How long a pool tries to reconnect before it waits for the next call. If it were longer, calls
# would fail after an outage during its pause, while /ready returns ok.
RECONNECTING = 0.5
CHECKS_AT_A_TIME = 2  # threads that check payloads, each for at most 2 s of CPU time
ROLES = ("jobq_producer", "jobq_worker", "jobq_operator", "jobq_reader")
LOG_IN = ""  # instead of a role: the rights of the login itself


class Database:
    """A database with jobq installed.

    Every connection acts as one of jobq's roles (the setting `role`), so that the database limits
    an operation to the rights of its scope. The user of the URL must be a member of all roles.

    Args:
        url: a PostgreSQL connection string.
        pool_size: maximum number of connections per role.
        patience: seconds to wait for a connection, and timeout of a call.
        roles: roles of connections; LOG_IN means the user of the URL.
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
        """Start connecting, without waiting."""
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
        """Yield a connection of a role whose next call is audited under a name."""
        async with self._pools[role].connection() as connection:
            with renewed(connection), confirmed(connection):
                if acting_for is None:
                    yield connection
                    return
                # One transaction and one round trip.
                async with connection.pipeline():
                    await connection.execute("select jobq_http.act_for(%s)", [acting_for])
                    yield connection

    async def fetch(
        self, role: str, function: str, acting_for: str | None = None, **arguments: object
    ) -> list[Any]:
        """Call a function as a role and return its rows, named tuples with JSON as bytes.

        Args:
            role: the role.
            function: its name, by default in the schema jobq.
            acting_for: name for the audit beside the database's user.
            **arguments: its arguments by name.

        Raises:
            psycopg.Error: the function raised an error, or the database does not respond.
        """
        async with self._connection(role, acting_for) as connection:
            return await called(connection, function, arguments)

    @asynccontextmanager
    async def transaction(self, role: str, acting_for: str | None) -> AsyncIterator[Fetch]:
        """Open a transaction that sees one state of the database, and yield its calls.

        They raise SerializationFailure if another transaction has changed the same rows.
        """
        async with self._pools[role].connection() as connection:
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            try:
                with renewed(connection), confirmed(connection):
                    async with connection.transaction():
                        if acting_for is not None:
                            await connection.execute("select jobq_http.act_for(%s)", [acting_for])
                        yield lambda function, **arguments: called(connection, function, arguments)
            finally:
                if not connection.closed:
                    await connection.set_isolation_level(None)

    async def ready(self) -> tuple[str, str]:
        """Return whether jobs can be accepted (queue) and read (repo): ok, or the reason.

        If the pool has no connection, this opens one, because the pool does not report the reason;
        also if a connection is read-only, because it may be older than the reason.
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
        """Check payloads of kinds whose schemas the database cannot enforce."""
        kinds = self._schemas.unknown(kind for kind, _ in inputs)
        if kinds:
            rows = await self.fetch(role, "list_payload_schemas", kinds=kinds)
            found = {kind: msgspec.json.decode(schema) for kind, schema in rows}
            self._schemas.learn(kinds, found)
        if self._schemas.are_for(inputs):
            async with self._checking:
                await asyncio.to_thread(self._schemas.check, inputs)


async def called(
    connection: AsyncConnection[Any], function: str, arguments: Mapping[str, object]
) -> list[Any]:
    """Call a function and return its rows."""
    cursor = connection.cursor(row_factory=namedtuple_row)
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
    """Returns JSON as bytes, so that numbers keep all digits."""

    def load(self, data: Buffer) -> bytes:
        """Return the text of a value."""
        return bytes(data)


def configure(connection: AsyncConnection[Any]) -> None:
    """Prepare a new connection."""
    connection.adapters.register_loader("json", Verbatim)
    connection.adapters.register_loader("jsonb", Verbatim)
