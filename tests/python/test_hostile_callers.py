"""What callers and neighbours do to the database, by intent or not, and what must go on."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]


def value(connection: Connection, query: str, *arguments: object) -> Any:
    """Return the only column of the first row, None without rows."""
    row = connection.execute(query, arguments).fetchone()
    return None if row is None else row[0]


def seconds(connection: Connection, query: str) -> float:
    """Run a query; return how long it took."""
    before = time.monotonic()
    connection.execute(query)
    return time.monotonic() - before


def cancel(connection: Connection, query: str, wanted: int) -> None:
    """Run a query and cancel it at random moments until so many of its calls were cancelled."""
    chance = random.Random(13)
    shortest = min(seconds(connection, query) for _ in range(5))
    for _ in range(wanted * 50):
        timer = threading.Timer(chance.uniform(0, shortest), connection.cancel_safe)
        timer.start()
        try:
            connection.execute(query)
        except psycopg.errors.QueryCanceled:
            wanted -= 1
        timer.join()
        try:
            connection.execute("select")
        except psycopg.errors.QueryCanceled:
            connection.execute("select")
        if not wanted:
            return
    raise AssertionError("the calls were over before they could be cancelled")


ROW_TRIGGER = """
    create function enqueue_order() returns trigger language plpgsql as $$
    begin
        perform jobq.enqueue('order', queue => 'queue ' || new.id % 50);
        return null;
    end $$;
    create table "order" (id bigint);
    create trigger enqueue_order after insert on "order"
    for each row execute function enqueue_order();
"""
SETTLE = """
    select jobq.enqueue_many(jsonb_agg(jsonb_build_object('kind', 'work')))
    from generate_series(1, 50);
    with c as (select * from jobq.claim('{default}', 'w', 50))
    select jobq.complete_many(array_agg(c.job_id), array_agg(c.attempt)) from c
"""


@pytest.mark.parametrize(
    ("query", "preparation"),
    [
        ('insert into "order" select generate_series(1, 100)', ""),
        (SETTLE, "select jobq.wait(jobq.enqueue('awaited'))"),
    ],
    ids=["row trigger", "settling while a client waits"],
)
def test_a_cancelled_call_leaves_no_lock_behind(
    connect: Connect, query: str, preparation: str
) -> None:
    watcher, victim = connect(), connect()
    watcher.execute(ROW_TRIGGER)
    if preparation:
        watcher.execute(preparation)
    cancel(victim, query, 60)
    locks = "select count(*) from pg_locks where locktype = 'advisory' and pid = %s"
    assert value(watcher, locks, victim.info.backend_pid) == 0


def test_sixty_workers_of_a_thousand_queues_take_a_bounded_number_of_locks(
    connect: Connect,
) -> None:
    watcher = connect()
    queues = [f"queue {n}" for n in range(1000)]
    workers = [connect() for _ in range(62)]
    for worker in workers:
        worker.execute("select jobq.begin_wait(%s)", [queues])
    locks = "select count(*) from pg_locks where locktype = 'advisory'"
    assert value(watcher, locks) <= 62 * 17


def test_a_worker_of_many_queues_is_woken(connect: Connect) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    queues = [f"queue {n}" for n in range(1000)]
    assert value(worker, "select jobq.begin_wait(%s)", queues)
    producer.execute("select jobq.enqueue('work', queue => 'queue 700')")
    assert [n.payload for n in worker.notifies(timeout=60, stop_after=1)] == ["queue 700"]
    producer.execute("begin; select jobq.enqueue('work', queue => 'queue 701')")
    assert not value(worker, "select jobq.begin_wait(%s)", queues), "a producer is in flight"
    producer.execute("rollback")


def test_a_transaction_that_is_to_be_prepared_enqueues_without_a_notification(
    connect: Connect,
) -> None:
    worker, producer = connect(), connect()
    worker.execute("listen jobq")
    assert value(worker, "select jobq.begin_wait('{default}')")
    producer.execute("begin; select jobq.enqueue('work')")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        producer.execute("prepare transaction 'one'")
    producer.execute("begin; set local jobq.notify = off; select jobq.enqueue('work')")
    producer.execute("prepare transaction 'two'")
    producer.execute("commit prepared 'two'")
    assert value(worker, "select count(*) from jobq.claim('{default}', 'w')") == 1
    producer.execute("select jobq.enqueue('work')")
    assert len(list(worker.notifies(timeout=60, stop_after=1))) == 1, "others notify as before"


def test_batches_that_mix_keys_of_both_sorts_do_not_deadlock(connect: Connect) -> None:
    connections = [connect() for _ in range(8)]

    def produce(number: int) -> None:
        chance = random.Random(number)
        for _ in range(25):
            batch = [
                {"kind": "k"}
                | ({"idempotency_key": str(chance.randrange(200))} if chance.random() < 0.7 else {})
                | (
                    {
                        "dedup_key": str(chance.randrange(20)),
                        "dedup": chance.choice(["skip", "replace"]),
                    }
                    if chance.random() < 0.7
                    else {}
                )
                for _ in range(12)
            ]
            connections[number].execute("select jobq.enqueue_many(%s)", [Jsonb(batch)])

    connections[0].execute("alter system set deadlock_timeout = '20ms'")
    connections[0].execute("select pg_reload_conf()")
    try:
        with ThreadPoolExecutor(len(connections)) as pool:
            list(pool.map(produce, range(len(connections))))
    finally:
        connections[0].execute("alter system reset deadlock_timeout")
        connections[0].execute("select pg_reload_conf()")


def test_redrive_many_passes_over_a_job_whose_key_is_taken_meanwhile(connect: Connect) -> None:
    producer, operator = connect(), connect()
    producer.execute(
        "select jobq.put_kind('k', max_attempts => 1);"
        "select jobq.enqueue('k'), jobq.enqueue('k', dedup_key => 'key');"
        "select jobq.fail(c.job_id, 1, 'boom') from jobq.claim('{default}', 'w', 2) as c"
    )
    producer.execute("begin; select jobq.enqueue('k', dedup_key => 'key')")
    with ThreadPoolExecutor(1) as pool:
        redriven = pool.submit(
            lambda: operator.execute("select jobq.redrive_many(kind => 'k')").fetchall()
        )
        pid = operator.info.backend_pid
        waiting = "select wait_event_type from pg_stat_activity where pid = %s"
        while value(producer, waiting, pid) != "Lock":
            assert not redriven.done(), "the key is not seen before the commit"
            time.sleep(0.002)
            producer.execute("select pg_stat_clear_snapshot()")
        producer.execute("commit")
        assert len(redriven.result(60)) == 1, "the other one goes back"
    assert value(producer, "select count(*) from jobq.job where state = 'dead'") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "'k', priority => 100000",
        "'k', priority => -100000, idempotency_key => 'a'",
        "'k', max_attempts => 0",
        "'k', run_at => '200000-01-01'",
        "repeat('k', 200)",
        "'object', '1'",
    ],
)
def test_a_refused_job_is_told_in_few_lines(connect: Connect, arguments: str) -> None:
    """The first call of a session, whose plan knows the arguments, says the same as any other."""
    connect().execute("""select jobq.put_kind('object', payload_schema => '{"type": "object"}')""")
    connection = connect()
    messages = []
    for _ in range(2):
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(f"select jobq.enqueue({arguments})")
        diagnosis = refused.value.diag
        assert diagnosis.context is not None
        assert len(diagnosis.context.splitlines()) < 12
        messages.append((diagnosis.sqlstate, diagnosis.constraint_name))
    assert messages[0] == messages[1]
    assert messages[0][1] in {"INVALID_ARGUMENT", "PAYLOAD_INVALID"}


def test_a_key_that_is_held_holds_up_one_schedule(connect: Connect) -> None:
    holder, keeper = connect(), connect()
    for name in ("held", "free"):
        keeper.execute("select jobq.create_schedule(%s, 'k', every => '1 h')", [name])
    holder.execute("begin; select jobq.enqueue('k', dedup_key => 'held', dedup => 'skip')")
    keeper.execute("update jobq_private.schedule set next_run_at = now()")
    fired = "select s.name from jobq.job as j join jobq.schedule as s using (schedule_id)"
    deadline = time.monotonic() + 60
    while not (names := keeper.execute(fired).fetchall()):
        assert time.monotonic() < deadline, "the other fires"
        keeper.execute("select from jobq.maintain()")
    assert names == [("free",)]
    failed = "select finding from jobq.health() where subject = 'schedules' and not is_ok"
    assert "held should have fired" in value(keeper, failed)
    holder.execute("rollback")
    keeper.execute("update jobq_private.schedule set retry_at = now() where retry_at is not null")
    while value(keeper, failed) is not None:
        assert time.monotonic() < deadline, "it fires for the slot that it kept"
        keeper.execute("select from jobq.maintain()")
    assert sorted(keeper.execute(fired).fetchall()) == [("free",), ("held",)]


def test_a_lock_or_a_timeout_holds_up_one_task_of_maintenance(connect: Connect) -> None:
    holder, keeper, watcher = connect(), connect(), connect()
    while keeper.execute("select from jobq.maintain() where has_more").fetchone():
        pass
    keeper.execute("select jobq.configure(lease => '1 s'); select jobq.enqueue('work')")
    keeper.execute("select from jobq.claim('{default}', 'w')")
    holder.execute("begin; lock table jobq_private.schedule in share mode")
    tasks = "select task, affected from jobq.maintain()"
    failed = "select finding from jobq.health() where subject = 'maintenance' and not is_ok"
    done: dict[str, int | None] = dict(keeper.execute(tasks).fetchall())
    assert [task for task, affected in done.items() if affected is None] == ["ticked"]
    assert "ticked failed 1 times" in value(watcher, failed)
    assert "55P03" in value(watcher, failed)
    keeper.execute("set statement_timeout = '300 ms'")
    had_turn: set[str] = set()
    deadline = time.monotonic() + 60
    while had_turn < done.keys() - {"ticked"} or "57014" not in value(watcher, failed):
        assert time.monotonic() < deadline, "all others have their turn"
        with suppress(psycopg.errors.QueryCanceled):  # between two tasks
            had_turn |= {task for task, affected in keeper.execute(tasks) if affected is not None}
    state = "select state from jobq_private.job"
    while value(watcher, state) == "running":
        assert time.monotonic() < deadline, "the lease is taken back meanwhile"
        with suppress(psycopg.errors.QueryCanceled):
            keeper.execute(tasks)
    holder.execute("rollback")
    keeper.execute("set statement_timeout = 0")
    keeper.execute(tasks)
    assert value(watcher, failed) is None
