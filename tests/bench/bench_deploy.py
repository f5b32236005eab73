"""Print for how long `jobq deploy` of a changed release holds up claims and enqueues under load.

Usage: make bench PART=deploy ARGS="[--rate 500] [--seconds 20] [--deploys 3]"

Producers enqueue at a rate, sessions claim and complete, and a reader keeps transactions of two
seconds open. Meanwhile the schema is made that of another release and `jobq deploy` brings it
back: functions, a trigger, an index, a foreign key, a view and grants change.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg
from bench import database

from jobq_operations import deploy

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER_RELEASE = (
    "do $$ begin execute replace(pg_get_functiondef('jobq.claim'::regproc), 'declare',"
    " 'declare -- of old'); end $$",
    "alter trigger job_birth on jobq_private.job rename to job_birth_of_old",
    "drop index jobq_private.job_blocked_idx",
    "alter table jobq_private.job drop constraint job_transition_fkey",
    "comment on function jobq.enqueue is 'of old'",
    "revoke execute on function jobq.redrive from jobq_operator",
)
CLAIMERS = 3
BATCHES_A_SECOND = 25


@dataclass
class Outcome:
    """What clients met.

    Attributes:
        errors: what was raised, by client.
        waits: the longest seconds that each kind of call took.
        jobs: how many were completed.
        said: what the deployments reported.
    """

    errors: list[str] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    jobs: int = 0
    said: list[str] = field(default_factory=list)


def main() -> None:
    """Measure, and print the longest pauses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--deploys", type=int, default=3)
    options = parser.parse_args()
    with database() as (_, url):
        outcome = under_load(url, options.rate, options.seconds, options.deploys)
    for line in outcome.said:
        print(f"  {line}")
    print(f"jobs completed          {outcome.jobs:,}")
    for name, seconds in sorted(outcome.waits.items()):
        print(f"longest {name:<15} {seconds:.2f} s")
    print(f"errors of clients       {len(outcome.errors)} {outcome.errors[:3]}")


def under_load(url: str, rate: int, seconds: float, deploys: int) -> Outcome:
    """Deploy a changed release so many times under load; return what clients met.

    Args:
        url: a superuser's URL of a database with jobq.
        rate: jobs a second.
        seconds: before, between and after deployments together.
        deploys: how many.
    """
    outcome, stop = Outcome(), threading.Event()
    clients: list[Callable[[psycopg.Connection], None]] = [
        lambda c: produce(c, rate, outcome),
        read,
        *[lambda c: consume(c, outcome)] * CLAIMERS,
    ]
    threads = [threading.Thread(target=repeat, args=(c, url, stop, outcome)) for c in clients]
    for thread in threads:
        thread.start()
    try:
        for _ in range(deploys):
            time.sleep(seconds / (deploys + 1))
            while not become_another(url):
                time.sleep(0.1)
            deploy.deploy(url, outcome.said.append)
        time.sleep(seconds / (deploys + 1))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return outcome


def repeat(
    act: Callable[[psycopg.Connection], None], url: str, stop: threading.Event, outcome: Outcome
) -> None:
    """Do something again and again, and note what fails."""
    with psycopg.connect(url, autocommit=True) as connection:
        while not stop.is_set():
            try:
                act(connection)
            except psycopg.Error as error:
                outcome.errors.append(f"{error.sqlstate}: {error}")


def produce(connection: psycopg.Connection, rate: int, outcome: Outcome) -> None:
    """Enqueue a part of a second's jobs, and wait for the next."""
    jobs = json.dumps([{"kind": "k"}] * (rate // BATCHES_A_SECOND))
    started = time.monotonic()
    connection.execute("select count(*) from jobq.enqueue_many(%s)", [jobs])
    waited(outcome, "enqueue", started)
    time.sleep(max(0.0, started + 1 / BATCHES_A_SECOND - time.monotonic()))


def consume(connection: psycopg.Connection, outcome: Outcome) -> None:
    """Claim some jobs and complete them."""
    started = time.monotonic()
    claimed = connection.execute(
        "select job_id, attempt from jobq.claim('{default}', 'w', 50)"
    ).fetchall()
    waited(outcome, "claim", started)
    if not claimed:
        time.sleep(0.01)
        return
    started = time.monotonic()
    ids, attempts = zip(*claimed, strict=True)
    connection.execute(
        "select count(*) from jobq.complete_many(%s::uuid[], %s::integer[])",
        [list(ids), list(attempts)],
    )
    waited(outcome, "complete", started)
    outcome.jobs += len(claimed)


def read(connection: psycopg.Connection) -> None:
    """Keep a transaction open that has read the jobs."""
    with connection.transaction():
        connection.execute("select count(*) from jobq_private.job")
        time.sleep(2)
    time.sleep(1)


def waited(outcome: Outcome, name: str, started: float) -> None:
    """Note how long a call took."""
    outcome.waits[name] = max(outcome.waits.get(name, 0.0), time.monotonic() - started)


def become_another(url: str) -> bool:
    """Make the schema that of another release; tell whether nobody was in the way."""
    with suppress(psycopg.errors.LockNotAvailable), psycopg.connect(url) as connection:
        connection.execute("set lock_timeout = '200ms'")
        connection.execute("lock table jobq_private.job in access exclusive mode")
        for statement in OTHER_RELEASE:
            connection.execute(statement)
        return True
    return False


if __name__ == "__main__":
    main()
