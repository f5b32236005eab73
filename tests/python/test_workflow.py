"""Steps and events with real connections: no event is missed, no step is lost."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from jobq import Client
from jobq.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]

ROUNDS = 150


def value(connection: Connection, query: str, *arguments: object) -> Any:
    row = connection.execute(query, arguments).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.oldest_version
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_no_event_is_missed_however_an_emit_and_a_wait_race(
    connect: Callable[[], Connection], isolation: str
) -> None:
    """One thread waits, one emits in a transaction that it ends a little later.

    A waiter that was missed would be due in a hundred years.
    """
    waiting, emitting = connect(), connect()
    dice = random.Random(7)
    wait = "select outcome from jobq.wait_for(%s, 1, %s, null)"
    for n in range(ROUNDS):
        job_id = value(waiting, "select jobq.enqueue('work')")
        waiting.execute("select jobq.claim_job(%s, 'w')", [job_id])
        before, during, apart = (dice.uniform(0, 0.003) for _ in range(3))

        def emit(n: int = n, before: float = before, during: float = during) -> None:
            time.sleep(before)
            emitting.execute(f"begin isolation level {isolation}")
            emitting.execute("select from jobq.error")  # takes the snapshot
            emitting.execute("select jobq.emit(%s, '1')", [f"e{n}"])
            time.sleep(during)
            emitting.execute("commit")

        thread = threading.Thread(target=emit)
        thread.start()
        time.sleep(apart)
        assert value(waiting, wait, job_id, f"e{n}") in {"arrived", "waiting"}
        thread.join()
    late = "select count(*) from jobq.job where run_at > now() + interval '1 s'"
    until = time.monotonic() + 60
    while value(waiting, late) > 0 and time.monotonic() < until:
        waiting.execute("select jobq.maintain()")  # does only some of it on a busy machine
        time.sleep(0.05)
    assert value(waiting, late) == 0


def test_two_sessions_of_an_attempt_get_the_same_value_of_a_step(
    connect: Callable[[], Connection],
) -> None:
    """The second one waits for the first, as after a connection that broke during its commit."""
    first, second = connect(), connect()
    job_id = value(first, "select jobq.enqueue('work')")
    value(first, "select jobq.claim_job(%s, 'w')", job_id)
    first.execute("begin")
    assert value(first, "select jobq.save_step(%s, 1, 'charge', '7')", job_id) == 7
    got: list[Any] = []
    save = "select jobq.save_step(%s, 1, 'charge', '8')"
    thread = threading.Thread(target=lambda: got.append(value(second, save, job_id)))
    thread.start()
    blocked = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    while not first.execute(blocked, [second.info.backend_pid]).fetchall():
        first.execute("select pg_stat_clear_snapshot()")
        time.sleep(0.01)
    first.execute("commit")
    thread.join()
    assert got == [7]


def test_an_emit_that_rolls_back_has_not_happened(connect: Callable[[], Connection]) -> None:
    waiting, emitting = connect(), connect()
    job_id = value(waiting, "select jobq.enqueue('work')")
    waiting.execute("select jobq.claim_job(%s, 'w')", [job_id])
    emitting.execute("begin")
    emitting.execute("select jobq.emit('paid', '1')")
    emitting.execute("rollback")
    wait = "select outcome from jobq.wait_for(%s, 1, 'paid', '1 h')"
    assert value(waiting, wait, job_id) == "waiting"
    assert value(emitting, "select jobq.emit('paid', '2')")
    assert value(waiting, "select run_at <= clock_timestamp() from jobq.job")


def waiting_job(connection: Connection, kind: str = "work") -> Any:
    """Enqueue and claim a job that is about to wait."""
    job_id = value(connection, "select jobq.enqueue(%s)", kind)
    connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
    return job_id


def resolved(connection: Connection) -> None:
    """Do what maintain() comes to, until nothing is left."""
    while value(connection, "select count(*) from jobq_private.pending"):
        connection.execute("select jobq_private.resolve()")


WAIT = "select outcome from jobq.wait_for(%s, 1, %s, '1 h')"
IS_DUE = "select run_at <= clock_timestamp() from jobq.job where job_id = %s"


def test_a_wait_beside_an_emit_under_way_is_over_when_that_commits(
    connect: Callable[[], Connection],
) -> None:
    waiting, emitting = connect(), connect()
    job_id = waiting_job(waiting)
    emitting.execute("begin")
    emitting.execute("select jobq.emit('paid', '1')")
    assert value(waiting, WAIT, job_id, "paid") == "waiting"
    waiting.execute("select jobq_private.resolve()")
    assert not value(waiting, IS_DUE, job_id), "it does not run in between"
    emitting.execute("commit")
    resolved(waiting)
    assert value(waiting, IS_DUE, job_id)


def test_who_waits_for_the_same_event_takes_no_other_waiter_for_an_emitter(
    connect: Callable[[], Connection],
) -> None:
    first, second = connect(), connect()
    jobs = [waiting_job(second), waiting_job(second)]
    first.execute("begin")
    assert value(first, WAIT, jobs[0], "paid") == "waiting"
    assert value(second, WAIT, jobs[1], "paid") == "waiting"
    first.execute("commit")
    soon = "select count(*) from jobq.job where run_at < now() + interval '50 min'"
    assert value(second, soon) == 0, "each runs again when the event comes, not before"
    assert value(second, "select count(*) from jobq_private.pending") == 0


def test_an_emit_waits_for_nobody_who_waits_for_it(connect: Callable[[], Connection]) -> None:
    waiting, emitting = connect(), connect()
    job_id = waiting_job(waiting)
    emitting.execute("set lock_timeout = '2s'")
    waiting.execute("begin")
    assert value(waiting, WAIT, job_id, "paid") == "waiting"
    assert value(emitting, "select jobq.emit('paid', '1')")
    emitting.execute("select jobq_private.resolve()")
    waiting.execute("commit")
    resolved(waiting)
    assert value(waiting, IS_DUE, job_id)


def test_an_emit_waits_for_nobody_who_holds_a_waiting_job(
    connect: Callable[[], Connection],
) -> None:
    holding, emitting = connect(), connect()
    jobs = [waiting_job(emitting), waiting_job(emitting)]
    for job_id in jobs:
        assert value(emitting, WAIT, job_id, "paid") == "waiting"
    emitting.execute("set lock_timeout = '2s'")
    holding.execute("begin")
    holding.execute("select from jobq_private.job where job_id = %s for update", [jobs[0]])
    assert value(emitting, "select jobq.emit('paid', '1')")
    assert value(emitting, IS_DUE, jobs[1])
    holding.execute("rollback")
    resolved(emitting)
    assert value(emitting, IS_DUE, jobs[0])


def test_two_who_wait_for_what_the_other_emits_hold_up_neither(
    connect: Callable[[], Connection],
) -> None:
    one, two = connect(), connect()
    jobs = [waiting_job(one), waiting_job(two)]
    for connection, job_id, event in ((one, jobs[0], "a"), (two, jobs[1], "b")):
        connection.execute("set lock_timeout = '2s'")
        connection.execute("begin")
        assert value(connection, WAIT, job_id, event) == "waiting"
    assert value(one, "select jobq.emit('b', '1')")
    assert value(two, "select jobq.emit('a', '1')")
    one.execute("commit")
    two.execute("commit")
    resolved(one)
    assert [value(one, IS_DUE, job_id) for job_id in jobs] == [True, True]


def test_a_wait_that_another_session_has_ended_since_fails_to_serialize(
    connect: Callable[[], Connection],
) -> None:
    old, new = connect(), connect()
    job_id = value(new, "select jobq.enqueue('work')")
    new.execute("select jobq.claim_job(%s, 'w')", [job_id])
    new.execute("select jobq.emit('paid', '1')")
    old.execute("begin isolation level repeatable read")
    old.execute("select from jobq.error")  # takes the snapshot
    wait = "select outcome from jobq.wait_for(%s, 1, 'paid')"
    assert value(new, wait, job_id) == "arrived"
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute(wait, [job_id])
    old.execute("rollback")
    assert value(old, wait, job_id) == "arrived"


def test_a_step_on_a_handlers_connection_commits_with_its_writes(
    connect: Callable[[], Connection],
) -> None:
    handler, other = connect(), connect()
    handler.execute("create table charge (id integer)")
    job_id = value(handler, "select jobq.enqueue('work')")
    handler.execute("select jobq.claim_job(%s, 'w')", [job_id])
    handler.execute("begin")
    handler.execute("insert into charge values (1)")
    handler.execute("select jobq.save_step(%s, 1, 'charge', '1')", [job_id])
    handler.execute("rollback")
    assert value(other, "select count(*) from jobq.list_steps(%s)", job_id) == 0
    with handler.transaction():
        handler.execute("insert into charge values (1)")
        handler.execute("select jobq.save_step(%s, 1, 'charge', '1')", [job_id])
    assert value(other, "select count(*) from charge") == 1
    assert value(other, "select count(*) from jobq.list_steps(%s)", job_id) == 1


def test_a_wait_with_an_old_snapshot_is_looked_after(connect: Callable[[], Connection]) -> None:
    waiting, emitting = connect(), connect()
    job_id = value(waiting, "select jobq.enqueue('work')")
    waiting.execute("select jobq.claim_job(%s, 'w')", [job_id])
    waiting.execute("begin isolation level repeatable read")
    waiting.execute("select from jobq.error")  # takes the snapshot
    assert value(emitting, "select jobq.emit('paid', '1')")
    wait = "select outcome from jobq.wait_for(%s, 1, 'paid', '1 h')"
    assert value(waiting, wait, job_id) == "waiting"
    waiting.execute("commit")
    waiting.execute("select jobq.maintain()")
    assert value(waiting, "select run_at <= clock_timestamp() from jobq.job")


def test_workers_subscribe_kinds_and_publishing_reaches_each(
    database: str, connect: Callable[[], Connection]
) -> None:
    registry = Registry()

    @registry.handler("receipt", subscribe_to=["order.paid", "order.refunded"])
    async def receipt(payload: dict[str, Any]) -> None:
        del payload

    with Client(database) as client:
        registry.declare(client)
        client.subscribe("order.paid", "stock", "slow")
        found = [(s.event, s.kind, s.queue) for s in client.list_subscriptions()]
        assert found == [
            ("order.paid", "receipt", None),
            ("order.paid", "stock", "slow"),
            ("order.refunded", "receipt", None),
        ]
        published = client.publish("order.paid", {"n": 1}, metadata={"m": 2}, idempotency_key="k")
        assert published.keys() == {"receipt", "stock"}
        assert client.publish("order.paid", idempotency_key="k") == published
        job = client.get(published["stock"])
        assert (job.queue, job.payload) == ("slow", {"n": 1})
        assert job.metadata.items() >= {"m": 2, "event": "order.paid"}.items()
        assert client.unsubscribe("order.paid", "stock")
        assert not client.unsubscribe("order.paid", "stock")
    connection = connect()
    with connection.transaction(force_rollback=True):
        assert Client(connection).publish("order.paid").keys() == {"receipt"}
    assert len(connection.execute("select from jobq.job").fetchall()) == 2


def test_a_fork_is_resumed_although_its_original_was_deleted_before_its_commit(
    connect: Callable[[], Connection],
) -> None:
    """The called job ends when neither the original's row nor that of the fork is visible."""
    connection, forking, ending = connect(), connect(), connect()
    children = '[{"name": "ask", "kind": "ask"}]'
    call = f"select outcome from jobq.call_children(%s, 1, '{children}')"
    caller = value(connection, "select jobq.enqueue('caller')")
    connection.execute("select jobq.claim_job(%s, 'w')", [caller])
    assert value(connection, call, caller) == "waiting"
    called = value(connection, "select job_id from jobq.job where kind = 'ask'")
    connection.execute("select jobq.claim_job(%s, 'w')", [called])
    with ending.transaction():
        with forking.transaction():
            copy = value(forking, "select jobq.fork(%s)", caller)
            connection.execute("select jobq.delete_many(array[%s::uuid])", [caller])
            ending.execute("select jobq.complete(%s, 1)", [called])
        connection.execute("select jobq.claim_job(%s, 'w')", [copy])
        assert value(connection, call, copy) == "waiting"
    until = time.monotonic() + 60
    late = "select run_at > now() + interval '1 s' from jobq.job where job_id = %s"
    while value(connection, late, copy) and time.monotonic() < until:
        connection.execute("select jobq.maintain()")
        time.sleep(0.05)
    assert not value(connection, late, copy)


def test_a_debounced_job_runs_also_if_the_one_before_it_dies_while_it_is_stored(
    connect: Callable[[], Connection],
) -> None:
    """A trigger of a user's makes its insert wait until the other job is dead."""
    connection, storing, blocking = connect(), connect(), connect()
    enqueue = "select jobq.enqueue('save', dedup_key => 'a', dedup => 'debounce', run_at => now())"
    begun = value(connection, enqueue)
    connection.execute("select jobq.claim_job(%s, 'w')", [begun])
    connection.execute("""
        create function public.wait_for_lock() returns trigger language plpgsql as $$
        begin
            perform pg_advisory_xact_lock_shared(4711);
            return new;
        end $$;
        create trigger wait_for_lock before insert on jobq_private.job
        for each row execute function public.wait_for_lock();
    """)
    blocking.execute("select pg_advisory_lock(4711)")
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(value(storing, enqueue)))
    thread.start()
    waits = "select count(*) from pg_locks where objid = 4711 and not granted"
    while not value(connection, waits):
        time.sleep(0.01)
    connection.execute("select jobq.fail(%s, 1, 'boom', retryable => false)", [begun])
    blocking.execute("select pg_advisory_unlock(4711)")
    thread.join()
    until = time.monotonic() + 60
    state = "select state from jobq.job where job_id = %s"
    while value(connection, state, got[0]) == "blocked" and time.monotonic() < until:
        connection.execute("select jobq.maintain()")
    assert value(connection, state, got[0]) == "queued"
