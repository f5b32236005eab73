"""Events: what has ended, each job once and in order, by queue or kind.

`Client.listen_events` and `AsyncClient.listen_events` go on for ever, or until they have
caught up; `page_events` of both is one look. docs/events.md is the guide.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

import msgspec
import psycopg
from psycopg import AsyncConnection, Connection

from jobq.calls.arguments import as_names
from jobq.calls.call import Call
from jobq.database import conninfo

if TYPE_CHECKING:
    from jobq.models import Json

__all__ = ["AsyncBell", "Bell", "Event", "EventPage", "page_events"]

NAME: Final = "jobq event listener"
SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
LONGEST_SLEEP: Final = 30.0

logger = logging.getLogger("jobq.client")


@dataclass(frozen=True, slots=True)
class Event:
    """The end of a job.

    Attributes:
        cursor: listening that begins here tells what comes after this event.
        attempts: how many attempts counted.
        error_code: of its last error; None for none.
        metadata: as it was given at enqueue.
        batch_id: the batch that it was a member of.
    """

    cursor: str
    job_id: UUID
    kind: str
    queue: str
    state: Literal["succeeded", "dead", "cancelled"]
    attempts: int
    created_at: datetime
    finished_at: datetime
    error_code: str | None = None
    metadata: dict[str, Any] | None = None
    batch_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, and where the next begin.

    Attributes:
        events: in the order of their ends.
        cursor: where the next page begins, also where this one is empty.
        is_behind: whether there is more to be read at once.
        is_settled: False while an open transaction that has ended jobs keeps back what has
            ended after them.
    """

    events: list[Event]
    cursor: str
    is_behind: bool
    is_settled: bool


def page_events(
    after: str | None = None,
    *,
    queues: Iterable[str] | None = None,
    kinds: Iterable[str] | None = None,
    since: datetime | None = None,
    max_events: int = 100,
) -> Call[EventPage]:
    """Return a page of the jobs that have ended, in the order of their ends.

    Args:
        after: the cursor of the page before, or of an event; None begins at ``since``.
        queues: only jobs of these queues.
        kinds: only jobs of these kinds.
        since: without ``after``: only what ended at or after this moment; None is now.
        max_events: at most so many, 1 to 1000.

    Raises:
        InvalidArgument: the cursor is none, ``after`` comes with ``since``, one name is given for
            a list, or the database is a standby or has the transaction at a stricter level than
            read committed.
    """
    arguments = {
        "after": after,
        "queues": as_names(queues),
        "kinds": as_names(kinds),
        "since": since,
        "max_events": max_events,
    }
    return Call("listen_events", arguments, _page)


def _page(rows: list[tuple[Json, str, bool, bool]]) -> EventPage:
    [(events, cursor, is_behind, is_settled)] = rows
    return EventPage(msgspec.convert(events, list[Event]), cursor, is_behind, is_settled)


class Bell:
    """Sleeps until a job ends, on a connection of its own, or for a short while without one.

    Args:
        url: a libpq URL that leads to the server itself, not to a pooler; None only pauses.
    """

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._connection: Connection[Any] | None = None
        self._pause = SHORTEST_PAUSE
        self._is_armed = False

    def rest(self, *, is_settled: bool) -> None:
        """Return when there may be something new.

        Called after a look that found nothing. The first call only has itself announced,
        and asks for one more look.
        """
        try:
            if self._url is None or not is_settled:
                time.sleep(self._longer())
            elif not self._is_armed:
                self._arm(self._url)
            elif self._connection is not None:
                for _ in self._connection.notifies(timeout=LONGEST_SLEEP, stop_after=1):
                    pass
                self._disarm()
        except psycopg.Error as error:
            logger.warning("cannot listen for events, polling meanwhile: %s", error)
            self.close()
            time.sleep(LONGEST_PAUSE)

    def wake(self) -> None:
        """Be told of nothing while there is something to read, so that nobody need tell."""
        self._pause = SHORTEST_PAUSE
        if self._is_armed:
            with suppress(psycopg.Error):
                self._disarm()

    def close(self) -> None:
        """Close the connection, if one is open."""
        self._is_armed = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _longer(self) -> float:
        self._pause = min(1.5 * self._pause, LONGEST_PAUSE)
        return self._pause

    def _arm(self, url: str) -> None:
        if self._connection is None:
            self._connection = Connection.connect(conninfo(url, NAME), autocommit=True)
            self._connection.execute("listen jobq_events")
        self._connection.execute("select jobq.await_events()")
        self._is_armed = True

    def _disarm(self) -> None:
        self._is_armed = False
        if self._connection is not None:
            self._connection.execute("select jobq.end_wait()")


class AsyncBell:
    """As `Bell`, but awaited."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._connection: AsyncConnection[Any] | None = None
        self._pause = SHORTEST_PAUSE
        self._is_armed = False

    async def rest(self, *, is_settled: bool) -> None:
        """Return when there may be something new."""
        try:
            if self._url is None or not is_settled:
                await asyncio.sleep(self._longer())
            elif not self._is_armed:
                await self._arm(self._url)
            elif self._connection is not None:
                async for _ in self._connection.notifies(timeout=LONGEST_SLEEP, stop_after=1):
                    pass
                await self._disarm()
        except psycopg.Error as error:
            logger.warning("cannot listen for events, polling meanwhile: %s", error)
            await self.aclose()
            await asyncio.sleep(LONGEST_PAUSE)

    async def wake(self) -> None:
        """Be told of nothing while there is something to read, so that nobody need tell."""
        self._pause = SHORTEST_PAUSE
        if self._is_armed:
            with suppress(psycopg.Error):
                await self._disarm()

    async def aclose(self) -> None:
        """Close the connection, if one is open."""
        self._is_armed = False
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    def _longer(self) -> float:
        self._pause = min(1.5 * self._pause, LONGEST_PAUSE)
        return self._pause

    async def _arm(self, url: str) -> None:
        if self._connection is None:
            self._connection = await AsyncConnection.connect(conninfo(url, NAME), autocommit=True)
            await self._connection.execute("listen jobq_events")
        await self._connection.execute("select jobq.await_events()")
        self._is_armed = True

    async def _disarm(self) -> None:
        self._is_armed = False
        if self._connection is not None:
            await self._connection.execute("select jobq.end_wait()")
