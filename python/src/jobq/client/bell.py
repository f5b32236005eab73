"""Notifications about ended jobs, for `listen_events`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import psycopg

from jobq.calls.events import EventPage
from jobq.database import awaited, conninfo

NAME: Final = "jobq event listener"
SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
LONGEST_SLEEP: Final = 30.0

logger = logging.getLogger("jobq.client")


class Bell:
    """Waits until a job ends, on its own connection; without a URL it only pauses.

    Args:
        kind: the class of the connection, synchronous or asynchronous.
        url: a libpq URL of the server itself, not of a pooler.
        sleep: the client's function to pause.
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
            connecting = self._kind.connect(conninfo(url, NAME), autocommit=True)
            self._connection = await awaited(connecting)
            await awaited(self._connection.execute("listen jobq_events"))
        await awaited(self._connection.execute("select jobq.await_events()"))
        self._is_armed = True

    async def _disarm(self) -> None:
        if self._is_armed:
            self._is_armed = False
            await awaited(self._connection.execute("select jobq.end_wait()"))
