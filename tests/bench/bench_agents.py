"""Print what streams and calls of other jobs cost.

Usage: make bench PART=agents ARGS="[--streams 1000] [--chunks 50] [--seconds 20] [--calls 2000]"

CPU of the server for a chunk, while many jobs write a few chunks a second in all, beside the same
jobs while they write nothing; the time from the append of a chunk, before its commit, to a reader
that listens; and the time that calls of jobs take, beside twice as many plain jobs.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import clear, database, one, report

from jobq import AsyncClient, JobContext, Registry, Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bench import Connection

READERS = 50


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--chunks", type=float, default=50, help="a second, of all streams")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with database() as (connection, url):
        asyncio.run(cost_of_chunks(connection, url, options))
        asyncio.run(delay_of_chunks(url, options))
        cost_of_calls(connection, url, options)


class Streams:
    """Jobs that write chunks at random moments.

    Attributes:
        job_ids: the jobs.
        written: how many chunks they have written.
        may_write: whether they write.
    """

    def __init__(self) -> None:
        self.job_ids: list[Any] = []
        self.written = 0
        self.may_write = asyncio.Event()


@asynccontextmanager
async def streaming(url: str, jobs: int, chunks: float) -> AsyncIterator[Streams]:
    """Run jobs that write so many chunks a second in all, as soon as they may."""
    streams, is_over = Streams(), asyncio.Event()
    running = 0
    registry = Registry()

    @registry.handler("stream")
    async def stream(_payload: Any, context: JobContext) -> None:
        nonlocal running
        running += 1
        await streams.may_write.wait()
        while not is_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(random.expovariate(chunks / jobs)):
                    await is_over.wait()
            context.stream("tokens").write(f"token {streams.written} ")
            streams.written += 1

    async with AsyncClient(url) as client, Worker(url, registry, concurrency=jobs):
        enqueued = await client.enqueue_many([{"kind": "stream"}] * jobs)
        streams.job_ids = [job.job_id for job in enqueued]
        async with asyncio.timeout(60):
            while running < jobs:
                await asyncio.sleep(0.05)
        try:
            yield streams
        finally:
            streams.may_write.set()
            is_over.set()


async def cost_of_chunks(connection: Connection, url: str, options: argparse.Namespace) -> None:
    """Print how much of the server's CPU a chunk takes."""
    async with streaming(url, options.streams, options.chunks) as streams:
        await asyncio.sleep(1)
        idle = await cpu_of(connection, options.seconds)
        streams.may_write.set()
        await asyncio.sleep(1)
        before = streams.written
        busy = await cpu_of(connection, options.seconds)
        written = streams.written - before
    what = f"{options.streams} streams, {written / options.seconds:.0f} chunks/s in all"
    print(f"{what:<45} {1e6 * (busy - idle) / written:>9,.0f} µs of the server's CPU a chunk")


async def delay_of_chunks(url: str, options: argparse.Namespace) -> None:
    """Print how soon a chunk is read by those who listen."""
    delays: list[float] = []

    async def follow(client: AsyncClient, job_id: Any) -> None:
        async for chunk in client.stream(job_id, "tokens"):
            delay = time.time() - chunk.appended_at.timestamp()
            delays.append(1000 * delay)

    async with (
        streaming(url, READERS, options.chunks) as streams,
        AsyncClient(url, listen_database=url) as client,
    ):
        readers = {asyncio.create_task(follow(client, job_id)) for job_id in streams.job_ids}
        streams.may_write.set()
        await asyncio.sleep(1)
        delays.clear()
        await asyncio.sleep(options.seconds)
        taken = sorted(delays)
        while readers:  # asyncio.wait_for of Python 3.11 can lose a cancellation: repeat it
            for reader in readers:
                reader.cancel()
            _, readers = await asyncio.wait(readers, timeout=1)
    what = f"from append to a reader, {len(taken)} chunks"
    late = taken[int(len(taken) * 0.99)]
    print(f"{what:<45} p50 {statistics.median(taken):.1f} ms, p99 {late:.1f} ms")


async def cpu_of(connection: Connection, seconds: float) -> float:
    """Return how many seconds of CPU the server uses in so many seconds."""
    before = cpu(connection)
    await asyncio.sleep(seconds)
    return sum(used - before.get(pid, 0.0) for pid, used in cpu(connection).items())


def cpu(connection: Connection) -> dict[int, float]:
    """Return the CPU that each process of the server has used, in seconds."""
    folder = one(connection, "show data_directory")
    postmaster = int(Path(folder, "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    used = {}
    for pid in (postmaster, *map(int, children)):
        with suppress(OSError):  # it has ended meanwhile
            used[pid] = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return used


def cost_of_calls(connection: Connection, url: str, options: argparse.Namespace) -> None:
    """Print how long calls take, beside twice as many plain jobs, by one worker."""

    def ratio() -> float:
        plain = asyncio.run(seconds_of(connection, url, "plain", 2 * options.calls))
        return 100 * asyncio.run(seconds_of(connection, url, "caller", options.calls)) / plain

    what = f"{options.calls} calls, beside twice as many plain jobs"
    report(what, "% of the time", options.rounds, ratio)


async def seconds_of(connection: Connection, url: str, kind: str, jobs: int) -> float:
    """Return how long a worker needs for so many jobs."""
    registry = Registry()

    @registry.handler("plain")
    async def plain() -> int:
        return 1

    @registry.handler("caller")
    async def caller(_payload: Any, context: JobContext) -> int:
        return int(await context.call("plain"))

    clear(connection)
    async with AsyncClient(url) as client:
        await client.enqueue_many([{"kind": kind}] * jobs)
        began_at = time.perf_counter()
        async with Worker(url, registry):
            while one(connection, "select count(*) from jobq_private.job") > 0:
                await asyncio.sleep(0.02)
    return time.perf_counter() - began_at


if __name__ == "__main__":
    main()
