"""The statements of the worker's protocol, and how their arguments and answers are written.

docs/wake-ups.md has those of the session that listens, `jobq.worker.listener` speaks them.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from jobq.settlement import (
    FIRST_MOMENT,
    LAST_MOMENT,
    NO_RESULT,
    Failed,
    Released,
    Succeeded,
    moment_of,
)
from jobq.steps import LIST_INPUTS, LIST_STEPS, WAIT_FOR
from jobq.worker.held import Held, Key, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from jobq.models import State
    from jobq.settlement import Hold
    from jobq.worker.journal import Step
    from jobq.worker.links import Links
    from jobq.worker.unknown import Unknown

__all__ = ["COMPLETE", "Protocol", "until_of"]

JOB_COLUMNS: Final = (
    "job_id, attempt, kind, payload, metadata, queue, max_attempts, timeout, run_at,"
    " created_at, idempotency_key, lease, delivery_version, is_awaited"
)
EXCHANGE: Final = (
    f"select outcome, {JOB_COLUMNS} from jobq.exchange(%s, %s, %s, %s, %s, %s, %s, %s, %s)"  # noqa: S608
)
HEARTBEAT: Final = "select job_id, attempt, outcome from jobq.heartbeat(%s, %s, %s, %s, %s, %s, %s)"
HOLD_LANE: Final = "select jobq.hold_lane(%s, %s, %s, %s)"
RELEASE_MANY: Final = "select job_id, attempt, state from jobq.release_many(%s, %s, %s)"
RELEASE_IN: Final = "select job_id, attempt, state from jobq.release_many(%s, %s, now() + %s)"
COMPLETE: Final = "select jobq.complete(%s, %s, %s)"
DUE_IN: Final = "select jobq.due_in(%s, %s)"
MAINTAIN: Final = "select task, affected, has_more from jobq.maintain()"
TICK_IN: Final = "select jobq.tick_in()"
RETIRE: Final = "select jobq.retire_worker(%s)"
SET_PROGRESS: Final = "select jobq.set_progress(%s, %s, %s)"
LOG: Final = "select jobq.log(%s, %s, %s, %s)"
SAVE_STEPS: Final = "select value, outcome from jobq.save_steps(%s, %s, %s, %s)"

_RELEASED: Final = {"queued": "released", "cancelled": "cancelled", "held": "held", None: "lost"}


class Protocol:
    """What a worker says to the database. Every method raises what `Links.call` raises.

    Args:
        links: the connections.
        worker: the name under which jobs are claimed.
        queues: what the worker serves.
        unknown: the kinds that it leaves to others.
        release: of what it runs.
        stuck: tells how many of its slots are held by handlers that hang.
    """

    def __init__(
        self,
        links: Links,
        worker: str,
        queues: Sequence[str],
        unknown: Unknown,
        release: str,
        *,
        stuck: Callable[[], int] = lambda: 0,
    ) -> None:
        self._links = links
        self._worker = worker
        self._queues = list(queues)
        self._unknown = unknown
        self._release = release
        self._stuck = stuck
        self._told: Sequence[str] = ()

    @property
    def has_news(self) -> bool:
        """Whether it leaves a kind to others of which no heartbeat has told yet."""
        return not set(self._unknown.kinds() or ()) <= set(self._told)

    async def exchange(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int, max_limited: int
    ) -> tuple[list[Held], dict[Held, str]]:
        """Settle what succeeded or failed, and claim, of what has limits no more than is run.

        Returns:
            The jobs that were claimed, and the state of each that was settled, ``lost``, or
            ``held`` where another transaction holds it: settle it again later.
        """
        done = [h for h in settled if isinstance(h.settlement, Succeeded)]
        failed: list[Held] = []
        if len(done) < len(settled):
            failed = [h for h in settled if isinstance(h.settlement, Failed)]
        unknown = self._unknown.kinds()
        rows = await self._links.call(
            EXCHANGE,
            (
                list(queues),
                self._worker,
                max_jobs,
                *_keys(done),
                _results(done),
                _failures(failed) if failed else None,
                max_limited,
                unknown,
            ),
        )
        outcomes = dict.fromkeys(done, "succeeded")
        now = time.monotonic()
        jobs = [Held(row, now) for row in rows if row[0] == "claimed"]
        if len(jobs) < len(rows):
            told = {row[1:3]: row[0] for row in rows if row[0] != "claimed"}
            outcomes |= {held: told[held.key] for held in settled if held.key in told}
        if unknown:
            for held in jobs:
                if held.kind in unknown:
                    held.settlement = self._unknown.put_off(held.kind)
        return jobs, outcomes

    async def hold(self, held: Held, hold: Hold) -> None:
        """Have the jobs of a job's key wait."""
        await self._links.call(HOLD_LANE, (*held.key, hold.duration, hold.reason))

    async def release(
        self, jobs: Sequence[Held], until: datetime | timedelta | None
    ) -> dict[Held, str]:
        """Give jobs back unfinished, until a moment or for so long; return what came of each."""
        statement = RELEASE_IN if isinstance(until, timedelta) else RELEASE_MANY
        rows = await self._links.call(statement, (*_keys(jobs), until))
        states = {(job_id, attempt): state for job_id, attempt, state in rows}
        return {held: _RELEASED[states.get(held.key)] for held in jobs}

    async def heartbeat(self, jobs: Sequence[Held]) -> dict[Key, str]:
        """Extend the leases of jobs; return what is known of each."""
        unknown = self._unknown.kinds() or []
        rows = await self._links.call(
            HEARTBEAT,
            (
                self._worker,
                *_keys(jobs),
                self._queues,
                unknown,
                self._release,
                self._stuck(),
            ),
            is_vital=True,
        )
        self._told = unknown
        return {(job_id, attempt): outcome for job_id, attempt, outcome in rows}

    async def due_in(self) -> float | None:
        """Return in how many seconds the next job is due, None when none waits."""
        [[wait]] = await self._links.call(DUE_IN, [self._queues, self._unknown.kinds()])
        return None if wait is None else seconds_of(wait)

    async def maintain(self) -> tuple[dict[str, int | None], bool]:
        """Do the database's upkeep, unless another worker does.

        Returns:
            How much of each task was done, None where it failed, and whether more is to do.
        """
        rows = await self._links.call(MAINTAIN)
        done = {task: affected for task, affected, _ in rows}
        return done, any(has_more for _, _, has_more in rows)

    async def tick_in(self) -> float | None:
        """Return in how many seconds the next slot of a schedule is due, None when none is."""
        [[wait]] = await self._links.call(TICK_IN)
        return None if wait is None else seconds_of(wait)

    async def retire(self) -> None:
        """Leave the list of workers."""
        await self._links.call(RETIRE, [self._worker])

    async def set_progress(self, key: Key, progress: str) -> None:
        """Store how far a job is."""
        await self._links.call(SET_PROGRESS, (*key, progress), is_vital=True)

    async def list_steps(self, job_id: UUID) -> list[tuple[str, str]]:
        """Return the names of a job's steps, and as JSON text what they have come to."""
        return await self._links.call(LIST_STEPS, [job_id])

    async def list_inputs(
        self, job_id: UUID
    ) -> list[tuple[UUID, str | None, str, State, str | None, str]]:
        """Return what the jobs have come to that a job waited for, results as JSON text."""
        return await self._links.call(LIST_INPUTS, [job_id])

    async def save_steps(self, steps: Sequence[Step]) -> list[tuple[str | None, str]]:
        """Record steps; return of each what is recorded, and ``saved``, ``known`` or ``lost``."""
        return await self._links.call(
            SAVE_STEPS,
            (
                _array(str(step.job_id) for step in steps),
                _array(str(step.attempt) for step in steps),
                [step.name for step in steps],
                f"[{','.join(step.value for step in steps)}]",
            ),
        )

    async def wait_for(
        self, job_id: UUID, attempt: int, event: str, within: timedelta | None
    ) -> tuple[str, str | None]:
        """Wait for an event; return the outcome, and as JSON text what came with it."""
        rows = await self._links.call(WAIT_FOR, (job_id, attempt, event, within))
        [(outcome, payload)] = rows
        return outcome, payload

    async def log(self, lines: Sequence[tuple[str, int, str, str]]) -> None:
        """Add lines to jobs' logs: each a job's id, attempt, level and text."""
        await self._links.call_many(LOG, lines)


def until_of(released: Released) -> datetime | timedelta | None:
    """Return until when a job is to wait, within what the database takes.

    A duration stays one, for the database's clock to measure, not this machine's.
    """
    if released.until is None:
        return None
    moment = moment_of(released.until, datetime.now(UTC))
    if isinstance(released.until, timedelta) and FIRST_MOMENT < moment < LAST_MOMENT:
        return released.until
    return moment


def _keys(jobs: Sequence[Held]) -> tuple[str, str]:
    """Return ids and attempts as the database takes them."""
    return _array([held.job_id for held in jobs]), _array([str(held.attempt) for held in jobs])


def _array(values: Iterable[str]) -> str:
    """Return an array's literal, which is quicker to make and read than a list of UUIDs."""
    return "{" + ",".join(values) + "}"


def _results(done: Sequence[Held]) -> str | None:
    """Return the results of jobs as one JSON array, or None when all are null."""
    if all(h.settlement is NO_RESULT for h in done):
        return None
    texts = [h.settlement.result for h in done if isinstance(h.settlement, Succeeded)]
    return (b"[" + b",".join(text or b"null" for text in texts) + b"]").decode()


def _failures(failed: Sequence[Held]) -> str:
    """Return failed attempts as the JSON that jobq.fail_many takes."""
    return msgspec.json.encode([
        {
            "job_id": held.job_id,
            "attempt": held.attempt,
            "error": failure.error,
            "error_code": failure.code,
            "retryable": failure.is_retryable,
            "retry_in": _seconds(failure.retry_in),
            "details": failure.details,
        }
        for held in failed
        if isinstance(failure := held.settlement, Failed)
    ]).decode()  # fmt: skip


def _seconds(duration: timedelta | None) -> str | None:
    """Return a duration as PostgreSQL reads it."""
    return None if duration is None else f"{duration.total_seconds()} s"
