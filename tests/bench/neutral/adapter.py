"""jobq as a system of the harness hardbyte/postgresql-job-queue-benchmarking.

The contract is the harness's CONTRIBUTING_ADAPTERS.md: settings come from the environment,
samples go to standard output as lines of JSON, and SIGTERM ends the process within five
seconds. jobq is used as in a service: `AsyncClient` enqueues, and a `Worker` runs in the
same event loop with its defaults.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from jobq import AsyncClient, JobqError, Registry, Worker, __version__
from jobq_operations.deploy import deploy

HERE: Final = Path(__file__).resolve().parent
MANIFEST: Final = json.loads((HERE / "adapter.json").read_text())
WINDOW: Final = 30.0
# What one replica measures for all: the others leave it out.
SHARED: Final = ("queue_depth", "producer_target_rate")
RETRY: Final = 0.2


@dataclass(frozen=True, slots=True)
class Settings:
    """What the harness has set; its contract explains each."""

    database: str = field(default_factory=lambda: os.environ["DATABASE_URL"])
    mode: str = field(default_factory=lambda: os.environ.get("PRODUCER_MODE", "fixed"))
    rate: float = field(default_factory=lambda: number("PRODUCER_RATE", 800))
    rate_file: str = field(default_factory=lambda: os.environ.get("PRODUCER_RATE_CONTROL_FILE", ""))
    batch: int = field(default_factory=lambda: number("PRODUCER_BATCH_MAX", 128))
    pause: float = field(default_factory=lambda: number("PRODUCER_BATCH_MS", 10) / 1000)
    depth: int = field(default_factory=lambda: number("TARGET_DEPTH", 1000))
    concurrency: int = field(default_factory=lambda: number("WORKER_COUNT", 32))
    payload: int = field(default_factory=lambda: number("JOB_PAYLOAD_BYTES", 256))
    work: float = field(default_factory=lambda: number("JOB_WORK_MS", 1) / 1000)
    every: int = field(default_factory=lambda: number("SAMPLE_EVERY_S", 5))
    instance: int = field(default_factory=lambda: number("BENCH_INSTANCE_ID", 0))

    def target_rate(self) -> float:
        """Return the rate that a phase with high load may have changed."""
        with suppress(OSError, ValueError):
            return float(Path(self.rate_file).read_text())
        return self.rate


def number(name: str, otherwise: int) -> int:
    """Return a number from the environment."""
    return int(os.environ.get(name, otherwise))


@dataclass
class Bench:
    """One replica: a producer and a worker, and what they have done.

    Attributes:
        waiting: jobs that wait, counted when last asked for and estimated since.
    """

    settings: Settings
    enqueued: int = 0
    started: int = 0
    completed: int = 0
    waiting: int = 0
    pick_ups: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=32768))

    def __post_init__(self) -> None:
        self.client = AsyncClient(self.settings.database)
        self.padding = "x" * max(0, self.settings.payload - 60)

    async def run(self) -> int:
        """Produce, work and report until SIGTERM; return the exit code."""
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        # The harness writes tokens for adapters that do not pace themselves, and waits at the end
        # until the pipe has taken them.
        threading.Thread(target=drain, args=(sys.stdin.fileno(),), daemon=True).start()
        worker = Worker(
            self.settings.database, self.registry(), concurrency=self.settings.concurrency
        )
        working = asyncio.create_task(worker.run(handle_signals=False))
        others = [asyncio.create_task(each()) for each in (self.produce, self.count, self.sample)]
        stop = asyncio.create_task(stopping.wait())
        await asyncio.wait([stop, working, *others], return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        await worker.stop(grace=2)
        results = await asyncio.gather(working, *others, return_exceptions=True)
        failed = [r for r in results if isinstance(r, Exception)]
        print(*failed, file=sys.stderr, sep="\n", end="")
        await self.client.close()
        return int(bool(failed) or not stopping.is_set())

    def registry(self) -> Registry:
        """Return the handler, which notes how long its job has waited."""
        registry = Registry()

        @registry.handler("bench")
        async def bench(payload: dict[str, Any]) -> None:
            self.started += 1
            self.waiting -= 1
            self.pick_ups.append((time.monotonic(), 1000 * (time.time() - payload["at"])))
            if self.settings.work:
                await asyncio.sleep(self.settings.work)
            self.completed += 1

        return registry

    async def produce(self) -> None:
        """Enqueue at the rate, or up to the depth, that the harness wants."""
        credit, last = 0.0, time.monotonic()
        while True:
            now = time.monotonic()
            if self.settings.mode == "depth-target":
                credit = float(self.settings.depth - self.waiting)
            else:
                credit += self.settings.target_rate() * (now - last)
            last = now
            while (jobs := min(self.settings.batch, int(credit))) > 0:
                credit -= jobs
                await self.enqueue(jobs)
            await asyncio.sleep(max(0.0, now + self.settings.pause - time.monotonic()))

    async def enqueue(self, jobs: int) -> None:
        """Enqueue jobs by one call; without a database they are not offered again."""
        payload = {"at": time.time(), "padding": self.padding}
        batch = [
            {"kind": "bench", "payload": {**payload, "seq": self.enqueued + n}} for n in range(jobs)
        ]
        try:
            await self.client.enqueue_many(batch)
        except JobqError as error:
            print(f"enqueue failed: {error}", file=sys.stderr)
            await asyncio.sleep(RETRY)
            return
        self.enqueued += jobs
        self.waiting += jobs

    async def count(self) -> None:
        """Count the jobs that wait, four times a second; one replica does it for all."""
        while True:
            if self.settings.instance == 0:
                started, enqueued = self.started, self.enqueued
                with suppress(JobqError):
                    stats = await self.client.queue_stats()
                    counted = sum(queue.queued + queue.retrying for queue in stats)
                    since = self.enqueued - enqueued - (self.started - started)
                    self.waiting = counted + since
            await asyncio.sleep(0.25)

    async def sample(self) -> None:
        """Print a sample at every boundary of the interval."""
        every = self.settings.every
        before, last = (self.enqueued, self.completed), time.monotonic()
        while True:
            await asyncio.sleep(every - time.time() % every)
            seconds, last = time.monotonic() - last, time.monotonic()
            after = (self.enqueued, self.completed)
            enqueued, completed = ((b - a) / seconds for a, b in zip(before, after, strict=True))
            before = after
            self.emit_all(
                {
                    **self.percentiles(),
                    "enqueue_rate": enqueued,
                    "completion_rate": completed,
                    "queue_depth": max(0, self.waiting),
                    "producer_target_rate": self.settings.target_rate(),
                }
            )

    def percentiles(self) -> dict[str, float]:
        """Return those of the pick-up within the last half minute."""
        since = time.monotonic() - WINDOW
        recent = sorted(took for at, took in self.pick_ups if at >= since)
        return {
            f"claim_p{p}_ms": recent[round((len(recent) - 1) * p / 100)] if recent else 0.0
            for p in (50, 95, 99)
        }

    def emit_all(self, metrics: dict[str, float]) -> None:
        """Print metrics of one moment."""
        for metric, value in metrics.items():
            if metric not in SHARED or self.settings.instance == 0:
                is_window = metric.startswith("claim")
                emit(
                    self.settings,
                    kind="adapter",
                    t=moment(),
                    subject_kind="adapter",
                    subject="",
                    metric=metric,
                    value=value,
                    window_s=WINDOW if is_window else self.settings.every * ("rate" in metric),
                )


def drain(file: int) -> None:
    """Read what comes, and forget it."""
    while os.read(file, 65536):
        pass


def emit(settings: Settings, **record: object) -> None:
    """Print a record of this replica."""
    given = {"system": MANIFEST["system"], "instance_id": settings.instance, **record}
    print(json.dumps(given), flush=True)


def moment() -> str:
    """Return the time of day as the contract writes it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main() -> int:
    """Install jobq, describe it, and run; return the exit code."""
    settings = Settings()
    with psycopg.connect(settings.database) as connection:
        is_new = connection.execute("select to_regnamespace('jobq')").fetchone() == (None,)
    if is_new:
        deploy(settings.database)
    emit(
        settings,
        kind="descriptor",
        event_tables=MANIFEST["event_tables"],
        event_indexes=MANIFEST["event_indexes"],
        extensions=MANIFEST["extensions"],
        version=f"jobq {__version__}",
        schema_version=__version__,
        db_name=MANIFEST["db_name"],
        started_at=moment(),
    )
    return asyncio.run(Bench(settings).run())


if __name__ == "__main__":
    sys.exit(main())
