"""Limits of an endpoint: so many deliveries at a time, so many in a second.

What does not get its turn within a moment goes back to the queue, uncounted, so that a slow
target keeps neither the worker's slots nor other endpoints waiting.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from jobq.outcomes import Snooze

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Limit"]

DEFAULT_CONCURRENCY: Final = 20
PATIENCE: Final = 0.2
SHORTEST_SNOOZE: Final = 1.0
LONGEST_SNOOZE: Final = 30.0


class Limit:
    """The limit of an endpoint in this worker.

    Args:
        max_concurrency: deliveries at a time.
        max_per_second: deliveries in a second, evenly spread; None for any.
    """

    def __init__(self, max_concurrency: int | None, max_per_second: float | None) -> None:
        self.rule = (max_concurrency, max_per_second)
        self._slots = asyncio.Semaphore(max_concurrency or DEFAULT_CONCURRENCY)
        self._gap = 1 / max_per_second if max_per_second else 0.0
        self._next_at = 0.0
        self._mean = 0.0
        self._moved_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot for one delivery.

        Raises:
            Snooze: it was not this delivery's turn in time.
        """
        if self._slots.locked():
            await self._wait()
        else:
            await self._slots.acquire()
        started = self._moved_at = time.monotonic()
        try:
            await self._pace()
            yield
        finally:
            self._slots.release()
            self._moved_at = time.monotonic()
            self._mean += (self._moved_at - started - self._mean) / 8

    async def _wait(self) -> None:
        """Wait for a slot, for a moment."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._slots.acquire()
        except TimeoutError:
            # Of a target that hangs, no delivery ends: the longer, the rarer it is tried.
            raise self._snooze(max(self._mean, time.monotonic() - self._moved_at)) from None

    async def _pace(self) -> None:
        """Wait for the next moment that the rate allows."""
        if not self._gap:
            return
        now = time.monotonic()
        wait = self._next_at - now
        if wait > PATIENCE:
            raise self._snooze(wait)
        self._next_at = max(now, self._next_at) + self._gap
        if wait > 0:
            await asyncio.sleep(wait)

    def _snooze(self, seconds: float) -> Snooze:
        seconds = min(max(seconds, SHORTEST_SNOOZE), LONGEST_SNOOZE)
        return Snooze(timedelta(seconds=seconds * random.uniform(1, 2)))  # noqa: S311 - spreads
