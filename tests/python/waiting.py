"""Waiting for what a test observes, instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

# Long, since the machine may be busy; it is the price of a failure alone.
PATIENCE = 90.0


def until(look: Callable[[], T], what: str = "", patience: float = PATIENCE) -> T:
    """Look again and again until there is something; return it.

    Raises:
        AssertionError: there is nothing in time.
    """
    deadline = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {patience} s in vain {what}"
        time.sleep(0.005)
    return found


async def until_async(
    look: Callable[[], Awaitable[T]], what: str = "", patience: float = PATIENCE
) -> T:
    """As `until`, with a look that is awaited."""
    deadline = time.monotonic() + patience
    while not (found := await look()):
        assert time.monotonic() < deadline, f"waited {patience} s in vain {what}"
        await asyncio.sleep(0.005)
    return found
