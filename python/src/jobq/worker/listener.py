"""The session that listens: what wakes an idle worker.

It speaks the protocol of docs/wake-ups.md. Whatever happens to it, the worker goes on by
polling; the session comes back by itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

import psycopg

from jobq.errors import JobqError
from jobq.worker.link import Link, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import AsyncConnection, Notify

__all__ = ["Listener"]

# Its calls take no time, and the worker waits for them.
DEADLINE: Final = 3.0

logger = logging.getLogger("jobq.worker")


class Listener:
    """Listens on a direct connection, and reconnects for as long as it runs.

    Args:
        url: a libpq URL that leads to the server itself, not to a pooler.
        queues: whose jobs the worker takes.

    Attributes:
        on_job: called when a job of these queues may have become runnable.
        on_cancel: called when a running job of these queues is to be cancelled.
        is_waiting: whether producers know that the worker sleeps.
    """

    def __init__(self, url: str, queues: Sequence[str]) -> None:
        self._link = Link(url, "jobq listener", deadline=DEADLINE)
        self._queues = list(queues)
        self.on_job: Callable[[], None] = _nothing
        self.on_cancel: Callable[[], None] = _nothing
        self._connection: AsyncConnection[Any] | None = None
        self._lost = asyncio.Event()
        self._is_closed = False
        self.is_waiting = False

    @property
    def is_listening(self) -> bool:
        """Whether notifications arrive."""
        return self._connection is not None

    async def run(self) -> None:
        """Connect, listen, and begin again whenever the connection is lost."""
        pace = Pace()
        while True:
            try:
                await self._listen()
            except JobqError as error:
                logger.warning("cannot listen, polling meanwhile: %s", error)
                await asyncio.sleep(pace.next())
                continue
            pace.reset()
            self.on_job()
            await self._lost.wait()
            if self._is_closed:
                return
            logger.warning("the listening connection is lost, polling meanwhile")
            await asyncio.sleep(pace.next())

    async def begin_wait(self) -> bool:
        """Say that the worker is about to sleep; true when no enqueue can have missed it.

        The caller claims once more, whatever the answer.
        """
        if self._connection is None:
            return False
        rows = await self._call("select jobq.begin_wait(%s)", [self._queues])
        self.is_waiting = bool(rows and rows[0][0])
        return self.is_waiting

    async def end_wait(self) -> None:
        """Say that the worker is awake, so that nobody need notify it."""
        if self.is_waiting:
            self.is_waiting = False
            await self._call("select jobq.end_wait()")

    async def close(self) -> None:
        """Stop listening."""
        self._is_closed = True
        self._forget()
        await self._link.close()

    async def _listen(self) -> None:
        self._lost.clear()
        await self._link.call("listen jobq")
        await self._link.call("listen jobq_cancel")
        self._connection = await self._link.connection()
        self._connection.add_notify_handler(self._on_notify)
        self._watch()

    async def _call(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Make a call on the listening session; an error means that it is lost."""
        self._unwatch()
        try:
            rows = await self._link.call(statement, parameters)
        except JobqError as error:
            logger.warning("the listening connection fails: %s", error)
            self._forget()
            return []
        self._watch()
        return rows

    def _watch(self) -> None:
        """Look at the socket while no call uses it."""
        if self._connection is not None:
            loop = asyncio.get_running_loop()
            loop.add_reader(self._connection.fileno(), self._on_readable)

    def _unwatch(self) -> None:
        if self._connection is not None and not self._connection.closed:
            asyncio.get_running_loop().remove_reader(self._connection.fileno())

    def _on_readable(self) -> None:
        assert self._connection is not None  # noqa: S101 - it is watched
        raw = self._connection.pgconn
        try:
            raw.consume_input()
        except psycopg.Error:
            self._forget()
            return
        while note := raw.notifies():
            self._dispatch(note.relname.decode(), note.extra.decode())

    def _on_notify(self, note: Notify) -> None:
        """Take a notification that came with the answer to a call."""
        self._dispatch(note.channel, note.payload)

    def _dispatch(self, channel: str, queue: str) -> None:
        if queue in self._queues and channel == "jobq":
            self.on_job()
        elif queue in self._queues:
            self.on_cancel()

    def _forget(self) -> None:
        self._unwatch()
        self._connection = None
        self.is_waiting = False
        self._lost.set()


def _nothing() -> None:
    """Take no notice."""
