"""One poll of the database for all open pages, which are notified of changes."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import psycopg

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from jobq_console.sessions import Session

logger = logging.getLogger("jobq.console")

EVERY: Final = 2.0  # seconds between looks
SILENCE: Final = 1.5  # after so many without an answer pages are told
SURE: Final = 15.0  # after so many a page is told anyway: times grow, and so do ages
MOST_STREAMS: Final = 500
CHANGED: Final = b"event: changed\ndata: \n\n"
AWAY: Final = b"event: away\ndata: \n\n"


class Pulse:
    """Polls every two seconds while pages are open, once for all of them.

    Args:
        look: returns a value that changes whenever something has changed.
        on_change: called before pages are notified of a change.
    """

    def __init__(
        self, look: Callable[[], Awaitable[object]], on_change: Callable[[], None]
    ) -> None:
        self._look_once = look
        self._on_change = on_change
        self._beat = asyncio.Event()
        self._watching = 0
        self._task: asyncio.Task[None] | None = None
        self._is_away = False  # the database, which did not answer the last look
        self.is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether no further streams are accepted."""
        return self._watching >= MOST_STREAMS

    async def beats(
        self, session: Session, is_still_in: Callable[[], Awaitable[bool]]
    ) -> AsyncIterator[bytes]:
        """Yield an event for each possible change, until the session ends.

        While the database does not answer, the event reports that instead.
        """
        self._watching += 1
        session.streams += 1
        if self._task is None or self._task.done():
            self._is_away = False
            self._task = asyncio.create_task(self._look())
        try:
            yield b"retry: 3000\n\n"
            beat, told = self._beat, time.monotonic()
            if self._is_away:
                yield AWAY
            while not self.is_closed:
                with suppress(TimeoutError):
                    await asyncio.wait_for(beat.wait(), EVERY)
                is_told = beat.is_set() or time.monotonic() - told >= SURE
                beat = self._beat
                if is_told and self._is_away:
                    told = time.monotonic()
                    yield AWAY
                if not await is_still_in():
                    break
                if is_told and not self._is_away and not self.is_closed:
                    told = time.monotonic()
                    yield CHANGED
        finally:
            self._watching -= 1
            session.streams -= 1

    async def _look(self) -> None:
        last = None
        while self._watching and not self.is_closed:
            try:
                now = await self._answer()
            except psycopg.Error as error:
                logger.debug("the pulse: %s", error)
                self._miss()
            else:
                if now != last or self._is_away:
                    last, self._is_away = now, False
                    self._on_change()
                    self._tell()
            await asyncio.sleep(EVERY)

    async def _answer(self) -> object:
        """Poll once; streams are notified if this takes long."""
        asked = asyncio.ensure_future(self._look_once())
        try:
            await asyncio.wait([asked], timeout=SILENCE)
            if not asked.done():
                self._miss()
            return await asked
        finally:
            asked.cancel()

    def _miss(self) -> None:
        if not self._is_away:
            self._is_away = True
            self._tell()

    def _tell(self) -> None:
        beat, self._beat = self._beat, asyncio.Event()
        beat.set()

    def stop(self) -> None:
        """End all streams."""
        self.is_closed = True
        self._tell()

    async def close(self) -> None:
        """End all streams and the polling."""
        self.stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
