"""A random load of SQL: what callers do, and what nobody should do, from several sessions.

Several loads may work on one database at once, each in its own thread. A load of its own is
repeated exactly by its seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import relation
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]
    Attempt = tuple[Any, int]

# Refused by the product, or beaten by another session.
EXPECTED = (
    "23503", "23505", "40001", "40P01", "55P03",
    "JQ001", "JQ002", "JQ003", "JQ004", "JQ007", "JQ008", "JQ011",
)  # fmt: skip
SESSIONS = 4
QUEUE = "load"
KEYS = ("a", "b", None)
# One job of a key at once, and two attempts of a job.
SETUP = f"select jobq.put_queue('{QUEUE}', key_max_running => 1)"
# So short that attempts lose it while the load runs.
SHORT_LEASES = f"{SETUP}; select jobq.put_kind('load', queue => '{QUEUE}', lease => '1 s')"
LIMITS = {(QUEUE, key): 1 for key in KEYS if key}


class Load:
    """Sessions that make random calls.

    Args:
        url: of a superuser, of a database that `SETUP` was run in.
        draw: decides.
        is_sound: whether an error that no caller should see is raised.
        most: how many jobs a call concerns at most.
    """

    def __init__(
        self, url: str, draw: random.Random, *, is_sound: bool = True, most: int = 3
    ) -> None:
        self.draw, self.is_sound, self.most = draw, is_sound, most
        self.sessions = [psycopg.connect(url, autocommit=True) for _ in range(SESSIONS)]
        for session in self.sessions:
            session.execute("set lock_timeout = '20ms'")
        self.running: list[Attempt] = []
        self.jobs: list[Any] = []

    def run(self, calls: int) -> None:
        """Make so many calls, and close the sessions."""
        acts: list[Callable[[Connection], None]] = [
            self.enqueue, self.claim, self.claim, self.settle, self.settle, self.cancel,
            self.redrive, self.update, self.maintain,
        ]  # fmt: skip
        if self.most > 3:
            acts += [
                self.enqueue_many, self.enqueue_many, self.settle_many, self.settle_many,
                self.exchange, self.exchange, self.heartbeat,
            ]  # fmt: skip
        for _ in range(calls):
            session = self.draw.choice(self.sessions)
            try:
                self.draw.choice(acts)(session)
            except psycopg.Error as error:
                if self.is_sound and error.sqlstate not in EXPECTED:
                    raise
                session.rollback()
            if self.draw.random() < 0.1:
                session.rollback()
                session.autocommit = self.draw.random() < 0.7
            if not session.autocommit and self.draw.random() < 0.3:
                session.commit() if self.draw.random() < 0.7 else session.rollback()
        for session in self.sessions:
            session.rollback()
            session.close()

    def one(self, session: Connection, statement: str, *arguments: object) -> Any:
        """Return the first value of the first row."""
        row = session.execute(statement.encode(), arguments).fetchone()
        return row[0] if row else None

    def enqueue(self, session: Connection) -> None:
        after = [self.draw.choice(self.jobs)] if self.jobs and self.draw.random() < 0.3 else None
        self.jobs.append(
            self.one(
                session,
                "select jobq.enqueue('load', queue => 'load', max_attempts => 2,"
                " after => %s::uuid[], concurrency_key => %s, priority => %s, after_failure => %s)",
                after, self.draw.choice(KEYS), self.draw.randint(0, 2),
                self.draw.choice(["cancel", "wait", "run"]) if after else None,
            )
        )  # fmt: skip

    def enqueue_many(self, session: Connection) -> None:
        jobs = [
            {
                "kind": "load", "queue": QUEUE, "max_attempts": self.draw.randint(1, 3),
                "priority": self.draw.randint(0, 2),
                # Most have no key: those run side by side.
                "concurrency_key": self.draw.choice([*KEYS, None, None, None]),
                "idempotency_key": str(self.draw.randint(0, 999)) if self.draw.random() < 0.1
                else None,
                "after": [str(self.draw.choice(self.jobs))]
                if self.jobs and self.draw.random() < 0.1
                else None,
            }
            for _ in range(self.draw.randint(1, self.most))
        ]  # fmt: skip
        jobs = [{k: v for k, v in job.items() if v is not None} for job in jobs]
        rows = session.execute("select job_id from jobq.enqueue_many(%s)", [Jsonb(jobs)])
        self.jobs += [job_id for (job_id,) in rows]

    def claim(self, session: Connection) -> None:
        rows = session.execute(
            "select job_id, attempt from jobq.claim('{load}', 'w', %s)", [self.most]
        )
        self.running += rows.fetchall()

    def settle(self, session: Connection) -> None:
        if not self.running:
            return
        attempt = self.draw.choice(self.running)
        if self.draw.random() < 0.7:  # others are settled twice: the second time they are lost
            self.running.remove(attempt)
        how = self.draw.choice([
            "jobq.complete(%s, %s)", "jobq.complete(%s, %s)", "jobq.fail(%s, %s, 'no', 'NO')",
            "jobq.release(%s, %s)", "jobq.fail(%s, %s, 'no', 'NO', retry_in => '0')",
        ])  # fmt: skip
        self.one(session, f"select {how}", *attempt)

    def settle_many(self, session: Connection) -> None:
        attempts = self.taken()
        how = self.draw.choice(["complete_many", "complete_many", "release_many", "fail_many"])
        if how == "fail_many":
            failures = [
                {"job_id": str(job_id), "attempt": attempt, "error": "no", "error_code": "NO",
                 "retryable": self.draw.random() < 0.8, "retry_in": "PT0S"}
                for job_id, attempt in attempts
            ]  # fmt: skip
            session.execute("select jobq.fail_many(%s)", [Jsonb(failures)])
        else:
            session.execute(
                f"select jobq.{how}(%s::uuid[], %s::int[])".encode(),
                [[job_id for job_id, _ in attempts], [attempt for _, attempt in attempts]],
            )

    def exchange(self, session: Connection) -> None:
        attempts = self.taken()
        rows = session.execute(
            "select outcome, job_id, attempt"
            " from jobq.exchange('{load}', 'w', %s, %s::uuid[], %s::int[])",
            [
                self.most,
                [job_id for job_id, _ in attempts],
                [attempt for _, attempt in attempts],
            ],
        )
        self.running += [(job_id, n) for outcome, job_id, n in rows if outcome == "claimed"]

    def heartbeat(self, session: Connection) -> None:
        attempts = self.some()
        session.execute(
            "select jobq.heartbeat('w', %s::uuid[], %s::int[])",
            [[job_id for job_id, _ in attempts], [attempt for _, attempt in attempts]],
        )

    def some(self) -> list[Attempt]:
        """Choose some attempts, of which others may have been forgotten."""
        self.running = list(dict.fromkeys(self.running[-5 * self.most :]))
        count = min(len(self.running), self.draw.randint(1, self.most))
        return self.draw.sample(self.running, count)

    def taken(self) -> list[Attempt]:
        """Choose some attempts to settle; a few stay, to be settled again."""
        chosen = self.some()
        gone = {attempt for attempt in chosen if self.draw.random() < 0.9}
        self.running = [attempt for attempt in self.running if attempt not in gone]
        return chosen

    def cancel(self, session: Connection) -> None:
        if self.jobs and self.draw.random() < 0.3:
            self.one(session, "select jobq.cancel(%s)", self.draw.choice(self.jobs))

    def redrive(self, session: Connection) -> None:
        if self.jobs:
            self.one(session, "select jobq.redrive(%s)", self.draw.choice(self.jobs))

    def update(self, session: Connection) -> None:
        if self.jobs:
            # To release a blocked job by hand is a person's own decision: it does not wait.
            session.execute(
                "update jobq.job set state = %(state)s where job_id = %(job)s"
                " and (state, %(state)s) <> ('blocked', 'queued')",
                {
                    "state": self.draw.choice(relation.STATES),
                    "job": self.draw.choice(self.jobs),
                },
            )

    def maintain(self, session: Connection) -> None:
        if session.autocommit and self.draw.random() < 0.2:
            self.one(session, "select jobq.maintain()")
