"""Print what it costs to wait: a fan-in of 10,000, a batch of 100,000, and how soon a child starts.

Usage: make bench PART=fan_in ARGS="[--parents 10000] [--members 100000] [--rounds 300]"

First graphs of two parents and a child, one after the other, whose own history tells how long after
the last parent's end the child was claimed. Then the same worker drains as many plain jobs, and
jobs of which the last one releases a child. What is waited for is looked at seldom, so that the
looks cost nothing.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from bench import bulk, database, one, working
from stamps import percentiles

from jobq import Client, Graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench import Connection

LIVE = "select exists (select from jobq_private.job)"
LAST_END = "select max(finished_at) from jobq_private.job_archive"
GAPS = """
select extract(epoch from min(c.claimed_at) - max(p.finished_at))
from jobq_private.edge as e
join jobq.job as p on p.job_id = e.parent
join jobq.job as c on c.job_id = e.child
group by e.child
"""


def main() -> None:
    """Measure plain jobs, then those that others wait for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parents", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    measure(options.parents, options.members, options.rounds)


def measure(parents: int = 10_000, member_count: int = 100_000, rounds: int = 300) -> None:
    """Print each figure as it is known."""
    with database() as (connection, url), working(url, 1):
        pairs(connection, rounds // 10)  # warm
        middle, late, longest = percentiles(pairs(connection, rounds))
        print(
            f"end of the last parent to the start of the child, of {rounds}:"
            f" p50 {middle:.2f} ms, p99 {late:.2f} ms, longest {longest:.1f} ms",
            flush=True,
        )
        bulk(connection, parents)
        drained(connection)
        plain = timed(connection, lambda: bulk(connection, parents))
        print(f"{parents:,} plain jobs: {plain:.2f} s", flush=True)
        waited = timed(connection, lambda: fan_in(connection, parents))
        print(f"and a child of all: {waited:.2f} s, {waited - plain:+.2f} s", flush=True)
        batch = timed(connection, lambda: members(connection, member_count))
        print(f"a batch of {member_count:,}: {batch:.2f} s", flush=True)
    with database() as (connection, _):
        fan_in(connection, member_count)
        gap, calls = claims(connection)
        print(
            f"a child of {member_count:,}: starts {gap:.3f} s after the end of the last parents;"
            f" longest of {len(calls):,} calls of exchange() {max(calls) * 1e3:.0f} ms",
            flush=True,
        )


def timed(connection: Connection, enqueue: Callable[[], object]) -> float:
    """Return the seconds from before the enqueue to the end of the last job."""
    since = one(connection, "select clock_timestamp()")
    enqueue()
    drained(connection)
    return (one(connection, LAST_END) - since).total_seconds()


def drained(connection: Connection) -> None:
    """Wait until no job is live."""
    while one(connection, LIVE):
        time.sleep(0.25)


def fan_in(connection: Connection, parents: int) -> None:
    """Enqueue jobs, and one that waits for all of them, in one transaction."""
    jobs = [{"kind": "noop"}] * parents
    with connection.transaction():
        client = Client(connection)
        made = client.enqueue_many(jobs)
        client.enqueue("noop", after=[job.job_id for job in made])


def claims(connection: Connection) -> tuple[float, list[float]]:
    """Finish all jobs, 20 in a call; return the seconds until the last came, and of each call."""
    ids: list[object] = []
    attempts: list[int] = []
    calls: list[float] = []
    ended = time.perf_counter()
    while one(connection, LIVE):
        began = time.perf_counter()
        ended = began if ids else ended
        found = connection.execute(
            "select job_id, attempt from jobq.exchange('{default}', 'bench', 20, %s, %s)",
            [ids, attempts],
        ).fetchall()
        calls.append(time.perf_counter() - began)
        if found:
            gap = time.perf_counter() - ended
        ids, attempts = [row[0] for row in found], [row[1] for row in found]
    return gap, calls


def members(connection: Connection, count: int) -> None:
    """Enqueue a batch with a job at its end."""
    client = Client(connection)
    batch = client.open_batch(on_success={"kind": "noop"})
    for _ in range(count // 10_000):
        client.enqueue_many([{"kind": "noop", "batch_id": str(batch)}] * 10_000)
    client.seal_batch(batch)


def pairs(connection: Connection, rounds: int) -> list[float]:
    """Return the milliseconds from the end of a child's last parent to its claim."""
    connection.execute("delete from jobq_private.edge")
    client = Client(connection)
    for _ in range(rounds):
        flow = Graph()
        child = flow.add("noop", after=[flow.add("noop") for _ in range(2)])
        client.result(client.enqueue_graph(flow)[child.name], timeout=60)
    return [float(gap) for (gap,) in connection.execute(GAPS).fetchall()]


if __name__ == "__main__":
    main()
