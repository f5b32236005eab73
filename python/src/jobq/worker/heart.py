"""Heartbeats: they keep leases, and bring word of lost and cancelled jobs."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from jobq.errors import DatabaseUnavailable, JobqError
from jobq.worker.exchange import array
from jobq.worker.held import CancelConfirmed, Gone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.worker.dispatcher import Dispatcher
    from jobq.worker.held import Held
    from jobq.worker.link import Link

__all__ = ["Heart"]

logger = logging.getLogger("jobq.worker")

HEARTBEAT: Final = "select job_id::text, outcome from jobq.heartbeat(%s, %s, %s, %s)"
SIGN_OF_LIFE: Final = 15.0
LOOK: Final = 0.25
PATIENCE: Final = 1.0


class Heart:
    """Beats for the jobs of a worker: each a third of its lease after the last beat.

    Args:
        link: the connection to beat on.
        worker: the worker's name.
        queues: what it serves, for ``jobq.explain``.
        dispatcher: who holds the jobs.
    """

    def __init__(
        self, link: Link, worker: str, queues: Sequence[str], dispatcher: Dispatcher
    ) -> None:
        self._link = link
        self._worker = worker
        self._queues = list(queues)
        self._dispatcher = dispatcher
        self._beat_at = 0.0
        self._is_asked = asyncio.Event()

    def ask(self) -> None:
        """Beat now: somebody has asked to cancel a job of these queues."""
        self._is_asked.set()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            is_asked = self._is_asked.is_set()
            self._is_asked.clear()
            try:
                await self._beat(is_asked=is_asked)
            except DatabaseUnavailable as error:
                logger.warning("no heartbeat: %s", error)
            except JobqError:
                logger.exception("the heartbeat was refused")
            self._dispatcher.give_back_late(PATIENCE)
            try:
                async with asyncio.timeout(LOOK):
                    await self._is_asked.wait()
            except TimeoutError:
                pass

    async def _beat(self, *, is_asked: bool) -> None:
        now = time.monotonic()
        jobs = [
            held
            for held in self._dispatcher.held()
            if is_asked or now - held.held_at > held.lease / 3 - LOOK / 2
        ]
        if not jobs and (is_asked or now - self._beat_at < SIGN_OF_LIFE):
            return
        rows = await self._link.call(
            HEARTBEAT,
            (
                self._worker,
                array(held.job_id for held in jobs),
                array(str(held.attempt) for held in jobs),
                self._queues,
            ),
        )
        self._beat_at = now
        outcomes = dict(rows)
        for held in jobs:
            self._take(held, outcomes[held.job_id], now)

    def _take(self, held: Held, outcome: str, now: float) -> None:
        """Do what the database says about a job."""
        if held.settlement is not None:
            return
        if outcome == "lost":
            self._dispatcher.settle(held, Gone("lost"))
            held.interrupt()
            return
        held.held_at = now
        if outcome == "cancel_requested" and not held.is_cancel_requested:
            held.is_cancel_requested = True
            held.stop()
            if not held.started_at:
                self._dispatcher.settle(held, CancelConfirmed())
