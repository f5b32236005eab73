"""A job that this worker has claimed and not yet settled."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

import msgspec

from jobq.context import JobContext
from jobq.redaction import error_text
from jobq.settlement import Failed

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Sequence

    from jobq.context import Recorder
    from jobq.handler import Handler
    from jobq.settlement import Settlement
    from jobq.worker.batches import Place
    from jobq.worker.processes import Process

__all__ = ["Held", "Key", "seconds_of"]

Key: TypeAlias = tuple[str, int]
"""A job's id, as text, and the attempt: what a worker knows its jobs by."""

# Seconds, for a job whose own cannot be read: it is settled at once, and has none to wait.
UNREADABLE_LEASE: Final = 30.0


class Held:
    """A claimed job. Most of it stays text until it is needed, which it seldom is.

    Attributes:
        job_id: as text, as the database is told it.
        payload, metadata: JSON text.
        lease: seconds for which the claim holds without a heartbeat.
        timeout: seconds that the handler may take.
        handler: what does it, once it has a slot; None where there is none.
        held_at: when the lease was last known to hold, on the clock of time.monotonic.
        slot_at: when it got a slot; 0 before.
        started_at: when the handler was started; 0 before.
        context: what the handler sees, once it has been made.
        task: what runs the handler; None before it has a slot, and when it has ended.
        place: where it waits for a batch that has no task for each job.
        process: where the handler runs, if it is one for a process.
        settlement: how it ended; None while it is open.
        settled_at: when that was known, on the clock of time.monotonic.
        is_cancel_requested: whether somebody asked to cancel the job.
        is_ending: whether the handler's own transaction ends it, and alone can tell how.
        is_interruptible: whether the handler is a coroutine, which can be stopped.
        is_interrupted: whether the worker has stopped it.

    Args:
        row: what was claimed: the outcome, then as `jobq.worker.protocol.JOB_COLUMNS` has it;
            ids, times, intervals and JSON as text. What cannot be read settles the job as failed.
        now: on the clock of time.monotonic.
    """

    __slots__ = (
        "attempt",
        "context",
        "created_at",
        "delivery_version",
        "handler",
        "held_at",
        "idempotency_key",
        "is_awaited",
        "is_cancel_requested",
        "is_ending",
        "is_interrupted",
        "is_interruptible",
        "job_id",
        "kind",
        "lease",
        "max_attempts",
        "metadata",
        "payload",
        "place",
        "process",
        "queue",
        "run_at",
        "settled_at",
        "settlement",
        "slot_at",
        "started_at",
        "task",
        "timeout",
    )

    def __init__(self, row: Sequence[Any], now: float) -> None:
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
        self.delivery_version: int | None
        self.is_awaited: bool
        (
            _,
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
            self.delivery_version,
            self.is_awaited,
        ) = row
        self.held_at = now
        self.slot_at = 0.0
        self.started_at = 0.0
        self.settled_at = 0.0
        self.handler: Handler | None = None
        self.context: JobContext | None = None
        self.task: Task[None] | None = None
        self.place: Place | None = None
        self.process: Process | None = None
        self.settlement: Settlement | None = None
        self.is_cancel_requested = False
        self.is_ending = False
        self.is_interruptible = False
        self.is_interrupted = False
        try:
            self.timeout = seconds_of(timeout)
            self.lease = seconds_of(lease)
        except ValueError as error:
            self.timeout, self.lease = 0.0, UNREADABLE_LEASE
            self.settlement = Failed("JOB_UNREADABLE", error_text(error), is_retryable=False)

    @property
    def key(self) -> Key:
        """The id and the attempt."""
        return self.job_id, self.attempt

    @property
    def needs_process(self) -> bool:
        """Whether its handler runs in a process."""
        return self.handler is not None and self.handler.mode == "process"

    @property
    def expires_at(self) -> float:
        """When the attempt has taken too long, on the clock of time.monotonic."""
        return self.started_at + self.timeout

    def make_context(self, recorder: Recorder) -> JobContext:
        """Make what the handler sees.

        Raises:
            ValueError, RecursionError: a time or the metadata cannot be read.
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
        """Let the handler know that it should stop."""
        if self.context is not None:
            self.context.cancelled = True

    def interrupt(self) -> None:
        """Stop the handler, if it is one that can be stopped; one not begun never begins."""
        self.stop()
        self.is_interrupted = True
        if self.process is not None:
            self.process.kill()
        elif self.place is not None:
            self.place.leave()
        elif self.task is not None and (self.is_interruptible or not self.started_at):
            self.task.cancel()


_CLOCK: Final = re.compile(r"(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_MONTHS: Final = re.compile(r"(\d+)-(\d+)")
_DAYS: Final = re.compile(r"-?\d+")
_ISO: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?"
)
# In seconds: a month is 30 days, a year 12 months.
_UNITS: Final = {
    "year": 360 * 86400, "mon": 30 * 86400, "day": 86400, "hour": 3600, "min": 60, "sec": 1,
}  # fmt: skip


@lru_cache
def seconds_of(text: str) -> float:
    """Return the seconds of an interval as PostgreSQL writes it, a month being 30 days.

    It is written as ``1 year 2 mons 3 days 04:05:06.7``, or where a pooler stands between
    and a database says so as ``P1Y2M3DT4H5M6.7S``, ``+1-2 +3 +4:05:06.7`` or
    ``@ 1 year 2 mons 3 days 4 hours 5 mins 6.7 secs``.

    Raises:
        ValueError: it is written in another style.
    """
    if iso := _ISO.fullmatch(text):
        given = zip(iso.groups(), _UNITS.values(), strict=True)
        return sum(float(count) * unit for count, unit in given if count)
    seconds = 0.0
    words = text.removeprefix("@").replace("+", " ").split()
    while words:
        word = words.pop(0)
        if words and (unit := _UNITS.get(words[0].removesuffix("s"))):
            words.pop(0)
            seconds += float(word) * unit
        elif clock := _CLOCK.fullmatch(word):
            sign, hours, minutes, rest = clock.groups()
            time = int(hours) * 3600 + int(minutes) * 60 + float(rest)
            seconds += -time if sign else time
        elif months := _MONTHS.fullmatch(word):
            seconds += (12 * int(months[1]) + int(months[2])) * _UNITS["mon"]
        elif _DAYS.fullmatch(word):
            seconds += int(word) * _UNITS["day"]
        else:
            raise ValueError(f"an interval in a style that is not known: {text}")
    return seconds
