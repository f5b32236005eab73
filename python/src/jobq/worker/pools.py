"""Where handlers run: threads, processes, and connections of their own."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue
from typing import Any, Final, Literal, TypeAlias

import psycopg

from jobq.database import AsyncPool, Pool, awaited, conninfo, entered, use_json
from jobq.errors import LeaseLost
from jobq.redaction import error_text, traceback_text
from jobq.registry.context import JobContext, Written
from jobq.registry.outcomes import Unable
from jobq.registry.settlement import Failed, Raised, Returned, SettledError
from jobq.worker import tuning

Mode: TypeAlias = Literal["awaited", "thread", "function"]
Call: TypeAlias = "tuple[Future[Returned | Raised], contextvars.Context, Callable[..., Any], Any]"


def value_of(did: Returned | Raised) -> Any:  # noqa: ANN401 - whatever it is
    """Return the result of a call, or raise its exception."""
    if isinstance(did, Raised):
        raise did.error
    return did.value


# ---- threads


class Threads:
    """Daemon threads, so that a hanging handler does not keep the process from ending.

    Each call gets an idle thread, or a new one; the worker's slots limit their number.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._idle = threading.Semaphore(0)

    def run(
        self, function: Callable[..., Any], *arguments: object
    ) -> asyncio.Future[Returned | Raised]:
        """Run a function in a thread, with the caller's context variables.

        An exception is returned like a result, because futures do not accept every exception.
        """
        if not self._idle.acquire(blocking=False):
            try:
                threading.Thread(target=self._serve, name="jobq handler", daemon=True).start()
            except RuntimeError as error:
                raise Unable("NO_THREAD", str(error), in_=1.0) from error
        future: Future[Returned | Raised] = Future()
        self._calls.put((future, contextvars.copy_context(), function, arguments))
        return asyncio.wrap_future(future)

    def _serve(self) -> None:
        while True:
            future, context, function, arguments = self._calls.get()
            did: Returned | Raised
            try:
                did = Returned(context.run(function, *arguments))
            except BaseException as error:
                did = Raised(error)
            self._idle.release()
            if future.set_running_or_notify_cancel():
                future.set_result(did)
            del future, context, function, arguments, did


# ---- processes

# Requests to a process: import a function, or call it. Its messages begin with ASK when the
# handler calls a method of its context.
LOAD: Final = b"l"
CALL: Final = b"c"
ASK: Final = b"a"
LOADED: Final = b""


class HandlerError(Exception):
    """An exception of a handler that cannot be pickled, as text."""


class Process:
    """A process that runs one call at a time, and can be killed if it hangs."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", __name__])
        self._end, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs,), name="jobq handler", daemon=True
        )
        self._process.start()
        theirs.close()
        self._loaded: bytes | None = None
        self.is_fit = True

    def load(self, function: Callable[..., Any]) -> None:
        """Make the process import a function, without calling it; raise Unable if it cannot."""
        asked = pickle.dumps(function)
        if asked == self._loaded:
            return
        try:
            self._end.send_bytes(LOAD + asked)
            words = self._end.recv_bytes()
        except (OSError, EOFError) as error:
            self.is_fit = False
            raise Unable("NO_PROCESS", "the process of the handler ended before it") from error
        if words != LOADED:
            self.is_fit = False
            raise Unable("NO_PROCESS", words.decode())
        self._loaded = asked

    def call(self, *arguments: object) -> object:
        """Call the loaded function; return its result or raise its exception."""
        context = next((a for a in arguments if isinstance(a, JobContext)), None)
        # A context is sent without its recorder and steps.
        bare = [
            replace(a, recorder=None, steps=None) if isinstance(a, JobContext) else a  # type: ignore[arg-type]
            for a in arguments
        ]
        asked = pickle.dumps(tuple(bare))
        try:
            self._end.send_bytes(CALL + asked)
            while (said := self._end.recv_bytes()).startswith(ASK):
                self._end.send_bytes(_answer_of(context, said[len(ASK) :]))
            did, words = pickle.loads(said)  # noqa: S301 - our own process
        except BaseException as error:
            self.is_fit = False  # it may still wait for an answer
            if not isinstance(error, OSError | EOFError):
                raise
            died = Failed("PROCESS_DIED", "the process of the handler ended before it did")
            raise SettledError(died) from error
        try:
            outcome: Returned | Raised = pickle.loads(did)  # noqa: S301 - as above
        except Exception as error:
            raise HandlerError(words) from error
        return value_of(outcome)

    def kill(self) -> None:
        """End the process and its children."""
        self.is_fit = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()


class Processes:
    """A number of processes, started when they are first needed."""

    def __init__(self, most: int, threads: Threads) -> None:
        self._threads = threads
        self._turns = asyncio.Semaphore(most)
        self._idle: list[Process] = []
        self._all: set[Process] = set()

    async def take(self, function: Callable[..., Any]) -> Process:
        """Wait for an idle process that has loaded a function; raise Unable without one."""
        await self._turns.acquire()
        loading = asyncio.create_task(self._load(function))
        try:
            return await asyncio.shield(loading)
        except asyncio.CancelledError:
            loading.add_done_callback(self._keep)
            raise

    async def _load(self, function: Callable[..., Any]) -> Process:
        try:
            process: Process = value_of(await self._threads.run(self._get, function))
        except BaseException as error:
            self._turns.release()
            if isinstance(error, OSError):
                raise Unable("NO_PROCESS", error_text(error), in_=1.0) from error
            raise
        return process

    def _get(self, function: Callable[..., Any]) -> Process:
        """Return a process that has loaded a function; takes long, so it runs in a thread."""
        process = self._idle.pop() if self._idle else Process()
        self._all.add(process)
        try:
            process.load(function)
        except BaseException:
            process.kill()
            self._all.discard(process)
            raise
        return process

    def give_back(self, process: Process) -> None:
        """Give a process, or a new one in its place, to another handler."""
        if process.is_fit:
            self._idle.append(process)
        else:
            process.kill()
            self._all.discard(process)
        self._turns.release()

    def close(self) -> None:
        """Kill all."""
        for process in self._all:
            process.kill()

    def _keep(self, loading: asyncio.Task[Process]) -> None:
        """Keep a process whose caller no longer waits."""
        if not loading.cancelled() and loading.exception() is None:
            self.give_back(loading.result())


def _answer_of(context: JobContext | None, asked: bytes) -> bytes:
    """Call a method of a handler's context in the worker, and return the outcome."""
    did: Returned | Raised
    try:
        name, arguments = pickle.loads(asked)  # noqa: S301 - our own process
        if name == "call":
            did = Returned(context.steps.query(*arguments) if context and context.steps else [])
        else:
            getattr(context, name)(*arguments)
            did = Returned(None)
    except BaseException as error:
        did = Raised(error)
    return pickle.dumps(did)


class _Remote:
    """Recorder and steps of a context whose worker is another process."""

    def __init__(self, end: Pipe) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._is_closed = False
        self.progress = partial(self._record, "progress")
        self.log = partial(self._record, "log")
        self.spend = partial(self._record, "spend")

    def _record(self, name: str, _context: JobContext, *arguments: object) -> Written:
        self.ask(name, *arguments)
        return Written()

    def call(self, statement: str, parameters: tuple[Any, ...]) -> list[Any]:
        rows: list[Any] = self.ask("call", statement, parameters)
        return rows

    def ask(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - what the worker says
        with self._lock:
            if self._is_closed:
                raise LeaseLost("this attempt has ended")
            self._end.send_bytes(ASK + pickle.dumps((name, arguments)))
            return value_of(pickle.loads(self._end.recv_bytes()))  # noqa: S301 - the worker's

    def close(self) -> None:
        """Let no thread that the handler has left use the pipe, which is the next call's."""
        with self._lock:
            self._is_closed = True


def _serve(end: Pipe) -> None:
    """Run calls in a process until the worker closes the pipe."""
    os.setsid()  # so that it can be killed with all that handlers start
    # Not a daemon, because multiprocessing forbids daemons to start processes.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined] # noqa: SLF001
    function: Callable[..., Any] | None = None
    with suppress(OSError, EOFError):
        while True:
            asked = end.recv_bytes()
            if function is not None and asked.startswith(CALL):
                arguments = pickle.loads(asked[1:])  # noqa: S301 - the worker's
                remote = _Remote(end)
                for context in arguments:
                    if isinstance(context, JobContext):
                        context.recorder = remote
                        context.record_steps(remote.call, is_awaited=False)
                answer = _outcome_of(function, arguments)
                remote.close()
            else:
                try:
                    function, answer = pickle.loads(asked[1:]), LOADED  # noqa: S301 - the worker's
                except BaseException as error:
                    function, answer = None, error_text(error).encode()
            end.send_bytes(answer)


def _outcome_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Call a function; return its outcome, as text if it cannot be pickled."""
    did: Returned | Raised
    try:
        try:
            did = Returned(function(*arguments))
        finally:
            for context in arguments:
                if isinstance(context, JobContext) and context.steps is not None:
                    context.steps.chunks.flush()
    except BaseException as error:
        did = Raised(error)
        with suppress(Exception):  # its own traceback does not leave the process
            error.add_note(f"In the process of the handler:\n{traceback_text(error)}")
    words = error_text(did.error) if isinstance(did, Raised) else "a result that no pickle takes"
    try:
        return pickle.dumps((pickle.dumps(did), words))
    except Exception:
        return pickle.dumps((b"", words))


# ---- connections


class Pools:
    """The threads and processes of a worker, and connections made when first needed."""

    def __init__(
        self, url: str, concurrency: int, threads: Threads, processes: Processes, *, is_pooled: bool
    ) -> None:
        def pool(kind: type[Any], *, prepares: bool = not is_pooled) -> Any:  # noqa: ANN401
            return kind(
                conninfo(url, "jobq handler", is_pooled=is_pooled, is_handler=True),
                kwargs={} if prepares else {"prepare_threshold": None},
                min_size=0,
                max_size=concurrency,
                timeout=tuning.CALL_SECONDS,
                max_idle=tuning.CALL_SECONDS,
                name="jobq handlers",
                open=False,
                configure=use_json,
            )

        self.threads = threads
        self.processes = processes
        self._pools: dict[Mode, Any] = {
            "awaited": pool(AsyncPool),
            "thread": pool(Pool),
            # may deallocate prepared statements
            "function": pool(AsyncPool, prepares=False),
        }

    @asynccontextmanager
    async def connection(self, mode: Mode) -> AsyncIterator[Any]:
        """Open a transaction, which ends with the block, on a connection for such a handler.

        If there is none, no handler has begun: it raises Unable.
        """
        pool = self._pools[mode]
        try:
            await awaited(pool.open())
            connection = await awaited(pool.getconn())
        except psycopg.Error as error:
            wait = tuning.BACKOFF_LAST
            raise Unable("NO_CONNECTION", error_text(error), in_=wait) from error
        try:
            async with AsyncExitStack() as stack:
                yield await entered(stack, connection)
        finally:
            await awaited(pool.putconn(connection))

    async def close(self) -> None:
        """Release the connections, without waiting for running calls."""
        await self._pools["awaited"].close(timeout=1)
        await self._pools["function"].close(timeout=1)
        if not self._pools["thread"].closed:
            await self.threads.run(self._pools["thread"].close, 1)
