"""The concurrency of a worker's deliveries to an endpoint without a limit of its own.

A delivery that gets no slot in time returns to the queue without counting the attempt, so that
a slow target blocks neither the worker's slots nor other endpoints.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from jobq.registry.outcomes import Snooze

DEFAULT_CONCURRENCY: Final = 20
PATIENCE: Final = 0.2
SHORTEST_SNOOZE: Final = 1.0
LONGEST_SNOOZE: Final = 30.0


class Limit:
    """The limit of an endpoint in this worker."""

    def __init__(self, slots: int = DEFAULT_CONCURRENCY) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._mean = 0.0
        self._moved_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a slot for one delivery; Snooze if none is free in time."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._slots.acquire()
        except TimeoutError:
            # No delivery to a hanging target ends: retry less often, the longer it takes.
            seconds = max(self._mean, time.monotonic() - self._moved_at)
            seconds = min(max(seconds, SHORTEST_SNOOZE), LONGEST_SNOOZE)
            seconds *= random.uniform(1, 2)  # noqa: S311 - spreads
            raise Snooze(timedelta(seconds=seconds)) from None
        started = self._moved_at = time.monotonic()
        try:
            yield
        finally:
            self._slots.release()
            self._moved_at = time.monotonic()
            self._mean += (self._moved_at - started - self._mean) / 8
