"""Run due jobs in tests of your handlers, in the test's own transaction.

    def test_sign_up(connection):                      # psycopg, rolled back at the end
        sign_up(connection, "ada@example.org")         # enqueues send_email
        [ran] = run_due(connection, registry)
        assert ran.state == "succeeded"

Nothing is committed and no worker is needed; the rollback removes everything. In a coroutine, use
``await run_due_async(connection, registry)`` with an AsyncConnection.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import secrets
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from time import monotonic
from typing import Any, Final, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from jobq.calls.arguments import as_timedelta, encode
from jobq.calls.call import Call, nothing, scalar
from jobq.client import Client
from jobq.errors import JobNotFound
from jobq.models import ClaimedJob, Job, Json, State, record
from jobq.redaction import error_text
from jobq.registry import Registry
from jobq.registry.context import JobContext, Written
from jobq.registry.handler import Handler
from jobq.registry.outcomes import OUTCOMES, Permanent, Unable
from jobq.registry.settlement import (
    DEFAULT_RULES,
    CancelConfirmed,
    Failed,
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
from jobq_operations.deploy import deploy, single_file

__all__ = ["Ran", "advance", "assert_enqueued", "fresh_database", "run_due", "run_due_async"]

WORKER: Final = "jobq.testing"
C = TypeVar("C", Connection[Any], AsyncConnection[Any])


@dataclass(frozen=True, slots=True)
class Ran:
    """The outcome of one attempt.

    Attributes:
        job_id: the job.
        kind: its kind.
        state: the state of the job after the attempt.
        result: the handler's result, as stored.
        error: the exception that it raised; None if it returned.
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
    """Run every due job, including those that handlers enqueue meanwhile.

    Each handler runs in this thread: a coroutine in its own event loop, a transactional handler
    on this connection (a coroutine gets it as an AsyncConnection). A handler runs in a savepoint,
    so that it leaves no rows if it fails, as in a worker. If a job is dead after its attempt, the
    ``on_dead`` of its handler is called. Jobs of a kind without a handler wait.

    Args:
        connection: the test's; it must be inside a transaction, or begin one.
        registry: the handlers.
        queues: the queues.
        max_jobs: maximum number of attempts, so that jobs that enqueue jobs come to an end.
        reraise: whether to raise exceptions of handlers, unless they are outcomes such as Retry.

    Raises:
        JobqError: the database refused something.
        Exception: of a handler, with ``reraise``.
        RuntimeError: an event loop is running: use `run_due_async`.
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
    """Run every due job, as `run_due` does, in a test that is a coroutine.

    Coroutines run in this event loop, plain functions in a thread. The connection must not be used
    meanwhile. Arguments and errors are those of `run_due`.
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
    """Assert how many live jobs of a kind exist, and return them, oldest first.

    Args:
        connection: the test's.
        kind: their kind.
        payload: what their payload contains: an object may have more members.
        queue: their queue.
        count: the expected number; 0 for none.

    Raises:
        AssertionError: there are more or fewer; the message lists them.
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
    """Let time pass for waiting jobs, in this transaction, and return their number.

    Jobs that are due within that time can run, and jobs that expire are dead. Schedules do not
    change: run one with `Client.run_schedule`.

    Args:
        connection: the test's, of a superuser or the owner of the schema.
        by: the time, as a timedelta or in seconds.

    Raises:
        NotPermitted: the user is neither.
    """
    with _waiting(connection) as own:
        moved: int = Client(own).run(Call("advance_clock", {"by": as_timedelta(by)}, scalar))
    return moved


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """Create a database with jobq installed, yield its URL, and drop it at the end.

    The first one of a release takes a second. The others take a tenth of that: they are copied
    from the template ``jobq_template_…``, which remains.

    Args:
        server: libpq URL of a user who may create databases and roles.

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
    """Create the template, under another name until it is complete; others may do the same."""
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
    """Whether a payload contains what is wanted."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        return all(name in given and _contains(given[name], wanted[name]) for name in wanted)
    return given == wanted


@dataclass(frozen=True, slots=True)
class _Test:
    """The connection and the handlers of a test, and how coroutines are run."""

    connection: Connection[Any]
    registry: Registry
    wait: Callable[[Coroutine[Any, Any, Any]], Any]
    reraise: bool = field(kw_only=True)

    @property
    def client(self) -> Client:
        """A client on the connection."""
        return Client(self.connection)

    def done(self, result: Any) -> Any:  # noqa: ANN401 - whatever it is
        """Return a result, or the result of an awaitable."""

        async def awaited() -> Any:  # noqa: ANN401
            return await result

        return self.wait(awaited()) if inspect.isawaitable(result) else result


@contextmanager
def _sharing(kind: type[C], other: Connection[Any] | AsyncConnection[Any]) -> Iterator[C]:
    """Yield another connection object for the same session; the two must take turns."""
    own = kind(other.pgconn)
    try:
        yield own
    finally:
        del own.pgconn  # the other object closes it


@contextmanager
def _waiting(connection: Connection[Any] | AsyncConnection[Any]) -> Iterator[Connection[Any]]:
    """Yield the connection, or a synchronous one for the same session."""
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
        given = {"queues": queues, "worker": WORKER, "max_jobs": 1, "except_kinds": unknown}
        claimed = test.client.run(Call("claim", given, list, record(ClaimedJob)))
        if not claimed:
            break
        if test.registry.get(claimed[0].kind) is None:
            unknown.append(claimed[0].kind)
        ran.append(_run(test, claimed[0]))
    return ran


def _run(test: _Test, job: ClaimedJob) -> Ran:
    error: BaseException | None = None
    connection, client = test.connection, test.client
    handler = test.registry.get(job.kind)
    context = _context(client, job)
    settlement: Settlement = Released()
    journal = _Journal(connection)
    is_awaited = handler is not None and handler.is_awaited
    steps = context.record_steps(journal.call, is_awaited=is_awaited)
    steps.chunks.waits_for_step = True
    try:
        with connection.transaction():
            try:
                result = _call(test, handler, job, context)
                test.done(steps.chunks.flush())
            except Suspended:
                return Ran(job.job_id, job.kind, client.get(job.job_id).state, None, None)
            settlement = settlement_of(Returned(result))
            if not isinstance(settlement, Succeeded):
                raise SettledError(settlement)  # noqa: TRY301 - rolls back the savepoint
            _settle(client, job, settlement)
    except BaseException as raised:
        is_defect = not isinstance(raised, (*OUTCOMES, SettledError))
        if (test.reraise and is_defect) or isinstance(raised, KeyboardInterrupt):
            raise
        error = None if isinstance(raised, SettledError) else raised
        journal.keep(handler)
        rules = handler.rules if handler is not None else DEFAULT_RULES
        settlement = settlement_of(Raised(raised), rules=rules, attempt=job.attempt)
        _settle(client, job, settlement)
    ended = _ended(connection, job.job_id)
    if ended is None:
        return Ran(job.job_id, job.kind, "succeeded", None, None)
    if ended.state == "dead" and isinstance(settlement, Failed) and handler and handler.on_dead:
        test.done(handler.on_dead(context, settlement.code, settlement.error))
    return Ran(job.job_id, job.kind, ended.state, ended.result, error)


def _ended(connection: Connection[Any], job_id: UUID) -> Job | None:
    """Return a job, or None if it was not kept."""
    try:
        with connection.transaction():
            return Client(connection).get(job_id)
    except JobNotFound:
        return None


def _context(client: Client, job: ClaimedJob) -> JobContext:
    """Return the context of a handler."""
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
        recorder=_Recorder(client),
    )


def _call(test: _Test, handler: Handler | None, job: ClaimedJob, context: JobContext) -> Any:  # noqa: ANN401
    """Return the handler's result, with the registry's hooks around it."""
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
    """Return the result of a handler of batches for a batch of one job."""
    given = handler.batch_arguments([payload], [context])
    if handler.mode == "coroutine":
        returned = await handler.function(*given)
    else:
        returned = await asyncio.to_thread(handler.function, *given)
    [did] = outcomes_of(returned, 1)
    if isinstance(did, Raised):
        raise did.error
    return did.value


def _settle(client: Client, job: ClaimedJob, settlement: Settlement) -> None:
    """Settle an attempt as a worker would."""

    def call(function: str, **given: object) -> None:
        key = {"job_id": job.job_id, "attempt": job.attempt}
        client.run(Call(function, {**key, **given}, nothing))

    if isinstance(settlement, Failed | Released) and settlement.hold is not None:
        hold = settlement.hold
        call("rate_limited", retry_in=hold.duration, reason=hold.reason, release=False)
    match settlement:
        case Succeeded(text):
            call("complete", result=None if text is None else text.decode())
        case Failed(code, error, is_retryable, retry_in, details):
            call(
                "fail",
                error=error,
                error_code=code,
                retryable=is_retryable,
                retry_in=retry_in,
                details=None if details is None else bytes(details).decode(),
            )
        case Released(until):
            run_at = datetime.now(UTC) + until if isinstance(until, timedelta) else until
            call("release", run_at=run_at)
        case CancelConfirmed():
            call("confirm_cancel")


class _Journal:
    """Records steps in the test's transaction, also of failed attempts, as a worker does."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._call = in_transaction(connection)
        self._saved: list[tuple[Any, ...]] = []

    def call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        rows: list[Any] = self._call(statement, parameters)
        if statement == SAVE_STEP:
            self._saved.append(parameters)
        return rows

    def keep(self, handler: Handler | None) -> None:
        """Record the steps again that were rolled back, unless the handler is transactional."""
        if handler is not None and not handler.is_transactional:
            for parameters in self._saved:
                self._call(SAVE_STEP, parameters)


class _Recorder:
    """Writes progress and log lines at once, in the test's transaction."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def progress(self, context: JobContext, value: Json) -> Written:
        return self._write("set_progress", context, progress=encode(value))

    def log(self, context: JobContext, level: str, message: str) -> Written:
        return self._write("log", context, level=level, message=message)

    def spend(self, context: JobContext, cost: float | Decimal) -> Written:
        return self._write("spend", context, cost=Decimal(cost))

    def _write(self, function: str, context: JobContext, **given: object) -> Written:
        key = {"job_id": context.job_id, "attempt": context.attempt}
        self._client.run(Call(function, {**key, **given}, nothing))
        return Written()
