"""The producer's side: submit a job, and tell whether jobs can be submitted."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from jobq.examples.daily_pipeline.contract import (
    JOB_TYPE,
    EnqueueResult,
    JobMessage,
    Refusal,
    make_idempotency_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobq.examples.daily_pipeline.queue import QueueContract
    from jobq.examples.daily_pipeline.repo import JobRepo

__all__ = ["Submitted", "ready", "submit"]

logger = logging.getLogger("daily_pipeline")


@dataclass(frozen=True, slots=True)
class Submitted:
    """202 Accepted.

    Attributes:
        job_id: the new job's, or that of the job of the same day.
        created: whether it is new.
        outcome: what the queue said; None when the job was there already.
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
    tries: int = 5,
    pause: Callable[[float], None] = time.sleep,
) -> Submitted:
    """Submit the job of a symbol and a day, once.

    Args:
        repo: the records.
        queue: the queue.
        symbol: whose prices.
        asof: the day.
        requested_by: who asks; no personal data.
        tries: how often to offer a message to a queue that does not answer.
        pause: how to wait between tries, exponentially from 0.1 s on.

    Raises:
        RepoError: the repo does not answer, or the job does not fit the contract.
    """
    key = make_idempotency_key(JOB_TYPE, symbol, asof)
    found = repo.get_by_idempotency(key)
    if found is not None:
        return Submitted(found, created=False, outcome=None)
    made = repo.create_queued(uuid4(), key, JOB_TYPE, symbol, asof, requested_by, datetime.now(UTC))
    message = JobMessage(key, JOB_TYPE, symbol, asof, requested_by)
    outcome = queue.enqueue(message)
    for n in range(tries - 1):
        if not isinstance(outcome, Refusal) or not outcome.is_retryable:
            break
        fields = {"job_id": str(made.job_id), "idempotency_key": key, "symbol": symbol}
        logger.warning(
            "the queue took no message", extra={**fields, "error_code": outcome.error_code}
        )
        pause(0.1 * 2.0**n)
        outcome = queue.enqueue(message)
    return Submitted(made.job_id, made.created, outcome)


def ready(queue: QueueContract, repo: JobRepo) -> tuple[int, dict[str, Any]]:
    """Answer GET /ready: 200 when both are ok, else 503, with what each says."""
    pings = queue.ping(), repo.ping()
    body = {
        "queue": pings[0].text,
        "repo": pings[1].text,
        "timestamp": datetime.now(UTC).isoformat(),
    }
    return (200 if all(ping.is_ok for ping in pings) else 503), body
