"""Print what a claim and a completion cost beside much that does not concern them.

Usage: make bench PART=flat ARGS="[--finished 10000000] [--tomorrow 1000000] [--calls 100]
    [case ...]"

The cases: `tomorrow`, jobs of the same queue that are due tomorrow; `finished`, jobs kept in
the archive; `queues`, a thousand other queues with jobs that are ready. Each is compared with
the empty case, measured just before it, in buffers and in microseconds as EXPLAIN ANALYZE
tells them of the whole call, without the commit. Figures are medians of the calls.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bench import bulk, clear, database

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench import Connection

STATISTICS = "vacuum (analyze) jobq_private.job, jobq_private.job_archive, jobq_private.queue"
EXPLAIN = "explain (analyze, buffers, format json) "
CLAIM = EXPLAIN + "select * from jobq.claim('{{default}}', 'bench', {})"
COMPLETE = EXPLAIN + "select * from jobq.complete_many(%s, %s)"
RUNNING = """
    select array_agg(job_id), array_agg(attempt)
    from (
        select job_id, attempt from jobq_private.job where state = 'running' limit 100
    ) as j
"""
ADD = """
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object('kind', 'noop') || {})
        from generate_series({}, {}) as n
    ))
"""
DUE_TOMORROW = "jsonb_build_object('run_at', now() + interval '1 day' + n * interval '1 ms')"
OF_A_THOUSAND = "jsonb_build_object('queue', 'queue ' || n % 1000)"
DAYS = 10
FINISHED = """
    insert into jobq_private.job_archive (
        job_id, kind, queue, lease, timeout, max_attempts, attempt, state, previous_state,
        created_at, run_at, claimed_at, finished_at, payload
    )
    select
        jobq_private.new_id(0), 'noop', 'default', '30 s', '1 min', 5, 1, 'succeeded', 'running',
        t.at, t.at, t.at, t.at, jsonb_build_object('n', n)
    from generate_series(1, %(jobs)s) as n
    cross join lateral (
        select date_trunc('day', now()) - %(day)s * interval '1 day'
            + n * (now() - date_trunc('day', now())) / %(jobs)s as at
    ) as t
"""


@dataclass(frozen=True)
class Cost:
    """What a call costs.

    Attributes:
        buffers: read or hit.
        microseconds: without the commit.
    """

    buffers: float
    microseconds: float


def main() -> None:
    """Measure each case that was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--tomorrow", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("cases", nargs="*", default=["tomorrow", "finished", "queues"])
    options = parser.parse_args()
    ballast: dict[str, tuple[str, Callable[[Connection], None]]] = {
        "tomorrow": (
            f"{options.tomorrow:,} jobs due tomorrow",
            partial(add, fields=DUE_TOMORROW, jobs=options.tomorrow),
        ),
        "finished": (
            f"{options.finished:,} finished jobs kept",
            partial(keep_finished, jobs=options.finished),
        ),
        "queues": (
            "1,000 other queues",
            partial(add, fields=OF_A_THOUSAND, jobs=1000 * options.calls),
        ),
    }
    with database() as (connection, _):
        for case in options.cases:
            what, load = ballast[case]
            empty = costs(connection, options.calls)
            load(connection)
            compare(what, empty, costs(connection, options.calls))
            clear(connection)


def add(connection: Connection, fields: str, jobs: int) -> None:
    """Enqueue jobs with the given fields."""
    batch = 50_000
    for first in range(1, jobs + 1, batch):
        connection.execute(ADD.format(fields, first, min(first + batch - 1, jobs)))


def keep_finished(connection: Connection, jobs: int) -> None:
    """Put finished jobs into the archive, over several days."""
    connection.execute("set session_replication_role = replica")
    for day in range(DAYS):
        connection.execute(
            "select jobq_private.make_partition('job_archive', current_date - %s)", [day]
        )
        connection.execute(FINISHED, {"jobs": jobs // DAYS, "day": day})
    connection.execute("reset session_replication_role")


def costs(connection: Connection, calls: int) -> dict[str, Cost]:
    """Return what each call costs now, by its name, of so many calls with batches."""
    bulk(connection, 250 * calls)
    connection.execute(STATISTICS)
    connection.execute("checkpoint")
    single = [cost(connection, CLAIM.format(1)) for _ in range(3 * calls)]
    batch, settled = [], []
    for _ in range(calls):
        batch.append(cost(connection, CLAIM.format(100)))
        running = connection.execute(RUNNING).fetchone()
        settled.append(cost(connection, COMPLETE, running))
    connection.execute("delete from jobq_private.job where run_at <= now() and queue = 'default'")
    return {
        "claim of 1": median(single),
        "claim of 100": median(batch),
        "completion of 100": median(settled),
    }


def cost(connection: Connection, call: str, parameters: Any = None) -> Cost:
    """Make a call and return what it costs."""
    row = connection.execute(call, parameters).fetchone()
    assert row is not None
    [explained] = row[0]
    plan = explained["Plan"]
    buffers = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return Cost(buffers, 1000 * explained["Execution Time"])


def median(found: list[Cost]) -> Cost:
    """Return the medians."""
    return Cost(
        statistics.median(c.buffers for c in found),
        statistics.median(c.microseconds for c in found),
    )


def compare(what: str, empty: dict[str, Cost], full: dict[str, Cost]) -> None:
    """Print each call's cost beside the empty case's."""
    for call, base in empty.items():
        now = full[call]
        print(
            f"{what:<32} {call:<18}"
            f" {now.buffers:>6,.0f} buffers ({now.buffers / base.buffers:.2f} times empty),"
            f" {now.microseconds:>6,.0f} µs ({now.microseconds / base.microseconds:.2f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
