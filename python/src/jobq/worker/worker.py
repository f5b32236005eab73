"""A worker: it claims jobs and runs their handlers until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

import jobq
from jobq.call import statement
from jobq.errors import DatabaseUnavailable, JobqError
from jobq.redaction import error_text
from jobq.worker import forks
from jobq.worker.attempts import Attempts
from jobq.worker.calls import Calls
from jobq.worker.crew import Crew, leave_soon
from jobq.worker.dispatcher import Dispatcher
from jobq.worker.exchange import Exchange
from jobq.worker.heart import Heart
from jobq.worker.journal import WorkerJournal
from jobq.worker.link import Pace, Silence
from jobq.worker.links import Links
from jobq.worker.listener import Listener
from jobq.worker.loops import KeptLoop
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics
from jobq.worker.notes import Notes
from jobq.worker.places import Places
from jobq.worker.probe import Probe
from jobq.worker.protocol import Protocol
from jobq.worker.queues import Queues, check_queues
from jobq.worker.slots import Slots
from jobq.worker.stop import EXIT_FAILED, EXIT_OK, EXIT_RECYCLE, Signals, Stop
from jobq.worker.unknown import Unknown
from jobq.worker.upkeep import learn, maintain, patrol
from jobq.worker.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

    from jobq.registry import Registry

__all__ = ["EXIT_FAILED", "EXIT_OK", "EXIT_RECYCLE", "Worker"]

logger = logging.getLogger("jobq.worker")

# Seconds that coroutines have to end when they are interrupted at the end of the grace period.
UNWIND: Final = 1.0
# Seconds for the last settlements and for on_dead, when all jobs have ended.
LAST_WORDS: Final = 5.0
# Seconds without an answer of the database after which a worker does not call itself ready:
# heartbeats and upkeep ask every few seconds.
SILENT: Final = 30.0
LONGEST_RELEASE: Final = 150
CANCELLED: Final = "the worker, or a part of it, was cancelled: it stops"


class Worker:
    """Runs the jobs of some queues.

    Use it as an asynchronous context manager inside a service, or call `run` and let
    signals stop it. A worker is used once.

    Args:
        database: a libpq URL.
        registry: the handlers.
        queues: in the order in which to look at them; or with weights, in which case a
            queue of weight 3 is looked at first three times as often as one of weight 1.
        concurrency: how many jobs run at a time.
        name: under which jobs are claimed; unique among workers.
        release: of the program that the handlers are part of; told with jobq's own to who
            looks at workers.
        listen: whether to be woken by notifications; else it polls.
        listen_database: a libpq URL that leads to the server directly, when ``database``
            leads to a pooler in transaction mode.
        is_pooled: whether ``database`` leads to such a pooler; implied by
            ``listen_database``.
        poll: seconds between looks when nothing happens.
        grace: seconds that running jobs have after `stop` was called.
        declare: whether to declare the registry's kinds at the start.
        until_empty: stop when no job is due and none runs, for cron and for tests.
        max_jobs: stop to be started afresh after so many jobs.
        max_bytes: stop to be started afresh when the process uses so much memory.
        processes: how many processes run handlers registered with ``process=True``.
        metrics_port: where to serve /metrics, /healthz and /readyz; None serves nothing, 0
            takes a free port. Where it is taken the worker warns, and works without.
        metrics_host: the address to serve them on.
        crew: with whom it shares what a process has, where it is one of several.

    Raises:
        ValueError: an argument may not have this value.
    """

    def __init__(
        self,
        database: str,
        registry: Registry,
        queues: Sequence[str] | Mapping[str, float] = ("default",),
        *,
        concurrency: int = 50,
        name: str | None = None,
        release: str | None = None,
        listen: bool = True,
        listen_database: str | None = None,
        is_pooled: bool = False,
        poll: float = 5.0,
        grace: float = 30.0,
        declare: bool = True,
        until_empty: bool = False,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
        processes: int | None = None,
        metrics_port: int | None = None,
        metrics_host: str = "127.0.0.1",
        crew: Crew | None = None,
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        check_queues(queues)
        if not isinstance(name, str | None):
            raise ValueError("name must be one text")  # noqa: TRY004 - as other arguments
        self._release = release_of(release)
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._database = database
        self._registry = registry
        self._queues = Queues(queues)
        self._concurrency = concurrency
        self._listen_database = (
            (listen_database or database) if listen and not until_empty else None
        )
        self._is_pooled = is_pooled or listen_database is not None
        self._poll = poll
        self._grace = grace
        self._declare = declare
        self._until_empty = until_empty
        self._processes = processes
        self._address = None if metrics_port is None else (metrics_host, metrics_port)
        self._crew = crew or Crew(
            Slots(concurrency),
            Stop(max_jobs, max_bytes),
            Metrics(registry) if self._address and HAS_PROMETHEUS else None,
        )
        self._is_alone = crew is None
        self._metrics = self._crew.metrics
        self._stop = self._crew.stop
        self._links: Links | None = None
        self._attempts: Attempts | None = None
        self._dispatcher: Dispatcher | None = None
        self._probe: Probe | None = None
        self._task: asyncio.Task[int] | None = None
        self._is_ready = asyncio.Event()

    # ---- life

    async def run(self, *, handle_signals: bool = True) -> int:
        """Work until told to stop; return an exit code.

        SIGTERM and SIGINT have the running jobs finished, for `grace` seconds at most; what
        is not finished then goes back to its queue. A second signal ends it at once.

        Args:
            handle_signals: whether the process is the worker's: it reacts to them, has
                coroutines interrupted that hold up the event loop, and ends the process
                where handlers hang that nothing can stop. Only in the main thread.

        Returns:
            0 when told to stop, 75 when it is to be started afresh, 128 and the signal's
            number after a second signal.

        Raises:
            NotPermitted: the database does not let this user work.
            NotDeployed: jobq is not installed there.
        """
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(Signals(self._stop))
                stack.enter_context(Watchdog())
            await self._work(stack)
        if handle_signals and self.is_overdue:
            leave_soon(self._stop.exit_code)
        return self._stop.exit_code

    async def stop(self, grace: float | None = None) -> None:
        """Stop as SIGTERM does, and return when everything has stopped.

        Args:
            grace: seconds for running jobs, instead of the worker's own.
        """
        if grace is not None:
            self._grace = grace
        self._stop.asked.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(handle_signals=False), name="jobq worker")
        ready = asyncio.create_task(self._is_ready.wait())
        await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if self._task.done():
            ready.cancel()
            self._task.result()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Work for as long as an ASGI application lives: ``Starlette(lifespan=…)``."""
        async with self:
            yield

    # ---- what it tells

    @property
    def running(self) -> int:
        """How many jobs run."""
        return len(self._dispatcher.running) if self._dispatcher else 0

    @property
    def stuck(self) -> int:
        """How many slots are held by handlers that run on long after their jobs were settled."""
        return self._dispatcher.stuck if self._dispatcher else 0

    @property
    def is_overdue(self) -> bool:
        """Whether handlers run on whose jobs are settled."""
        return self._dispatcher is not None and bool(self._dispatcher.overdue)

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics, /healthz and /readyz, once they are served."""
        return self._probe.port if self._probe else None

    def health(self) -> dict[str, object]:
        """Tell whether the worker lives and does its work, and the reasons.

        ``alive`` says that its parts run, ``ok`` that the database has answered of late too.
        """
        since = self._links.answered_ago if self._links else None
        alive = self._dispatcher is not None and self._stop.exit_code != EXIT_FAILED
        return {
            "alive": alive,
            "ok": alive and since is not None and since < max(SILENT, 4 * self._poll),
            "worker": self.name,
            "database_answered_seconds_ago": None if since is None else round(since, 1),
            "running": self.running,
            "stuck": self.stuck,
            "lacks": self._attempts.lacks.texts() if self._attempts else {},
            "is_stopping": self._stop.asked.is_set(),
        }

    def metrics_text(self) -> bytes | None:
        """Return Prometheus's text; None where the extra ``metrics`` is not installed."""
        if self._metrics is None or self._dispatcher is None:
            return None
        return self._metrics.text(self.running, self.stuck)

    # ---- the parts

    async def _work(self, stack: AsyncExitStack) -> None:
        silence = Silence()
        links = self._links = Links(self._database, is_pooled=self._is_pooled, silence=silence)
        stack.push_async_callback(links.close)
        forks.guard(links)
        await self._start(links)
        if self._stop.asked.is_set():
            return
        threads, processes = self._crew.rooms(self._processes)
        if self._is_alone:
            stack.callback(self._crew.close)
        places = Places(
            self._database, self._concurrency, threads, processes, is_pooled=self._is_pooled
        )
        stack.push_async_callback(places.close)
        unknown = Unknown(is_lasting=not self._registry.has_fallback)
        protocol = self._protocol(links, unknown)
        notes = Notes(protocol)
        attempts = Attempts(
            self.name,
            self._registry,
            places,
            notes,
            WorkerJournal(protocol),
            unknown,
            self._metrics,
            self._stop,
        )
        listener = self._make_listener(silence)
        calls = Calls(places, self._queues.names, unknown, attempts, self._poll)
        unknown.on_met = calls.met

        def end_when_empty() -> None:
            if calls.is_idle:
                self._stop.asked.set()

        dispatcher = Dispatcher(
            protocol,
            Exchange(protocol),
            listener,
            attempts,
            self._queues,
            slots=self._crew.slots,
            poll=self._poll,
            on_empty=end_when_empty if self._until_empty else None,
        )
        heart = Heart(protocol, dispatcher)

        def look() -> None:
            dispatcher.look()
            calls.look()

        self._attempts, self._dispatcher = attempts, dispatcher
        await attempts.learn()
        await self._serve(stack)
        if listener is not None:
            stack.push_async_callback(listener.close)
            listener.on_job, listener.on_cancel = look, heart.ask
            await self._background(stack, listener.run())
        beating = await self._background(stack, heart.run())
        called = await self._background(stack, calls.run())
        await self._background(stack, maintain(protocol, links))
        await self._background(stack, learn(attempts))
        await self._background(stack, patrol(dispatcher, self._stop, self._concurrency))
        loop = KeptLoop()
        work = asyncio.create_task(dispatcher.run(), name="jobq dispatcher")
        try:
            await self._wait_until_told(work)
        finally:
            loop.restore()
            if await has_ended(beating):
                await self._background(stack, heart.run())
            calls.stop()
            await self._wind_down(work, called, listener)
            await self._take_leave(notes, protocol)

    def _make_listener(self, silence: Silence) -> Listener | None:
        if self._listen_database is None:
            return None
        return Listener(self._listen_database, self._queues.names, silence)

    def _protocol(self, links: Links, unknown: Unknown) -> Protocol:
        return Protocol(
            links,
            self.name,
            self._queues.names,
            unknown,
            self._release,
            stuck=lambda: self.stuck,
        )

    async def _start(self, links: Links) -> None:
        """Wait for the database, and declare the kinds.

        Raises:
            NotPermitted: the database does not let this user work.
            NotDeployed: jobq is not installed there.
        """
        pace = Pace()
        while not self._stop.asked.is_set():
            try:
                unknown = Unknown(is_lasting=True)
                await self._protocol(links, unknown).due_in()
                if self._declare:
                    for call in self._registry.definitions():
                        given = call.given
                        await links.call(statement(call.function, tuple(given)), given)
            except DatabaseUnavailable as error:
                logger.warning("the database is unavailable: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pace.next()):
                        await self._stop.asked.wait()
            else:
                return

    async def _serve(self, stack: AsyncExitStack) -> None:
        if self._address is None:
            return
        host, port = self._address
        probe = Probe(self)
        try:
            await probe.open(host, port)
        except OSError as error:
            logger.warning("no metrics and no health at %s:%d: %s", host, port, error)
            return
        self._probe = probe
        stack.push_async_callback(probe.close)
        logger.info("metrics at http://%s:%d/metrics", host, probe.port)

    async def _background(
        self, stack: AsyncExitStack, coroutine: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        """Run something beside the work, until the worker has stopped."""
        task = asyncio.create_task(coroutine)
        task.add_done_callback(self._on_background_end)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

        stack.push_async_callback(end)
        return task

    def _on_background_end(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            if not self._stop.asked.is_set():
                logger.critical(CANCELLED)
                self._stop.fail()
        elif task.exception() is not None:
            logger.critical("a part of the worker failed", exc_info=task.exception())
            self._stop.fail()

    async def _wait_until_told(self, work: asyncio.Task[None]) -> None:
        """Wait, at work, to be told to stop; raise what has ended the dispatcher."""
        logger.info("worker started", extra={"worker": self.name, "queues": self._queues.names})
        self._is_ready.set()
        told = asyncio.create_task(self._stop.asked.wait())
        try:
            await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            logger.critical(CANCELLED)
            self._stop.fail()
            self._stop.at_once.set()
            raise
        finally:
            told.cancel()
        if work.done() and not work.cancelled() and (error := work.exception()) is not None:
            logger.critical("the worker cannot go on: %s", error_text(error))
            self._stop.fail()
            raise error
        if not self._stop.asked.is_set():
            logger.critical(CANCELLED)
            self._stop.fail()

    async def _wind_down(
        self, work: asyncio.Task[None], called: asyncio.Task[None], listener: Listener | None
    ) -> None:
        """Finish what runs, give back what does not finish in time, and settle everything."""
        dispatcher, attempts = self._dispatcher, self._attempts
        assert dispatcher is not None and attempts is not None  # noqa: S101 - it worked
        dispatcher.stop_claiming()
        if await has_ended(work):
            work = asyncio.create_task(dispatcher.run())
        if listener is not None:
            await listener.close()
        running = len(dispatcher.running)
        if running:
            logger.info("stopping: waiting up to %g s for %d jobs", self._grace, running)
        abort = asyncio.create_task(self._stop.at_once.wait())
        done = asyncio.create_task(asyncio.wait({work, called}))
        await asyncio.wait({done, abort}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        done.cancel()
        abort.cancel()
        unfinished = dispatcher.running
        tasks = {held.task for held in unfinished if held.is_interruptible and held.task}
        for held in unfinished:
            held.interrupt()
        if tasks:
            await asyncio.wait(tasks, timeout=UNWIND)
        if unfinished:
            logger.warning("giving back %d jobs that did not finish in time", len(unfinished))
        dispatcher.abandon()
        await asyncio.wait({work}, timeout=LAST_WORDS)
        await attempts.finish(LAST_WORDS)
        if not work.done():
            logger.error("jobs could not be settled; their leases will expire")
            work.cancel()

    async def _take_leave(self, notes: Notes, protocol: Protocol) -> None:
        await notes.flush()
        with suppress(JobqError):
            await protocol.retire()
        logger.info("worker stopped", extra={"worker": self.name, "jobs": self._stop.jobs})


async def has_ended(part: asyncio.Task[None]) -> bool:
    """Tell whether a part does its work no more; who is being cancelled is waited for."""
    if part.cancelling():
        await asyncio.wait({part})
    return part.done()


def release_of(release: str | None) -> str:
    """Return what a worker says that it runs: its program's release, and jobq's.

    Raises:
        ValueError: it may not be so long.
    """
    if release is None:
        return f"jobq {jobq.__version__}"
    if not 1 <= len(release) <= LONGEST_RELEASE:
        raise ValueError(f"release must have 1 to {LONGEST_RELEASE} characters")
    return f"{release}, jobq {jobq.__version__}"
