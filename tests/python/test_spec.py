"""The specification: it is the product's, it catches broken twins, and histories follow it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import chance
import history
import psycopg
import pytest
import relation
from replay import Replay, replay

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]

STEPS = int(os.environ.get("JOBQ_SPEC_STEPS", "1500"))
# Refused by the product, or beaten by another session.
EXPECTED = (
    "23503", "23505", "40001", "40P01", "55P03",
    "JQ001", "JQ002", "JQ003", "JQ007", "JQ008", "JQ011",
)  # fmt: skip
LIMITED = {("load", key): 1 for key in ("a", "b")}


@pytest.fixture
def recorded(database: str) -> Iterator[str]:
    """A database whose history is recorded; nothing is replayed at the end."""
    history.record(database)
    yield database
    history.forget(database)


def test_the_relation_is_the_products(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute(
            "select from_state, to_state from jobq_private.transition"
        ).fetchall()
    assert relation.transitions() == set(rows)


@pytest.mark.long
def test_the_checker_catches_broken_twins() -> None:
    command = [sys.executable, str(ROOT / "tests/spec/prove.py"), "--short"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout.count("caught") == 4


class Load:
    """Sessions that do at random what callers do, and what nobody should."""

    def __init__(self, url: str, draw: random.Random, *, is_sound: bool) -> None:
        self.draw, self.is_sound = draw, is_sound
        self.sessions = [psycopg.connect(url, autocommit=True) for _ in range(4)]
        for session in self.sessions:
            session.execute("set lock_timeout = '50ms'")
        self.running: list[tuple[Any, int]] = []
        self.jobs: list[Any] = []

    def run(self, steps: int) -> None:
        acts: list[Callable[[Connection], None]] = [
            self.enqueue, self.claim, self.claim, self.settle, self.settle, self.cancel,
            self.redrive, self.update, self.maintain,
        ]  # fmt: skip
        for _ in range(steps):
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
        row = session.execute(statement.encode(), arguments).fetchone()
        return row[0] if row else None

    def enqueue(self, session: Connection) -> None:
        after = [self.draw.choice(self.jobs)] if self.jobs and self.draw.random() < 0.3 else None
        self.jobs.append(
            self.one(
                session,
                "select jobq.enqueue('load', queue => 'load', max_attempts => 2,"
                " after => %s::uuid[], concurrency_key => %s, priority => %s, after_failure => %s)",
                after, self.draw.choice(["a", "b", None]), self.draw.randint(0, 2),
                self.draw.choice(["cancel", "wait", "run"]) if after else None,
            )
        )  # fmt: skip

    def claim(self, session: Connection) -> None:
        rows = session.execute("select job_id, attempt from jobq.claim('{load}', 'w', 3)")
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


def load(url: str, steps: int, bug: str = "") -> Replay:
    """Run a random load and replay its history.

    Args:
        url: of a superuser, of a recorded database.
        steps: how many calls.
        bug: statements that plant one; the product may then fail in any way.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select jobq.put_queue('load', key_max_running => 1)")
        if bug:
            connection.execute(bug.encode())
    Load(url, random.Random(chance.seed()), is_sound=not bug).run(steps)
    return replay(url, LIMITED)


@pytest.mark.long
def test_a_random_load_follows_the_specification(recorded: str) -> None:
    replayed = load(recorded, STEPS)
    assert not replayed.rejected, str(replayed)
    assert len(replayed.steps) > 12
    assert replayed.steps.total() > STEPS / 4


# A function, what to replace in it, and what else the product would refuse the bug with.
PLANTED = {
    "a claim does not raise the attempt": (
        "jobq.claim",
        ("attempt = j.attempt + 1", "attempt = j.attempt"),
        "alter table jobq_private.job disable trigger job_transition",
    ),
    "a lost attempt succeeds": (
        "jobq_private.archive_jobs",
        ("and (j.lease_expires_at is not null", "and (true"),
        "alter table jobq_private.job_archive drop constraint job_archive_transition_fkey",
    ),
    "any update of the state is accepted": (
        "jobq_private.stamp_transition",
        ("new.previous_state := old.state;", "new.previous_state := null;"),
        "",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_rejected(recorded: str, bug: str) -> None:
    function, (old, new), others = PLANTED[bug]
    with psycopg.connect(recorded, autocommit=True) as connection:
        [(source,)] = connection.execute(
            "select pg_get_functiondef(%s::regproc)", [function]
        ).fetchall()
        assert old in source
    bug = f"{source.replace(old, new)}; {others}"
    replayed = load(recorded, STEPS, bug)
    assert replayed.rejected
