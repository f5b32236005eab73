"""Print what many sessions cost each other: rates, CPU, multixacts and waits.

Usage: make bench PART=sessions ARGS="[--jobs 100000] [--sessions 2,8,32,64] [--batches 1,20]
    [--commit-delay 2000]"

Each session finishes a batch in the call that claims the next, within the server, so that
no client is in the way; batches of one drain a third of the jobs. Sessions live long, so
each has worked off five batches alone before the clock starts: what it then plans and reads
for the first time is printed as the CPU of its start. Multixacts and their members are
counted between two checkpoints, and the waits are what pg_stat_activity shows of these
sessions, looked at ten times a second. The last figure is the rate against that of the
first number of sessions. With --commit-delay, in microseconds, a commit takes as long as on
a slower disk; it is PostgreSQL's own, which commits at the same moment share.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any, Self

import psycopg
from bench import DRAIN, bulk, clear, database, one

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench import Connection

PAUSE = 0.1
WARM_UP = 5
CALL = "call pg_temp.drain(%s)"
TICKS = os.sysconf("SC_CLK_TCK")
MULTIXACTS = """
    select next_multixact_id::text::bigint, next_multi_offset::text::bigint
    from pg_control_checkpoint()
"""
WAITS = """
    select coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*)
    from pg_stat_activity
    where pid = any(%s) and state = 'active'
    group by 1
"""


@dataclass(frozen=True, slots=True)
class Drain:
    """What a drain took."""

    rate: float
    cpu_seconds: float
    start_seconds: float
    multixacts: int
    members: int
    waits: Counter[str]


def main() -> None:
    """Print a line for each number of sessions and size of batch."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--sessions", default="2,8,32,64")
    parser.add_argument("--batches", default="1,20")
    parser.add_argument("--commit-delay", type=int, default=0)
    options = parser.parse_args()
    slow = {"commit_delay": str(options.commit_delay), "commit_siblings": "0"}
    with database(**slow) as (connection, url):
        for batch in map(int, options.batches.split(",")):
            first = None
            for sessions in map(int, options.sessions.split(",")):
                jobs = options.jobs if batch > 1 else options.jobs // 3
                drain = drained(connection, url, sessions, batch, jobs)
                first = first or drain.rate
                show(sessions, batch, jobs, drain, drain.rate / first)


def show(sessions: int, batch: int, jobs: int, drain: Drain, times: float) -> None:
    """Print the figures of a drain."""
    looks = max(1, drain.waits.total())
    waits = ", ".join(
        f"{event} {count / looks:.0%}"
        for event, count in drain.waits.most_common(4)
        if event != "CPU"
    )
    print(
        f"{sessions:>3} sessions, batches of {batch:>3}: {drain.rate:>7,.0f} jobs/s,"
        f" {1e6 * drain.cpu_seconds / jobs:>6,.0f} µs of CPU a job"
        f" and {1e3 * drain.start_seconds / sessions:.0f} ms a start,"
        f" {1000 * drain.multixacts / jobs:,.1f} multixacts"
        f" and {1000 * drain.members / jobs:,.1f} members in 1,000 jobs;"
        f" {times:.2f} times; waits: {waits}",
        flush=True,
    )


def drained(connection: Connection, url: str, sessions: int, batch: int, jobs: int) -> Drain:
    """Have so many sessions start, and drain so many jobs at once."""
    clear(connection)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(sessions)
        ]
        pids = [worker.info.backend_pid for worker in workers]
        for worker in workers:
            worker.execute(DRAIN)
            bulk(connection, WARM_UP * batch)
            worker.execute(CALL, [batch])
        bulk(connection, jobs)
        connection.execute("vacuum analyze jobq_private.job")
        before = multixacts(connection)
        spent = cpu_seconds(pids)
        start = time.perf_counter()
        with Watch(url, pids) as watch:
            for worker in workers:
                worker.pgconn.send_query(f"call pg_temp.drain({batch})".encode())
            for worker in workers:
                # A thread for each would wake up ten times a second.
                select([worker], [], [])
                while result := worker.pgconn.get_result():
                    assert not result.error_message, result.error_message
        rate = jobs / (time.perf_counter() - start)
        cpu = cpu_seconds(pids) - spent
    assert one(connection, "select not exists (select from jobq_private.job)")
    made, members = (a - b for a, b in zip(multixacts(connection), before, strict=True))
    return Drain(rate, cpu, spent, made, members, watch.waits)


class Watch:
    """Counts what sessions wait for, meanwhile."""

    def __init__(self, url: str, pids: Sequence[int]) -> None:
        self.waits: Counter[str] = Counter()
        self._url, self._pids = url, pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._is_over.wait(PAUSE):
                self.waits.update(dict(connection.execute(WAITS, [self._pids]).fetchall()))


def multixacts(connection: Connection) -> tuple[int, int]:
    """Return the number of multixacts that were ever made, and of their members."""
    connection.execute("checkpoint")
    row: Any = connection.execute(MULTIXACTS).fetchone()
    return row


def cpu_seconds(pids: Sequence[int]) -> float:
    """Return the CPU time that processes have taken."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(field[11]) + int(field[12]) for field in fields) / TICKS


if __name__ == "__main__":
    main()
