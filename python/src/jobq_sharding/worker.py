"""A worker for several databases, which share its slots."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from jobq.redaction import error_text
from jobq.registry import Registry
from jobq.worker import Shared, Worker
from jobq.worker.controller import Slots
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics, Probe
from jobq.worker.signals import Stop, leave_soon, stopping_on_signals, watching_the_loop
from jobq.worker.worker import default_name

logger = logging.getLogger("jobq.worker")


class SharedSlots(Slots):
    """The slots of a process, shared by the workers of several databases.

    A free slot goes to the member with the fewest slots that wants one, and among equals to the
    one that has waited longest. A slot that only one member wants is that member's.
    """

    is_shared = True

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._members: list[Any] = []

    def join(self, member: Any) -> None:  # noqa: ANN401 - a producer
        """Add a producer."""
        self._members.append(member)

    def limit(self, member: Any) -> int:  # noqa: ANN401 - a producer
        """Return the maximum number of slots of a member, including its present ones."""
        taken: int = member.taken
        free: int = self.total - sum(other.taken for other in self._members)
        wanting = [other for other in self._members if other is not member and other.wants]
        share = max(1, self.total // (len(wanting) + 1))
        place = taken, member.started_at
        first = [other for other in wanting if (other.taken, other.started_at) < place]
        owed: int = sum(max(0, share - other.taken) for other in first)
        return taken + max(0, free - owed)

    def pass_on(self, member: object) -> None:
        """Wake the other members: one has released a slot, or wants none."""
        for other in self._members:
            if other is not member and other.wants:
                other.refill()


class ShardedWorker:
    """Runs the jobs of several databases.

    Each database has its own connections, wake-ups, heartbeats and maintenance. Slots are shared: a
    free slot goes to the database with the fewest running jobs among those with waiting jobs. A
    database that does not respond uses slots only for its running jobs.

    Args:
        databases: libpq URLs, and the handlers for each.
        queues: as for `Worker`, the same for each database.
        concurrency: maximum number of running jobs, over all databases.
        name: name of the worker; the number of the database is appended.
        processes: number of processes for handlers registered with ``process=True``.
        max_jobs: number of jobs after which the worker stops, to be restarted.
        max_bytes: memory usage above which the worker stops, to be restarted.
        metrics_port: as for `Worker`.
        metrics_host: the address to serve them on.
        options: other options of `Worker`.

    Raises:
        ValueError: an argument has an invalid value.
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
        **options: Any,  # noqa: ANN401 - those of `Worker`
    ) -> None:
        if not databases:
            raise ValueError("databases must name at least one")
        if options.get("listen_database") or options.get("until_empty"):
            raise ValueError("listen_database and until_empty are for one database")
        self.name = name or default_name()
        self._stop = Stop(max_jobs, max_bytes)
        self._address = None if metrics_port is None else (metrics_host, metrics_port)
        first = next(iter(databases.values()))
        self._shared = Shared(
            SharedSlots(concurrency),
            self._stop,
            Metrics(first) if self._address and HAS_PROMETHEUS else None,
            processes,
        )
        self._workers = [
            Worker(
                url, registry, queues, concurrency=concurrency, name=f"{self.name}/{number}",
                shared=self._shared, **options,
            )
            for number, (url, registry) in enumerate(databases.items())
        ]  # fmt: skip
        self._task: asyncio.Task[int] | None = None

    async def run(self, *, handle_signals: bool = True) -> int:
        """Work until stopped, as `Worker.run`, and return the exit status.

        If a database does not respond at the start, the others are served meanwhile.

        Raises:
            NotPermitted: the user may not work in a database.
            NotDeployed: jobq is not installed in a database.
        """
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.enter_context(stopping_on_signals(self._stop))
                stack.enter_context(watching_the_loop())
            stack.callback(self._shared.processes.close)
            if self._address is not None:
                probe = Probe(self.health, self.metrics_text)
                await probe.open(*self._address)
                stack.push_async_callback(probe.close)
            await self._work()
        if handle_signals and any(worker.is_held_up for worker in self._workers):
            leave_soon(self._stop.exit_code)
        return self._stop.exit_code

    async def _work(self) -> None:
        """Run every worker until all have stopped; if one fails, the others stop too."""

        async def work(worker: Worker) -> None:
            try:
                await worker.run(handle_signals=False)
            except Exception as error:
                logger.error("a worker failed, so all stop: %s", error_text(error))  # noqa: TRY400
                raise
            finally:
                self._stop.requested.set()

        ends = await asyncio.gather(*map(work, self._workers), return_exceptions=True)
        if errors := [end for end in ends if end is not None]:
            raise errors[0]

    async def stop(self) -> None:
        """Stop as on SIGTERM, and return when everything has stopped."""
        self._stop.requested.set()
        if self._task is not None:
            await asyncio.shield(self._task)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run(handle_signals=False), name="jobq worker")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def health(self) -> dict[str, object]:
        """Return whether a worker is alive and its database responds, and the same for each."""
        each = [worker.health() for worker in self._workers]
        return {
            "alive": any(health["alive"] for health in each),
            "ok": any(health["ok"] for health in each),
            "worker": self.name,
            "databases": each,
        }

    def metrics_text(self) -> bytes | None:
        """Return the metrics of all databases for Prometheus; None without the extra."""
        if self._shared.metrics is None:
            return None
        return self._shared.metrics.text(
            sum(worker.running for worker in self._workers),
            sum(worker.stuck for worker in self._workers),
        )
