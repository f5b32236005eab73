"""Notifications of a listening connection, for callers who wait for jobs, streams or events.

They follow docs/protocol.md. A notification may be missed, and a connection lost. So callers also
poll. Each ``url`` here leads to the server itself, not to a pooler.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, Connection, Notify

from jobq.calls.events import EventPage
from jobq.database import awaited, conninfo

ENDS: Final = ("select jobq.wait(%s)", "listen jobq_ended")
STREAMS: Final = (
    "select jobq.await_stream(%s)", "listen jobq_ended", "listen jobq_stream",
)  # fmt: skip
"""The statement that asks for notifications about a job, and those that listen to them."""

NAME: Final = "jobq client listener"
MOST_STALE: Final = 100
# Seconds between pages of events: the first and the last pause, and the longest sleep.
SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
LONGEST_SLEEP: Final = 30.0

logger = logging.getLogger("jobq.client")


class Notifications:
    """Passes on each notification of a connection, with its channel and its payload.

    It watches the socket while no statement uses the connection: call `unwatch` before a statement,
    and `watch` after it.
    """

    def __init__(
        self,
        connection: AsyncConnection[Any],
        on_note: Callable[[str, str], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._on_note = on_note
        self._on_lost = on_lost
        self._watched: int | None = None
        connection.add_notify_handler(self._on_notify)

    def watch(self) -> None:
        """Watch the socket from now on."""
        self._watched = self._connection.fileno()
        asyncio.get_running_loop().add_reader(self._watched, self._on_readable)

    def unwatch(self) -> None:
        """Stop watching, for a statement or for good."""
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None

    def _on_readable(self) -> None:
        raw = self._connection.pgconn
        try:
            raw.consume_input()
        except psycopg.Error:
            self.unwatch()
            self._on_lost()
            return
        while note := raw.notifies():
            self._on_note(note.relname.decode(), note.extra.decode())

    def _on_notify(self, note: Notify) -> None:
        """Receive a notification that came with the result of a statement."""
        self._on_note(note.channel, note.payload)


class Ending:
    """Waits for one job on its own connection, opened by the first wait.

    The first wait for `STREAMS` returns at once.
    """

    def __init__(self, url: str, job_id: str, about: tuple[str, ...] = ENDS) -> None:
        self._conninfo = conninfo(url, NAME)
        self._job_id = job_id
        self._statement, *self._listens = about
        self._connection: Connection[Any] | None = None
        self._is_lost = False

    def wait(self, seconds: float) -> None:
        """Return when the job has ended, after a timeout, or when the connection fails."""
        if self._is_lost:
            time.sleep(seconds)
            return
        try:
            self._listen(seconds)
        except psycopg.Error as error:
            logger.warning("cannot listen for a result, polling instead: %s", error)
            self._is_lost = True

    def close(self) -> None:
        """Close the connection, if one is open."""
        if self._connection is not None:
            self._connection.close()

    def _listen(self, seconds: float) -> None:
        if self._connection is None:
            self._connection = Connection.connect(self._conninfo, autocommit=True)
            for listen in self._listens:
                self._connection.execute(listen)
            answer = self._connection.execute(self._statement, [self._job_id])
            if answer.fetchall() == [(True,)] or self._statement != ENDS[0]:
                return  # to read what was written before
        for note in self._connection.notifies(timeout=seconds):
            if note.payload == self._job_id:
                return


class Endings:
    """Waits for any number of jobs on one connection, opened by the first wait.

    One task runs all statements on it. If it is lost, callers only poll until the next wait
    opens it again.
    """

    def __init__(self, url: str, about: tuple[str, ...] = ENDS) -> None:
        self._conninfo = conninfo(url, NAME)
        self._statement, *self._listens = about
        self._waits: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._told: set[str] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._connection: AsyncConnection[Any] | None = None
        self._notifications: Notifications | None = None

    @contextmanager
    def of(self, job_id: str) -> Iterator[Callable[[float], Awaitable[None]]]:
        """Provide a function that waits for some seconds, or until the job has ended."""
        ended = asyncio.Event()

        async def wait(seconds: float) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await ended.wait()
            ended.clear()

        self._waits[job_id].add(ended)
        self._told.discard(job_id)  # it may have ended before this wait began: ask again
        self._change()
        try:
            yield wait
        finally:
            self._waits[job_id].remove(ended)
            if not self._waits[job_id]:
                del self._waits[job_id]
            self._change()

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()

    def _change(self) -> None:
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._keep_told())

    async def _keep_told(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._tell()
            except psycopg.Error as error:
                logger.warning("cannot listen for results, polling meanwhile: %s", error)
                await self._disconnect()

    async def _tell(self) -> None:
        """Tell the database which jobs are awaited."""
        if self._connection is None or self._notifications is None:
            if not self._waits:
                return
            self._connection = await AsyncConnection.connect(self._conninfo, autocommit=True)
            self._notifications = Notifications(self._connection, self._on_note, self._changed.set)
            for listen in self._listens:
                await self._connection.execute(listen)
        self._notifications.unwatch()
        if self._told and (not self._waits or len(self._told - self._waits.keys()) > MOST_STALE):
            await self._connection.execute("select jobq.end_wait()")
            self._told.clear()
        for job_id in self._waits.keys() - self._told:
            self._told.add(job_id)
            answer = await self._connection.execute(self._statement, [job_id])
            if await answer.fetchall() == [(True,)] or self._statement != ENDS[0]:
                self._on_note("", job_id)  # to read what was written before
        self._notifications.watch()

    def _on_note(self, _channel: str, job_id: str) -> None:
        for ended in self._waits.get(job_id, ()):
            ended.set()

    async def _disconnect(self) -> None:
        if self._notifications is not None:
            self._notifications.unwatch()
        if self._connection is not None:
            await self._connection.close()
        self._connection = self._notifications = None
        self._told.clear()


class Bell:
    """Waits for events, on its own connection; without a URL it only pauses.

    ``kind`` is the class of the connection, ``sleep`` the function to pause: both synchronous or
    both asynchronous.
    """

    def __init__(self, kind: type[Any], url: str | None, sleep: Callable[[float], Any]) -> None:
        self._kind = kind
        self._url = url
        self._sleep = sleep
        self._connection: Any = None
        self._pause = SHORTEST_PAUSE
        self._is_armed = False

    async def rest_after(self, page: EventPage) -> None:
        """Return when there may be new events after a page.

        After the first page without events, it requests a notification, and returns at once: an
        event may have come before the request.
        """
        try:
            if page.events:
                self._pause = SHORTEST_PAUSE
                await self._disarm()
            elif page.is_behind:
                pass
            elif self._url is None or not page.is_settled:
                self._pause = min(1.5 * self._pause, LONGEST_PAUSE)
                await awaited(self._sleep(self._pause))
            elif not self._is_armed:
                await self._arm(self._url)
            else:
                notes = self._connection.notifies(timeout=LONGEST_SLEEP, stop_after=1)
                _ = [n async for n in notes] if hasattr(notes, "__aiter__") else [*notes]
                await self._disarm()
        except psycopg.Error as error:
            logger.warning("cannot listen for events, polling meanwhile: %s", error)
            await self.close()
            await awaited(self._sleep(LONGEST_PAUSE))

    async def close(self) -> None:
        """Close the connection, if one is open."""
        self._is_armed = False
        if self._connection is not None:
            await awaited(self._connection.close())
            self._connection = None

    async def _arm(self, url: str) -> None:
        if self._connection is None:
            connecting = self._kind.connect(conninfo(url, "jobq event listener"), autocommit=True)
            self._connection = await awaited(connecting)
            await awaited(self._connection.execute("listen jobq_events"))
        await awaited(self._connection.execute("select jobq.await_events()"))
        self._is_armed = True

    async def _disarm(self) -> None:
        if self._is_armed:
            self._is_armed = False
            await awaited(self._connection.execute("select jobq.end_wait()"))
