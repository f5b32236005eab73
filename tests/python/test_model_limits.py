"""Limits, rates, costs, budgets, holds and orders under random calls from many sessions.

After each call an observer holds what is committed against the limits that hold: what runs grows
in no scope past its limit, a rate that gives no token back within the run lets a burst start, and
in an ordered key nothing overtakes. A budget has spent what starts were charged and attempts have
reported, never more than its amount but for what they reported above their cost. What a transaction
starts that was open when a limit was changed counts once it commits, but may be above the limit. No
claim waits or fails at READ COMMITTED. In the end nothing may wait that no limit keeps from
starting. JOBQ_SEED=N has chance fall otherwise, JOBQ_MODEL_EXAMPLES=N makes more runs.
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

RUNS = int(os.environ.get("JOBQ_MODEL_EXAMPLES", "3"))
SESSIONS = 8
STEPS = 120
PATIENCE = 60.0
QUEUES = ["default", "other", "rated", "ordered", "paid", "paid keys", "costly"]
# Whose jobs have random costs, are of one kind, and are neither moved nor deleted.
PRICED = QUEUES[4:]
UNPRICED = "queue not in ('paid', 'paid keys', 'costly') and kind <> 'dear'"
LEVELS = ["read committed", "read committed", "repeatable read", "serializable"]
STALE = ("40001", "40P01", "23505")
BURST = 3
COST_BURST = 10
# What the starts of a budget's jobs have been charged, and how much of it attempts have reported
# above what they were charged before.
CHARGED = """
    select s.scope, s.concurrency_key, sum(c.charged) as charged, sum(o.overrun) as overrun
    from jobq.job as j
    cross join lateral (
        select
            case when j.kind = 'dear' then 'dear' else j.queue end as scope,
            case when j.queue = 'paid keys' then j.concurrency_key end as concurrency_key
    ) as s
    cross join lateral (
        select sum(coalesce(r.cost, j.cost)) as charged
        from generate_series(1, j.attempt) as n (attempt)
        left join reported as r on r.job_id = j.job_id and r.attempt = n.attempt
    ) as c
    cross join lateral (
        select coalesce(sum(r.overrun), 0) as overrun
        from reported as r where r.job_id = j.job_id
    ) as o
    where j.attempt > 0 and (j.kind = 'dear' or j.queue in ('paid', 'paid keys'))
    group by s.scope, s.concurrency_key
"""
# How many run in each scope in which something may be limited. A key of a queue counts only jobs of
# kinds without limits for each key, such as plain.
RUNNING = f"""
    select 'queue ' || queue as scope, count(*) from jobq_private.job
    where state = 'running' group by scope
    union all
    select 'kind ' || kind as scope, count(*) from jobq_private.job
    where state = 'running' group by scope
    union all
    select queue || ' ' || concurrency_key as scope, count(*) from jobq_private.job
    where state = 'running' and key_id = jobq_private.limit_id(queue, null, concurrency_key)
    group by scope
    union all
    select format('keys of %s %s', kind, concurrency_key) as scope, count(*)
    from jobq_private.job
    where state = 'running' and concurrency_key is not null group by scope
    union all
    select concat_ws(' ', 'budget of', c.scope, c.concurrency_key), c.charged - c.overrun
    from ({CHARGED}) as c
"""
# What is never true of what is committed: each query returns offenders.
NEVER = {
    "more starts than a rate lets pass": f"""
        select concurrency_key from jobq.job where queue = 'rated' and kind = 'plain'
        group by concurrency_key having sum(attempt) > {BURST}""",
    "more starts of a key than its kind lets pass": f"""
        select concurrency_key from jobq.job where kind = 'slow' and concurrency_key is not null
        group by concurrency_key having sum(attempt) > {BURST}""",
    "more cost than a rate lets pass": f"""
        select concurrency_key from jobq.job where queue = 'costly'
        group by concurrency_key
        having sum(attempt * cost) - max(cost) filter (where attempt > 0) >= {COST_BURST}""",
    "a budget that is not what was charged": f"""
        select c.*, b.spent from ({CHARGED}) as c
        full join jobq_internal.list_budgets() as b
            on b.scope = c.scope and b.concurrency_key is not distinct from c.concurrency_key
        where coalesce(b.spent, 0) <> coalesce(c.charged, 0)""",
    "overtaken in an ordered key": """
        select concurrency_key from jobq_private.job
        where queue = 'ordered' and kind = 'plain' and state in ('running', 'retrying')
        group by concurrency_key having count(*) > 1""",
    "overtaken in a key of an ordered kind": """
        select concurrency_key from jobq_private.job
        where kind = 'line' and state in ('running', 'retrying') and concurrency_key is not null
        group by concurrency_key having count(*) > 1""",
}
# What may start and does not, but for what waits behind a job that does not fit into a budget.
STRANDED = """
    select j.job_id from jobq_private.job as j
    where j.state in ('queued', 'retrying') and j.run_at <= clock_timestamp()
    and not exists (select from jobq_private.blocking_limits(j, clock_timestamp()))
    and not exists (
        select from jobq_private.job as o
        cross join lateral jobq_private.blocking_limits(o, clock_timestamp()) as b
        where o.state in ('queued', 'retrying') and o.run_at <= clock_timestamp()
        and b.reason = 'budget'
        and (o.kind = j.kind and j.kind = 'dear' or o.queue = j.queue and j.queue like 'paid%')
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
        self.sessions = [self.session() for _ in range(SESSIONS)]
        self.levels = ["read committed"] * SESSIONS
        self.limits: dict[str, int | None] = {
            "budget of paid": 60, "budget of dear": 60, "each budget of paid keys": 30,
        }  # fmt: skip
        self.ran: dict[str, int] = {}
        # Sessions whose transactions began before a limit was changed, or whose snapshots are older
        # than the commit of such a one: they may start jobs by what they have seen.
        self.stale: set[int] = set()
        self.calls = [
            self.enqueue, self.enqueue, self.claim, self.claim, self.claim, self.claim_job,
            self.start_by_hand, self.complete, self.complete, self.fail, self.release, self.cancel,
            self.redrive, self.move, self.change, self.delete, self.hold, self.let_go,
            self.spend, self.spend,
        ]  # fmt: skip
        self.puts = [
            self.put_queue, self.put_queue, self.put_limit, self.put_kind, self.put_budget,
        ]  # fmt: skip
        self.observer.execute(
            "select jobq.put_queue('rated', key_rate_limit => 1, key_rate_period => '1 h',"
            f" key_rate_burst => {BURST}), jobq.put_queue('ordered', ordered => true),"
            " jobq.put_kind('slow', key_rate_limit => 1, key_rate_period => '1 h',"
            f" key_rate_burst => {BURST}), jobq.put_kind('line', ordered => true),"
            " jobq.put_queue('costly', key_rate_limit => 1, key_rate_period => '1 h',"
            f" key_rate_burst => {COST_BURST}), jobq.put_kind('dear'),"
            " jobq.put_budget('queue', 'paid', 60), jobq.put_budget('kind', 'dear', 60),"
            " jobq.put_budget('queue', 'paid keys', 30, each_key => true)"
        )
        self.observer.execute(
            "create table reported (job_id uuid, attempt integer, cost numeric, overrun numeric,"
            " primary key (job_id, attempt))"
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
            n = self.dice.randrange(SESSIONS)
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
                self.stale.discard(n)
            elif what < 0.45:
                self.put(n)
            else:
                self.call(n, self.dice.choice(self.calls))
            self.check()
        for n in range(SESSIONS):
            self.end(n, "commit")
        self.work_off()

    def open(self) -> list[int]:
        return [m for m, session in enumerate(self.sessions) if self.is_open(session)]

    def running(self) -> dict[str, int]:
        return dict(self.observer.execute(RUNNING).fetchall())

    @staticmethod
    def is_open(session: Connection) -> bool:
        return session.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    def end(self, n: int, how: str) -> None:
        try:
            self.sessions[n].execute(how.encode())
        except psycopg.errors.SerializationFailure:
            assert self.levels[n] == "serializable"
        self.levels[n] = "read committed"
        if n in self.stale:
            self.stale.remove(n)
            self.stale.update(m for m in self.open() if self.levels[m] != "read committed")
            self.ran = self.running()

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
        others = [m for m in range(SESSIONS) if m != n and not self.is_open(self.sessions[m])]
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
        if others:  # meanwhile the old limit holds
            self.call(self.dice.choice(others), self.enqueue)
            self.call(self.dice.choice(others), self.claim)
            self.check()
        self.end(n, "commit")
        self.limits.update(limits)
        self.stale.update(self.open())

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

    def put_budget(self, session: Connection, limit: int | None) -> dict[str, int | None]:
        amount = 40 * (limit or 2)
        scope = self.dice.choice(["paid", "dear", "paid keys"])
        session.execute(
            "select jobq.put_budget(%s, %s, %s, each_key => %s)",
            ["kind" if scope == "dear" else "queue", scope, amount, scope == "paid keys"],
        )
        return {f"{'each ' if scope == 'paid keys' else ''}budget of {scope}": amount}

    def limit_of(self, scope: str) -> int | None:
        every, _, _key = scope.rpartition(" ")
        return self.limits.get(scope) or self.limits.get(f"each {every}")

    def check(self) -> None:
        now = self.running()
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
        return self.dice.choice(["plain", "plain", "k1", "k1", "k2", "slow", "line", "dear"])

    def enqueue(self, session: Connection) -> None:
        queue = self.dice.choice(QUEUES)
        kind = "plain" if queue in PRICED else self.kind()
        cost = None
        if queue in PRICED or kind == "dear":
            cost = self.dice.choice([0, 1, 2, 5, 20])
        is_keyed = queue in {"rated", "ordered", "paid keys", "costly"} or self.dice.random() < 0.7
        if kind == "dear":
            queue, is_keyed = self.dice.choice(QUEUES[:2]), False
        session.execute(
            "select jobq.enqueue(%s, queue => %s, priority => %s, concurrency_key => %s,"
            " cost => %s) from generate_series(1, %s)",
            [
                kind, queue, self.dice.choice([0, 0, 5]), self.key() if is_keyed else None, cost,
                self.dice.randint(1, 3),
            ],
        )  # fmt: skip

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

    def spend(self, session: Connection) -> None:
        job_id = self.one(
            "state = 'running' and queue <> 'costly' and (kind = 'dear' or queue like 'paid%')"
        )
        if job_id is not None:
            session.execute(
                """
                with running as materialized (
                    select job_id, attempt, cost, %s::numeric as reported from jobq.job
                    where job_id = %s and state = 'running'
                ),
                done as materialized (
                    select jobq.spend(job_id, attempt, reported) from running
                )
                insert into reported as r (job_id, attempt, cost, overrun)
                select w.job_id, w.attempt, w.reported, greatest(0, w.reported - w.cost)
                from running as w, (select count(*) from done) as d
                on conflict (job_id, attempt) do update
                set cost = excluded.cost, overrun = r.overrun + greatest(0, excluded.cost - r.cost)
                """,
                [self.dice.choice([0, 1, 4, 30]), job_id],
            )

    def cancel(self, session: Connection) -> None:
        session.execute(
            "select jobq.cancel(job_id, 'x') from jobq.job where job_id = %s",
            [self.one("state in ('queued', 'retrying')")],
        )

    def redrive(self, session: Connection) -> None:
        session.execute(
            "select jobq.redrive(job_id) from jobq.job where job_id = %s",
            [
                self.one(
                    "state in ('dead', 'cancelled') and queue not in ('rated', 'costly')"
                    " and kind <> 'slow'"
                )
            ],
        )

    def move(self, session: Connection) -> None:
        job_id = self.one(f"state in ('queued', 'retrying') and queue <> 'rated' and {UNPRICED}")
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
        job_id = self.one(f"state in ('queued', 'retrying') and {UNPRICED}")
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
            if time.monotonic() > until - PATIENCE + 5:
                self.observer.execute("select jobq.maintain()")
            self.observer.execute(
                "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
                " from jobq_private.job where state = 'running' having count(*) > 0"
            )
            if self.observer.execute(STRANDED).fetchall():
                [[due_in]] = self.observer.execute("select jobq.due_in(%s)", [QUEUES])
                assert due_in is not None, "no worker looks for a job that may start"
            self.observer.execute("select jobq.claim(%s, 'w', 5)", [QUEUES])
            self.check()


@pytest.mark.parametrize("n", range(RUNS))
@pytest.mark.usefixtures("replayed")
def test_no_limit_is_passed_and_nothing_stranded(connect: Callable[[], Connection], n: int) -> None:
    Story(connect, random.Random(chance.seed() + n)).run()
