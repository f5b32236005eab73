"""For tests of your own handlers: run what is due, in the test's own transaction.

    def test_sign_up(connection):                      # psycopg, rolled back at the end
        sign_up(connection, "ada@example.org")         # enqueues send_email
        [ran] = run_due(connection, registry)
        assert ran.state == "succeeded"

Nothing is committed and no worker is needed; with the rollback all of it is gone. In a
coroutine it is ``await run_due_async(connection, registry)``, with an AsyncConnection.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from jobq.calls.arguments import as_timedelta, encode
from jobq.calls.call import Call, scalar
from jobq.client import Client
from jobq.errors import JobNotFound
from jobq.models import ClaimedJob, record
from jobq.redaction import error_text
from jobq.registry.context import JobContext, Written
from jobq.registry.outcomes import OUTCOMES, Permanent, Unable
from jobq.registry.settlement import (
    DEFAULT_RULES,
    CancelConfirmed,
    Failed,
    Raised,
    Released,
    Returned,
    Settlement,
    Succeeded,
    Suspended,
    moment_of,
    outcomes_of,
    settlement_of,
)
from jobq.registry.steps import SAVE_STEP, Steps, in_transaction
from jobq_operations.deploy import deploy, single_file

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from datetime import timedelta
    from decimal import Decimal
    from uuid import UUID

    from jobq.models import Job, Json, State
    from jobq.registry import Registry
    from jobq.registry.handler import Handler
    from jobq.registry.settlement import Hold

__all__ = ["Ran", "advance", "assert_enqueued", "fresh_database", "run_due", "run_due_async"]

WORKER: Final = "jobq.testing"
C = TypeVar("C", Connection[Any], AsyncConnection[Any])


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
    transactional handler on this connection (a coroutine gets it as an AsyncConnection).
    A handler that fails leaves no rows, as in a worker: it runs in a savepoint. A job that
    dies of its attempt has its handler's ``on_dead`` called, and jobs of a kind without a
    handler wait.

    Args:
        connection: the test's; it must be inside a transaction, or begin one.
        registry: the handlers.
        queues: where to look.
        max_jobs: after so many attempts it stops, even if jobs make jobs for ever.
        reraise: raise what a handler raises, unless it is an outcome such as Retry.

    Raises:
        JobqError: the database refused something.
        Exception: what a handler raised, with ``reraise``.
        RuntimeError: this is inside a running event loop: `run_due_async` is for that.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_due(_Test(connection, registry, asyncio.run, reraise=reraise), queues, max_jobs)
    raise RuntimeError("inside an event loop: await run_due_async(...) instead of run_due(...)")


async def run_due_async(
    connection: AsyncConnection[Any],
    registry: Registry,
    queues: Sequence[str] = ("default",),
    *,
    max_jobs: int = 100,
    reraise: bool = False,
) -> list[Ran]:
    """Run every job that is due, as `run_due` does, for a test that is a coroutine.

    Coroutines run in this event loop, plain functions in a thread. Nobody else may use the
    connection meanwhile.

    Args:
        connection: the test's.
        registry: the handlers.
        queues: where to look.
        max_jobs: after so many attempts it stops.
        reraise: raise what a handler raises, unless it is an outcome such as Retry.

    Raises:
        JobqError: the database refused something.
        Exception: what a handler raised, with ``reraise``.
    """
    loop = asyncio.get_running_loop()

    def wait(awaited: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - whatever it returns
        return asyncio.run_coroutine_threadsafe(awaited, loop).result()

    with _sharing(Connection, connection) as own:
        test = _Test(own, registry, wait, reraise=reraise)
        return await asyncio.to_thread(_run_due, test, queues, max_jobs)


def assert_enqueued(
    connection: Connection[Any] | AsyncConnection[Any],
    kind: str,
    payload: Json = None,
    *,
    queue: str | None = None,
    count: int = 1,
) -> list[Job]:
    """Assert that so many jobs of a kind wait or run; return them, the oldest first.

    Args:
        connection: the test's.
        kind: of the jobs.
        payload: what theirs contains: an object has these members, and may have more.
        queue: of the jobs.
        count: how many; 0 for none.

    Raises:
        AssertionError: there are more, or fewer; it says what there is.
    """
    with _waiting(connection) as own:
        found = Client(own).list_jobs(kind=kind, queue=queue, max_jobs=1000)
    jobs = [job for job in reversed(found) if not job.is_finished]
    fitting = [job for job in jobs if payload is None or _contains(job.payload, payload)]
    if len(fitting) != count:
        there = "".join(f"\n  {job.queue} {job.state} {job.payload}" for job in jobs) or " none"
        raise AssertionError(
            f"expected {count} jobs of kind {kind} with {payload}, found {len(fitting)};"
            f" of this kind there are:{there}"
        )
    return fitting


def advance(connection: Connection[Any] | AsyncConnection[Any], by: timedelta | float) -> int:
    """Let time pass for the jobs that wait, in this transaction; return how many they are.

    What is due within that time can run, and what expires within it is dead. Schedules
    stay as they are: `Client.run_schedule` runs one.

    Args:
        connection: the test's, of a superuser or the owner of the schema.
        by: how much time, as a timedelta or in seconds.

    Raises:
        NotPermitted: the connection's user is neither.
    """
    with _waiting(connection) as own:
        moved: int = Client(own).run(Call("advance_clock", {"by": as_timedelta(by)}, scalar))
    return moved


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Make a database with jobq in it, give its URL, and drop it in the end.

    The first one of a release takes a second, each one after it a tenth of that: it is
    copied from a template, ``jobq_template_…``, which stays.

    Args:
        server: a libpq URL of a user who may create databases and roles.

    Raises:
        DeployError: the schema cannot be installed.
    """
    text = single_file()
    template = "jobq_template_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    name = "jobq_test_" + secrets.token_hex(8)
    copy = _named("create database {} template {}", name, template)
    with psycopg.connect(server, autocommit=True) as admin:
        try:
            admin.execute(copy)
        except psycopg.errors.InvalidCatalogName:  # there is no template yet
            _make_template(admin, server, template)
            admin.execute(copy)
        try:
            yield make_conninfo(server, dbname=name)
        finally:
            admin.execute(_named("drop database {} with (force)", name))


def _make_template(admin: Connection[Any], server: str, template: str) -> None:
    """Make the template, under another name until it is whole; others may do so meanwhile."""
    building = f"{template}_{secrets.token_hex(4)}"
    admin.execute(_named("create database {} template template0", building))
    try:
        deploy(make_conninfo(server, dbname=building))
        admin.execute(_named("alter database {} rename to {}", building, template))
    except BaseException as error:
        admin.execute(_named("drop database {} with (force)", building))
        if not isinstance(error, psycopg.errors.DuplicateDatabase):
            raise


def _named(statement: LiteralString, *names: str) -> sql.Composed:
    return sql.SQL(statement).format(*map(sql.Identifier, names))


def _contains(given: object, wanted: object) -> bool:
    """Whether a payload has what is wanted of it."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return all(name in given and _contains(given[name], wanted[name]) for name in wanted)
    return given == wanted


@dataclass(frozen=True, slots=True)
class _Test:
    """Where jobs run, and how what is awaited is waited for."""

    connection: Connection[Any]
    registry: Registry
    wait: Callable[[Coroutine[Any, Any, Any]], Any]
    reraise: bool = field(kw_only=True)

    def done(self, result: Any) -> Any:  # noqa: ANN401 - whatever it is
        """Return what a function returned, or what it awaits."""

        async def awaited() -> Any:  # noqa: ANN401
            return await result

        return self.wait(awaited()) if inspect.isawaitable(result) else result


@contextmanager
def _sharing(kind: type[C], other: Connection[Any] | AsyncConnection[Any]) -> Iterator[C]:
    """Give another connection object for the same session; the two must take turns."""
    own = kind(other.pgconn)
    try:
        yield own
    finally:
        del own.pgconn  # which stays the other's to close


@contextmanager
def _waiting(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[Connection[Any]]:
    """Give the connection, or one for the same session that need not be awaited."""
    if isinstance(connection, Connection):
        yield connection
        return
    with _sharing(Connection, connection) as own:
        if connection.autocommit and own.info.transaction_status == TransactionStatus.IDLE:
            own.autocommit = True
        yield own


def _run_due(test: _Test, queues: Sequence[str], max_jobs: int) -> list[Ran]:
    ran: list[Ran] = []
    unknown: list[str] = []
    while len(ran) < max_jobs:
        with test.connection.cursor(row_factory=record(ClaimedJob)) as cursor:
            cursor.execute(
                "select * from jobq.claim(%s, %s, 1, except_kinds => %s)",
                (list(queues), WORKER, unknown),
            )
            job = cursor.fetchone()
        if job is None:
            break
        if test.registry.get(job.kind) is None:
            unknown.append(job.kind)
        ran.append(_run(test, job))
    return ran


def _run(test: _Test, job: ClaimedJob) -> Ran:
    error: BaseException | None = None
    connection = test.connection
    client = Client(connection)
    handler = test.registry.get(job.kind)
    context = _context(connection, job)
    settlement: Settlement = Released()
    journal = _Journal(connection)
    context.steps = Steps(
        journal.call, job.job_id, job.attempt, is_awaited=handler is not None and handler.is_awaited
    )
    try:
        with connection.transaction():
            try:
                result = _call(test, handler, job, context)
            except Suspended:
                return Ran(job.job_id, job.kind, client.get(job.job_id).state, None, None)
            settlement = settlement_of(Returned(result))
            _settle_success(connection, job, settlement)
    except _UndoneError:
        journal.keep(handler)
        _settle(connection, job, settlement)
    except BaseException as raised:
        is_defect = not isinstance(raised, OUTCOMES)
        if (test.reraise and is_defect) or isinstance(raised, KeyboardInterrupt):
            raise
        error = raised
        journal.keep(handler)
        rules = handler.rules if handler is not None else DEFAULT_RULES
        settlement = settlement_of(Raised(raised), rules=rules, attempt=job.attempt)
        _settle(connection, job, settlement)
    ended = _ended(connection, job.job_id)
    if ended is None:
        return Ran(job.job_id, job.kind, "succeeded", None, None)
    if ended.state == "dead" and isinstance(settlement, Failed) and handler and handler.on_dead:
        test.done(handler.on_dead(context, settlement.code, settlement.error))
    return Ran(job.job_id, job.kind, ended.state, ended.result, error)


class _UndoneError(Exception):
    """On the way out of the savepoint of a handler whose result cannot be stored."""


def _ended(connection: Connection[Any], job_id: UUID) -> Job | None:
    """Return a job, or None where it has left no trace."""
    try:
        with connection.transaction():
            return Client(connection).get(job_id)
    except JobNotFound:
        return None


def _context(connection: Connection[Any], job: ClaimedJob) -> JobContext:
    """Return what a handler sees of its job."""
    return JobContext(
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
    )


def _call(test: _Test, handler: Handler | None, job: ClaimedJob, context: JobContext) -> Any:  # noqa: ANN401
    """Return what the handler returns, with the registry's hooks around it."""
    if handler is None:
        raise Unable("UNKNOWN_KIND", f"no handler of kind {job.kind}", in_=0)
    try:
        payload = handler.parse(job.payload)
    except ValueError as error:
        raise Permanent("PAYLOAD_INVALID", error_text(error)) from error
    hooks = test.registry.hooks
    with ExitStack() as stack:
        connection: Connection[Any] | AsyncConnection[Any] = test.connection
        if handler.is_transactional and handler.is_awaited:
            connection = stack.enter_context(_sharing(AsyncConnection, connection))
        if handler.batch:
            join = partial(_join, handler)
            return test.wait(hooks.around(join, context)(payload, context))
        if handler.is_awaited:
            call = hooks.around(handler.function, context)
        else:
            call = hooks.around(handler.function, context, test.done)
        return test.done(call(*handler.arguments(payload, context, connection)))


async def _join(handler: Handler, payload: object, context: JobContext) -> object:
    """Return what a handler of batches comes to for a batch of one job."""
    given = ([payload], [context])[: 1 + bool(handler.extras)]
    if handler.mode == "coroutine":
        returned = await handler.function(*given)
    else:
        returned = await asyncio.to_thread(handler.function, *given)
    [did] = outcomes_of(returned, 1)
    if isinstance(did, Raised):
        raise did.error
    return did.value


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


class _Journal:
    """Records steps in the test's transaction, beyond a failure where a worker would."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._call = in_transaction(connection)
        self._saved: list[tuple[Any, ...]] = []

    def call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        rows: list[Any] = self._call(statement, parameters)
        if statement == SAVE_STEP:
            self._saved.append(parameters)
        return rows

    def keep(self, handler: Handler | None) -> None:
        """Record again what the savepoint's end undid, unless it belongs to those rows."""
        if handler is not None and not handler.is_transactional:
            for parameters in self._saved:
                self._call(SAVE_STEP, parameters)


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

    def spend(self, context: JobContext, cost: float | Decimal) -> Written:
        self._connection.execute(
            "select jobq.spend(%s, %s, %s::numeric)", (context.job_id, context.attempt, cost)
        )
        return Written()
