"""Schedules under concurrency and crashes: each slot once, whoever ticks, dies or updates."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner

from jobq import Client
from jobq.errors import InvalidArgument
from jobq_cli import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

PATIENCE = 60.0
"""Seconds until something that must happen is called missing."""

# A process that ticks in transactions of its own until nothing is due; each goes on when
# it is told so, or at once.
TICKER = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    print("ready", flush=True)
    waits = sys.stdin.readline() == "and wait\\n"
    while connection.execute("select count(*) from jobq_internal.tick(40)").fetchone()[0]:
        print("ticked", flush=True)
        if waits:
            sys.stdin.readline()
        connection.commit()
"""


def value(connection: Connection, query: str, *arguments: object) -> Any:
    """Return the only column of the first row, None without rows."""
    row = connection.execute(query, arguments).fetchone()
    return None if row is None else row[0]


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Return as soon as a condition holds; fail when it does not come to hold."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)


def make_due(connection: Connection, hours: int) -> None:
    """Set every schedule as if nobody had ticked for so many hours, until its end."""
    connection.execute(
        "update jobq_private.schedule set next_run_at ="
        " date_trunc('hour', ends_at) - %s * interval '1 hour' where status = 'active'",
        [hours],
    )


def create_hourly(connection: Connection, schedules: int) -> None:
    """Create so many schedules that fire every hour, and end with the present one."""
    connection.execute(
        "select jobq.create_schedule('s' || n, 'k' || n %% 7, '0 * * * *',"
        " ends_at => date_trunc('hour', now()) + interval '1 min')"
        " from generate_series(1, %s) as n",
        [schedules],
    )


@pytest.fixture
def tickers(database: str) -> Iterator[list[subprocess.Popen[str]]]:
    """Eight processes that are ready to tick."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TICKER, database],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    try:
        assert all(said(process) == "ready" for process in processes)
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def tell(process: subprocess.Popen[str], line: str) -> None:
    """Write a line to a process."""
    assert process.stdin
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line of a process, empty when it has ended."""
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.long
def test_eight_tickers_of_whom_three_are_killed_fire_each_slot_once(
    connect: Connect, tickers: list[subprocess.Popen[str]]
) -> None:
    connection = connect()
    create_hourly(connection, 400)
    make_due(connection, 4)
    victims, survivors = tickers[:3], tickers[3:]
    for process in victims:
        tell(process, "and wait")
        assert said(process) == "ticked"
    for process in survivors:
        tell(process, "go on")
    assert said(survivors[0]) == "ticked"
    for process in victims:
        process.kill()
    assert [process.wait(PATIENCE) for process in survivors] == [0] * 5
    assert [process.wait(PATIENCE) for process in victims] == [-9] * 3

    # what a killed ticker held when the others found nothing more is due again
    eventually(lambda: value(connection, COUNT_TICKING) == 0, "a killed session lives on")
    connection.execute("select jobq_internal.tick(10000)")
    slots = connection.execute("select schedule_id, slot_at, job_id from jobq.job").fetchall()
    assert len(slots) == 2000
    assert len({slot[:2] for slot in slots}) == 2000, "a slot has fired twice"
    assert set(Counter(slot[1] for slot in slots).values()) == {400}
    assert value(connection, "select count(*) from jobq_internal.tick()") == 0


COUNT_TICKING = (
    "select count(*) from pg_stat_activity"
    " where query like '%%jobq_internal.tick%%' and pid <> pg_backend_pid()"
)


@pytest.mark.oldest_version
def test_what_a_killed_ticker_had_taken_fires_again_and_nobody_waited_for_it(
    connect: Connect, database: str
) -> None:
    connection = connect()
    create_hourly(connection, 100)
    make_due(connection, 0)
    script = (
        "import sys, psycopg\n"
        "c = psycopg.connect(sys.argv[1])\n"
        "ticked = c.execute('select count(*) from jobq_internal.tick(30)').fetchone()[0]\n"
        "print(ticked, flush=True)\n"
        "sys.stdin.readline()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, database],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert said(process) == "30"
        connection.execute("set lock_timeout = '1s'")
        assert value(connection, "select count(*) from jobq_internal.tick()") == 70
        assert value(connection, "select count(*) from jobq_internal.tick()") == 0
    finally:
        process.kill()
        process.communicate()
    # The server may notice the kill while a tick reads the schedules, which then takes a part.
    rest = 30

    def ticked() -> bool:
        nonlocal rest
        rest -= int(value(connection, "select count(*) from jobq_internal.tick()"))
        return rest <= 0

    eventually(ticked, "what the killed ticker had taken is not due again")
    assert rest == 0
    assert value(connection, "select count(distinct schedule_id) from jobq.job") == 100


def test_a_rolled_back_tick_has_fired_nothing(connect: Connect) -> None:
    connection = connect()
    create_hourly(connection, 3)
    make_due(connection, 0)
    with connection.transaction(force_rollback=True):
        assert value(connection, "select count(*) from jobq_internal.tick()") == 3
    assert value(connection, "select count(*) from jobq.job") == 0
    assert value(connection, "select count(*) from jobq_internal.tick()") == 3


# Versions


@pytest.mark.oldest_version
def test_sixteen_deployments_that_declare_the_same_make_one_version(connect: Connect) -> None:
    barrier = Barrier(16)

    def declare(connection: Connection) -> Any:
        barrier.wait(PATIENCE)
        return value(connection, "select jobq.create_schedule('nightly', 'k', '@daily')")

    with ThreadPoolExecutor(16) as pool:
        ids = set(pool.map(declare, [connect() for _ in range(16)]))
    assert len(ids) == 1
    assert value(connect(), "select count(*) from jobq.schedule") == 1


def test_deployments_that_differ_make_one_history(connect: Connect) -> None:
    barrier = Barrier(12)

    def declare(given: tuple[int, Connection]) -> Any:
        number, connection = given
        barrier.wait(PATIENCE)
        query = "select jobq.create_schedule('nightly', 'k', '@daily', priority => %s)"
        return value(connection, query, number)

    with ThreadPoolExecutor(12) as pool:
        ids = list(pool.map(declare, [(n, connect()) for n in range(12)]))
    versions = (
        connect()
        .execute(
            "select version, schedule_id, previous_version_id, replaced_by_id, status"
            " from jobq.schedule order by version"
        )
        .fetchall()
    )
    assert [row[0] for row in versions] == list(range(1, 13))
    assert {row[1] for row in versions} == set(ids)
    assert [row[2] for row in versions] == [None, *(row[1] for row in versions[:-1])]
    assert [row[3] for row in versions] == [*(row[1] for row in versions[1:]), None]
    assert [row[4] for row in versions] == ["retired"] * 11 + ["active"]


@pytest.mark.oldest_version
def test_ticks_and_updates_that_race_neither_lose_a_slot_nor_fire_it_twice(
    connect: Connect,
) -> None:
    connection = connect()
    create_hourly(connection, 5)
    make_due(connection, 99)
    barrier = Barrier(5)

    def tick(connection: Connection) -> None:
        barrier.wait(PATIENCE)
        while value(connection, "select count(*) from jobq_internal.tick(20)"):
            pass

    def update(connection: Connection, first: int) -> None:
        barrier.wait(PATIENCE)
        for number in range(first, first + 30):
            for schedule in range(1, 6):
                connection.execute(
                    "select jobq.update_schedule(%s, jsonb_build_object('priority', %s::int))",
                    [f"s{schedule}", number],
                )

    with ThreadPoolExecutor(5) as pool:
        tasks = [pool.submit(tick, connect()) for _ in range(3)]
        tasks += [pool.submit(update, connect(), first) for first in (0, 100)]
        for task in tasks:
            task.result(PATIENCE)
    connection.execute("select jobq_internal.tick(10000)")
    fired = connection.execute(
        "select s.name, j.slot_at from jobq.job as j join jobq.schedule as s using (schedule_id)"
    ).fetchall()
    assert len(fired) == len(set(fired)) == 500
    assert set(Counter(name for name, _ in fired).values()) == {100}
    assert value(connection, "select max(version) from jobq.schedule") == 61


def test_an_update_waits_for_a_tick_and_a_tick_passes_an_update_by(connect: Connect) -> None:
    ticker, updater, watcher = connect(), connect(), connect()
    ticker.isolation_level = updater.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    create_hourly(ticker, 2)
    make_due(ticker, 1)
    update = "select jobq.update_schedule('s1', '{\"priority\": 9}')"
    with ThreadPoolExecutor(1) as pool:
        with ticker.transaction():
            assert value(ticker, "select count(*) from jobq_internal.tick(2)") == 2
            future = pool.submit(value, updater, update)
            eventually(
                lambda: (
                    value(
                        watcher,
                        "select wait_event_type from pg_stat_activity where pid = %s",
                        updater.info.backend_pid,
                    )
                    == "Lock"
                ),
                "the update does not wait",
            )
        new = future.result(PATIENCE)
    query = "select last_tick_at < next_run_at from jobq.schedule where schedule_id = %s"
    assert value(watcher, query, new) is True
    with updater.transaction():
        updater.execute("select jobq.update_schedule('s1', '{\"priority\": 10}')")
        ticker.execute("set lock_timeout = '1s'")
        assert value(ticker, "select count(*) from jobq_internal.tick()") == 1, "only the other one"
    assert value(ticker, "select count(*) from jobq_internal.tick()") == 1


# Calendar, end to end


@pytest.mark.oldest_version
@pytest.mark.parametrize(
    ("cron", "day", "fired"),
    [
        ("30 2 * * *", "2025-03-09", ["07:00"]),
        ("30 1 * * *", "2025-11-02", ["05:30"]),
        ("*/30 1 * * *", "2025-11-02", ["05:00", "05:30", "06:00", "06:30"]),
        ("0 */2 * * *", "2025-03-09", [f"{h:02}:00" for h in (5, 8, *range(10, 28, 2))]),
    ],
)
def test_a_schedule_fires_right_on_a_day_when_the_clocks_change(
    connect: Connect, cron: str, day: str, fired: list[str]
) -> None:
    connection = connect()
    connection.execute(
        "select jobq.create_schedule('s', 'k', %(cron)s, time_zone => 'America/New_York',"
        " starts_at => %(day)s::timestamp at time zone 'America/New_York',"
        " ends_at => (%(day)s::timestamp + '1 day') at time zone 'America/New_York')",
        {"cron": cron, "day": day},
    )
    assert value(connection, "select next_run_at from jobq_internal.get_schedule('s')") is None, (
        "it is over"
    )
    connection.execute(
        "update jobq_private.schedule set next_run_at ="
        " jobq.next_tick(cron, time_zone, starts_at - interval '1 us')"
    )
    while connection.execute("select from jobq_internal.tick(3)").fetchall():
        pass
    claimed = connection.execute(
        "select job_id, attempt, run_at from jobq.claim('{default}', 'w', 100)"
    ).fetchall()
    midnight = datetime.fromisoformat(day).replace(tzinfo=UTC)
    times = [run_at - midnight for _, _, run_at in claimed]
    assert [f"{t.total_seconds() // 3600:02.0f}:{t.seconds // 60 % 60:02}" for t in times] == fired
    for job_id, attempt, _ in claimed:
        assert value(connection, "select jobq.complete(%s, %s)", job_id, attempt)
    status = value(connection, "select jobq_internal.schedule_status('s')")
    assert status["stats"]["last_24h"]["succeeded"] == len(fired)
    assert status["health"] == "HEALTHY"


# Wake-ups, keys, retention


def test_a_tick_wakes_a_worker_that_sleeps(connect: Connect) -> None:
    worker, ticker = connect(), connect()
    create_hourly(ticker, 2)
    make_due(ticker, 0)
    worker.execute("listen jobq")
    assert value(worker, "select jobq.begin_wait('{default}')") is True
    assert value(ticker, "select affected from jobq.maintain() where task = 'ticked'") == 2
    assert [n.payload for n in worker.notifies(timeout=PATIENCE, stop_after=1)] == ["default"]


def test_a_slot_does_not_fire_again_when_everything_about_it_is_forgotten(
    connect: Connect,
) -> None:
    connection = connect()
    create_hourly(connection, 1)
    make_due(connection, 0)
    assert value(connection, "select count(*) from jobq_internal.tick()") == 1
    connection.execute("delete from jobq_private.job")
    connection.execute("delete from jobq_private.idempotency_key")
    with pytest.raises(psycopg.errors.CheckViolation):
        make_due(connection, 0)
    assert value(connection, "select count(*) from jobq_internal.tick()") == 0


@pytest.mark.oldest_version
def test_a_tick_does_not_take_the_next_job_of_another_tick_for_an_ended_one(
    connect: Connect,
) -> None:
    late, ticker, watcher = connect(), connect(), connect()
    late.isolation_level = ticker.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    ticker.execute(
        "select jobq.create_schedule('after', 'k', every => '1 s', from_completion => true)"
    )
    ticker.execute("update jobq_private.schedule set next_run_at = now() - interval '1 hour'")
    first = value(ticker, "select job_id from jobq_internal.tick()")
    ticker.execute("select from jobq.claim_job(%s, 'w')", [first])
    ticker.execute("select jobq.complete(%s, 1)", [first])
    # Makes the late tick wait while it searches: it has its snapshot, and no lock yet.
    ticker.execute("select pg_advisory_lock(42)")
    ticker.execute("""
        create function public.waits() returns boolean language sql volatile
        as 'select pg_advisory_xact_lock_shared(42) is not null';
        alter table jobq_private.schedule enable row level security, force row level security;
        create policy everyone on jobq_private.schedule using (true);
        create policy slow on jobq_private.schedule as restrictive using (public.waits())
    """)
    waiting = "select wait_event_type from pg_stat_activity where pid = %s"
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(value, late, "select count(*) from jobq_internal.tick()")
        eventually(
            lambda: value(watcher, waiting, late.info.backend_pid) == "Lock",
            "the late tick does not wait",
        )
        eventually(
            lambda: value(ticker, "select count(*) from jobq_internal.tick()") == 1,
            "the next job is not due",
        )
        ticker.execute("select pg_advisory_unlock(42)")
        assert future.result(PATIENCE) == 0
    query = """
        select next_run_at is null and awaited_job_id = (
            select job_id from jobq_private.job where state = 'queued'
        ) from jobq_private.schedule
    """
    assert value(watcher, query) is True


def test_a_tick_does_not_wait_for_a_producer_of_the_same_kind(connect: Connect) -> None:
    producer, ticker = connect(), connect()
    create_hourly(ticker, 7)
    make_due(ticker, 0)
    with producer.transaction():
        producer.execute("select jobq.enqueue('k' || n) from generate_series(0, 6) as n")
        ticker.execute("set lock_timeout = '1s'")
        assert value(ticker, "select count(*) from jobq_internal.tick()") == 7


def test_overlap_is_ruled_across_ticks_while_a_job_lives(connect: Connect) -> None:
    connection = connect()
    connection.execute(
        "select jobq.create_schedule(d, 'k', '0 * * * *', dedup => d,"
        " ends_at => date_trunc('hour', now()) + interval '1 min')"
        " from unnest(array['skip', 'enqueue', 'replace']) as d"
    )
    make_due(connection, 3)
    by_name = (
        "select name, created from jobq_internal.tick(3) join jobq.schedule using (schedule_id)"
    )
    assert dict(connection.execute(by_name).fetchall()) == {
        "skip": True,
        "enqueue": True,
        "replace": True,
    }
    jobs = connection.execute("select job_id, attempt from jobq.claim('{default}', 'w', 3)")
    running = jobs.fetchall()
    assert dict(connection.execute(by_name).fetchall()) == {
        "skip": False,
        "enqueue": True,
        "replace": False,
    }, "a running job is neither doubled nor replaced"
    for job_id, attempt in running:
        connection.execute("select jobq.complete(%s, %s)", [job_id, attempt])
    assert dict(connection.execute(by_name).fetchall()) == {
        "skip": True,
        "enqueue": True,
        "replace": True,
    }


# ---- backfill


def test_a_slot_is_backfilled_once_by_whoever_comes(database: str, connect: Connect) -> None:
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 8, tzinfo=UTC)
    with Client(database) as client:
        client.create_schedule("nightly", "report", "0 3 * * *")
        first, second = connect(), connect()
        first.execute("begin")
        made = Client(first).backfill_schedule("nightly", since, until)
        with ThreadPoolExecutor() as threads:
            late = threads.submit(Client(second).backfill_schedule, "nightly", since, until)
            waiting = "select true from pg_locks where not granted and pid = %s"
            pid = second.info.backend_pid
            eventually(lambda: value(first, waiting, pid) is True, "the second waits")
            first.execute("commit")
            assert late.result(PATIENCE) == []
        assert [slot.slot_at.day for slot in made] == [1, 2, 3, 4, 5, 6, 7]
        assert {client.get(str(slot.job_id)).schedule_id for slot in made} == {
            client.get_schedule("nightly").schedule_id
        }
        with pytest.raises(InvalidArgument):
            client.backfill_schedule("nightly", since, until, max_slots=6)


def test_the_command_backfills(database: str) -> None:
    with Client(database) as client:
        client.create_schedule("nightly", "report", "0 3 * * *")
    at = ["schedules", "--database", database, "backfill", "nightly", "--since", "2026-01-01"]
    at += ["--until", "2026-01-03", "--json"]
    for options, has_jobs in ((["--dry-run"], False), (["--reason", "outage"], True)):
        lines = CliRunner().invoke(main, [*at, *options]).stdout.splitlines()
        slots = [json.loads(line) for line in lines]
        assert [slot["job_id"] is not None for slot in slots] == [has_jobs] * 2
    refused = CliRunner().invoke(main, [*at, "--limit", "1"])
    assert refused.exit_code == 1
    assert "INVALID_ARGUMENT" in refused.stderr
