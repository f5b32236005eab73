"""What a handler knows of its job, and what it can say while it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from jobq.outcomes import Cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from datetime import datetime
    from uuid import UUID

    from jobq.models import Json

__all__ = ["LEVELS", "JobContext", "Recorder"]

LEVELS: Final = ("DEBUG", "INFO", "WARN", "ERROR")


class Recorder(Protocol):
    """Where a context writes to; safe for threads."""

    def progress(self, context: JobContext, value: Json) -> Awaitable[None]:
        """Note how far a job is."""

    def log(self, context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Note a line of a job's log."""


@dataclass(slots=True, eq=False)
class JobContext:
    """A running attempt, as its handler sees it.

    Attributes:
        job_id: the same for every attempt: use it to make effects idempotent.
        attempt: how often the job was claimed, this time included.
        kind: what is to be done.
        queue: where it was claimed from.
        metadata: what the enqueuer put beside the payload.
        max_attempts: how many attempts may fail.
        idempotency_key: the enqueuer's, or None.
        run_at: since when the job may run.
        created_at: when it was enqueued.
        deadline: when the attempt times out, on the clock of ``time.monotonic``.
        cancelled: whether somebody asked to cancel the job, the attempt timed out, or its
            lease was lost. A handler that looks at it may stop early.
        payload_text: the payload as it is stored, with every digit of its numbers.
        delivery_version: what the job is delivered by, where its kind is an endpoint.
    """

    job_id: UUID
    attempt: int
    kind: str
    queue: str
    metadata: dict[str, Json]
    max_attempts: int
    idempotency_key: str | None
    run_at: datetime
    created_at: datetime
    deadline: float
    recorder: Recorder
    cancelled: bool = False
    delivery_version: int | None = None
    payload_text: str = "{}"

    @property
    def time_left(self) -> float:
        """Seconds until the attempt times out; 0 when it has."""
        return max(0.0, self.deadline - time.monotonic())

    def check_cancelled(self) -> None:
        """Stop here if somebody asked for it.

        Raises:
            Cancelled: ``cancelled`` is true.
        """
        if self.cancelled:
            raise Cancelled

    def progress(self, value: Json) -> Awaitable[None]:
        """Store how far the job is; of several values in a moment the last one counts.

        It is stored soon, and before the job ends. Await what it returns to wait for that.

        Args:
            value: any JSON of at most 64 KiB, such as ``{"done": 3, "of": 10}``.

        Raises:
            InvalidArgument: the value is not JSON, or too large.
        """
        return self.recorder.progress(self, value)

    def log(self, level: str, message: str) -> Awaitable[None]:
        """Add a line to the job's log, which `Client.logs` and ``jobq show`` display.

        It is stored soon, and before the job ends. Await what it returns to wait for that.

        Args:
            level: DEBUG, INFO, WARN or ERROR.
            message: cut at 8192 characters.

        Raises:
            ValueError: there is no such level.
        """
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}")
        return self.recorder.log(self, level, message)
