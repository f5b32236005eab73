"""What a worker does besides: the database's upkeep, and knowing when it is used up."""

from __future__ import annotations

import asyncio
import logging
import random
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobq.errors import JobqError

if TYPE_CHECKING:
    from jobq.worker.link import Link

__all__ = ["maintain", "resident_bytes"]

logger = logging.getLogger("jobq.worker")

INTERVAL: Final = 3.0
PAGE: Final = resource.getpagesize()
_STATM: Final = Path("/proc/self/statm")


async def maintain(link: Link, interval: float = INTERVAL) -> None:
    """Call jobq.maintain() now and then, until cancelled.

    Of all the workers that do, one works and the others return at once.
    """
    while True:
        try:
            for task, affected in await link.call("select task, affected from jobq.maintain()"):
                if task == "recovered" and affected:
                    logger.info("took back %d jobs whose lease had expired", affected)
        except JobqError as error:
            logger.warning("no maintenance: %s", error)
        await asyncio.sleep(interval * random.uniform(0.5, 1.5))  # noqa: S311 - spreads workers


def resident_bytes() -> int:
    """Return how many bytes of memory this process uses now.

    Where the system does not tell, the most that it has used.
    """
    try:
        return int(_STATM.read_text().split()[1]) * PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
