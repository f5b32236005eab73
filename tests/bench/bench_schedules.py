"""Print what schedules cost: ticks, idle maintenance, catching up, status; asserts nothing.

Usage: python tests/bench/bench_schedules.py [--rounds 15] [--executions 1000000]

Runs on a private PostgreSQL 18 with fsync on, from a wheel, on the loopback address.
Figures are medians of the rounds, with the range; each round is one call and one commit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import psycopg

from jobq_embedded import Server
from jobq_operations.deploy import single_file

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "timezone": "UTC"}
CREATE = """
    select jobq.create_schedule(
        %(name)s::text || ' ' || n, 'kind ' || n %% 20,
        (array['0 * * * *', '*/30 * * * *', '30 2 * * *', '0 9 * * MON-FRI'])[n %% 4 + 1],
        time_zone => (array['UTC', 'Europe/Berlin', 'Asia/Kolkata'])[n %% 3 + 1],
        payload => '{"user_id": "u_abc", "title": "Weekly Summary"}',
        dedup => %(dedup)s, starts_at => %(starts_at)s
    )
    from generate_series(1, %(schedules)s) as n
"""
MAKE_DUE = """
    update jobq_private.schedule as s
    set next_run_at = jobq.next_tick(s.cron, s.time_zone, now() - interval '90 days')
    where s.status = 'active'
"""
EXECUTIONS = """
    insert into jobq_private.job_archive (
        job_id, created_at, run_at, claimed_at, slot_at, lease, timeout, schedule_id, attempt,
        max_attempts, state, previous_state, queue, kind, finished_at
    )
    select
        jobq_private.new_id(0), t, t, t, t, '30 s', '1 min', s.schedule_id, 1, 5,
        case when n %% 50 = 0 then 'dead' else 'succeeded' end, 'running', 'default', s.kind,
        t + random() * interval '1 s'
    from jobq_private.schedule as s
    cross join generate_series(1, %(each)s) as n
    cross join lateral (
        select now() - n * interval '10 days' / %(each)s - interval '1 s'
    ) as at (t)
    where s.name like 'status %%'
"""

Connection = psycopg.Connection[tuple[Any, ...]]


def main() -> None:
    """Run every measurement and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--executions", type=int, default=1_000_000)
    options = parser.parse_args()
    with TemporaryDirectory() as folder, Server(Path(folder) / "data", settings=SETTINGS) as server:
        subprocess.run(
            [server.programs / "psql", "-Xq", "-f", "-", server.url],
            input=single_file(), text=True, check=True,
        )  # fmt: skip
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("select jobq.maintain()")
            print(f"PostgreSQL 18, fsync on, {os.cpu_count()} cores, {options.rounds} rounds")
            ticks(connection, options.rounds)
            idle(connection, options.rounds)
            catch_up(connection, options.rounds)
            status(connection, options.rounds, options.executions)


def ticks(connection: Connection, rounds: int) -> None:
    """Measure ticks that find 1,000 schedules due."""
    for what, dedup, keeps in (
        ("enqueue", "enqueue", True),
        ("skip, no job lives", "skip", False),
        ("skip, the job before lives", "skip", True),
    ):
        create(connection, "due", 1000, dedup)
        connection.execute(MAKE_DUE)
        connection.execute("analyze jobq_private.schedule")
        figures = []
        for _ in range(rounds + 1):
            figures.append(
                elapsed(lambda: calls(connection, "select count(*) from jobq_internal.tick()"))
            )
            if not keeps:
                connection.execute("delete from jobq_private.job")
        show(f"tick of 1,000 due schedules, {what}", figures[1:])
        clear(connection)


def idle(connection: Connection, rounds: int) -> None:
    """Measure calls that find nothing due."""
    for schedules in (0, 1000, 20_000):
        create(connection, f"idle {schedules}", schedules)
        connection.execute("vacuum analyze jobq_private.schedule")
        for function in ("jobq_internal.tick", "jobq.maintain"):
            query = f"select count(*) from {function}()"
            what = f"{function}() with {schedules:,} schedules, none due"
            report(what, rounds, partial(calls, connection, query))
        clear(connection)


def catch_up(connection: Connection, rounds: int) -> None:
    """Measure one schedule that has missed much."""
    connection.execute("select jobq.create_schedule('all', 'k', '* * * * *')")
    connection.execute(MAKE_DUE)
    report(
        "1,000 missed slots of one schedule",
        rounds,
        lambda: calls(connection, "select count(*) from jobq_internal.tick(1000)"),
    )
    clear(connection)
    query = "select jobq.create_schedule(%s, 'k', '* * * * * *', missed => 'latest')"
    due = "update jobq_private.schedule set next_run_at = '2016-01-01' where status = 'active'"

    def latest(name: str) -> float:
        clear(connection)
        connection.execute(query, [name])
        connection.execute(due)
        return elapsed(lambda: calls(connection, "select count(*) from jobq_internal.tick(1)"))

    show(
        "the latest of ten years of missed seconds", [latest(f"latest {n}") for n in range(rounds)]
    )
    clear(connection)


def status(connection: Connection, rounds: int, executions: int) -> None:
    """Measure the status of a schedule among many archived executions."""
    create(connection, "status", 100)
    connection.execute(
        "select jobq_private.make_partition('job_archive', (now() - n * interval '1 day')::date)"
        " from generate_series(0, 11) as n"
    )
    connection.execute(EXECUTIONS, {"each": executions // 100})
    connection.execute("vacuum analyze jobq_private.job_archive")
    report(
        f"status of one of 100 schedules, {executions:,} executions",
        rounds,
        lambda: calls(connection, "select jobq_internal.schedule_status('status 1')"),
    )
    report(
        "its page of 50 executions",
        rounds,
        lambda: calls(
            connection,
            "select count(*) from jobq_http.page_executions("
            "(select schedule_id from jobq_internal.get_schedule('status 1')))",
        ),
    )


def create(connection: Connection, name: str, schedules: int, dedup: str | None = None) -> None:
    """Create schedules; those whose overlap is not said start in many years."""
    starts_at = None if dedup else "2099-01-01"
    connection.execute(
        CREATE, {"name": name, "schedules": schedules, "dedup": dedup, "starts_at": starts_at}
    )


def clear(connection: Connection) -> None:
    """Forget every schedule and job."""
    connection.execute(
        "truncate jobq_private.schedule, jobq_private.job, jobq_private.job_archive,"
        " jobq_private.idempotency_key"
    )


def calls(connection: Connection, query: str) -> object:
    """Run a prepared statement; return its first value."""
    row = connection.execute(query, prepare=True).fetchone()
    return row and row[0]


def elapsed(work: Callable[[], object]) -> float:
    """Milliseconds that something takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def report(what: str, rounds: int, work: Callable[[], object]) -> None:
    """Measure something once to warm up and then in rounds, and print it."""
    elapsed(work)
    show(what, [elapsed(work) for _ in range(rounds)])


def show(what: str, figures: list[float]) -> None:
    """Print the median and the range of a figure."""
    middle, low, high = statistics.median(figures), min(figures), max(figures)
    print(f"{what:<58} {middle:>8.2f} ms   ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    main()
