"""A worker of several databases: one for each, in the same slots."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self

from jobq.worker.crew import Crew, leave_soon
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics
from jobq.worker.probe import Probe
from jobq.worker.slots import Slots
from jobq.worker.stop import Signals, Stop
from jobq.worker.watchdog import Watchdog
from jobq.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobq.registry import Registry

__all__ = ["ShardedWorker"]

logger = logging.getLogger("jobq.worker")


class ShardedWorker:
    """Runs the jobs of several databases.

    Each database has its own connections, wake-ups, heartbeats and upkeep. Slots are shared:
    one that falls free goes to the database with the fewest jobs running of those that have
    some waiting. One that does not answer takes no slot, but for what still runs of it.

    Args:
        databases: libpq URLs, and the handlers of each.
        queues: as `Worker` has them, the same of each database.
        concurrency: how many jobs run at a time, of all databases together.
        name: under which jobs are claimed, followed by the database's number.
        processes: how many processes run handlers registered with ``process=True``.
        max_jobs: stop to be started afresh after so many jobs.
        max_bytes: stop to be started afresh when the process uses so much memory.
        metrics_port: as `Worker` has it.
        metrics_host: the address to serve them on.
        options: the others of `Worker`.

    Raises:
        ValueError: an argument may not have this value.
    """

    def __init__(
        self,
        databases: Mapping[str, Registry],
        queues: Sequence[str] | Mapping[str, float] = ("default",),
        *,
        concurrency: int = 50,
        name: str | None = None,
        processes: int | None = None,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
        metrics_port: int | None = None,
        metrics_host: str = "127.0.0.1",
        **options: Any,  # noqa: ANN401 - as `Worker` has them
    ) -> None:
        if not databases:
            raise ValueError("databases must name at least one")
        if options.get("listen_database") or options.get("until_empty"):
            raise ValueError("listen_database and until_empty are for one database")
        self.name = name or f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._stop = Stop(max_jobs, max_bytes)
        self._address = None if metrics_port is None else (metrics_host, metrics_port)
        first = next(iter(databases.values()))
        self._crew = Crew(
            Slots(concurrency),
            self._stop,
            Metrics(first) if self._address and HAS_PROMETHEUS else None,
        )
        self._workers = [
            Worker(
                url, registry, queues, concurrency=concurrency, name=f"{self.name}/{number}",
                processes=processes, crew=self._crew, **options,
            )
            for number, (url, registry) in enumerate(databases.items())
        ]  # fmt: skip
        self._task: asyncio.Task[int] | None = None

    async def run(self, *, handle_signals: bool = True) -> int:
        """Work until told to stop, as `Worker.run` does; return its exit codes.

        A database that does not answer at the start is waited for beside the others' work.

        Raises:
            NotPermitted: a database does not let this user work.
            NotDeployed: jobq is not installed in one.
        """
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(Signals(self._stop))
                stack.enter_context(Watchdog())
            stack.callback(self._crew.close)
            await self._serve(stack)
            await self._work()
        if handle_signals and any(worker.is_overdue for worker in self._workers):
            leave_soon(self._stop.exit_code)
        return self._stop.exit_code

    async def _work(self) -> None:
        """Run every worker; what one of them cannot go on with stops all."""
        tasks = [asyncio.create_task(w.run(handle_signals=False)) for w in self._workers]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        self._stop.asked.set()
        await asyncio.gather(*tasks)

    async def _serve(self, stack: AsyncExitStack) -> None:
        if self._address is None:
            return
        probe = Probe(self)
        try:
            await probe.open(*self._address)
        except OSError as error:
            logger.warning("no metrics and no health at %s:%d: %s", *self._address, error)
            return
        stack.push_async_callback(probe.close)
        logger.info("metrics at http://%s:%d/metrics", self._address[0], probe.port)

    async def stop(self) -> None:
        """Stop as SIGTERM does, and return when everything has stopped."""
        self._stop.asked.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(handle_signals=False), name="jobq worker")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def health(self) -> dict[str, object]:
        """Tell whether one lives, and whether its database has answered of late; then of each."""
        each = [worker.health() for worker in self._workers]
        return {
            "alive": any(health["alive"] for health in each),
            "ok": any(health["ok"] for health in each),
            "worker": self.name,
            "databases": each,
        }

    def metrics_text(self) -> bytes | None:
        """Return Prometheus's text, of all databases; None without the extra ``metrics``."""
        if self._crew.metrics is None:
            return None
        return self._crew.metrics.text(
            sum(worker.running for worker in self._workers),
            sum(worker.stuck for worker in self._workers),
        )
