"""What the database has just answered: who asks for the same at once is given the same."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")

# Seconds for which an answer serves whoever asks for the same.
LASTS: Final = 1.0


class Memory:
    """Answers of the database, while they are new: twenty open pages look again at once."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    def forget(self) -> None:
        """Ask anew from here on: something has changed."""
        self._tasks.clear()

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what is being asked, or was just now, by this key; else ask."""
        now = time.monotonic()
        for old in [k for k, (until, _) in self._tasks.items() if until < now]:
            del self._tasks[old]
        if key not in self._tasks:
            task = asyncio.create_task(make())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._tasks[key] = (now + LASTS, task)
        made: T = await asyncio.shield(self._tasks[key][1])
        return made
