"""What has just been made: all who ask for the same at once are given one making of it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")

# Seconds for which something serves whoever asks for the same.
LASTS: Final = 1.0


class Memory:
    """Answers of the database, and pages made of them, while they are new."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, tuple[float, asyncio.Task[Any]]] = {}

    def forget(self) -> None:
        """Make everything anew from here on: something has changed."""
        self._tasks.clear()

    async def get(self, key: Hashable, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what is being made, or was just now, by this key; else make it."""
        now = time.monotonic()
        for old in [k for k, (until, _) in self._tasks.items() if until < now]:
            del self._tasks[old]
        if key not in self._tasks:
            task = asyncio.create_task(make())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._tasks[key] = (now + LASTS, task)
        made: T = await asyncio.shield(self._tasks[key][1])
        return made
