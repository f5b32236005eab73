"""The connections of a worker, but for the one that listens."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from psycopg.types.string import TextLoader

from jobq.worker.link import Link, Silence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from psycopg import AsyncConnection
    from psycopg.abc import Params

__all__ = ["Links"]

# Connections for exchanges and upkeep: two exchanges are under way at a time at the most, and
# upkeep that hangs leaves one.
WORKING: Final = 2
# Seconds for which a connection that nobody uses stays open, the last one but for it: longer
# than the pauses of a load that comes and goes.
REST: Final = 5.0


class Links:
    """Two connections for work, and a third for what must never wait for it.

    What was used last is used next, so that a worker with little to do needs one, and the
    others are closed.

    Args:
        url: the database.
        is_pooled: whether a pooler in transaction mode is in between.
        silence: shared with the worker's other connections.
    """

    def __init__(self, url: str, *, is_pooled: bool, silence: Silence) -> None:
        self._url = url
        self._is_pooled = is_pooled
        self._silence = silence
        self._links: list[Link] = []
        self._free: list[Link] = []
        self._left_at: dict[Link, float] = {}
        self._work = asyncio.Semaphore(WORKING)
        self._vital = asyncio.Lock()

    @property
    def answered_ago(self) -> float | None:
        """Seconds since the database last answered; None when it never has."""
        heard_at = max((link.heard_at for link in self._links), default=float("-inf"))
        ago = asyncio.get_running_loop().time() - heard_at
        return None if ago == float("inf") else ago

    @property
    def sockets(self) -> list[int]:
        """The descriptors of what is open."""
        return [link.socket for link in self._links if link.socket is not None]

    async def call(
        self, statement: str | bytes, parameters: Params = (), *, is_vital: bool = False
    ) -> list[Any]:
        """Run one statement on a connection that is free, and return its rows.

        Args:
            statement: what to run.
            parameters: of it.
            is_vital: whether it must not wait for exchanges and upkeep: a heartbeat.

        Raises:
            DatabaseUnavailable: there was no answer.
            JobqError: the database refused.
        """
        async with self._turn(is_vital=is_vital) as link:
            return await link.call(statement, parameters)

    async def call_many(self, statement: str, parameters: Sequence[Sequence[object]]) -> None:
        """Run one statement with many sets of parameters, in one round trip, vital.

        Raises:
            JobqError: as for `call`; then none of them may have taken effect.
        """
        async with self._turn(is_vital=True) as link:
            await link.call_many(statement, parameters)

    async def close_idle(self) -> None:
        """Close what has not been used for a while, but for one."""
        now = time.monotonic()
        for link in self._free[:-1]:
            if link.is_open and now - self._left_at[link] > REST:
                await link.close()

    async def close(self) -> None:
        """Close everything."""
        for link in self._links:
            await link.close()

    @asynccontextmanager
    async def _turn(self, *, is_vital: bool) -> AsyncIterator[Link]:
        async with self._vital if is_vital else self._work:
            link = self._free.pop() if self._free else self._make()
            try:
                yield link
            finally:
                self._left_at[link] = time.monotonic()
                self._free.append(link)

    def _make(self) -> Link:
        link = Link(
            self._url,
            "jobq worker",
            is_pooled=self._is_pooled,
            configure=_read_text,
            silence=self._silence,
        )
        self._links.append(link)
        return link


def _read_text(connection: AsyncConnection[Any]) -> None:
    """Have a connection leave as text what `Held` reads when it is needed."""
    for name in ("uuid", "interval", "timestamptz", "jsonb"):
        connection.adapters.register_loader(name, TextLoader)
