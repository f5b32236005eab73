"""The context of a handler: its job, and what it can record while it runs."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol
from uuid import UUID

from jobq.errors import InvalidArgument
from jobq.models import Json
from jobq.registry.children import Mailbox, Source
from jobq.registry.outcomes import Cancelled
from jobq.registry.steps import Steps
from jobq.registry.streams import Call, Stream

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
        """Call a function once, and record its result for later attempts.

            charge_id = await context.step("charge", charge, order)

        A recorded step is not called again by any attempt. A step that was interrupted before
        it was recorded is called again. In a transactional handler, the step is recorded on the
        handler's connection and commits with the rows written there.

        Args:
            name: 1 to 256 characters. The second step of a name is recorded as ``name#2``,
                so steps with the same name must run in the same order in each attempt.
            function: the function; in a coroutine handler it may be a coroutine function.
            *args: arguments of the function.
            retries: how often to call the function again after an exception. Each failed call is
                recorded as ``name!1`` and so on, so a crash does not start the count anew.
                Outcomes such as `Permanent` are not retried.
            retry_delay: how long the job waits before the first retry, as by `sleep`, a timedelta
                or seconds; doubles with each retry, up to one hour.
            timeout: timeout of each call, a timedelta or seconds; only for a coroutine function.
                Then TimeoutError is raised.
            **kwargs: arguments of the function; use functools.partial for names used above.

        Returns:
            The function's result after a round trip through JSON, in the first attempt too.

        Raises:
            StepInvalid: the name is too long, or the result is not JSON or larger than 1 MiB.
                The job is then dead.
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
        """Continue later.

        The job is released until then, without counting the attempt. The handler then starts
        again, and its recorded steps return their saved results.

        Args:
            until: a time with a time zone; or a duration from now, as a timedelta or in seconds;
                at most 36500 days.

        Raises:
            StepInvalid: it is too far away, or has no time zone. The job is then dead.
        """
        return self._steps.sleep(until)

    def wait_for(self, event: str, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - the payload
        """Wait for an event, or for a signal to this job.

        Until it comes, the job is released as by `sleep`. The event is recorded: later attempts,
        and other waits for the same event, get the same payload.

        Args:
            event: its name, 1 to 256 characters.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Returns:
            The event's payload.

        Raises:
            EventTimeout: it did not come in time. If it is not caught, the job is dead.
            StepInvalid: the name or the timeout is invalid. The job is then dead.
        """
        return self._steps.wait_for(event, timeout)

    def receive(self, name: str, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - the message
        """Wait for the next message to this job, see `jobq.Client.send_message`.

        Until it comes, the job is released as by `sleep`. Messages of a name are received in their
        order, each once; later attempts get the same ones.

        Args:
            name: the name of the messages, 1 to 200 characters.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Raises:
            EventTimeout: no message came in time. The next call waits for the same message again.
            StepInvalid: the name or the timeout is invalid. The job is then dead.
        """
        return self._steps.receive(name, timeout)

    def mailbox(self, name: str) -> Mailbox:
        """Return the messages of a name, for `wait_any`."""
        return Mailbox(name)

    def wait_any(self, *sources: Source, timeout: timedelta | float | None = None) -> Any:  # noqa: ANN401 - Arrived
        """Wait for the first of several events, called jobs and messages.

        Until one arrives, the job is released as by `sleep`. The first one is recorded; later
        attempts get the same. The job no longer waits for the others; a later wait can.

        Args:
            *sources: names of events, what `call` or `start` returned, or mailboxes, at most 100.
            timeout: a timedelta or seconds, from the first wait; None waits without limit.

        Returns:
            An `Arrived`, with the source and its value.

        Raises:
            EventTimeout: nothing came in time.
            ChildFailed: a called job ended first, and has not succeeded.
        """
        return self._steps.wait_any(sources, timeout)

    def call(
        self,
        kind: str,
        payload: Json = None,
        *,
        name: str | None = None,
        cancel: bool = True,
        **options: Any,  # noqa: ANN401 - as `Client.enqueue` has them
    ) -> Any:  # noqa: ANN401 - its result, or awaited
        """Enqueue another job, wait until it has ended, and return its result.

        It is enqueued once, whatever happens to this job's attempts. Until it has ended, this job
        is released as by `sleep`. In a coroutine the result is awaited; pass it to `gather` or
        `wait_any` instead to wait for several.

        Args:
            kind: names the handler.
            payload: JSON, or anything that msgspec can encode; None is ``{}``.
            name: name of the call; ``call:KIND`` by default, numbered like names of steps.
            cancel: whether the called job is cancelled if this one is.
            options: queue, run_at, priority, max_attempts, timeout, metadata, concurrency_key,
                expires_at and cost, as for ``enqueue``.

        Raises:
            ChildFailed: it is dead or cancelled. If this is not caught, this job is dead, too.
            JobqError: as ``enqueue``.
        """
        return self._steps.call_job(kind, payload, {"name": name, "cancel": cancel, **options})

    def start(
        self,
        kind: str,
        payload: Json = None,
        *,
        name: str | None = None,
        cancel: bool = True,
        **options: Any,  # noqa: ANN401 - as `Client.enqueue` has them
    ) -> Any:  # noqa: ANN401 - a Child, or awaited
        """Call a job as `call` does, but return a `Child` at once, for `gather` or `wait_any`."""
        return self._steps.start(kind, payload, {"name": name, "cancel": cancel, **options})

    def gather(self, *calls: Any) -> Any:  # noqa: ANN401 - a list, or awaited
        """Wait until all of these called jobs have ended, and return their results in order.

        Args:
            *calls: what `start` returned or, in a coroutine, `call`; at most 1000.

        Raises:
            ChildFailed: the first one that has not succeeded, once all have ended.
        """
        return self._steps.gather(calls)

    def stream(self, name: str) -> Stream:
        """Return a stream, to write partial output for those who follow this job.

        Readers see the chunks of each attempt as a generation of its own. Write to a stream in one
        step only: then its last generation is complete.

        Args:
            name: 1 to 256 characters.
        """
        return self._steps.stream(name)

    def approve(
        self,
        name: str,
        question: str,
        *,
        form: Mapping[str, Json] | None = None,
        timeout: timedelta | float | None = None,
    ) -> Any:  # noqa: ANN401 - an Answer, or awaited
        """Ask a person a question, and wait for the `Answer`.

            answer = await context.approve("refund", f"Refund {cents} cents?")
            if not answer.is_approved: ...

        Until somebody answers, the job is released as by `sleep`. `Client.list_waits` lists the
        open questions, and `Client.answer` answers one. The answer is recorded: later attempts
        get the same.

        Args:
            name: unique in the job, 1 to 249 characters.
            question: what the person reads, at most 4096 characters.
            form: a JSON Schema of the data that an approval must have; None for none.
            timeout: a timedelta or seconds, from the first call; None waits without limit.

        Raises:
            EventTimeout: nobody answered in time. If it is not caught, the job is dead.
            StepInvalid: an argument is invalid. The job is then dead.
        """
        return self._steps.approve(name, question, form, timeout)

    def inputs(self) -> Any:  # noqa: ANN401 - a list of Input, or awaited
        """Return an `Input` for each job of ``enqueue(after=...)``, in the order of their ids."""
        return self._steps.inputs()

    @property
    def _steps(self) -> Steps:
        if self.steps is None:
            raise RuntimeError("this context records no steps")
        return self.steps
