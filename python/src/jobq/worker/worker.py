"""A worker: it claims jobs and runs their handlers until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import signal
import socket
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Self

from jobq import tracing
from jobq.call import statement
from jobq.database import use_json
from jobq.errors import DatabaseUnavailable, JobqError, NotDeployed, NotPermitted
from jobq.worker.dispatcher import Dispatcher
from jobq.worker.exchange import DUE_IN, Exchange
from jobq.worker.execution import Execution
from jobq.worker.heart import Heart
from jobq.worker.held import Failed, Held, Released, Settlement
from jobq.worker.link import Link, Pace, Silence
from jobq.worker.listener import Listener
from jobq.worker.logs import current_job, job_fields
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics
from jobq.worker.notes import Notes
from jobq.worker.places import Places
from jobq.worker.probe import Probe
from jobq.worker.upkeep import maintain, resident_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from jobq.registry import Registry

__all__ = ["EXIT_FAILED", "EXIT_OK", "EXIT_RECYCLE", "Worker"]

logger = logging.getLogger("jobq.worker")

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_RECYCLE: Final = 75
UNWIND: Final = 1.0
LAST_WORDS: Final = 5.0


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
        listen: whether to be woken by notifications; else it polls.
        listen_database: a libpq URL that leads to the server directly, when ``database``
            leads to a pooler in transaction mode.
        is_pooled: whether ``database`` leads to such a pooler; implied by
            ``listen_database``.
        poll: seconds between looks when nothing happens.
        grace: seconds that running jobs have after `stop` was called.
        declare: whether to declare the registry's kinds at the start.
        max_jobs: stop to be started afresh after so many jobs.
        max_bytes: stop to be started afresh when the process uses so much memory.
        processes: how many processes run handlers registered with ``process=True``.
        metrics_port: where to serve /metrics and /healthz; None serves nothing, 0 takes a
            free port.
        metrics_host: the address to serve them on.
    """

    def __init__(
        self,
        database: str,
        registry: Registry,
        queues: Sequence[str] | Mapping[str, float] = ("default",),
        *,
        concurrency: int = 50,
        name: str | None = None,
        listen: bool = True,
        listen_database: str | None = None,
        is_pooled: bool = False,
        poll: float = 5.0,
        grace: float = 30.0,
        declare: bool = True,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
        processes: int | None = None,
        metrics_port: int | None = None,
        metrics_host: str = "127.0.0.1",
    ) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if not queues or isinstance(queues, str):
            raise ValueError("queues must name at least one queue")
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._database = database
        self._registry = registry
        self._weights = dict(queues.items()) if hasattr(queues, "items") else {}
        self._queues = list(queues)
        self._concurrency = concurrency
        self._listen_database = (listen_database or database) if listen else None
        self._is_pooled = is_pooled or listen_database is not None
        self._poll = poll
        self._grace = grace
        self._declare = declare
        self._max_jobs = max_jobs
        self._max_bytes = max_bytes
        self._processes = processes
        self._address = None if metrics_port is None else (metrics_host, metrics_port)
        self._metrics: Metrics | None = None
        self._stop = asyncio.Event()
        self._abort = asyncio.Event()
        self._ended = 0
        self._exit_code = EXIT_OK
        self._last_words: set[asyncio.Future[Any]] = set()
        self._dispatcher: Dispatcher | None = None
        self._probe: Probe | None = None
        self._task: asyncio.Task[int] | None = None
        self._is_ready = asyncio.Event()
        self._is_traced = tracing.is_on()

    # ---- life

    async def run(self, *, handle_signals: bool = True) -> int:
        """Work until told to stop; return an exit code.

        SIGTERM and SIGINT have the running jobs finished, for `grace` seconds at most; what
        is not finished then goes back to its queue. A second signal ends it at once.

        Args:
            handle_signals: whether to react to them; only in the main thread.

        Returns:
            0 when told to stop, 75 when it is to be started afresh, 128 and the signal's
            number after a second signal.

        Raises:
            NotPermitted: the database does not let this user work.
            NotDeployed: jobq is not installed there.
        """
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(_Signals(self))
            await self._work(stack)
        return self._exit_code

    async def stop(self, grace: float | None = None) -> None:
        """Stop as SIGTERM does, and return when everything has stopped.

        Args:
            grace: seconds for running jobs, instead of the worker's own.
        """
        if grace is not None:
            self._grace = grace
        self._stop.set()
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

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics and /healthz, once they are served."""
        return self._probe.port if self._probe else None

    def health(self) -> dict[str, object]:
        """Tell whether the worker does its work: ``ok``, and the reasons."""
        dispatcher = self._dispatcher
        since = time.monotonic() - dispatcher.answered_at if dispatcher else None
        is_ok = since is not None and since < max(30.0, 4 * self._poll)
        return {
            "ok": is_ok,
            "worker": self.name,
            "database_answered_seconds_ago": None if since is None else round(since, 1),
            "running": len(dispatcher.running) if dispatcher else 0,
            "is_stopping": self._stop.is_set(),
        }

    # ---- the parts

    async def _work(self, stack: AsyncExitStack) -> None:
        silence = Silence()
        link, upkeep = (
            Link(
                self._database,
                name,
                is_pooled=self._is_pooled,
                configure=use_json,
                silence=silence,
            )
            for name in ("jobq heartbeat", "jobq upkeep")
        )
        stack.push_async_callback(link.close)
        stack.push_async_callback(upkeep.close)
        await self._start(link)
        if self._stop.is_set():
            return
        places = Places(
            self._database, self._concurrency, self._processes, is_pooled=self._is_pooled
        )
        stack.push_async_callback(places.close)
        notes = Notes(link)
        execution = Execution(self._registry, places, notes)
        exchanges = [
            Exchange(self._database, self.name, is_pooled=self._is_pooled, silence=silence)
            for _ in range(2)
        ]
        for exchange in exchanges:
            stack.push_async_callback(exchange.close)
        listener = self._make_listener(silence)
        dispatcher = Dispatcher(
            exchanges,
            listener,
            lambda held: self._run_job(execution, held),
            lambda: exchanges[0].due_in(self._queues),
            self._order,
            slots=self._concurrency,
            poll=self._poll,
            on_start=self._on_start,
            on_end=lambda held, outcome: self._on_end(execution, held, outcome),
        )
        heart = Heart(link, self.name, self._queues, dispatcher)
        self._dispatcher = dispatcher
        await self._serve(stack)
        if listener is not None:
            stack.push_async_callback(listener.close)
            listener.on_job, listener.on_cancel = dispatcher.look, heart.ask
            await self._background(stack, listener.run())
        await self._background(stack, heart.run())
        await self._background(stack, maintain(upkeep))
        work = asyncio.create_task(dispatcher.run(), name="jobq dispatcher")
        logger.info("worker started", extra={"worker": self.name, "queues": self._queues})
        self._is_ready.set()
        await self._wait_until_told(work)
        await self._wind_down(dispatcher, work, listener)
        await notes.flush()
        with suppress(JobqError):
            await link.call("select jobq.retire_worker(%s)", [self.name])
        logger.info("worker stopped", extra={"worker": self.name, "jobs": self._ended})

    def _make_listener(self, silence: Silence) -> Listener | None:
        if self._listen_database is None:
            return None
        return Listener(self._listen_database, self._queues, silence)

    async def _start(self, link: Link) -> None:
        """Wait for the database, and declare the kinds.

        Raises:
            NotPermitted: the database does not let this user work.
            NotDeployed: jobq is not installed there.
        """
        pace = Pace()
        while not self._stop.is_set():
            try:
                await link.call(DUE_IN, [self._queues])
                if self._declare:
                    for call in self._registry.definitions():
                        given = call.given
                        text = statement(call.function, tuple(given))
                        await link.call(text, given)
            except (NotPermitted, NotDeployed):
                raise
            except DatabaseUnavailable as error:
                logger.warning("the database is unavailable: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pace.next()):
                        await self._stop.wait()
            else:
                return

    async def _serve(self, stack: AsyncExitStack) -> None:
        if self._address is None:
            return
        if HAS_PROMETHEUS:
            self._metrics = Metrics()
        self._probe = Probe(self.health, self._metrics_text)
        await self._probe.open(*self._address)
        stack.push_async_callback(self._probe.close)
        host = self._address[0]
        logger.info("metrics at http://%s:%d/metrics", host, self._probe.port)

    async def _background(self, stack: AsyncExitStack, coroutine: Any) -> None:  # noqa: ANN401
        """Run something beside the work, until the worker has stopped."""
        task = asyncio.create_task(coroutine)
        task.add_done_callback(self._on_background_end)

        async def end() -> None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

        stack.push_async_callback(end)

    def _on_background_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            logger.critical("a part of the worker failed", exc_info=task.exception())
            self._exit_code = EXIT_FAILED
            self._stop.set()

    async def _wait_until_told(self, work: asyncio.Task[None]) -> None:
        told = asyncio.create_task(self._stop.wait())
        await asyncio.wait({work, told}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()
        if work.done() and work.exception() is not None:
            raise work.exception()  # type: ignore[misc]

    async def _wind_down(
        self, dispatcher: Dispatcher, work: asyncio.Task[None], listener: Listener | None
    ) -> None:
        """Finish what runs, give back what does not finish in time, and settle everything."""
        dispatcher.stop_claiming()
        if listener is not None:
            await listener.close()
        running = len(dispatcher.running)
        if running:
            logger.info("stopping: waiting up to %g s for %d jobs", self._grace, running)
        abort = asyncio.create_task(self._abort.wait())
        await asyncio.wait({work, abort}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        abort.cancel()
        unfinished = [held for held in dispatcher.running if held.settlement is None]
        for held in unfinished:
            held.interrupt()
        tasks = {held.task for held in unfinished if held.is_interruptible and held.task}
        if tasks:
            await asyncio.wait(tasks, timeout=UNWIND)
        if unfinished:
            logger.warning("giving back %d jobs that did not finish in time", len(unfinished))
        dispatcher.abandon()
        await asyncio.wait({work, *self._last_words}, timeout=LAST_WORDS)
        if not work.done():
            logger.error("jobs could not be settled; their leases will expire")
            work.cancel()

    # ---- the jobs

    async def _run_job(self, execution: Execution, held: Held) -> Settlement:
        current_job.set((held, self.name))
        if not self._is_traced:
            return await execution.run(held)
        with tracing.attempt_span(held, self.name) as span:
            settlement = await execution.run(held)
            if isinstance(settlement, Failed):
                tracing.note_failure(span, settlement.code, settlement.error)
            return settlement

    def _on_start(self, held: Held) -> None:
        if self._metrics is not None:
            self._metrics.started(held)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("job started", extra={"job_fields": job_fields(held, self.name)})

    def _on_end(self, execution: Execution, held: Held, outcome: str) -> None:
        self._ended += held.started_at > 0
        if self._metrics is not None:
            self._metrics.ended(held, outcome)
        self._log_end(held, outcome)
        if outcome == "dead" and isinstance(held.settlement, Failed):
            last_words = execution.has_died(held, held.settlement)
            if last_words is not None:
                self._last_words.add(last_words)
                last_words.add_done_callback(self._last_words.discard)
        self._consider_recycling()

    def _log_end(self, held: Held, outcome: str) -> None:
        level = _LEVELS.get(outcome, logging.WARNING)
        if not logger.isEnabledFor(level):
            return
        fields = job_fields(held, self.name)
        fields["status"] = outcome
        if held.started_at:
            fields["duration_ms"] = round((time.monotonic() - held.started_at) * 1000, 1)
        if isinstance(held.settlement, Failed):
            fields["error_code"] = held.settlement.code
            fields["error"] = held.settlement.error
        elif isinstance(held.settlement, Released) and held.settlement.run_at:
            fields["run_at"] = held.settlement.run_at
        logger.log(level, "job %s", outcome, extra={"job_fields": fields})

    def _consider_recycling(self) -> None:
        if self._stop.is_set():
            return
        is_due = self._max_jobs is not None and self._ended >= self._max_jobs
        if self._max_bytes is not None and self._ended % 100 == 0:
            is_due = is_due or resident_bytes() >= self._max_bytes
        if is_due:
            logger.info("worker is to be started afresh after %d jobs", self._ended)
            self._exit_code = EXIT_RECYCLE
            self._stop.set()

    # ---- small answers

    def _order(self) -> list[str]:
        """Return the queues in the order of this look."""
        if not self._weights:
            return self._queues
        # Efraimidis and Spirakis, 2006: sampling by weight without replacement.
        return sorted(
            self._queues,
            key=lambda q: -(random.random() ** (1 / max(self._weights[q], 1e-9))),  # noqa: S311
        )

    def _metrics_text(self) -> bytes | None:
        if self._metrics is None or self._dispatcher is None:
            return None
        return self._metrics.text(len(self._dispatcher.running))

    def _told(self, number: int) -> None:
        """Take a signal."""
        if self._stop.is_set():
            logger.warning("stopping at once")
            self._exit_code = 128 + number
            self._abort.set()
        self._stop.set()


_LEVELS: Final = {
    "succeeded": logging.INFO,
    "released": logging.INFO,
    "cancelled": logging.INFO,
    "retrying": logging.WARNING,
    "unknown": logging.INFO,
    "lost": logging.WARNING,
    "dead": logging.ERROR,
}


class _Signals:
    """SIGTERM and SIGINT tell the worker to stop, for as long as it works."""

    NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)

    def __init__(self, worker: Worker) -> None:
        self._tell = worker._told  # noqa: SLF001 - the two are one

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self.NUMBERS:
            loop.add_signal_handler(number, self._tell, number)

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self.NUMBERS:
            loop.remove_signal_handler(number)
