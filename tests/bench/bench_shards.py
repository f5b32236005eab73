"""Print what several servers do as one, and what a router in front of them costs.

Usage: make bench PART=shards ARGS="[--jobs 20000] [--singles 3000] [--shards 1,2,4] [--rounds 3]"

Each shard is a PostgreSQL 18 of its own, pinned to a core, the next one to the next core. On each
a session claims and finishes its jobs, a hundred in an exchange, all at once. Then jobs are
enqueued on the shard itself and through a router, PostgreSQL 15 with PL/Proxy: one by one, and a
thousand in a call, with keys, so that each call is split, and without.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
from bench import DRAIN, SETTINGS, Connection, bulk, clear, install, singles
from bench_http import cpu_of_all, postmaster
from psycopg.conninfo import make_conninfo

from jobq.embedded import Server
from jobq.router import init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import psutil

PASSWORD = "of-the-bench"
BATCH = 1000
MAPPING = """
    create user mapping for current_user server jobq options (user 'postgres', password '{}')
"""
MANY = "select count(*) from jobq.enqueue_many(%s)"


@dataclass
class Member:
    """A server, and what it has used."""

    url: str
    process: psutil.Process
    connection: Connection

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used."""
        return cpu_of_all(self.process)


@contextmanager
def serving(version: str, core: int, bin_dir: Path | None = None) -> Iterator[Member]:
    """Run a server that is pinned to a core."""
    with TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", version, bin_dir, settings=SETTINGS)
        with server:
            process = postmaster(folder)
            process.cpu_affinity([core % (os.cpu_count() or 1)])
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"alter role current_user password '{PASSWORD}'")
            url = make_conninfo(server.url, password=PASSWORD)
            with psycopg.connect(url, autocommit=True) as connection:
                yield Member(url, process, connection)


@contextmanager
def cluster(count: int) -> Iterator[list[Member]]:
    """Run so many shards."""
    with ExitStack() as stack:
        shards = [stack.enter_context(serving("18", core)) for core in range(count)]
        for shard in shards:
            install(shard.url)
            shard.connection.execute(DRAIN)
        yield shards


def main() -> None:
    """Measure the drain of each number of shards, and a router before them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--singles", type=int, default=3000)
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    counts = [int(count) for count in options.shards.split(",")]
    print(f"{os.cpu_count()} cores, {options.rounds} rounds of {options.jobs:,} jobs a shard")
    work = 0.0
    for count in counts:
        with cluster(count) as shards:
            work = drained(shards, options.jobs, options.rounds)
            if count > 1:
                routed(shards, options, work)


def drained(shards: Sequence[Member], jobs: int, rounds: int) -> float:
    """Print how fast shards drain together; return the CPU of a job, enqueued in bulk and done."""
    rates, costs = [], []
    for _ in range(rounds):
        before = sum(shard.cpu() for shard in shards)
        for shard in shards:
            clear(shard.connection)
            bulk(shard.connection, jobs)
        started = time.monotonic()
        with ThreadPoolExecutor(len(shards)) as pool:
            list(pool.map(drain, shards))
        rates.append(len(shards) * jobs / (time.monotonic() - started))
        costs.append((sum(shard.cpu() for shard in shards) - before) / len(shards) / jobs * 1e6)
    print(
        f"{len(shards)} shards drain {statistics.median(rates):8,.0f} jobs/s"
        f" ({min(rates):,.0f} to {max(rates):,.0f}); CPU of a job, enqueued in bulk and finished:"
        f" {statistics.median(costs):.0f} µs",
        flush=True,
    )
    return statistics.median(costs)


def drain(shard: Member) -> None:
    """Claim and finish all jobs of a shard."""
    shard.connection.execute("call pg_temp.drain(100)")


def routed(shards: Sequence[Member], options: argparse.Namespace, work: float) -> None:
    """Print what an enqueue costs on a shard itself and through a router."""
    for shard in shards:
        clear(shard.connection)  # a database with jobs keeps its number
    with serving("15", 0, Path("/usr/lib/postgresql/15/bin")) as router:
        init(router.url, [shard.url for shard in shards])
        router.connection.execute(MAPPING.format(PASSWORD))
        router.connection = psycopg.connect(router.url, autocommit=True)  # with its settings
        bench = Measure(router, shards, options.rounds)
        for clients in (1, 8):
            for name, member in (("direct", shards[0]), ("routed", router)):
                bench.run(
                    f"single, {clients} connections, {name}", options.singles,
                    lambda m=member, c=clients: singles(m.url, c, options.singles),
                )  # fmt: skip
        for with_keys in (True, False):
            kind = "with keys" if with_keys else "without keys"
            for name, member in (("direct", shards[0]), ("routed", router)):
                share = bench.run(
                    f"{BATCH} in a call, {kind}, {name}", options.jobs,
                    lambda m=member, k=with_keys: batches(m, options.jobs, k),
                )  # fmt: skip
            print(
                f"  the router: {share / work:.0%} of what a job costs its shard until it is done"
            )


@dataclass
class Measure:
    """What is measured, and how often."""

    router: Member
    shards: Sequence[Member]
    rounds: int

    def run(self, name: str, jobs: int, act: Callable[[], None]) -> float:
        """Print jobs a second and the CPU of each; return the router's, in µs."""
        rates, at_router, at_shards = [], [], []
        for _ in range(self.rounds):
            for shard in self.shards:
                clear(shard.connection)
            before = self.router.cpu(), self._cpu_of_shards()
            started = time.monotonic()
            act()
            rates.append(jobs / (time.monotonic() - started))
            time.sleep(0.5)  # a server's clock has what an ended session used when that is gone
            at_router.append((self.router.cpu() - before[0]) / jobs * 1e6)
            at_shards.append((self._cpu_of_shards() - before[1]) / jobs * 1e6)
        rate, router, shards = map(statistics.median, (rates, at_router, at_shards))
        print(
            f"{name:<40} {rate:8,.0f} jobs/s;"
            f" CPU of each: router {router:6.1f} µs, shards {shards:6.1f} µs",
            flush=True,
        )
        return router

    def _cpu_of_shards(self) -> float:
        return sum(shard.cpu() for shard in self.shards)


_numbers = iter(range(10**9))


def batches(member: Member, jobs: int, with_keys: bool) -> None:
    """Enqueue jobs, a thousand in a call."""
    for _ in range(0, jobs, BATCH):
        batch = [
            {"kind": "noop", "payload": {"n": n, "pad": "x" * 80}}
            | ({"idempotency_key": f"key-{next(_numbers)}"} if with_keys else {})
            for n in range(min(BATCH, jobs))
        ]
        member.connection.execute(MANY, [json.dumps(batch)])


if __name__ == "__main__":
    main()
