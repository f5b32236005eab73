"""Limits hold whoever claims, and no job is left behind.

The database itself says how many jobs of a key ran at each moment: an attempt holds its place
from claimed_at until after finished_at.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from waiting import until

from jobq import RateLimited, Registry, Worker
from jobq.worker.queries import Queries

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

PATIENCE = 60.0
"""Seconds until something that must happen is called missing."""
CLAIMERS = 16
KEYS = 12
LIMIT = 2
JOBS = 160
WHOLE = 6
RATE = 40
BURST = 3
RUNNING_OF_EACH = """
    select
        (select count(*) from jobq_private.job where state = 'running')::integer,
        (select count(*) from jobq_private.job where state = 'running' and kind = 'k')::integer,
        (
            select coalesce(max(n), 0)::integer from (
                select count(*) as n from jobq_private.job
                where state = 'running' and concurrency_key is not null group by concurrency_key
            ) as r
        )
"""
STARTS = """
    select concurrency_key, extract(epoch from at)::double precision from (
        select concurrency_key, claimed_at as at from jobq_private.job_archive
        union all
        select j.concurrency_key, a.started_at
        from jobq_private.attempt as a join jobq.job as j using (job_id)
        where a.attempt < j.attempt
    ) as s
    where concurrency_key is not null
    order by at
"""
MOST_AT_ONCE = """
    with ran as (
        select concurrency_key, claimed_at as began, finished_at as ended
        from jobq_private.job_archive where concurrency_key is not null and claimed_at is not null
        union all
        select j.concurrency_key, a.started_at, a.finished_at
        from jobq_private.attempt as a join jobq.job as j using (job_id)
        where j.state <> 'dead'
    ),
    change as (
        select concurrency_key, began as at, 1 as step from ran
        union all select concurrency_key, ended, -1 from ran
    )
    select coalesce(max(running), 0) from (
        select sum(step) over (partition by concurrency_key order by at, step) as running
        from change
    ) as c
"""
RUNNING_NOW = """
    select coalesce(max(n), 0) from (
        select count(*) as n from jobq_private.job
        where state = 'running' and concurrency_key is not null group by concurrency_key
    ) as r
"""


def fill(
    connection: Connection, jobs: int = JOBS, keys: int = KEYS, queue: str = "default"
) -> None:
    """Store jobs, their keys in turn."""
    connection.execute(
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object(
                'kind', 'k', 'queue', %s::text, 'concurrency_key', 'key ' || n %% %s))
            from generate_series(1, %s) as n
        ))
        """,
        [queue, keys, jobs],
    )


def running(connection: Connection) -> int:
    [[count]] = connection.execute("select count(*) from jobq_private.job where state = 'running'")
    return int(count)


def claim(connection: Connection, jobs: int, queue: str = "default") -> list[tuple[Any, ...]]:
    return connection.execute(
        "select job_id, attempt from jobq.claim(array[%s], 'w', %s)", [queue, jobs]
    ).fetchall()


class Claimer(threading.Thread):
    """A worker that completes, fails, releases, repeats reads, rolls back, or is cut off."""

    def __init__(
        self, connect: Connect, seed: int, errors: list[BaseException], queues: tuple[str, ...]
    ) -> None:
        super().__init__(daemon=True)
        self.connect = connect
        self.queues = queues
        self.chance = random.Random(seed)
        self.errors = errors
        self.ended = threading.Event()
        self.is_stale = False

    def run(self) -> None:
        connection = self.connect()
        try:
            while not self.ended.is_set():
                try:
                    self.turn(connection)
                except psycopg.OperationalError:  # cut off, or serialization
                    if connection.closed:
                        connection = self.connect()
                except psycopg.errors.UniqueViolation:  # a place taken since its snapshot
                    if not self.is_stale:
                        raise
                except psycopg.Error as error:
                    # no place left; or the lease of a second ran out on a busy machine
                    if error.sqlstate not in ("JQ011", "JQ003"):
                        raise
        except BaseException as error:
            self.errors.append(error)

    def turn(self, connection: Connection) -> None:
        way = self.chance.random()
        self.is_stale = 0.1 <= way < 0.3
        if way < 0.1:
            self.start_by_hand(connection)
            return
        with connection.transaction():
            if self.is_stale:
                level = "repeatable read" if way < 0.2 else "serializable"
                connection.execute(f"set transaction isolation level {level}".encode())
            jobs = claim(
                connection, self.chance.choice((1, 3, 20)), self.chance.choice(self.queues)
            )
            if way > 0.95:
                raise psycopg.Rollback
        if not jobs:
            self.ended.wait(0.01)  # as a worker does; a limit or a rate holds up all there is
        if way > 0.93:
            with connection.transaction():
                claim(connection, 3, self.chance.choice(self.queues))
                connection.execute("select pg_terminate_backend(pg_backend_pid())")
        for job_id, attempt in jobs:
            end = self.chance.random()
            if end < 0.8:
                connection.execute("select jobq.complete(%s, %s)", [job_id, attempt])
            elif end < 0.9:
                connection.execute(
                    "select jobq.fail(%s, %s, 'e', retry_in => '1 ms')",
                    [job_id, attempt],
                )
            else:
                connection.execute("select jobq.release(%s, %s)", [job_id, attempt])

    def start_by_hand(self, connection: Connection) -> None:
        """Start a job as the tables' owner, by raw SQL, and end it."""
        with connection.transaction():
            found = connection.execute(
                "update jobq_private.job set state = 'running' where job_id = ("
                " select job_id from jobq_private.job where state = 'queued'"
                " order by random() limit 1 for update skip locked) returning job_id, attempt"
            ).fetchall()
        for job_id, attempt in found:
            connection.execute("select jobq.complete(%s, %s)", [job_id, attempt])


def most_at_once(connect: Connect, watcher: Connection, *queues: str) -> int:
    """Have sixteen claimers do the jobs of these queues; return how many of a key ran."""
    errors: list[BaseException] = []
    claimers = [Claimer(connect, seed, errors, queues) for seed in range(CLAIMERS)]
    for claimer in claimers:
        claimer.start()
    for queue in queues:
        fill(watcher, JOBS // 2 // len(queues), queue=queue)
    until = time.monotonic() + PATIENCE
    most = 0
    while time.monotonic() < until and not errors:
        [[now]] = watcher.execute(RUNNING_NOW)
        most = max(most, now)
        watcher.execute("select jobq.maintain()")
        [[left]] = watcher.execute("select count(*) from jobq_private.job")
        if not left:
            break
    for claimer in claimers:
        claimer.ended.set()
    for claimer in claimers:
        claimer.join(PATIENCE)
    assert not errors
    assert left == 0, "jobs were left behind"
    [[at_once]] = watcher.execute(MOST_AT_ONCE)
    return max(most, int(at_once))


@pytest.mark.long
def test_no_limit_is_exceeded_and_no_job_is_stranded(connect: Connect) -> None:
    watcher = connect()
    watcher.execute("select jobq.put_kind('k', max_attempts => 1000, lease => '1 s')")
    watcher.execute("select jobq.configure(max_expiries => 1000)")
    watcher.execute("select jobq.put_queue('default', key_max_running => %s)", [LIMIT])
    fill(watcher, JOBS // 2)
    assert most_at_once(connect, watcher, "default") == LIMIT


def test_no_limit_of_a_kinds_keys_is_exceeded_in_two_queues(connect: Connect) -> None:
    watcher = connect()
    watcher.execute(
        "select jobq.put_kind('k', max_attempts => 1000, lease => '1 s', key_max_running => %s)",
        [LIMIT],
    )
    watcher.execute("select jobq.configure(max_expiries => 1000)")
    assert most_at_once(connect, watcher, "default", "other") == LIMIT


@pytest.mark.parametrize("ends_first", [True, False])
def test_the_end_of_a_job_opens_its_kinds_key_in_another_queue(
    connect: Connect, *, ends_first: bool
) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_kind('k', key_max_running => 1)")
    fill(one, 1, keys=1, queue="here")
    fill(one, 1, keys=1, queue="there")
    [held] = claim(one, 1, "here")
    with one.transaction(), other.transaction():
        if ends_first:  # the claim cannot know of it yet
            one.execute("select jobq.complete(%s, %s)", held)
            assert claim(other, 1, "there") == []
        else:  # nobody sees yet that the claim has closed a key
            assert claim(other, 1, "there") == []
            one.execute("select jobq.complete(%s, %s)", held)
    until = time.monotonic() + PATIENCE
    while not claim(one, 1, "there"):
        assert time.monotonic() < until, "nothing opened the key"
        [[closed]] = one.execute(
            "select count(*) from jobq_private.waiting_key where state = 'full'"
        )
        assert (
            closed == 0
            or one.execute("select from jobq_private.waiting_key where state = 'open'").fetchall()
        )


def test_by_hand_no_limit_of_a_key_that_no_claim_has_opened_is_exceeded(
    connect: Connect,
) -> None:
    watcher = connect()
    watcher.execute("select jobq.put_queue('default', key_max_running => %s)", [LIMIT])
    fill(watcher, JOBS, keys=1)
    most = [0]

    def start_and_complete() -> None:
        connection = connect()
        for _round in range(JOBS // CLAIMERS):
            with suppress(ValueError, psycopg.Error):  # none is free, or no place
                [[job_id, attempt]] = connection.execute(
                    "update jobq_private.job set state = 'running' where job_id = ("
                    " select job_id from jobq_private.job where state = 'queued'"
                    " limit 1 for update skip locked) returning job_id, attempt"
                ).fetchall()
                [[now]] = connection.execute(RUNNING_NOW)
                most.append(now)
                connection.execute("select jobq.complete(%s, %s)", [job_id, attempt])

    threads = [threading.Thread(target=start_and_complete) for _ in range(CLAIMERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert max(most) == LIMIT


def test_a_job_of_a_full_key_starts_when_another_ends(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 1)")
    fill(one, 2, keys=1)
    [held] = claim(one, 5)
    assert claim(other, 5) == []
    assert one.execute("select jobq.due_in('{default}')").fetchone() == (None,)
    one.execute("select jobq.complete(%s, %s)", held)
    assert len(claim(other, 5)) == 1


def test_a_commit_that_a_closing_claim_could_not_see_is_found(connect: Connect) -> None:
    producer, worker = connect(), connect()
    fill(producer, 1, keys=1)
    with producer.transaction():
        fill(producer, 1, keys=1)  # sees the key, once it is open
        assert len(claim(worker, 1)) == 1
        fill(producer, 1, keys=1)
        assert claim(worker, 5) == []
        assert claim(worker, 5) == []
    time_left = time.monotonic() + PATIENCE
    found = 0
    while found < 2 and time.monotonic() < time_left:
        found += len(claim(worker, 5))
    assert found == 2


@pytest.mark.parametrize("limit", [None, 5])
def test_a_key_that_only_seems_empty_stays(connect: Connect, limit: int | None) -> None:
    """Who adds a job while the key is open calls nobody: only the lock keeps the key open."""
    producer, worker = connect(), connect()
    producer.execute("select jobq.put_queue('default', key_max_running => %s)", [limit])
    fill(producer, 1, keys=1)
    assert len(claim(worker, 1)) == 1
    with producer.transaction():
        fill(producer, 1, keys=1)
        assert producer.execute("select from jobq_private.waiting_key").rowcount == 1
        assert claim(worker, 5) == []
    until(lambda: claim(worker, 5))


def test_the_end_of_a_job_that_a_closing_claim_could_not_see_opens_its_key(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 1)")
    fill(one, 2, keys=1)
    [held] = claim(one, 1)
    with one.transaction():
        one.execute("select jobq.complete(%s, %s)", held)
        assert claim(other, 5) == []
    until = time.monotonic() + PATIENCE
    while not claim(other, 5):
        assert time.monotonic() < until


def test_keys_take_turns(connect: Connect) -> None:
    connection = connect()
    for key, jobs in (("big", 500), ("small", 3), ("tiny", 1)):
        connection.execute(
            "select jobq.enqueue('k', concurrency_key => %s) from generate_series(1, %s)",
            [key, jobs],
        )
    got = [
        key
        for _ in range(8)
        for [key] in connection.execute(
            "select j.concurrency_key from jobq.claim('{default}', 'w', 1)"
            " join jobq.job as j using (job_id)"
        )
    ]
    assert sorted(key for key in got if key != "big") == ["small"] * 3 + ["tiny"]


def test_a_higher_priority_goes_before_turns_with_and_without_keys(
    connect: Connect,
) -> None:
    connection = connect()
    for priority, key in ((0, "a"), (5, None), (3, "b"), (0, None), (9, "a")):
        connection.execute(
            "select jobq.enqueue('k', priority => %s, concurrency_key => %s)",
            [priority, key],
        )
    order = [
        connection.execute(
            "select j.priority from jobq.claim('{default}', 'w', 1)"
            " join jobq.job as j using (job_id)"
        ).fetchone()
        for _ in range(5)
    ]
    assert order == [(9,), (5,), (3,), (0,), (0,)]


def test_a_job_due_tomorrow_holds_up_no_job_due_now(connect: Connect) -> None:
    connection = connect()
    connection.execute(
        "select jobq.enqueue('k', run_at => now() + interval '1 day', concurrency_key => 'a')"
    )
    assert claim(connection, 5) == []
    [[due]] = connection.execute("select jobq.due_in('{default}') > interval '23 h'")
    assert due
    connection.execute("select jobq.enqueue('k', concurrency_key => 'a')")
    assert len(claim(connection, 5)) == 1


def test_limits_follow_what_is_put(connect: Connect) -> None:
    connection = connect()
    fill(connection, 20, keys=1)
    assert len(claim(connection, 5)) == 5
    connection.execute("select jobq.put_queue('default', key_max_running => 3)")
    assert claim(connection, 5) == []
    connection.execute("select jobq.put_limit('default', 'key 0', 7)")
    assert len(claim(connection, 5)) == 2
    connection.execute("select jobq.put_limit('default', 'key 0')")
    assert claim(connection, 5) == []
    connection.execute("select jobq.put_queue('default')")
    assert len(claim(connection, 5)) == 5
    assert running(connection) == 12


def test_a_thousand_redriven_jobs_of_a_key_keep_to_its_limit(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', key_max_running => 2)")
    fill(connection, 1000, keys=1)
    connection.execute("update jobq_private.job set state = 'dead'")
    assert claim(connection, 5) == []
    connection.execute("select jobq.redrive_many(queue => 'default')")
    assert len(claim(connection, 50)) == 2


def test_an_expired_lease_frees_its_place(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', key_max_running => 1, lease => '1 s')")
    fill(connection, 1, keys=1)
    [[job_id, attempt]] = claim(connection, 1)
    time.sleep(1.1)
    connection.execute("select jobq_internal.recover()")
    [[again, second]] = claim(connection, 1)
    assert (again, second) == (job_id, attempt + 1)
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select jobq.complete(%s, %s)", [job_id, attempt])
    assert refused.value.sqlstate == "JQ003"
    assert running(connection) == 1


def test_limits_of_queue_and_kind_and_rates_hold_together(connect: Connect) -> None:
    watcher = connect()
    watcher.execute(
        "select jobq.put_kind('k', max_attempts => 1000, lease => '1 s', max_running => %s)",
        [WHOLE - 1],
    )
    watcher.execute("select jobq.configure(max_expiries => 1000)")
    watcher.execute(
        "select jobq.put_queue('default', max_running => %s, key_max_running => %s,"
        " key_rate_limit => %s, key_rate_burst => %s)",
        [WHOLE, LIMIT, RATE, BURST],
    )
    fill(watcher, 40, keys=KEYS // 2)
    watcher.execute("select jobq.enqueue('k') from generate_series(1, 10)")
    watcher.execute("select jobq.enqueue('other') from generate_series(1, 10)")
    errors: list[BaseException] = []
    claimers = [Claimer(connect, seed, errors, ("default",)) for seed in range(CLAIMERS)]
    for claimer in claimers:
        claimer.start()
    until = time.monotonic() + PATIENCE
    most = (0, 0, 0)
    while time.monotonic() < until and not errors:
        [now] = watcher.execute(RUNNING_OF_EACH).fetchall()
        most = tuple(map(max, most, now))
        watcher.execute("select jobq.maintain()")
        [[left]] = watcher.execute("select count(*) from jobq_private.job")
        if not left:
            break
    for claimer in claimers:
        claimer.ended.set()
    for claimer in claimers:
        claimer.join(PATIENCE)
    assert not errors
    assert left == 0, "jobs were left behind"
    assert most[0] <= WHOLE
    assert most[1] <= WHOLE - 1
    assert most[2] <= LIMIT
    starts: dict[str, list[float]] = {}
    for key, at in watcher.execute(STARTS):
        starts.setdefault(key, []).append(at)
    for times in starts.values():
        for first in range(len(times)):
            for after in range(BURST, len(times) - first):
                assert times[first + after] - times[first] >= (after - BURST + 1) / RATE - 1e-6


def test_a_repeatable_snapshot_passes_no_limit_that_moved_on(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', max_running => 1)")
    one.execute("select jobq.enqueue('k') from generate_series(1, 3)")
    [held] = claim(one, 1)
    one.execute("select jobq.complete(%s, %s)", held)
    other.autocommit = False
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("select 1 from jobq.job")
    assert len(claim(one, 1)) == 1
    with pytest.raises(psycopg.errors.SerializationFailure):
        claim(other, 1)
    assert running(one) == 1


def test_a_claim_waits_for_no_limit(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', max_running => 5)")
    one.execute("select jobq.enqueue('k') from generate_series(1, 3)")
    other.execute("set lock_timeout = '10 s'")
    with one.transaction():
        assert len(claim(one, 1)) == 1
        assert claim(other, 1) == []
    assert len(claim(other, 5)) == 2


def test_a_limit_that_is_put_counts_claims_that_have_not_seen_it(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.enqueue('k') from generate_series(1, 3)")
    with one.transaction():
        assert len(claim(one, 1)) == 1
        other.execute("select jobq.put_queue('default', max_running => 1)")
    assert claim(other, 5) == []
    assert running(one) == 1


async def test_a_worker_claims_ahead_only_what_has_no_limits(
    database: str, connect: Connect
) -> None:
    """It has taken a job without a key ahead, and none of those with one.

    A worker with so many slots takes jobs ahead for 20 s after the last one has started.
    """
    watcher = connect()
    registry, gate = Registry(), asyncio.Event()

    @registry.handler("k")
    async def work(payload: object) -> None:
        del payload
        await gate.wait()

    slots = 400
    fill(watcher, slots + 8, keys=slots + 8)
    states = "select count(*) from jobq.job where state = 'running' and concurrency_key is "
    async with Worker(database, registry, concurrency=slots), asyncio.timeout(PATIENCE):
        while watcher.execute(states + "not null").fetchone() != (slots,):
            await asyncio.sleep(0.01)
        watcher.execute("select jobq.enqueue('k')")
        while watcher.execute(states + "null").fetchone() != (1,):
            await asyncio.sleep(0.01)
        assert watcher.execute(states + "not null").fetchone() == (slots,)
        gate.set()
        while watcher.execute("select from jobq_private.job").fetchall():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_worker_looks_again_soon_where_others_held_the_limit(
    database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """Nobody tells it of an end that its claim could not see, nor that a claim is rolled back.

    Nothing else would have it look.
    """
    passed_over = 0

    async def due_in(queries: Queries, *given: Any) -> float | None:
        nonlocal passed_over
        due = await ask(queries, *given)
        passed_over += due is not None and due <= 0
        return due

    ask = Queries.due_in
    monkeypatch.setattr(Queries, "due_in", due_in)
    registry, is_done = Registry(), asyncio.Event()

    @registry.handler("k")
    async def work(payload: object) -> None:
        del payload
        is_done.set()

    one = connect()
    one.execute("select jobq.put_kind('k', key_max_running => 1)")
    fill(one, 1, keys=1, queue="here")
    held = claim(one, 1, "here") if ends else []
    worker = Worker(database, registry, queues=["there"], poll=3600)
    async with asyncio.timeout(PATIENCE), AsyncExitStack() as stack:
        with one.transaction(force_rollback=not ends):
            if ends:
                one.execute("select jobq.complete(%s, %s)", held[0])
            else:
                assert len(claim(one, 1, "here")) == 1
            fill(connect(), 1, keys=1, queue="there")
            await stack.enter_async_context(worker)
            while passed_over < 3:
                await asyncio.sleep(0.001)
            assert not is_done.is_set()
        await is_done.wait()


async def test_whom_a_handler_calls_can_ask_its_key_to_wait(
    database: str, connect: Connect
) -> None:
    watcher = connect()
    registry = Registry()
    calls: list[str] = []

    @registry.handler("k")
    async def work(payload: dict[str, str]) -> None:
        calls.append(payload["key"])
        if calls.count("slow") == 1 and payload["key"] == "slow":
            raise RateLimited(3600, "status 429")

    for key in ("slow", "slow", "other"):
        watcher.execute(
            "select jobq.enqueue('k', jsonb_build_object('key', %s::text), concurrency_key => %s)",
            [key, key],
        )
    watcher.execute("select jobq.put_queue('default', key_max_running => 1)")
    left = "select count(*), max(attempt - uncounted) from jobq_private.job"
    async with Worker(database, registry), asyncio.timeout(PATIENCE):
        while watcher.execute(left).fetchone() != (2, 0) or "other" not in calls:
            await asyncio.sleep(0.01)
        assert sorted(calls) == ["other", "slow"]
        assert watcher.execute("select jobq.release_key('default', 'slow')").fetchone() == (True,)
        while watcher.execute("select from jobq_private.job").fetchall():
            await asyncio.sleep(0.01)
    assert sorted(calls) == ["other", "slow", "slow", "slow"]


def test_claims_of_two_priorities_of_a_key_do_not_meet(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 2)")
    for priority in (5, 5, 0, 0):
        one.execute(
            "select jobq.enqueue('k', priority => %s, concurrency_key => 'a')",
            [priority],
        )
    [first] = claim(one, 1)  # which makes the key's rows
    one.execute("select jobq.complete(%s, %s)", first)
    other.execute("set lock_timeout = '10 s'")
    with one.transaction():
        assert len(claim(one, 1)) == 1
        assert claim(other, 1) == []
    assert len(claim(other, 5)) == 1


def later(connection: Connection, priority: int, key: str) -> None:
    """Store a job that is due in an hour, and have its key closed until then."""
    connection.execute(
        "select jobq.enqueue('k', run_at => now() + interval '1 h', priority => %s,"
        " concurrency_key => %s)",
        [priority, key],
    )
    assert claim(connection, 5) == []


def let_due(connection: Connection, priority: int) -> None:
    connection.execute("update jobq_private.job set run_at = now() where priority = %s", [priority])
    connection.execute(
        "update jobq_private.waiting_key set open_at = now() where ctid = any (array("
        " select ctid from jobq_private.waiting_key where priority = %s for update skip locked))",
        [priority],
    )


def claim_one(connection: Connection) -> list[tuple[Any, ...]]:
    return claim(connection, 1)


def start_by_hand(connection: Connection, more: str = "") -> list[tuple[Any, ...]]:
    """Start the oldest job as the tables' owner, by raw SQL."""
    query = (
        f"update jobq_private.job set state = 'running'{more} where job_id = (select job_id"
        " from jobq_private.job where state = 'queued' order by job_id limit 1)"
        " returning job_id, attempt"
    )
    return connection.execute(query.encode()).fetchall()


def test_a_claim_that_makes_a_key_is_seen_by_those_that_would_make_it_too(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 1)")
    one.execute("select jobq.enqueue('k', priority => 5, concurrency_key => 'a')")
    other.execute("set lock_timeout = '10 s'")
    with one.transaction():
        assert len(claim(one, 1)) == 1
        other.execute("select jobq.enqueue('k', concurrency_key => 'a')")
        assert claim(other, 1) == []
    assert claim(other, 1) == []
    assert running(one) == 1


def test_a_claim_that_opens_a_key_whose_time_has_come_is_seen_by_the_next(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 1)")
    later(one, 5, "a")
    later(one, 0, "a")
    other.execute("set lock_timeout = '10 s'")
    let_due(one, 5)
    with one.transaction():
        assert len(claim(one, 1)) == 1
        let_due(other, 0)
        assert claim(other, 1) == []
    assert claim(other, 1) == []
    assert running(one) == 1


def test_a_claim_waits_for_no_start_by_hand(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 2)")
    fill(one, 3, keys=1)
    other.execute("set lock_timeout = '10 s'")
    with one.transaction():
        assert len(start_by_hand(one)) == 1
        assert claim(other, 5) == []
    assert len(claim(other, 5)) == 1


def test_a_claim_waits_for_no_hold(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 5)")
    fill(one, 2, keys=1)
    other.execute("set lock_timeout = '10 s'")
    with one.transaction():
        one.execute("select jobq.hold_key('default', 'key 0', now() + interval '1 h')")
        assert len(claim(other, 1)) == 1, "the hold is not committed"
    assert claim(other, 5) == []


def test_a_hold_waits_for_no_claim(connect: Connect) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 5)")
    fill(one, 4, keys=1)
    other.execute("set lock_timeout = '1 s'")
    with one.transaction():
        [[job, attempt]] = claim(one, 1)
        other.execute("select jobq.hold_key('default', 'key 0', 'infinity')")
        assert claim(one, 5) == []
        one.execute("select jobq.rate_limited(%s, %s, '1 h', null, false)", [job, attempt])
        other.execute("select jobq.hold_key('default', 'key 0', now() + interval '1 s')")
        assert other.execute("select jobq.release_key('default', 'key 0')").fetchone() == (True,)
    assert claim(other, 5) == [], "the worker's hold has come since"


@pytest.mark.parametrize(
    "put",
    [
        "put_queue('default', max_running => 1)",
        "put_queue('default', key_max_running => 1)",
        "put_limit('default', 'key 0', 1)",
        "put_kind('k', max_running => 1)",
    ],
)
@pytest.mark.parametrize("by", ["claim", "hand"])
def test_a_snapshot_that_has_not_seen_a_limit_starts_nothing(
    connect: Connect, put: str, by: str
) -> None:
    one, other = connect(), connect()
    fill(one, 3, keys=1)
    other.autocommit = False
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("select 1 from jobq.job")
    one.execute(f"select jobq.{put}".encode())
    start = start_by_hand if by == "hand" else claim_one
    with pytest.raises(psycopg.errors.SerializationFailure):
        start(other)


@pytest.mark.parametrize("level", [*psycopg.IsolationLevel][1:])
def test_a_limit_counts_what_its_own_snapshot_has_not_seen(
    connect: Connect, level: psycopg.IsolationLevel
) -> None:
    one, other = connect(), connect()
    fill(one, 3, keys=1)
    other.isolation_level = level
    with other.transaction():
        other.execute("select 1 from jobq.job")
        assert len(claim(one, 2)) == 2
        other.execute("select jobq.put_queue('default', max_running => 2)")
    assert claim(one, 1) == []
    with pytest.raises(psycopg.Error) as refused:
        start_by_hand(one)
    assert refused.value.sqlstate == "JQ011"
    assert running(one) == 2


def test_the_limit_of_a_kind_sees_what_starts_in_a_new_queue_meanwhile(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    with one.transaction():
        one.execute("select jobq.put_kind('k', max_running => 1)")
        other.execute("select jobq.enqueue('k', queue => 'new') from generate_series(1, 3)")
        [[job, attempt]] = claim(other, 1, "new")
    assert claim(other, 5, "new") == []
    assert claim(other, 5, "new") == []  # the first has had them wait for their kind
    other.execute("select jobq.complete(%s, %s)", [job, attempt])
    assert len(claim(other, 5, "new")) == 1
    other.execute("select jobq.enqueue('k')")
    assert claim(other, 5) == []


def test_a_named_job_whose_key_is_full_by_then_is_not_claimed(connect: Connect) -> None:
    one, other, watcher = connect(), connect(), connect()
    one.execute("select jobq.put_queue('default', key_max_running => 1)")
    fill(one, 2, keys=1)
    [[first], [second]] = one.execute("select job_id from jobq_private.job").fetchall()
    got: list[list[tuple[Any, ...]]] = []
    query = "select job_id from jobq.claim_job(%s, 'w')"
    claims = threading.Thread(target=lambda: got.append(other.execute(query, [second]).fetchall()))
    with one.transaction():
        assert one.execute(query, [first]).fetchall() == [(first,)]
        claims.start()
        until = time.monotonic() + PATIENCE
        while not watcher.execute("select from pg_locks where not granted").fetchall():
            assert time.monotonic() < until
    claims.join(PATIENCE)
    assert got == [[]]
    assert running(one) == 1


def test_a_job_that_starts_in_another_queue_passes_its_limits(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('narrow', max_running => 1)")
    for queue in ("narrow", "default"):
        connection.execute("select jobq.enqueue('k', queue => %s)", [queue])
    assert len(claim(connection, 1, "narrow")) == 1
    with pytest.raises(psycopg.Error) as refused:
        start_by_hand(connection, ", queue = 'narrow'")
    assert refused.value.sqlstate == "JQ011"
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("update jobq_private.job set queue = 'default' where state = 'running'")
    assert refused.value.sqlstate == "JQ002"
    connection.execute("select jobq.put_queue('rated', rate_limit => 1, rate_period => '1 h')")
    start_by_hand(connection, ", queue = 'rated'")
    connection.execute("select jobq.enqueue('k', queue => 'rated')")
    assert claim(connection, 1, "rated") == [], "the start is charged to the queue that it is in"


@pytest.mark.parametrize(
    "leave",
    [
        "cancel(%s, 'no more')",
        'change_many(\'{"queue": "other"}\', array[%s::uuid])',
        "delete_many(array[%s::uuid])",
    ],
)
def test_a_head_that_leaves_its_order_lets_the_next_start(connect: Connect, leave: str) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', ordered => true)")
    fill(connection, 2, keys=1)
    [[head, attempt]] = claim(connection, 5)
    connection.execute("select jobq.fail(%s, %s, 'e', retry_in => '1 h')", [head, attempt])
    assert claim(connection, 5) == []
    connection.execute(f"select jobq.{leave}".encode(), [head])
    assert len(claim(connection, 5)) == 1


@pytest.mark.parametrize("order", [("k", "other"), ("other", "k")])
def test_a_key_waits_for_the_kind_of_its_first_job(
    connect: Connect, order: tuple[str, str]
) -> None:
    connection = connect()
    for n in range(8):
        first, second = (f"{kind}{n}" for kind in order)
        for kind in (first, second):
            connection.execute("select jobq.put_kind(%s, max_running => 1)", [kind])
            connection.execute("select jobq.enqueue(%s, queue => 'busy')", [kind])
        running: dict[str, Any] = dict(
            connection.execute("select kind, job_id from jobq.claim('{busy}', 'w', 5)").fetchall()
        )
        for kind in (first, second):
            connection.execute(
                "select jobq.enqueue(%s, queue => %s, concurrency_key => 'a')", [kind, f"q{n}"]
            )
        assert claim(connection, 5, f"q{n}") == []
        connection.execute("select jobq.complete(%s, 1)", [running[first]])
        assert len(claim(connection, 5, f"q{n}")) == 1


@pytest.mark.parametrize(
    "declare", ["put_kind('k', max_running", "put_queue('default', max_running"]
)
def test_a_job_that_is_given_back_while_a_limit_is_put_counts_no_more(
    connect: Connect, declare: str
) -> None:
    connection, worker = connect(), connect()
    fill(connection, 1, keys=1)
    [[job, attempt]] = claim(connection, 1)
    with worker.transaction():
        worker.execute("select jobq.release(%s, %s)", [job, attempt])
        connection.execute(f"select jobq.{declare} => 1)".encode())
    until(lambda: claim(connection, 1), "the job starts again")


def test_a_job_whose_kind_may_start_no_more_of_its_key_holds_up_no_other_kind(
    connect: Connect,
) -> None:
    connection = connect()
    connection.execute("select jobq.put_kind('k', key_max_running => 1)")
    for queue, kind in (("default", "k"), ("second", "k"), ("second", "other")):
        connection.execute(
            "select jobq.enqueue(%s, queue => %s, concurrency_key => 'a')", [kind, queue]
        )
    assert len(claim(connection, 5)) == 1
    assert len(claim(connection, 5, "second")) == 1
    assert claim(connection, 5, "second") == []


def test_a_rate_counts_from_when_a_job_was_started_by_hand(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', rate_limit => 1, key_rate_limit => 1)")
    fill(connection, 3, keys=1)
    start_by_hand(connection)
    [[is_late]] = connection.execute(
        "select bool_and(g.charged_at >= j.claimed_at)"
        " from jobq_private.limit_state as g, jobq_private.job as j where j.claimed_at is not null"
    )
    assert is_late


def test_the_end_of_a_job_wakes_its_queue_while_a_claim_has_keys_wait_for_its_kind(
    connect: Connect,
) -> None:
    one, other = connect(), connect()
    one.execute("select jobq.put_kind('k', max_running => 1)")
    fill(one, 2, keys=2)
    [held] = claim(one, 5)
    one.execute("update jobq_private.waiting_key set state = 'open', full_kind = null")
    with one.transaction(), other.transaction():
        assert claim(one, 5) == []
        other.execute("select jobq.complete(%s, %s)", held)
        [[locks]] = other.execute(
            "select count(*) from pg_locks"
            " where pid = pg_backend_pid() and classid = jobq_private.lock_class('producing')"
        )
        assert locks > 0


def test_keys_that_wait_for_their_kind_take_turns_and_priority_goes_first(
    connect: Connect,
) -> None:
    one = connect()
    one.execute("select jobq.put_kind('k', max_running => 1)")
    fill(one, 12, keys=4)
    one.execute(
        "select jobq.enqueue('k', concurrency_key => 'urgent ' || n, priority => 5)"
        " from generate_series(1, 3) as n"
    )
    keys = []
    for _ in range(15):
        [job] = claim(one, 1)
        assert claim(one, 9) == []  # all keys wait now
        [[key]] = one.execute("select concurrency_key from jobq.get_job(%s)", [job[0]])
        keys.append(key)
        one.execute("select jobq.complete(%s, %s)", job)
    assert all(key.startswith("urgent") for key in keys[:3])
    for turn in (keys[3:7], keys[7:11], keys[11:]):
        assert len(set(turn)) == 4
