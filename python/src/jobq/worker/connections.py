"""A worker's connections: opened when needed, with a deadline on every call."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
import time
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import TextLoader

from jobq.database import confirmed, conninfo, renewed
from jobq.errors import DatabaseUnavailable, translate
from jobq.worker import tuning

logger = logging.getLogger("jobq.worker")


class Backoff:
    """How long to wait before trying again: longer each time, half of it at random.

    Set ``tries`` to 0 after a success.
    """

    def __init__(
        self, most: float = tuning.BACKOFF_LAST, first: float = tuning.BACKOFF_FIRST
    ) -> None:
        self._most = most
        self._first = first
        self.tries = 0

    def next(self) -> float:
        """Return how many seconds to wait."""
        pause = min(self._most, self._first * 2.0 ** min(self.tries, 30))
        self.tries += 1
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, hides nothing


class Complaints:
    """Logs a repeated message only once in a while, so that an outage does not fill the log."""

    def __init__(self) -> None:
        self._said_at: dict[str, float] = {}

    def warning(self, message: str, *arguments: object, level: int = logging.WARNING) -> None:
        """Log a warning, unless the same one was logged recently."""
        now = time.monotonic()
        if now - self._said_at.get(message, float("-inf")) < tuning.SIGN_OF_LIFE:
            level = logging.DEBUG
        else:
            self._said_at[message] = now
        logger.log(level, message, *arguments)


class Link:
    """One connection to the database, used by one call at a time.

    A call that fails or takes longer than ``deadline`` closes the connection; the next call opens
    another. It repeats nothing, because a failed call may have taken effect.

    A network failure affects all links of a worker, its ``peers``. So the first call that reaches
    its deadline makes every link reconnect that has not answered since that call began, and later
    calls need not reach their own deadlines.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        is_pooled: bool = False,
        deadline: float | None = None,
        peers: list[Link] | None = None,
    ) -> None:
        self._conninfo = conninfo(url, name, is_pooled=is_pooled)
        hosts = str(conninfo_to_dict(self._conninfo).get("host") or "").split(",")
        self._connect_deadline = tuning.CALL_SECONDS * len(hosts)
        self._prepare_threshold = None if is_pooled else 0
        self._deadline = deadline or tuning.CALL_SECONDS
        self._peers = [] if peers is None else peers
        self._peers.append(self)
        self._doubted_at = float("-inf")
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection[Any] | None = None
        self.heard_at = float("-inf")
        """When it last answered, by time.monotonic."""

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None and not self._connection.closed

    async def call(
        self,
        statement: str | bytes,
        parameters: Any = (),  # noqa: ANN401 - psycopg's
        *,
        is_many: bool = False,
    ) -> list[Any]:
        """Run one statement and return its rows.

        With ``is_many``, ``parameters`` are a list of sets of parameters for one round trip. If
        one set is refused, none takes effect. With ``parameters`` None, it can be several
        statements in one message and transaction; the rows are those of the last.

        Raises:
            DatabaseUnavailable: the database did not answer.
            JobqError: the database refused.
        """
        async with self._lock:
            connection = await self.connection()
            # A cancelled task would make psycopg ask the server to stop, and wait for an answer
            # that may never come. So a call that takes too long loses its socket.
            loop, began_at = asyncio.get_running_loop(), time.monotonic()
            # uvloop's own time does not advance within a turn, nor while the process is stopped.
            late = began_at - loop.time()
            deadline = loop.call_later(self._deadline + late, self._cut, began_at)
            try:
                with translate(), renewed(connection), confirmed(connection):
                    cursor = connection.cursor()
                    if is_many:
                        await cursor.executemany(statement, parameters)
                        return []
                    is_prepared = None if parameters is not None else False
                    await cursor.execute(statement, parameters, prepare=is_prepared)
                    while cursor.nextset():
                        pass
                    return await cursor.fetchall() if cursor.description else []
            except BaseException:
                is_idle = psycopg.pq.TransactionStatus.IDLE
                if connection.closed or connection.info.transaction_status != is_idle:
                    await self._drop()
                raise
            finally:
                deadline.cancel()
                if self.is_open:
                    self.heard_at = time.monotonic()

    async def connection(self) -> AsyncConnection[Any]:
        """Return the open connection, or open one.

        Raises:
            DatabaseUnavailable: the database does not answer.
            NotPermitted: it refuses this login.
        """
        is_trusted = self.is_open and self.heard_at >= self._doubted_at
        if self._connection is not None and is_trusted:
            return self._connection
        await self._drop()
        connection = None
        with translate(), suppress(TimeoutError):
            async with asyncio.timeout(self._connect_deadline):
                connection = await AsyncConnection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=self._prepare_threshold
                )
        if connection is None:
            # Not from the TimeoutError: its traceback would keep the half-open connection, and
            # the server a session that it waits for, until nobody refers to the error any more.
            raise DatabaseUnavailable("the database did not answer in time")
        for name in ("uuid", "timestamptz", "jsonb"):  # `Job` reads them when they are needed
            connection.adapters.register_loader(name, TextLoader)
        self._connection = connection
        self.heard_at = time.monotonic()
        return connection

    async def close(self) -> None:
        """Close the connection, if one is open, after a running call has ended.

        A descriptor that the event loop watches must not be closed: libuv ends the process.
        """
        if self._lock.locked():
            self._shut_down()
            try:
                async with asyncio.timeout(tuning.UNWIND), self._lock:
                    pass
            except TimeoutError:
                return  # whoever waits there closes it
        await self._drop()

    def _cut(self, began_at: float) -> None:
        """End a call without an answer, and the connections that are probably broken too."""
        self._shut_down()
        for peer in self._peers:
            if peer.heard_at < began_at and peer is not self:
                peer._doubted_at = began_at  # noqa: SLF001
                if not peer._lock.locked():  # noqa: SLF001 - a call has a deadline of its own
                    peer._shut_down()  # noqa: SLF001 - which a listener notices

    def _shut_down(self) -> None:
        if self._connection is not None and not self._connection.closed:
            number = os.dup(self._connection.fileno())
            with socket.socket(fileno=number) as end, suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


class Connections:
    """Two connections for exchanges and maintenance, and a third for heartbeats, which never wait.

    At most two exchanges run at a time. The connection that was used last is used next, so a
    worker with little work needs one, and the others are closed. `links` includes the listener's.
    """

    def __init__(self, url: str, *, is_pooled: bool) -> None:
        self._url = url
        self._is_pooled = is_pooled
        self._free: list[Link] = []
        self._work = asyncio.Semaphore(2)
        self._vital = asyncio.Lock()
        self.links: list[Link] = []

    @property
    def answered_ago(self) -> float | None:
        """Seconds since the database last answered; None if it never has."""
        heard_at = max((link.heard_at for link in self.links), default=float("-inf"))
        return time.monotonic() - heard_at if heard_at > 0 else None

    async def call(
        self,
        statement: str | bytes,
        parameters: Any = (),  # noqa: ANN401 - psycopg's
        *,
        is_vital: bool = False,
        is_many: bool = False,
    ) -> list[Any]:
        """Run one statement on a free connection as `Link.call` does, and return its rows.

        A vital one does not wait for exchanges and maintenance: a heartbeat.
        """
        async with self._vital if is_vital else self._work:
            if self._free:
                link = self._free.pop()
            else:
                link = Link(self._url, "jobq worker", is_pooled=self._is_pooled, peers=self.links)
            try:
                return await link.call(statement, parameters, is_many=is_many)
            finally:
                self._free.append(link)

    async def close_idle(self) -> None:
        """Close connections that have not been used for a while, except one."""
        for link in self._free[:-1]:
            if link.is_open and time.monotonic() - link.heard_at > tuning.CALL_SECONDS:
                await link.close()

    async def close(self) -> None:
        """Close everything."""
        for link in self.links:
            await link.close()
