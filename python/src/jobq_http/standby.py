"""A standby that serves lists and figures while its lag is small."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Final

import psycopg

from jobq_http.database import Database

logger = logging.getLogger("jobq.http")

# Interval and timeout of queries of the lag, in seconds.
PULSE: Final = 1.0


class Standby:
    """A standby database, which is used while its lag is at most `longest_lag` seconds.

    Attributes:
        lag: the last measured lag in seconds; NaN while it does not respond.
    """

    def __init__(self, url: str, pool_size: int, patience: float, longest_lag: float) -> None:
        self.database = Database(url, pool_size, patience)
        self._longest_lag = longest_lag
        self.lag = math.nan

    @property
    def is_fit(self) -> bool:
        """Whether it responds and its lag is small."""
        return self.lag <= self._longest_lag

    async def watch(self) -> None:
        """Measure its lag repeatedly."""
        while True:
            was_fit = self.is_fit
            try:
                async with asyncio.timeout(PULSE):
                    [(lag,)] = await self.database.fetch("jobq_reader", "replica_lag")
                self.lag = lag.total_seconds() if lag else 0.0  # a primary has none
            except (TimeoutError, psycopg.Error):
                self.lag = math.nan
            if self.is_fit is not was_fit:
                word = "used again" if self.is_fit else "not used"
                logger.warning("the read database is %s: lag %.1f s", word, self.lag)
            await asyncio.sleep(PULSE)
