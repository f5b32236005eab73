"""What every fault run needs: a server, producers, workers, and the check of history."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import history
import psycopg
from fault_history import Journal, Stored, Trouble, lost_of, may_repeat, problems_of
from psycopg import sql
from replay import replay

from jobq.database import conninfo
from jobq.worker import tuning
from jobq_embedded import Server, ServerError
from jobq_operations.deploy import single_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from random import Random

ROOT = Path(__file__).resolve().parents[2]
# Seconds, each at the most: what the documents promise once faults have ended.
LEASE = 2.0
SWEEP = 1.5 * tuning.MAINTAIN_EVERY
POLL = 1.2
# Where connections were lost: a call without an answer, and the pause before the next try.
RECONNECT = tuning.CALL_SECONDS + 5.0
# For the work itself, on a machine that is busy: so many seconds, and jobs a second.
ALLOWANCE = 10.0
PACE = 20.0

LEFT = "select count(*) from jobq.job where finished_at is null"
JOBS = """
select coalesce(idempotency_key, job_id::text), job_id::text, state::text, attempt,
    finished_at is not null
from jobq.job where queue = 'probe' and kind <> 'bad'
"""
GAPS = """
select job_id from jobq.attempt group by job_id
having count(*) <> max(attempt) or min(attempt) <> 1
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run has shown.

    Attributes:
        acknowledged: enqueues that the database has confirmed.
        lost: of these, how many are not stored, or never finish.
        repeated: handlers' starts beyond the first of each job.
        at_most: how many there may be: attempts in hand of a worker when it died, or while
            it had no answer.
        stall: the longest time, in seconds, in which no handler ended.
        finished_in: seconds from the end of the load until all had finished.
        faults: how many there were.
        problems: everything that must not be.
        steps: changes of state that were replayed against the specification; None if they were
            not recorded to the end.
        rejected: how many of them the specification does not allow.
    """

    acknowledged: int
    lost: int
    repeated: int
    at_most: int
    stall: float
    finished_in: float
    faults: int
    problems: list[str]
    steps: int | None = None
    rejected: int = 0


class Producer(threading.Thread):
    """Enqueues jobs under keys, again and again until each is acknowledged."""

    def __init__(self, rig: Rig, number: int) -> None:
        super().__init__(daemon=True)
        self.rig, self.number = rig, number
        self.acknowledged: dict[str, str] = {}
        self.errors: dict[str, int] = {}
        self.is_unknown = False

    def warned(self, notice: psycopg.errors.Diagnostic) -> None:
        """Take a commit whose wait for a standby was cancelled as one of unknown outcome."""
        if notice.sqlstate == "01000":
            self.is_unknown = True
            self.errors["01000"] = self.errors.get("01000", 0) + 1

    def run(self) -> None:
        connection: psycopg.Connection[Any] | None = None
        n = 0
        while not self.rig.is_over.is_set():
            key = f"{self.number}-{n}"
            try:
                if connection is None or connection.closed:
                    connection = self.rig.connect(self.rig.producer_url)
                    connection.add_notice_handler(self.warned)
                self.is_unknown = False
                row = connection.execute(
                    "select jobq.enqueue(%s, %s::jsonb, 'probe', idempotency_key => %s)",
                    (self.rig.kind, f'{{"seconds": {self.rig.seconds}}}', key),
                ).fetchone()
                assert row is not None
                if not self.is_unknown:
                    self.acknowledged[key] = str(row[0])
                    n += 1
                self.rig.is_over.wait(self.rig.pause)
            except psycopg.Error as error:
                self.errors[error.sqlstate or "-"] = self.errors.get(error.sqlstate or "-", 0) + 1
                if error.sqlstate not in ("40001", "40P01"):
                    if connection is not None:
                        connection.close()
                    self.rig.is_over.wait(0.05)
        if connection is not None:
            connection.close()


@dataclass
class Rig:
    """A database under load, for one run.

    Attributes:
        is_cut_off: whether the faults break connections, or leave calls without an answer.
        is_recorded: whether the history is replayed; a server that is replaced has not all of it.
        kind: which of the probe's handlers has the jobs.
        limits: arguments of put_queue(), besides those of every run.
        at_end: yields what else must not be.
        troubles: what the run did to workers that they cannot tell themselves.
        shards: the databases, where there are several.
    """

    server: Server
    folder: Path
    name: str
    random: Random
    duration: float
    kind: str = "probe"
    limits: str = ""
    at_end: Callable[[], Iterable[str]] = tuple
    producers_count: int = 2
    workers_count: int = 2
    seconds: float = 0.02
    pause: float = 0.01
    faults: int = 0
    is_cut_off: bool = False
    is_recorded: bool = True
    troubles: list[Trouble] = field(default_factory=list)
    worker_prefix: list[str] = field(default_factory=list)
    database_url: str = ""
    worker_url: str = ""
    producer_url: str = ""
    listen_url: str | None = None
    shards: list[str] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    outcome: Outcome | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    groups: list[subprocess.Popen[str]] = field(default_factory=list)
    producers: list[Producer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.database_url or self.server.url_of(self.name)

    @property
    def journal(self) -> Path:
        return self.folder / f"{self.name}.journal"

    def connect(self, url: str = "") -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            conninfo(url or self.url, "fault run", is_pooled=True),
            autocommit=True,
            prepare_threshold=None,
        )
        with suppress(psycopg.Error):
            connection.execute("set statement_timeout = '15s'")
        return connection

    # ---- before, meanwhile, after

    def prepare(self, settings: Mapping[str, str] | None = None) -> None:
        """Make the database with jobq in it."""
        self.create()
        self.load()
        self.configure(settings)

    def load(self) -> None:
        """Load the single file."""
        environment = {**os.environ, "PGOPTIONS": "--client-min-messages=warning"}
        subprocess.run(
            ["psql", "-Xq", "-d", self.url, "-f", "-"], input=single_file(), text=True,
            check=True, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        if self.is_recorded:
            history.record(self.url)

    def create(self) -> None:
        """Make an empty database."""
        with psycopg.connect(self.server.url, autocommit=True) as admin:
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(self.name)))

    def configure(self, settings: Mapping[str, str] | None = None) -> None:
        """Declare the queue and the kind of the probe's jobs."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select jobq.maintain()")
            connection.execute(
                f"select jobq.put_queue('probe', lease => %s, max_attempts => 1000"
                f"{', ' + self.limits if self.limits else ''})".encode(),
                (f"{LEASE} s",),
            )
            connection.execute(
                "select jobq.put_kind(%s, retry_strategy => 'fixed',"
                " retry_initial_delay => '0.1 s', retry_max_delay => '1 s')",
                (self.kind,),
            )
            for setting, value in (settings or {}).items():
                connection.execute(
                    sql.SQL("alter database {} set {} = {}").format(
                        sql.Identifier(self.name), sql.Identifier(setting), sql.Literal(value)
                    )
                )

    def start(self) -> None:
        """Start workers, then producers, and wait until the first jobs have ended."""
        self.worker_url = self.worker_url or self.url
        self.producer_url = self.producer_url or self.url
        for _ in range(self.workers_count):
            self.add_worker()
        self.producers = [Producer(self, n) for n in range(self.producers_count)]
        for producer in self.producers:
            producer.start()
        self.wait(lambda: self.ended() > 20, "nothing works at all")

    def add_worker(self) -> None:
        """Start one more worker process."""
        listen = [self.listen_url] if self.listen_url else []
        log = (self.folder / f"{self.name}.log").open("ab")
        self.workers.append(
            subprocess.Popen(
                [
                    *self.worker_prefix,
                    sys.executable,
                    str(Path(__file__).with_name("probe.py")),
                    self.worker_url,
                    str(self.journal),
                    *listen,
                ],
                stdout=log,
                stderr=log,
            )
        )

    def kill_worker(self, victim: subprocess.Popen[bytes] | None = None) -> None:
        """Kill a worker, any one by default, in the middle of what it does; start another."""
        victim = victim or self.random.choice(self.workers)
        self.workers.remove(victim)
        with self.trouble(victim.pid):
            victim.kill()
            victim.wait()
        self.faults += 1
        self.add_worker()

    @contextmanager
    def trouble(self, pid: int | None = None) -> Iterator[None]:
        """Note that leases may run out, or a process dies, in this time.

        Args:
            pid: the worker that it happens to; None for all.
        """
        since = time.monotonic()
        yield
        self.troubles.append(Trouble(since, time.monotonic(), pid))

    def every(
        self, low: float, high: float, act: Callable[[], object], seconds: float | None = None
    ) -> None:
        """Do something again and again, at random times, while the run lasts."""
        end = time.monotonic() + (seconds or self.duration)
        while time.monotonic() < end:
            time.sleep(self.random.uniform(low, high))
            act()

    @staticmethod
    def wait(is_so: Callable[[], bool], otherwise: str, seconds: float = 90.0) -> None:
        """Wait for an observed condition."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                raise TimeoutError(otherwise)
            time.sleep(0.05)

    def start_server(self) -> None:
        """Start the server again; what a crash left behind may need a moment to go."""
        for _ in range(100):
            with suppress(ServerError):
                return self.server.start()
            time.sleep(0.1)
        return self.server.start()

    def postmaster(self) -> int:
        """The process id of the server."""
        pid_file = self.server.data_dir / "cluster" / "postmaster.pid"
        return int(pid_file.read_text().splitlines()[0])

    def stop(self) -> None:
        """Stop what the run has started."""
        self.is_over.set()
        for leader in self.groups:
            if leader.poll() is None:
                os.killpg(leader.pid, signal.SIGKILL)
                leader.wait()
        for producer in self.producers:
            producer.join(30)
        for worker in self.workers:
            with suppress(ProcessLookupError):
                worker.send_signal(signal.SIGCONT)
                worker.terminate()
        for worker in self.workers:
            try:
                worker.wait(15)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    # ---- the check

    def words_of_workers(self) -> str:
        """Return how the workers are, and what they said last."""
        statuses = [worker.poll() for worker in self.workers]
        last = (self.folder / f"{self.name}.log").read_text().splitlines()[-15:]
        return "\n".join([f"exit statuses {statuses}; their last words:", *last])

    def read(self) -> Journal:
        """Return what the workers have written down."""
        text = self.journal.read_text() if self.journal.exists() else ""
        return Journal.read(text.splitlines())

    def ended(self) -> int:
        """Return how many times a handler has ended."""
        text = self.journal.read_text() if self.journal.exists() else ""
        return text.count("end ")

    def check(self) -> Outcome:
        """Let the load go on, end it, let all finish, and hold the history against the promise.

        The faults are over: both must happen within the time that the documents name.
        """
        limit = LEASE + SWEEP + POLL + (RECONNECT if self.is_cut_off else 0) + ALLOWANCE
        ended = self.ended()
        try:
            self.wait(lambda: self.ended() > ended + 20, "work does not go on", limit)
        except TimeoutError as error:
            error.add_note(self.words_of_workers())
            raise
        self.is_over.set()
        for producer in self.producers:
            producer.join(30)
        acknowledged = {k: j for p in self.producers for k, j in p.acknowledged.items()}
        problems = [f"producer {p.number} hangs" for p in self.producers if p.is_alive()]
        if any(worker.poll() is not None for worker in self.workers):
            problems.append(f"a worker ended by itself: {self.words_of_workers()}")
        with ExitStack() as stack:
            connections = [
                stack.enter_context(self.connect(url)) for url in self.shards or [self.url]
            ]
            for connection in connections:
                connection.execute("set default_transaction_isolation = 'read committed'")

            def left() -> int:
                return sum(count(connection, LEFT) for connection in connections)

            since = time.monotonic()
            limit += left() / PACE
            try:
                self.wait(lambda: left() == 0, "", limit)
            except TimeoutError:
                problems.append(f"{left()} jobs have not finished after {limit:.1f} s")
            finished_in = time.monotonic() - since
            stored = [Stored(*row) for each in connections for row in each.execute(JOBS)]
            if gaps := [row for each in connections for row in each.execute(GAPS)]:
                problems.append(f"{len(gaps)} histories have gaps")
        journal = self.read()
        replayed = replay(self.url) if not self.shards and history.is_recorded(self.url) else None
        if replayed:
            problems += replayed.rejected[:20]
        problems += [
            *problems_of(journal, self.troubles, acknowledged, stored),
            *self.at_end(),
        ]
        return Outcome(
            acknowledged=len(acknowledged),
            lost=len(lost_of(acknowledged, stored)),
            repeated=len(list(journal.repeats())),
            at_most=len(may_repeat(journal, self.troubles)),
            stall=journal.stall,
            finished_in=finished_in,
            faults=self.faults,
            problems=problems,
            steps=replayed.steps.total() if replayed else None,
            rejected=len(replayed.rejected) if replayed else 0,
        )


def count(connection: psycopg.Connection[Any], query: str) -> int:
    """Return the only number that a query tells."""
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
