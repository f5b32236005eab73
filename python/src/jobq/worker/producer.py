"""The producer claims jobs, keeps the slots full and settles finished jobs.

A loop makes one exchange with the database after the other: each settles finished jobs and
claims new ones. Meanwhile jobs run as tasks. Jobs that finish during an exchange are settled
by the next one, so batches grow with the load. While claims are full, two exchanges run at a
time, so that neither the database nor the worker waits for the other.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import KW_ONLY, dataclass

from jobq.errors import DatabaseUnavailable
from jobq.registry.settlement import Failed, Gone, Raised, Released, Settlement, Succeeded
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Complaints
from jobq.worker.controller import Controller, InProcess, Slots
from jobq.worker.executor import Executor
from jobq.worker.listener import Listener, Wakeups, is_set_within
from jobq.worker.metrics import Report
from jobq.worker.queries import Job, Queries
from jobq.worker.signals import Stop

logger = logging.getLogger("jobq.worker")


@dataclass(eq=False)
class Producer:
    """Claims, starts and settles jobs. ``started_at`` is when it last started one."""

    queries: Queries
    executor: Executor
    report: Report
    listener: Listener | None
    wakeups: Wakeups
    stop: Stop
    _: KW_ONLY
    slots: Slots
    in_process: InProcess
    poll: float
    until_empty: bool = False

    def __post_init__(self) -> None:
        self._wake = self.wakeups.producer
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._controller = Controller(self.slots.total)
        self._complaints = Complaints()
        self._backoff = Backoff()
        self._misses = Backoff(tuning.RETRY_LAST, tuning.RETRY_FIRST)  # due jobs were locked
        self._openings = Backoff(tuning.TICK, tuning.RETRY_FIRST)  # of transactions that enqueue
        self._polls = Backoff(min(self.poll, tuning.POLL_LAST), 2 * tuning.IDLE_AFTER)
        # A job is in one of these, in this order; `overdue`: settled jobs with running handlers.
        self._waiting: deque[Job] = deque()
        self.running: dict[Job, None] = {}
        self._ended: list[Job] = []
        self._sent: list[list[Job]] = []
        self._locked: list[Job] = []
        self.overdue: dict[Job, None] = {}
        self._exchanges: set[asyncio.Task[None]] = set()
        self._asked = 0  # jobs that exchanges are claiming now
        self._sent_at = 0.0
        self._ended_since = 0.0
        self._prefetch = 0
        self._is_urgent = False  # something waits for a job that has ended
        self._is_hungry = True  # there may be jobs to claim
        self._is_pressed = False  # claims come back full
        self._is_away = False  # the database does not answer
        self._sleep_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._active_at = time.monotonic()
        self.started_at = 0.0
        self.is_claiming = True
        self._has_patterns = self.listener is not None and self.listener.has_patterns
        self._longest_sleep = self.poll if self._has_patterns else math.inf
        self.in_process.held = lambda: (*self._waiting, *self.running, *self.overdue)
        self.slots.join(self)

    # ---- claim

    async def run(self) -> None:
        """Work until `stop_claiming` was called and no job is held."""
        while self.is_claiming or not self.is_idle:
            self._wake.clear()
            self._is_hungry = self._is_hungry or self.wakeups.has_jobs
            self.wakeups.has_jobs = False
            try:
                await self._step()
            except DatabaseUnavailable as error:
                self._complaints.warning("the database is unavailable: %s", error)
                self._is_away = self.slots.is_shared
                self.slots.pass_on(self)
                await asyncio.sleep(self._backoff.next())
                self._is_hungry = True

    async def _step(self) -> None:
        for exchange in [exchange for exchange in self._exchanges if exchange.done()]:
            self._exchanges.discard(exchange)
            if not exchange.cancelled():
                exchange.result()
        if not self.is_claiming and self.is_idle:
            return
        if self._may_exchange():
            exchange = self._loop.create_task(self._exchange())
            self._exchanges.add(exchange)
            exchange.add_done_callback(lambda _: self._wake.set())
        elif self._exchanges:
            await self._wake.wait()
        else:
            await self._sleep()

    def _may_exchange(self) -> bool:
        """Whether to begin an exchange: one at a time, or two while claims are full."""
        if len(self._exchanges) > (self._is_pressed and not self.in_process):
            return False
        if self._is_away:  # one that asks for no job shows who is back
            return True
        if self._ended and time.monotonic() - self._ended_since >= self._settle_delay():
            return True
        is_low = len(self._waiting) + self._asked <= self._prefetch // 2
        return self._is_hungry and is_low and self._room() > 0

    async def _exchange(self) -> None:
        """Settle finished jobs, claim new ones and start them."""
        # Jobs with limits are not prefetched.
        asked, at_once, most = self._room(), self._free(), self._controller.limit
        settled, self._ended = self._ended[:most], self._ended[most:]
        self._is_urgent = bool(self._ended)
        self._is_hungry = self._is_pressed
        self._asked += asked
        self._sent.append(settled)
        self._sent_at = sent_at = time.monotonic()
        try:
            jobs, outcomes = await self.queries.settle_and_claim(
                settled, asked, min(asked, at_once)
            )
        except BaseException:
            self._ended[:0] = self._in_doubt(settled, sent_at)
            self._ended_since = 0.0  # to settle them at once
            self._is_pressed = False
            self._controller.not_answered(max(asked, len(settled)))
            raise
        finally:
            self._asked -= asked
            self._sent.remove(settled)
        self._backoff.tries = 0
        self._controller.answered(max(len(jobs), len(settled)))
        is_full = 0 < asked == len(jobs)
        self._is_hungry = self._is_hungry or is_full or self._is_away
        if self.in_process:
            self._is_hungry = self._is_hungry or bool(jobs) or self.in_process.is_half_claimed
        self._is_pressed = is_full and asked == tuning.MAX_BATCH
        self._is_away = False
        if jobs:
            if self.listener is not None and self._has_patterns:
                self.listener.learn(job.queue for job in jobs)
            self._controller.claimed([len(job.payload) for job in jobs], time.monotonic())
            self._misses.tries = self._openings.tries = self._polls.tries = 0
        self._look_ahead()
        if self.is_claiming:
            self._waiting += jobs
            self._fill()
        else:
            self._give_back(jobs)
        self._report_all(settled, outcomes)
        self.slots.pass_on(self)
        if is_full or len(jobs) >= 32:  # more are likely: it would be woken at once
            self._sleep_at = time.monotonic() + tuning.IDLE_AFTER
            if self.listener is not None:
                await self.listener.end_wait()

    def _room(self) -> int:
        """How many jobs to claim."""
        if not self.is_claiming or self._is_away:
            return 0
        self._controller.slots = self.slots.limit(self)
        return self._controller.claim(len(self._waiting) + self.taken + self._asked, self._prefetch)

    def _free(self) -> int:
        """How many jobs could start at once."""
        return max(0, self.slots.limit(self) - self.taken - len(self._waiting) - self._asked)

    def _look_ahead(self) -> None:
        is_full = self.taken >= self.slots.limit(self)
        stalled = time.monotonic() - self.started_at if is_full else 0.0
        self._prefetch = self._controller.prefetch(stalled)

    # ---- start

    def _fill(self) -> None:
        """Start waiting jobs while there are free slots."""
        now = time.monotonic()
        while self._waiting and self.slots.limit(self) > self.taken:
            if not self.in_process:
                job = self._waiting.popleft()
            elif startable := self.in_process.startable(
                self._waiting, (*self.running, *self.overdue)
            ):
                job = startable
                self._waiting.remove(job)
            else:
                return
            job.slot_at = self.started_at = now
            self.running[job] = None
            # Not in the context of the job whose end has called this, which may have variables.
            job.task = self._loop.create_task(self._run(job), context=self._context.copy())

    # ---- run

    async def _run(self, job: Job) -> None:
        try:
            settlement = job.settlement or await self.executor.prepare(job)
            settlement = job.settlement or settlement
            if settlement is None:
                job.started_at = time.monotonic()
                self.report.started(job)
                settlement = await self.executor.run(job)
        except BaseException as error:
            settlement = self.executor.settlement_of(job, Raised(error))
        self._end(job, settlement)

    def _end(self, job: Job, settlement: Settlement) -> None:
        """Settle a job whose handler has finished, and free its slot."""
        self._active_at = time.monotonic()
        job.task = None  # which holds the job too
        self.running.pop(job, None)
        self._is_hungry = self._is_hungry or bool(self.in_process)
        if job in self.overdue:
            del self.overdue[job]
            self._is_hungry = True
            self._wake.set()
        self.executor.leave(job)
        if job.started_at:
            self._controller.took(time.monotonic() - job.started_at)
        if not job.settled_at:
            self._settle(job, settlement)
        self.slots.pass_on(self)
        self.refill()

    def refill(self) -> None:
        """Start waiting jobs; wake the loop for an exchange, now or later."""
        self._fill()
        if self._wake.is_set():
            return
        if self._may_exchange() or not (self.is_claiming or self.running):
            self._wake.set()
        else:
            self._set_timer()

    # ---- settle

    def settle(self, job: Job, settlement: Settlement) -> None:
        """Settle a job, unless it is settled; if its handler still runs, it keeps its slot."""
        if not job.settled_at:
            self._settle(job, settlement)
            self._wake.set()

    def _settle(self, job: Job, settlement: Settlement) -> None:
        if job in self.running:
            del self.running[job]
            self.overdue[job] = None
        job.settlement = settlement
        job.settled_at = time.monotonic()
        job.stop()
        if isinstance(settlement, Gone):
            self.report.ended(job, settlement.outcome)
        else:
            if not self._ended:
                self._ended_since = job.settled_at
            self._ended.append(job)
            if job.is_awaited or not isinstance(settlement, Succeeded):
                self._is_urgent = True

    def _settle_delay(self) -> float:
        if not self._waiting and (self._is_urgent or not self.is_claiming):
            return 0.0
        return self._controller.settle_delay(len(self._ended), is_waiting=bool(self._waiting))

    def _set_timer(self) -> None:
        """Wake the loop when finished jobs must be settled."""
        if self._ended and self._timer is None:
            pause = max(0.0, self._ended_since + self._settle_delay() - time.monotonic())
            self._timer = self._loop.call_later(pause, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._wake.set()

    def _in_doubt(self, settled: list[Job], sent_at: float) -> list[Job]:
        """Return the jobs to settle again after an exchange without an answer.

        If heartbeats extend the lease of a job, but its settlement has no answer for longer than
        that, even alone, it is given up: its lease expires as if the worker had crashed.
        """
        for job in settled:
            job.doubted_at = job.doubted_at or sent_at
        if len(settled) != 1 or self._controller.limit > 1:
            return settled
        [job] = settled
        doubted_for = time.monotonic() - job.doubted_at
        if doubted_for < job.lease or job.extended_at < job.doubted_at:
            return settled
        logger.error("job %s cannot be settled, its lease will expire", job.job_id)
        self.report.ended(job, "unknown")
        return []

    def _report_all(self, settled: Sequence[Job], outcomes: dict[Job, str]) -> None:
        """Report outcomes of jobs; settle again those whose rows another transaction has locked."""
        succeeded = [job for job in settled if outcomes.get(job) == "succeeded"]
        self.report.succeeded(succeeded)
        for job in settled if len(succeeded) < len(settled) else ():
            outcome = outcomes.get(job, "lost")
            if outcome == "held":
                self._locked.append(job)
            elif outcome != "succeeded":
                is_unknown = job.doubted_at and outcome == "lost"
                self.report.ended(job, "unknown" if is_unknown else outcome)
                if outcome == "dead" and isinstance(job.settlement, Failed):
                    self.executor.call_on_dead(job, job.settlement)

    # ---- sleep

    async def _sleep(self) -> None:
        """Wait for a wake-up, or until a job is due."""
        self._set_timer()
        listener = self.listener
        if not self.is_claiming or self._room() == 0:
            if not await self._wait(self.poll) and self.slots.is_shared:
                self._is_hungry = True  # another producer may have left a slot
            return
        if listener is not None and listener.is_listening and not listener.is_waiting:
            await self._ask_to_be_woken(listener)
            return
        # Short if limits kept it from claiming.
        if await self._wait(tuning.RETRY_FIRST if self._misses.tries else tuning.IDLE_AFTER):
            return
        due = await self.queries.due_in()
        is_due = due is not None and due <= 0
        if self.until_empty and self.is_idle and not is_due:
            self.stop.requested.set()
        is_told = listener is not None and listener.is_waiting
        pause = self._longest_sleep if is_told else self._polls.next()
        if not is_due:
            self._misses.tries = 0
            pause = min(pause, math.inf if due is None else due)
        elif self._free():  # a limit, or another worker's claim, was in the way
            pause = min(pause, self._misses.next())
        elif is_told:
            pause = self.poll
        if not await self._wait(pause):
            self._is_hungry = True

    async def _ask_to_be_woken(self, listener: Listener) -> None:
        if await self._wait(self._sleep_at - time.monotonic()):
            return
        if not await listener.begin_wait():  # a transaction that enqueues is open: it may last
            self._sleep_at = time.monotonic() + self._openings.next()
        self._is_hungry = True

    async def _wait(self, seconds: float) -> bool:
        """Wait for a wake-up; return false after a timeout."""
        if seconds <= 0 or self._wake.is_set():
            return self._wake.is_set()
        return await is_set_within(self._wake, seconds)

    # ---- supervision

    async def supervise(self) -> None:
        """End overdue attempts; restart the worker when its slots or its memory are used up."""
        while True:
            self.check()
            stuck, slots = self.stuck, self.slots.total
            if stuck and 2 * stuck >= slots:
                kinds = ", ".join(sorted({job.kind for job in self.overdue}))
                logger.error("hanging handlers occupy %d of %d slots: %s", stuck, slots, kinds)
                self.stop.recycle("too many slots are occupied by hanging handlers")
            self.stop.check_memory()
            await asyncio.sleep(tuning.TICK)

    def check(self) -> None:
        """End overdue attempts; release jobs that have waited too long; settle locked ones again.

        Called every `tuning.TICK`.
        """
        now = time.monotonic()
        for job in list(self.running):
            if not job.started_at:  # it waits for a process
                waited = now - job.slot_at
                if waited > job.lease / 3:
                    self._complaints.warning(
                        "releasing a job of kind %s: no process was ready within %.1f s, a third"
                        " of its lease; make the import of its handler faster, or the lease longer",
                        job.kind, waited,
                    )  # fmt: skip
                    self._give_back([job])
            elif job.expires_at <= now:  # a thread keeps its slot until it ends
                text = f"the attempt took longer than {job.timeout:g} s"
                self.settle(job, Failed("TIMEOUT", text))
                job.interrupt()
        first = self._waiting[0] if self._waiting else None
        if first and now - first.extended_at > min(tuning.PATIENCE, first.lease / 5):
            logger.info("releasing %d jobs that wait for a slot", len(self._waiting))
            late = list(self._waiting)
            self._waiting.clear()
            self._look_ahead()  # not to take the same jobs again
            self._give_back(late)
        if self._locked:
            self._ended += self._locked
            self._locked.clear()
            self._wake.set()

    def stop_claiming(self) -> None:
        """Claim no more jobs, and release those that have not started."""
        self.is_claiming = False
        waiting = [*self._waiting, *(job for job in self.running if not job.started_at)]
        self._waiting.clear()
        self._give_back(waiting)
        self.slots.pass_on(self)
        self._wake.set()

    def abandon(self) -> None:
        """Release every running job, without waiting for their handlers."""
        self._give_back(list(self.running))
        self._wake.set()

    def _give_back(self, jobs: Iterable[Job]) -> None:
        """Release jobs without counting the attempts."""
        for job in jobs:
            self.settle(job, job.settlement or Released())
            if not job.started_at:
                job.interrupt()

    # ---- state

    @property
    def is_idle(self) -> bool:
        """Whether no job is held."""
        held = self._waiting or self.running or self._ended or self._locked
        return not (held or self._exchanges)

    @property
    def is_asleep(self) -> bool:
        """Whether it holds no job and sleeps."""
        return self.is_idle and self.listener is not None and self.listener.is_waiting

    @property
    def is_listening(self) -> bool:
        """Whether notifications wake it."""
        return self.listener is not None and self.listener.is_listening

    @property
    def active_at(self) -> float:
        """When it last held a job, by time.monotonic."""
        is_active = self._waiting or self.running or self._ended
        return time.monotonic() if is_active else self._active_at

    @property
    def stuck(self) -> int:
        """How many slots are occupied by handlers of jobs that were settled long ago."""
        now = time.monotonic()
        return sum(now - job.settled_at > tuning.STUCK_SECONDS for job in self.overdue)

    @property
    def taken(self) -> int:
        """The number of its slots that are occupied."""
        return len(self.running) + len(self.overdue)

    @property
    def wants(self) -> bool:
        """Whether jobs wait for a slot, or may be available to claim."""
        is_slow = bool(self._sent) and time.monotonic() - self._sent_at > tuning.PATIENCE
        if not self.is_claiming or self._is_away or is_slow:
            return False
        return self._is_hungry or self._asked > 0 or len(self._waiting) > 0

    def jobs(self) -> Iterator[Job]:
        """Yield the jobs whose leases must be extended."""
        for jobs in (self._waiting, self._ended, self._locked, *self._sent):
            yield from jobs
        yield from self.running
