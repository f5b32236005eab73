"""What waits is found from the rows, and a changed limit stops nobody else.

Each test takes away what tells the next claim: a row of waiting_key, or the state of a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]


def claim(connection: Connection, jobs: int = 10, queue: str = "default") -> list[Any]:
    rows = connection.execute(
        "select job_id from jobq.claim(array[%s], 'w', %s)", [queue, jobs]
    ).fetchall()
    return [job_id for [job_id] in rows]


def enqueue(connection: Connection, key: str | None = "a", queue: str = "default") -> Any:
    [[job]] = connection.execute("select jobq.enqueue('k', queue => %s, concurrency_key => %s)", [
        queue, key,
    ]).fetchall()  # fmt: skip
    return job


def maintain(connection: Connection) -> None:
    for task, affected in connection.execute("select task, affected from jobq.maintain()"):
        assert affected is not None, task


@pytest.mark.parametrize("declare", ["put_queue('default'", "put_kind('k'"])
def test_a_blocked_job_of_a_key_that_is_released_by_hand_is_claimed(
    connect: Connect, declare: str
) -> None:
    connection = connect()
    connection.execute(f"select jobq.{declare}, key_max_running => 1)".encode())
    parent = enqueue(connection, None)
    [[child]] = connection.execute(
        "select jobq.enqueue('k', concurrency_key => 'a', after => array[%s::uuid])", [parent]
    ).fetchall()
    assert claim(connection) == [parent]
    assert claim(connection) == []
    connection.execute("update jobq.job set state = 'queued' where job_id = %s", [child])
    maintain(connection)
    assert claim(connection) == [child]


@pytest.mark.parametrize(
    "lose",
    [
        "delete from jobq_private.waiting_key",
        "truncate jobq_private.waiting_key, jobq_private.limit_state",
    ],
)
def test_jobs_whose_keys_a_restore_has_lost_are_claimed_within_their_limits(
    connect: Connect, lose: str
) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', key_max_running => 2)")
    connection.execute("select jobq.put_kind('k', max_running => 3)")
    for key in "aaab":
        enqueue(connection, key)
    enqueue(connection, None)
    connection.execute(lose.encode())
    maintain(connection)
    assert len(claim(connection)) == 3
    assert claim(connection) == []
    [[most]] = connection.execute(
        "select max(n) from (select count(*) as n from jobq_private.job"
        " where state = 'running' and concurrency_key is not null group by concurrency_key) as r"
    ).fetchall()
    assert most <= 2


def test_a_job_that_raw_sql_has_due_earlier_is_claimed(connect: Connect) -> None:
    connection = connect()
    [[job]] = connection.execute(
        "select jobq.enqueue('k', concurrency_key => 'a', run_at => now() + interval '1 day')"
    ).fetchall()
    assert claim(connection) == []
    connection.execute("update jobq_private.job set run_at = now() where job_id = %s", [job])
    maintain(connection)
    assert claim(connection) == [job]


def test_more_keys_than_one_call_looks_at_are_found(connect: Connect) -> None:
    connection = connect()
    connection.execute(
        "select jobq.enqueue('k', concurrency_key => n::text) from generate_series(1, 2500) as n"
    )
    connection.execute("delete from jobq_private.waiting_key")
    for _ in range(3):
        maintain(connection)
    claimed = 0
    while jobs := claim(connection, 500):
        claimed += len(jobs)
    assert claimed == 2500


def test_a_new_session_for_each_call_looks_at_all_keys(connect: Connect) -> None:
    connection = connect()
    connection.execute(
        "select jobq.enqueue('k', concurrency_key => n::text) from generate_series(1, 2500) as n"
    )
    connection.execute(
        "delete from jobq_private.waiting_key"
        " where key_id = (select key_id from jobq_private.waiting_key order by key_id desc limit 1)"
    )
    for _ in range(3):
        maintain(connect())
    assert connection.execute("select count(*) from jobq_private.waiting_key").fetchone() == (2500,)


@pytest.mark.parametrize(
    "change",
    [
        "put_kind('other', max_running => 5)",
        "put_kind('k', key_max_running => 500)",
        "put_queue('q1', max_running => 5)",
        "put_limit('q1', 'a', 5)",
    ],
)
@pytest.mark.parametrize("level", [*psycopg.IsolationLevel][1:])
def test_an_open_claim_and_a_changed_limit_stop_no_claim(
    connect: Connect, change: str, level: psycopg.IsolationLevel
) -> None:
    one, other, third = connect(), connect(), connect()
    other.execute("set lock_timeout = '10 s'")
    third.execute("set lock_timeout = '10 s'")
    for n in range(20):
        enqueue(one, None, f"q{n}")
        enqueue(one, "a", f"q{n}")
    enqueue(one, None, "q1")
    one.isolation_level = level
    with one.transaction():
        assert len(claim(one, 1, "q1")) == 1
        other.execute(f"select jobq.{change}".encode())  # waits for nobody
        with other.transaction():
            other.execute(f"select jobq.{change.replace('5', '6')}".encode())
            assert claim(third, 1, "q2") != []  # nor does a claim wait for the change
        for n in range(3, 20):
            assert len(claim(third, 2, f"q{n}")) == 2
        assert len(claim(third, 1, "q1")) == 1


@pytest.mark.parametrize(
    "limit",
    [
        "put_kind('k', max_running => {})",
        "put_kind('k', rate_limit => {}, rate_period => '1 s')",
        "put_kind('k', key_max_running => {})",
        "put_queue('default', max_running => {})",
        "put_queue('default', rate_limit => {}, rate_period => '1 s')",
        "put_queue('default', key_max_running => {})",
        "put_limit('default', 'a', {})",
        "put_budget('queue', 'default', {})",
        "put_budget('queue', 'default', {}, concurrency_key => 'a')",
    ],
)
def test_a_limit_that_an_open_claim_has_passed_can_be_changed(connect: Connect, limit: str) -> None:
    one, other = connect(), connect()
    other.execute("set lock_timeout = '1 s'")
    one.execute(f"select jobq.{limit.format(50)}".encode())
    enqueue(one)
    with one.transaction():
        assert len(claim(one)) == 1
        for n in (60, 50):
            other.execute(f"select jobq.{limit.format(n)}".encode())


@pytest.mark.parametrize("key", ["a", None])
@pytest.mark.parametrize(
    "change",
    ["put_queue('default', max_running => 1)", "put_kind('k', max_running => 1)"],
)
def test_what_an_open_claim_has_started_by_the_old_limits_counts_once_it_commits(
    connect: Connect, change: str, key: str | None
) -> None:
    one, other = connect(), connect()
    for _ in range(3):
        enqueue(one, key)
    with one.transaction():
        [job] = claim(one, 1)
        other.execute(f"select jobq.{change}".encode())
    assert claim(other) == []
    one.execute("select jobq.complete(%s, 1)", [job])
    maintain(other)
    assert len([*claim(other), *claim(other)]) == 1  # the first has jobs wait for their kind
    assert claim(other) == []


def test_a_limit_that_is_put_twice_is_forgotten_as_new_once_all_counts(connect: Connect) -> None:
    connection = connect()
    enqueue(connection)
    assert len(claim(connection)) == 1
    connection.execute("select jobq.put_queue('default', key_max_running => 1)")
    maintain(connection)
    connection.execute("update jobq_private.limit_change set changed_at = now() - interval '1 h'")
    maintain(connection)
    assert not connection.execute(
        "select from jobq_private.limit_change where change_id > 1"
    ).fetchall()
    enqueue(connection)
    assert claim(connection) == []


def test_a_job_of_a_new_key_is_next_after_many_single_enqueues_of_another(
    connect: Connect,
) -> None:
    connection = connect()
    connection.execute(
        "select jobq.enqueue('k', concurrency_key => 'a') from generate_series(1, 3000)"
    )
    for _ in range(5):  # in transactions of their own
        enqueue(connection)
    new = enqueue(connection, "b")
    assert new in claim(connection, 2)


@pytest.mark.parametrize(
    "remove",
    [
        "select jobq.delete_many(array[%s::uuid])",
        "delete from jobq_private.job_archive where job_id = %s",
    ],
)
@pytest.mark.parametrize("declare", ["put_queue('default'", "put_kind('k'"])
def test_an_ordered_key_goes_on_when_its_dead_job_is_removed(
    connect: Connect, declare: str, remove: str
) -> None:
    connection = connect()
    connection.execute(f"select jobq.{declare}, ordered => true, on_dead => 'hold')".encode())
    first, second = enqueue(connection), enqueue(connection)
    assert claim(connection) == [first]
    connection.execute("select jobq.fail(%s, 1, 'e', retryable => false)", [first])
    assert claim(connection) == []
    maintain(connection)
    assert claim(connection) == []
    connection.execute(remove.encode(), [first])
    maintain(connection)
    assert claim(connection) == [second]


def test_a_kind_without_a_key_that_was_rate_limited_waits_in_its_queue(connect: Connect) -> None:
    connection = connect()
    first = enqueue(connection, None)
    enqueue(connection, None), enqueue(connection, None, "other")
    connection.execute("select jobq.enqueue('another')")
    assert claim(connection, 1) == [first]
    connection.execute("select jobq.rate_limited(%s, 1, '1 h', 'status 429')", [first])
    assert len([*claim(connection), *claim(connection)]) == 1
    assert len(claim(connection, 5, "other")) == 1
    connection.execute("update jobq_private.limit_hold set held_until = now()")
    connection.execute("update jobq_private.waiting_key set open_at = least(open_at, now())")
    assert len([*claim(connection), *claim(connection)]) == 2


@pytest.mark.parametrize("jobs", [300, 6000])
@pytest.mark.parametrize("why", ["a hold", "a limit"])
def test_jobs_that_a_hold_or_a_limit_moves_hold_up_no_job_behind_them(
    connect: Connect, why: str, jobs: int
) -> None:
    connection = connect()
    first = enqueue(connection, None)
    connection.execute("select jobq.enqueue('k') from generate_series(1, %s)", [jobs])
    connection.execute("select jobq.enqueue('low', priority => -5)")
    [[behind]] = connection.execute("select jobq.enqueue('another')")
    assert claim(connection, 1) == [first]
    if why == "a hold":
        connection.execute("select jobq.rate_limited(%s, 1, '1 h', 'status 429', false)", [first])
    else:
        connection.execute("select jobq.put_kind('k', max_running => 1)")
    claims = [claim(connection, 1) for _ in range(1 if jobs == 300 else 2)]
    assert claims[-1] == [behind]
    assert not any(claims[:-1])


def test_a_function_whose_job_does_not_fit_into_a_budget_holds_up_no_call(
    connect: Connect,
) -> None:
    connection = connect()
    connection.execute(
        "create function public.done(payload jsonb) returns jsonb language sql return payload"
    )
    connection.execute("select jobq.put_kind('run', run => 'public.done')")
    connection.execute("select jobq.put_budget('queue', 'default', 5)")
    connection.execute("select jobq.enqueue('run', cost => 10)")
    connection.execute("set statement_timeout = '20 s'")
    assert connection.execute("select from jobq.work('{default}')").rowcount == 0


@pytest.mark.parametrize("is_before", [False, True])
def test_a_hold_by_an_operator_outlasts_the_dead_job(connect: Connect, is_before: bool) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', ordered => true, on_dead => 'hold')")
    first, _ = enqueue(connection), enqueue(connection)
    assert claim(connection) == [first]
    steps = [
        "select jobq.fail(job_id, 1, 'e', retryable => false) from jobq.job"
        " where state = 'running'",
        "select jobq.hold_key('default', 'a', 'infinity', 'stop')",
    ]
    for step in steps[::-1] if is_before else steps:
        connection.execute(step.encode())
    connection.execute("select jobq.delete_many(array[%s::uuid])", [first])
    maintain(connection)
    assert claim(connection) == []


@pytest.mark.parametrize("declare", ["put_queue('default'", "put_kind('k'"])
def test_no_named_job_overtakes_in_an_ordered_key(connect: Connect, declare: str) -> None:
    connection = connect()
    connection.execute(f"select jobq.{declare}, ordered => true)".encode())
    first, second = enqueue(connection), enqueue(connection)
    by_name = "select job_id from jobq.claim_job(%s, 'w')"
    assert connection.execute(by_name, [second]).fetchall() == []
    [[explanation]] = connection.execute(
        "select string_agg(reason, ' ') from jobq.explain(%s)", [second]
    ).fetchall()
    assert "ordered_behind" in explanation
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("update jobq.job set state = 'running' where job_id = %s", [second])
    assert refused.value.sqlstate == "JQ011"
    assert connection.execute(by_name, [first]).fetchall() == [(first,)]


def test_jobs_that_wait_when_their_kind_gets_or_loses_a_limit_for_each_key_follow_it(
    connect: Connect,
) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', key_max_running => 2)")
    for _ in range(6):
        enqueue(connection)
    connection.execute("select jobq.put_kind('k', key_max_running => 1)")
    first = claim(connection)
    assert len([*first, *claim(connection)]) == 1
    connection.execute("select jobq.put_kind('k', key_max_running => 3)")
    assert len(claim(connection)) == 2
    connection.execute(
        "select jobq.complete_many(array_agg(job_id), array_agg(attempt))"
        " from jobq.job where state = 'running'"
    )
    connection.execute("select jobq.put_kind('k')")
    assert len([*claim(connection), *claim(connection)]) == 2


WHOLE_STAMP = (
    "worker = 'w', attempt = attempt + 1, previous_state = state,"
    " transition_slot = pg_backend_pid() & 1023,"
    " claimed_at = statement_timestamp(), lease_expires_at = statement_timestamp() + lease"
)
"""All that a claim writes."""


@pytest.mark.parametrize(
    "columns",
    [
        "slot = 2",
        "slot = null",
        "transition_slot = null",
        "attempt = 1, previous_state = 'queued'",
        WHOLE_STAMP,
        f"{WHOLE_STAMP}, slot = 2",
    ],
)
def test_the_owner_passes_no_limit_by_setting_a_column(connect: Connect, columns: str) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', key_max_running => 1)")
    enqueue(connection), enqueue(connection)
    assert len(claim(connection)) == 1
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(
            f"update jobq_private.job set state = 'running', {columns}"
            " where state = 'queued'".encode()
        )
    assert refused.value.sqlstate in {"JQ011", "JQ002"}


@pytest.mark.parametrize("until", ["20000-01-01", "4000-01-01 BC"])
def test_a_hold_ends_at_a_time_that_clients_can_read(connect: Connect, until: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connect().execute("select jobq.hold_key('default', 'a', %s)", [until])
    assert refused.value.sqlstate == "22023"


def test_a_job_that_expires_before_its_start_costs_its_queue_nothing(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_budget('queue', 'default', 2, 'month')")
    connection.execute(
        "select jobq.enqueue('k', expires_at => now() + interval '1 ms') from generate_series(1, 2)"
    )
    connection.execute("select pg_sleep(0.01)")
    lasting = enqueue(connection, None)
    assert [*claim(connection), *claim(connection)] == [lasting]
    [[spent]] = connection.execute("select spent from jobq_internal.list_budgets()").fetchall()
    assert spent == 1


def test_a_blocked_job_does_not_hold_up_the_parent_in_its_ordered_key(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('default', ordered => true)")
    parent = enqueue(connection)
    [[child]] = connection.execute(
        "select jobq.enqueue('k', concurrency_key => 'a', after => array[%s::uuid],"
        " after_failure => 'run')",
        [parent],
    ).fetchall()
    for job in (parent, child):
        assert claim(connection) == [job]
        connection.execute("select jobq.fail(%s, 1, 'x', retryable => false)", [job])
    connection.execute("select jobq.redrive_tree(%s, 'all')", [parent])
    assert claim(connection) == [parent]
    connection.execute("select jobq.complete(%s, 2)", [parent])
    assert claim(connection) == [child]
