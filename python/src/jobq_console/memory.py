"""A short cache of the database's answers, shared by concurrent requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Lifetime of an answer in seconds.
LASTS: Final = 1.0


class Memory:
    """Recent answers of the database, because many open pages update at the same time."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}
        self._pulse: object = None

    def forget(self) -> None:
        """Drop all answers, because something has changed."""
        self._tasks.clear()

    def forget_at(self, pulse: object) -> None:
        """Ask anew from here on if the pulse is another than before."""
        if pulse != self._pulse:
            self._pulse = pulse
            self.forget()

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the present or recent answer for this key, or query it."""
        now = time.monotonic()
        for old in [k for k, (until, _) in self._tasks.items() if until < now]:
            del self._tasks[old]
        if key not in self._tasks:
            task = asyncio.create_task(make())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._tasks[key] = (now + LASTS, task)
        made: T = await asyncio.shield(self._tasks[key][1])
        return made
