"""The listening session, which wakes an idle worker by the protocol of docs/protocol.md."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from jobq.client.notifications import Notifications
from jobq.errors import JobqError, translate
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Complaints, Link

logger = logging.getLogger("jobq.worker")


class Wakeups:
    """Events that wake the parts of a worker, each when it may have something to do."""

    def __init__(self) -> None:
        self.producer = asyncio.Event()
        self.kinds = asyncio.Event()  # a job, maybe one of a kind that was excluded
        self.heartbeat = asyncio.Event()  # a cancel request
        self.maintenance = asyncio.Event()  # a schedule, and after a heartbeat without jobs
        self.has_jobs = False  # whether a job may have become runnable since the last claim

    def job(self) -> None:
        """Wake the parts that claim: a job may have become runnable."""
        self.has_jobs = True
        self.producer.set()
        self.kinds.set()


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; return false after a timeout."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds if seconds < math.inf else None):
            await event.wait()
    return event.is_set()


class Listener:
    """Listens on a connection without a pooler, and reconnects until it is stopped.

    Meanwhile the worker polls. Queues that match a pattern of ``queues``, such as ``tenant-*``,
    wake it after `learn` has named them. ``peers`` are the worker's other links.
    """

    def __init__(
        self, url: str, queues: Sequence[str], wakeups: Wakeups, peers: list[Link]
    ) -> None:
        # The producer waits for these calls, so their deadline is short.
        deadline = tuning.CALL_SECONDS / 3
        self._link = Link(url, "jobq listener", deadline=deadline, peers=peers)
        self._queues = list(queues)
        self._learnt: dict[str, None] = {}
        # Of a new queue that matches a pattern, no notification arrives.
        self.has_patterns = any(queue.endswith("*") for queue in queues)
        self._wakeups = wakeups
        self._notifications: Notifications | None = None
        self._lost = asyncio.Event()
        self._is_closed = False
        self.is_waiting = False  # whether producers notify because the worker sleeps

    @property
    def is_listening(self) -> bool:
        """Whether notifications arrive."""
        return self._notifications is not None

    async def run(self) -> None:
        """Connect and listen, again whenever the connection is lost."""
        backoff, complaints = Backoff(), Complaints()
        while True:
            try:
                await self._listen()
            except JobqError as error:
                complaints.warning("cannot listen, polling instead: %s", error)
                await asyncio.sleep(backoff.next())
                continue
            backoff.tries = 0
            self._wakeups.job()
            self._wakeups.heartbeat.set()
            self._wakeups.maintenance.set()
            await self._lost.wait()
            if self._is_closed:
                return
            logger.warning("the listening connection is lost, polling instead")
            await asyncio.sleep(backoff.next())

    def learn(self, queues: Iterable[str]) -> None:
        """Let jobs of these queues, which match a pattern, wake the worker from now on."""
        for queue in queues:
            if queue not in self._learnt:
                self.is_waiting = False  # until begin_wait() has named it
            self._learnt.pop(queue, None)  # the last one used is forgotten last
            self._learnt[queue] = None
        while len(self._learnt) > tuning.MOST_QUEUES:
            del self._learnt[next(iter(self._learnt))]

    async def begin_wait(self) -> bool:
        """Announce that the worker is about to sleep; true if no enqueue can have missed this.

        The caller claims once more in either case.
        """
        if self._notifications is None:
            return False
        rows = await self._call("select jobq.begin_wait(%s)", [[*self._queues, *self._learnt]])
        self.is_waiting = bool(rows and rows[0][0])
        return self.is_waiting

    async def end_wait(self) -> None:
        """Announce that the worker is awake, so that producers need not notify."""
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
        notifications = Notifications(connection, self._dispatch, self._forget)
        with translate():
            notifications.watch()
        self._notifications = notifications

    async def _call(self, statement: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Call a function on the listening session; an error means that the session is lost."""
        if self._notifications is not None:
            self._notifications.unwatch()
        try:
            rows = await self._link.call(statement, parameters)
            if self._notifications is not None:
                with translate():  # the link may have opened another connection
                    self._notifications.watch()
        except JobqError as error:
            logger.warning("the listening connection failed: %s", error)
            self._forget()
            return []
        return rows

    def _dispatch(self, channel: str, queue: str) -> None:
        if queue == "*":
            self._wakeups.maintenance.set()
        elif queue not in self._queues and queue not in self._learnt:
            return
        elif channel == "jobq":
            self._wakeups.job()
        else:
            self._wakeups.heartbeat.set()

    def _forget(self) -> None:
        if self._notifications is not None:
            self._notifications.unwatch()
        self._notifications = None
        self.is_waiting = False
        self._lost.set()
