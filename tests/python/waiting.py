"""Waiting for what a test observes, instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")

# Long, since the machine may be busy; it is the price of a failure alone.
PATIENCE = 90.0
# Seconds between two looks. The pause grows with the time waited, by a tenth of it, so that long
# waits do not keep a processor busy that what is waited for needs.
SHORTEST = 0.005
LONGEST = 0.1


def pauses(patience: float, what: str) -> Iterator[float]:
    """Yield how long to wait before each next look.

    Raises:
        AssertionError: the time is over.
    """
    started = time.monotonic()
    while (waited := time.monotonic() - started) < patience:
        yield min(max(waited / 10, SHORTEST), LONGEST)
    raise AssertionError(f"waited {patience} s in vain {what}")


def until(look: Callable[[], T], what: str = "", patience: float = PATIENCE) -> T:
    """Look again and again until there is something; return it.

    Raises:
        AssertionError: there is nothing in time.
    """
    pause = pauses(patience, what)
    while not (found := look()):
        time.sleep(next(pause))
    return found


async def until_async(
    look: Callable[[], Awaitable[T]], what: str = "", patience: float = PATIENCE
) -> T:
    """As `until`, with a look that is awaited."""
    pause = pauses(patience, what)
    while not (found := await look()):
        await asyncio.sleep(next(pause))
    return found
