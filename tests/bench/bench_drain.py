"""Print how a drain goes beside jobs due tomorrow, and beside a pinned snapshot.

Usage: make bench PART=drain ARGS="[--rounds 3] [--jobs 50000] [--tomorrow 1000000]
    [--pinned 300000]"

Beside the jobs due tomorrow a worker process drains no-op jobs, in turn with and without
them. Beside a snapshot that keeps every dead row one session drains in batches of a hundred,
and its last tenth is compared with its first.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import TYPE_CHECKING

import psycopg
from bench import DRAIN, bulk, clear, database, one, working
from bench_flat import DUE_TOMORROW, add

if TYPE_CHECKING:
    from bench import Connection

BATCH = 50_000
FINISHED = "select count(*) from jobq_private.job_archive"
SECONDS = """
    select extract(epoch from max(finished_at) - min(claimed_at)) from jobq_private.job_archive
"""
TENTHS = """
    select extract(epoch from max(j.finished_at) - min(j.finished_at))
    from (
        select finished_at, ntile(10) over (order by finished_at) as tenth
        from jobq_private.job_archive
    ) as j
    where j.tenth in (1, 10)
    group by j.tenth
    order by j.tenth
"""


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--tomorrow", type=int, default=1_000_000)
    parser.add_argument("--pinned", type=int, default=300_000)
    options = parser.parse_args()
    with database() as (connection, url):
        pinned(connection, url, options.pinned)
        beside_tomorrow(connection, url, options)


def pinned(connection: Connection, url: str, jobs: int) -> None:
    """Drain beside a pinned snapshot."""
    connection.execute(DRAIN)
    for done in range(0, jobs, BATCH):
        bulk(connection, min(BATCH, jobs - done))
    connection.execute("analyze jobq_private.job")
    with psycopg.connect(url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select pg_current_xact_id()")
        connection.execute("call pg_temp.drain(100)")
    first, last = (jobs / 10 / float(row[0]) for row in connection.execute(TENTHS))
    print(
        f"{jobs:,} jobs beside a pinned snapshot: first tenth {first:,.0f} jobs/s,"
        f" last tenth {last:,.0f} jobs/s, {last / first:.2f} times",
        flush=True,
    )


def beside_tomorrow(connection: Connection, url: str, options: argparse.Namespace) -> None:
    """Drain with and without jobs that are due tomorrow, in turn."""
    rates: dict[int, list[float]] = {0: [], options.tomorrow: []}
    for _ in range(options.rounds):
        for beside, found in rates.items():
            clear(connection)
            add(connection, DUE_TOMORROW, beside)
            connection.execute("vacuum (analyze) jobq_private.job")
            connection.execute("checkpoint")
            found.append(drained(connection, url, options.jobs))
    alone, beside_them = (statistics.median(found) for found in rates.values())
    print(
        f"{options.jobs:,} jobs: alone {alone:,.0f} jobs/s,"
        f" beside {options.tomorrow:,} due tomorrow {beside_them:,.0f} jobs/s,"
        f" {beside_them / alone:.2f} times"
    )


def drained(connection: Connection, url: str, jobs: int) -> float:
    """Return the jobs a second of a worker process."""
    bulk(connection, jobs)
    with working(url, 1):
        while one(connection, FINISHED) < jobs:
            time.sleep(0.1)
    return jobs / float(one(connection, SECONDS))


if __name__ == "__main__":
    main()
