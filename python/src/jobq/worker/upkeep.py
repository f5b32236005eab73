"""What a worker does besides: the database's upkeep, and looking after itself."""

from __future__ import annotations

import asyncio
import logging
import random
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobq.errors import JobqError
from jobq.worker.logs import Sparing
from jobq.worker.unknown import FORGET

if TYPE_CHECKING:
    from jobq.worker.attempts import Attempts
    from jobq.worker.dispatcher import Dispatcher
    from jobq.worker.links import Links
    from jobq.worker.protocol import Protocol
    from jobq.worker.stop import Stop

__all__ = ["learn", "maintain", "patrol", "resident_bytes"]

logger = logging.getLogger("jobq.worker")

# Seconds between calls of jobq.maintain(), give or take a half: leases that have expired are
# taken back within 4.5 s.
INTERVAL: Final = 3.0
# Seconds between them at least, where slots of schedules follow each other quickly.
LEAST: Final = 0.1
# Seconds between looks at what the worker holds: the least lease is 1 s, and it is given back
# after a fifth of it.
LOOK: Final = 0.25
# Of all slots: with so many gone for good, a worker afresh does more than this one.
MOST_STUCK: Final = 0.5
PAGE: Final = resource.getpagesize()
_STATM: Final = Path("/proc/self/statm")


async def maintain(protocol: Protocol, links: Links) -> None:
    """Call jobq.maintain() now and then, until cancelled, and close connections left idle.

    That is also done when the next slot of a schedule is due.

    Of all the workers that do, one works and the others return at once.
    """
    complaints = Sparing(logger)
    while True:
        pause = INTERVAL * random.uniform(0.5, 1.5)  # noqa: S311 - spreads workers
        has_more = False
        try:
            done, has_more = await protocol.maintain()
            slot = await protocol.tick_in()
            if slot is not None:
                pause = min(pause, max(LEAST, slot))
            for task in [task for task, affected in done.items() if affected is None]:
                complaints.warning("%s: this maintenance fails, jobq doctor says why", task)
            if done.get("recovered"):
                logger.info("took back %d jobs whose lease had expired", done["recovered"])
        except JobqError as error:
            complaints.warning("no maintenance: %s", error)
        if has_more:
            continue
        await links.close_idle()
        await asyncio.sleep(pause)


async def learn(attempts: Attempts) -> None:
    """Ask now and then what the worker cannot do, until cancelled."""
    while True:
        await asyncio.sleep(FORGET)
        await attempts.learn()


async def patrol(dispatcher: Dispatcher, stop: Stop, slots: int) -> None:
    """Give back what waits for too long, and end the worker when it has lost its slots."""
    while True:
        dispatcher.give_back_late()
        stuck = dispatcher.stuck
        if stuck and stuck >= MOST_STUCK * slots:
            kinds = ", ".join(sorted({held.kind for held in dispatcher.overdue}))
            logger.error("%d of %d slots hang in handlers of %s", stuck, slots, kinds)
            stop.recycle("its slots are lost to handlers that hang")
            return
        stop.look_at_memory()
        await asyncio.sleep(LOOK)


def resident_bytes() -> int:
    """Return how many bytes of memory this process uses now.

    Where the system does not tell, the most that it has used.
    """
    try:
        return int(_STATM.read_text().split()[1]) * PAGE
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
