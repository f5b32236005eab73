"""Heartbeats keep leases, and report which jobs are lost or to be cancelled."""

from __future__ import annotations

import logging
import time
from dataclasses import KW_ONLY, dataclass

from jobq.errors import DatabaseUnavailable, JobqError
from jobq.registry.settlement import CancelConfirmed, Gone
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Complaints, Connections
from jobq.worker.listener import Wakeups, is_set_within
from jobq.worker.producer import Producer
from jobq.worker.queries import Job, Queries


@dataclass(eq=False)
class Heartbeat:
    """Extends the lease of each job whenever a third of it has passed.

    Without jobs it shows that the worker is alive, and makes `Maintenance` check what is due. A
    newly excluded kind is sent at once, so that explain() can report it.
    """

    queries: Queries
    connections: Connections
    producer: Producer
    wakeups: Wakeups
    _: KW_ONLY
    is_sleepy: bool
    _beat_at: float = 0.0

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        backoff = Backoff(tuning.POLL_LAST)  # in time for the shortest leases
        complaints = Complaints()
        while True:
            is_asked = self.wakeups.heartbeat.is_set()
            self.wakeups.heartbeat.clear()
            await self.connections.close_idle()
            pause = tuning.TICK
            try:
                await self._beat(is_asked=is_asked)
                backoff.tries = 0
            except JobqError as error:
                is_away = isinstance(error, DatabaseUnavailable)
                level = logging.WARNING if is_away else logging.ERROR
                complaints.warning("heartbeat failed: %s", error, level=level)
                pause = backoff.next()
            await is_set_within(self.wakeups.heartbeat, pause)

    async def _beat(self, *, is_asked: bool) -> None:
        now = time.monotonic()
        # Without a listener, only heartbeats report cancel requests.
        is_polling = not self.producer.is_listening and now - self._beat_at > tuning.POLL_LAST
        jobs = [
            job
            for job in self.producer.jobs()
            if is_asked or is_polling or now - job.extended_at > job.lease / 3 - tuning.TICK / 2
        ]
        is_quiet = self.is_sleepy and self._beat_at > 0 and self.producer.is_idle
        is_due = now - self._beat_at >= tuning.SIGN_OF_LIFE and not is_asked and not is_quiet
        if not (jobs or is_due or self.queries.has_news):
            return
        outcomes = await self.queries.heartbeat(jobs, self.producer.stuck)
        self._beat_at = now
        if is_due:
            self.wakeups.maintenance.set()
        for job in jobs:
            self._take(job, outcomes.get(job.key, "lost"), now)

    def _take(self, job: Job, outcome: str, now: float) -> None:
        """Act on the outcome of a heartbeat for a job."""
        if outcome not in ("lost", "held"):
            job.extended_at = now
        if job.settlement is not None or (outcome == "lost" and job.is_ending):
            return
        if outcome == "lost":
            self.producer.settle(job, Gone("lost"))
            job.interrupt()
        elif outcome == "cancel_requested" and not job.is_cancel_requested:
            job.is_cancel_requested = True
            job.stop()
            if not job.started_at or (job.handler and job.handler.interrupt_on_cancel):
                self.producer.settle(job, CancelConfirmed())
                job.interrupt()
