"""The executor runs the handler of a job: as a coroutine, in a thread, in a process, in a batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import psycopg

from jobq import tracing
from jobq.calls.arguments import encode
from jobq.database import awaited, entered, finished
from jobq.errors import (
    InvalidArgument,
    JobNotFound,
    JobqError,
    LeaseLost,
    PayloadInvalid,
    PayloadTooLarge,
    of_database,
)
from jobq.redaction import error_text
from jobq.registry import Registry
from jobq.registry.context import JobContext
from jobq.registry.handler import Handler
from jobq.registry.settlement import (
    DEFAULT_RULES,
    NO_RESULT,
    NOTHING,
    Failed,
    Gone,
    Raised,
    Released,
    Returned,
    SettledError,
    Settlement,
    Succeeded,
    Suspended,
    outcomes_of,
    settlement_of,
)
from jobq.registry.steps import SAVE_STEP, in_transaction
from jobq.worker import tuning
from jobq.worker.controller import NO_HANDLER, SkippedKinds
from jobq.worker.functions import Functions
from jobq.worker.listener import is_set_within
from jobq.worker.pools import Pools, value_of
from jobq.worker.queries import COMPLETE, REFUSED, Job, current_job
from jobq.worker.recorder import Journal, Notes, Recorder

logger = logging.getLogger("jobq.worker")

# The step that records the release that has started a job.
PINNED = "jobq:release"


@dataclass(eq=False)
class Executor:
    """Runs handlers. Every job gets a settlement, whatever its handler does."""

    worker: str
    registry: Registry
    pools: Pools
    recorder: Recorder
    journal: Journal
    skipped: SkippedKinds
    functions: Functions
    concurrency: int
    release: str

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_traced = tracing.is_on()
        self._batches: dict[str, Batch] = {}  # the last one of each kind
        self._last_calls: set[asyncio.Task[None]] = set()

    # ---- before the start

    async def prepare(self, job: Job) -> Settlement | None:
        """Find a job's handler and, if it runs in a process, wait for one; None if it can start."""
        job.handler = self.registry.get(job.kind)
        if job.handler is None or self._is_unasked(job):
            job.handler = await self.functions.find(job.kind) or job.handler
        if job.handler is None:
            return self.skipped.met(job.kind, NO_HANDLER, is_lasting=True)
        if job.handler.mode == "process":
            job.process = await self.pools.processes.take(job.handler.function)
        return None

    def _is_unasked(self, job: Job) -> bool:
        """Whether only the function of `Registry.otherwise` can run a job, which is no delivery."""
        return self.registry.is_fallback(job.handler) and job.delivery_version is None

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

    async def _run(self, job: Job) -> Settlement:
        handler = job.handler
        assert handler is not None  # noqa: S101 - else it is given back
        try:
            payload = handler.read(job.payload)
        except (ValueError, RecursionError) as error:
            return Failed("PAYLOAD_INVALID", error_text(error), is_retryable=False)
        notes = steps = None
        if handler.extras or self.registry.hooks:
            notes = Notes(self.recorder, job.key)
            context = job.make_context(notes)
            if not handler.batch:
                call = self.journal.call if handler.is_awaited else self.journal.call_from_thread
                steps = context.record_steps(call, is_awaited=handler.is_awaited)
            if handler.pin_release and (other := await self._other_release(job)):
                return other
        did: Returned | Raised
        try:
            did = await self._call(handler, job, payload)
        except BaseException as error:
            did = Raised(error)
        if notes is not None and not (job.is_interrupted and isinstance(did, Raised)):
            has_committed = handler.is_transactional and isinstance(did, Returned)
            await notes.end(has_committed=has_committed)
            if steps is not None and not handler.is_transactional:
                try:
                    await steps.chunks.end()
                except JobqError as error:
                    did = Raised(error)
        return NO_RESULT if did is NOTHING else self.settlement_of(job, did)

    async def _other_release(self, job: Job) -> Settlement | None:
        """Record which release has started a job; return it to its queue if it was another."""
        own = (*job.key, PINNED, encode(self.release))
        try:
            [(text,)] = await self.journal.call(SAVE_STEP, own)
        except LeaseLost:
            return Gone("lost")
        started_by = msgspec.json.decode(text)
        if started_by == self.release:
            return None
        wait = tuning.RELEASE_WAIT_LAST * min(job.attempt / 60, 1)
        return Released(
            timedelta(seconds=wait), ("RELEASE", f"the job was started by release {started_by}")
        )

    async def _call(self, handler: Handler, job: Job, payload: object) -> Returned | Raised:
        """Call the handler: in the loop, a thread, a process or a batch."""
        threads = self.pools.threads
        job.is_interruptible = bool(handler.batch) or handler.is_awaited
        if handler.batch:
            job.is_ending = handler.is_transactional
            value = await self._hooked(self._join_batch, job)(handler, job, payload)
        elif handler.is_awaited:
            if handler.is_transactional:
                return Returned(await self._call_in_transaction(handler, job, payload))
            call = self._hooked(handler.function, job)
            value = await call(*handler.arguments(payload, job.context, None))
        elif handler.is_transactional:
            return await threads.run(
                lambda: finished(self._call_in_transaction(handler, job, payload))
            )
        else:
            function = handler.function if job.process is None else job.process.call
            call = self._hooked(function, job)
            return await threads.run(call, *handler.arguments(payload, job.context, None))
        return NOTHING if value is None else Returned(value)

    def settlement_of(self, job: Job, did: Returned | Raised) -> Settlement:
        """Return how to settle a job whose attempt came to this."""
        if isinstance(did, Returned):
            if isinstance(did.value, Gone):
                return did.value
        elif job.is_interrupted:
            return Released()
        settlement = settlement_of(
            did,
            is_cancel_requested=job.is_cancel_requested,
            rules=job.handler.rules if job.handler is not None else DEFAULT_RULES,
            attempt=job.attempt,
        )
        match settlement:
            case Released(until=timedelta() as wait, reason=(code, text)) if (
                not wait and self.registry.is_fallback(job.handler)
            ):
                return self.skipped.met(job.kind, (code, text))
        return settlement

    def _hooked(self, call: Callable[..., Any], job: Job) -> Callable[..., Any]:
        """Return a call of a handler with the registry's hooks around it."""
        hooks, handler, context = self.registry.hooks, job.handler, job.context
        if context is None or handler is None or self._is_unasked(job):
            return call
        if handler is not self.registry.get(job.kind):  # it is a database function
            return call
        if handler.is_awaited or handler.batch:
            return hooks.around(call, context)
        return hooks.around(call, context, self._wait)

    def _wait(self, hooked: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine in the worker's event loop, and wait for it in a thread."""

        async def done() -> Returned | Raised:
            try:
                return Returned(await hooked)
            except BaseException as error:  # of a task, SystemExit would end the loop
                return Raised(error)

        value_of(asyncio.run_coroutine_threadsafe(done(), self._loop).result())

    async def _call_in_transaction(self, handler: Handler, job: Job, payload: object) -> Gone:
        """Call a handler in a transaction that also completes the job, or is rolled back.

        A plain function runs in a thread, where nothing here suspends.
        """
        is_awaited, context = handler.is_awaited, job.context
        steps = context.steps if context is not None else None
        async with self.pools.connection("awaited" if is_awaited else "thread") as connection:
            before = partial(self._before, job, connection, is_awaited=is_awaited)
            if steps is not None:
                steps.query = steps.chunks.call = in_transaction(connection, before)
                steps.chunks.waits_for_step = True
            function = self._hooked(handler.function, job)
            try:
                value = function(*handler.arguments(payload, context, connection))
                settlement = settlement_of(Returned(await value if is_awaited else value))
                if not isinstance(settlement, Succeeded):
                    raise SettledError(settlement)
                if steps is not None:
                    await awaited(steps.chunks.flush())
            except Suspended:
                job.is_ending = True
                return Gone("released")
            await before(COMPLETE)
            job.is_ending = True
            await self._complete(job, connection, settlement)
        return Gone("succeeded")

    async def _complete(self, job: Job, connection: Any, done: Succeeded) -> None:  # noqa: ANN401 - of either kind
        try:
            result = done.result and done.result.decode()
            await awaited(connection.execute(COMPLETE, (*job.key, result)))
        except psycopg.Error as error:
            refusal = of_database(error)
            if isinstance(refusal, LeaseLost | JobNotFound):
                raise SettledError(Gone("lost")) from error
            if isinstance(refusal, InvalidArgument | PayloadInvalid | PayloadTooLarge):
                said = error_text(str(refusal))
                raise SettledError(Failed(REFUSED, said, is_retryable=False)) from error
            raise

    async def _before(self, job: Job, connection: Any, statement: str, *, is_awaited: bool) -> None:  # noqa: ANN401
        """Let an attempt's progress and cost be written in a transaction that locks its job.

        Until its end all others who write them would wait, and the worker's heartbeats with them.
        They are written late, before the attempt may end, because a cost locks limits.
        """
        notes = job.context.recorder if job.context is not None else None
        if not isinstance(notes, Notes):
            return
        if notes.keep_values():  # those on their way must arrive before the job is locked
            await notes if is_awaited else self._wait(awaited(notes))
        for record, row in [] if statement == SAVE_STEP else notes.values():
            try:
                async with AsyncExitStack() as stack:
                    await entered(stack, connection.transaction())
                    await awaited(connection.execute(record, row))
            except psycopg.Error as error:
                logger.warning("a record of job %s was refused: %s", job.job_id, error_text(error))

    # ---- batch handlers: one call runs several jobs of a kind

    async def _join_batch(self, handler: Handler, job: Job, payload: object) -> object:
        """Run a job together with others of its kind; return its result, or raise its exception."""
        # It waits for other jobs for at most half of an attempt's time.
        begins_at = self._loop.time() + min(handler.batch_wait, job.timeout / 2)
        batch = self._batches.get(handler.kind)
        if batch is None or batch.is_closed.is_set():
            batch = self._batches[handler.kind] = Batch(begins_at)
            batch.task = self._loop.create_task(self._run_batch(handler, batch), name="jobq batch")
        end: asyncio.Future[Returned | Raised] = self._loop.create_future()
        batch.jobs[end] = payload, job.context
        is_full = len(batch.jobs) >= min(handler.batch, self.concurrency)
        if is_full or begins_at < batch.begins_at:
            batch.is_closed.set()
        try:
            return value_of(await end)
        finally:
            end.cancel()  # without effect where it is known
            if batch.task is not None and all(other.done() for other in batch.jobs):
                batch.is_closed.set()
                batch.task.cancel()  # nobody waits for it any more

    async def _run_batch(self, handler: Handler, batch: Batch) -> None:
        current_job.set((handler.kind, self.worker))
        await is_set_within(batch.is_closed, batch.begins_at - self._loop.time())
        batch.is_closed.set()
        jobs = {end: job for end, job in batch.jobs.items() if not end.done()}
        if not jobs:
            return
        payloads, contexts = map(list, zip(*jobs.values(), strict=True))
        arguments = handler.batch_arguments(payloads, contexts)
        try:
            if handler.is_awaited:
                returned = await handler.function(*arguments)
            else:
                returned = value_of(await self.pools.threads.run(handler.function, *arguments))
            outcomes = outcomes_of(returned, len(jobs))
        except BaseException as error:
            outcomes = [Raised(error)] * len(jobs)
        for end, outcome in zip(jobs, outcomes, strict=True):
            if not end.done():
                end.set_result(outcome)
        batch.jobs.clear()  # the batch is kept until the next one

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


@dataclass(eq=False)
class Batch:
    """Jobs that one call of a handler runs; `begins_at` is when, by the loop's clock."""

    begins_at: float
    jobs: dict[asyncio.Future[Returned | Raised], tuple[object, JobContext | None]] = field(
        default_factory=dict
    )
    is_closed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
