"""Print what calls cost in a large database, each once warm, beside what they may cost.

Usage: make bench PART=scale ARGS="[--jobs 1000000] [--batch 100000] [--priorities 20000]"
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from bench import clear, database

if TYPE_CHECKING:
    from bench import Connection

FILL = """
    insert into jobq_private.job (
        job_id, kind, queue, priority, run_at, max_attempts, timeout, lease
    )
    select jobq_private.new_id(0), 'k', %s, {priority}, {run_at}, 5, '5 min', '30 s'
    from generate_series(1, %s) as n
"""
LARGE = {
    "metrics": (100, "select count(*) from jobq.metrics()"),
    "queue_stats": (100, "select count(*) from jobq.queue_stats()"),
    "explain, head of the queue": (10, "select count(*) from jobq.explain('{first}')"),
    "explain, end of the queue": (10, "select count(*) from jobq.explain('{last}')"),
    "list_jobs that no job fits": (
        1000,
        "select count(*) from jobq.list_jobs(kind => 'none')",
    ),
    "empty exchange of 1,000 queues": (
        5,
        "select count(*) from jobq.exchange('{queues}', 'w', 10)",
    ),
    "due_in of 1,000 empty queues": (5, "select jobq.due_in('{queues}')"),
}
PRIORITIES = {
    "claim": (5, "select count(*) from jobq.claim('{later}', 'w')"),
    "due_in": (5, "select jobq.due_in('{later}')"),
}
ROW_TRIGGER = """
    create function enqueue_order() returns trigger language plpgsql as
    'begin perform jobq.enqueue(''order''); return null; end';
    create table "order" (id bigint);
    create trigger enqueue_order after insert on "order"
    for each row execute function enqueue_order()
"""
SETS = {
    "enqueue_many": (
        None,
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'set')) from generate_series(1, {batch})))
        """,
    ),
    "enqueue_many, idempotency keys": (
        6000,
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'set', 'idempotency_key', n::text))
            from generate_series(1, {batch}) as n))
        """,
    ),
    "an insert whose row trigger enqueues": (
        9000,
        """
        with stored as (insert into "order" select generate_series(1, {batch}) returning id)
        select count(*) from stored
        """,
    ),
    "claim, and let the leases expire": (
        None,
        """
        with claimed as (
            select c.job_id from generate_series(1, {batch}, 1000) as n
            cross join lateral jobq.claim('{{default}}', 'w' || n, 1000) as c
        )
        select count(*) from claimed
        """,
    ),
    "recover": (10_000, "select count(*) from jobq_internal.recover({batch})"),
    "claim and fail for good, 1,000 at a time": (
        10_000,
        """
        select sum(f.jobs) from generate_series(1, {batch}, 1000) as n
        cross join lateral (
            select count(*) as jobs from jobq.fail_many((
                select jsonb_agg(jsonb_build_object(
                    'job_id', c.job_id, 'attempt', c.attempt, 'retryable', n < 0))
                from jobq.claim('{{default}}', 'w' || n, 1000) as c))
        ) as f
        """,
    ),
    "redrive_many": (
        10_000,
        "select count(*) from jobq.redrive_many(max_jobs => {batch})",
    ),
    "cancel_many": (
        10_000,
        "select count(*) from jobq.cancel_many(queue => 'default', max_jobs => {batch})",
    ),
}
# The goals of sets are for so many jobs.
SET = 100_000


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--priorities", type=int, default=20_000)
    options = parser.parse_args()
    with database() as (connection, _url):
        large(connection, options.jobs)
        priorities(connection, options.priorities)
        sets(connection, options.batch)


def large(connection: Connection, jobs: int) -> None:
    """Measure calls that look at a long queue, or past it."""
    fill = FILL.format(priority="0", run_at="now() - interval '1 h' + n * interval '1 us'")
    connection.execute(fill, ("large", jobs))
    connection.execute("vacuum analyze jobq_private.job")
    ends = connection.execute(
        "select (array_agg(job_id order by run_at))[1],"
        " (array_agg(job_id order by run_at desc))[1] from jobq_private.job"
    ).fetchone()
    assert ends is not None
    queues = "{" + ",".join(f"queue {n}" for n in range(1000)) + "}"
    print(f"{jobs:,} jobs wait, in one queue")
    for name, (goal, query) in LARGE.items():
        show(connection, name, goal, query.format(first=ends[0], last=ends[1], queues=queues))


def priorities(connection: Connection, count: int) -> None:
    """Measure a worker's calls in a queue whose many priorities are all due later."""
    clear(connection)
    fill = FILL.format(priority="n - 10000", run_at="now() + interval '1 h'")
    connection.execute(fill, ("later", count))
    connection.execute("vacuum analyze jobq_private.job")
    print(f"{count:,} priorities are due later")
    for name, (goal, query) in PRIORITIES.items():
        show(connection, name, goal, query)


def sets(connection: Connection, batch: int) -> None:
    """Measure changes of many jobs, one after another on the same jobs."""
    clear(connection)
    connection.execute(ROW_TRIGGER)
    connection.execute("select jobq.put_kind('set', lease => '1 s')")
    print(f"sets of {batch:,}")
    for name, (goal, query) in SETS.items():
        started = time.perf_counter()
        row = connection.execute(query.format(batch=batch).encode()).fetchone()
        took = 1000 * (time.perf_counter() - started)
        assert row is not None
        report(f"{name}, {row[0]:,} jobs", took, goal and goal * batch / SET)
        if "expire" in name:
            time.sleep(1.1)


def show(connection: Connection, name: str, goal: float, query: str) -> None:
    """Print how long a query takes that has run once before."""
    connection.execute(query.encode())
    started = time.perf_counter()
    connection.execute(query.encode())
    report(name, 1000 * (time.perf_counter() - started), goal)


def report(name: str, took: float, goal: float | None) -> None:
    """Print a figure beside its goal, in milliseconds."""
    beside = f"   (goal {goal:,.0f} ms)" if goal else ""
    print(f"  {name:<58} {took:>9,.1f} ms{beside}", flush=True)


if __name__ == "__main__":
    main()
