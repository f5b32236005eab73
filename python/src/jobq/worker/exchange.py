"""The exchange call as Python makes it: settle a batch, claim the next."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from psycopg.types.string import TextLoader

from jobq.errors import DatabaseUnavailable, JobqError
from jobq.worker.held import CancelConfirmed, Failed, Held, Released, Succeeded, seconds_of
from jobq.worker.link import Link

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from jobq.worker.link import Silence

__all__ = ["DUE_IN", "Claimed", "Exchange", "array"]

logger = logging.getLogger("jobq.worker")

JOB_COLUMNS: Final = (
    "job_id, attempt, kind, payload, metadata, queue, max_attempts, timeout, run_at,"
    " created_at, idempotency_key, lease"
)
EXCHANGE: Final = f"select outcome, {JOB_COLUMNS} from jobq.exchange(%s, %s, %s, %s, %s, %s, %s)"  # noqa: S608
DUE_IN: Final = "select jobq.due_in(%s)"
RELEASE: Final = "select jobq.release(%s, %s, %s)"
RELEASE_MANY: Final = "select job_id, state from jobq.release_many(%s, %s)"
CONFIRM_CANCEL: Final = "select jobq.confirm_cancel(%s, %s)"
REFUSED: Final = "RESULT_REFUSED"


@dataclass(frozen=True, slots=True)
class Claimed:
    """What came of an exchange.

    Attributes:
        jobs: what was claimed.
        outcomes: of each settled job, by its id, the state it is in now, or ``lost``.
    """

    jobs: list[Held]
    outcomes: dict[str, str]


class Exchange:
    """Settles and claims on a connection of its own.

    Args:
        url: the database.
        worker: the name under which jobs are claimed.
        is_pooled: whether a pooler in transaction mode is in between.
        silence: shared with the worker's other connections.
    """

    def __init__(self, url: str, worker: str, *, is_pooled: bool, silence: Silence) -> None:
        self._link = Link(
            url, "jobq worker", is_pooled=is_pooled, configure=configure, silence=silence
        )
        self._worker = worker

    async def settle_and_claim(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int
    ) -> Claimed:
        """Settle a batch and claim up to ``max_jobs`` jobs of these queues.

        Settling twice does no harm: what is settled already is told as ``lost``.

        Raises:
            DatabaseUnavailable: there was no answer; settle the same batch again.
        """
        outcomes = await self._end_all(settled)
        plain = [h for h in settled if isinstance(h.settlement, Succeeded | Failed)]
        try:
            claimed = await self._exchange_twice(plain, queues, max_jobs)
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            if not plain:
                raise
            logger.warning("a batch was refused, settling its jobs one by one: %s", error)
            for held in plain:
                outcomes |= await self._settle_alone(held)
            claimed = await self._exchange([], queues, max_jobs)
        return Claimed(claimed.jobs, outcomes | claimed.outcomes)

    async def due_in(self, queues: Sequence[str]) -> float | None:
        """Return in how many seconds the next job is due, None when none waits.

        Raises:
            DatabaseUnavailable: there was no answer.
        """
        [[wait]] = await self._link.call(DUE_IN, [list(queues)])
        return None if wait is None else seconds_of(wait)

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()

    async def _exchange_twice(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int
    ) -> Claimed:
        """Exchange, and again if a day's partition was made just then (23514)."""
        try:
            return await self._exchange(settled, queues, max_jobs)
        except JobqError as error:
            if error.sqlstate != "23514":
                raise
        return await self._exchange(settled, queues, max_jobs)

    async def _exchange(
        self, settled: Sequence[Held], queues: Sequence[str], max_jobs: int
    ) -> Claimed:
        done = [h for h in settled if isinstance(h.settlement, Succeeded)]
        failed = [h for h in settled if isinstance(h.settlement, Failed)]
        rows = await self._link.call(
            EXCHANGE,
            (
                list(queues),
                self._worker,
                max_jobs,
                array(h.job_id for h in done),
                array(str(h.attempt) for h in done),
                results(done),
                failures(failed) if failed else None,
            ),
        )
        outcomes = dict.fromkeys((h.job_id for h in done), "succeeded")
        jobs = []
        for row in rows:
            if row[0] == "claimed":
                jobs.append(Held(row[1:]))
            else:
                outcomes[row[1]] = row[0]
        return Claimed(jobs, outcomes)

    async def _settle_alone(self, held: Held) -> dict[str, str]:
        """Settle one job of a batch that was refused; if it was the culprit, it fails."""
        try:
            return (await self._exchange([held], (), 0)).outcomes
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            held.settlement = Failed(REFUSED, str(error), is_retryable=False)
            return (await self._exchange([held], (), 0)).outcomes

    async def _end_all(self, settled: Sequence[Held]) -> dict[str, str]:
        """Settle what neither succeeded nor failed; before the claim, which must come last."""
        outcomes = await self._release([h for h in settled if h.settlement == Released()])
        for held in settled:
            match held.settlement:
                case Released(run_at) if run_at is not None:
                    outcomes[held.job_id] = await self._end(held, "released", RELEASE, run_at)
                case CancelConfirmed():
                    outcomes[held.job_id] = await self._end(held, "cancelled", CONFIRM_CANCEL)
        return outcomes

    async def _end(self, held: Held, outcome: str, statement: str, *more: object) -> str:
        try:
            await self._link.call(statement, (held.job_id, held.attempt, *more))
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            logger.info("job %s could not be %s: %s", held.job_id, outcome, error)
            return "lost"
        return outcome

    async def _release(self, settled: Sequence[Held]) -> dict[str, str]:
        if not settled:
            return {}
        parameters = array(h.job_id for h in settled), array(str(h.attempt) for h in settled)
        rows = await self._link.call(RELEASE_MANY, parameters)
        words = {"queued": "released", "cancelled": "cancelled", None: "lost"}
        return {job_id: words[state] for job_id, state in rows}


def array(values: Any) -> str:  # noqa: ANN401 - an iterable of text without quotes
    """Return an array's literal, which is quicker to make and read than a list of UUIDs."""
    return "{" + ",".join(values) + "}"


def results(done: Sequence[Held]) -> str | None:
    """Return the results of jobs as one JSON array, or None when all are null."""
    texts = [h.settlement.result for h in done if isinstance(h.settlement, Succeeded)]
    if not any(texts):
        return None
    return (b"[" + b",".join(text or b"null" for text in texts) + b"]").decode()


def failures(failed: Sequence[Held]) -> str:
    """Return failed attempts as the JSON that jobq.fail_many takes."""
    return msgspec.json.encode(
        [
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
        ]
    ).decode()


def _seconds(duration: timedelta | None) -> str | None:
    """Return a duration as PostgreSQL reads it, within what it may be."""
    if duration is None:
        return None
    return f"{min(max(duration, timedelta(0)), timedelta(days=365)).total_seconds()} s"


def configure(connection: AsyncConnection[Any]) -> None:
    """Prepare a connection for claims: `Held` reads what is needed of a job when it is."""
    for name in ("uuid", "interval", "timestamptz", "jsonb"):
        connection.adapters.register_loader(name, TextLoader)
