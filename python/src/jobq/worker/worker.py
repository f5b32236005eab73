"""A worker claims jobs and runs their handlers until it is stopped."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import secrets
import socket
from asyncio import AbstractEventLoop
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Any, Final, Self

from jobq.calls.call import statement
from jobq.errors import DatabaseUnavailable, JobqError
from jobq.redaction import error_text
from jobq.registry import Registry
from jobq.version import __version__
from jobq.worker import tuning
from jobq.worker.connections import Backoff, Connections
from jobq.worker.controller import InProcess, SkippedKinds, Slots
from jobq.worker.executor import Executor
from jobq.worker.functions import Functions
from jobq.worker.heartbeat import Heartbeat
from jobq.worker.listener import Listener, Wakeups
from jobq.worker.maintenance import Learner, Maintenance
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics, Probe, Report
from jobq.worker.pools import Pools, Processes, Threads
from jobq.worker.producer import Producer
from jobq.worker.queries import DUE_IN, Queries, Queues
from jobq.worker.recorder import Journal, Recorder
from jobq.worker.signals import (
    EXIT_FAILED,
    Stop,
    leave_soon,
    stopping_on_signals,
    watching_the_loop,
)

logger = logging.getLogger("jobq.worker")

LONGEST_RELEASE: Final = 150
CANCELLED: Final = "the worker, or a part of it, was cancelled: it stops"


@dataclass
class Shared:
    """What the workers of one process share, one for each database."""

    slots: Slots
    stop: Stop
    metrics: Metrics | None  # None if they are not installed
    max_processes: InitVar[int | None]  # None means one per core

    def __post_init__(self, max_processes: int | None) -> None:
        self.threads = Threads()
        self.processes = Processes(max_processes or os.cpu_count() or 1, self.threads)


def default_name() -> str:
    """Return a name that no other worker has."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


@dataclass(eq=False)
class Worker:
    """Runs the jobs of some queues.

    Use it as an asynchronous context manager inside a service, or call `run` and let
    signals stop it. A worker is used once.

    Args:
        database: a libpq URL.
        registry: the handlers.
        queues: in the order of claims; a name that ends in ``*``, such as ``tenant-*``, stands
            for all queues that begin like it, also new ones. Or with weights: a queue of weight
            3 comes first three times as often as one of weight 1.
        concurrency: maximum number of running jobs.
        max_in_process: how many of them at most are of a queue, by queue.
        name: the name for claims; unique among workers.
        release: the release of the program with the handlers; listed with the worker, next to
            jobq's own.
        listen: whether to use notifications; otherwise it polls.
        listen_database: a direct libpq URL, if ``database`` is a pooler in transaction
            mode.
        is_pooled: whether ``database`` is such a pooler; implied by
            ``listen_database``.
        poll: polling interval in seconds.
        grace: seconds for running jobs to finish after `stop` was called.
        sleepy: whether an idle worker sends no statement until a job or a schedule is due or a
            notification arrives, for databases that suspend when idle. After a minute it is then
            no longer listed as live.
        declare: whether to declare the registry's kinds at the start.
        until_empty: stop when no job is due and none runs, for cron and for tests.
        max_jobs: stop, to be restarted, after this many jobs.
        max_bytes: stop, to be restarted, when the process uses this much memory.
        processes: number of processes for handlers with ``process=True``.
        metrics_port: where to serve /metrics, /healthz and /readyz; None serves nothing, 0
            takes a free port. If the port is taken, the worker logs a warning and runs without.
        metrics_host: the address to serve them on.
        shared: what it shares with other workers of its process.

    Raises:
        ValueError: an argument has an invalid value.
    """

    database: str
    registry: Registry
    queues: Sequence[str] | Mapping[str, float] = ("default",)
    _: KW_ONLY
    concurrency: int = 50
    max_in_process: Mapping[str, int] | None = None
    name: str | None = None
    release: str | None = None
    listen: bool = True
    listen_database: str | None = None
    is_pooled: bool = False
    poll: float = 5.0
    grace: float = 30.0
    sleepy: bool = False
    declare: bool = True
    until_empty: bool = False
    max_jobs: InitVar[int | None] = None
    max_bytes: InitVar[int | None] = None
    processes: int | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    shared: InitVar[Shared | None] = None

    def __post_init__(
        self, max_jobs: int | None, max_bytes: int | None, shared: Shared | None
    ) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if not isinstance(self.name, str | None):
            raise ValueError("name must be a text")  # noqa: TRY004 - as other arguments
        self.name = self.name or default_name()
        if self.release is not None and not 1 <= len(self.release) <= LONGEST_RELEASE:
            raise ValueError(f"release must have 1 to {LONGEST_RELEASE} characters")
        own = f"jobq {__version__}"
        self.release = own if self.release is None else f"{self.release}, {own}"
        self.is_pooled = self.is_pooled or self.listen_database is not None
        self._order = Queues(self.queues)
        self._in_process = InProcess(
            self.max_in_process or {},
            {h.kind: h.max_in_process for h in self.registry if h.max_in_process is not None},
        )
        if unknown := self._in_process.queues.keys() - set(self._order.names):
            raise ValueError(f"max_in_process of {', '.join(sorted(unknown))}: no such queue here")
        patterns = [queue for queue in self._order.names if queue.endswith("*")]
        if patterns and self._in_process.queues:
            raise ValueError("queues must be named where max_in_process limits one of them")
        if patterns and self.sleepy:
            raise ValueError("queues of a sleepy worker must be named")
        port, self.metrics_port = self.metrics_port, None  # until it is served
        self._address = None if port is None else (self.metrics_host, port)
        self._is_alone = shared is None
        metrics = Metrics(self.registry) if self._address and HAS_PROMETHEUS else None
        self._shared = shared or Shared(
            Slots(self.concurrency), Stop(max_jobs, max_bytes), metrics, self.processes
        )
        self._stop = self._shared.stop
        self._connections: Connections | None = None
        self._parts: Parts | None = None
        self._task: asyncio.Task[int] | None = None
        self._error: BaseException | None = None
        self._is_left_behind = False
        self._is_ready = asyncio.Event()

    # ---- run and stop

    async def run(self, *, handle_signals: bool = True) -> int:
        """Work until stopped; return an exit code.

        After SIGTERM, SIGINT or SIGHUP, running jobs have `grace` seconds to finish; the others
        return to their queue. A second signal ends the worker at once.

        Args:
            handle_signals: whether the process belongs to the worker: it then handles signals,
                interrupts coroutines that block the event loop, and ends the process if hanging
                handlers cannot be stopped. Only in the main thread.

        Returns:
            0 if it was stopped, 75 if it must be restarted, 128 plus the signal's number
            after a second signal.

        Raises:
            NotPermitted: the login lacks the role of a worker.
            NotDeployed: jobq is not installed in the database.
        """
        with ExitStack() as stack:
            if handle_signals:
                stack.enter_context(stopping_on_signals(self._stop))
                stack.enter_context(watching_the_loop())
            await self._work_until_stopped()
        if handle_signals and self.is_held_up:
            leave_soon(self._stop.exit_code)
        return self._stop.exit_code

    async def stop(self, grace: float | None = None) -> None:
        """Stop like SIGTERM, and return when everything has stopped.

        It returns within the grace period plus 20 seconds, whatever handlers do.

        Args:
            grace: seconds for running jobs, instead of the worker's own.
        """
        if grace is not None:
            self.grace = grace
        self._stop.requested.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(handle_signals=False), name="jobq worker")
        if cancelled := await _first([self._task, self._is_ready], None):
            self.grace = 0.0
            self._stop.requested.set()
            await _first([self._task], None)
            raise cancelled
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Work while an ASGI application runs: ``Starlette(lifespan=…)``."""
        async with self:
            yield

    # ---- health and metrics

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._parts.producer.running) if self._parts else 0

    @property
    def stuck(self) -> int:
        """How many slots are occupied by handlers of jobs that were settled long ago."""
        return self._parts.producer.stuck if self._parts else 0

    @property
    def is_held_up(self) -> bool:
        """Whether handlers of settled jobs still run, or a part has not stopped."""
        return self._is_left_behind or bool(self._parts and self._parts.producer.overdue)

    def health(self) -> dict[str, object]:
        """Return the worker's health with reasons.

        ``alive``: its parts run. ``ok``: the database answers too.
        """
        since = self._connections.answered_ago if self._connections else None
        alive = self._parts is not None and self._stop.exit_code != EXIT_FAILED
        silent = max(2 * tuning.SIGN_OF_LIFE, 4 * self.poll)
        return {
            "alive": alive,
            "ok": alive and since is not None and (since < silent or self.sleepy),
            "worker": self.name,
            "database_answered_seconds_ago": None if since is None else round(since, 1),
            "running": self.running,
            "stuck": self.stuck,
            "lacks": self._parts.skipped.texts() if self._parts else {},
            "is_stopping": self._stop.requested.is_set(),
        }

    def metrics_text(self) -> bytes | None:
        """Return the metrics as text; None without the extra ``metrics``."""
        metrics = self._shared.metrics
        if metrics is None or self._parts is None:
            return None
        return metrics.text(self.running, self.stuck)

    # ---- parts

    async def _work_until_stopped(self) -> None:
        """Work in a separate task, which is abandoned if it does not end in time."""
        stop = self._stop
        work = asyncio.create_task(self._work(), name="jobq work")
        cancelled = await _first([work, stop.requested], None)
        if cancelled or not (work.done() or stop.requested.is_set()):
            logger.critical(CANCELLED)
            stop.fail()
            stop.at_once.set()
        cancelled = await _first([work, stop.at_once], self.grace) or cancelled
        cancelled = await _first([work], tuning.STOP_WITHIN) or cancelled
        if not work.done():
            logger.critical("a part of the worker did not stop in time and is abandoned")
            self._is_left_behind = True
            stop.fail()
            work.cancel()
        if cancelled is not None:
            raise cancelled
        if work.done():
            await work

    async def _work(self) -> None:
        async with AsyncExitStack() as stack:
            connections = Connections(self.database, is_pooled=self.is_pooled)
            self._connections = connections
            stack.push_async_callback(connections.close)
            await self._start(connections)
            if self._stop.requested.is_set():
                return
            if self._is_alone:
                stack.callback(self._shared.processes.close)
            pools = Pools(
                self.database, self.concurrency, self._shared.threads, self._shared.processes,
                is_pooled=self.is_pooled,
            )  # fmt: skip
            stack.push_async_callback(pools.close)
            parts = Parts(self, connections, pools)
            await parts.learner.learn()
            self._parts = parts
            if self._address is not None:
                probe = Probe(self.health, self.metrics_text)
                self.metrics_port = await probe.open(*self._address)
                stack.push_async_callback(probe.close)
            tasks = {name: self._part(name, work) for name, work in parts.works()}
            logger.info("worker started", extra={"worker": self.name, "queues": self._order.names})
            self._is_ready.set()
            try:
                await self._stop.requested.wait()
            except asyncio.CancelledError:  # whoever cancels all tasks gets an orderly end too
                logger.critical(CANCELLED)
                self._stop.fail()
            finally:
                await self._shut_down(parts, tasks)
            if self._error is not None:
                raise self._error

    async def _start(self, connections: Connections) -> None:
        """Wait for the database, and declare the kinds; raise as `run`."""
        backoff = Backoff()
        while not self._stop.requested.is_set():
            try:
                await connections.call(DUE_IN, [self._order.names, None])
                for call in self.registry.definitions() if self.declare else ():
                    await connections.call(statement(call.function, tuple(call.given)), call.given)
            except DatabaseUnavailable as error:
                logger.warning("the database is unavailable: %s", error)
                await _first([self._stop.requested], backoff.next())
            else:
                return

    def _part(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a part in its own task. If it ends unexpectedly, the worker stops."""
        task = asyncio.create_task(work, name=f"jobq {name}")
        task.add_done_callback(self._on_part_end)
        return task

    def _on_part_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None and self._stop.requested.is_set():
            return
        self._error = self._error or error
        if error is None:
            logger.critical(CANCELLED)
        elif isinstance(error, JobqError):
            logger.critical("the worker cannot continue: %s", error_text(error))
        else:
            logger.critical("a part of the worker failed", exc_info=error)
        self._stop.fail()

    # ---- the end

    async def _shut_down(self, parts: Parts, tasks: dict[str, asyncio.Task[None]]) -> None:
        """Finish running jobs, release the rest after the grace period, and settle everything.

        Restarts the producer and the heartbeat for this, so their state does not matter, even if
        they were cancelled.
        """
        producer = parts.producer
        producer.stop_claiming()
        first = [tasks["producer"], tasks["heartbeat"]]
        for task in first:
            task.cancel()
        settling = tasks["settling"] = self._part("settling", producer.run())
        tasks["last heartbeats"] = self._part("last heartbeats", parts.heartbeat.run())
        if parts.listener is not None:
            await parts.listener.close()
        if running := len(producer.running):
            logger.info("stopping: waiting up to %g s for %d jobs", self.grace, running)
        await _first([settling, self._stop.at_once], self.grace)
        unfinished = list(producer.running)
        coroutines = {job.task for job in unfinished if job.is_interruptible and job.task}
        for job in unfinished:
            job.interrupt()
        if coroutines:
            await asyncio.wait(coroutines, timeout=tuning.UNWIND)
        if unfinished:
            logger.warning("releasing %d jobs that did not finish in time", len(unfinished))
        producer.abandon()
        await asyncio.wait({settling}, timeout=tuning.LAST_CALLS)
        if not settling.done():
            logger.error("jobs could not be settled; their leases will expire")
        await parts.executor.finish(tuning.LAST_CALLS)
        # A second cancellation would leave a running statement to the server, and a heartbeat that
        # ends there after retire() would list the worker again.
        await asyncio.wait(first, timeout=tuning.UNWIND)
        for task in tasks.values():
            task.cancel()
        await asyncio.wait(tasks.values(), timeout=tuning.UNWIND)
        with suppress(TimeoutError, JobqError):
            async with asyncio.timeout(tuning.LAST_CALLS):
                await parts.recorder.flush()
                await parts.queries.retire()
        logger.info("worker stopped", extra={"worker": self.name, "jobs": self._stop.jobs})


async def _first(
    things: Iterable[asyncio.Future[Any] | asyncio.Event], seconds: float | None
) -> asyncio.CancelledError | None:
    """Wait for the first of these; return the cancellation if one ended the wait."""
    own = [asyncio.ensure_future(t.wait()) for t in things if isinstance(t, asyncio.Event)]
    tasks = [*own, *(t for t in things if isinstance(t, asyncio.Future))]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError as error:
        return error
    finally:
        for task in own:
            task.cancel()
    return None


class Parts:
    """The parts of a running worker; each uses only earlier ones."""

    def __init__(self, worker: Worker, connections: Connections, pools: Pools) -> None:
        registry, shared, order = worker.registry, worker._shared, worker._order  # noqa: SLF001
        name, release, in_process = str(worker.name), str(worker.release), worker._in_process  # noqa: SLF001
        self.wakeups = wakeups = Wakeups()
        self.skipped = skipped = SkippedKinds()
        self.queries = queries = Queries(connections, name, order, skipped, in_process, release)
        self.recorder = Recorder(connections)
        self.report = report = Report(name, shared.metrics, skipped, shared.stop)
        self.listener = None
        if worker.listen and not worker.until_empty:
            url = worker.listen_database or worker.database
            self.listener = Listener(url, order.names, wakeups, connections.links)
        journal = Journal(connections)
        self.executor = Executor(
            name, registry, pools, self.recorder, journal, skipped,
            Functions(journal, pools, skipped), worker.concurrency, release,
        )  # fmt: skip
        self.producer = producer = Producer(
            queries, self.executor, report, self.listener, wakeups, shared.stop,
            slots=shared.slots, in_process=in_process, poll=worker.poll,
            until_empty=worker.until_empty,
        )  # fmt: skip
        is_sleepy = worker.sleepy
        self.heartbeat = Heartbeat(queries, connections, producer, wakeups, is_sleepy=is_sleepy)
        self.maintenance = Maintenance(queries, producer, wakeups, is_sleepy=is_sleepy)
        self.learner = Learner(registry, skipped, report, wakeups, is_sleepy=is_sleepy)

    def works(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        """Yield what runs in tasks of its own until the worker stops."""
        yield "producer", self.producer.run()
        yield "heartbeat", self.heartbeat.run()
        yield "maintenance", self.maintenance.run()
        yield "process", self.producer.supervise()
        if self.learner.registry.beyond is not None:
            yield "learner", self.learner.run()
        if self.listener is not None:
            yield "listener", self.listener.run()


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """Return uvloop's loop factory if installed (the extra ``fast``), else None for asyncio's."""
    try:
        uvloop: Any = importlib.import_module("uvloop")
    except ImportError:
        return None
    factory: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return factory
