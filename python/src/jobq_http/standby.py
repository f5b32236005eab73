"""A standby that answers lists and figures, as long as it is not too far behind."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Final

import psycopg

from jobq_http.database import Database

if TYPE_CHECKING:
    from datetime import timedelta

logger = logging.getLogger("jobq.http")

# Seconds between two questions for the lag, and how long each may take.
PULSE: Final = 1.0


class Standby:
    """A database that may lie behind the one that takes writes.

    Args:
        url: a PostgreSQL connection string.
        pool_size: at most as many connections for each role.
        patience: seconds that a call waits for a connection, and may then run.
        longest_lag: seconds; while it lies further behind, it is not to be asked.
    """

    def __init__(self, url: str, pool_size: int, patience: float, longest_lag: float) -> None:
        self.database = Database(url, pool_size, patience)
        self._longest_lag = longest_lag
        self._lag = math.nan

    @property
    def lag(self) -> float:
        """Seconds by which it lies behind, as of a moment ago; NaN while it does not answer."""
        return self._lag

    @property
    def is_fit(self) -> bool:
        """Whether it answers, and not from too long ago."""
        return self._lag <= self._longest_lag

    async def watch(self) -> None:
        """Ask it again and again how far it lies behind."""
        while True:
            was_fit = self.is_fit
            self._lag = await self._ask()
            if self.is_fit is not was_fit:
                word = "asked again" if self.is_fit else "not asked"
                logger.warning("the read database is %s: lag %.1f s", word, self._lag)
            await asyncio.sleep(PULSE)

    async def _ask(self) -> float:
        try:
            async with asyncio.timeout(PULSE):
                [(lag,)] = await self.database.fetch("jobq_reader", "replica_lag")
        except (TimeoutError, psycopg.Error):
            return math.nan
        return seconds_of(lag)


def seconds_of(lag: timedelta | None) -> float:
    """Return a lag in seconds; a primary has none."""
    return 0.0 if lag is None else lag.total_seconds()
