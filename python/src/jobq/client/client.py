"""The clients: each method calls one function of the database, described in `jobq.calls`.

`Client` is synchronous, `AsyncClient` asynchronous. With a URL, a client has its own pool, and
each call is its own transaction. With a connection, it works in the connection's transaction,
and never ends it:

    with psycopg.connect(url) as connection:
        connection.execute("insert into ...")
        Client(connection).enqueue("send_email", {"to": "ada@example.org"})
"""

from __future__ import annotations

import asyncio
import math
import operator
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AbstractContextManager, AsyncExitStack, closing, contextmanager, nullcontext
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from jobq.calls import definitions, generated
from jobq.calls.arguments import as_given, as_uuid
from jobq.calls.batcher import Batcher
from jobq.calls.call import Call, reading_json, statement
from jobq.calls.events import Event, EventPage, page_events
from jobq.calls.streams import Chunk, StreamPage, read_stream, read_streams
from jobq.client.declarations import Declarations
from jobq.client.json_schemas import JsonSchemas
from jobq.client.method import Awaited, Waiting
from jobq.client.methods import Calls
from jobq.client.notifications import ENDS, STREAMS, Bell, Ending, Endings
from jobq.database import (
    AsyncPool,
    Pool,
    awaited,
    configure,
    confirmed,
    conninfo,
    entered,
    finished,
    renewed,
)
from jobq.errors import InvalidArgument, JobCancelled, JobFailed, translate
from jobq.models import Job, Json
from jobq.registry import Registry
from jobq.registry.handler import result_parser

T = TypeVar("T")
R = TypeVar("R")
C = TypeVar("C", bound="Connection[Any] | AsyncConnection[Any]")

POOL_SIZE: Final = 8
PATIENCE: Final = 10.0
FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.25
# Seconds between reads of a stream whose reader is notified: a notification can be lost.
LONGEST_QUIET: Final = 2.0
# Streams in one read, and chunks of each.
MOST_STREAMS: Final = 32
MOST_CHUNKS: Final = 1000
EVENTS: Final = 1000


class _Client(ABC, Generic[C]):
    """The code of both clients, as coroutines. In a `Client` they never suspend."""

    _pool: ClassVar[type[Any]]
    _compute: ClassVar[Any]
    _lock: ClassVar[Any]
    _kind: ClassVar[type[Any]]
    _sleep: ClassVar[Any]

    def __init__(
        self,
        database: str | C,
        *,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        listen_database: str | None = None,
        is_pooled: bool = False,
        read_database: str | None = None,
        registry: Registry | None = None,
    ) -> None:
        is_pooled = is_pooled or listen_database is not None
        prepared = {"prepare_threshold": None} if is_pooled else {}

        def pool(url: str) -> Any:  # noqa: ANN401 - a pool, which connects when it is first used
            return self._pool(
                conninfo(url, "jobq client", is_pooled=is_pooled),
                kwargs={"autocommit": True, **prepared},
                min_size=0,
                max_size=pool_size,
                timeout=patience,
                reconnect_timeout=patience,
                name="jobq client",
                open=False,
                configure=configure,
            )

        self._home: Any = pool(database) if isinstance(database, str) else database
        self._standby = self._home if read_database is None else pool(read_database)
        self._listen_database = listen_database
        self._is_told = listen_database is not None
        self._schemas = JsonSchemas()
        self._declarations = Declarations(registry)
        self.hooks = registry.hooks if registry is not None else None
        self._declaring = self._lock()

    @property
    def conninfo(self) -> str | None:
        """The connection string; None with a connection of the caller's."""
        return str(self._home.conninfo) if isinstance(self._home, self._pool) else None

    async def _close(self) -> None:
        for home in {self._home, self._standby}:
            if isinstance(home, self._pool):
                await awaited(home.close())

    async def _run(self, call: Call[T]) -> T:
        given = call.given
        if call.inputs:
            if self._declarations.are_due:
                await self._declare()
            await self._check(call.inputs)
        text = statement(call.function, tuple(given), call.from_now)
        home = self._standby if call.may_lag else self._home
        with translate(given.values()):
            async with AsyncExitStack() as stack:
                connection: Any = home
                if isinstance(home, self._pool):
                    await awaited(home.open())
                    connection = await entered(stack, home.connection())
                    stack.enter_context(renewed(connection))
                stack.enter_context(confirmed(connection))
                cursor: Any = connection.cursor(row_factory=call.row_factory)
                await awaited(reading_json(cursor).execute(text, given))
                return call.read(await awaited(cursor.fetchall()))

    @abstractmethod
    def run(self, call: Call[Any]) -> Any:  # noqa: ANN401 - what it returns, or awaitable
        """Run a call and return its result."""

    @abstractmethod
    def _waiting(
        self, job_id: str, about: tuple[str, ...] = ENDS
    ) -> AbstractContextManager[Callable[[float], Any]]:
        """Provide a function that waits for some seconds, or until a job ends if possible."""

    async def _ask(self, call: Call[T]) -> T:
        return await awaited(self.run(call))  # type: ignore[no-any-return]

    async def _declare(self) -> None:
        async with AsyncExitStack() as stack:
            await entered(stack, self._declaring)
            await self._declarations.make(self._ask, in_transaction=_is_open(self._home))

    async def _check(self, inputs: Sequence[tuple[str, Json]]) -> None:
        """Check payloads against the schemas that only clients can enforce."""
        unknown = self._schemas.unknown(kind for kind, _ in inputs)
        if unknown:
            found = await self._ask(definitions.list_payload_schemas(unknown))
            self._schemas.learn(unknown, found)
        if self._schemas.are_for(inputs):
            await awaited(self._compute(self._schemas.check, inputs))

    async def _result(
        self, job_id: UUID | str, seconds: float | None, of: Callable[..., Any] | None
    ) -> Json:
        job = await self._ask(generated.get(job_id))
        if not job.is_finished:
            with self._waiting(str(job.job_id)) as wait:
                for pause in _pauses(seconds, self._is_told):
                    await awaited(wait(pause))
                    job = await self._ask(generated.get(job_id))
                    if job.is_finished:
                        break
        return _result_of(job, of)

    async def _call(
        self, kind: str, payload: Json, seconds: float | None, options: dict[str, Any]
    ) -> Json:
        self._refuse_open()
        is_number = isinstance(seconds, int | float) and not math.isnan(seconds)
        if seconds is not None and not is_number:
            raise InvalidArgument("timeout must be a number of seconds, or None")
        own: Any = self
        enqueued = await awaited(own.enqueue(kind, payload, **options))
        return await self._result(enqueued.job_id, seconds, None)

    async def _events(
        self, first: EventPage | Call[EventPage], chosen: dict[str, Any], *, follow: bool
    ) -> AsyncGenerator[Event, None]:
        bell = Bell(self._kind, self._listen_database, self._sleep)
        try:
            page = await self._ask(first) if isinstance(first, Call) else first
            while True:
                for event in page.events:
                    yield event
                if not (page.events or page.is_behind or follow):
                    return
                await bell.rest_after(page)
                page = await self._ask(page_events(page.cursor, **chosen))
        finally:
            await bell.close()

    async def _page(self, job_id: UUID | str, stream: str, after: str | None) -> StreamPage:
        return await self._ask(read_stream(job_id, stream, after))

    async def _chunks(
        self, job_id: UUID | str, stream: str, after: str | None
    ) -> AsyncGenerator[Chunk, None]:
        page = await self._page(job_id, stream, after)
        with self._waiting(str(as_uuid(job_id)), STREAMS) as wait:
            pauses = _pauses(None, self._is_told, LONGEST_QUIET)
            while True:
                for chunk in page.chunks:
                    yield chunk
                if page.is_ended:
                    return
                if page.chunks:
                    pauses = _pauses(None, self._is_told, LONGEST_QUIET)
                if len(page.chunks) < MOST_CHUNKS:
                    await awaited(wait(next(pauses)))
                page = await self._page(job_id, stream, page.cursor)

    def _refuse_open(self) -> None:
        """Refuse to wait for a job in the transaction that hides it from workers."""
        if _is_open(self._home):
            raise InvalidArgument(
                "a job cannot be waited for in the transaction that enqueues it",
                hint="enqueue and commit, then wait with result(); or give the client a URL",
            )


class Client(_Client[Connection[Any]], Calls, Waiting):
    """A synchronous client. Thread-safe if created with a URL.

    Args:
        database: a libpq URL, for a pool; or a connection, whose transaction all calls join.
        pool_size: maximum number of connections, opened when needed.
        patience: seconds to wait for a connection of the pool.
        listen_database: a direct libpq URL, if ``database`` is a pooler in transaction mode.
            `result` and `listen_events` listen there, on one more connection. None polls.
        is_pooled: whether ``database`` is such a pooler, which allows neither settings nor
            prepared statements; implied by ``listen_database``.
        read_database: a libpq URL of a standby for `list_jobs`, `queue_stats`, `list_schedules`
            and `list_definitions`; see `replica_lag`.
        registry: handlers whose kinds are declared before the first enqueue; see `declare`.

    Raises:
        JobNotFound: in every method about a job or batch that does not exist, or whose retention
            has ended; NotFound for other objects.
        InvalidArgument: a value is out of range, or of the wrong type.
        TypeError: an option is unknown.
        NotPermitted: the login lacks the privilege; grants by queue need a member of jobq_owner.
        DatabaseUnavailable: the database does not answer.
    """

    _pool = Pool
    _lock = staticmethod(threading.Lock)
    _compute = staticmethod(operator.call)
    _kind = Connection
    _sleep = staticmethod(time.sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client's own connections, but not the caller's."""
        finished(self._close())

    def run(self, call: Call[T]) -> T:
        """Run a call and return its result."""
        return finished(self._run(call))

    def declare(self) -> None:
        """Declare the kinds of the registry that are not declared, or only by an older version.

        The client does this before its first enqueue. If the login lacks the privilege, or a
        transaction of the caller's is open, it logs a warning to ``jobq.client``, and jobs use
        the existing declarations.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        finished(self._declare())

    @overload
    def result(self, job_id: UUID | str, timeout: float | None = None) -> Json: ...
    @overload
    def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,
        *,
        of: Callable[..., Coroutine[Any, Any, R]],
    ) -> R: ...
    @overload
    def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,
        *,
        of: Callable[..., R],
    ) -> R: ...
    def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,
        *,
        of: Callable[..., Any] | None = None,
    ) -> Json:
        """Wait until a job has ended and return its result.

        It polls every 5 ms at first, later every 250 ms. With ``listen_database`` it is also
        notified when the job ends.

        Args:
            job_id: the job; its enqueue must be committed.
            timeout: seconds; None waits without limit.
            of: the job's handler, or a type: the result is converted to the handler's return
                type, or to this type. For a batch handler, pass the type of one result.

        Raises:
            JobFailed: the job is dead.
            JobCancelled: the job was cancelled.
            JobNotFound: the job does not exist.
            TimeoutError: it has not ended in time.
            ValueError: the result does not match the type.
        """
        return finished(self._result(job_id, timeout, of))

    def call(
        self,
        kind: str,
        payload: Json = None,
        timeout: float | None = None,
        **options: Any,  # noqa: ANN401 - as `enqueue` has them
    ) -> Json:
        """Enqueue a job, wait until it has ended and return its result.

        Args:
            kind: names the handler.
            payload: as for `enqueue`.
            timeout: seconds to wait; None waits without limit. The job continues after a timeout.
            options: other options of `enqueue`.

        Raises:
            InvalidArgument: a transaction is open, so no worker can see the job; or the timeout is
                not a number.
            JobqError: as `enqueue` and `result`.
            TimeoutError: it has not ended in time.
        """
        return finished(self._call(kind, payload, timeout, options))

    def listen_events(
        self,
        after: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        follow: bool = True,
    ) -> Generator[Event, None, None]:
        """Yield each job that ends, once and in order.

        With ``listen_database`` it sleeps until a job ends, on one more connection. Else it polls
        at least every half second. Store the cursor of the last processed event to continue there.

        Args:
            after: the cursor of an event or a page; None begins at ``since``.
            queues: only jobs of these queues.
            kinds: only jobs of these kinds.
            since: without ``after``: only jobs that ended at or after this time; None is now.
            follow: whether to wait for more events.

        Raises:
            InvalidArgument: as `page_events`; or a transaction is open, with ``follow``.
        """
        if follow:
            self._refuse_open()
        chosen = _chosen(queues, kinds)
        page = self.page_events(after, since=since, **chosen)
        return _iterated(self._events(page, chosen, follow=follow))

    def stream(
        self, job_id: UUID | str, stream: str, after: str | None = None
    ) -> Generator[Chunk, None, None]:
        """Yield the chunks of a stream, also future ones, until the job has ended.

        Each chunk comes once, in order, whatever happens to workers and connections. It polls
        every 5 ms at first, later every 250 ms. With ``listen_database`` it is notified of new
        chunks, on one more connection.

        Args:
            job_id: the job, live or finished.
            stream: name of the stream.
            after: the cursor of the last chunk that was handled; None begins with the first.

        Raises:
            InvalidArgument: the cursor is invalid, or a transaction is open.
        """
        self._refuse_open()
        return _iterated(self._chunks(job_id, stream, after))

    @contextmanager
    def _waiting(
        self, job_id: str, about: tuple[str, ...] = ENDS
    ) -> Iterator[Callable[[float], None]]:
        if self._listen_database is None:
            yield time.sleep
            return
        with closing(Ending(self._listen_database, job_id, about)) as ending:
            yield ending.wait


class AsyncClient(_Client[AsyncConnection[Any]], Calls, Awaited):
    """An asynchronous client; otherwise as `Client`.

    With ``listen_database``, one connection serves all calls that wait, and stays open.
    """

    _pool = AsyncPool
    _lock = staticmethod(asyncio.Lock)
    _compute = staticmethod(asyncio.to_thread)
    _kind = AsyncConnection
    _sleep = staticmethod(asyncio.sleep)

    @cached_property
    def _endings(self) -> dict[tuple[str, ...], Endings]:
        url = self._listen_database
        return {about: Endings(url, about) for about in (ENDS, STREAMS)} if url is not None else {}

    @cached_property
    def _reads(self) -> Batcher[StreamPage]:
        """Reads the streams of all readers that are notified at the same time."""

        async def read(reads: Sequence[tuple[Any, ...]]) -> list[StreamPage]:
            job_ids, names, afters = zip(*reads, strict=True)
            return await self.run(read_streams(job_ids, names, afters))

        return Batcher(read, MOST_STREAMS)

    async def _page(self, job_id: UUID | str, stream: str, after: str | None) -> StreamPage:
        return await self._reads.call((as_uuid(job_id), stream, after))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the client's own connections, but not the caller's."""
        for endings in self._endings.values():
            await endings.close()
        await self._close()

    async def run(self, call: Call[T]) -> T:
        """Run a call and return its result."""
        return await self._run(call)

    async def declare(self) -> None:
        """Declare the kinds of the registry; see `Client.declare`."""
        await self._declare()

    @overload
    async def result(self, job_id: UUID | str, timeout: float | None = None) -> Json: ...  # noqa: ASYNC109 - as Client has it
    @overload
    async def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,  # noqa: ASYNC109
        *,
        of: Callable[..., Coroutine[Any, Any, R]],
    ) -> R: ...
    @overload
    async def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,  # noqa: ASYNC109
        *,
        of: Callable[..., R],
    ) -> R: ...
    async def result(
        self,
        job_id: UUID | str,
        timeout: float | None = None,  # noqa: ASYNC109 - as Client has it
        *,
        of: Callable[..., Any] | None = None,
    ) -> Json:
        """Wait until a job has ended and return its result; see `Client.result`."""
        return await self._result(job_id, timeout, of)

    async def call(
        self,
        kind: str,
        payload: Json = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as Client has it
        **options: Any,  # noqa: ANN401 - as `enqueue` has them
    ) -> Json:
        """Enqueue a job, wait until it has ended and return its result; see `Client.call`."""
        return await self._call(kind, payload, timeout, options)

    def listen_events(
        self,
        after: str | None = None,
        *,
        queues: Iterable[str] | None = None,
        kinds: Iterable[str] | None = None,
        since: datetime | None = None,
        follow: bool = True,
    ) -> AsyncGenerator[Event, None]:
        """Yield each job that ends, once and in order; see `Client.listen_events`.

        It begins when the first event is requested.
        """
        if follow:
            self._refuse_open()
        chosen = _chosen(queues, kinds)
        return self._events(page_events(after, since=since, **chosen), chosen, follow=follow)

    def stream(
        self, job_id: UUID | str, stream: str, after: str | None = None
    ) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of a stream, until the job has ended; see `Client.stream`.

        With ``listen_database``, one connection serves all streams that are read.
        """
        self._refuse_open()
        return self._chunks(job_id, stream, after)

    def _waiting(
        self, job_id: str, about: tuple[str, ...] = ENDS
    ) -> AbstractContextManager[Callable[[float], Awaitable[None]]]:
        endings = self._endings.get(about)
        return nullcontext(asyncio.sleep) if endings is None else endings.of(job_id)


def _iterated(items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield what an asynchronous generator yields that never suspends."""
    try:
        while True:
            yield finished(items.__anext__())
    except StopAsyncIteration:
        return
    finally:
        finished(items.aclose())


def _chosen(queues: Iterable[str] | None, kinds: Iterable[str] | None) -> dict[str, Any]:
    """Return the arguments of each page of events."""
    return as_given({"queues": queues, "kinds": kinds, "max_events": EVENTS})


def _is_open(home: object) -> bool:
    """Whether calls join a transaction of the caller's."""
    return isinstance(home, Connection | AsyncConnection) and (
        not home.autocommit or home.info.transaction_status != TransactionStatus.IDLE
    )


def _pauses(
    timeout: float | None, is_told: bool, longest: float = LONGEST_PAUSE
) -> Iterator[float]:
    """Yield the polling pauses until the timeout; they are longer if notifications arrive."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    pause = LONGEST_PAUSE if is_told else FIRST_PAUSE
    while (left := deadline - time.monotonic()) > 0:
        yield min(pause, left)
        pause = min(1.3 * pause, longest if is_told else LONGEST_PAUSE)


def _result_of(job: Job, of: Callable[..., Any] | None) -> Json:
    if not job.is_finished:
        raise TimeoutError(f"job {job.job_id} has not ended in time")
    if job.state == "dead":
        raise JobFailed(job)
    if job.state == "cancelled":
        raise JobCancelled(job)
    return job.result if of is None else result_parser(of)(job.result)
