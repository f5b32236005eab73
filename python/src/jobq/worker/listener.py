"""The session that listens: what wakes an idle worker.

It speaks the protocol of docs/wake-ups.md. Whatever happens to it, the worker goes on by
polling; the session comes back by itself.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from jobq.errors import JobqError
from jobq.notifications import Notifications
from jobq.worker.link import Link, Pace, Silence
from jobq.worker.logs import Sparing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Listener"]

# Seconds: its calls take no time, and the worker waits for them.
DEADLINE: Final = 3.0

logger = logging.getLogger("jobq.worker")


class Listener:
    """Listens on a direct connection, and reconnects for as long as it runs.

    Args:
        url: a libpq URL that leads to the server itself, not to a pooler.
        queues: whose jobs the worker takes.
        silence: shared with the worker's other connections.

    Attributes:
        on_job: called when a job of these queues may have become runnable.
        on_cancel: called when a running job of these queues may have to be cancelled.
        is_waiting: whether producers know that the worker sleeps.
    """

    def __init__(self, url: str, queues: Sequence[str], silence: Silence) -> None:
        self._link = Link(url, "jobq listener", deadline=DEADLINE, silence=silence)
        silence.tell(self._doubt)
        self._queues = list(queues)
        self.on_job: Callable[[], None] = _nothing
        self.on_cancel: Callable[[], None] = _nothing
        self._notifications: Notifications | None = None
        self._lost = asyncio.Event()
        self._is_closed = False
        self.is_waiting = False

    @property
    def is_listening(self) -> bool:
        """Whether notifications arrive."""
        return self._notifications is not None

    async def run(self) -> None:
        """Connect, listen, and begin again whenever the connection is lost."""
        pace = Pace()
        complaints = Sparing(logger)
        while True:
            try:
                await self._listen()
            except JobqError as error:
                complaints.warning("cannot listen, polling meanwhile: %s", error)
                await asyncio.sleep(pace.next())
                continue
            pace.reset()
            self.on_job()
            self.on_cancel()
            await self._lost.wait()
            if self._is_closed:
                return
            logger.warning("the listening connection is lost, polling meanwhile")
            await asyncio.sleep(pace.next())

    async def begin_wait(self) -> bool:
        """Say that the worker is about to sleep; true when no enqueue can have missed it.

        The caller claims once more, whatever the answer.
        """
        if self._notifications is None:
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
        connection = await self._link.connection()
        self._notifications = Notifications(connection, self._dispatch, self._forget)
        self._notifications.watch()

    async def _call(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Make a call on the listening session; an error means that it is lost."""
        if self._notifications is not None:
            self._notifications.unwatch()
        try:
            rows = await self._link.call(statement, parameters)
        except JobqError as error:
            logger.warning("the listening connection fails: %s", error)
            self._forget()
            return []
        if self._notifications is not None:
            self._notifications.watch()
        return rows

    def _dispatch(self, channel: str, queue: str) -> None:
        if queue in self._queues and channel == "jobq":
            self.on_job()
        elif queue in self._queues:
            self.on_cancel()

    def _doubt(self) -> None:
        """Connect anew if nothing was heard here either since another call had no answer."""
        if self._notifications is not None and self._link.is_suspect:
            self._forget()

    def _forget(self) -> None:
        if self._notifications is not None:
            self._notifications.unwatch()
        self._notifications = None
        self.is_waiting = False
        self._lost.set()


def _nothing() -> None:
    """Take no notice."""
