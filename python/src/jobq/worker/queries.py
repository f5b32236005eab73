"""A worker's jobs, its statements, and the exchange that settles a batch and claims the next."""

from __future__ import annotations

import logging
import math
import random
import time
from asyncio import Task
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from jobq.errors import DatabaseUnavailable, JobqError, NotDeployed, NotPermitted
from jobq.redaction import error_text
from jobq.registry.context import JobContext, Recorder
from jobq.registry.handler import Handler
from jobq.registry.settlement import (
    NO_RESULT,
    CancelConfirmed,
    Failed,
    Hold,
    Released,
    Settlement,
    Succeeded,
)
from jobq.worker import tuning
from jobq.worker.connections import Connections
from jobq.worker.controller import InProcess, SkippedKinds
from jobq.worker.pools import Process

logger = logging.getLogger("jobq.worker")

Key: TypeAlias = tuple[str, int]
"""A job's id, as text, and the attempt: what a worker knows its jobs by."""

LONGEST_NAME: Final = 128  # of a queue
JOB_COLUMNS: Final = (
    "job_id, attempt, kind, payload, metadata, queue, max_attempts,"
    " extract(epoch from timeout)::float8, run_at,"
    " created_at, idempotency_key, extract(epoch from lease)::float8, delivery_version, is_awaited"
)
EXCHANGE: Final = (
    f"select outcome, {JOB_COLUMNS} from jobq.exchange(%s, %s, %s, %s, %s, %s, %s, %s, %s)"  # noqa: S608
)
HEARTBEAT: Final = "select job_id, attempt, outcome from jobq.heartbeat(%s, %s, %s, %s, %s, %s, %s)"
HOLD_JOB_KEY: Final = "select jobq.rate_limited(%s, %s, %s, %s, false)"
RELEASE_MANY: Final = "select job_id, attempt, state from jobq.release_many(%s, %s, %s)"
# A duration is measured by the clock of the database.
RELEASE_IN: Final = "select job_id, attempt, state from jobq.release_many(%s, %s, now() + %s)"
COMPLETE: Final = "select jobq.complete(%s, %s, %s)"
DUE_IN: Final = "select extract(epoch from jobq.due_in(%s, %s))::float8"
MAINTAIN: Final = "select task, affected, has_more from jobq.maintain()"
NEXT_DUE: Final = (
    "select extract(epoch from jobq.maintain_in())::float8,"
    " extract(epoch from jobq.due_in(%s, %s))::float8"
)
RETIRE: Final = "select jobq.retire_worker(%s)"
SET_PROGRESS: Final = "select jobq.set_progress(%s, %s, %s)"

REFUSED: Final = "RESULT_REFUSED"
NO_PARTITION: Final = "23514"
RELEASED: Final = {"queued": "released", "cancelled": "cancelled", "held": "held", None: "lost"}


@dataclass(slots=True, eq=False)
class Job:
    """A job that this worker has claimed and not yet settled. Most fields stay text.

    The first fields are in the order of `JOB_COLUMNS`. Times are of time.monotonic, 0 before.
    """

    job_id: str
    attempt: int
    kind: str
    payload: str  # JSON, as the metadata
    metadata: str
    queue: str
    max_attempts: int
    timeout: float  # seconds, as the lease
    run_at: str
    created_at: str
    idempotency_key: str | None
    lease: float
    delivery_version: int | None
    is_awaited: bool  # whether a job, batch or client waits for its end
    extended_at: float = field(default_factory=time.monotonic)  # when its lease was
    slot_at: float = 0.0  # when it got a slot
    started_at: float = 0.0  # when its handler was started
    settled_at: float = 0.0  # when its outcome was decided
    doubted_at: float = 0.0  # when its settlement was first sent without an answer
    settlement: Settlement | None = None
    handler: Handler | None = None  # once it has a slot
    context: JobContext | None = None
    task: Task[None] | None = None  # of the handler, from the slot until its end
    process: Process | None = None
    is_cancel_requested: bool = False
    is_ending: bool = False  # whether the handler's own transaction completes it now
    is_interruptible: bool = False  # whether it can be stopped: a coroutine
    is_interrupted: bool = False  # whether the worker has stopped it

    @property
    def key(self) -> Key:
        """The id and the attempt."""
        return self.job_id, self.attempt

    @property
    def expires_at(self) -> float:
        """When the attempt has taken too long."""
        return self.started_at + self.timeout

    def make_context(self, recorder: Recorder) -> JobContext:
        """Create the handler's context.

        Raises:
            ValueError, RecursionError: a time or the metadata cannot be decoded.
        """
        self.context = JobContext(
            job_id=UUID(self.job_id),
            attempt=self.attempt,
            kind=self.kind,
            queue=self.queue,
            metadata=msgspec.json.decode(self.metadata),
            max_attempts=self.max_attempts,
            idempotency_key=self.idempotency_key,
            run_at=datetime.fromisoformat(self.run_at),
            created_at=datetime.fromisoformat(self.created_at),
            delivery_version=self.delivery_version,
            payload_text=self.payload,
            deadline=self.expires_at,
            recorder=recorder,
            cancelled=self.is_cancel_requested,
        )
        return self.context

    def stop(self) -> None:
        """Ask the handler to stop."""
        if self.context is not None:
            self.context.cancelled = True

    def interrupt(self) -> None:
        """Stop the handler if it can be stopped; a handler that has not begun does not begin."""
        self.stop()
        self.is_interrupted = True
        if self.process is not None:
            self.process.kill()
        elif self.task is not None and (self.is_interruptible or not self.started_at):
            self.task.cancel()


current_job: ContextVar[tuple[Job | str, str] | None] = ContextVar("jobq_current_job", default=None)
"""The job whose handler runs, or the kind of a batch, and the worker's name."""


class Queues:
    """The queues of a worker, in the order in which to claim from them.

    Raises:
        ValueError: there is no queue, a name is empty or long, or a weight is not positive.
    """

    def __init__(self, queues: Sequence[str] | Mapping[str, float]) -> None:
        if not queues or isinstance(queues, str):
            raise ValueError("queues must name at least one queue")
        self.names = [*queues]
        if not all(isinstance(n, str) and 1 <= len(n) <= LONGEST_NAME for n in self.names):
            raise ValueError(f"the name of a queue must have 1 to {LONGEST_NAME} characters")
        self._weights = dict(queues) if isinstance(queues, Mapping) else {}
        if not all(math.isfinite(weight) and weight > 0 for weight in self._weights.values()):
            raise ValueError("a queue's weight must be a number above 0")

    def order(self) -> list[str]:
        """Return the queues in the order of this claim."""
        if not self._weights:
            return self.names
        # Efraimidis and Spirakis, 2006: sampling by weight without replacement.
        return sorted(
            self.names,
            key=lambda q: -(random.random() ** (1 / max(self._weights[q], 1e-9))),  # noqa: S311
        )


@dataclass(eq=False)
class Queries:
    """The calls of a worker. Every method raises what `Connections.call` raises."""

    connections: Connections
    worker: str
    queues: Queues
    skipped: SkippedKinds
    in_process: InProcess
    release: str
    _told: Sequence[str] = ()

    # ---- settle and claim

    async def settle_and_claim(
        self, settled: Sequence[Job], max_jobs: int, max_limited: int
    ) -> tuple[list[Job], dict[Job, str]]:
        """Settle a batch and claim up to ``max_jobs`` jobs, even if the database refuses some.

        At most ``max_limited`` of these have a concurrency key or limits. Settling twice is
        harmless: an attempt that was settled before is ``lost``.

        Returns:
            The claimed jobs, and for each settled job its state, ``lost``, or ``held`` if another
            transaction has locked its row: settle it again later.

        Raises:
            DatabaseUnavailable: the database did not answer; settle the same batch again.
        """
        rest = [job for job in settled if not isinstance(job.settlement, Succeeded)]
        outcomes = await self._give_back(rest)
        if rest:
            settled = [job for job in settled if isinstance(job.settlement, Succeeded | Failed)]
        try:
            jobs, ended = await self.exchange(settled, max_jobs, max_limited)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            if not settled:
                raise
            logger.warning("the database refused a batch, settling its jobs one by one: %s", error)
            for job in settled:
                outcomes |= await self._settle_one(job)
            jobs, ended = await self.exchange([], max_jobs, max_limited)
        return jobs, outcomes | ended

    async def exchange(
        self, settled: Sequence[Job], max_jobs: int = 0, max_limited: int = 0
    ) -> tuple[list[Job], dict[Job, str]]:
        """Settle successes and failures, and claim jobs, by one statement."""
        queues, skipped = self.queues.order(), self.skipped.kinds() or []
        full: list[str] = []
        if self.in_process and max_jobs:
            queues, full, most = self.in_process.claim(queues)
            max_jobs = int(min(max_jobs, most))
        done = [job for job in settled if isinstance(job.settlement, Succeeded)]
        failures = None
        if len(done) < len(settled):
            failures = _failures(settled)
        arguments = (
            list(queues), self.worker, max_jobs, *_keys(done), _results(done), failures,
            min(max_jobs, max_limited), [*skipped, *full] or None,
        )  # fmt: skip
        try:
            rows = await self.connections.call(EXCHANGE, arguments)
        except JobqError as error:
            if error.sqlstate != NO_PARTITION:
                raise
            rows = await self.connections.call(EXCHANGE, arguments)  # the day's was just created
        outcomes = dict.fromkeys(done, "succeeded")
        jobs = [Job(*row[1:]) for row in rows if row[0] == "claimed"]
        if len(jobs) < len(rows):
            told = {row[1:3]: row[0] for row in rows if row[0] != "claimed"}
            outcomes |= {job: told[job.key] for job in settled if job.key in told}
        if len(jobs) == max_jobs > 0:  # there may be more of the same
            self.in_process.is_half_claimed = False
        for job in jobs:
            if job.kind in skipped:
                job.settlement = self.skipped.put_off(job.kind)
        return jobs, outcomes

    async def _settle_one(self, job: Job) -> dict[Job, str]:
        """Settle one job of a refused batch; if it was the cause, it fails."""
        refusal: JobqError | None = None
        for _ in range(2):
            try:
                return (await self.exchange([job]))[1]
            except DatabaseUnavailable:
                raise
            except JobqError as error:
                refusal = error
                if isinstance(error, NotDeployed | NotPermitted):
                    break  # The worker is refused, not the job's result.
                job.settlement = Failed(REFUSED, error_text(str(error)), is_retryable=False)
        logger.error("job %s cannot be settled, its lease will expire: %s", job.job_id, refusal)
        return {job: "lost"}

    async def _give_back(self, settled: Sequence[Job]) -> dict[Job, str]:
        """Settle other outcomes, before the claim, which must come last."""
        outcomes: dict[Job, str] = {}
        released: defaultdict[datetime | timedelta | None, list[Job]] = defaultdict(list)
        for job in settled:
            if isinstance(job.settlement, Failed | Released) and job.settlement.hold is not None:
                await self._hold(job, job.settlement.hold)
            if isinstance(job.settlement, Released):
                released[job.settlement.until].append(job)
            elif isinstance(job.settlement, CancelConfirmed):
                released[None].append(job)  # which ends what was asked to be cancelled
        for until, jobs in released.items():
            statement = RELEASE_IN if isinstance(until, timedelta) else RELEASE_MANY
            rows = await self.connections.call(statement, (*_keys(jobs), until))
            states = {(job_id, attempt): state for job_id, attempt, state in rows}
            outcomes |= {job: RELEASED[states.get(job.key)] for job in jobs}
        return outcomes

    async def _hold(self, job: Job, hold: Hold) -> None:
        """Hold the concurrency key of a job, unless the job is lost."""
        try:
            await self.connections.call(HOLD_JOB_KEY, (*job.key, hold.duration, hold.reason))
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            logger.info("cannot hold the key of job %s: %s", job.job_id, error)

    # ---- the other calls

    @property
    def has_news(self) -> bool:
        """Whether a newly excluded kind has not been sent with a heartbeat yet."""
        return not set(self.skipped.kinds() or ()) <= set(self._told)

    async def heartbeat(self, jobs: Sequence[Job], stuck: int) -> dict[Key, str]:
        """Extend the leases of jobs, and report stuck slots; return the outcome of each job."""
        skipped, queues = self.skipped.kinds() or [], self.queues.names
        rows = await self.connections.call(
            HEARTBEAT,
            (self.worker, *_keys(jobs), queues, skipped, self.release, stuck),
            is_vital=True,
        )
        self._told = skipped
        return {(job_id, attempt): outcome for job_id, attempt, outcome in rows}

    async def due_in(self) -> float | None:
        """Return in how many seconds the next job is due that may run here; None if none waits."""
        free_queues, free_kinds = self.in_process.free(self.in_process.held())
        queues = [queue for queue in self.queues.names if free_queues.get(queue, 1) > 0]
        if not queues:
            return None
        full = [kind for kind, free in free_kinds.items() if free <= 0]
        [[wait]] = await self.connections.call(
            DUE_IN, [queues, [*(self.skipped.kinds() or ()), *full] or None]
        )
        return wait  # type: ignore[no-any-return]

    async def maintain(self) -> tuple[dict[str, int | None], bool]:
        """Call jobq.maintain(), which does nothing while another worker is in it.

        Returns:
            The number of rows of each task, None if it failed, and whether more remains.
        """
        # One message, so that no transaction stays open while a handler blocks the event loop.
        limit = f"set local statement_timeout = '{tuning.CALL_SECONDS / 2:g}s'"
        rows = await self.connections.call(f"{limit}; {MAINTAIN}", None)
        done = {task: affected for task, affected, _ in rows}
        return done, any(has_more for _, _, has_more in rows)

    async def next_due(self) -> tuple[float | None, float | None]:
        """Return in how many seconds maintain() and the next job are due; None if not."""
        arguments = [self.queues.names, self.skipped.kinds()]
        [(maintain_in, due_in)] = await self.connections.call(NEXT_DUE, arguments)
        return maintain_in, due_in

    async def retire(self) -> None:
        """Remove this worker from the list of workers."""
        await self.connections.call(RETIRE, [self.worker])


def array(values: Iterable[object]) -> str:
    """Return an array literal, which is faster to create and parse than a list of UUIDs."""
    return "{" + ",".join(map(str, values)) + "}"


def _keys(jobs: Sequence[Job]) -> tuple[str, str]:
    return array(job.job_id for job in jobs), array(job.attempt for job in jobs)


def _results(done: Sequence[Job]) -> str | None:
    """Return the results of jobs as one JSON array, or None when all are null."""
    if all(job.settlement is NO_RESULT for job in done):
        return None
    texts = [job.settlement.result for job in done if isinstance(job.settlement, Succeeded)]
    return (b"[" + b",".join(text or b"null" for text in texts) + b"]").decode()


def _failures(settled: Sequence[Job]) -> str:
    """Return the failed attempts among these as the JSON argument of jobq.fail_many."""
    failures = [
        {
            "job_id": job.job_id,
            "attempt": job.attempt,
            "error": failed.error,
            "error_code": failed.code,
            "retryable": failed.is_retryable,
            "retry_in": None if wait is None else f"{wait.total_seconds()} s",
            "details": failed.details,
        }
        for job in settled
        if isinstance(failed := job.settlement, Failed)
        for wait in [failed.retry_in]
    ]
    return msgspec.json.encode(failures).decode()
