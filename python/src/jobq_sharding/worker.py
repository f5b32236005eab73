"""A worker of several databases: one for each, in the same slots."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Protocol, Self

from jobq.worker import Shared, Worker
from jobq.worker.controller import Slots
from jobq.worker.metrics import HAS_PROMETHEUS, Metrics, Probe
from jobq.worker.signals import Stop, leave_soon, stopping_on_signals, watching_the_loop

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jobq.registry import Registry

__all__ = ["Member", "ShardedWorker", "SharedSlots"]


class Member(Protocol):
    """A producer, as those see it that share its slots."""

    @property
    def taken(self) -> int:
        """How many slots it has."""

    @property
    def wants(self) -> bool:
        """Whether jobs wait for a slot, or may be there to be claimed."""

    @property
    def started_at(self) -> float:
        """When it last started a job, by time.monotonic."""

    def refill(self) -> None:
        """Start jobs, or claim some: there may be a slot."""


class SharedSlots(Slots):
    """The slots of the workers of several databases in one process.

    A slot that falls free is for the member that has the fewest of those who want one; among
    equals, for the one that has waited longest. Nobody keeps a slot that others do not want.
    """

    is_shared = True

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._members: list[Member] = []

    def join(self, member: Member) -> None:
        """Let a producer have slots."""
        self._members.append(member)

    def limit(self, member: Member) -> int:
        """Return how many slots a member may have now, with those that it has."""
        taken = member.taken
        free = self.total - sum(other.taken for other in self._members)
        wanting = [other for other in self._members if other is not member and other.wants]
        share = max(1, self.total // (len(wanting) + 1))
        place = taken, member.started_at
        first = [other for other in wanting if (other.taken, other.started_at) < place]
        return taken + max(0, free - sum(max(0, share - other.taken) for other in first))

    def pass_on(self, member: object) -> None:
        """Tell the others that a member has less, or wants no more."""
        for other in self._members:
            if other is not member and other.wants:
                other.refill()


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
        self._shared = Shared(
            SharedSlots(concurrency),
            self._stop,
            Metrics(first) if self._address and HAS_PROMETHEUS else None,
        )
        self._workers = [
            Worker(
                url, registry, queues, concurrency=concurrency, name=f"{self.name}/{number}",
                processes=processes, shared=self._shared, **options,
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
                stack.enter_context(stopping_on_signals(self._stop))
                stack.enter_context(watching_the_loop())
            stack.callback(self._shared.close)
            if self._address is not None:
                probe = Probe(self)
                await probe.open(*self._address)
                stack.push_async_callback(probe.close)
            await self._work()
        if handle_signals and any(worker.is_held_up for worker in self._workers):
            leave_soon(self._stop.exit_code)
        return self._stop.exit_code

    async def _work(self) -> None:
        """Run every worker; what one of them cannot go on with stops all."""
        tasks = [asyncio.create_task(w.run(handle_signals=False)) for w in self._workers]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        self._stop.requested.set()
        await asyncio.gather(*tasks)

    async def stop(self) -> None:
        """Stop as SIGTERM does, and return when everything has stopped."""
        self._stop.requested.set()
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
        if self._shared.metrics is None:
            return None
        return self._shared.metrics.text(
            sum(worker.running for worker in self._workers),
            sum(worker.stuck for worker in self._workers),
        )
