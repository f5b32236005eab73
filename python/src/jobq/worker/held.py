"""A job that this worker has claimed and not yet settled, and how it is to be settled."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import msgspec

from jobq.context import JobContext

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Sequence
    from datetime import timedelta

    from jobq.context import Recorder

__all__ = [
    "CancelConfirmed",
    "Failed",
    "Gone",
    "Held",
    "Released",
    "Settlement",
    "Succeeded",
    "seconds_of",
]


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result`` is JSON text, or None for null."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed; ``details`` is a JSON object, or None."""

    code: str
    error: str
    is_retryable: bool = True
    retry_in: timedelta | None = None
    details: msgspec.Raw | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """The job goes back unfinished, the attempt not counted."""

    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CancelConfirmed:
    """The handler saw the request to cancel and stopped."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is nothing left to settle.

    Attributes:
        outcome: ``succeeded`` when the handler's own transaction has completed the job, or
            ``lost``.
    """

    outcome: str


Settlement: TypeAlias = Succeeded | Failed | Released | CancelConfirmed | Gone


class Held:
    """A claimed job. Most of it stays text until it is needed, which it seldom is.

    Attributes:
        job_id: as text, as the database is told it.
        payload, metadata: JSON text.
        lease: seconds for which the claim holds without a heartbeat.
        timeout: seconds that the handler may take.
        held_at: when the lease was last known to hold, on the clock of time.monotonic.
        started_at: when the handler was started; 0 before.
        context: what the handler sees, once it has been made.
        task: what runs the handler; None before it starts.
        settlement: how it ended; None while it is open.
        is_cancel_requested: whether somebody asked to cancel the job.
        is_interruptible: whether the handler is a coroutine, which can be stopped.

    Args:
        row: what was claimed, as `jobq.worker.exchange.JOB_COLUMNS` has it; ids, times,
            intervals and JSON as text.
    """

    __slots__ = (
        "attempt",
        "context",
        "created_at",
        "held_at",
        "idempotency_key",
        "is_cancel_requested",
        "is_interruptible",
        "job_id",
        "kind",
        "lease",
        "max_attempts",
        "metadata",
        "payload",
        "queue",
        "run_at",
        "settlement",
        "started_at",
        "task",
        "timeout",
    )

    def __init__(self, row: Sequence[Any]) -> None:
        self.job_id: str
        self.attempt: int
        self.kind: str
        self.payload: str
        self.metadata: str
        self.queue: str
        self.max_attempts: int
        self.run_at: str
        self.created_at: str
        self.idempotency_key: str | None
        (
            self.job_id,
            self.attempt,
            self.kind,
            self.payload,
            self.metadata,
            self.queue,
            self.max_attempts,
            timeout,
            self.run_at,
            self.created_at,
            self.idempotency_key,
            lease,
        ) = row
        self.timeout = seconds_of(timeout)
        self.lease = seconds_of(lease)
        self.held_at = time.monotonic()
        self.started_at = 0.0
        self.context: JobContext | None = None
        self.task: Task[None] | None = None
        self.settlement: Settlement | None = None
        self.is_cancel_requested = False
        self.is_interruptible = False

    @property
    def expires_at(self) -> float:
        """When the attempt has taken too long, on the clock of time.monotonic."""
        return self.started_at + self.timeout

    def make_context(self, recorder: Recorder) -> JobContext:
        """Make what the handler sees."""
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
            deadline=self.expires_at,
            recorder=recorder,
            cancelled=self.is_cancel_requested,
        )
        return self.context

    def stop(self) -> None:
        """Let the handler know that it should stop."""
        if self.context is not None:
            self.context.cancelled = True

    def interrupt(self) -> None:
        """Stop the handler, if it is one that can be stopped."""
        self.stop()
        if self.is_interruptible and self.task is not None:
            self.task.cancel()


@lru_cache
def seconds_of(text: str) -> float:
    """Return the seconds of an interval as PostgreSQL writes it, a month being 30 days.

    It is written as ``1 year 2 mons 3 days 04:05:06.7``.
    """
    units = {"year": 360, "mon": 30, "day": 1}
    words = text.split()
    seconds = 0.0
    if words and ":" in words[-1]:
        hours, minutes, rest = words.pop().split(":")
        sign = -1 if hours.startswith("-") else 1
        seconds = sign * (abs(int(hours)) * 3600 + int(minutes) * 60 + float(rest))
    for count, unit in zip(words[::2], words[1::2], strict=True):
        seconds += int(count) * units[unit.removesuffix("s")] * 86400
    return seconds
