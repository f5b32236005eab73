"""Where handlers run: in threads, in processes, on connections of their own."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg

from jobq.database import AsyncPool, Pool, conninfo, use_json, use_json_async
from jobq.outcomes import Unable
from jobq.redaction import error_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from psycopg import AsyncConnection, Connection

    from jobq.worker.processes import Processes
    from jobq.worker.threads import Threads

__all__ = ["Places"]

# Seconds to wait for a handler's connection: what a call of the worker's own may take.
PATIENCE: Final = 10.0
# Seconds after which one is closed, if more have been open all the while than were used.
IDLE: Final = 10.0
# Seconds for which a job is left alone when there was no connection for it.
PAUSE: Final = 5.0


class Places:
    """The threads and processes of a worker, and connections made when first needed.

    Args:
        url: the database for transactional handlers.
        concurrency: how many jobs run at a time; as many connections are opened at most.
        threads: for handlers that wait.
        processes: for handlers that work the CPU.
        is_pooled: whether a pooler in transaction mode stands before the database.
    """

    def __init__(
        self, url: str, concurrency: int, threads: Threads, processes: Processes, *, is_pooled: bool
    ) -> None:
        self._conninfo = conninfo(url, "jobq handler", is_pooled=is_pooled, is_handler=True)
        self._options: dict[str, Any] = {
            "kwargs": {"prepare_threshold": None} if is_pooled else {},
            "min_size": 0,
            "max_size": concurrency,
            "timeout": PATIENCE,
            "max_idle": IDLE,
        }
        self.concurrency = concurrency
        self.threads = threads
        self.processes = processes
        self._pool: AsyncPool | None = None
        self._thread_pool: Pool | None = None
        # Several threads may be the first.
        self._making = threading.Lock()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Give a connection to a coroutine, in a transaction that ends with the block.

        Raises:
            Unable: there is none.
        """
        if self._pool is None:
            self._pool = AsyncPool(
                self._conninfo,
                name="jobq handlers",
                open=False,
                **self._options,
                configure=use_json_async,
            )
            await self._pool.open()
        with _or_unable():
            connection = await self._pool.getconn()
        try:
            async with connection:
                yield connection
        finally:
            await self._pool.putconn(connection)

    @contextmanager
    def thread_connection(self) -> Iterator[Connection[Any]]:
        """Give a connection to a thread, as `connection` does."""
        with self._making:
            if self._thread_pool is None:
                self._thread_pool = Pool(
                    self._conninfo,
                    name="jobq thread handlers",
                    open=True,
                    **self._options,
                    configure=use_json,
                )
        with _or_unable():
            connection = self._thread_pool.getconn()
        try:
            with connection:
                yield connection
        finally:
            self._thread_pool.putconn(connection)

    async def close(self) -> None:
        """Let the connections go, without waiting for what still runs."""
        if self._pool is not None:
            await self._pool.close(timeout=1)
        if self._thread_pool is not None:
            await self.threads.run(self._thread_pool.close, 1)


@contextmanager
def _or_unable() -> Iterator[None]:
    """Take the lack of a connection for the worker's own, since no handler has begun."""
    try:
        yield
    except psycopg.Error as error:
        raise Unable("NO_CONNECTION", error_text(error), in_=PAUSE) from error
