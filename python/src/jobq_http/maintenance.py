"""Maintenance from the server too, so that workers over HTTP need no other caller."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from jobq_http.database import Database

logger = logging.getLogger("jobq.http")


async def maintain(database: Database, every: float) -> None:
    """Call jobq.maintain() again and again, until cancelled.

    Args:
        database: where.
        every: about how many seconds apart; any number of servers and workers may
            call, one does the work.
    """
    while True:
        try:
            rows = await database.fetch_named("jobq_worker", "maintain")
            if any(row["has_more"] for row in rows):
                continue
        except psycopg.Error as error:
            logger.warning("maintain: %s", error)
        await asyncio.sleep(every * random.uniform(0.8, 1.2))  # noqa: S311
