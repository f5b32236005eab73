"""A connection that comes back: opened when needed, with a deadline on every call."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection

from jobq.database import confirmed, conninfo
from jobq.errors import DatabaseUnavailable, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg.abc import Params
    from psycopg.sql import Composed

__all__ = ["Link", "Pace"]

DEADLINE: Final = 10.0


class Pace:
    """How long to wait before trying again: longer each time, and never in step.

    Args:
        first: seconds before the second try.
        most: seconds at the most.
    """

    def __init__(self, first: float = 0.1, most: float = 5.0) -> None:
        self._first = first
        self._most = most
        self._tries = 0

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._tries = 0

    def next(self) -> float:
        """Return how many seconds to wait, half of it at random."""
        pause = min(self._most, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing


class Link:
    """One connection to the database, used by one call at a time.

    A call that fails or takes too long closes the connection; the next call opens another.
    Nothing is repeated: whether a call that failed took effect is not known.

    Args:
        url: a libpq URL.
        name: what it is for, shown by pg_stat_activity.
        is_pooled: whether a pooler in transaction mode is in between.
        deadline: seconds after which a call has failed.
        configure: prepares each new connection.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        is_pooled: bool = False,
        deadline: float = DEADLINE,
        configure: Callable[[AsyncConnection[Any]], None] | None = None,
    ) -> None:
        self._conninfo = conninfo(url, name, is_pooled=is_pooled)
        self._prepare_threshold = None if is_pooled else 0
        self._deadline = deadline
        self._configure = configure
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[Any] | None = None

    async def call(self, statement: str | Composed, parameters: Params = ()) -> list[Any]:
        """Run one statement and return its rows.

        Raises:
            DatabaseUnavailable: there was no answer.
            JobqError: the database refused.
        """
        async with self._lock:
            connection = await self.connection()
            try:
                with translate(), confirmed(connection), self.deadline(connection):
                    cursor = await connection.execute(statement, parameters)
                    return await cursor.fetchall() if cursor.description else []
            except BaseException:
                await self._drop_unless_idle()
                raise

    async def call_many(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """Run one statement with many sets of parameters, in one round trip.

        Raises:
            JobqError: as for `call`; then none of them may have taken effect.
        """
        async with self._lock:
            connection = await self.connection()
            try:
                with translate(), self.deadline(connection):
                    await connection.cursor().executemany(statement, parameters)
            except BaseException:
                await self._drop_unless_idle()
                raise

    async def connection(self) -> AsyncConnection[Any]:
        """Return the open connection, a new one if need be.

        Raises:
            DatabaseUnavailable: the database does not answer.
            NotPermitted: it does not let this user in.
        """
        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            with translate():
                async with asyncio.timeout(self._deadline):
                    connection = await AsyncConnection.connect(
                        self._conninfo,
                        autocommit=True,
                        prepare_threshold=self._prepare_threshold,
                    )
        except TimeoutError as error:
            raise DatabaseUnavailable("the database did not answer in time") from error
        if self._configure is not None:
            self._configure(connection)
        self._connection = connection
        return connection

    def deadline(self, connection: AsyncConnection[Any]) -> Deadline:
        """Return what bounds the time of a call on a connection."""
        return Deadline(connection, self._deadline)

    async def close(self) -> None:
        """Close the connection, if one is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _drop_unless_idle(self) -> None:
        """Close a connection that is not fit for another call."""
        connection = self._connection
        if connection is None or connection.closed:
            self._connection = None
        elif connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            await self.close()


class Deadline:
    """Shuts a connection's socket down when a call takes too long, which ends the call.

    Cancelling the task instead would make psycopg ask the server to stop, and wait for an
    answer which may never come.
    """

    def __init__(self, connection: AsyncConnection[Any], seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._cut)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        if self._connection.closed:
            return
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
