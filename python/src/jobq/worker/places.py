"""Where handlers run: on the loop, in threads, in processes, in a transaction."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import threading
from concurrent.futures import Future, ProcessPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from psycopg_pool import AsyncConnectionPool, ConnectionPool

from jobq.database import conninfo, use_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import AsyncConnection

__all__ = ["Places"]


class Threads:
    """Daemon threads, which a handler that hangs cannot make the process wait for.

    Each call gets an idle thread, or a new one: the worker's slots bound their number.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]
        self._calls = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, function: Callable[..., Any], *arguments: object) -> Future[Any]:
        """Run a function in a thread and return its future."""
        future: Future[Any] = Future()
        with self._lock:
            is_served = self._idle > 0
            self._idle -= is_served
        self._calls.put((future, function, arguments))
        if not is_served:
            threading.Thread(target=self._serve, name="jobq handler", daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            future, function, arguments = self._calls.get()
            try:
                result = function(*arguments)
            except BaseException as error:
                self._rest()
                future.set_exception(error)
            else:
                self._rest()
                future.set_result(result)
            del future, function, arguments

    def _rest(self) -> None:
        with self._lock:
            self._idle += 1


class Places:
    """Makes threads, processes and transactions for handlers, when first needed.

    Args:
        url: the database for transactional handlers.
        concurrency: how many jobs run at a time; as many connections are opened at most.
        processes: how many processes run handlers on the CPU; None is one for each core.
        is_pooled: whether a pooler in transaction mode stands before the database.
    """

    def __init__(
        self, url: str, concurrency: int, processes: int | None, *, is_pooled: bool
    ) -> None:
        self._conninfo = conninfo(url, "jobq handler", is_pooled=is_pooled, is_handler=True)
        self._connection_options = {"prepare_threshold": None} if is_pooled else {}
        self._concurrency = concurrency
        self._processes = processes or os.cpu_count() or 1
        self._threads = Threads()
        self._process_pool: ProcessPoolExecutor | None = None
        self._pool: AsyncConnectionPool | None = None
        self._thread_pool: ConnectionPool | None = None

    def in_thread(self, function: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Run a function in a thread, with the caller's context variables."""
        context = contextvars.copy_context()
        return asyncio.wrap_future(self._threads.submit(context.run, function, *arguments))

    def in_process(self, function: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Run a function in a process of the pool.

        The future raises BrokenProcessPool when the process dies; later calls get a new pool.
        """
        if self._process_pool is None or getattr(self._process_pool, "_broken", False):
            self._process_pool = ProcessPoolExecutor(
                self._processes, mp_context=multiprocessing.get_context("forkserver")
            )
        return asyncio.wrap_future(self._process_pool.submit(function, *arguments))

    async def connections(self) -> AsyncConnectionPool:
        """Return the connections of handlers that are coroutines."""
        if self._pool is None:
            self._pool = AsyncConnectionPool(
                self._conninfo,
                kwargs=self._connection_options,
                configure=_configure,
                min_size=0,
                max_size=self._concurrency,
                timeout=10,
                name="jobq handlers",
                open=False,
            )
            await self._pool.open()
        return self._pool

    def thread_connections(self) -> ConnectionPool:
        """Return the connections of handlers that run in threads."""
        if self._thread_pool is None:
            self._thread_pool = ConnectionPool(
                self._conninfo,
                kwargs=self._connection_options,
                configure=use_json,
                min_size=0,
                max_size=self._concurrency,
                timeout=10,
                name="jobq thread handlers",
                open=True,
            )
        return self._thread_pool

    async def close(self) -> None:
        """Let everything go, without waiting for what still runs."""
        if self._process_pool is not None:
            children = list(getattr(self._process_pool, "_processes", {}).values())
            self._process_pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()
        if self._pool is not None:
            await self._pool.close(timeout=1)
        if self._thread_pool is not None:
            await asyncio.to_thread(self._thread_pool.close, timeout=1)


async def _configure(connection: AsyncConnection[Any]) -> None:
    use_json(connection)
