"""Limits, rates, holds and orders under random calls from sessions with open transactions.

After each call an observer holds what is committed against the limits that hold: what runs grows
in no scope past its limit, a rate that gives no token back within the run lets a burst start, and
in an ordered key nothing overtakes. No claim waits or fails at READ COMMITTED. In the end nothing
may wait that no limit keeps from starting. JOBQ_SEED=N has chance fall otherwise,
JOBQ_MODEL_EXAMPLES=N makes more runs.
"""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Any

import chance
import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]

RUNS = int(os.environ.get("JOBQ_MODEL_EXAMPLES", "6"))
STEPS = 80
PATIENCE = 60.0
QUEUES = ["default", "other", "rated", "ordered"]
LEVELS = ["read committed", "read committed", "repeatable read", "serializable"]
STALE = ("40001", "40P01", "23505")
BURST = 3
# How many run in each scope in which something may be limited.
RUNNING = """
    select 'queue ' || queue as scope, count(*) from jobq_private.job
    where state = 'running' group by scope
    union all
    select 'kind ' || kind as scope, count(*) from jobq_private.job
    where state = 'running' group by scope
    union all
    select queue || ' ' || concurrency_key as scope, count(*) from jobq_private.job
    where state = 'running' and concurrency_key is not null group by scope
    union all
    select format('keys of %s %s', kind, concurrency_key) as scope, count(*)
    from jobq_private.job
    where state = 'running' and concurrency_key is not null group by scope
"""
# What is never true of what is committed: each query returns offenders.
NEVER = {
    "more starts than a rate lets pass": f"""
        select concurrency_key from jobq.job where queue = 'rated'
        group by concurrency_key having sum(attempt) > {BURST}""",
    "more starts of a key than its kind lets pass": f"""
        select concurrency_key from jobq.job where kind = 'slow' and concurrency_key is not null
        group by concurrency_key having sum(attempt) > {BURST}""",
    "overtaken in an ordered key": """
        select concurrency_key from jobq_private.job
        where queue = 'ordered' and state in ('running', 'retrying')
        group by concurrency_key having count(*) > 1""",
    "overtaken in a key of an ordered kind": """
        select concurrency_key from jobq_private.job
        where kind = 'line' and state in ('running', 'retrying') and concurrency_key is not null
        group by concurrency_key having count(*) > 1""",
}
# What may start and does not: but in its lane a job goes before it whose kind has spent its rate,
# or that waits again in the order of its kind.
STRANDED = """
    select j.job_id from jobq_private.job as j
    where j.state in ('queued', 'retrying') and j.run_at <= clock_timestamp()
    and not exists (select from jobq_private.barriers(j, clock_timestamp()))
    and not exists (
        select from jobq_private.job as a
        where a.lane_id = j.lane_id and a.job_id <> j.job_id and (
            a.kind = 'slow' and a.priority = j.priority
            and (a.run_at, a.job_id) < (j.run_at, j.job_id)
            and exists (
                select from jobq_private.barriers(a, clock_timestamp()) as b
                where b.reason = 'rate_limited'
            )
            or a.job_id in (
                select g.head_job_id from jobq_private.gate as g
                where g.gate_id = jobq_private.key_gate_id('line', j.concurrency_key)
            )
            and a.run_at > clock_timestamp()
        )
    )
"""


class Story:
    """A run: sessions, what may be done in them, and the limits that hold.

    Args:
        connect: opens a connection.
        dice: what is done.
    """

    def __init__(self, connect: Callable[[], Connection], dice: random.Random) -> None:
        self.dice = dice
        self.connect = connect
        self.observer = connect()
        self.sessions = [self.session() for _ in range(4)]
        self.levels = ["read committed"] * 4
        self.limits: dict[str, int | None] = {}
        self.ran: dict[str, int] = {}
        self.calls = [
            self.enqueue, self.enqueue, self.claim, self.claim, self.claim, self.claim_job,
            self.start_by_hand, self.complete, self.complete, self.fail, self.release, self.cancel,
            self.redrive, self.move, self.change, self.delete, self.hold, self.let_go,
        ]  # fmt: skip
        self.puts = [self.put_queue, self.put_queue, self.put_limit, self.put_kind]
        self.observer.execute(
            "select jobq.put_queue('rated', key_rate_limit => 1, key_rate_period => '1 h',"
            f" key_rate_burst => {BURST}), jobq.put_queue('ordered', ordered => true),"
            " jobq.put_kind('slow', key_rate_limit => 1, key_rate_period => '1 h',"
            f" key_rate_burst => {BURST}), jobq.put_kind('line', ordered => true)"
        )

    def session(self) -> Connection:
        session = self.connect()
        session.execute("set lock_timeout = '20ms'")
        return session

    def ids(self, condition: str) -> list[Any]:
        query = f"select job_id from jobq.job where {condition} order by job_id"
        return [row[0] for row in self.observer.execute(query.encode()).fetchall()]

    def one(self, condition: str) -> Any:
        ids = self.ids(condition)
        return self.dice.choice(ids) if ids else None

    def run(self) -> None:
        for _ in range(STEPS):
            n = self.dice.randrange(4)
            session = self.sessions[n]
            what = self.dice.random()
            if what < 0.15 and not self.is_open(session):
                self.levels[n] = self.dice.choice(LEVELS)
                session.execute(f"begin isolation level {self.levels[n]}".encode())
                session.execute("select 1 from jobq.job")
            elif what < 0.3:
                self.end(n, self.dice.choice(["commit", "commit", "rollback"]))
            elif what < 0.33:
                session.close()  # a client is gone in the midst of its transaction
                self.sessions[n] = self.session()
                self.levels[n] = "read committed"
            elif what < 0.45:
                self.put(n)
            else:
                self.call(n, self.dice.choice(self.calls))
            self.check()
        for n in range(4):
            self.end(n, "commit")
        self.work_off()

    @staticmethod
    def is_open(session: Connection) -> bool:
        return session.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def end(self, n: int, how: str) -> None:
        try:
            self.sessions[n].execute(how.encode())
        except psycopg.errors.SerializationFailure:
            assert self.levels[n] == "serializable"
        self.levels[n] = "read committed"

    def call(self, n: int, what: Callable[[Connection], None]) -> None:
        session = self.sessions[n]
        is_open = self.is_open(session)
        if is_open:
            session.execute("savepoint s")
        try:
            what(session)
        except psycopg.Error as error:
            state = error.sqlstate or ""
            if not self.may_fail(n, what, state):
                raise
            if state in STALE:
                self.end(n, "rollback")
            elif is_open:
                session.execute("rollback to savepoint s")

    def may_fail(self, n: int, what: Callable[[Connection], None], state: str) -> bool:
        if self.levels[n] != "read committed" and state in STALE:
            return True
        return what != self.claim and (state[:2] == "JQ" or state == "55P03")

    def put(self, n: int) -> None:
        """Change a limit, in a transaction that has a snapshot already, and does no more."""
        if self.is_open(self.sessions[n]):
            self.end(n, "rollback")
        put = self.dice.choice(self.puts)
        limit = self.dice.choice([None, 1, 2, 3])
        self.levels[n] = self.dice.choice(LEVELS)
        session = self.sessions[n]
        session.execute(f"begin isolation level {self.levels[n]}".encode())
        session.execute("select 1 from jobq.job")
        others = [m for m in range(4) if m != n and not self.is_open(self.sessions[m])]
        if others:
            self.call(self.dice.choice(others), self.claim)
            self.check()
        try:
            limits = put(session, limit)
        except psycopg.Error as error:
            if error.sqlstate not in {"55P03", "JQ007", *STALE}:
                raise
            self.end(n, "rollback")
            return
        if others:  # meanwhile nobody starts a job unseen
            self.call(self.dice.choice(others), self.enqueue)
            self.call(self.dice.choice(others), self.claim)
        session.execute("commit")
        self.levels[n] = "read committed"
        self.limits.update(limits)

    # ---- limits

    def put_queue(self, session: Connection, limit: int | None) -> dict[str, int | None]:
        queue = self.dice.choice(QUEUES[:2])
        of_key = self.dice.choice([None, 1, 2])
        session.execute(
            "select jobq.put_queue(%s, max_running => %s, key_max_running => %s)",
            [queue, limit, of_key],
        )
        return {f"queue {queue}": limit, f"each {queue}": of_key}

    def put_limit(self, session: Connection, limit: int | None) -> dict[str, int | None]:
        queue, key = self.dice.choice(QUEUES[:2]), self.key()
        if limit is None:
            session.execute("select jobq.delete_limit(%s, %s)", [queue, key])
        else:
            session.execute("select jobq.put_limit(%s, %s, %s)", [queue, key, limit])
        return {f"{queue} {key}": limit}

    def put_kind(self, session: Connection, limit: int | None) -> dict[str, int | None]:
        kind = self.dice.choice(["k1", "k2"])
        of_key = self.dice.choice([None, 1, 2])
        session.execute(
            "select jobq.put_kind(%s, max_running => %s, key_max_running => %s)",
            [kind, limit, of_key],
        )
        return {f"kind {kind}": limit, f"each keys of {kind}": of_key}

    def limit_of(self, scope: str) -> int | None:
        every, _, _key = scope.rpartition(" ")
        return self.limits.get(scope) or self.limits.get(f"each {every}")

    def check(self) -> None:
        now: dict[str, int] = dict(self.observer.execute(RUNNING).fetchall())
        for scope, count in now.items():
            limit = self.limit_of(scope)
            assert limit is None or count <= max(limit, self.ran.get(scope, 0)), (
                f"{count} run in {scope}, where {limit} may"
            )
        self.ran = now
        for what, query in NEVER.items():
            assert not self.observer.execute(query.encode()).fetchall(), what

    # ---- calls

    def key(self) -> str:
        return self.dice.choice(["a", "b"])

    def kind(self) -> str:
        return self.dice.choice(["k1", "k1", "k2", "slow", "line"])

    def enqueue(self, session: Connection) -> None:
        queue = self.dice.choice(QUEUES)
        key = self.key() if queue in QUEUES[2:] or self.dice.random() < 0.7 else None
        session.execute(
            "select jobq.enqueue(%s, queue => %s, priority => %s, concurrency_key => %s)"
            " from generate_series(1, %s)",
            [self.kind(), queue, self.dice.choice([0, 0, 5]), key, self.dice.randint(1, 3)],
        )

    def claim(self, session: Connection) -> None:
        queues = self.dice.sample(QUEUES, self.dice.randint(1, 4))
        session.execute("select jobq.claim(%s, 'w', %s)", [queues, self.dice.choice([1, 2, 10])])

    def claim_job(self, session: Connection) -> None:
        session.execute(
            "select jobq.claim_job(%s, 'w')", [self.one("state = 'queued'") or "0" * 32]
        )

    def start_by_hand(self, session: Connection) -> None:
        session.execute(
            "update jobq_private.job set state = 'running' where job_id = %s and state = 'queued'",
            [self.one("state = 'queued'")],
        )

    def settle(self, session: Connection, call: str) -> None:
        job_id = self.one("state = 'running'")
        if job_id is not None:
            session.execute(
                f"select jobq.{call} from jobq.job where job_id = %s".encode(), [job_id]
            )

    def complete(self, session: Connection) -> None:
        self.settle(session, "complete(job_id, attempt)")

    def fail(self, session: Connection) -> None:
        retry_in, can = self.dice.choice(["0 s", "1 h"]), self.dice.random() < 0.7
        self.settle(session, f"fail(job_id, attempt, 'e', null, {can}, '{retry_in}')")

    def release(self, session: Connection) -> None:
        self.settle(session, "release(job_id, attempt)")

    def cancel(self, session: Connection) -> None:
        session.execute(
            "select jobq.cancel(job_id, 'x') from jobq.job where job_id = %s",
            [self.one("state in ('queued', 'retrying')")],
        )

    def redrive(self, session: Connection) -> None:
        session.execute(
            "select jobq.redrive(job_id) from jobq.job where job_id = %s",
            [self.one("state in ('dead', 'cancelled') and queue <> 'rated' and kind <> 'slow'")],
        )

    def move(self, session: Connection) -> None:
        job_id = self.one("state in ('queued', 'retrying') and queue <> 'rated'")
        if job_id is not None:
            queue = self.dice.choice(QUEUES[:2])
            session.execute(
                "select jobq.change_many(jsonb_build_object('queue', %s::text), array[%s::uuid])",
                [queue, job_id],
            )

    def change(self, session: Connection) -> None:
        job_id = self.one("state in ('queued', 'retrying')")
        if job_id is not None:
            what = self.dice.choice([
                "'run_at', now() + interval '1 h'", "'run_at', now()", "'priority', 9",
                "'priority', -9",
            ])  # fmt: skip
            session.execute(
                f"select jobq.change_many(jsonb_build_object({what}), array[%s::uuid])".encode(),
                [job_id],
            )

    def delete(self, session: Connection) -> None:
        job_id = self.one("state in ('queued', 'retrying')")
        if job_id is not None:
            session.execute("select jobq.delete_many(array[%s::uuid])", [job_id])

    def hold(self, session: Connection) -> None:
        until = self.dice.choice(["now() + interval '1 h'", "now() + interval '20 ms'"])
        session.execute(
            f"select jobq.hold_key(%s, %s, {until})".encode(),
            [self.dice.choice(QUEUES), self.key()],
        )

    def let_go(self, session: Connection) -> None:
        session.execute("select jobq.release_key(%s, %s)", [self.dice.choice(QUEUES), self.key()])

    # ---- the end

    def work_off(self) -> None:
        """Do all that may start; nothing is left that no limit keeps from starting."""
        until = time.monotonic() + PATIENCE
        while (
            self.observer.execute("select from jobq_private.job where state = 'running'").fetchall()
            or self.observer.execute(STRANDED).fetchall()
        ):
            assert time.monotonic() < until, "a job is stranded"
            self.observer.execute(
                "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
                " from jobq_private.job where state = 'running'"
            )
            if self.observer.execute(STRANDED).fetchall():
                [[due_in]] = self.observer.execute("select jobq.due_in(%s)", [QUEUES])
                assert due_in is not None, "no worker looks for a job that may start"
            self.observer.execute("select jobq.claim(%s, 'w', 5)", [QUEUES])
            self.check()


@pytest.mark.parametrize("n", range(RUNS))
def test_no_limit_is_passed_and_nothing_stranded(connect: Callable[[], Connection], n: int) -> None:
    Story(connect, random.Random(chance.seed() + n)).run()
