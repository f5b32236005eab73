"""Bad handlers beside a good one, and bad producers beside good ones.

The good ones' jobs must finish on time. Two workers run all handlers, under a supervisor that
starts a worker again when it ends with 75.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
from hostile_handlers import BAD
from rig import ROOT, Outcome, count

from jobq import Client
from jobq.worker import EXIT_RECYCLE

if TYPE_CHECKING:
    from rig import Rig

# Seconds from enqueue to end of a good job: a coroutine blocks the loop for two, and a worker
# that has lost its slots takes some to end, while the other goes on.
ON_TIME = 10.0
# Seconds for the bad jobs to be settled: timeouts are of one, and some wait for a process.
SETTLED = 60.0
PAUSE = 0.05
# Never settled, by its own wish: another worker might have what it lacks.
PUT_OFF = "unable"

LEFT_GOOD = "select count(*) from jobq.job where queue = 'good' and finished_at is null"
LEFT_BAD = f"""
select count(*) from jobq.job
where queue = 'bad' and kind <> '{PUT_OFF}' and finished_at is null
"""
NOT_WELL = "select count(*) from jobq.job where queue = 'good' and state <> 'succeeded'"
AGAIN = "select coalesce(sum(attempts - 1), 0) from jobq.job where queue = 'good'"
WORST = """
select coalesce(extract(epoch from max(finished_at - created_at)), 0)
from jobq.job where queue = 'good'
"""


class Supervisor(threading.Thread):
    """Keeps two workers running.

    Attributes:
        restarts: how often one has ended to be started afresh.
        deaths: how often one has ended otherwise.
    """

    def __init__(self, rig: Rig) -> None:
        super().__init__(daemon=True)
        self.rig = rig
        self.restarts = 0
        self.deaths: list[int] = []
        rig.workers = [self.launch() for _ in range(2)]

    def launch(self) -> subprocess.Popen[bytes]:
        log = (self.rig.folder / f"{self.rig.name}.log").open("ab")
        return subprocess.Popen(
            [
                sys.executable, "-m", "jobq_cli", "worker", "hostile_handlers:registry",
                "--queue", "good", "--queue", "bad", "--no-deliver", "--no-metrics",
                "--concurrency", "10", "--processes", "4", "--grace", "5",
            ],
            env={
                **os.environ,
                "DATABASE_URL": self.rig.url,
                "PYTHONPATH": str(ROOT / "tests" / "python"),
            },
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip

    def run(self) -> None:
        while not self.rig.is_over.wait(0.1):
            for place, worker in enumerate(self.rig.workers):
                status = worker.poll()
                if status is None:
                    continue
                if status == EXIT_RECYCLE:
                    self.restarts += 1
                else:
                    self.deaths.append(status)
                self.rig.workers[place] = self.launch()


def hostile_handlers(rig: Rig) -> None:
    """Handlers hang, loop, exit, fork, swallow cancellation, raise everything, log without end."""
    rig.prepare()
    with rig.connect() as connection:
        connection.execute("select jobq.put_queue('good', lease => '10 s')")
        connection.execute("select jobq.put_queue('bad', lease => '10 s')")
    supervisor = Supervisor(rig)
    with Client(rig.url) as client, rig.connect() as connection:
        rig.wait(lambda: has_kind(client), "the workers do not start")
        supervisor.start()
        good = feed(rig, client)
        since = time.monotonic()
        for query, limit, what in (
            (LEFT_GOOD, ON_TIME, "good jobs have not finished"),
            (LEFT_BAD, SETTLED, "bad jobs are not settled"),
        ):
            settle(rig, connection, query, limit, what)
        rig.outcome = Outcome(
            acknowledged=good,
            lost=count(connection, NOT_WELL),
            repeated=count(connection, AGAIN),
            at_most=0,
            stall=float(connection.execute(WORST).fetchall()[0][0]),
            finished_in=time.monotonic() - since,
            faults=rig.faults,
            problems=[],
        )
    judge(rig, supervisor)


def has_kind(client: Client) -> bool:
    """Whether a worker has declared the handlers' kinds, the last thing before it works."""
    return bool(client.settings(kind=BAD[-1])["timeout"] != client.settings()["timeout"])


def feed(rig: Rig, client: Client) -> int:
    """Enqueue bad jobs and good ones by turns while the run lasts; return how many good."""
    end = time.monotonic() + rig.duration
    while time.monotonic() < end or rig.faults < len(BAD):
        client.enqueue(BAD[rig.faults % len(BAD)], queue="bad")
        rig.faults += 1
        client.enqueue("good", queue="good")
        time.sleep(PAUSE)
    return rig.faults


def settle(
    rig: Rig, connection: psycopg.Connection[Any], query: str, limit: float, what: str
) -> None:
    """Wait until no job is left of those that a query counts."""
    rig.wait(lambda: count(connection, query) == 0, f"{what} within {limit:g} s", limit)


def judge(rig: Rig, supervisor: Supervisor) -> None:
    """Add what must not be to the outcome."""
    outcome = rig.outcome
    assert outcome is not None
    if outcome.lost:
        outcome.problems.append(f"{outcome.lost} good jobs did not succeed")
    if outcome.repeated:
        outcome.problems.append(f"good jobs took {outcome.repeated} attempts too many")
    if outcome.stall > ON_TIME:
        outcome.problems.append(f"a good job took {outcome.stall:.1f} s")
    if supervisor.deaths:
        outcome.problems.append(f"workers ended with {supervisor.deaths}")


DEEP = "(repeat('[', 3000) || repeat(']', 3000))::jsonb"
# What a producer may ask for, by intent or not; most of it is refused. The kind is one that no
# worker knows, in the queue that they serve too.
ASKED = (
    "select jobq.enqueue('bad', queue => 'probe')",
    "select jobq.enqueue('bad', queue => 'probe', priority => 32767, run_at => '0044-03-15 BC')",
    "select jobq.enqueue('bad', queue => 'probe', run_at => '200000-01-01')",
    f"select jobq.enqueue('bad', {DEEP}, queue => 'probe')",
    f"select jobq.enqueue('bad', queue => 'probe', metadata => {DEEP})",
    "select jobq.enqueue('bad', jsonb_build_object('n', 1e-16383), queue => 'probe')",
    "select jobq.enqueue('bad', to_jsonb(repeat('x', 900000)), queue => 'probe')",
    "select jobq.enqueue('bad', queue => 'probe', idempotency_key => repeat('k', 100000))",
    "select count(jobq.enqueue('bad', queue => 'queue ' || n)) from generate_series(1, 200) as n",
    "select count(jobq.enqueue('bad', queue => 'probe', priority => n, run_at => now() + '1 d'))"
    " from generate_series(1, 200) as n",
    "select count(jobq.enqueue('bad', queue => 'probe', priority => n))"
    " from generate_series(1, 50) as n",
    "select jobq.enqueue('bad', queue => 'probe', concurrency_key => gen_random_uuid()::text)",
    "select count(*) from jobq.enqueue_many((select jsonb_agg(jsonb_build_object("
    "'kind', 'bad', 'queue', 'probe', 'idempotency_key', (n * 7 % 50)::text, 'dedup_key',"
    " (n % 20)::text, 'dedup', 'replace')) from generate_series(1, 100) as n))",
    "select jobq.cancel_many(kind => 'bad')",
    "begin; select jobq.enqueue('bad', queue => 'probe', dedup_key => 'held');"
    " select pg_sleep(0.3); rollback",
    "begin; select jobq.enqueue('bad', queue => 'probe');"
    " select pg_terminate_backend(pg_backend_pid())",
)


def hostile_producers(rig: Rig) -> None:
    """Producers ask for what cannot be, or for too much, hold keys open and break off."""
    rig.prepare()
    rig.start()
    until = time.monotonic() + rig.duration

    def produce() -> None:
        while time.monotonic() < until:
            with suppress(psycopg.Error), rig.connect() as connection:
                while time.monotonic() < until:
                    rig.faults += 1
                    with suppress(psycopg.errors.DataError, psycopg.errors.ProgramLimitExceeded):
                        connection.execute(rig.random.choice(ASKED).encode())

    producers = [threading.Thread(target=produce) for _ in range(3)]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    with rig.connect() as connection:
        while connection.execute("select from jobq.delete_many(kind => 'bad')").rowcount > 0:
            pass
