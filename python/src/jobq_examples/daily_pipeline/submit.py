"""The producer: submit a job, and check whether jobs can be submitted."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from jobq_examples.daily_pipeline.contract import (
    JOB_TYPE,
    Created,
    EnqueueResult,
    ErrorCode,
    JobMessage,
    JobStatus,
    Refusal,
    make_idempotency_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobq_examples.daily_pipeline.queue import QueueContract
    from jobq_examples.daily_pipeline.repo import JobRepo

logger = logging.getLogger("daily_pipeline")


@dataclass(frozen=True, slots=True)
class Submitted:
    """202 Accepted.

    Attributes:
        job_id: id of the new job, or of the existing job of the same day.
        created: whether it is new.
        outcome: result of the queue; None if the job existed already.
    """

    job_id: UUID
    created: bool
    outcome: EnqueueResult | Refusal | None


def submit(
    repo: JobRepo,
    queue: QueueContract,
    symbol: str,
    asof: date,
    requested_by: str,
    *,
    job_type: str = JOB_TYPE,
    tries: int = 5,
    pause: Callable[[float], None] = time.sleep,
) -> Submitted:
    """Submit the job of a symbol and a day, once.

    Args:
        repo: the records.
        queue: the queue.
        symbol: the symbol.
        asof: the day.
        requested_by: the requester, without personal data.
        job_type: a kind that a worker has declared.
        tries: maximum number of attempts to enqueue the message.
        pause: waits between attempts, exponentially from 0.1 s.

    Raises:
        RepoError: the repo does not respond, or the job violates the contract.
    """
    key = make_idempotency_key(job_type, symbol, asof)
    found = repo.get_by_idempotency(key)
    if found is None:
        made = repo.create_queued(
            uuid4(), key, job_type, symbol, asof, requested_by, datetime.now(UTC)
        )
    else:
        made = Created(found, created=False)
    fields = {
        "job_id": str(made.job_id),
        "idempotency_key": key,
        "symbol": symbol,
        "asof": asof.isoformat(),
    }
    if not made.created:
        status = repo.get_by_id(made.job_id).status
        conflict = {"status": status, "error_code": ErrorCode.IDEMPOTENCY_CONFLICT}
        logger.info("the job is there already", extra={**fields, **conflict})
        return Submitted(made.job_id, created=False, outcome=None)
    message = JobMessage(key, job_type, symbol, asof, requested_by)
    fields["status"] = JobStatus.QUEUED
    outcome = _offer(queue, message, fields, tries=tries, pause=pause)
    return Submitted(made.job_id, created=True, outcome=outcome)


def _offer(
    queue: QueueContract,
    message: JobMessage,
    fields: dict[str, str],
    *,
    tries: int,
    pause: Callable[[float], None],
) -> EnqueueResult | Refusal:
    """Enqueue a message, with retries; log every refusal."""
    pauses = [0.1 * 2.0**n for n in range(tries - 1)]
    while isinstance(outcome := queue.enqueue(message), Refusal):
        refusal = {**fields, "error_code": outcome.error_code}
        logger.warning("the queue took no message", extra=refusal)
        if not (outcome.is_retryable and pauses):
            break
        pause(pauses.pop(0))
    return outcome


def ready(queue: QueueContract, repo: JobRepo) -> tuple[int, dict[str, Any]]:
    """Answer GET /ready: 200 if both are ok, else 503, with both states."""
    pings = queue.ping(), repo.ping()
    body = {
        "queue": pings[0].text,
        "repo": pings[1].text,
        "timestamp": datetime.now(UTC).isoformat(),
    }
    return (200 if all(ping.is_ok for ping in pings) else 503), body
