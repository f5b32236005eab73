"""The client: each method is one call of one function of the database.

`Client` waits, `AsyncClient` awaits; `jobq.jobs`, `jobq.queues` and their like describe the
calls that both make.
A client made of a URL has a pool of its own, and each call is a transaction of its own.
A client made of a connection works in that connection's transaction and never ends it:

    with psycopg.connect(url) as connection:
        connection.execute("insert into ...")
        Client(connection).enqueue("send_email", {"to": "ada@example.org"})
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import time
from contextlib import (
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from functools import cache, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, get_args

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from jobq import (
    defaults,
    definitions,
    events,
    function_jobs,
    grants,
    jobs,
    kinds,
    limits,
    queues,
    schedules,
    steering,
    workflows,
)
from jobq.arguments import as_names
from jobq.call import reading_json, statement
from jobq.database import (
    AsyncPool,
    Pool,
    confirmed,
    conninfo,
    renewed,
    use_json,
    use_json_async,
)
from jobq.declarations import Declarations
from jobq.endings import Ending, Endings
from jobq.errors import (
    DatabaseUnavailable,
    InvalidArgument,
    JobCancelled,
    JobFailed,
    JobqError,
    translate,
)
from jobq.events import AsyncBell, Bell
from jobq.json_schemas import JsonSchemas

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Awaitable,
        Callable,
        Generator,
        Iterable,
        Iterator,
        Sequence,
    )
    from contextlib import AbstractContextManager
    from datetime import datetime
    from uuid import UUID

    from jobq.call import Call
    from jobq.events import Event, EventPage
    from jobq.models import Job, Json
    from jobq.registry import Registry

__all__ = ["AsyncClient", "Client"]

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", bound="Callable[..., Any]")

POOL_SIZE: Final = 8
PATIENCE: Final = 10.0
FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
EVENTS: Final = 1000


def _waiting(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    """Make a method of Client from a function that describes a call."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(make(*args, **kwargs))

    return _dressed(method, make)


def _awaiting(
    make: Callable[P, Call[T]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """Make a method of AsyncClient from a function that describes a call."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(make(*args, **kwargs))

    return _dressed(method, make)


def _dressed(method: M, make: Callable[..., Call[Any]]) -> M:
    """Give a method the name, the documentation and the signature that help() shows."""
    update_wrapper(method, make)
    signature = _signature(make)
    (answer,) = get_args(signature.return_annotation)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    vars(method)["__signature__"] = signature.replace(
        parameters=[own, *signature.parameters.values()], return_annotation=answer
    )
    return method


@cache
def _signature(make: Callable[..., Call[Any]]) -> inspect.Signature:
    """Return the signature of a function that describes a call, its annotations as types."""
    return inspect.signature(make, eval_str=True)


class Client:
    """A client that waits for each answer. Safe for threads when made of a URL.

    Args:
        database: a libpq URL, for a pool of its own; or a connection of the caller's, whose
            transaction every call joins and which stays the caller's to end.
        pool_size: at most so many connections, opened when they are needed.
        patience: seconds to wait for a connection of the pool.
        listen_database: a libpq URL that leads to the server directly, not to a pooler in
            transaction mode; `result` listens there, on one more connection for as long as
            it waits. None polls.
        is_pooled: whether ``database`` leads to such a pooler; implied by
            ``listen_database``. A pooler takes no settings, and knows no prepared statements.
        read_database: a libpq URL of a standby, which answers `list_jobs`, `queue_stats`,
            `list_schedules` and `list_definitions`, as of `replica_lag` ago.
        registry: handlers, the kinds of which are declared before the first job that is
            enqueued; see `declare`.

    Raises:
        JobqError: every method, as the function of its name in ``jobq.jobs`` and its like
            says; DatabaseUnavailable when there is no answer.
    """

    def __init__(
        self,
        database: str | Connection[Any],
        *,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        listen_database: str | None = None,
        is_pooled: bool = False,
        read_database: str | None = None,
        registry: Registry | None = None,
    ) -> None:
        is_pooled = is_pooled or listen_database is not None

        def pool(url: str) -> Pool:
            return Pool(
                conninfo(url, "jobq client", is_pooled=is_pooled),
                **_pool(pool_size, patience, is_pooled=is_pooled),
                configure=use_json,
            )

        self._home = pool(database) if isinstance(database, str) else database
        self._standby = self._home if read_database is None else pool(read_database)
        self._listen_database = listen_database
        self._schemas = JsonSchemas()
        self._declarations = Declarations(registry)
        self._declaring = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client's own connections; the caller's are left alone."""
        for home in {self._home, self._standby}:
            if isinstance(home, Pool):
                home.close()

    @property
    def conninfo(self) -> str | None:
        """How this client connects; None where it has the caller's connection."""
        return str(self._home.conninfo) if isinstance(self._home, Pool) else None

    def run(self, call: Call[T]) -> T:
        """Make a call and return what it answers."""
        given = call.given
        if call.inputs:
            if self._declarations.are_due:
                self.declare()
            self._check(call.inputs)
        text = statement(call.function, tuple(given), call.from_now)
        with (
            translate(given.values()),
            self._connected(call) as connection,
            confirmed(connection),
            reading_json(connection.cursor(row_factory=call.row_factory)) as cursor,
        ):
            return call.read(cursor.execute(text, given).fetchall())

    def declare(self) -> None:
        """Declare the kinds of the registry, of which nobody has, or only an older version.

        It is done before the first job that is enqueued; call it to have it done at the start.
        What cannot be declared, since the log-in may not or the caller's transaction is open,
        is a warning in the log ``jobq.client``, and jobs go by what is declared so far.

        Raises:
            DatabaseUnavailable: there is no answer.
        """
        with self._declaring:
            steps = self._declarations.steps(in_transaction=_is_open(self._home))
            answer: Any = None
            with closing(steps), suppress(StopIteration):
                while True:
                    call = steps.send(answer)
                    try:
                        answer = self.run(call)
                    except DatabaseUnavailable:
                        raise
                    except JobqError as error:
                        answer = error

    def _check(self, inputs: Sequence[tuple[str, Json]]) -> None:
        """Refuse payloads that do not fit the schemas that only clients can enforce."""
        unknown = self._schemas.unknown(kind for kind, _ in inputs)
        if unknown:
            found = self.run(kinds.list_payload_schemas(unknown))
            self._schemas.learn(unknown, found)
        self._schemas.check(inputs)

    @contextmanager
    def _connected(self, call: Call[Any]) -> Iterator[Connection[Any]]:
        home = self._standby if call.may_lag else self._home
        if not isinstance(home, Pool):
            yield home
            return
        home.open()
        with home.connection() as connection, renewed(connection):
            yield connection

    enqueue = _waiting(jobs.enqueue)
    enqueue_many = _waiting(jobs.enqueue_many)
    get = _waiting(jobs.get)
    find = _waiting(jobs.find)
    list_jobs = _waiting(jobs.list_jobs)
    attempts = _waiting(jobs.attempts)
    logs = _waiting(jobs.logs)
    page_events = _waiting(events.page_events)
    explain = _waiting(jobs.explain)
    emit = _waiting(workflows.emit)
    signal = _waiting(workflows.signal)
    list_steps = _waiting(workflows.list_steps)
    list_inputs = _waiting(workflows.list_inputs)
    open_batch = _waiting(workflows.open_batch)
    seal_batch = _waiting(workflows.seal_batch)
    cancel_batch = _waiting(workflows.cancel_batch)
    batch = _waiting(workflows.batch)
    enqueue_graph = _waiting(workflows.enqueue_graph)
    graph = _waiting(workflows.graph)
    cancel_tree = _waiting(workflows.cancel_tree)
    redrive_tree = _waiting(workflows.redrive_tree)
    queue_stats = _waiting(queues.queue_stats)
    replica_lag = _waiting(queues.replica_lag)
    settings = _waiting(defaults.settings)
    cancel = _waiting(jobs.cancel)
    redrive = _waiting(jobs.redrive)
    redrive_many = _waiting(jobs.redrive_many)
    change_many = _waiting(steering.change_many)
    cancel_many = _waiting(steering.cancel_many)
    delete_many = _waiting(steering.delete_many)
    work = _waiting(function_jobs.work)
    pause = _waiting(queues.pause)
    resume = _waiting(queues.resume)
    put_kind = _waiting(kinds.put_kind)
    list_kinds = _waiting(kinds.list_kinds)
    delete_kind = _waiting(kinds.delete_kind)
    put_queue = _waiting(queues.put_queue)
    list_queues = _waiting(queues.list_queues)
    list_workers = _waiting(queues.list_workers)
    put_limit = _waiting(limits.put_limit)
    list_limits = _waiting(limits.list_limits)
    hold_key = _waiting(limits.hold_key)
    release_key = _waiting(limits.release_key)
    delete_limit = _waiting(limits.delete_limit)
    configure = _waiting(defaults.configure)
    grant_queue = _waiting(grants.grant_queue)
    revoke_queue = _waiting(grants.revoke_queue)
    enforce_queue_grants = _waiting(grants.enforce_queue_grants)
    list_queue_grants = _waiting(grants.list_queue_grants)
    create_schedule = _waiting(schedules.create_schedule)
    update_schedule = _waiting(schedules.update_schedule)
    pause_schedule = _waiting(schedules.pause_schedule)
    resume_schedule = _waiting(schedules.resume_schedule)
    run_schedule = _waiting(schedules.run_schedule)
    backfill_schedule = _waiting(schedules.backfill_schedule)
    retire_schedule = _waiting(schedules.retire_schedule)
    get_schedule = _waiting(schedules.get_schedule)
    list_schedules = _waiting(schedules.list_schedules)
    schedule_versions = _waiting(schedules.schedule_versions)
    schedule_status = _waiting(schedules.schedule_status)
    preview_schedule = _waiting(schedules.preview_schedule)
    preview_cron = _waiting(schedules.preview_cron)
    put_payload_spec = _waiting(definitions.put_payload_spec)
    put_config = _waiting(definitions.put_config)
    put_secret = _waiting(definitions.put_secret)
    put_endpoint = _waiting(definitions.put_endpoint)
    pause_endpoint = _waiting(definitions.pause_endpoint)
    resume_endpoint = _waiting(definitions.resume_endpoint)
    test_endpoint = _waiting(definitions.test_endpoint)
    endpoint_stats = _waiting(definitions.endpoint_stats)
    delete_definition = _waiting(definitions.delete_definition)
    get_definition = _waiting(definitions.get_definition)
    list_definitions = _waiting(definitions.list_definitions)
    list_versions = _waiting(definitions.list_versions)

    def result(self, job_id: UUID | str, timeout: float | None = None) -> Json:
        """Wait until a job has ended and return its result.

        It looks every 5 ms at first and every 250 ms in the end; with ``listen_database``
        when the job has ended, and every 250 ms in case that this was missed.

        Args:
            job_id: the job; its transaction must have been committed.
            timeout: seconds; None waits for ever.

        Raises:
            JobFailed: the job is dead.
            JobCancelled: it was cancelled.
            JobNotFound: there is no such job.
            TimeoutError: it has not ended in time.
        """
        job = self.get(job_id)
        with self._told_of(job) as wait:
            for pause in _pauses(timeout, self._listen_database is not None):
                if job.is_finished:
                    break
                wait(pause)
                job = self.get(job_id)
        return _result_of(job)

    def call(
        self,
        kind: str,
        payload: Json = None,
        timeout: float | None = None,
        **options: Any,  # noqa: ANN401 - as `enqueue` has them
    ) -> Json:
        """Enqueue a job, wait until it has ended and return its result.

        Args:
            kind: what is to be done.
            payload: as `enqueue` has it.
            timeout: seconds to wait; None waits for ever. The job goes on after them.
            options: the others of `enqueue`.

        Raises:
            InvalidArgument: a transaction is open, and no worker would see the job; or the timeout
                is no number.
            JobqError: as `enqueue` and `result`.
            TimeoutError: it has not ended in time.
        """
        _refuse_open(self._home)
        _check_wait(timeout)
        return self.result(self.enqueue(kind, payload, **options).job_id, timeout)

    def listen_events(
        self,
        after: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        follow: bool = True,
    ) -> Generator[Event, None, None]:
        """Yield each job that ends, once and in their order.

        It begins with the call. With ``listen_database`` it sleeps until a job ends, on one
        more connection; else it looks every half a second at least. Keep the cursor of the last
        event that was dealt with, and begin there again.

        Args:
            after: the cursor of an event, or of a page; None begins at ``since``.
            queues: only jobs of these queues.
            kinds: only jobs of these kinds.
            since: without ``after``: what ended at or after this moment; None is now.
            follow: whether to wait for more; False ends when all has been told.

        Raises:
            InvalidArgument: as `page_events`; or a transaction is open, and ``follow``.
        """
        if follow:
            _refuse_open(self._home)
        chosen: dict[str, Any] = {
            "queues": as_names(queues),
            "kinds": as_names(kinds),
            "max_events": EVENTS,
        }
        return self._events(self.page_events(after, since=since, **chosen), chosen, follow=follow)

    def _events(
        self, page: EventPage, chosen: dict[str, Any], *, follow: bool
    ) -> Generator[Event, None, None]:
        with closing(Bell(self._listen_database)) as bell:
            while True:
                yield from page.events
                if page.events:
                    bell.wake()
                elif not (follow or page.is_behind):
                    return
                elif not page.is_behind:
                    bell.rest(is_settled=page.is_settled)
                page = self.page_events(page.cursor, **chosen)

    @contextmanager
    def _told_of(self, job: Job) -> Iterator[Callable[[float], None]]:
        """Give what waits for so many seconds, or only until the job has ended."""
        if self._listen_database is None:
            yield time.sleep
            return
        with closing(Ending(self._listen_database, str(job.job_id))) as ending:
            yield ending.wait


class AsyncClient:
    """A client whose methods are awaited; otherwise as `Client`.

    Args:
        database: a libpq URL, for a pool of its own; or a connection of the caller's.
        pool_size: at most so many connections, opened when they are needed.
        patience: seconds to wait for a connection of the pool.
        listen_database: as `Client` has it, but one connection serves all that wait, and
            stays open.
        is_pooled: as `Client` has it.
        read_database: as `Client` has it.
        registry: as `Client` has it.
    """

    def __init__(
        self,
        database: str | AsyncConnection[Any],
        *,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        listen_database: str | None = None,
        is_pooled: bool = False,
        read_database: str | None = None,
        registry: Registry | None = None,
    ) -> None:
        is_pooled = is_pooled or listen_database is not None

        def pool(url: str) -> AsyncPool:
            return AsyncPool(
                conninfo(url, "jobq client", is_pooled=is_pooled),
                **_pool(pool_size, patience, is_pooled=is_pooled),
                configure=use_json_async,
            )

        self._home = pool(database) if isinstance(database, str) else database
        self._standby = self._home if read_database is None else pool(read_database)
        self._listen_database = listen_database
        self._endings = None if listen_database is None else Endings(listen_database)
        self._schemas = JsonSchemas()
        self._declarations = Declarations(registry)
        self._declaring = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client's own connections; the caller's are left alone."""
        if self._endings is not None:
            await self._endings.close()
        for home in {self._home, self._standby}:
            if isinstance(home, AsyncPool):
                await home.close()

    async def run(self, call: Call[T]) -> T:
        """Make a call and return what it answers."""
        given = call.given
        if call.inputs:
            if self._declarations.are_due:
                await self.declare()
            await self._check(call.inputs)
        text = statement(call.function, tuple(given), call.from_now)
        with translate(given.values()):
            async with (
                self._connected(call) as connection,
                reading_json(connection.cursor(row_factory=call.row_factory)) as cursor,
            ):
                with confirmed(connection):
                    await cursor.execute(text, given)
                    return call.read(await cursor.fetchall())

    async def declare(self) -> None:
        """Declare the kinds of the registry, of which nobody has; see `Client.declare`.

        Raises:
            DatabaseUnavailable: there is no answer.
        """
        async with self._declaring:
            steps = self._declarations.steps(in_transaction=_is_open(self._home))
            answer: Any = None
            with closing(steps), suppress(StopIteration):
                while True:
                    call = steps.send(answer)
                    try:
                        answer = await self.run(call)
                    except DatabaseUnavailable:
                        raise
                    except JobqError as error:
                        answer = error

    async def _check(self, inputs: Sequence[tuple[str, Json]]) -> None:
        """Refuse payloads that do not fit the schemas that only clients can enforce."""
        unknown = self._schemas.unknown(kind for kind, _ in inputs)
        if unknown:
            found = await self.run(kinds.list_payload_schemas(unknown))
            self._schemas.learn(unknown, found)
        if self._schemas.are_for(inputs):
            await asyncio.to_thread(self._schemas.check, inputs)

    @asynccontextmanager
    async def _connected(self, call: Call[Any]) -> AsyncIterator[AsyncConnection[Any]]:
        home = self._standby if call.may_lag else self._home
        if not isinstance(home, AsyncPool):
            yield home
            return
        await home.open()
        async with home.connection() as connection:
            with renewed(connection):
                yield connection

    enqueue = _awaiting(jobs.enqueue)
    enqueue_many = _awaiting(jobs.enqueue_many)
    get = _awaiting(jobs.get)
    find = _awaiting(jobs.find)
    list_jobs = _awaiting(jobs.list_jobs)
    attempts = _awaiting(jobs.attempts)
    logs = _awaiting(jobs.logs)
    page_events = _awaiting(events.page_events)
    explain = _awaiting(jobs.explain)
    emit = _awaiting(workflows.emit)
    signal = _awaiting(workflows.signal)
    list_steps = _awaiting(workflows.list_steps)
    list_inputs = _awaiting(workflows.list_inputs)
    open_batch = _awaiting(workflows.open_batch)
    seal_batch = _awaiting(workflows.seal_batch)
    cancel_batch = _awaiting(workflows.cancel_batch)
    batch = _awaiting(workflows.batch)
    enqueue_graph = _awaiting(workflows.enqueue_graph)
    graph = _awaiting(workflows.graph)
    cancel_tree = _awaiting(workflows.cancel_tree)
    redrive_tree = _awaiting(workflows.redrive_tree)
    queue_stats = _awaiting(queues.queue_stats)
    replica_lag = _awaiting(queues.replica_lag)
    settings = _awaiting(defaults.settings)
    cancel = _awaiting(jobs.cancel)
    redrive = _awaiting(jobs.redrive)
    redrive_many = _awaiting(jobs.redrive_many)
    change_many = _awaiting(steering.change_many)
    cancel_many = _awaiting(steering.cancel_many)
    delete_many = _awaiting(steering.delete_many)
    work = _awaiting(function_jobs.work)
    pause = _awaiting(queues.pause)
    resume = _awaiting(queues.resume)
    put_kind = _awaiting(kinds.put_kind)
    list_kinds = _awaiting(kinds.list_kinds)
    delete_kind = _awaiting(kinds.delete_kind)
    put_queue = _awaiting(queues.put_queue)
    list_queues = _awaiting(queues.list_queues)
    list_workers = _awaiting(queues.list_workers)
    put_limit = _awaiting(limits.put_limit)
    list_limits = _awaiting(limits.list_limits)
    hold_key = _awaiting(limits.hold_key)
    release_key = _awaiting(limits.release_key)
    delete_limit = _awaiting(limits.delete_limit)
    configure = _awaiting(defaults.configure)
    grant_queue = _awaiting(grants.grant_queue)
    revoke_queue = _awaiting(grants.revoke_queue)
    enforce_queue_grants = _awaiting(grants.enforce_queue_grants)
    list_queue_grants = _awaiting(grants.list_queue_grants)
    create_schedule = _awaiting(schedules.create_schedule)
    update_schedule = _awaiting(schedules.update_schedule)
    pause_schedule = _awaiting(schedules.pause_schedule)
    resume_schedule = _awaiting(schedules.resume_schedule)
    run_schedule = _awaiting(schedules.run_schedule)
    backfill_schedule = _awaiting(schedules.backfill_schedule)
    retire_schedule = _awaiting(schedules.retire_schedule)
    get_schedule = _awaiting(schedules.get_schedule)
    list_schedules = _awaiting(schedules.list_schedules)
    schedule_versions = _awaiting(schedules.schedule_versions)
    schedule_status = _awaiting(schedules.schedule_status)
    preview_schedule = _awaiting(schedules.preview_schedule)
    preview_cron = _awaiting(schedules.preview_cron)
    put_payload_spec = _awaiting(definitions.put_payload_spec)
    put_config = _awaiting(definitions.put_config)
    put_secret = _awaiting(definitions.put_secret)
    put_endpoint = _awaiting(definitions.put_endpoint)
    pause_endpoint = _awaiting(definitions.pause_endpoint)
    resume_endpoint = _awaiting(definitions.resume_endpoint)
    test_endpoint = _awaiting(definitions.test_endpoint)
    endpoint_stats = _awaiting(definitions.endpoint_stats)
    delete_definition = _awaiting(definitions.delete_definition)
    get_definition = _awaiting(definitions.get_definition)
    list_definitions = _awaiting(definitions.list_definitions)
    list_versions = _awaiting(definitions.list_versions)

    async def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,  # noqa: ASYNC109 - as Client has it
    ) -> Json:
        """Wait until a job has ended and return its result; see `Client.result`.

        Args:
            job_id: the job; its transaction must have been committed.
            timeout: seconds; None waits for ever.

        Raises:
            JobFailed: the job is dead.
            JobCancelled: it was cancelled.
            JobNotFound: there is no such job.
            TimeoutError: it has not ended in time.
        """
        job = await self.get(job_id)
        with self._told_of(job) as wait:
            for pause in _pauses(timeout, self._endings is not None):
                if job.is_finished:
                    break
                await wait(pause)
                job = await self.get(job_id)
        return _result_of(job)

    async def call(
        self,
        kind: str,
        payload: Json = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as Client has it
        **options: Any,  # noqa: ANN401 - as `enqueue` has them
    ) -> Json:
        """Enqueue a job, wait until it has ended and return its result; see `Client.call`.

        Args:
            kind: what is to be done.
            payload: as `enqueue` has it.
            timeout: seconds to wait; None waits for ever. The job goes on after them.
            options: the others of `enqueue`.

        Raises:
            InvalidArgument: a transaction is open, and no worker would see the job; or the timeout
                is no number.
            JobqError: as `enqueue` and `result`.
            TimeoutError: it has not ended in time.
        """
        _refuse_open(self._home)
        _check_wait(timeout)
        return await self.result((await self.enqueue(kind, payload, **options)).job_id, timeout)

    async def listen_events(
        self,
        after: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        follow: bool = True,
    ) -> AsyncGenerator[Event, None]:
        """Yield each job that ends, once and in the order; see `Client.listen_events`.

        It begins when its first event is asked for.

        Args:
            after: the cursor of an event, or of a page; None begins at ``since``.
            queues: only jobs of these queues.
            kinds: only jobs of these kinds.
            since: without ``after``: what ended at or after this moment; None is now.
            follow: whether to wait for more; False ends when all has been told.

        Raises:
            InvalidArgument: as `page_events`; or a transaction is open, and ``follow``.
        """
        if follow:
            _refuse_open(self._home)
        chosen: dict[str, Any] = {
            "queues": as_names(queues),
            "kinds": as_names(kinds),
            "max_events": EVENTS,
        }
        page = await self.page_events(after, since=since, **chosen)
        async with aclosing(AsyncBell(self._listen_database)) as bell:
            while True:
                for event in page.events:
                    yield event
                if page.events:
                    await bell.wake()
                elif not (follow or page.is_behind):
                    return
                elif not page.is_behind:
                    await bell.rest(is_settled=page.is_settled)
                page = await self.page_events(page.cursor, **chosen)

    def _told_of(self, job: Job) -> AbstractContextManager[Callable[[float], Awaitable[None]]]:
        """Give what waits for so many seconds, or only until the job has ended."""
        if self._endings is None or job.is_finished:
            return nullcontext(asyncio.sleep)
        return self._endings.of(str(job.job_id))


def _is_open(home: object) -> bool:
    """Whether calls join a transaction of the caller's."""
    return isinstance(home, Connection | AsyncConnection) and (
        not home.autocommit or home.info.transaction_status != TransactionStatus.IDLE
    )


def _refuse_open(home: object) -> None:
    """Refuse to wait for a job on a connection whose transaction hides it."""
    if _is_open(home):
        raise InvalidArgument(
            "a job cannot be waited for in the transaction that enqueues it",
            hint="enqueue and commit, then wait with result(); or give the client a URL",
        )


def _check_wait(timeout: object) -> None:
    """Refuse what cannot be waited for, before a job is enqueued."""
    is_number = isinstance(timeout, int | float) and timeout == timeout  # noqa: PLR0124 - not NaN
    if timeout is not None and not is_number:
        raise InvalidArgument("timeout must be a number of seconds, or None")


def _pool(size: int, patience: float, *, is_pooled: bool) -> dict[str, Any]:
    """Return how a client's pool behaves; it connects when it is first used."""
    prepared = {"prepare_threshold": None} if is_pooled else {}
    return {
        "kwargs": {"autocommit": True, **prepared},
        "min_size": 0,
        "max_size": size,
        "timeout": patience,
        "reconnect_timeout": patience,
        "name": "jobq client",
        "open": False,
    }


def _pauses(timeout: float | None, is_told: bool) -> Iterator[float]:
    """Yield how long to wait between looks until time is up; they grow, unless one is told."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    pause = LONGEST_PAUSE if is_told else FIRST_PAUSE
    while (left := deadline - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(1.3 * pause, LONGEST_PAUSE)


def _result_of(job: Job) -> Json:
    if not job.is_finished:
        raise TimeoutError(f"job {job.job_id} has not ended in time")
    if job.state == "dead":
        raise JobFailed(job)
    if job.state == "cancelled":
        raise JobCancelled(job)
    return job.result
