"""Steps and events with real connections: no event is missed, no step is lost."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]

ROUNDS = 150


def value(connection: Connection, query: str, *arguments: object) -> Any:
    row = connection.execute(query, arguments).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.every_version
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
    waiting.execute("select jobq.maintain()")
    late = "select count(*) from jobq.job where run_at > now() + interval '1 s'"
    assert value(waiting, late) == 0


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


def test_a_wait_beside_an_emit_under_way_looks_again_soon(
    connect: Callable[[], Connection],
) -> None:
    waiting, emitting = connect(), connect()
    job_id = value(waiting, "select jobq.enqueue('work')")
    waiting.execute("select jobq.claim_job(%s, 'w')", [job_id])
    emitting.execute("begin")
    emitting.execute("select jobq.emit('paid', '1')")
    wait = "select outcome from jobq.wait_for(%s, 1, 'paid', '1 h')"
    assert value(waiting, wait, job_id) == "waiting"
    assert value(waiting, "select run_at < now() + interval '1 s' from jobq.job")
    emitting.execute("commit")


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
