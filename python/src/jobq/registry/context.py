"""The context of a handler: its job, and what it can record while it runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import wraps
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar
from uuid import UUID

from jobq.errors import InvalidArgument
from jobq.models import Json
from jobq.registry.children import Mailbox
from jobq.registry.outcomes import Cancelled
from jobq.registry.steps import Steps
from jobq.registry.streams import Call

P = ParamSpec("P")
T = TypeVar("T")

LEVELS: Final = ("DEBUG", "INFO", "WARN", "ERROR")
# The most that an attempt may cost.
MAX_COST: Final = 10**12


class Recorder(Protocol):
    """Where a context writes to; thread-safe."""

    def progress(self, context: JobContext, value: Json) -> Awaitable[None]:
        """Record the progress of a job."""

    def log(self, context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Record a line of a job's log."""

    def spend(self, context: JobContext, cost: float | Decimal) -> Awaitable[None]:
        """Record the cost of an attempt."""


class Written:
    """An awaitable that is done."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


def _durable(
    method: Callable[Concatenate[Steps, P], T],
) -> Callable[Concatenate[JobContext, P], T]:
    """Return this method of `Steps` as one of `JobContext`."""

    @wraps(method)
    def called(context: JobContext, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if context.steps is None:
            raise RuntimeError("this context records no steps")
        return method(context.steps, *args, **kwargs)

    return called


@dataclass(slots=True, eq=False)
class JobContext:
    """A running attempt, as its handler sees it.

    Attributes:
        job_id: the same for every attempt: use it to make effects idempotent.
        attempt: how often the job was claimed, including this time.
        metadata: as given at enqueue.
        max_attempts: maximum number of failed attempts.
        run_at: earliest start of the job.
        created_at: when it was enqueued.
        deadline: when the attempt times out, by ``time.monotonic``.
        cancelled: whether the job is to be cancelled, the attempt timed out, or its lease was
            lost. A handler can check it to stop early.
        payload_text: the payload as stored, with every digit of its numbers.
        delivery_version: version of the endpoint, if the job is a delivery.
        steps: records `step`, `sleep`, `wait_for`, `approve` and calls of other jobs.
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
    steps: Steps | None = None

    def record_steps(self, call: Call, *, is_awaited: bool) -> Steps:
        """Record steps by this call from now on; ``is_awaited`` is true in a coroutine."""
        is_fork = "fork_of" in self.metadata
        steps = Steps(call, self.job_id, self.attempt, is_awaited=is_awaited, is_fork=is_fork)
        self.steps = steps
        return steps

    @property
    def time_left(self) -> float:
        """Seconds until the attempt times out, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def check_cancelled(self) -> None:
        """Stop the handler if the job is to be cancelled.

        Raises:
            Cancelled: ``cancelled`` is true.
        """
        if self.cancelled:
            raise Cancelled

    def progress(self, value: Json) -> Awaitable[None]:
        """Store the progress of the job; a later value replaces it.

        It is stored soon, at the latest before the job ends. Await the result to wait for this.

        Args:
            value: any JSON of at most 64 KiB, such as ``{"done": 3, "of": 10}``.

        Raises:
            InvalidArgument: the value is not JSON, or too large.
        """
        return self.recorder.progress(self, value)

    def spend(self, cost: float | Decimal) -> Awaitable[None]:
        """Report the actual cost of the attempt; a later value replaces it.

        Rates and budgets are corrected by the difference to the cost charged at the start. It is
        stored soon, at the latest before the job ends. Await the result to wait for this.

        Args:
            cost: in the unit of the job's ``cost``, from 0 to 10^12.

        Raises:
            InvalidArgument: the cost is not such a number.
        """
        given: object = cost
        if isinstance(given, Decimal) and given.is_nan():
            given = None  # a comparison would raise another error
        if not isinstance(given, int | float | Decimal) or not 0 <= given <= MAX_COST:
            raise InvalidArgument(f"cost must be a number from 0 to {MAX_COST}")
        return self.recorder.spend(self, cost)

    def log(self, level: str, message: str) -> Awaitable[None]:
        """Add a line to the job's log, shown by `Client.logs` and ``jobq show``.

        It is stored soon, at the latest before the job ends. Await the result to wait for this.

        Args:
            level: DEBUG, INFO, WARN or ERROR.
            message: cut after 8192 characters.

        Raises:
            ValueError: the level does not exist.
        """
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}")
        return self.recorder.log(self, level, message)

    # ---- durable steps: in a coroutine handler each of these is awaited

    step = _durable(Steps.step)
    sleep = _durable(Steps.sleep)
    wait_for = _durable(Steps.wait_for)
    receive = _durable(Steps.receive)
    wait_any = _durable(Steps.wait_any)
    call = _durable(Steps.call)
    start = _durable(Steps.start)
    gather = _durable(Steps.gather)
    stream = _durable(Steps.stream)
    approve = _durable(Steps.approve)
    inputs = _durable(Steps.inputs)

    def mailbox(self, name: str) -> Mailbox:
        """Return the messages of a name, for `wait_any`."""
        return Mailbox(name)
