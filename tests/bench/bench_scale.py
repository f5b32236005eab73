"""Print what calls cost in a large database, each once warm.

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
    select jobq_private.new_id(), 'k', %s, {priority}, {run_at}, 5, '5 min', '30 s'
    from generate_series(1, %s) as n
"""
LARGE = {
    "metrics": "select count(*) from jobq.metrics()",
    "queue_stats": "select count(*) from jobq.queue_stats()",
    "explain, head of the queue": "select count(*) from jobq.explain('{first}')",
    "explain, end of the queue": "select count(*) from jobq.explain('{last}')",
    "list_jobs that no job fits": "select count(*) from jobq.list_jobs(kind => 'none')",
    "claim of 1,000 empty queues": "select count(*) from jobq.claim('{queues}', 'w')",
    "due_in of 1,000 empty queues": "select jobq.due_in('{queues}')",
}
PRIORITIES = {
    "claim, {count:,} priorities due later": "select count(*) from jobq.claim('{{later}}', 'w')",
    "due_in, {count:,} priorities due later": "select jobq.due_in('{{later}}')",
}
ROW_TRIGGER = """
    create function enqueue_order() returns trigger language plpgsql as
    'begin perform jobq.enqueue(''order''); return null; end';
    create table "order" (id bigint);
    create trigger enqueue_order after insert on "order"
    for each row execute function enqueue_order()
"""
SETS = {
    "enqueue_many": """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'set')) from generate_series(1, {batch})))
    """,
    "enqueue_many, idempotency keys": """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'set', 'idempotency_key', n::text))
            from generate_series(1, {batch}) as n))
    """,
    "an insert whose row trigger enqueues": """
        with stored as (insert into "order" select generate_series(1, {batch}) returning id)
        select count(*) from stored
    """,
    "claim and fail for good, 1,000 at a time": """
        select sum(f.jobs) from generate_series(1, {batch} / 1000) as n
        cross join lateral (
            select count(*) as jobs from jobq.fail_many((
                select jsonb_agg(jsonb_build_object(
                    'job_id', c.job_id, 'attempt', c.attempt, 'retryable', n < 0))
                from jobq.claim('{{default}}', 'w' || n, 1000) as c))
        ) as f
    """,
    "redrive_many": "select count(*) from jobq.redrive_many(max_jobs => {batch})",
    "cancel_many": "select count(*) from jobq.cancel_many(queue => 'default', max_jobs => {batch})",
}


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--priorities", type=int, default=20_000)
    options = parser.parse_args()
    with database() as (connection, _url):
        print(f"{options.jobs:,} jobs wait")
        fill = FILL.format(priority="0", run_at="now() - interval '1 h' + n * interval '1 us'")
        connection.execute(fill, ("large", options.jobs))
        connection.execute("vacuum analyze jobq_private.job")
        ends = connection.execute(
            "select (array_agg(job_id order by run_at))[1],"
            " (array_agg(job_id order by run_at desc))[1] from jobq_private.job"
        ).fetchone()
        assert ends is not None
        queues = "{" + ",".join(f"queue {n}" for n in range(1000)) + "}"
        for name, query in LARGE.items():
            show(connection, name, query.format(first=ends[0], last=ends[1], queues=queues))

        clear(connection)
        fill = FILL.format(priority="n - 10000", run_at="now() + interval '1 h'")
        connection.execute(fill, ("later", options.priorities))
        connection.execute("vacuum analyze jobq_private.job")
        for name, query in PRIORITIES.items():
            show(connection, name.format(count=options.priorities), query.format())

        clear(connection)
        connection.execute(ROW_TRIGGER)
        print(f"sets of {options.batch:,}")
        for name, query in SETS.items():
            show_set(connection, name, query.format(batch=options.batch))


def show(connection: Connection, name: str, query: str) -> None:
    """Print how long a query takes that has run once before."""
    connection.execute(query.encode())
    started = time.perf_counter()
    connection.execute(query.encode())
    print(f"  {name}: {1000 * (time.perf_counter() - started):,.1f} ms", flush=True)


def show_set(connection: Connection, name: str, query: str) -> None:
    """Print how long a query takes, and how many jobs it was about."""
    started = time.perf_counter()
    row = connection.execute(query.encode()).fetchone()
    took = 1000 * (time.perf_counter() - started)
    assert row is not None
    print(f"  {name}: {took:,.1f} ms, {row[0]:,} jobs", flush=True)


if __name__ == "__main__":
    main()
