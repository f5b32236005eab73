"""Print what limits of concurrency keys cost, and how fair the keys' turns are.

Usage: make bench PART=flow ARGS="[--jobs 20000] [--keys 1000] [--saturated 12000]
    [--large 1000000] [--small 200] [--rounds 3]"

A drain is one session that finishes each batch of 50 in the call that claims the next. Of
fairness: one tenant with --large jobs and --small ones with ten each share 50 slots, through
one session that finishes what runs batch by batch; the small ones beside a queue that holds
only theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from bench import clear, database, one

from jobq import Registry, Worker

if TYPE_CHECKING:
    from bench import Connection

BATCH = 50
FILL = """
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object('kind', 'noop', 'queue', %s::text, 'concurrency_key', {key}, 'cost', {cost}))
        from generate_series(1, %s) as n
    ))
"""  # noqa: E501
EXCHANGE = """
    select job_id, attempt from jobq.exchange(array[%s], 'bench', %s, %s::uuid[], %s::integer[])
    where outcome = 'claimed'
"""
# From the end of a job to the start of the next one of its key.
GAPS = """
    select extract(epoch from claimed_at - lag(finished_at) over (order by claimed_at)) * 1000
    from jobq_private.job_archive order by claimed_at offset 1
"""


def main() -> None:
    """Run every measurement and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--saturated", type=int, default=12_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--small", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with database() as (connection, url):
        drains(connection, options.jobs, options.keys, options.rounds)
        behind_saturated(connection, options.saturated)
        fairness(connection, options.large, options.small)
        jobs = max(10, options.jobs // 20)
        asyncio.run(next_of_a_key(connection, url, jobs, ["default"]))
        asyncio.run(next_of_a_key(connection, url, jobs, ["default", "other"]))


def empty(connection: Connection) -> None:
    """Forget every job and key."""
    clear(connection)
    connection.execute(
        "truncate jobq_private.waiting_key, jobq_private.limit_state, jobq_private.limit_hold"
    )


def fill(
    connection: Connection, jobs: int, keys: int | None, queue: str = "default", cost: str = "null"
) -> None:
    """Enqueue jobs of so many keys, or without keys."""
    key = "null::text" if keys is None else f"'key ' || n %% {keys}"
    for start in range(0, jobs, 10_000):
        some = min(10_000, jobs - start)
        connection.execute(FILL.format(key=key, cost=cost).encode(), [queue, some])


def settle(connection: Connection) -> None:
    """Do what maintain() does ten seconds after limits changed, when no job runs without a slot.

    Until then, each claim also looks for running jobs without one.
    """
    connection.execute("delete from jobq_private.limit_change where change_id > 1")


def drain(connection: Connection, queue: str = "default") -> float:
    """Return the jobs a second that one session does."""
    done = 0
    ids: list[object] = []
    attempts: list[int] = []
    started = time.perf_counter()
    while True:
        jobs = connection.execute(EXCHANGE, [queue, BATCH, ids, attempts], prepare=True).fetchall()
        ids, attempts = [job[0] for job in jobs], [job[1] for job in jobs]
        done += len(jobs)
        if not jobs:
            return done / (time.perf_counter() - started)


def drains(connection: Connection, jobs: int, keys: int, rounds: int) -> None:
    """Print the drain of keyed jobs beside that of plain ones, in turns."""
    rate = "key_rate_limit => 1000000, key_rate_burst => 9"
    cases: dict[str, tuple[int | None, str, str]] = {
        "no keys": (None, "", "null"),
        f"{keys:,} keys": (keys, "", "null"),
        f"{keys:,} keys, limit 1": (keys, "key_max_running => 1", "null"),
        f"{keys:,} keys, a rate each": (keys, rate, "null"),
        f"{keys:,} keys, a rate and costs": (keys, rate, "1 + n %% 3"),
        "no keys, 500 at once": (None, "max_running => 500", "null"),
    }
    figures: dict[str, list[float]] = {case: [] for case in cases}
    for _ in range(rounds):
        for case, (some, limits, cost) in cases.items():
            empty(connection)
            more = limits and f", {limits}"
            connection.execute(f"select jobq.put_queue('default'{more})".encode())
            settle(connection)
            fill(connection, jobs, some, cost=cost)
            figures[case].append(drain(connection))
    connection.execute("select jobq.put_queue('default')")
    plain = statistics.median(figures["no keys"])
    for case, rates in figures.items():
        middle = statistics.median(rates)
        print(
            f"drain, {case:<28} {middle:>8,.0f} jobs/s, {middle / plain:.2f} of plain"
            f"   ({min(rates):,.0f} to {max(rates):,.0f})",
            flush=True,
        )


def behind_saturated(connection: Connection, keys: int) -> None:
    """Print what a claim costs behind keys that are full, beside an empty queue."""
    empty(connection)
    connection.execute("select jobq.put_queue('full', key_max_running => 1)")
    connection.execute("select jobq.put_queue('empty', key_max_running => 1)")
    settle(connection)
    fill(connection, keys * 3, keys, "full")
    while one(connection, "select jobq.due_in('{full}') is not null"):
        connection.execute("select from jobq.claim('{full}', 'w', 500)")
    times = {}
    for queue in ("empty", "full"):
        taken = []
        for n in range(200):
            connection.execute(
                "select jobq.enqueue('noop', queue => %s, concurrency_key => %s)",
                [queue, f"new {n}"],
            )
            started = time.perf_counter()
            found = connection.execute(
                "select job_id from jobq.claim(array[%s], 'w', 1)", [queue], prepare=True
            ).fetchall()
            taken.append((time.perf_counter() - started) * 1000)
            assert len(found) == 1
        times[queue] = statistics.median(taken)
    print(
        f"claim behind {keys:,} saturated keys {times['full']:.2f} ms,"
        f" {times['full'] / times['empty']:.2f} times that of an empty queue",
        flush=True,
    )


def fairness(connection: Connection, jobs: int, tenants: int) -> None:
    """Print how long small tenants take beside a large one, and alone."""
    rounds = {}
    for case in ("alone", "beside"):
        empty(connection)
        connection.execute("select jobq.put_queue('fair', max_running => %s)", [BATCH])
        if case == "beside":
            fill(connection, jobs, 1, "fair")
        fill(connection, tenants * 10, tenants, "fair")
        small = tenants * 10
        ids: list[object] = []
        attempts: list[int] = []
        rounds[case] = 0
        while small:
            claimed = connection.execute(
                EXCHANGE, ["fair", BATCH, ids, attempts], prepare=True
            ).fetchall()
            ids, attempts = [job[0] for job in claimed], [job[1] for job in claimed]
            rounds[case] += 1
            small = one(
                connection,
                "select count(*) from jobq_private.job"
                " where concurrency_key <> 'key 0' and state = 'queued'",
            )
    print(
        f"{tenants:,} tenants with ten jobs each, beside one with {jobs:,}, {BATCH} slots:"
        f" {rounds['beside'] / rounds['alone']:.2f} times as long as alone",
        flush=True,
    )


async def next_of_a_key(connection: Connection, url: str, jobs: int, queues: list[str]) -> None:
    """Print how long it takes from the end of a job to the next one of its key.

    Each queue has a worker; of several, the limit is that of the jobs' kind.
    """
    empty(connection)
    connection.execute("select jobq.put_queue('default', key_max_running => 1)")
    if len(queues) > 1:
        connection.execute("select jobq.put_queue('default')")
        connection.execute("select jobq.put_kind('noop', key_max_running => 1)")
    registry = Registry()

    @registry.handler("noop")
    async def noop(payload: object) -> None:
        del payload

    for queue in queues:
        fill(connection, jobs // len(queues), 1, queue)
    async with AsyncExitStack() as stack, asyncio.timeout(300):
        for queue in queues:
            await stack.enter_async_context(Worker(url, registry, queues=[queue], concurrency=10))
        while one(connection, "select count(*) from jobq_private.job") > 0:
            await asyncio.sleep(0.05)
    gaps = sorted(float(gap) for (gap,) in connection.execute(GAPS))
    print(
        f"from a job's end to the next of its key, {len(queues)} queues with a worker each:"
        f" p50 {gaps[len(gaps) // 2]:.1f} ms,"
        f" p99 {gaps[int(len(gaps) * 0.99)]:.1f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
