"""Edges, graphs, batches, steps and events under random calls from sessions with open transactions.

After each call an observer holds all that is committed against what must be true; in the end
the sessions end too, everything is resolved and worked off, and nothing may be left that could
run. JOBQ_SEED=N has chance fall otherwise, JOBQ_MODEL_EXAMPLES=N makes more runs.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import chance
import psycopg
import pytest
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    Connection = psycopg.Connection[tuple[Any, ...]]

RUNS = int(os.environ.get("JOBQ_MODEL_EXAMPLES", "4"))
STEPS = 80
QUEUES = ["default"]
# What one of these refuses is refused, and undone with its savepoint.
REFUSED = ("JQ", "55P03", "40001", "22023", "22004")
# Each job waits for one of these, again and again as attempts do; for the last only a moment.
EVENTS = [*(f"e{n}" for n in range(6)), "soon"]

NOBODY = "00000000-0000-0000-0000-000000000000"
NO_JOB = f"'{NOBODY}'::uuid"

# What is never true of what is committed: each query returns offenders.
NEVER = {
    "released while it waits": """
        select j.job_id from jobq.job as j
        join jobq_private.edge as e on e.child = j.job_id and e.is_open
        where j.state not in ('blocked', 'cancelled')""",
    "an edge closed before its time": """
        select e.child from jobq_private.edge as e
        join jobq.job as p on p.job_id = e.parent
        where not e.is_open and e.after_failure <> 'run' and p.state <> 'succeeded'""",
    "a blocked job whose parent lives again, and holds it up no more": """
        select e.child from jobq_private.edge as e
        join jobq_private.job as c on c.job_id = e.child and c.state = 'blocked'
        join jobq_private.job as p on p.job_id = e.parent
        where not e.is_open""",
    "a call at the end of a batch that goes on": """
        select c.job_id from jobq_private.batch as b
        join jobq.job as c on c.job_id in (b.on_success, b.on_end)
        where b.ended_at is null and c.state not in ('blocked', 'cancelled')""",
    "a run of a job that waited for others, twice": """
        select j.job_id from jobq.job as j
        where j.state = 'succeeded' and j.attempts > j.max_attempts""",
    "a batch that has ended on success with a member dead": """
        select b.batch_id from jobq_private.batch as b
        join jobq.job as s on s.job_id = b.on_success
        join jobq.job as m on m.batch_id = b.batch_id and m.finished_at <= b.ended_at
        where m.state = 'dead' and s.state not in ('blocked', 'cancelled') and s.attempt = 0
        and s.previous_state = 'blocked' and b.ended_at is not null and m.attempts = m.attempt""",
    "a wait that goes on though the event is there": f"""
        select w.job_id from jobq_private.waiter as w
        join jobq_private.job as j on j.job_id = w.job_id and j.state = 'queued'
        join jobq_private.event as e on e.event = w.event and e.job_id in (w.job_id, {NO_JOB})
        where j.run_at > clock_timestamp()
        and not exists (select from jobq_private.pending as l where l.event = w.event)""",
    "a payload that nobody has emitted": f"""
        select s.job_id from jobq_private.step as s
        where s.name like 'event:%' and s.value ->> 'outcome' = 'arrived'
        and not exists (
            select from jobq_private.event as e
            where 'event:' || e.event = s.name and e.job_id in (s.job_id, {NO_JOB})
            and e.payload = s.value -> 'payload'
        )""",
    "a wait that was over before its time": """
        select s.job_id from jobq_private.step as s
        where s.name like 'event:%' and s.value ->> 'outcome' = 'timed_out'
        and s.name not like 'event:soon'""",
}
# What may be true while somebody has yet to look, and not in the end.
IN_THE_END_NEVER = {
    "stranded": """
        select j.job_id from jobq.job as j
        where j.state = 'blocked'
        and not exists (
            select from jobq_private.edge as e where e.child = j.job_id and e.is_open
        )
        and not exists (
            select from jobq_private.batch as b
            where j.job_id in (b.on_success, b.on_end, b.on_first_death)
            and (
                b.ended_at is null
                or exists (select from jobq_private.job as m where m.batch_id = b.batch_id)
            )
        )""",
    "held up by what has ended": """
        select e.child from jobq_private.edge as e
        join jobq_private.job as j on j.job_id = e.child and j.state = 'blocked'
        cross join lateral jobq_private.ends_of(array[e.parent]) as p (ends)
        where e.is_open
        and (p.ends[1] in ('succeeded', 'gone')
            or p.ends[1] is not null and e.after_failure in ('run', 'cancel'))""",
    "a batch that goes on without members": """
        select b.batch_id from jobq_private.batch as b
        where b.sealed_at is not null and b.ended_at is null
        and not exists (select from jobq_private.job as j where j.batch_id = b.batch_id)""",
    "jobs at the end of a batch that were not called": """
        select b.batch_id from jobq_private.batch as b
        join jobq_private.job as c on c.job_id in (b.on_success, b.on_end, b.on_first_death)
        where b.ended_at is not null and c.state = 'blocked'
        and not exists (  -- a member was redriven, for which they wait again
            select from jobq_private.job as m where m.batch_id = b.batch_id
        )""",
    "a look": "select pending_id from jobq_private.pending",
}


class Story:
    """A run: sessions, and what may be done in them.

    Args:
        connect: opens a connection.
        dice: what is done.
    """

    def __init__(self, connect: Callable[[], Connection], dice: random.Random) -> None:
        self.dice = dice
        self.connect = connect
        self.observer = connect()
        self.observer.execute("set lock_timeout = '60s'")
        self.saved: dict[tuple[UUID, str], object] = {}
        self.sessions = [self.session() for _ in range(3)]
        trees = [
            self.enqueue, self.enqueue, self.graph, self.join, self.open_batch, self.seal,
            self.claim, self.claim, self.exchange, self.exchange, self.complete, self.fail,
            self.fail, self.cancel, self.redrive, self.redrive_tree, self.cancel_tree, self.resolve,
            self.delete, self.cancel_batch, self.change, self.maintain,
        ]  # fmt: skip
        waits = [
            self.enqueue, self.enqueue, self.claim, self.claim, self.wait_for, self.wait_for,
            self.wait_for, self.signal, self.signal, self.emit, self.save_step,
            dice.choice([self.fail, self.cancel, self.redrive, self.delete]),
        ]  # fmt: skip
        self.calls = dice.choice([trees, waits])
        if dice.random() < 0.3:
            self.observer.execute("select jobq.put_kind('k', keep_succeeded => '0')")
        for _ in range(4):
            self.enqueue(self.observer)
        self.claim(self.observer)

    def session(self) -> Connection:
        session = self.connect()
        session.execute("set lock_timeout = '20ms'")
        level = "read committed" if self.dice.random() < 0.7 else "repeatable read"
        session.execute(f"set default_transaction_isolation = '{level}'")
        return session

    def ids(
        self, condition: str = "true", table: str = "jobq.job", key: str = "job_id"
    ) -> list[Any]:
        rows = self.observer.execute(
            f"select {key} from {table} where {condition} order by {key}"
        ).fetchall()
        return [row[0] for row in rows]

    def some(self, ids: list[Any], most: int = 3) -> list[Any]:
        return self.dice.sample(ids, min(len(ids), self.dice.randint(0, most)))

    def one(self, ids: list[Any]) -> Any:
        return self.dice.choice(ids) if ids else None

    def run(self) -> None:
        for _ in range(STEPS):
            n = self.dice.randrange(3)
            session = self.sessions[n]
            what = self.dice.random()
            if what < 0.12 and not self.is_open(session):
                session.execute("begin")
            elif what < 0.25:
                session.execute(self.dice.choice(["commit", "commit", "rollback"]))
            elif what < 0.27:
                session.close()  # a client is gone in the midst of its transaction
                self.sessions[n] = self.session()
            else:
                self.call(session, self.dice.choice(self.calls))
            self.check(NEVER)
        for session in self.sessions:
            session.execute("commit")
        self.settle()
        self.work_off()

    @staticmethod
    def is_open(session: Connection) -> bool:
        return session.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def call(self, session: Connection, act: Callable[[Connection], object]) -> None:
        is_open = self.is_open(session)
        if is_open:
            session.execute("savepoint s")
        try:
            act(session)
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(REFUSED):
                raise
            if is_open:
                session.execute("rollback to savepoint s")

    # ---- what sessions do

    def enqueue(self, session: Connection) -> None:
        # A member that waits for a job at the end of its own batch would wait for ever.
        batches = self.ids("ended_at is null", "jobq_private.batch", "batch_id")
        batch = self.one(batches) if self.dice.random() < 0.3 else None
        session.execute(
            "select jobq.enqueue('k', after => %s, after_failure => %s, batch_id => %s,"
            " max_attempts => 2)",
            (
                None if batch else self.some(self.ids()) or None,
                self.dice.choice([None, "cancel", "wait", "run"]),
                batch,
            ),
        )

    def graph(self, session: Connection) -> None:
        names = [f"n{n}" for n in range(self.dice.randint(1, 4))]
        jobs = [
            {
                "name": name,
                "kind": "k",
                "after": self.some(names[:n]) + [str(i) for i in self.some(self.ids(), 1)],
                "after_failure": self.dice.choice(["cancel", "wait", "run"]),
            }
            for n, name in enumerate(names)
        ]
        session.execute("select jobq.enqueue_graph(%s)", (Jsonb({"jobs": jobs}),))

    def join(self, session: Connection) -> None:
        above, below = self.one(self.ids("state = 'running'")), self.ids("state = 'blocked'")
        if above and below:
            job = {"name": str(self.dice.random()), "kind": "k"}
            job |= {"after": [str(above)], "before": [str(self.one(below))]}  # type: ignore[dict-item]
            session.execute("select jobq.enqueue_graph(%s, %s)", (Jsonb({"jobs": [job]}), above))

    def open_batch(self, session: Connection) -> None:
        session.execute(
            "select jobq.open_batch(%s, %s, %s)",
            [Jsonb({"kind": "called"}) if self.dice.random() < 0.7 else None for _ in range(3)],
        )

    def seal(self, session: Connection) -> None:
        batch = self.one(self.ids("sealed_at is null", "jobq_private.batch", "batch_id"))
        session.execute("select jobq.seal_batch(%s)", (batch,))

    def claim(self, session: Connection) -> None:
        session.execute("select jobq.claim(%s, 'w', %s)", (QUEUES, self.dice.randint(0, 4)))

    def held(self, most: int = 3) -> tuple[list[UUID], list[int]]:
        rows = self.observer.execute(
            "select job_id, attempt from jobq.job where state = 'running' order by job_id"
        ).fetchall()
        chosen = self.some(rows, most)
        return [row[0] for row in chosen], [row[1] for row in chosen]

    def exchange(self, session: Connection) -> None:
        ids, attempts = self.held()
        session.execute(
            "select jobq.exchange(%s, 'w', %s, %s::uuid[], %s::int[])",
            (QUEUES, self.dice.randint(0, 3), ids, attempts),
        )

    def complete(self, session: Connection) -> None:
        session.execute("select jobq.complete_many(%s::uuid[], %s::int[])", self.held())

    def fail(self, session: Connection) -> None:
        for job_id, attempt in zip(*self.held(2), strict=True):
            session.execute(
                "select jobq.fail(%s, %s, 'boom', retryable => %s, retry_in => '0')",
                (job_id, attempt, self.dice.random() < 0.3),
            )

    def cancel(self, session: Connection) -> None:
        session.execute("select jobq.cancel(%s)", (self.one(self.ids("finished_at is null")),))

    def redrive(self, session: Connection) -> None:
        ended = self.ids("state in ('dead', 'cancelled')")
        session.execute("select jobq.redrive(%s)", (self.one(ended),))

    def redrive_tree(self, session: Connection) -> None:
        scope = self.dice.choice(["failed", "downstream", "all"])
        session.execute("select jobq.redrive_tree(%s, %s)", (self.one(self.ids()), scope))

    def cancel_tree(self, session: Connection) -> None:
        if self.dice.random() < 0.3:
            session.execute(
                "select jobq.cancel_tree(%s, scope => 'downstream')", (self.one(self.ids()),)
            )

    def resolve(self, session: Connection) -> None:
        session.execute("select jobq_private.resolve()")

    def delete(self, session: Connection) -> None:
        chosen = self.some(self.ids("state <> 'running'"), 1)
        if self.dice.random() < 0.3:
            session.execute("select jobq.delete_many(%s::uuid[])", (chosen,))

    def cancel_batch(self, session: Connection) -> None:
        batch = self.one(self.ids("ended_at is null", "jobq_private.batch", "batch_id"))
        if batch and self.dice.random() < 0.3:
            session.execute("select jobq.cancel_batch(%s, max_jobs => 2)", (batch,))

    def change(self, session: Connection) -> None:
        chosen = self.some(self.ids("state in ('blocked', 'queued')"))
        session.execute(
            "select jobq.change_many(%s, %s::uuid[])",
            (Jsonb({"priority": self.dice.randint(-1, 1)}), chosen),
        )

    def maintain(self, session: Connection) -> None:
        if not self.is_open(session):  # it locks tables for the partitions that it makes
            session.execute("select jobq.maintain()")

    def attempt(self) -> tuple[UUID, int] | None:
        ids, attempts = self.held(1)
        return (ids[0], attempts[0]) if ids else None

    @staticmethod
    def recorded(session: Connection, job_id: UUID, name: str) -> Any:
        query = "select value from jobq_private.step where job_id = %s and name = %s"
        row = session.execute(query, (job_id, name)).fetchone()
        return row and row[0]

    def save_step(self, session: Connection) -> None:
        if held := self.attempt():
            known, value = self.recorded(session, held[0], "s"), self.dice.random()
            row = session.execute("select jobq.save_step(%s, %s, 's', %s)", (*held, Jsonb(value)))
            assert row.fetchone() == (known or value,) or self.is_repeatable(session)

    def wait_for(self, session: Connection) -> None:
        if not (held := self.attempt()):
            return
        event = EVENTS[held[0].int % len(EVENTS)]
        known = self.recorded(session, held[0], f"event:{event}")
        there = session.execute(
            "select payload from jobq_private.event where event = %s and job_id in (%s, %s::uuid)"
            " order by job_id = %s",
            (event, held[0], NOBODY, NOBODY),
        ).fetchone()
        timeout = "0" if event == "soon" else None
        said = session.execute(
            "select outcome, payload from jobq.wait_for(%s, %s, %s, %s)", (*held, event, timeout)
        ).fetchone()
        if self.is_repeatable(session):
            return
        if known is not None:
            assert said == (known["outcome"], known["payload"])
        elif there is not None:
            assert said == ("arrived", there[0])

    @staticmethod
    def is_repeatable(session: Connection) -> bool:
        return session.execute("show transaction_isolation").fetchone() == ("repeatable read",)

    def emit(self, session: Connection) -> None:
        event = self.dice.choice(EVENTS)
        session.execute("select jobq.emit(%s, %s)", (event, Jsonb(self.dice.random())))

    def signal(self, session: Connection) -> None:
        waiting = self.ids(table="jobq_private.waiter")
        job_id = self.one(waiting or self.ids("finished_at is null"))
        if job_id:
            event = EVENTS[job_id.int % len(EVENTS)]
            payload = Jsonb(self.dice.random())
            session.execute("select jobq.signal(%s, %s, %s)", (job_id, event, payload))

    # ---- what must be true

    def check(self, never: dict[str, str]) -> None:
        for what, query in never.items():
            assert self.observer.execute(query).fetchall() == [], what
        steps = self.observer.execute(
            "select job_id, name, value from jobq_private.step"
        ).fetchall()
        for job_id, name, value in steps:
            assert self.saved.setdefault((job_id, name), value) == value, "a step has changed"

    def settle(self) -> None:
        """Look at all that there is to look at, as maintain() does sooner or later."""
        for _ in range(50):
            self.observer.execute("update jobq_private.pending set due_at = '-infinity'")
            self.observer.execute("select jobq_private.resolve()")
            self.observer.execute("select jobq_private.prune_workflows(1000)")
            if not self.ids(table="jobq_private.pending", key="pending_id"):
                break
        self.check(NEVER | IN_THE_END_NEVER)

    def work_off(self) -> None:
        """Seal what is open, and work until nothing is left but what waits for a redrive."""
        for batch in self.ids("sealed_at is null", "jobq_private.batch", "batch_id"):
            self.observer.execute("select jobq.seal_batch(%s)", (batch,))
        for event in EVENTS:
            self.observer.execute("select jobq.emit(%s)", (event,))
        for _ in range(200):
            self.settle()
            self.observer.execute(
                "update jobq_private.job set run_at = now()"
                " where state = 'queued' and run_at < now() + interval '0.25 s'"
            )
            self.observer.execute("select jobq.claim(%s, 'w', 100)", (QUEUES,))
            rows = self.observer.execute(
                "select job_id, attempt from jobq.job where state = 'running'"
            ).fetchall()
            if not rows:
                break
            self.observer.execute(
                "select jobq.complete_many(%s, %s)", ([r[0] for r in rows], [r[1] for r in rows])
            )
        live = self.ids("finished_at is null")
        waiting = self.observer.execute(
            "with recursive waits as ("
            " select e.child from jobq_private.edge as e where e.is_open"
            " and e.after_failure = 'wait'"
            " and (jobq_private.ends_of(array[e.parent]))[1] in ('dead', 'cancelled')"
            " union select e.child from waits as w join jobq_private.edge as e"
            " on e.parent = w.child and e.is_open) select child from waits"
        ).fetchall()
        members = self.observer.execute(
            "select c.job_id from jobq_private.batch as b join jobq.job as c"
            " on c.job_id in (b.on_success, b.on_end, b.on_first_death)"
            " where b.ended_at is null"
        ).fetchall()
        assert set(live) <= {row[0] for row in waiting + members}


@pytest.mark.parametrize("n", range(RUNS))
@pytest.mark.usefixtures("replayed")
def test_nothing_is_stranded_and_nothing_released_too_soon(
    connect: Callable[[], Connection], n: int
) -> None:
    Story(connect, random.Random(chance.seed() + n)).run()
