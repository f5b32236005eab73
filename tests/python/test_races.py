"""What several sessions do at the same time: keys, claims, settlement, wake-ups, locks.

Where a test must see one session wait for another, it watches pg_stat_activity; nothing
sleeps for a guessed time. JOBQ_SEED=N draws other random races, JOBQ_RACES=N makes more of them.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Barrier, Event
from typing import TYPE_CHECKING, Any
from uuid import UUID

import chance
import psycopg
import pytest
from psycopg import errors
from psycopg.types.json import Jsonb

from jobq_embedded import Server
from servers import SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]
    Call = Callable[[Connection, Sequence[UUID]], object]

RACES = int(os.environ.get("JOBQ_RACES", "1"))
PATIENCE = 60.0
"""Seconds until something that must happen is called missing."""


def value(connection: Connection, query: str, *arguments: object) -> Any:
    """Return the only column of the first row, None without rows."""
    row = connection.execute(query, arguments).fetchone()
    return None if row is None else row[0]


def column(connection: Connection, query: str, *arguments: object) -> list[Any]:
    """Return the first column."""
    return [row[0] for row in connection.execute(query, arguments)]


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Return as soon as a condition holds; fail when it does not come to hold."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)


@contextmanager
def held_up(watcher: Connection, connection: Connection, call: Callable[[], Any]) -> Iterator[Any]:
    """Start a call on a connection, and enter when it waits for a lock.

    The body must let it go; the yielded future is awaited in the end.
    """
    with ThreadPoolExecutor(1) as pool:
        future: Future[Any] = pool.submit(call)
        pid = connection.info.backend_pid
        eventually(
            lambda: (
                future.done()
                or value(
                    watcher, "select wait_event_type from pg_stat_activity where pid = %s", pid
                )
                == "Lock"
            ),
            "nobody waits",
        )
        assert not future.done(), f"it did not wait: {future}"
        yield future
        future.exception(PATIENCE)


def at_once(connect: Connect, call: Callable[[Connection], Any], callers: int) -> list[Any]:
    """Run a call on as many connections at the same moment; return what they gave."""
    barrier = Barrier(callers)

    def caller(connection: Connection) -> Any:
        barrier.wait(PATIENCE)
        return call(connection)

    connections = [connect() for _ in range(callers)]
    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(caller, connections))


def running(connection: Connection, jobs: int = 1, **options: object) -> list[UUID]:
    """Enqueue and claim jobs; return their ids, each at attempt 1, in ascending order."""
    batch = [{"kind": "work", **options} for _ in range(jobs)]
    connection.execute("select jobq.enqueue_many(%s)", [Jsonb(batch)])
    claimed = column(connection, "select job_id from jobq.claim('{default}', 'worker', %s)", jobs)
    assert len(claimed) == jobs
    return sorted(claimed)


def state(connection: Connection, job_id: UUID) -> str:
    """Return the state of a job."""
    return str(value(connection, "select state from jobq.job where job_id = %s", job_id))


# Keys


KEYS = {
    "idempotency": {"idempotency_key": "key"},
    "skip": {"dedup_key": "key", "dedup": "skip"},
    "both": {"idempotency_key": "key", "dedup_key": "key", "dedup": "skip"},
}


def create(job: dict[str, str], connection: Connection) -> tuple[UUID, bool]:
    """Enqueue a job; return its id and whether it was created."""
    query = "select job_id, created from jobq.enqueue_many(%s)"
    [(job_id, created)] = connection.execute(query, [Jsonb([job])])
    return job_id, created


@pytest.mark.oldest_version
@pytest.mark.parametrize("options", KEYS.values(), ids=KEYS)
def test_one_of_sixteen_callers_creates_the_job_of_a_key(
    connect: Connect, options: dict[str, str]
) -> None:
    callers = itertools.cycle([connect() for _ in range(16)])
    for round_ in range(5):
        job = {"kind": f"round {round_}", **options}
        rows = at_once(partial(next, callers), partial(create, job), 16)
        stored = column(connect(), "select job_id from jobq.job where kind = %s", job["kind"])
        assert len(stored) == 1
        assert {row[0] for row in rows} == set(stored)
        assert sum(row[1] for row in rows) == 1


@pytest.mark.oldest_version
@pytest.mark.parametrize("callers", [16, 48])
def test_callers_that_replace_leave_one_job_and_say_what_they_replaced(
    connect: Connect, callers: int
) -> None:
    job = {"kind": "work", "dedup_key": "key", "dedup": "replace"}
    rows = at_once(connect, partial(create, job), callers)
    connection = connect()
    jobs = connection.execute("select job_id, state, cancel_reason from jobq.job").fetchall()
    assert Counter(row[1] for row in jobs) == {"queued": 1, "cancelled": callers - 1}
    assert {row[0] for row in rows} == {row[0] for row in jobs}, "each caller made a job"
    assert all(row[1] for row in rows)
    heirs = {UUID(row[2].removeprefix("replaced by ")) for row in jobs if row[2]}
    assert len(heirs) == callers - 1, "each job was replaced by another one"
    assert heirs < {row[0] for row in jobs}


def test_a_key_whose_transaction_rolls_back_goes_to_the_one_that_waited(
    connect: Connect,
) -> None:
    first, second, watcher = connect(), connect(), connect()
    query = "select created from jobq.enqueue_many(%s)"
    job = Jsonb([{"kind": "work", "idempotency_key": "key"}])
    first.execute("begin")
    assert value(first, query, job) is True
    with held_up(watcher, second, partial(value, second, query, job)) as created:
        first.execute("rollback")
    assert created.result() is True
    assert value(watcher, "select count(*) from jobq.job") == 1


def test_an_old_key_of_a_job_that_is_being_redriven_is_kept(connect: Connect) -> None:
    first, second = connect(), connect()
    enqueue = "select jobq.enqueue('work', idempotency_key => 'key', max_attempts => 1)"
    job_id = value(first, enqueue)
    first.execute("select jobq.fail(job_id, attempt, 'X') from jobq.claim('{default}', 'w')")
    first.execute("update jobq_private.idempotency_key set created_at = '2020-01-01'")
    first.execute("begin")
    first.execute("select jobq.redrive(%s)", [job_id])
    assert value(second, "select jobq_private.prune_keys(1000)") == 0
    first.execute("commit")
    assert value(second, enqueue) == job_id


def test_batches_with_the_same_keys_in_opposite_orders_do_not_deadlock(
    connect: Connect,
) -> None:
    keys = [{"kind": "work", "idempotency_key": str(n)} for n in range(200)]
    orders = itertools.cycle([keys, keys[::-1]])
    query = "select job_id from jobq.enqueue_many(%s) where created"
    created = at_once(connect, lambda c: column(c, query, Jsonb(next(orders))), 8)
    assert sum(map(len, created)) == 200
    assert len(set(itertools.chain.from_iterable(created))) == 200


# Claims


@pytest.mark.oldest_version
def test_no_two_claimers_get_the_same_job(connect: Connect) -> None:
    jobs = [{"kind": "work", "priority": n % 3} for n in range(500)]
    connect().execute("select jobq.enqueue_many(%s)", [Jsonb(jobs)])
    query = "select job_id from jobq.claim('{default}', 'worker', 7)"

    def claim_all(connection: Connection) -> list[UUID]:
        batches = iter(lambda: column(connection, query), [])
        return list(itertools.chain.from_iterable(batches))

    claimed = at_once(connect, claim_all, 8)
    everything = list(itertools.chain.from_iterable(claimed))
    assert len(everything) == len(set(everything)) == 500
    assert sum(map(bool, claimed)) > 1, "more than one took part"
    assert column(connect(), "select distinct attempt from jobq.job") == [1]


def test_a_claim_does_not_wait_for_another_one(connect: Connect) -> None:
    first, second = connect(), connect()
    first.execute("select jobq.enqueue('work') from generate_series(1, 3)")
    query = "select job_id from jobq.claim('{default}', 'worker', %s)"
    first.execute("begin")
    mine = column(first, query, 2)
    second.execute("set lock_timeout = '1s'")
    theirs = column(second, query, 2)
    first.execute("rollback")
    assert len(mine) == 2 and len(theirs) == 1
    assert set(column(second, query, 2)) == set(mine), "a claim rolled back can be claimed again"


def test_a_claim_leaves_alone_what_was_claimed_since_it_began(connect: Connect) -> None:
    """It would lock the row, and keep the other worker from settling the job."""
    first, second = connect(), connect()
    first.execute("select jobq.enqueue('work') from generate_series(1, 3)")
    query = "select job_id from jobq.claim('{default}', 'worker')"
    second.execute("begin isolation level repeatable read; select from jobq.job")
    mine = column(first, query)
    theirs = column(second, query)
    first.execute("set lock_timeout = '1s'")
    assert value(first, "select jobq.complete(%s, 1)", mine[0])
    assert len(theirs) == 1 and theirs != mine
    second.execute("commit")


def test_a_job_that_was_touched_is_claimed_in_its_turn(connect: Connect) -> None:
    """Also while another transaction is open."""
    first, other = connect(), connect()
    query = "select job_id from jobq.claim('{default}', 'worker', %s)"
    oldest = value(first, "select jobq.enqueue('work')")
    first.execute("select jobq.enqueue('work') from generate_series(1, 9)")

    def next_of(jobs: int) -> list[UUID]:
        """Claim jobs, and take that back."""
        with first.transaction(force_rollback=True):
            return column(first, query, jobs)

    assert [next_of(1), next_of(1)] == [[oldest], [oldest]]
    other.execute("begin; select pg_current_xact_id()")
    assert [next_of(1), next_of(1)] == [[oldest], [oldest]]
    other.execute("commit")


@pytest.mark.oldest_version
def test_a_touched_job_goes_before_less_urgent_ones(connect: Connect) -> None:
    """Also where the claim that has touched it was taken back while another transaction is open."""
    first, other = connect(), connect()
    query = "select job_id from jobq.claim('{default}', 'worker', %s)"
    first.execute("select jobq.enqueue('work') from generate_series(1, 3)")
    urgent = value(first, "select jobq.enqueue('work', priority => 5)")

    def next_of(jobs: int) -> list[UUID]:
        """Claim jobs, and take that back."""
        with first.transaction(force_rollback=True):
            return column(first, query, jobs)

    assert next_of(9)[0] == urgent, "untouched yet"
    other.execute("begin; select pg_current_xact_id()")
    assert [next_of(jobs)[0] for jobs in (1, 1, 3)] == [urgent] * 3
    assert len(next_of(9)) == 4
    other.execute("commit")


def test_a_job_whose_claim_rolls_back_comes_within_a_few_claims(connect: Connect) -> None:
    """Though another session has claimed behind it, and jobs come faster than they are claimed."""
    first, second = connect(), connect()
    enqueue = "select jobq.enqueue('work')"
    query = "select job_id from jobq.claim('{default}', 'worker')"
    oldest = value(first, enqueue)
    first.execute("select jobq.enqueue('work') from generate_series(1, 3)")
    first.execute("begin")
    assert column(first, query) == [oldest]
    assert oldest not in column(second, query)
    first.execute("rollback")
    for _ in range(28):
        second.execute("select jobq.enqueue('work') from generate_series(1, 2)")
        if oldest in column(second, query):
            break
        second.execute("select pg_sleep(0.12)")
    else:
        pytest.fail("the job was left behind")


@pytest.mark.parametrize("end", ["jobq.release(%s, 1)", "jobq.fail(%s, 1, 'e', retry_in => '0 s')"])
def test_a_job_that_came_back_keeps_its_place_beside_an_open_transaction(
    connect: Connect, end: str
) -> None:
    first, second, other = connect(), connect(), connect()
    query = "select job_id from jobq.claim('{default}', 'worker')"
    job = value(first, "select jobq.enqueue('work')")
    other.execute("begin; select pg_current_xact_id()")
    assert column(first, query) == [job]
    before = [value(first, "select jobq.enqueue('work')") for _ in range(2)]
    first.execute(f"select {end}".encode(), [job])
    after = [value(first, "select jobq.enqueue('work')") for _ in range(300)]
    claimed = [column(second, query)[0] for _ in range(4)]
    assert claimed == [*before, job, after[0]]
    other.execute("rollback")


@pytest.mark.parametrize("n", range(RACES))
def test_random_producers_and_claimers_leave_no_job_behind(connect: Connect, n: int) -> None:
    """Producers commit late or roll back, and so do claimers."""
    seeds = iter([f"{chance.seed()} {n} {session}" for session in range(8)])
    enqueued: list[UUID] = []
    taken: list[UUID] = []
    is_over = Event()

    def produce(connection: Connection) -> None:
        enqueue = "select jobq.enqueue('work', priority => %s)"
        draw = random.Random(next(seeds))
        for _ in range(60):
            with connection.transaction() as transaction:
                made = [
                    value(connection, enqueue, draw.choice([0, 0, 5]))
                    for _ in range(draw.randint(1, 5))
                ]
                connection.execute("select pg_sleep(%s)", [draw.choice([0, 0, 0.02])])
                if draw.random() < 0.2:
                    raise psycopg.Rollback(transaction)
                enqueued.extend(made)

    def consume(connection: Connection) -> None:
        draw = random.Random(next(seeds))
        query = "select job_id from jobq.claim('{default}', 'worker', %s)"
        found: list[Any] = []
        was_over = False
        while found or not was_over:
            was_over = is_over.is_set()  # asked before the claim, which then sees every job
            with connection.transaction() as transaction:
                found = column(connection, query, draw.randint(1, 9))
                if draw.random() < 0.4:
                    raise psycopg.Rollback(transaction)
                taken.extend(found)

    with ThreadPoolExecutor() as pool:
        consumers = [pool.submit(consume, connect()) for _ in range(4)]
        for producer in [pool.submit(produce, connect()) for _ in range(4)]:
            producer.result()
        is_over.set()
        for consumer in consumers:
            consumer.result()
    assert sorted(taken) == sorted(enqueued)


def test_explain_names_the_transaction_that_holds_a_job(connect: Connect) -> None:
    first, second = connect(), connect()
    job = value(first, "select jobq.enqueue('work')")
    reasons = "select reason, explanation from jobq.explain(%s) where reason = 'locked'"
    assert not second.execute(reasons, [job]).fetchall()
    first.execute("begin; select from jobq.claim('{default}', 'worker')")
    [[_, explanation]] = second.execute(reasons, [job]).fetchall()
    assert f"process {first.info.backend_pid} " in explanation
    first.execute("rollback")


@pytest.mark.parametrize(
    "limit",
    [
        "put_queue('q', max_running => 5)", "put_queue('q', rate_limit => 5, rate_burst => 5)",
        "put_kind('work', max_running => 5)", "put_kind('work', rate_limit => 5, rate_burst => 5)",
        "put_queue('q', key_max_running => 5)", "put_kind('work', key_max_running => 5)",
        "put_limit('q', 'a', max_running => 5)",
    ],
)  # fmt: skip
@pytest.mark.parametrize("claims", [1, 2])
def test_a_transaction_that_keeps_claims_from_a_limit_is_named(
    connect: Connect, limit: str, claims: int
) -> None:
    first, second = connect(), connect()
    first.execute(f"select jobq.{limit}".encode())
    for _ in range(4):
        first.execute("select jobq.enqueue('work', queue => 'q', concurrency_key => 'a')")
    second.execute("select jobq.heartbeat('worker', '{}', '{}', '{q}')")
    with second.transaction():
        second.execute("set local session_replication_role = replica")
        second.execute("update jobq_private.job set run_at = now() - interval '1 h'")
    claim = "select job_id from jobq.claim('{q}', 'worker')"
    for _ in range(claims - 1):
        assert len(column(second, claim)) == 1
    first.execute("begin")
    assert len(column(first, claim)) == 1
    assert column(second, claim) == []
    last = value(
        second, "select job_id from jobq.job where state = 'queued' order by 1 desc limit 1"
    )
    told = "select explanation from jobq.explain(%s) where reason = 'locked'"
    assert f"process {first.info.backend_pid} has claimed" in column(second, told, last)[0]
    told = "select finding from jobq.health() where subject = 'waiting' and not is_ok"
    assert f"process {first.info.backend_pid} has claimed" in column(second, told)[0]
    first.execute("commit")


def test_an_update_of_state_claims_once(connect: Connect) -> None:
    """S4: two operators claim the same job by an update."""
    first, second, watcher = connect(), connect(), connect()
    second.execute("set default_transaction_isolation = 'read committed'")
    job_id = value(first, "select jobq.enqueue('work')")
    first.execute("set role jobq_operator")
    second.execute("set role jobq_operator")
    update = "update jobq.job set state = 'running', worker = %s where job_id = %s"
    first.execute("begin")
    assert first.execute(update, ["first", job_id]).rowcount == 1
    with held_up(watcher, second, lambda: second.execute(update, ["second", job_id])) as late:
        first.execute("commit")
    assert late.result().rowcount == 0, "the second one is told that it changed nothing"
    query = "select worker, attempt from jobq.job where job_id = %s"
    assert watcher.execute(query, [job_id]).fetchone() == ("first", 1)


# Cancel, complete, recover


CANCEL = "select jobq.cancel(%s)"
COMPLETE = "select jobq.complete(%s, 1)"


@pytest.mark.oldest_version
def test_cancel_finds_a_job_that_completes_before_it(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    [job_id] = running(first)
    first.execute("begin")
    assert value(first, COMPLETE, job_id) is True
    with held_up(watcher, second, partial(value, second, CANCEL, job_id)) as cancelled:
        first.execute("commit")
    assert cancelled.result() == "already_finished"
    assert state(watcher, job_id) == "succeeded"


def test_cancel_asks_a_job_whose_completion_rolls_back(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    [job_id] = running(first)
    first.execute("begin")
    assert value(first, COMPLETE, job_id) is True
    with held_up(watcher, second, partial(value, second, CANCEL, job_id)) as cancelled:
        first.execute("rollback")
    assert cancelled.result() == "cancel_requested"
    assert state(watcher, job_id) == "running"


@pytest.mark.oldest_version
def test_a_job_that_was_asked_to_stop_may_still_complete(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    [job_id] = running(first)
    first.execute("begin")
    assert value(first, CANCEL, job_id) == "cancel_requested"
    with held_up(watcher, second, partial(value, second, COMPLETE, job_id)) as completed:
        first.execute("commit")
    assert completed.result() is True
    assert state(watcher, job_id) == "succeeded"


@pytest.mark.oldest_version
def test_a_job_that_is_being_cancelled_holds_up_no_other(connect: Connect) -> None:
    operator, worker = connect(), connect()
    done, failed, others = running(operator), running(operator), running(operator, 4)
    operator.execute("begin")
    for [job_id] in (done, failed):
        assert value(operator, CANCEL, job_id) == "cancel_requested"
    worker.execute("set lock_timeout = '1s'")
    beat = "select job_id, outcome from jobq.heartbeat('w', %s, %s)"
    jobs = [*done, *failed, *others]
    outcomes = worker.execute(beat, [jobs, [1] * 6]).fetchall()
    assert outcomes == [(i, "extended" if i in others else "held") for i in jobs]

    def exchange(complete: list[UUID], fail: list[UUID]) -> dict[UUID, str]:
        query = "select job_id, outcome from jobq.exchange('{}', 'w', 0, %s, %s, failures => %s)"
        failures = [{"job_id": str(i), "attempt": 1, "retryable": False} for i in fail]
        return dict(worker.execute(query, [complete, [1] * len(complete), Jsonb(failures)]))

    told = exchange([*done, *others[:2]], [*failed, *others[2:]])
    assert told == {done[0]: "held", failed[0]: "held", others[2]: "dead", others[3]: "dead"}
    operator.execute("commit")
    outcomes = worker.execute(beat, [[*done, *failed], [1, 1]]).fetchall()
    assert {outcome for _, outcome in outcomes} == {"cancel_requested"}
    assert exchange(done, failed) == {failed[0]: "cancelled"}
    assert exchange(done, failed) == {done[0]: "lost", failed[0]: "lost"}


def test_a_stale_report_keeps_the_job_from_nobody(connect: Connect) -> None:
    late, worker = connect(), connect()
    done, failed = running(worker, 2)
    failure = Jsonb([{"job_id": str(failed), "attempt": 2}])
    late.execute("begin")
    query = "select outcome from jobq.exchange('{}', 'late', 0, %s, '{2}', failures => %s)"
    assert late.execute(query, [[done], failure]).fetchall() == [("lost",)] * 2
    worker.execute("set lock_timeout = '1s'")
    beat = "select outcome from jobq.heartbeat('w', %s, '{1,1}')"
    assert worker.execute(beat, [[done, failed]]).fetchall() == [("extended",)] * 2


@pytest.mark.oldest_version
@pytest.mark.parametrize("ends", [["succeeded"], []], ids=["kept", "without trace"])
def test_a_job_held_in_a_savepoint_or_by_a_later_transaction_holds_up_no_other(
    connect: Connect, ends: list[str]
) -> None:
    operator, later, worker = connect(), connect(), connect()
    if not ends:
        worker.execute("select jobq.put_kind('work', keep_succeeded => '0')")
        value(worker, "select jobq.complete(%s, 1)", running(worker)[0])
    held, since, *free = running(worker, 4)
    worker.execute("set lock_timeout = '1s'")
    worker.execute("begin isolation level repeatable read; select from jobq.job")
    operator.execute("begin; select pg_current_xact_id(); savepoint s")
    later.execute("begin; select pg_current_xact_id()")
    assert value(operator, CANCEL, held) == "cancel_requested"
    assert value(later, CANCEL, since) == "cancel_requested"
    exchange = "select job_id, outcome from jobq.exchange('{}', 'w', 0, %s, '{1,1,1}')"
    told = worker.execute(exchange, [[held, since, free[0]]]).fetchall()
    assert dict(told) == {held: "held", since: "held"}
    worker.execute("commit")
    release = "select job_id, state from jobq.release_many(%s, '{1,1}')"
    told = worker.execute(release, [[held, free[1]]]).fetchall()
    assert dict(told) == {held: "held", free[1]: "queued"}
    for session in (operator, later):
        session.execute("commit")
    told = worker.execute(release, [[held, free[1]]]).fetchall()
    assert dict(told) == {held: "cancelled", free[1]: None}
    assert column(worker, "select state from jobq.job where job_id = %s", free[0]) == ends


@pytest.mark.oldest_version
@pytest.mark.parametrize("ends", [["succeeded"], []], ids=["kept", "without trace"])
def test_a_job_held_by_a_transaction_and_its_savepoint_holds_up_no_other(
    connect: Connect, ends: list[str]
) -> None:
    operator, worker = connect(), connect()
    if not ends:
        worker.execute("select jobq.put_kind('work', keep_succeeded => '0')")
        value(worker, "select jobq.complete(%s, 1)", running(worker)[0])
    held, free = running(worker, 2)
    worker.execute("set lock_timeout = '1s'")
    operator.execute("begin")
    operator.execute("select jobq.save_step(%s, 1, 'step', '1')", [held])
    operator.execute("savepoint s")
    assert value(operator, CANCEL, held) == "cancel_requested"
    exchange = "select job_id, outcome from jobq.exchange('{}', 'w', 0, %s, '{1,1}')"
    assert worker.execute(exchange, [[held, free]]).fetchall() == [(held, "held")]
    operator.execute("commit")
    assert worker.execute(exchange, [[held, free]]).fetchall() == [(free, "lost")]
    assert column(worker, "select distinct state from jobq.job where kind = 'work'") == ends


@pytest.mark.oldest_version
def test_a_savepoint_of_its_own_does_not_keep_a_job_from_its_end(connect: Connect) -> None:
    worker = connect()
    worker.execute("select jobq.enqueue('work') from generate_series(1, 3)")
    with worker.transaction():
        with worker.transaction():
            ids = column(worker, "select job_id from jobq.claim('{default}', 'w', 3)")
        results = Jsonb(["a", "b", "c"])
        exchange = "select job_id, outcome from jobq.exchange('{}', 'w', 0, %s, '{1,1,2}', %s)"
        assert worker.execute(exchange, [ids, results]).fetchall() == [(ids[2], "lost")]
    found = worker.execute(
        "select state, result from jobq.job where job_id = any(%s) order by result", [ids]
    ).fetchall()
    assert found == [("succeeded", "a"), ("succeeded", "b"), ("running", None)]


def test_an_attempt_that_was_cancelled_cannot_complete(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    [job_id] = running(first)
    value(first, CANCEL, job_id)
    first.execute("begin")
    first.execute("select jobq.confirm_cancel(%s, 1)", [job_id])
    with held_up(watcher, second, partial(value, second, COMPLETE, job_id)) as completed:
        first.execute("commit")
    with pytest.raises(psycopg.Error) as caught:
        completed.result()
    assert caught.value.sqlstate == "JQ003"
    assert caught.value.diag.constraint_name == "LEASE_LOST"
    assert state(watcher, job_id) == "cancelled"


def test_a_waiting_job_that_is_being_cancelled_is_not_claimed(connect: Connect) -> None:
    first, second = connect(), connect()
    job_id = value(first, "select jobq.enqueue('work')")
    first.execute("begin")
    assert value(first, CANCEL, job_id) == "cancelled"
    second.execute("set lock_timeout = '1s'")
    assert column(second, "select jobq.claim('{default}', 'worker', 9)") == []
    first.execute("commit")
    assert state(second, job_id) == "cancelled"


def test_cancel_asks_a_job_that_is_claimed_before_it(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    job_id = value(first, "select jobq.enqueue('work')")
    first.execute("begin")
    assert column(first, "select attempt from jobq.claim('{default}', 'worker')") == [1]
    with held_up(watcher, second, partial(value, second, CANCEL, job_id)) as cancelled:
        first.execute("commit")
    assert cancelled.result() == "cancel_requested"


def test_cancel_and_complete_at_once_agree_on_what_happened(connect: Connect) -> None:
    """Truly concurrent, many times: the answers fit the state that is left."""
    left, right, watcher = connect(), connect(), connect()
    seen: Counter[tuple[str, str]] = Counter()
    barrier = Barrier(2)

    def call(connection: Connection, query: str, job_id: UUID, delay: float) -> Any:
        barrier.wait(PATIENCE)
        connection.execute("select pg_sleep(%s)", [delay])
        return value(connection, query, job_id)

    draw = random.Random(chance.seed())
    with ThreadPoolExecutor(2) as pool:
        for job_id in running(watcher, 200):
            one = pool.submit(call, left, CANCEL, job_id, draw.random() / 1000)
            two = pool.submit(call, right, COMPLETE, job_id, draw.random() / 1000)
            assert two.result(PATIENCE) is True
            seen[one.result(PATIENCE), state(watcher, job_id)] += 1
    assert set(seen) == {("already_finished", "succeeded"), ("cancel_requested", "succeeded")}


@pytest.mark.oldest_version
def test_an_attempt_that_was_taken_back_cannot_complete(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    [job_id] = running(first)
    expire(watcher, job_id)
    first.execute("begin")
    assert column(first, "select state from jobq_internal.recover()") == ["retrying"]
    with held_up(watcher, second, partial(value, second, COMPLETE, job_id)) as completed:
        first.execute("commit")
    assert isinstance(completed.exception(), psycopg.Error)
    assert completed.exception().sqlstate == "JQ003"
    assert state(watcher, job_id) == "retrying"


def test_recovery_passes_over_an_attempt_that_completes(connect: Connect) -> None:
    first, second = connect(), connect()
    [job_id] = running(first)
    expire(second, job_id)
    first.execute("begin")
    assert value(first, COMPLETE, job_id) is True
    second.execute("set lock_timeout = '1s'")
    assert column(second, "select jobq_internal.recover()") == []
    first.execute("commit")
    assert state(second, job_id) == "succeeded"


def test_one_of_many_callers_recovers_a_job(connect: Connect) -> None:
    jobs = running(connect(), 50)
    for job_id in jobs:
        expire(connect(), job_id)
    recovered = at_once(
        connect, lambda c: column(c, "select job_id from jobq_internal.recover(7)"), 8
    )
    everything = list(itertools.chain.from_iterable(recovered))
    assert len(everything) == len(set(everything))
    assert set(column(connect(), "select attempt from jobq.job")) == {1}


def expire(connection: Connection, job_id: UUID) -> None:
    """Let the lease of a job have ended a second ago."""
    with connection.transaction():
        connection.execute("set local session_replication_role = replica")
        connection.execute(
            "update jobq_private.job set lease_expires_at = now() - interval '1 s'"
            " where job_id = %s",
            [job_id],
        )


def test_two_redrives_bring_one_job_back(connect: Connect) -> None:
    first, second, watcher = connect(), connect(), connect()
    job_id = value(first, "select jobq.enqueue('work')")
    value(first, CANCEL, job_id)
    redrive = "select jobq.redrive(%s)"
    first.execute("begin")
    first.execute(redrive, [job_id])
    with held_up(watcher, second, partial(value, second, redrive, job_id)) as late:
        first.execute("commit")
    refused = late.exception()
    assert isinstance(refused, psycopg.Error) and refused.sqlstate == "JQ002"
    assert f"{job_id} is queued;" in (refused.diag.message_detail or "")
    assert column(watcher, "select state from jobq.job") == ["queued"]


def test_a_parent_that_is_being_redriven_holds_up_a_new_child(connect: Connect) -> None:
    first, second = connect(), connect()
    parent, other = enqueue(first), enqueue(first, "other")
    value(first, CANCEL, parent)
    first.execute("begin")
    value(first, "select jobq.redrive(%s)", parent)
    child = value(
        second,
        "select jobq.enqueue('work', after => %s, after_failure => 'run')",
        [parent, other],
    )
    second.execute("select jobq_private.resolve()")
    first.execute("commit")
    value(second, CANCEL, other)
    second.execute("select jobq_private.resolve()")
    assert [state(second, job_id) for job_id in (parent, child)] == ["queued", "blocked"]
    value(second, CANCEL, parent)
    second.execute("update jobq_private.pending set due_at = '-infinity'")
    second.execute("select jobq_private.resolve()")
    assert state(second, child) == "queued"


# Lock order


@dataclass(frozen=True)
class Batch:
    """A batch call over running jobs, at attempt 1."""

    query: str

    def __call__(self, connection: Connection, jobs: Sequence[UUID]) -> None:
        connection.execute(
            self.query,
            {
                "ids": list(jobs),
                "attempts": [1] * len(jobs),
                "failures": Jsonb([{"job_id": str(job_id), "attempt": 1} for job_id in jobs]),
            },
        )


BATCHES: dict[str, Call] = {
    "complete": Batch("select jobq.complete_many(%(ids)s, %(attempts)s)"),
    "fail": Batch("select jobq.fail_many(%(failures)s)"),
}
"""Those that wait for what others hold; heartbeat(), exchange() and release_many() pass over it."""


@pytest.mark.parametrize("second_name", BATCHES)
@pytest.mark.parametrize("first_name", BATCHES)
def test_batches_in_opposite_orders_do_not_deadlock(
    connect: Connect, first_name: str, second_name: str
) -> None:
    """A blocker in the middle lets both take what they reach before it, then goes away."""
    blocker, first, second, watcher = (connect() for _ in range(4))
    jobs = running(blocker, 21)
    blocker.execute("begin")
    blocker.execute("select from jobq_private.job where job_id = %s for update", [jobs[10]])
    with (
        held_up(watcher, first, lambda: BATCHES[first_name](first, jobs)) as one,
        held_up(watcher, second, lambda: BATCHES[second_name](second, jobs[::-1])) as two,
    ):
        blocker.execute("commit")
    assert (one.exception(), two.exception()) == (None, None)


# Wake-ups


def enqueue(connection: Connection, queue: str = "default") -> UUID:
    """Enqueue a job in a queue."""
    return UUID(str(value(connection, "select jobq.enqueue('work', queue => %s)", queue)))


def is_quiet(connection: Connection, *queues: str) -> bool:
    """Begin to wait; return whether no producer was in flight."""
    return bool(value(connection, "select jobq.begin_wait(%s)", list(queues)))


def notified(connection: Connection, stop_after: int = 1) -> list[str]:
    """Return the payloads of the notifications that come first."""
    return [
        notify.payload for notify in connection.notifies(timeout=PATIENCE, stop_after=stop_after)
    ]


@pytest.mark.oldest_version
def test_a_rolled_back_enqueue_leaves_no_job_and_wakes_nobody(connect: Connect) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    assert is_quiet(worker, "default", "other")
    producer.execute("begin")
    enqueue(producer)
    producer.execute("rollback")
    enqueue(producer, "other")
    assert notified(worker) == ["other"], "notifications come in the order of commits"
    assert column(worker, "select queue from jobq.job") == ["other"]


def test_a_savepoint_rolled_back_wakes_nobody(connect: Connect) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    assert is_quiet(worker, "default", "other")
    with producer.transaction():
        producer.execute("savepoint undone")
        enqueue(producer)
        producer.execute("rollback to savepoint undone")
    enqueue(producer, "other")
    assert notified(worker) == ["other"]


@pytest.mark.oldest_version
def test_a_sleeping_worker_is_woken_at_commit(connect: Connect) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    assert is_quiet(worker, "default")
    producer.execute("begin")
    enqueue(producer)
    assert list(worker.notifies(timeout=0)) == [], "not before the job can be claimed"
    producer.execute("commit")
    assert notified(worker) == ["default"]
    assert len(column(worker, "select jobq.claim('{default}', 'worker')")) == 1


def test_a_sleeping_worker_of_many_queues_is_woken_at_commit(connect: Connect) -> None:
    """It holds the wider locks, which a producer tries when it gets the narrow one."""
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    queues = [f"q{n}" for n in range(17)]
    assert is_quiet(worker, *queues)
    for queue in queues:
        enqueue(producer, queue)
        assert queue in notified(worker)


def test_a_worker_of_a_pattern_is_woken_when_a_pause_ends(connect: Connect) -> None:
    worker, operator = connect(), connect()
    worker.execute("select jobq.heartbeat('worker', '{}', '{}', '{tenant-*}')")
    operator.execute("select jobq.pause_queue('*'), jobq.pause_kind('work')")
    for queue in ("tenant-a", "tenant-b", "other"):
        enqueue(operator, queue)
    worker.execute("listen jobq")
    assert is_quiet(worker, "tenant-a", "tenant-b"), "it has had jobs of these before"
    operator.execute("select jobq.resume_queue('*')")
    assert sorted(notified(worker, 2)) == ["tenant-a", "tenant-b"]
    assert is_quiet(worker, "tenant-*"), "it has had no job yet"
    operator.execute("select jobq.resume_kind('work')")
    assert notified(worker) == ["tenant-*"]


def test_a_debounced_job_brought_forward_wakes_its_own_queue(connect: Connect) -> None:
    worker, producer = connect(), connect()
    call = "select jobq.enqueue('k', queue => %s, dedup_key => 'd', dedup => 'debounce', run_at => "
    producer.execute(f"{call} now() + interval '1 h')".encode(), ["first"])
    worker.execute("listen jobq")
    assert is_quiet(worker, "first", "other")
    producer.execute(f"{call} now())".encode(), ["second"])
    enqueue(producer, "other")
    assert notified(worker)[0] == "first"


def test_a_worker_hears_of_a_producer_in_flight(connect: Connect) -> None:
    worker, producer = connect(), connect()
    producer.execute("begin")
    enqueue(producer)
    assert not is_quiet(worker, "default"), "it must not sleep: nobody will wake it"
    assert is_quiet(worker, "other"), "other queues are not concerned"
    producer.execute("commit")
    assert is_quiet(worker, "default")
    assert len(column(worker, "select jobq.claim('{default}', 'worker')")) == 1


def test_nobody_is_notified_while_nobody_sleeps(connect: Connect) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    enqueue(producer)
    assert is_quiet(worker, "default")
    worker.execute("select jobq.end_wait()")
    enqueue(producer)
    assert is_quiet(worker, "default", "last")
    enqueue(producer, "last")
    assert notified(worker) == ["last"]


@pytest.mark.parametrize("key", [None, "k"])
def test_a_job_that_is_due_later_wakes_a_worker_too(connect: Connect, key: str | None) -> None:
    """It would not know otherwise when to look: a sleepy worker never polls."""
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    assert is_quiet(worker, "later")
    producer.execute(
        "select jobq.enqueue('a', queue => 'later', run_at => now() + interval '61 days',"
        " idempotency_key => %s)",
        [key],
    )
    assert notified(worker) == ["later"]


def test_a_worker_that_dies_asleep_costs_no_more_notifications(connect: Connect) -> None:
    worker, listener, producer = connect(), connect(), connect()
    listener.execute("listen jobq")
    assert is_quiet(worker, "default")
    pid = worker.info.backend_pid
    producer.execute("select pg_terminate_backend(%s)", [pid])
    eventually(
        lambda: not value(producer, "select count(*) from pg_locks where pid = %s", pid),
        "its locks stay",
    )
    enqueue(producer)
    assert is_quiet(listener, "last")
    enqueue(producer, "last")
    assert notified(listener) == ["last"]


WAKERS = {
    "release": ("select jobq.release(%s, 1)", "running"),
    "resume": ("select jobq.resume_queue('default') from (select %s) as job", "paused"),
    "redrive": ("select jobq.redrive(%s)", "dead"),
    "recover": ("select jobq_internal.recover() from (select %s) as job", "expired"),
    "update": ("update jobq.job set state = 'queued' where job_id = %s", "dead"),
    "update to queued": ("update jobq.job set state = 'queued' where job_id = %s", "running"),
    "update to retrying": ("update jobq.job set state = 'retrying' where job_id = %s", "running"),
    "fail": ("select jobq.fail(%s, 1, 'e', retry_in => '0 s')", "running"),
    "unblock": ("update jobq.job set state = 'queued' where job_id = %s", "blocked"),
}


@pytest.mark.parametrize(("query", "before"), WAKERS.values(), ids=WAKERS)
def test_whatever_makes_a_job_runnable_wakes(connect: Connect, query: str, before: str) -> None:
    worker, other = connect(), connect()
    worker.execute("listen jobq")
    [job_id] = running(other)
    if before == "paused":
        other.execute("select jobq.pause_queue('default')")
    elif before == "dead":
        other.execute("select jobq.fail(%s, 1, 'boom', retryable => false)", [job_id])
    elif before == "expired":
        expire(other, job_id)
    elif before == "blocked":
        job_id = value(other, "select jobq.enqueue('k', after => array[%s::uuid])", job_id)
    assert is_quiet(worker, "default")
    other.execute(query, [job_id])
    assert notified(worker) == ["default"]


@pytest.mark.oldest_version
def test_a_producer_goes_by_the_first_rule_that_another_session_commits(connect: Connect) -> None:
    """Until then it has not looked for any, and its session has plans without."""
    producer, operator = connect(), connect()
    for _ in range(7):
        assert value(producer, "select jobq.enqueue('a')")
    operator.execute("begin; select jobq.put_kind('a', queue => 'q')")
    assert value(producer, "select jobq.enqueue('a')"), "nobody waits for who declares"
    operator.execute("commit")
    [job_id] = column(producer, "select jobq.enqueue('a')")
    assert value(producer, "select queue from jobq.job where job_id = %s", job_id) == "q"
    operator.execute("select jobq.put_queue('q', priority => 3)")
    [job_id] = column(producer, "select jobq.enqueue('a')")
    assert value(producer, "select priority from jobq.job where job_id = %s", job_id) == 3


def test_settings_hold_at_once_in_open_transactions(connect: Connect) -> None:
    producer, operator = connect(), connect()
    with producer.transaction():
        enqueue(producer)
        operator.execute("select jobq.configure(priority => 3)")
        operator.execute("select jobq.put_kind('ruled', queue => 'q')")
        jobs = column(producer, "select jobq.enqueue(k) from unnest('{plain,ruled}'::text[]) as k")
    found = producer.execute(
        "select queue, priority from jobq.job where job_id = any(%s) order by job_id", [jobs]
    ).fetchall()
    assert found == [("default", 3), ("q", 3)]


@pytest.mark.oldest_version
@pytest.mark.parametrize("n", range(RACES))
def test_no_wake_up_is_lost(connect: Connect, n: int) -> None:
    """A producer races a worker that falls asleep, hundreds of times; each may be the later."""
    rounds, longest = 400, 0.006
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    barrier = Barrier(2)
    draw = random.Random(f"{chance.seed()} {n}")
    delays = [[draw.uniform(0, longest) for _ in range(3)] for _ in range(rounds)]

    def produce() -> None:
        for before, within, _ in delays:
            barrier.wait(PATIENCE)
            time.sleep(before)
            with producer.transaction():
                enqueue(producer)
                time.sleep(within)

    seen: Counter[str] = Counter()
    with ThreadPoolExecutor(1) as pool:
        producing = pool.submit(produce)
        for _, _, before in delays:
            barrier.wait(PATIENCE)
            time.sleep(before)
            seen.update(sleep_until_claimed(worker))
        producing.result(PATIENCE)
    assert seen["woken"] and seen["in flight"], "the race has met both of its ends"
    assert value(worker, "select count(*) from jobq.job where state = 'succeeded'") == rounds


def sleep_until_claimed(worker: Connection) -> set[str]:
    """Do as an idle worker does until it has finished a job; return what happened to it."""
    finish = "select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'worker', 9)"
    happened: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while not column(worker, finish):
        assert time.monotonic() < deadline, "the job never came"
        if not is_quiet(worker, "default"):
            happened.add("in flight")
        elif column(worker, finish):
            break
        else:
            assert notified(worker), "a wake-up is lost: the worker would sleep on"
            happened.add("woken")
    worker.execute("select jobq.end_wait()")
    list(worker.notifies(timeout=0))
    return happened


def test_a_full_notification_queue_never_fails_an_enqueue(tmp_path: Path, project: Path) -> None:
    """Listeners that hang fill the queue, on a server with the smallest one there is."""
    settings = {**SETTINGS, "max_notify_queue_pages": "64"}
    server = Server(tmp_path / "server", "18", settings=settings, durable=False)
    with ExitStack() as stack:
        stack.enter_context(server)
        url = stack.enter_context(Cluster(server, project).database())
        hung, worker, producer = (
            stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(3)
        )
        hung.execute("listen anything")
        hung.execute("begin")
        hung.execute("select 1")
        worker.execute("listen jobq")
        [job_id] = running(producer)
        assert is_quiet(worker, "default")
        fill_notification_queue(producer)
        with pytest.raises(errors.ProgramLimitExceeded):
            producer.execute("select pg_notify('anything', repeat('x', 7000))")
        enqueue(producer)
        assert value(producer, CANCEL, job_id) == "cancel_requested"
        assert len(column(worker, "select jobq.claim('{default}', 'worker')")) == 1

        hung.execute("rollback")
        eventually(
            lambda: bool(value(hung, "select pg_notification_queue_usage() < 0.5")),
            "the queue stays full",
        )
        enqueue(producer)
        assert notified(worker) == ["default"], "once there is room, workers are woken again"


def fill_notification_queue(connection: Connection) -> None:
    """Notify until the server refuses."""
    for size in (7000, 100, 1):
        for _ in range(100_000):
            try:
                connection.execute("select pg_notify('anything', repeat('x', %s))", [size])
            except errors.ProgramLimitExceeded:
                break
    assert value(connection, "select pg_notification_queue_usage()") > 0.9


# Maintenance


MAINTAIN = "select task from jobq.maintain()"


@pytest.mark.oldest_version
def test_one_caller_maintains_and_the_others_return_at_once(connect: Connect) -> None:
    first, second = connect(), connect()
    first.execute("begin")
    assert len(column(first, MAINTAIN)) >= 4
    second.execute("set statement_timeout = '5s'")
    assert column(second, MAINTAIN) == []
    first.execute("commit")
    assert len(column(second, MAINTAIN)) >= 4


def test_maintenance_leaves_a_table_in_use_to_the_next_call(connect: Connect) -> None:
    reader, caller = connect(), connect()
    [job_id] = running(caller)
    reader.execute("begin")
    reader.execute("select count(*) from jobq.job")
    query = "select affected from jobq.maintain() where task = 'made_partitions'"
    assert value(caller, query) == 0
    assert value(caller, COMPLETE, job_id) is True
    reader.execute("commit")
    assert value(caller, query) == 3, "today's are made"
    assert state(caller, job_id) == "succeeded"


def test_a_vacuum_of_one_partition_does_not_hold_up_the_making_of_others(connect: Connect) -> None:
    vacuum, caller = connect(), connect()
    while value(caller, "select bool_or(has_more) from jobq.maintain()"):
        pass
    today, last = column(
        caller,
        "select 'jobq_private.job_archive_' || to_char((now() at time zone 'UTC')::date + n,"
        " 'YYYYMMDD') from unnest(array[0, 7]) as n order by n",
    )
    caller.execute(f"drop table {last}")
    vacuum.execute("begin")
    vacuum.execute(f"lock table {today} in share update exclusive mode")  # as VACUUM does
    query = "select affected from jobq.maintain() where task = 'made_partitions'"
    assert value(caller, query) == 1
    vacuum.execute("rollback")


def test_a_job_is_found_while_it_ends_and_its_partition_is_made(connect: Connect) -> None:
    """From its enqueue on, whoever asks finds it among the live jobs or in the archive."""
    maker, looks, is_over = connect(), itertools.count(), Event()
    known: list[Any] = []

    def work(connection: Connection) -> None:
        complete = (
            "select jobq.complete(c.job_id, c.attempt) from jobq.claim('{default}', 'w', 5) c"
        )
        while not is_over.is_set():
            known.append(value(connection, "select jobq.enqueue('work')"))
            connection.execute(complete)

    def look(connection: Connection) -> None:
        while not is_over.is_set():
            for job_id in known[-5:]:
                connection.execute("select state from jobq.get_job(%s)", [job_id])
                next(looks)

    def is_made() -> bool:
        with suppress(errors.LockNotAvailable):
            query = "select jobq_private.make_partition('job_archive', now()::date)"
            return bool(value(maker, query))
        return False

    with ThreadPoolExecutor() as pool:
        tasks = [pool.submit(task, connect()) for task in (work, work, look, look, look)]
        try:
            eventually(lambda: len(known) > 50, "for jobs that have ended")
            eventually(is_made, "for a partition of today")
            seen = next(looks)
            eventually(lambda: next(looks) > seen + 50, "for looks since")
        finally:
            is_over.set()
        for task in tasks:
            task.result()


@pytest.mark.parametrize(
    "query",
    [
        "select state from jobq.job where job_id = %s",
        "select e.payload ->> 'state' from jobq_private.child_end(%s) as e",
    ],
)
def test_a_reader_that_waits_for_a_partition_finds_the_job_that_moved_there(
    connect: Connect, query: str
) -> None:
    maker, worker, watcher = connect(), connect(), connect()
    [job_id] = running(worker)
    worker.execute(COMPLETE, [job_id])
    maker.execute("begin")
    assert value(maker, "select jobq_private.make_partition('job_archive', now()::date)")
    with held_up(watcher, worker, partial(value, worker, query, job_id)) as found:
        maker.execute("commit")
        assert found.result() == "succeeded"


def test_completions_go_on_while_partitions_are_made(connect: Connect) -> None:
    maintainer, worker, watcher = connect(), connect(), connect()
    [job_id] = running(worker)
    maintainer.execute("begin")
    assert len(column(maintainer, MAINTAIN)) >= 4
    with held_up(watcher, worker, partial(value, worker, COMPLETE, job_id)) as completed:
        maintainer.execute("commit")
    assert completed.result() is True, "a completion waits for maintenance, and is not lost"
    place = "select tableoid::regclass::text from jobq_private.job_archive"
    assert value(watcher, place) != "jobq_private.job_archive_default"


# Grants by queue


def test_grants_are_enforced_though_others_lock_tables_the_other_way_round(
    connect: Connect,
) -> None:
    owner, other, watcher = connect(), connect(), connect()
    owner.execute("set deadlock_timeout = '4s'")
    other.execute("set deadlock_timeout = '1min'")
    other.execute("begin; lock table jobq_private.job in row exclusive mode")
    enforce = partial(owner.execute, "select jobq.enforce_queue_grants()")
    with held_up(watcher, owner, enforce) as enforced:
        other.execute("lock table jobq_private.edge in row exclusive mode; commit")
    assert enforced.result()
    assert value(watcher, "select relrowsecurity from pg_class where relname = 'edge'") is True


def test_a_default_that_another_session_changes_holds_for_the_next_enqueue(
    connect: Connect,
) -> None:
    """Defaults are constants in the plans that a session keeps; those are made anew."""
    producer, operator = connect(), connect()

    def attempts(options: str = "") -> int:
        job_id = producer.execute(f"select jobq.enqueue('k'{options})".encode()).fetchone()
        row = producer.execute("select max_attempts from jobq.get_job(%s)", job_id).fetchone()
        assert row is not None
        return int(row[0])

    for _ in range(7):
        assert (attempts(), attempts(", priority => 1")) == (5, 5)
    operator.execute("begin")
    operator.execute("select jobq.configure(max_attempts => 9)")
    assert (attempts(), attempts(", priority => 1")) == (5, 5)
    operator.execute("commit")
    assert (attempts(), attempts(", priority => 1")) == (9, 9)
    operator.execute("begin")
    operator.execute("select jobq.configure(max_attempts => 3)")
    operator.execute("rollback")
    assert (attempts(), attempts(", priority => 1")) == (9, 9)
