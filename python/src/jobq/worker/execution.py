"""Running one job: from its payload to how it is to be settled."""

from __future__ import annotations

import asyncio
import functools
import logging
import traceback
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
import psycopg

from jobq.arguments import plain
from jobq.errors import DatabaseUnavailable, JobNotFound, JobqError, LeaseLost, of_database
from jobq.outcomes import Cancelled, Permanent, Retry, Snooze
from jobq.redaction import error_text
from jobq.worker.held import CancelConfirmed, Failed, Gone, Released, Settlement, Succeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from psycopg import Connection

    from jobq.handler import Handler
    from jobq.registry import Registry
    from jobq.worker.held import Held
    from jobq.worker.notes import Notes
    from jobq.worker.places import Places

__all__ = ["Execution"]

logger = logging.getLogger("jobq.worker")

MAX_RESULT: Final = 1048576
NO_RESULT: Final = Succeeded(None)
COMPLETE: Final = "select jobq.complete(%s, %s, %s)"


class Execution:
    """Runs handlers.

    Args:
        registry: the handlers.
        places: where they run.
        notes: where they write to.
    """

    def __init__(self, registry: Registry, places: Places, notes: Notes) -> None:
        self._registry = registry
        self._places = places
        self._notes = notes

    async def run(self, held: Held) -> Settlement:
        """Run the handler of a job and return how the job is to be settled.

        Raises:
            asyncio.CancelledError: the task was cancelled, because of a timeout, a lost
                lease or a shutdown; whoever did it settles the job.
        """
        handler = self._registry.get(held.kind)
        if handler is None:
            return Failed("UNKNOWN_KIND", f"no handler of kind {held.kind}", is_retryable=False)
        try:
            payload = handler.parse(msgspec.json.decode(held.payload))
        except ValueError as error:
            return Failed("PAYLOAD_INVALID", error_text(error), is_retryable=False)
        try:
            return await self._settlement(handler, held, payload)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            return self._of_error(held, error)

    def has_died(self, held: Held, failure: Failed) -> asyncio.Future[Any] | None:
        """Call the handler's ``on_dead``, if it has one; return what can be waited for."""
        handler = self._registry.get(held.kind)
        if handler is None or handler.on_dead is None:
            return None
        context = held.context or held.make_context(self._notes)
        return asyncio.ensure_future(self._call_on_dead(handler.on_dead, context, failure))

    async def _call_on_dead(
        self,
        on_dead: Callable[..., Any],
        context: Any,  # noqa: ANN401 - a JobContext
        failure: Failed,
    ) -> None:
        arguments = (context, failure.code, failure.error)
        try:
            if asyncio.iscoroutinefunction(on_dead):
                await on_dead(*arguments)
            else:
                await self._places.in_thread(on_dead, *arguments)
        except Exception:
            logger.exception("on_dead of kind %s failed", context.kind)

    async def _settlement(self, handler: Handler, held: Held, payload: object) -> Settlement:
        if handler.is_transactional:
            return await self._in_transaction(handler, held, payload)
        context = held.make_context(self._notes) if handler.extras else None
        arguments = handler.arguments(payload, context, None)
        if handler.mode == "coroutine":
            held.is_interruptible = True
            result = await handler.function(*arguments)
        elif handler.mode == "thread":
            result = await self._places.in_thread(handler.function, *arguments)
        else:
            result = await self._places.in_process(handler.function, *arguments)
        if not self._notes.is_empty:
            await self._notes.flush()
        return NO_RESULT if result is None else Succeeded(_result(result))

    async def _in_transaction(self, handler: Handler, held: Held, payload: object) -> Settlement:
        """Run a handler whose transaction also completes the job, or does nothing at all."""
        context = held.make_context(self._notes)
        if handler.mode == "thread":
            call = functools.partial(self._in_thread_transaction, handler, held, payload)
            await self._places.in_thread(call)
        else:
            held.is_interruptible = True
            pool = await self._places.connections()
            async with pool.connection() as connection:
                arguments = handler.arguments(payload, context, connection)
                result = await handler.function(*arguments)
                text = None if result is None else _result(result).decode()
                await self._notes.flush()
                with refusing():
                    await connection.execute(COMPLETE, (held.job_id, held.attempt, text))
        return Gone("succeeded")

    def _in_thread_transaction(self, handler: Handler, held: Held, payload: object) -> None:
        connection: Connection[Any]
        with self._places.thread_connections().connection() as connection:
            result = handler.function(*handler.arguments(payload, held.context, connection))
            text = None if result is None else _result(result).decode()
            with refusing():
                connection.execute(COMPLETE, (held.job_id, held.attempt, text))

    def _of_error(self, held: Held, error: BaseException) -> Settlement:  # noqa: PLR0911 - a table
        """Return what an exception of a handler means."""
        match error:
            case Retry():
                return Failed(
                    error.code, error_text(error.message), True, error.in_, _details(error.details)
                )
            case Permanent():
                return Failed(
                    error.code, error_text(error.message), False, None, _details(error.details)
                )
            case Snooze():
                return Released(_moment(error.until))
            case Cancelled() if held.is_cancel_requested:
                return CancelConfirmed()
            case Cancelled():
                return Failed("CANCELLED", "the handler cancelled itself", is_retryable=False)
            case ResultError():
                return Failed("RESULT_INVALID", error_text(str(error)), is_retryable=False)
            case BrokenProcessPool():
                return Failed("PROCESS_DIED", error_text(error))
            case LostError():
                return Gone("lost")
            case JobqError() if not isinstance(error, DatabaseUnavailable):
                return Failed(error.code, error_text(error))
            case _:
                logger.info("%s", _where(error))
                return Failed("ERROR", error_text(error))


class LostError(Exception):
    """The job was no longer this attempt's to complete."""


@contextmanager
def refusing() -> Iterator[None]:
    """Tell a lost lease from every other error of a completion.

    Raises:
        LostError: which rolls the handler's transaction back.
    """
    try:
        yield
    except psycopg.Error as error:
        if isinstance(of_database(error), LeaseLost | JobNotFound):
            raise LostError from error
        raise


class ResultError(ValueError):
    """What a handler returned cannot be stored."""


def _result(value: object) -> bytes:
    """Return a result as JSON text.

    Raises:
        ResultError: it is not JSON, or the database could not store it.
    """
    try:
        text = msgspec.json.encode(value, enc_hook=plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(f"the handler's result is not JSON: {error}") from error
    if len(text) > MAX_RESULT:
        raise ResultError(f"the handler's result has {len(text)} bytes, at most {MAX_RESULT}")
    if b"\\u0000" in text:
        raise ResultError("the handler's result contains a NUL character")
    return text


def _details(given: Mapping[str, Any] | None) -> msgspec.Raw | None:
    """Return what an outcome says besides as JSON text; what cannot be stored is left out."""
    if given is None:
        return None
    try:
        return msgspec.Raw(_result(dict(given)))
    except (ResultError, TypeError, ValueError) as error:
        logger.warning("the details of a failure are left out: %s", error)
        return None


def _moment(until: datetime | timedelta) -> datetime:
    return datetime.now(UTC) + until if isinstance(until, timedelta) else until


def _where(error: BaseException) -> str:
    """Return where a handler failed, for the log."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"the handler raised {type(error).__name__}{place}"
