"""A connection that comes back: opened when needed, with a deadline on every call."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from jobq.database import confirmed, conninfo, renewed
from jobq.errors import DatabaseUnavailable, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg.abc import Params

__all__ = ["Link", "Pace", "Silence"]

# Seconds: what a call may take, a third of the default lease. A peer that is gone is noticed
# in this time.
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


class Silence:
    """What the links of one worker learn from each other: since when one had no answer.

    When the network goes silent, it does for all of them. So the first call that meets its
    deadline speaks for every connection that has not been heard of since that call began,
    and calls that follow each other do not wait one deadline after the other.
    """

    def __init__(self) -> None:
        self.since = float("-inf")
        self._on_notice: list[Callable[[], None]] = []

    def tell(self, on_notice: Callable[[], None]) -> None:
        """Have this called whenever a call has met its deadline."""
        self._on_notice.append(on_notice)

    def notice(self, since: float) -> None:
        """Take note of a call without an answer.

        Args:
            since: when it began, by the event loop's clock.
        """
        self.since = max(self.since, since)
        for tell in self._on_notice:
            tell()


class Link:
    """One connection to the database, used by one call at a time.

    A call that fails or takes too long closes the connection; the next call opens another.
    Nothing is repeated: whether a call that failed took effect is not known.

    Args:
        url: a libpq URL.
        name: what it is for, shown by pg_stat_activity.
        is_pooled: whether a pooler in transaction mode is in between.
        deadline: seconds after which a call has failed; None is `DEADLINE`.
        configure: prepares each new connection.
        silence: shared with the other links of the worker.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        is_pooled: bool = False,
        deadline: float | None = None,
        configure: Callable[[AsyncConnection[Any]], None] | None = None,
        silence: Silence | None = None,
    ) -> None:
        self._conninfo = conninfo(url, name, is_pooled=is_pooled)
        hosts = str(conninfo_to_dict(self._conninfo).get("host") or "").split(",")
        self._connect_deadline = DEADLINE * len(hosts)
        self._prepare_threshold = None if is_pooled else 0
        self._deadline = deadline or DEADLINE
        self._configure = configure
        self._silence = silence or Silence()
        self._heard_at = float("-inf")
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[Any] | None = None

    @property
    def heard_at(self) -> float:
        """When it last answered, by the event loop's clock."""
        return self._heard_at

    @property
    def is_suspect(self) -> bool:
        """Whether the connection has not been heard of since another one fell silent."""
        return self._heard_at < self._silence.since

    async def call(self, statement: str | bytes, parameters: Params = ()) -> list[Any]:
        """Run one statement and return its rows.

        Raises:
            DatabaseUnavailable: there was no answer.
            JobqError: the database refused.
        """
        async with self._lock:
            connection = await self.connection()
            try:
                with (
                    translate(),
                    renewed(connection),
                    confirmed(connection),
                    self.deadline(connection),
                ):
                    cursor = await connection.execute(statement, parameters)
                    return await cursor.fetchall() if cursor.description else []
            except BaseException:
                await self._drop_unless_idle()
                raise
            finally:
                if self._connection is not None:
                    self._hear()

    async def call_many(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """Run one statement with many sets of parameters, in one round trip.

        Raises:
            JobqError: as for `call`; then none of them may have taken effect.
        """
        async with self._lock:
            connection = await self.connection()
            try:
                with translate(), renewed(connection), self.deadline(connection):
                    await connection.cursor().executemany(statement, parameters)
            except BaseException:
                await self._drop_unless_idle()
                raise
            finally:
                if self._connection is not None:
                    self._hear()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.closed

    @property
    def socket(self) -> int | None:
        """The descriptor of its socket, if there is a connection."""
        return self._connection.fileno() if self._connection and self.is_open else None

    async def connection(self) -> AsyncConnection[Any]:
        """Return the open connection, a new one if need be.

        Raises:
            DatabaseUnavailable: the database does not answer.
            NotPermitted: it does not let this user in.
        """
        if self._connection is not None and not self._connection.closed:
            if not self.is_suspect:
                return self._connection
            await self.close()
        try:
            with translate():
                async with asyncio.timeout(self._connect_deadline):
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
        self._hear()
        return connection

    def deadline(self, connection: AsyncConnection[Any]) -> Deadline:
        """Return what bounds the time of a call on a connection."""
        return Deadline(connection, self._deadline, self._silence)

    async def close(self) -> None:
        """Close the connection, if one is open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    def _hear(self) -> None:
        """Take note that the connection has just answered."""
        self._heard_at = asyncio.get_running_loop().time()

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

    def __init__(self, connection: AsyncConnection[Any], seconds: float, silence: Silence) -> None:
        self._connection = connection
        self._seconds = seconds
        self._silence = silence

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._cut, loop.time())

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _cut(self, began_at: float) -> None:
        if self._connection.closed:
            return
        self._silence.notice(began_at)
        with socket.socket(fileno=os.dup(self._connection.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)
