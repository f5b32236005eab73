"""Forty bad handlers beside a good one: the good one's jobs must finish on time.

Two workers run all of them, under a supervisor that starts a worker again when it ends with 75.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from hostile_handlers import BAD
from rig import ROOT, Outcome, count

from jobq import Client
from jobq.worker import EXIT_RECYCLE

if TYPE_CHECKING:
    import psycopg
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
                sys.executable, "-m", "jobq.cli", "worker", "hostile_handlers:registry",
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
    return client.settings(kind=BAD[-1])["timeout"] != client.settings()["timeout"]


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
