"""What a handler knows of its job, and what it can say while it runs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol

from jobq.errors import InvalidArgument
from jobq.registry.outcomes import Cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from datetime import datetime, timedelta
    from uuid import UUID

    from jobq.models import Json
    from jobq.registry.steps import Steps

__all__ = ["LEVELS", "JobContext", "Recorder", "Written"]

LEVELS: Final = ("DEBUG", "INFO", "WARN", "ERROR")
# The most that an attempt may cost.
MAX_COST: Final = 10**12


class Recorder(Protocol):
    """Where a context writes to; safe for threads."""

    def progress(self, context: JobContext, value: Json) -> Awaitable[None]:
        """Note how far a job is."""

    def log(self, context: JobContext, level: str, message: str) -> Awaitable[None]:
        """Note a line of a job's log."""

    def spend(self, context: JobContext, cost: float | Decimal) -> Awaitable[None]:
        """Note what an attempt has really cost."""


class Written:
    """Awaited, it has nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


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
        steps: where `step`, `sleep` and `wait_for` are recorded.
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

    def spend(self, cost: float | Decimal) -> Awaitable[None]:
        """Report what the attempt has really cost; of several values the last one counts.

        Rates and budgets are corrected by the difference to what was charged when the attempt
        started. It is stored soon, and before the job ends. Await what it returns to wait for that.

        Args:
            cost: in the units of the job's ``cost``, from 0 to 10^12.

        Raises:
            InvalidArgument: the cost is not such a number.
        """
        given: object = cost
        if not isinstance(given, int | float | Decimal) or not 0 <= given <= MAX_COST:
            raise InvalidArgument(f"cost must be a number from 0 to {MAX_COST}")
        return self.recorder.spend(self, cost)

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

    # ---- durable steps: in a coroutine handler each of these is awaited

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: object,
        retries: int = 0,
        retry_delay: timedelta | float = 1.0,
        timeout: timedelta | float | None = None,
        **kwargs: object,
    ) -> Any:  # noqa: ANN401 - what the function returns
        """Call a function once, and record what it returns for the attempts that follow.

            charge_id = await context.step("charge", charge, order)

        A step that is recorded is not called again, by whatever attempt. One that was cut
        off before it was recorded is. In a transactional handler the step is recorded on
        the handler's connection: it commits with the rows that were written there.

        Args:
            name: 1 to 256 characters; the second step of a name is recorded as ``name#2``,
                so steps of one name must come in the same order in each attempt.
            function: what to call; in a coroutine handler it may be a coroutine function.
            *args: of the function.
            retries: how often to call the function again after an exception. Each failed call is
                recorded as ``name!1`` and so on, so a crash does not start the count anew.
                Outcomes such as `Permanent` are not retried.
            retry_delay: how long the job waits before the first of these calls, as by `sleep`,
                a timedelta or seconds; twice as long before each that follows, at most an hour.
            timeout: of each call, a timedelta or seconds; only for a coroutine function. Then
                TimeoutError is raised.
            **kwargs: of the function; bind others called as those above by functools.partial.

        Returns:
            What the function returned, as JSON keeps it: in the first attempt too.

        Raises:
            StepInvalid: the name is too long, or what the function returned is not JSON, or
                larger than 1 MiB. The job is then dead.
            LeaseLost: this attempt has lost its lease.
        """
        return self._steps.step(
            name,
            lambda: function(*args, **kwargs),
            retries=retries,
            retry_delay=retry_delay,
            timeout=timeout,
        )

    def sleep(self, until: datetime | timedelta | float) -> Any:  # noqa: ANN401 - None, or awaited
        """Go on at another time, behind the steps that are done.

        The job is given back until then, the attempt not counted; nothing is held meanwhile.
        The handler then starts anew, and its steps return what is recorded.

        Args:
            until: the moment, with a time zone; or how long from now, as a timedelta or in
                seconds; at most 36500 days away.

        Raises:
            StepInvalid: it is too far away, or has no time zone. The job is then dead.
        """
        return self._steps.sleep(until)

    def wait_for(self, event: str, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - the payload
        """Wait for an event that somebody emits, or for a signal to this job.

        While it has not come, the job is given back as by `sleep`. What has come is
        recorded: a later attempt, or another wait for the same event, gets the same.

        Args:
            event: its name, 1 to 256 characters.
            timeout: as a timedelta or in seconds, from the first time that the job waits for
                it; None waits on.

        Returns:
            The event's payload.

        Raises:
            EventTimeout: it did not come in time. Where it is not caught, the job is dead.
            StepInvalid: the name or the timeout is not allowed. The job is then dead.
        """
        return self._steps.wait_for(event, timeout)

    def inputs(self) -> Any:  # noqa: ANN401 - a list of Input, or awaited
        """Return what the jobs have come to that this one waited for (``enqueue(after=...)``).

        Returns:
            An `Input` for each, in the order of their ids.
        """
        return self._steps.inputs()

    @property
    def _steps(self) -> Steps:
        if self.steps is None:
            raise RuntimeError("this context records no steps")
        return self.steps
