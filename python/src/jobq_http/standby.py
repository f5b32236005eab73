"""A standby that serves lists and figures while its lag is small."""

from __future__ import annotations

import asyncio
import logging
import math
from datetime import timedelta
from typing import Final

import psycopg

from jobq_http.database import Database

logger = logging.getLogger("jobq.http")

# Interval and timeout of queries of the lag, in seconds.
PULSE: Final = 1.0


class Standby:
    """A standby database.

    Args:
        url: a PostgreSQL connection string.
        pool_size: maximum number of connections per role.
        patience: seconds to wait for a connection, and timeout of a call.
        longest_lag: maximum lag in seconds; above it, the standby is not used.
    """

    def __init__(self, url: str, pool_size: int, patience: float, longest_lag: float) -> None:
        self.database = Database(url, pool_size, patience)
        self._longest_lag = longest_lag
        self._lag = math.nan

    @property
    def lag(self) -> float:
        """The last measured lag in seconds; NaN while it does not respond."""
        return self._lag

    @property
    def is_fit(self) -> bool:
        """Whether it responds and its lag is small."""
        return self._lag <= self._longest_lag

    async def watch(self) -> None:
        """Measure its lag repeatedly."""
        while True:
            was_fit = self.is_fit
            self._lag = await self._ask()
            if self.is_fit is not was_fit:
                word = "used again" if self.is_fit else "not used"
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
    """Return a lag in seconds; that of a primary is 0."""
    return 0.0 if lag is None else lag.total_seconds()
