"""What happens to an attempt, from its start to the last words of a job that is dead."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
import traceback
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg

from jobq import tracing
from jobq.errors import JobNotFound, JobqError, LeaseLost, of_database
from jobq.outcomes import OUTCOMES
from jobq.redaction import error_text
from jobq.settlement import (
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
    settlement_of,
)
from jobq.steps import AsyncJournal, Steps, SyncJournal
from jobq.worker.batches import Batches
from jobq.worker.journal import ThreadJournal, WorkerJournal
from jobq.worker.lacks import Lacks
from jobq.worker.logs import Sparing, current_job, job_fields
from jobq.worker.protocol import COMPLETE
from jobq.worker.unknown import NO_HANDLER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from uuid import UUID

    from jobq.context import JobContext
    from jobq.handler import Handler
    from jobq.registry import Registry
    from jobq.steps import Journal
    from jobq.worker.held import Held
    from jobq.worker.metrics import Metrics
    from jobq.worker.notes import Notes
    from jobq.worker.places import Places
    from jobq.worker.stop import Stop
    from jobq.worker.unknown import Unknown

__all__ = ["Attempts"]

logger = logging.getLogger("jobq.worker")

_LEVELS: Final = {
    "succeeded": logging.INFO,
    "released": logging.INFO,
    "cancelled": logging.INFO,
    "retrying": logging.WARNING,
    "unknown": logging.INFO,
    "lost": logging.WARNING,
    "dead": logging.ERROR,
}


class Attempts:
    """Runs handlers, and tells of it.

    Args:
        worker: its name.
        registry: the handlers.
        places: where they run.
        notes: where they write to.
        journal: where their steps are recorded.
        unknown: what notes the kinds that have no handler.
        metrics: what counts, if anything does.
        stop: what ends the worker when it is used up.

    Attributes:
        lacks: what this worker cannot do jobs for.
    """

    def __init__(  # noqa: PLR0917 - each is another part of the worker
        self,
        worker: str,
        registry: Registry,
        places: Places,
        notes: Notes,
        journal: WorkerJournal,
        unknown: Unknown,
        metrics: Metrics | None,
        stop: Stop,
    ) -> None:
        self._worker = worker
        self._registry = registry
        self._places = places
        self._notes = notes
        self._journal = journal
        self._unknown = unknown
        self._loop = asyncio.get_running_loop()
        self._metrics = metrics
        self._stop = stop
        self._is_traced = tracing.is_on()
        self._last_words: set[asyncio.Task[None]] = set()
        self._gathering: dict[str, Batches] = {}
        self._complaints = Sparing(logger)
        self.lacks = Lacks()

    # ---- before the start

    def find_handler(self, held: Held) -> None:
        """Find a job's handler; there may be none."""
        held.handler = self._registry.get(held.kind)

    async def prepare(self, held: Held) -> None:
        """Wait for what a job needs before it can start.

        Raises:
            Unable: the worker cannot get it; the job has not begun.
        """
        assert held.handler is not None  # noqa: S101 - it needs something
        held.process = await self._places.processes.take(held.handler.function)

    def leave_to_others(self, held: Held) -> Settlement:
        """Return how a job is given back that has no handler here."""
        return self._unknown.met(held.kind, NO_HANDLER)

    def started(self, held: Held) -> None:
        """Note that a job starts."""
        if self._metrics is not None:
            self._metrics.started(held)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("job started", extra={"job_fields": job_fields(held, self._worker)})

    # ---- the run

    def run(self, held: Held) -> Coroutine[Any, Any, Settlement]:
        """Run the handler of a job and return how the job is to be settled.

        What this raises, whatever the handler does, is for `settlement_of`.
        """
        current_job.set((held, self._worker))
        return self._run_traced(held) if self._is_traced else self._settlement(held)

    def settlement_of(self, held: Held, error: BaseException) -> Settlement:
        """Return how a job is to be settled whose attempt has raised this.

        A release is what the worker's own interruption comes to, and nothing that a handler
        raises by itself.
        """
        if held.is_interrupted:
            return Released()
        return settlement_of(Raised(error), is_cancel_requested=held.is_cancel_requested)

    async def _run_traced(self, held: Held) -> Settlement:
        with tracing.attempt_span(held, self._worker) as span:
            settlement = await self._settlement(held)
            if isinstance(settlement, Failed):
                tracing.note_failure(span, settlement.code, settlement.error)
            return settlement

    async def _settlement(self, held: Held) -> Settlement:
        handler = held.handler
        assert handler is not None  # noqa: S101 - else it is left to others
        try:
            payload = handler.read(held.payload)
        except (ValueError, RecursionError) as error:
            return Failed("PAYLOAD_INVALID", error_text(error), is_retryable=False)
        if handler.extras or self._registry.hooks:
            held.make_context(self._notes)
            self._record_steps(handler, held, self._journal)
        did: Returned | Raised
        try:
            if handler.batch:
                held.is_interruptible = True
                join = self._hooked(self._batches(handler).outcome, held)
                value = await join(payload, held.context, held.timeout)
                did = Returned(value)
            elif handler.mode == "coroutine" and not handler.is_transactional:
                held.is_interruptible = True
                call = handler.function
                if held.context is not None:
                    call = self._hooked(call, held)
                value = await call(*handler.arguments(payload, held.context, None))
                did = NOTHING if value is None else Returned(value)
            else:
                did = await self._elsewhere(handler, held, payload)
        except BaseException as error:
            did = Raised(error)
        if held.context is not None and not (held.is_interrupted and isinstance(did, Raised)):
            await self._notes.written(held.key)
        return self._judged(handler, held, did)

    def _record_steps(
        self, handler: Handler, held: Held, journal: WorkerJournal | AsyncJournal | SyncJournal
    ) -> None:
        """Have the steps of an attempt recorded, if its handler can see to any."""
        if held.context is None or handler.batch:
            return
        is_awaited = handler.mode == "coroutine"
        own: Journal = journal
        if isinstance(journal, WorkerJournal) and not is_awaited:
            own = ThreadJournal(journal, self._loop)
        context = held.context
        context.steps = Steps(own, context.job_id, held.attempt, is_awaited=is_awaited)

    def _judged(self, handler: Handler, held: Held, did: Returned | Raised) -> Settlement:
        """Return what follows from what a handler did, and what the worker did to it."""
        if did is NOTHING:
            return NO_RESULT
        if isinstance(did, Returned):
            if isinstance(did.value, Gone):
                return did.value
        elif held.is_interrupted:
            return Released()
        elif isinstance(did.error, _UnfitError):
            return did.error.settlement
        elif not isinstance(did.error, _OUTCOMES):
            logger.info("%s", _where(did.error))
        settlement = settlement_of(did, is_cancel_requested=held.is_cancel_requested)
        match settlement:
            case Released(until=timedelta() as wait, reason=(code, text)) if (
                not wait and self._registry.is_fallback(handler)
            ):
                return self._unknown.met(held.kind, text, code)
        return settlement

    async def _elsewhere(self, handler: Handler, held: Held, payload: object) -> Returned | Raised:
        """Have a handler do the job in a transaction, a thread or a process."""
        if handler.is_transactional:
            return await self._transaction(handler, held, payload)
        function = handler.function if held.process is None else held.process.call
        call = self._hooked(function, held)
        arguments = handler.arguments(payload, held.context, None)
        return await self._places.threads.run(call, *arguments)

    def _hooked(self, call: Callable[..., Any], held: Held) -> Callable[..., Any]:
        """Return a call of a handler with the registry's hooks around it."""
        hooks, handler, context = self._registry.hooks, held.handler, held.context
        if context is None or handler is None or not hooks:
            return call
        if self._registry.is_fallback(handler) and held.delivery_version is None:
            return call
        if handler.mode == "coroutine" or handler.batch:
            return hooks.around_coroutine(call, context)
        return hooks.around_function(call, context, self._wait)

    def _wait(self, hooked: Awaitable[Any]) -> object:
        """Wait in a thread for what the worker's event loop runs."""

        async def awaited() -> Returned | Raised:
            try:
                return Returned(await hooked)
            except BaseException as error:  # of a task, SystemExit would end the loop
                return Raised(error)

        return outcome_of(asyncio.run_coroutine_threadsafe(awaited(), self._loop).result())

    # ---- in a batch

    def is_in_batch(self, held: Held) -> bool:
        """Return whether a job is done by `join`, without a task of its own."""
        handler = held.handler
        if handler is None or not handler.batch:
            return False
        return not (handler.extras or self._registry.hooks or self._is_traced)

    def join(self, held: Held, end: Callable[[Held, Settlement], None]) -> None:
        """Have a job done with others of its kind.

        Args:
            held: the job.
            end: told in another turn of the event loop how the job is to be settled.
        """
        handler = held.handler
        assert handler is not None  # noqa: S101 - its batches are asked for

        def tell(did: Returned | Raised) -> None:
            try:
                settlement = self._judged(handler, held, did)
            except BaseException as error:
                settlement = self.settlement_of(held, error)
            end(held, settlement)

        try:
            payload = handler.read(held.payload)
        except (ValueError, RecursionError) as error:
            unfit = Failed("PAYLOAD_INVALID", error_text(error), is_retryable=False)
            self._loop.call_soon(end, held, unfit)
        except BaseException as error:
            self._loop.call_soon(tell, Raised(error))
        else:
            held.place = self._batches(handler).join(payload, None, held.timeout, tell)

    def _batches(self, handler: Handler) -> Batches:
        """Return where the jobs of a handler meet."""
        if handler.kind not in self._gathering:
            self._gathering[handler.kind] = Batches(
                handler, self._places.threads, self._places.concurrency
            )
        return self._gathering[handler.kind]

    # ---- in a transaction that also completes the job, or does nothing at all

    async def _transaction(
        self, handler: Handler, held: Held, payload: object
    ) -> Returned | Raised:
        if handler.mode == "thread":
            call = functools.partial(self._transaction_in_thread, handler, held, payload)
            return await self._places.threads.run(call)
        held.is_interruptible = True
        async with self._places.connection() as connection:
            self._record_steps(handler, held, AsyncJournal(connection))
            try:
                function = self._hooked(handler.function, held)
                result = await function(*handler.arguments(payload, held.context, connection))
            except Suspended:
                await self._notes.written(held.key)
                held.is_ending = True
                return _WAITING  # and commits
            text = _text_of(result)
            await self._notes.written(held.key)
            held.is_ending = True
            try:
                await connection.execute(COMPLETE, (held.job_id, held.attempt, text))
            except psycopg.Error as error:
                raise _completion_error(error) from error
        return Returned(Gone("succeeded"))

    def _transaction_in_thread(self, handler: Handler, held: Held, payload: object) -> Gone:
        with self._places.thread_connection() as connection:
            self._record_steps(handler, held, SyncJournal(connection))
            try:
                call = self._hooked(handler.function, held)
                result = call(*handler.arguments(payload, held.context, connection))
            except Suspended:
                held.is_ending = True
                return Gone("released")  # and commits
            text = _text_of(result)
            held.is_ending = True
            try:
                connection.execute(COMPLETE, (held.job_id, held.attempt, text))
            except psycopg.Error as error:
                raise _completion_error(error) from error
        return Gone("succeeded")

    # ---- the end

    def leave(self, held: Held) -> None:
        """Let go of what an attempt had."""
        if held.context is not None:
            self._notes.forget(held.key)
        if held.process is not None:
            self._places.processes.give_back(held.process)
            held.process = None

    def succeeded(self, jobs: Sequence[Held]) -> None:
        """Note jobs of which no more is to be said than that they have succeeded."""
        if self._metrics is not None:
            self._metrics.ended(jobs, "succeeded")
        if logger.isEnabledFor(_LEVELS["succeeded"]):
            for held in jobs:
                self._log_end(held, "succeeded")
        self._stop.count(len(jobs))

    def ended(self, held: Held, outcome: str) -> None:
        """Note what came of a job, and do what follows from it."""
        if self._metrics is not None:
            self._metrics.ended([held], outcome)
        self._log_end(held, outcome)
        self._stop.count(1 if held.started_at else 0)
        if isinstance(held.settlement, Released) and held.settlement.reason is not None:
            self.complain(held.kind, *held.settlement.reason)
        if outcome == "dead" and isinstance(held.settlement, Failed):
            self._say_last_words(held, held.settlement)

    def _log_end(self, held: Held, outcome: str) -> None:
        level = _LEVELS.get(outcome, logging.WARNING)
        if not logger.isEnabledFor(level):
            return
        fields = job_fields(held, self._worker)
        fields["status"] = outcome
        if held.started_at:
            fields["duration_ms"] = round((time.monotonic() - held.started_at) * 1000, 1)
        if isinstance(held.settlement, Failed):
            fields["error_code"] = held.settlement.code
            fields["error"] = held.settlement.error
        elif isinstance(held.settlement, Released) and held.settlement.until:
            fields["run_at"] = held.settlement.until
        logger.log(level, "job %s", outcome, extra={"job_fields": fields})

    def called(self, job_id: UUID, kind: str, state: str) -> None:
        """Note what came of a job that is a function of the database."""
        is_run = state != "queued"
        if self._metrics is not None and is_run:
            self._metrics.called(kind, state)
        level = _LEVELS.get(state, logging.INFO)
        fields = {"job_id": job_id, "kind": kind, "worker": self._worker, "status": state}
        logger.log(level, "job %s", state, extra={"job_fields": fields})
        self._stop.count(1 if is_run else 0)

    def complain(self, kind: str, code: str, text: str) -> None:
        """Say what this worker lacks for a job of a kind."""
        self.lacks.met(kind, code, text)
        if self._metrics is not None:
            self._metrics.lacked(code)
        self._complaints.error("this worker cannot do %s: %s (%s)", kind, text, code)

    async def learn(self) -> None:
        """Ask what the registry's fallback cannot do here, to leave it to others, and say so."""
        if self._registry.beyond is None:
            return
        try:
            kinds = await self._registry.beyond()
        except JobqError as error:
            self._complaints.warning("what this worker cannot do is not known: %s", error)
            return
        kinds = {
            kind: reason
            for kind, reason in kinds.items()
            if self._registry.is_fallback(self._registry.get(kind))
        }
        self._unknown.told(kinds)
        self.lacks.told(kinds)
        if self._metrics is not None:
            self._metrics.left = self.lacks.left
        for code, text in self.lacks.texts(is_told=True).items():
            self._complaints.error(f"this worker leaves kinds to others ({code}): %s", text)

    # ---- last words

    def _say_last_words(self, held: Held, failure: Failed) -> None:
        """Call the handler's ``on_dead``, if it has one."""
        handler = self._registry.get(held.kind)
        if handler is None or handler.on_dead is None:
            return
        task = asyncio.create_task(self._call_on_dead(handler.on_dead, held, failure))
        self._last_words.add(task)
        task.add_done_callback(self._last_words.discard)

    async def _call_on_dead(
        self, on_dead: Callable[[JobContext, str, str], Any], held: Held, failure: Failed
    ) -> None:
        try:
            context = held.context or held.make_context(self._notes)
            arguments = (context, failure.code, failure.error)
            if asyncio.iscoroutinefunction(on_dead):
                await on_dead(*arguments)
            else:
                outcome_of(await self._places.threads.run(on_dead, *arguments))
        except BaseException as error:
            logger.error(  # noqa: TRY400 - its text may not be fit to be shown
                "on_dead of kind %s failed: %s", held.kind, error_text(error)
            )

    async def finish(self, seconds: float) -> None:
        """Wait so long at the most for the last words that are being said."""
        if self._last_words:
            await asyncio.wait(self._last_words, timeout=seconds)


_OUTCOMES: Final = (*OUTCOMES, LostError, Suspended)
_WAITING: Final = Returned(Gone("released"))


def outcome_of(did: Returned | Raised) -> object:
    """Return what a call returned, or raise what it raised."""
    if isinstance(did, Raised):
        raise did.error
    return did.value


class _UnfitError(Exception):
    """A result that cannot be stored, on its way out of the transaction that it undoes."""

    def __init__(self, settlement: Settlement) -> None:
        super().__init__(settlement)
        self.settlement = settlement


def _text_of(result: object) -> str | None:
    """Return what a transactional handler returned as JSON text.

    Raises:
        _UnfitError: it has none; the transaction is rolled back.
    """
    settlement = settlement_of(Returned(result))
    if isinstance(settlement, Succeeded):
        return settlement.result.decode() if settlement.result else None
    raise _UnfitError(settlement)


def _completion_error(error: psycopg.Error) -> BaseException:
    """Tell a lost lease from every other error of a completion; either undoes the rows."""
    return LostError() if isinstance(of_database(error), LeaseLost | JobNotFound) else error


def _where(error: BaseException) -> str:
    """Return where a handler failed, for the log."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"the handler raised {type(error).__name__}{place}"
