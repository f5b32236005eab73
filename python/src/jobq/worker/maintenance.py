"""The database's maintenance, and the kinds that this worker leaves to others."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from dataclasses import KW_ONLY, dataclass
from typing import Final

from jobq.errors import JobqError
from jobq.registry import Registry
from jobq.worker import tuning
from jobq.worker.connections import Complaints
from jobq.worker.controller import SkippedKinds
from jobq.worker.listener import Wakeups, is_set_within
from jobq.worker.metrics import Report
from jobq.worker.producer import Producer
from jobq.worker.queries import Queries

logger = logging.getLogger("jobq.worker")

HOUR: Final = 3600.0


@dataclass(eq=False)
class Maintenance:
    """Calls jobq.maintain() when something is due. Of concurrent calls, only one does the work.

    While the worker has jobs, leases and limits change all the time, so it is called every few
    seconds. An idle worker asks at each heartbeat when it is due, and when the next job is: the
    fallback for a lost wake-up. It is called at least every hour, for daily partitions.
    """

    queries: Queries
    producer: Producer
    wakeups: Wakeups
    _: KW_ONLY
    is_sleepy: bool

    def __post_init__(self) -> None:
        self._maintained_at = -math.inf
        self._complaints = Complaints()

    async def run(self) -> None:
        """Call maintain() until cancelled."""
        due_at = -math.inf
        while True:
            self.wakeups.maintenance.clear()  # what comes from now on may be missing in the answer
            now = time.monotonic()
            is_due = now >= due_at or self._is_active
            is_due = is_due or (now > self._maintained_at + HOUR and not self.is_sleepy)
            try:
                if is_due and await self._maintain():
                    continue
                maintain_in, due_in = await self.queries.next_due()
            except JobqError as error:
                self._complaints.warning("maintenance failed: %s", error)
                await asyncio.sleep(tuning.MAINTAIN_EVERY)
                continue
            is_soon = due_in is not None and (due_in <= tuning.SIGN_OF_LIFE or self.is_sleepy)
            if is_soon and self.producer.is_asleep:
                self.wakeups.job()
            due_at = time.monotonic() + (math.inf if maintain_in is None else maintain_in)
            if is_due:  # what is due still is locked, or another worker is at it
                due_at = max(due_at, now + 2 * tuning.TICK)
            await self._sleep(due_at)

    @property
    def _is_active(self) -> bool:
        """Whether the worker has had a job since the last call of maintain()."""
        return self.producer.active_at >= self._maintained_at

    async def _maintain(self) -> bool:
        """Call maintain(); return whether more remains."""
        self._maintained_at = time.monotonic()
        done, has_more = await self.queries.maintain()
        for task, affected in done.items():
            if affected is None:
                self._complaints.warning("maintenance task %s failed: run jobq doctor", task)
        if done.get("recovered"):
            logger.info("recovered %d jobs whose leases had expired", done["recovered"])
        return has_more

    async def _sleep(self, due_at: float) -> None:
        """Wait until something is due, a heartbeat was sent, or a schedule has changed."""
        began_at = time.monotonic()
        pause = tuning.MAINTAIN_EVERY * random.uniform(0.5, 1.5)  # noqa: S311 - spreads workers
        while not self.wakeups.maintenance.is_set():
            ends_at = min(due_at, began_at + (pause if self._is_active else math.inf))
            left = ends_at - time.monotonic()
            if left <= 0:
                return
            await is_set_within(self.wakeups.maintenance, min(left, tuning.TICK))


@dataclass(eq=False)
class Learner:
    """Excludes the kinds that the function of `Registry.otherwise` cannot run here."""

    registry: Registry
    skipped: SkippedKinds
    report: Report
    wakeups: Wakeups
    _: KW_ONLY
    is_sleepy: bool

    async def learn(self) -> None:
        """Ask which kinds these are."""
        if self.registry.beyond is None:
            return
        try:
            kinds = await self.registry.beyond()
        except Exception as error:
            logger.warning("cannot find out which kinds this worker cannot run: %s", error)
            return
        get, is_fallback = self.registry.get, self.registry.is_fallback
        self.skipped.known = {k: reason for k, reason in kinds.items() if is_fallback(get(k))}
        self.report.left_to_others()

    async def run(self) -> None:
        """Repeat this from time to time; a sleepy worker only after it was woken."""
        while True:
            self.wakeups.kinds.clear()
            await asyncio.sleep(tuning.UNKNOWN_KIND_SECONDS)
            if self.is_sleepy:
                await self.wakeups.kinds.wait()
            before = set(self.skipped.known)
            await self.learn()
            if not before <= set(self.skipped.known):
                self.wakeups.job()
