"""Heartbeats: they keep leases, and bring word of lost and cancelled jobs."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from jobq.errors import DatabaseUnavailable, JobqError
from jobq.settlement import CancelConfirmed, Gone
from jobq.worker.link import Pace
from jobq.worker.logs import Sparing

if TYPE_CHECKING:
    from jobq.worker.dispatcher import Dispatcher
    from jobq.worker.held import Held
    from jobq.worker.protocol import Protocol

__all__ = ["Heart"]

logger = logging.getLogger("jobq.worker")

# Seconds between heartbeats of a worker without jobs; after 60 s without one nobody counts it.
SIGN_OF_LIFE: Final = 15.0
# Seconds between looks at what is due: a third of the shortest lease is a little more.
LOOK: Final = 0.25
# Seconds before another try after a failure, in time for the least leases.
LONGEST_PAUSE: Final = 2.0


class Heart:
    """Beats for the jobs of a worker: each a third of its lease after the last beat.

    It beats at once for a kind that the worker leaves to others, so that explain() can tell.

    Args:
        protocol: what is said to the database.
        dispatcher: who holds the jobs.
    """

    def __init__(self, protocol: Protocol, dispatcher: Dispatcher) -> None:
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._beat_at = 0.0
        self._is_asked = asyncio.Event()
        self._complaints = Sparing(logger)

    def ask(self) -> None:
        """Beat now: somebody has asked to cancel a job of these queues."""
        self._is_asked.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        pace = Pace(most=LONGEST_PAUSE)
        while True:
            is_asked = self._is_asked.is_set()
            self._is_asked.clear()
            pause = LOOK
            try:
                await self._beat(is_asked=is_asked)
                pace.reset()
            except DatabaseUnavailable as error:
                self._complaints.warning("no heartbeat: %s", error)
                pause = pace.next()
            except JobqError as error:
                self._complaints.error("the heartbeat was refused: %s", error)
                pause = pace.next()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_asked.wait()

    async def _beat(self, *, is_asked: bool) -> None:
        now = time.monotonic()
        jobs = [
            held
            for held in self._dispatcher.held()
            if is_asked or now - held.held_at > held.lease / 3 - LOOK / 2
        ]
        is_due = now - self._beat_at >= SIGN_OF_LIFE and not is_asked
        if not (jobs or is_due or self._protocol.has_news):
            return
        outcomes = await self._protocol.heartbeat(jobs)
        self._beat_at = now
        for held in jobs:
            self._take(held, outcomes.get(held.key, "lost"), now)

    def _take(self, held: Held, outcome: str, now: float) -> None:
        """Do what the database says about a job."""
        if held.settlement is not None or (outcome == "lost" and held.is_ending):
            return
        if outcome == "lost":
            self._dispatcher.settle(held, Gone("lost"))
            held.interrupt()
            return
        if outcome == "held":
            return
        held.held_at = now
        if outcome == "cancel_requested" and not held.is_cancel_requested:
            held.is_cancel_requested = True
            held.stop()
            if not held.started_at or (held.handler and held.handler.interrupt_on_cancel):
                self._dispatcher.settle(held, CancelConfirmed())
                held.interrupt()
