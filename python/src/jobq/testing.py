"""For tests of your own handlers: run what is due, in the test's own transaction.

    def test_sign_up(connection):                      # psycopg, rolled back at the end
        sign_up(connection, "ada@example.org")         # enqueues send_email
        [ran] = run_due(connection, registry)
        assert ran.state == "succeeded"

Nothing is committed and no worker is needed; with the rollback all of it is gone.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from jobq.arguments import encode
from jobq.client import Client
from jobq.context import JobContext, Written
from jobq.models import ClaimedJob, record
from jobq.outcomes import Cancelled, Permanent, RateLimited, Retry, Snooze, Unable
from jobq.redaction import error_text
from jobq.settlement import (
    CancelConfirmed,
    Failed,
    Raised,
    Released,
    Returned,
    Settlement,
    Succeeded,
    Suspended,
    moment_of,
    settlement_of,
)
from jobq.steps import Steps, SyncJournal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from uuid import UUID

    from psycopg import Connection

    from jobq.handler import Handler
    from jobq.models import Json, State
    from jobq.registry import Registry
    from jobq.settlement import Hold
    from jobq.steps import Journal

__all__ = ["Ran", "run_due"]

WORKER: Final = "jobq.testing"


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one attempt.

    Attributes:
        job_id: the job.
        kind: what it does.
        state: what the attempt left the job in.
        result: what the handler returned, as JSON keeps it.
        error: what it raised; None when it returned.
    """

    job_id: UUID
    kind: str
    state: State
    result: Json
    error: BaseException | None


def run_due(
    connection: Connection[Any],
    registry: Registry,
    queues: Sequence[str] = ("default",),
    *,
    max_jobs: int = 100,
    reraise: bool = False,
) -> list[Ran]:
    """Run every job that is due, those that handlers enqueue meanwhile too.

    Each handler runs here and now: a coroutine in an event loop of its own, a
    transactional handler on this connection. A handler that fails leaves no rows, as in a
    worker: it runs in a savepoint. Not for use inside a running event loop.

    Args:
        connection: the test's; it must be inside a transaction, or begin one.
        registry: the handlers.
        queues: where to look.
        max_jobs: after so many attempts it stops, lest jobs breed for ever.
        reraise: raise what a handler raises, unless it is an outcome such as Retry.

    Raises:
        JobqError: the database refused something.
        Exception: what a handler raised, with ``reraise``.
    """
    client = Client(connection)
    ran: list[Ran] = []
    while len(ran) < max_jobs:
        with connection.cursor(row_factory=record(ClaimedJob)) as cursor:
            cursor.execute("select * from jobq.claim(%s, %s, 1)", (list(queues), WORKER))
            job = cursor.fetchone()
        if job is None:
            break
        ran.append(_run(connection, client, registry, job, reraise=reraise))
    return ran


def _run(
    connection: Connection[Any],
    client: Client,
    registry: Registry,
    job: ClaimedJob,
    *,
    reraise: bool,
) -> Ran:
    error: BaseException | None = None
    handler = registry.get(job.kind)
    journal = _Journal(connection)
    try:
        with connection.transaction():
            try:
                result = _call(handler, job, connection, journal)
            except Suspended:
                return Ran(job.job_id, job.kind, client.get(job.job_id).state, None, None)
            settlement = settlement_of(Returned(result))
            _settle_success(connection, job, settlement)
    except _UndoneError:
        journal.keep(handler)
        _settle(connection, job, settlement)
    except BaseException as raised:
        is_outcome = isinstance(
            raised, Retry | Permanent | RateLimited | Snooze | Cancelled | Unable
        )
        if (reraise and not is_outcome) or isinstance(raised, KeyboardInterrupt):
            raise
        error = raised
        journal.keep(handler)
        _settle(connection, job, settlement_of(Raised(raised)))
    ended = client.get(job.job_id)
    return Ran(job.job_id, job.kind, ended.state, ended.result, error)


class _UndoneError(Exception):
    """On the way out of the savepoint of a handler whose result cannot be stored."""


def _call(
    handler: Handler | None, job: ClaimedJob, connection: Connection[Any], journal: Journal
) -> Any:  # noqa: ANN401 - whatever the handler returns
    if handler is None:
        raise Permanent("UNKNOWN_KIND", f"no handler of kind {job.kind}")
    try:
        payload = handler.parse(job.payload)
    except ValueError as error:
        raise Permanent("PAYLOAD_INVALID", error_text(error)) from error
    context = JobContext(
        job_id=job.job_id,
        attempt=job.attempt,
        kind=job.kind,
        queue=job.queue,
        metadata=job.metadata,
        max_attempts=job.max_attempts,
        idempotency_key=job.idempotency_key,
        run_at=job.run_at,
        created_at=job.created_at,
        delivery_version=job.delivery_version,
        payload_text=encode(job.payload),
        deadline=monotonic() + job.timeout.total_seconds(),
        recorder=_Recorder(connection),
        steps=Steps(journal, job.job_id, job.attempt, is_awaited=handler.mode == "coroutine"),
    )
    result = handler.function(*handler.arguments(payload, context, connection))
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Awaitable[Any]) -> Any:  # noqa: ANN401 - whatever it is
    return await result


def _settle_success(connection: Connection[Any], job: ClaimedJob, settlement: Settlement) -> None:
    """Settle an attempt within its handler's savepoint.

    Raises:
        _UndoneError: it is no success, and its rows must go.
    """
    if not isinstance(settlement, Succeeded):
        raise _UndoneError
    _settle(connection, job, settlement)


def _settle(connection: Connection[Any], job: ClaimedJob, settlement: Settlement) -> None:
    """Settle an attempt as a worker would."""
    key = job.job_id, job.attempt
    match settlement:
        case Succeeded(text):
            result = None if text is None else text.decode()
            connection.execute("select jobq.complete(%s, %s, %s)", (*key, result))
        case Failed(code, error, is_retryable, retry_in, details, hold):
            _hold(connection, key, hold)
            more = None if details is None else bytes(details).decode()
            connection.execute(
                "select jobq.fail(%s, %s, %s, %s, %s, %s, %s)",
                (*key, error, code, is_retryable, retry_in, more),
            )
        case Released(until, _, hold):
            _hold(connection, key, hold)
            moment = None if until is None else moment_of(until, datetime.now(UTC))
            connection.execute("select jobq.release(%s, %s, %s)", (*key, moment))
        case CancelConfirmed():
            connection.execute("select jobq.confirm_cancel(%s, %s)", key)


def _hold(connection: Connection[Any], key: tuple[UUID, int], hold: Hold | None) -> None:
    if hold is not None:
        connection.execute(
            "select jobq.hold_lane(%s, %s, %s, %s)", (*key, hold.duration, hold.reason)
        )


class _Journal(SyncJournal):
    """Records steps in the test's transaction, beyond a failure where a worker would."""

    def __init__(self, connection: Connection[Any]) -> None:
        super().__init__(connection)
        self._saved: list[tuple[UUID, int, str, str]] = []

    def save(self, job_id: UUID, attempt: int, name: str, value: str) -> Json:
        self._saved.append((job_id, attempt, name, value))
        return super().save(job_id, attempt, name, value)

    def keep(self, handler: Handler | None) -> None:
        """Record again what the savepoint's end undid, unless it belongs to those rows."""
        if handler is not None and not handler.is_transactional:
            for step in self._saved:
                super().save(*step)


class _Recorder:
    """Writes progress and log lines at once, in the test's transaction."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def progress(self, context: JobContext, value: Json) -> Written:
        self._connection.execute(
            "select jobq.set_progress(%s, %s, %s)",
            (context.job_id, context.attempt, encode(value)),
        )
        return Written()

    def log(self, context: JobContext, level: str, message: str) -> Written:
        self._connection.execute(
            "select jobq.log(%s, %s, %s, %s)",
            (context.job_id, context.attempt, level, message),
        )
        return Written()
