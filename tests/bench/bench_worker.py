"""Print what a worker costs: its transactions while it is idle, and its memory.

Usage: make bench PART=worker ARGS="[--minutes 3] [--jobs 200000]"

All transactions of the database count, those of maintenance and autovacuum too, which in
the first minute looks at everything that was installed; the benchmark looks on from another
database. Memory is the resident set, shared libraries and all, of a worker with the default
settings that delivers too.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]
import psycopg
from bench import bulk, database, one, working

if TYPE_CHECKING:
    from bench import Connection

BATCH = 50_000
TRANSACTIONS = """
    select xact_commit + xact_rollback from pg_stat_database where datname = 'postgres'
"""


def main() -> None:
    """Measure an idle worker, then drain with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=200_000)
    options = parser.parse_args()
    with database() as (connection, url), working(url, 1) as [worker]:
        time.sleep(10)
        idle(url, options.minutes)
        process = psutil.Process(worker.pid)
        print(f"memory of an idle worker: {megabytes(process):.0f} MB", flush=True)
        for done in range(BATCH, options.jobs + 1, BATCH):
            most = drain(connection, process)
            print(f"after {done:,} jobs, at most: {most:.0f} MB", flush=True)


def idle(url: str, minutes: int) -> None:
    """Print the transactions a second of each minute in which nothing happens."""
    with psycopg.connect(url.removesuffix("postgres") + "template1", autocommit=True) as aside:
        for minute in range(1, minutes + 1):
            before = one(aside, TRANSACTIONS)
            time.sleep(60)
            made = one(aside, TRANSACTIONS) - before
            print(f"an idle worker, minute {minute}: {made / 60:.2f} transactions/s", flush=True)


def drain(connection: Connection, process: psutil.Process) -> float:
    """Have the worker do jobs; return the most megabytes that it took."""
    bulk(connection, BATCH)
    most = 0.0
    while one(connection, "select exists (select from jobq_private.job)"):
        most = max(most, megabytes(process))
        time.sleep(0.05)
    return most


def megabytes(process: psutil.Process) -> float:
    """Return the resident set of a process."""
    return float(process.memory_info().rss) / 1e6


if __name__ == "__main__":
    main()
