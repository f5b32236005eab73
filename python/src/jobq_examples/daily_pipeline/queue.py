"""The queue of the daily pipeline, on jobq."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobq.errors import DatabaseUnavailable, JobqError, PayloadTooLarge, QueueFull
from jobq_examples.daily_pipeline.contract import (
    EnqueueResult,
    ErrorCode,
    JobMessage,
    Refusal,
    ping_of,
    problem_of,
)

if TYPE_CHECKING:
    from jobq.client import Client
    from jobq_examples.daily_pipeline.contract import Ping


class QueueContract:
    """Accepts messages. Each is delivered at least once, and to one worker at a time.

    A message that is not acknowledged within its visibility timeout is delivered again. After five
    attempts it is a dead letter.

    Args:
        client: client of the database.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def enqueue(self, message: JobMessage) -> EnqueueResult | Refusal:
        """Enqueue a message; the same key returns the same message."""
        try:
            if problem := problem_of(self._client, message):
                return Refusal(ErrorCode.INVALID_MESSAGE, is_retryable=False, reason=problem)
            job = self._client.enqueue(
                message.job_type, message, idempotency_key=message.idempotency_key
            )
            found = self._client.get(job.job_id)
        except (DatabaseUnavailable, QueueFull) as error:
            return Refusal(ErrorCode.QUEUE_UNAVAILABLE, is_retryable=True, reason=str(error))
        except PayloadTooLarge as error:
            return Refusal(ErrorCode.MESSAGE_TOO_LARGE, is_retryable=False, reason=str(error))
        except JobqError as error:
            return Refusal(ErrorCode.INVALID_MESSAGE, is_retryable=False, reason=str(error))
        return EnqueueResult(message_id=str(job.job_id), visible_at=found.run_at)

    def ping(self) -> Ping:
        """Return whether messages can be accepted: ``ok``, or why not."""
        return ping_of(self._client, "queue")
