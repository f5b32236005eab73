"""The executor runs the handler of a job: as a coroutine, in a thread, in a process, in a batch."""

from __future__ import annotations

import asyncio
import functools
import logging
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from jobq import tracing
from jobq.errors import (
    InvalidArgument,
    JobNotFound,
    LeaseLost,
    PayloadInvalid,
    PayloadTooLarge,
    of_database,
)
from jobq.redaction import error_text
from jobq.registry.settlement import (
    DEFAULT_RULES,
    NO_RESULT,
    NOTHING,
    Failed,
    Gone,
    LostError,
    Raised,
    Released,
    Returned,
    Settlement,
    Succeeded,
    Suspended,
    outcomes_of,
    settlement_of,
)
from jobq.registry.steps import Steps, in_transaction, in_transaction_async
from jobq.worker.controller import NO_HANDLER
from jobq.worker.pools import value_of
from jobq.worker.queries import COMPLETE, REFUSED, current_job
from jobq.worker.recorder import Notes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from jobq.registry import Registry
    from jobq.registry.context import JobContext
    from jobq.registry.handler import Handler
    from jobq.registry.steps import Call
    from jobq.worker.controller import SkippedKinds
    from jobq.worker.pools import Pools, Threads
    from jobq.worker.queries import Job
    from jobq.worker.recorder import Journal, Recorder

__all__ = ["Executor"]

logger = logging.getLogger("jobq.worker")


@dataclass(eq=False)
class Executor:
    """Runs handlers. Every job gets a settlement, whatever its handler does."""

    worker: str
    registry: Registry
    pools: Pools
    recorder: Recorder
    journal: Journal
    skipped: SkippedKinds
    concurrency: int

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_traced = tracing.is_on()
        self._batches: dict[str, Batches] = {}
        self._last_calls: set[asyncio.Task[None]] = set()

    # ---- before the start

    async def prepare(self, job: Job) -> Settlement | None:
        """Find a job's handler and, if it runs in a process, wait for one.

        Returns:
            None if the job can start; how to release it if there is no handler.

        Raises:
            Unable: no process is available; the job has not begun.
        """
        job.handler = self.registry.get(job.kind)
        if job.handler is None:
            return self.skipped.met(job.kind, *NO_HANDLER)
        if job.handler.mode == "process":
            job.process = await self.pools.processes.take(job.handler.function)
        return None

    # ---- the run

    async def run(self, job: Job) -> Settlement:
        """Run the handler of a job and return how the job is to be settled.

        `settlement_of` handles everything that this raises.
        """
        current_job.set((job, self.worker))
        if not self._is_traced:
            return await self._run(job)
        with tracing.attempt_span(job, self.worker) as span:
            settlement = await self._run(job)
            if isinstance(settlement, Failed):
                tracing.note_failure(span, settlement.code, settlement.error)
            return settlement

    def settlement_of(self, job: Job, error: BaseException) -> Settlement:
        """Return how to settle a job whose attempt raised this exception.

        It is released only if the worker has interrupted it.
        """
        if job.is_interrupted:
            return Released()
        rules = job.handler.rules if job.handler is not None else DEFAULT_RULES
        return settlement_of(
            Raised(error),
            is_cancel_requested=job.is_cancel_requested,
            rules=rules,
            attempt=job.attempt,
        )

    async def _run(self, job: Job) -> Settlement:
        handler = job.handler
        assert handler is not None  # noqa: S101 - else it is given back
        try:
            payload = handler.read(job.payload)
        except (ValueError, RecursionError) as error:
            return Failed("PAYLOAD_INVALID", error_text(error), is_retryable=False)
        notes = None
        if handler.extras or self.registry.hooks:
            notes = Notes(self.recorder, job.key)
            job.make_context(notes)
            is_awaited = handler.mode == "coroutine"
            self._record_steps(
                job, self.journal.call if is_awaited else self.journal.call_from_thread
            )
        did: Returned | Raised
        try:
            did = await self._call(handler, job, payload)
        except BaseException as error:
            did = Raised(error)
        if notes is not None and not (job.is_interrupted and isinstance(did, Raised)):
            await notes.end()
        return self._settlement(handler, job, did)

    async def _call(self, handler: Handler, job: Job, payload: object) -> Returned | Raised:
        """Call the handler: in the loop, a thread, a process or a batch."""
        threads = self.pools.threads
        if handler.batch:
            job.is_interruptible = True
            call = self._hooked(self._batches_of(handler).join, job)
            return Returned(await call(payload, job.context, job.timeout))
        if handler.is_transactional and handler.mode == "thread":
            call = functools.partial(self._call_in_transaction, handler, job, payload)
            return await threads.run(call)
        if handler.mode == "coroutine":
            job.is_interruptible = True
            if handler.is_transactional:
                return Returned(await self._await_in_transaction(handler, job, payload))
            call = self._hooked(handler.function, job)
            value = await call(*handler.arguments(payload, job.context, None))
            return NOTHING if value is None else Returned(value)
        call = self._hooked(handler.function if job.process is None else job.process.call, job)
        return await threads.run(call, *handler.arguments(payload, job.context, None))

    def _settlement(self, handler: Handler, job: Job, did: Returned | Raised) -> Settlement:
        """Return the settlement for what a handler returned or raised, and for interruptions."""
        if did is NOTHING:
            return NO_RESULT
        if isinstance(did, Returned):
            if isinstance(did.value, Gone):
                return did.value
        elif job.is_interrupted:
            return Released()
        elif isinstance(did.error, _UnfitError):
            return did.error.settlement
        settlement = settlement_of(
            did,
            is_cancel_requested=job.is_cancel_requested,
            rules=handler.rules,
            attempt=job.attempt,
        )
        match settlement:
            case Released(until=timedelta() as wait, reason=(code, text)) if (
                not wait and self.registry.is_fallback(handler)
            ):
                return self.skipped.met(job.kind, code, text)
        return settlement

    def _record_steps(self, job: Job, call: Call) -> None:
        """Have the steps of an attempt recorded, if its handler takes a context."""
        context, handler = job.context, job.handler
        if context is not None and handler is not None and not handler.batch:
            is_awaited = handler.mode == "coroutine"
            context.steps = Steps(call, context.job_id, job.attempt, is_awaited=is_awaited)

    def _hooked(self, call: Callable[..., Any], job: Job) -> Callable[..., Any]:
        """Return a call of a handler with the registry's hooks around it."""
        hooks, handler, context = self.registry.hooks, job.handler, job.context
        if context is None or handler is None or not hooks:
            return call
        if self.registry.is_fallback(handler) and job.delivery_version is None:
            return call
        if handler.mode == "coroutine" or handler.batch:
            return hooks.around_coroutine(call, context)
        return hooks.around_function(call, context, self._wait)

    def _wait(self, hooked: Awaitable[Any]) -> object:
        """Run a coroutine in the worker's event loop, and wait for it in a thread."""

        async def awaited() -> Returned | Raised:
            try:
                return Returned(await hooked)
            except BaseException as error:  # of a task, SystemExit would end the loop
                return Raised(error)

        return value_of(asyncio.run_coroutine_threadsafe(awaited(), self._loop).result())

    def _batches_of(self, handler: Handler) -> Batches:
        if handler.kind not in self._batches:
            self._batches[handler.kind] = Batches(handler, self.pools.threads, self.concurrency)
        return self._batches[handler.kind]

    # ---- in a transaction that also completes the job, or is rolled back

    async def _await_in_transaction(self, handler: Handler, job: Job, payload: object) -> Gone:
        async with self.pools.connection() as connection:
            self._record_steps(job, in_transaction_async(connection))
            function = self._hooked(handler.function, job)
            text, outcome = None, "succeeded"
            try:
                text = _text_of(
                    await function(*handler.arguments(payload, job.context, connection))
                )
            except Suspended:
                outcome = "released"
            if job.context is not None and isinstance(job.context.recorder, Notes):
                await job.context.recorder.end()
            job.is_ending = True
            if outcome == "succeeded":
                with _refusals():
                    await connection.execute(COMPLETE, (job.job_id, job.attempt, text))
        return Gone(outcome)

    def _call_in_transaction(self, handler: Handler, job: Job, payload: object) -> Gone:
        with self.pools.thread_connection() as connection:
            self._record_steps(job, in_transaction(connection))
            function = self._hooked(handler.function, job)
            text, outcome = None, "succeeded"
            try:
                text = _text_of(function(*handler.arguments(payload, job.context, connection)))
            except Suspended:
                outcome = "released"
            job.is_ending = True
            if outcome == "succeeded":
                with _refusals():
                    connection.execute(COMPLETE, (job.job_id, job.attempt, text))
        return Gone(outcome)

    # ---- after the end

    def leave(self, job: Job) -> None:
        """Release the process of an attempt."""
        if job.process is not None:
            self.pools.processes.give_back(job.process)
            job.process = None

    def call_on_dead(self, job: Job, failure: Failed) -> None:
        """Call the handler's ``on_dead``, if it has one."""
        handler = self.registry.get(job.kind)
        if handler is not None and handler.on_dead is not None:
            task = asyncio.create_task(self._call_on_dead(handler.on_dead, job, failure))
            self._last_calls.add(task)
            task.add_done_callback(self._last_calls.discard)

    async def _call_on_dead(
        self, on_dead: Callable[[JobContext, str, str], Any], job: Job, failure: Failed
    ) -> None:
        try:
            context = job.context or job.make_context(Notes(self.recorder, job.key))
            arguments = (context, failure.code, failure.error)
            if asyncio.iscoroutinefunction(on_dead):
                await on_dead(*arguments)
            else:
                value_of(await self.pools.threads.run(on_dead, *arguments))
        except BaseException as error:
            logger.error(  # noqa: TRY400 - its text may not be fit to be shown
                "on_dead of kind %s failed: %s", job.kind, error_text(error)
            )

    async def finish(self, seconds: float) -> None:
        """Wait for running calls of ``on_dead``, at most this long."""
        if self._last_calls:
            await asyncio.wait(self._last_calls, timeout=seconds)


# ---- transactional handlers


class _UnfitError(Exception):
    """A result that cannot be stored; raised to roll back the transaction."""

    def __init__(self, settlement: Settlement) -> None:
        super().__init__(settlement)
        self.settlement = settlement


def _text_of(result: object) -> str | None:
    """Return what a transactional handler returned as JSON text.

    Raises:
        _UnfitError: the result is not JSON; the transaction is rolled back.
    """
    settlement = settlement_of(Returned(result))
    if isinstance(settlement, Succeeded):
        return settlement.result.decode() if settlement.result else None
    raise _UnfitError(settlement)


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise a lost lease or a refused result as its own exception; other errors unchanged."""
    try:
        yield
    except psycopg.Error as error:
        refusal = of_database(error)
        if isinstance(refusal, LeaseLost | JobNotFound):
            raise LostError from error
        if isinstance(refusal, InvalidArgument | PayloadInvalid | PayloadTooLarge):
            failure = Failed(REFUSED, error_text(str(refusal)), is_retryable=False)
            raise _UnfitError(failure) from error
        raise


# ---- batch handlers: one call runs several jobs of a kind


class Batch:
    """Jobs that one call runs."""

    def __init__(self, handler: Handler, threads: Threads) -> None:
        self._handler = handler
        self._threads = threads
        self.task: asyncio.Task[None] | None = None
        self.jobs: dict[asyncio.Future[Returned | Raised], tuple[object, JobContext | None]] = {}

    async def run(self) -> None:
        """Run the jobs that are still in the batch."""
        self.jobs = {end: job for end, job in self.jobs.items() if not end.done()}
        if not self.jobs:
            return
        try:
            outcomes = outcomes_of(await self._call(), len(self.jobs))
        except BaseException as error:
            outcomes = [Raised(error)] * len(self.jobs)
        for end, outcome in zip(self.jobs, outcomes, strict=True):
            if not end.done():
                end.set_result(outcome)

    async def _call(self) -> Any:  # noqa: ANN401 - what it returns
        arguments: list[object] = [[payload for payload, _ in self.jobs.values()]]
        if self._handler.extras:
            arguments.append([context for _, context in self.jobs.values()])
        if self._handler.mode == "coroutine":
            return await self._handler.function(*arguments)
        return value_of(await self._threads.run(self._handler.function, *arguments))


class Batches:
    """Gathers the jobs of one kind."""

    def __init__(self, handler: Handler, threads: Threads, concurrency: int) -> None:
        self._handler = handler
        self._threads = threads
        self._most = min(handler.batch, concurrency)
        self._loop = asyncio.get_running_loop()
        self._next = Batch(handler, threads)
        self._timer: asyncio.TimerHandle | None = None
        self._begins_at = 0.0

    async def join(self, payload: object, context: JobContext | None, timeout: float) -> object:  # noqa: ASYNC109
        """Run a job together with others of its kind, and return its result.

        Args:
            payload: the job's payload.
            context: the job's context, for handlers that take contexts.
            timeout: seconds for its attempt. It waits for other jobs for at most half of it.

        Raises:
            BaseException: what the handler raised, or returned as this job's result.
        """
        batch = self._next
        end: asyncio.Future[Returned | Raised] = self._loop.create_future()
        batch.jobs[end] = payload, context
        if len(batch.jobs) >= self._most:
            self._begin()
        else:
            self._begin_within(min(self._handler.batch_wait, timeout / 2))
        try:
            return value_of(await end)
        finally:
            end.cancel()  # without effect where it is known
            if batch.task is not None and all(other.done() for other in batch.jobs):
                batch.task.cancel()  # nobody waits for it any more

    def _begin_within(self, seconds: float) -> None:
        moment = self._loop.time() + seconds
        if self._timer is not None:
            if self._begins_at <= moment:  # not by when(): uvloop may return a handle without it
                return
            self._timer.cancel()
        self._begins_at = moment
        self._timer = self._loop.call_at(moment, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        batch, self._next = self._next, Batch(self._handler, self._threads)
        batch.task = self._loop.create_task(batch.run(), name="jobq batch")
