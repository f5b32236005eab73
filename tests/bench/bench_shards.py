"""Print what several servers do as one, and what a router in front of them costs.

Usage: make bench PART=shards ARGS="[--jobs 20000] [--singles 3000] [--shards 1,2,4] [--rounds 3]"

Each shard is a PostgreSQL 18 of its own, pinned to a core, the next one to the next core. On each
a session claims and finishes its jobs, a hundred in an exchange, all at once. Then jobs are
enqueued on the shard itself and through a router, PostgreSQL 15 with PL/Proxy: one by one, and a
thousand in a call, with keys, so that each call is split, and without. Beside single calls stands
one function of PL/Proxy, written by hand, that neither tells errors nor finds keys of before.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
from bench import DRAIN, SETTINGS, Connection, bulk, clear, install
from bench_http import cpu_of_all, postmaster
from psycopg.conninfo import make_conninfo

from jobq_embedded import Server
from jobq_sharding.router import init

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import psutil

PASSWORD = "of-the-bench"
BATCH = 1000
MAPPING = """
    create user mapping for current_user server jobq options (user 'postgres', password '{}')
"""
MANY = "select count(*) from jobq.enqueue_many(%s)"
PROTOTYPE = """
    create schema by_hand;
    do $do$
    begin
        execute format(
            $$create function by_hand.enqueue(%s) returns uuid language plproxy as '
                cluster ''jobq'';
                run on hashtext(coalesce(idempotency_key, dedup_key, random()::text));
                target jobq.enqueue;
            '$$, pg_get_function_arguments('jobq.enqueue'::regproc)
        );
    end
    $do$
"""


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--singles", type=int, default=3000)
    parser.add_argument("--shards", default="1,2,4")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    counts = [int(count) for count in options.shards.split(",")]
    print(f"{os.cpu_count()} cores, {options.rounds} rounds of {options.jobs:,} jobs a shard")
    for count in counts:
        with cluster(count) as shards:
            drained(shards, options.jobs, options.rounds)
            if count > 1:
                routed(shards, options)


def drained(shards: Sequence[Member], jobs: int, rounds: int) -> None:
    """Print how fast shards drain together, and the CPU of a job, enqueued in bulk and done."""
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


def drain(shard: Member) -> None:
    """Claim and finish all jobs of a shard."""
    shard.connection.execute("call pg_temp.drain(100)")


def routed(shards: Sequence[Member], options: argparse.Namespace) -> None:
    """Print what an enqueue costs on a shard itself and through a router."""
    for shard in shards:
        clear(shard.connection)  # a database with jobs keeps its number
    with serving("15", 0, Path("/usr/lib/postgresql/15/bin")) as router:
        init(router.url, [shard.url for shard in shards])
        router.connection.execute(MAPPING.format(PASSWORD))
        router.connection.execute(PROTOTYPE)
        router.connection = psycopg.connect(router.url, autocommit=True)  # with its settings
        bench = Measure(router, shards, options.rounds)
        for with_keys in (False, True):
            kind = "with a key" if with_keys else "without keys"
            for clients in (1, 8):
                by_hand, routed = bench.run(options.singles, {
                    f"single {kind}, {clients} connections, {name}": partial(
                        singles, member.url, clients, options.singles, function, with_keys
                    )
                    for name, member, function in (
                        ("direct", shards[0], "jobq.enqueue"),
                        ("by hand", router, "by_hand.enqueue"),
                        ("routed", router, "jobq.enqueue"),
                    )
                })[1:]  # fmt: skip
                print(f"  the router: {ratio(routed.router, by_hand.router):.2f} of one by hand")
        for with_keys in (True, False):
            kind = "with keys" if with_keys else "without keys"
            _, routed = bench.run(options.jobs, {
                f"{BATCH} in a call, {kind}, {name}": partial(
                    batches, member, options.jobs, with_keys
                )
                for name, member in (("direct", shards[0]), ("routed", router))
            })  # fmt: skip
            own = routed.shards + routed.drain
            print(
                f"  the router: {ratio(routed.router, own):.1%} of the"
                f" {own:.1f} µs that such a job costs its shard until done"
            )


@dataclass
class Figures:
    """What a job cost the router and the shards until it was there, and those until it was done."""

    rate: float
    router: float
    shards: float
    drain: float


def ratio(some: float, of: float) -> float:
    """Return a part of something; not a number where the CPU's clock of 10 ms has not ticked."""
    return some / of if of else math.nan


@dataclass
class Measure:
    """What is measured, and how often."""

    router: Member
    shards: Sequence[Member]
    rounds: int

    def run(self, jobs: int, ways: Mapping[str, Callable[[], None]]) -> list[Figures]:
        """Go each way in turn; print jobs a second and the CPU of each in µs, and return them."""
        found: dict[str, list[Figures]] = {name: [] for name in ways}
        for _ in range(self.rounds):
            for name, act in ways.items():
                found[name].append(self._measured(jobs, act))
        medians = []
        for name, rounds in found.items():
            columns = zip(*map(astuple, rounds), strict=True)
            of = Figures(*map(statistics.median, columns))
            medians.append(of)
            print(
                f"{name:<44} {of.rate:8,.0f} jobs/s; CPU of each: router {of.router:6.1f} µs,"
                f" shards {of.shards:6.1f} µs and {of.drain:5.1f} µs until it is done",
                flush=True,
            )
        return medians

    def _measured(self, jobs: int, act: Callable[[], None]) -> Figures:
        for shard in self.shards:
            clear(shard.connection)
        before = self.router.cpu(), self._cpu_of_shards()
        started = time.monotonic()
        act()
        rate = jobs / (time.monotonic() - started)
        time.sleep(0.5)  # a server's clock has what an ended session used when that is gone
        between = self.router.cpu(), self._cpu_of_shards()
        for shard in self.shards:
            drain(shard)
        drained = self._cpu_of_shards() - between[1]
        costs = between[0] - before[0], between[1] - before[1], drained
        return Figures(rate, *(cost / jobs * 1e6 for cost in costs))

    def _cpu_of_shards(self) -> float:
        return sum(shard.cpu() for shard in self.shards)


_numbers = iter(range(10**9))


def singles(url: str, clients: int, jobs: int, function: str, with_keys: bool) -> None:
    """Enqueue jobs one by one, each in a transaction of its own."""
    call = f"select {function}('noop', '{{\"n\": 1}}'"

    def client(_number: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for _ in range(jobs // clients):
                if with_keys:
                    key = [f"key-{next(_numbers)}"]
                    connection.execute(f"{call}, idempotency_key => %s)", key, prepare=True)
                else:
                    connection.execute(f"{call})", prepare=True)

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, range(clients)))


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
