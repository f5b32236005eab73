"""Plan guards: what a hot call reads does not grow with what else is stored.

Each call is explained on a small database and on a big one, whose statistics are fresh, or
from a time when it was empty, as they are in a queue that fills at once. EXPLAIN
counts the buffers of everything that a function does.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Connect = Callable[[], Connection]

PATIENCE = 60.0
"""Seconds until something that must happen is called missing."""
MANY = 4_000
SLACK = 200
"""Buffers for deeper indexes, and for pages of dead entries that nobody has vacuumed."""
PASSES = {"due_in": 2}
"""How often the dead entries are passed in a session that has not claimed: it has no hint, so it
finds the priorities in use first, and then what is due. A worker claims before it asks.
"""
AUTO_EXPLAIN = {
    "log_min_duration": 0,
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_level": "notice",
}
FILL = """
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object('kind', 'k', 'run_at', %s::timestamptz))
        from generate_series(1, %s)
    ))
"""
HELD = """
    select array_agg(job_id), array_agg(attempt)
    from (
        select job_id, attempt from jobq_private.job
        where state = 'running' order by job_id limit 100
    ) as j
"""
FETCHED = """
    select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::integer
    from pg_stat_xact_user_tables
    where schemaname = 'jobq_private' and relname = 'job'
"""
SCANNED = """
    select coalesce(sum(seq_tup_read), 0)::integer
    from pg_stat_xact_user_tables
    where schemaname = 'jobq_private' and relname = 'job'
"""
CALLS = {
    "claim": "jobq.claim('{default}', 'w', 100)",
    "exchange": "jobq.exchange('{default}', 'w', 100, %(ids)s, %(attempts)s)",
    "complete_many": "jobq.complete_many(%(ids)s, %(attempts)s)",
    "heartbeat": "jobq.heartbeat('w', %(ids)s, %(attempts)s)",
    "release_many": "jobq.release_many(%(ids)s, %(attempts)s)",
    "fail_many": """jobq.fail_many((
        select jsonb_agg(jsonb_build_object('job_id', i, 'attempt', 1, 'error', 'e'))
        from unnest(%(ids)s::uuid[]) as i
    ))""",
    "cancel": "jobq.cancel((%(ids)s::uuid[])[1])",
    "recover": "jobq_internal.recover(100)",
    "due_in": "jobq.due_in('{default}')",
    "enqueue": "jobq.enqueue('k')",
    "get_job": "jobq.get_job((%(ids)s::uuid[])[1])",
    "explain": "jobq.explain((%(ids)s::uuid[])[1])",
}


def fill(connection: Connection, jobs: int) -> None:
    """Store jobs due now, due tomorrow, running, and finished."""
    connection.execute("select jobq.put_kind('k', lease => '1 h')")
    for run_at in ("now", "tomorrow", "now"):
        connection.execute(FILL, [run_at, jobs])
    connection.execute("select jobq.claim('{default}', 'w', %s)", [jobs])
    connection.execute(
        f"""
        update jobq_private.job as j set state = 'succeeded'
        from ({HELD}) as h (ids, attempts)
        where j.state = 'running' and j.job_id <> all (h.ids)
        """
    )


def costs(connection: Connection) -> dict[str, tuple[int, int]]:
    """Return how many buffers, and how many whole tables, each call reads.

    Each is made twice, since the first marks dead index entries for those that follow.
    """
    [[ids, attempts]] = connection.execute(HELD)
    given = {"ids": ids, "attempts": attempts}
    return {
        name: [cost(connection, call, given) for _ in range(2)][1] for name, call in CALLS.items()
    }


def cost(connection: Connection, call: str, given: dict[str, Any]) -> tuple[int, int]:
    """Make a call, take it back, and return how many buffers and whole tables it has read."""
    tables = """
        select coalesce(sum(seq_scan), 0) from pg_stat_xact_user_tables
        where schemaname = 'jobq_private' and relname ~ '^(job|attempt)'
    """
    with connection.transaction(force_rollback=True):
        [[before]] = connection.execute(tables)
        read = buffers(connection, call, given)
        [[after]] = connection.execute(tables)
    return read, after - before


def buffers(connection: Connection, call: str, given: dict[str, Any]) -> int:
    """Make a call, and return how many buffers it has read."""
    explain = f"explain (analyze, buffers, timing off, format json) select * from {call}"
    [[[plan]]] = connection.execute(explain, given)
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def prepare(connection: Connection, statistics: str) -> None:
    """Make a big database whose statistics are as named."""
    connection.execute(
        "alter table jobq_private.job set (autovacuum_enabled = off);"
        "alter table jobq_private.job_archive_default set (autovacuum_enabled = off)"
    )
    if statistics == "of an empty table":
        connection.execute("vacuum analyze jobq_private.job")
    fill(connection, MANY)
    if statistics == "fresh":
        connection.execute("vacuum analyze jobq_private.job")


@pytest.mark.oldest_version(is_usual=True)
@pytest.mark.parametrize("statistics", ["fresh", "of an empty table"])
def test_a_hot_call_reads_what_it_is_about(connect: Connect, statistics: str) -> None:
    small = connect()
    fill(small, 200)
    expected = costs(small)
    small.execute("truncate jobq_private.job, jobq_private.job_archive")
    prepare(small, statistics)
    too_much = {
        name: f"{read} buffers, {scans} whole tables; on a small one {expected[name][0]} buffers"
        for name, (read, scans) in costs(connect()).items()
        if scans or read > 1.5 * expected[name][0] + SLACK * PASSES.get(name, 1)
    }
    assert not too_much


SETTLE = {
    "fail_many": CALLS["fail_many"],
    "release_many": CALLS["release_many"],
    "heartbeat": CALLS["heartbeat"],
    "recover": "jobq_internal.recover(1000)",
}


def expire(connection: Connection, jobs: list[Any] | None = None) -> None:
    """Have the leases of jobs, or of all that run, lie a minute back."""
    connection.execute("set local session_replication_role = replica")
    connection.execute(
        "update jobq_private.job set lease_expires_at = now() - interval '1 min'"
        " where state = 'running' and (%(jobs)s::uuid[] is null or job_id = any(%(jobs)s))",
        {"jobs": jobs},
    )
    connection.execute("set local session_replication_role = origin")


@pytest.mark.oldest_version(is_usual=True)
@pytest.mark.parametrize("call", SETTLE.values(), ids=SETTLE)
def test_a_batch_fetches_its_own_jobs_after_an_untimely_analyze(
    connect: Connect, call: str
) -> None:
    """All were queued when the statistics were gathered, and run now."""
    connection = connect()
    connection.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
    connection.execute(FILL, ["now", MANY])
    connection.execute("analyze jobq_private.job")
    connection.execute("select jobq.claim('{default}', 'w', %s)", [MANY])
    [[ids, attempts]] = connection.execute(HELD.replace("100", "1000"))
    with connection.transaction(force_rollback=True):
        expire(connection, ids)
        [[before]] = connection.execute(FETCHED)
        query = f"select count(*) from {call}"
        assert connection.execute(query, {"ids": ids, "attempts": attempts}).fetchone() == (1000,)
        [[after]] = connection.execute(FETCHED)
    assert after - before < 8 * len(ids)


@pytest.mark.oldest_version(is_usual=True)
def test_a_claim_of_keys_reads_no_slots_of_others_after_an_untimely_analyze(
    connect: Connect,
) -> None:
    """No job ran when the statistics were gathered."""
    connection = connect()
    connection.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
    connection.execute("select jobq.put_queue('default', key_max_running => 1)")
    connection.execute(
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'k', 'concurrency_key', 'key ' || n))
            from generate_series(1, 1000) as n
        ))
        """
    )
    connection.execute("analyze jobq_private.job")
    for _ in range(18):
        connection.execute("select from jobq.claim('{default}', 'w', 50)")
    with connection.transaction():
        [[before]] = connection.execute(FETCHED)
        assert connection.execute("select from jobq.claim('{default}', 'w', 50)").rowcount == 50
        [[after]] = connection.execute(FETCHED)
    assert after - before < 100 * 50


@pytest.mark.oldest_version(is_usual=True)
def test_a_batch_with_keys_reads_no_other_jobs_by_plans_of_an_empty_queue(connect: Connect) -> None:
    """The plans were made while the queue was drained, and are kept while it fills."""
    connection = connect()
    connection.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
    connection.execute("select jobq.put_queue('default', max_depth => 1000000)")
    connection.execute("vacuum analyze jobq_private.job")

    def enqueue(name: str, jobs: int) -> None:
        keys: tuple[dict[str, str], ...] = (
            {}, {"idempotency_key": name}, {"dedup_key": name},
        )  # fmt: skip
        new = [
            {"kind": "k", **{option: f"{key}{n}" for option, key in keys[n % 3].items()}}
            for n in range(jobs)
        ]
        connection.execute("select count(*) from jobq.enqueue_many(%s)", [Jsonb(new)])

    for n in range(8):
        enqueue(f"drained {n}", 3)
    connection.execute(FILL, ["now", MANY])
    with connection.transaction():
        [[before]] = connection.execute(SCANNED)
        enqueue("full", 90)
        [[after]] = connection.execute(SCANNED)
    assert after == before


class Pinned:
    """A queue beside a snapshot that keeps the dead entries of the jobs claimed before."""

    def __init__(self, connect: Connect) -> None:
        self.worker = connect()
        self.worker.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
        for _ in range(3):
            self.worker.execute(FILL, ["now", MANY])
        self.holder = connect()
        self.holder.execute("begin isolation level repeatable read")
        self.holder.execute("select count(*) from jobq.job")

    def claim(self, jobs: int) -> list[str]:
        """Claim jobs, and return their kinds."""
        query = "select kind from jobq.claim('{default}', 'w', %s)"
        return [row[0] for row in self.worker.execute(query, [jobs])]

    def claim_buffers(self) -> int:
        """Claim ten jobs, and return how many buffers that has read."""
        return buffers(self.worker, "jobq.claim('{default}', 'w', 10)", {})


def test_beside_a_pinned_snapshot_claims_cost_as_before(connect: Connect) -> None:
    pinned = Pinned(connect)
    first = [pinned.claim_buffers() for _ in range(2)][1]
    for _ in range(20):
        pinned.claim(MANY // 10)
    later = min(pinned.claim_buffers() for _ in range(10) if pinned.claim(10))
    assert later < 2 * first


def test_beside_a_pinned_snapshot_an_urgent_job_comes_soon(connect: Connect) -> None:
    pinned = Pinned(connect)
    for jobs in (MANY, MANY, 1, 1, 1, 1):
        pinned.claim(jobs)
    pinned.worker.execute("select jobq.enqueue('urgent', priority => 9)")
    deadline = time.monotonic() + PATIENCE
    while pinned.claim(1) != ["urgent"]:
        assert time.monotonic() < deadline, "an urgent job waits while others are claimed"


def test_beside_a_pinned_snapshot_every_job_is_claimed(connect: Connect) -> None:
    pinned = Pinned(connect)
    late, claimed = 10, 0
    for n in itertools.count():
        found = len(pinned.claim(900))
        claimed += found
        if n < late:
            pinned.worker.execute("select jobq.enqueue('late', run_at => now() - interval '1 h')")
        elif not found:
            break
    assert claimed == 3 * MANY + late


@pytest.mark.oldest_version(is_usual=True)
def test_no_plan_that_avoids_a_scan_is_compiled(connect: Connect) -> None:
    """What cannot be avoided is priced so high, before PostgreSQL 18, that JIT would set in."""
    found = connect().execute(
        """
        select oid::regprocedure::text from pg_proc
        where pronamespace::regnamespace::text
            in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private')
        and proconfig::text like '%enable_%' and proconfig::text not like '%jit=off%'
        """
    )
    assert not found.fetchall()


@pytest.mark.parametrize(
    "name",
    [
        "jobq.enqueue",
        "jobq.claim",
        "jobq_private.archive_jobs",
        "jobq_private.settle_failures",
    ],
)
def test_a_hot_call_is_not_planned_anew(connect: Connect, name: str) -> None:
    """A plan for the arguments at hand costs several times what it saves."""
    found = connect().execute(
        "select 'plan_cache_mode=force_generic_plan' = any (proconfig) from pg_proc"
        " where oid = %s::regproc",
        [name],
    )
    assert found.fetchall() == [(True,)]


LOOKS = """
    select p.oid::regproc::text from pg_proc as p
    where p.pronamespace::regnamespace::text in ('jobq', 'jobq_http', 'jobq_internal')
    and p.provolatile = 's' and p.pronargs = p.pronargdefaults and p.proargmodes is null
    or p.oid::regproc::text in ('jobq.health', 'jobq.metrics', 'jobq.queue_stats')
    order by 1
"""


@pytest.mark.oldest_version(is_usual=True)
def test_no_look_is_compiled(connect: Connect) -> None:
    """A plan that seems dear would be compiled by PostgreSQL 15, for a second at each call."""
    connection = connect()
    if connection.execute("select pg_jit_available()").fetchone() != (True,):
        pytest.skip("this PostgreSQL compiles nothing")
    connection.execute("load 'auto_explain'")
    for option, value in AUTO_EXPLAIN.items():
        connection.execute(f"set auto_explain.{option} = {value}")
    plans: list[str] = []
    connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
    looks = [name for (name,) in connection.execute(LOOKS).fetchall()]
    assert {"jobq.settings", "jobq.health"} <= set(looks)
    plans.clear()
    compiled = []
    for name in looks:
        connection.execute(f"select count(*) from {name}()")
        if any("JIT:" in plan for plan in plans):
            compiled.append(name)
        plans.clear()
    assert not compiled


IN_SETS = {
    "fail": CALLS["fail_many"].replace("'e'", "'e', 'retryable', false"),
    "retry": CALLS["fail_many"],
    "recover": "jobq_internal.recover(100)",
    "redrive": "jobq.redrive_many(max_jobs => 100)",
    "cancel": "jobq.cancel_many(queue => 'default', max_jobs => 100)",
}
ONE_BY_ONE = """
    select coalesce(max(calls), 0)
    from pg_stat_xact_user_functions
    where funcname in (
        'archive_jobs', 'wake', 'audit_change', 'take_idempotency_keys'
    )
"""
NOTED = "select count(*), count(distinct job_id), min(state) from jobq_private.attempt"
OPTIONS: list[dict[str, str]] = [
    {},
    {"concurrency_key": "key"},
    {"idempotency_key": "key", "dedup_key": "key"},
]


@pytest.mark.parametrize("has_places", [False, True])
@pytest.mark.parametrize("name", IN_SETS)
def test_many_jobs_change_in_steps_and_not_one_by_one(
    connect: Connect, name: str, has_places: bool
) -> None:
    connection = connect()
    if has_places:
        connection.execute("select jobq.put_queue('default', max_running => 1000)")
    jobs = [
        {"kind": "k", **{option: f"{value}{n}" for option, value in OPTIONS[n % 3].items()}}
        for n in range(100)
    ]
    connection.execute("select from jobq.enqueue_many(%s)", [Jsonb(jobs)])
    if name != "cancel":
        connection.execute("select jobq.claim('{default}', 'w', 100)")
    [[ids, attempts]] = connection.execute(HELD)
    given = {"ids": ids, "attempts": attempts}
    if name == "redrive":
        connection.execute(f"select from {IN_SETS['fail']}", given)
    with connection.transaction():
        expire(connection)
        connection.execute("set local track_functions = 'all'")
        done = connection.execute(f"select count(*) from {IN_SETS[name]}", given).fetchone()
        assert done == (100,)
        [[calls]] = connection.execute(ONE_BY_ONE)
    # A job that stays live wakes a worker by its own trigger, as a raw update does, and once more
    # for the place that it frees, and for its key, which a third of them have.
    each = 1 + has_places + 1 / 3 if name in ("retry", "recover") else 0
    assert calls <= 2 + 100 * each
    expected = {"cancel": (0, 0, None), "fail": (100, 100, "dead"), "redrive": (100, 100, "dead")}
    assert connection.execute(NOTED).fetchone() == expected.get(name, (100, 100, "retrying"))


GROWING = IN_SETS | {
    "complete": CALLS["complete_many"],
    "release": CALLS["release_many"],
    "delete": "jobq.delete_many(job_ids => %(ids)s)",
    "enqueue": "jobq.enqueue_many(%(new)s)",
}
IN_JSON = {"log_format": "json", "log_timing": "off"}
THROUGH_A_LIST = re.compile(r"(ANY|ALL) \(\$\d")


@pytest.mark.oldest_version(is_usual=True)
def test_what_a_set_costs_grows_with_its_jobs_and_not_with_their_square(
    connect: Connect, pg: str
) -> None:
    """No row is compared with each job of a list; four times the jobs read four times the rows."""
    if pg != "15":
        pytest.skip("the wheels have no auto_explain")
    connection = connect()
    connection.execute("load 'auto_explain'")
    for name in GROWING:
        rows = []
        for jobs in (20, 80):
            nodes = [node for plan in plans_of(connection, name, jobs) for node in below(plan)]
            through = [
                node
                for node in nodes
                if THROUGH_A_LIST.search(f"{node.get('Filter')} {node.get('Join Filter')}")
                and rows_of(node) >= jobs / 2
            ]
            assert not through, name
            rows.append(sum(rows_of(node) for node in nodes))
        assert rows[1] <= 6 * rows[0], name


def plans_of(connection: Connection, name: str, jobs: int) -> list[dict[str, Any]]:
    """Return the plans of all statements of a call that changes so many jobs and no others."""
    connection.execute(
        "truncate jobq_private.job, jobq_private.job_archive, jobq_private.waiting_key"
    )
    connection.execute("truncate jobq_private.attempt, jobq_private.idempotency_key")
    new = [{"kind": "k", **{o: f"{v}{n}" for o, v in OPTIONS[n % 3].items()}} for n in range(jobs)]
    if name != "enqueue":
        connection.execute("select from jobq.enqueue_many(%s)", [Jsonb(new)])
    if name not in ("enqueue", "cancel", "delete"):
        connection.execute("select jobq.claim('{default}', 'w', %s)", [jobs])
    every = "select array_agg(job_id), array_agg(attempt) from jobq_private.job"
    [[ids, attempts]] = connection.execute(every)
    given = {"ids": ids, "attempts": attempts, "new": Jsonb(new)}
    if name == "redrive":
        connection.execute(f"select from {GROWING['fail']}", given)
    found: list[str] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        found.append(notice.message_primary or "")

    connection.add_notice_handler(note)
    with connection.transaction():
        expire(connection)
        found.clear()
        for option, value in (AUTO_EXPLAIN | IN_JSON).items():
            connection.execute(f"set local auto_explain.{option} = {value}")
        call = GROWING[name].replace("100", str(jobs))
        assert connection.execute(f"select count(*) from {call}", given).fetchone() == (jobs,)
        connection.execute("set local auto_explain.log_min_duration = -1")
    connection.remove_notice_handler(note)
    plans = [text[text.index("{") :] for text in found if "plan:" in text]
    return [json.loads(plan)["Plan"] for plan in plans]


def below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node of a plan and all under it."""
    yield node
    for child in node.get("Plans", ()):
        yield from below(child)


def rows_of(node: dict[str, Any]) -> float:
    """Return how many rows a node has looked at."""
    looked = sum(node.get(f"Rows Removed by {by}", 0) for by in ("Filter", "Join Filter"))
    return float((node.get("Actual Rows", 0) + looked) * node.get("Actual Loops", 0))


@pytest.mark.parametrize("end", ["min", "max"])
def test_what_is_ahead_of_a_job_is_counted_up_to_an_end(connect: Connect, end: str) -> None:
    connection = connect()
    connection.execute(FILL, ["now", MANY])
    connection.execute("vacuum analyze jobq_private.job")
    job = f"select {end}(job_id::text)::uuid from jobq_private.job"
    call = "jobq_private.jobs_ahead((select j from jobq_private.job as j where job_id = %s))"
    given = connection.execute(job).fetchone()
    most = {"min": 60, "max": 400}[end]
    plan = f"explain (analyze, buffers, timing off, format json) select {call}"
    reads = []
    for _ in range(2):
        [[[found]]] = connection.execute(plan, given)
        reads.append(found["Plan"]["Shared Hit Blocks"])
    assert reads[1] <= most


@pytest.mark.parametrize("call", ["jobq.metrics()", "jobq.queue_stats()"])
def test_statistics_read_a_part_of_a_long_queue(connect: Connect, call: str) -> None:
    connection = connect()
    reads = []
    for _ in range(2):
        connection.execute(FILL, ["now", MANY + 1000])
        connection.execute("vacuum analyze jobq_private.job")
        reads.append([cost(connection, call, {}) for _ in range(2)][1][0])
    assert reads[1] <= reads[0] + SLACK


OTHER_CALLS = """
    insert into jobq_private.edge (child, parent, after_failure, is_open)
    select jobq_private.new_id(0), jobq_private.new_id(0), a.after_failure, a.is_open
    from generate_series(1, {others})
    cross join (values ('call', false), ('cancel', true)) as a (after_failure, is_open);
    insert into jobq_private.step (job_id, name, value, attempt)
    select e.child, 'event:job_ended:' || e.parent, '1', 1
    from jobq_private.edge as e where e.is_open
    on conflict do nothing
"""
TEN = "array(select jsonb_array_elements_text(%(jobs)s)::uuid), array_fill(%(attempt)s, '{10}')"
PARTS_OF_A_CALL = {
    "call": f"jobq_internal.call_many({TEN}, %(calls)s)",
    "end": f"jobq.exchange('{{none}}', 'w', 0, {TEN})",
    "resolve": "jobq_private.resolve()",
    "steps": f"jobq_internal.read_steps({TEN})",
}


def costs_of_calls(connection: Connection) -> dict[str, int]:
    """Have ten jobs call another one each; return how many buffers each part reads."""
    read = dict.fromkeys(PARTS_OF_A_CALL, 0)

    def claim(kind: str) -> list[str]:
        query = "select job_id::text from jobq.claim('{default}', 'w', 10, kinds => %s)"
        return [job_id for [job_id] in connection.execute(query, [[kind]])]

    def run(part: str, jobs: list[str], attempt: int) -> None:
        calls = Jsonb([[{"name": "a", "kind": "called"}]] * 10)
        given = {"jobs": Jsonb(jobs), "attempt": attempt, "calls": calls}
        read[part] += buffers(connection, PARTS_OF_A_CALL[part], given)

    connection.execute("select count(jobq.enqueue('caller')) from generate_series(1, 10)")
    run("call", claim("caller"), 1)
    run("end", claim("called"), 1)
    run("resolve", [], 1)
    callers = claim("caller")
    assert len(callers) == 10
    for part in ("steps", "call", "end"):
        run(part, callers, 2)
    return read


@pytest.mark.oldest_version(is_usual=True)
@pytest.mark.parametrize("statistics", ["fresh", "of empty tables"])
def test_a_call_of_a_job_reads_nothing_of_others(connect: Connect, statistics: str) -> None:
    connection = connect()
    for table in ("job", "job_archive_default", "edge", "step"):
        connection.execute(f"alter table jobq_private.{table} set (autovacuum_enabled = off)")
    connection.execute("vacuum analyze")
    found = []
    for others in (1, MANY, 4 * MANY):  # the first time makes the plans
        connection.execute(FILL, ["tomorrow", others])
        connection.execute(OTHER_CALLS.format(others=others))
        if statistics == "fresh":
            connection.execute("vacuum analyze")
        found.append(costs_of_calls(connection))
    few, many = found[1:]
    assert {part: read for part, read in many.items() if read > few[part] + SLACK} == {}, few


WAIT = """
    do $$
    declare
        _job_id uuid := jobq.enqueue('waits', queue => 'waits');
        _attempt integer;
    begin
        select attempt into _attempt from jobq.claim('{waits}', 'w');
        perform jobq.wait_for(_job_id, _attempt, 'come');
        perform jobq.signal(_job_id, 'come');
        select attempt into _attempt from jobq.claim('{waits}', 'w');
        perform jobq.wait_for(_job_id, _attempt, 'come');
        perform jobq.ask(_job_id, _attempt, 'sure', 'sure?');
        perform jobq.answer(_job_id, 'sure', true);
        select attempt into _attempt from jobq.claim('{waits}', 'w');
        perform jobq.ask(_job_id, _attempt, 'sure', 'sure?');
        perform jobq.append(_job_id, _attempt, 'told', '[1]');
        perform jobq.read_stream(_job_id, 'told');
        perform jobq.complete(_job_id, _attempt);
        perform jobq.get_job(_job_id);
    end
    $$
"""
OTHER_WAITS = """
    insert into jobq_private.waiter (job_id, event, deadline)
    select jobq_private.new_id(0), 'e' || n, 'infinity' from generate_series(1, {others}) as n;
    insert into jobq_private.event (event, job_id, payload)
    select 'e' || n, jobq_private.new_id(0), '1' from generate_series(1, {others}) as n;
"""


@pytest.mark.oldest_version(is_usual=True)
def test_a_wait_reads_no_other_jobs_by_plans_of_an_empty_queue(connect: Connect) -> None:
    """The plans were made while the queue was empty, and are kept while it fills."""
    connection = connect()
    tables = ("job", "edge", "step", "event", "waiter")
    for table in tables:
        connection.execute(f"alter table jobq_private.{table} set (autovacuum_enabled = off)")
    connection.execute("vacuum analyze")
    for _ in range(8):
        connection.execute(WAIT)
    connection.execute(FILL, ["tomorrow", MANY])
    connection.execute(OTHER_CALLS.format(others=MANY) + ";" + OTHER_WAITS.format(others=MANY))
    scanned = "select relname, seq_tup_read from pg_stat_xact_user_tables where relname = any(%s)"
    with connection.transaction():
        before: dict[str, int] = dict(connection.execute(scanned, [list(tables)]))
        connection.execute(WAIT)
        after: dict[str, int] = dict(connection.execute(scanned, [list(tables)]))
    assert after == before


@pytest.mark.oldest_version(is_usual=True)
def test_a_claim_under_a_limit_of_a_kind_reads_no_keys_of_other_queues(connect: Connect) -> None:
    connection = connect()
    connection.execute("alter table jobq_private.waiting_key set (autovacuum_enabled = off)")
    connection.execute("select jobq.put_kind('k', max_running => 1)")
    for key in "ab":
        connection.execute("select jobq.enqueue('k', concurrency_key => %s)", [key])
    connection.execute(
        """
        insert into jobq_private.waiting_key (key_id, queue, concurrency_key, priority)
        select gen_random_uuid(), 'other', n, 0 from generate_series(1, %s) as n
        """,
        [MANY],
    )
    connection.execute("analyze jobq_private.waiting_key")
    read = "select seq_tup_read from pg_stat_xact_user_tables where relname = 'waiting_key'"
    with connection.transaction():
        before = connection.execute(read).fetchall()
        claimed = connection.execute("select from jobq.claim('{default}', 'w', 2)").fetchall()
        after = connection.execute(read).fetchall()
    assert len(claimed) == 1
    assert after == before


@pytest.mark.oldest_version(is_usual=True)
def test_a_claim_from_a_queue_with_a_rate_counts_no_running_jobs(connect: Connect) -> None:
    connection = connect()
    connection.execute("select jobq.put_queue('q', rate_limit => 1000, rate_burst => 1000)")
    for _ in range(3):
        connection.execute("select jobq.enqueue('k', queue => 'q')")
    claim = "select from jobq.claim('{q}', 'w', 2)"
    assert connection.execute(claim).rowcount > 0
    read = "select pg_stat_get_xact_tuples_returned('jobq_private.job_slot_idx'::regclass)"
    with connection.transaction():
        assert connection.execute(claim).rowcount > 0
        assert connection.execute(read).fetchone() == (0,)


@pytest.mark.oldest_version(is_usual=True)
def test_the_end_of_a_parent_reads_no_other_blocked_jobs_after_an_untimely_analyze(
    connect: Connect,
) -> None:
    """No job was blocked when the statistics were gathered."""
    connection = connect()
    connection.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
    connection.execute(FILL, ["tomorrow", MANY])
    connection.execute("analyze jobq_private.job")
    [[parent, other]] = connection.execute(
        "select jobq.enqueue('p', queue => 'p'), jobq.enqueue('p')"
    )
    for parents, children in ((other, MANY), (parent, 10)):
        connection.execute(
            """
            select count(*) from jobq.enqueue_many((
                select jsonb_agg(jsonb_build_object('kind', 'c', 'after', array[%s::uuid]))
                from generate_series(1, %s)
            ))
            """,
            [parents, children],
        )
    while connection.execute("select jobq_private.resolve()").fetchone() != (0,):
        pass
    connection.execute("select from jobq.claim('{p}', 'w')")
    connection.execute("select jobq.complete(%s, 1)", [parent])
    with connection.transaction():
        [[before]] = connection.execute(FETCHED)
        connection.execute("select jobq_private.resolve()")
        [[after]] = connection.execute(FETCHED)
    assert after - before < 200
    released = "select count(*) from jobq.job where kind = 'c' and state = 'queued'"
    assert connection.execute(released).fetchone() == (10,)


def test_a_list_of_streams_reads_a_few_chunks_of_each(connect: Connect) -> None:
    connection = connect()
    job_id = connection.execute("select jobq.enqueue('agent')").fetchone()
    connection.execute(
        """
        insert into jobq_private.stream_chunk (job_id, stream, generation, n, chunk)
        select %s, s, 1, n, to_jsonb(n) from generate_series(1, %s) as n
        cross join unnest('{a,b,c}'::text[]) as s
        """,
        [*(job_id or ()), MANY],
    )
    connection.execute("vacuum analyze jobq_private.stream_chunk")
    call = f"jobq.list_streams('{(job_id or ())[0]}')"
    assert len(connection.execute(f"select * from {call}").fetchall()) == 3
    assert [cost(connection, call, {}) for _ in range(2)][1][0] <= 30


def test_a_look_at_a_live_job_locks_none_of_the_days_of_others(connect: Connect) -> None:
    connection = connect()
    made = "select count(jobq_private.make_partition('job_archive', now()::date - n))"
    connection.execute(f"{made} from generate_series(3, 20) as n")
    live = connection.execute("select jobq.enqueue('live')").fetchone()
    locked = """
        select count(*) from pg_locks
        where pid = pg_backend_pid() and relation::regclass::text ~ 'job_archive_[0-9]{8}$'
    """
    with connection.transaction():
        connection.execute("select jobq.get_job(%s)", live)
        assert connection.execute(locked).fetchone() == (0,)


def test_completions_lock_none_of_the_days_of_others(connect: Connect) -> None:
    connection = connect()
    made = "select count(jobq_private.make_partition('job_archive', now()::date - n))"
    connection.execute(f"{made} from generate_series(3, 20) as n")
    connection.execute("select jobq.enqueue('done') from generate_series(1, 3)")
    complete = """
        select array_agg(outcome) from jobq.complete_many(
            (select array_agg(job_id) from jobq.claim('{default}', 'w', 3)), '{1,1,1}'
        )
    """
    locked = """
        select count(*) from pg_locks
        where pid = pg_backend_pid() and relation::regclass::text ~ 'job_archive_[0-9]{8}$'
    """
    with connection.transaction():
        assert connection.execute(complete).fetchone() == (["succeeded"] * 3,)
        row = connection.execute(locked).fetchone()
        assert row is not None
        assert row[0] <= 1


def test_an_attempt_that_ends_locks_no_other_days_of_attempts(connect: Connect) -> None:
    connection = connect()
    made = "select count(jobq_private.make_partition('attempt', now()::date - n))"
    connection.execute(f"{made} from generate_series(3, 20) as n")
    connection.execute(
        "select count(jobq.enqueue('fails', priority => n)) from generate_series(1, 3) as n"
    )
    locked = """
        select count(*) from pg_locks
        where pid = pg_backend_pid() and relation::regclass::text ~ 'attempt_([0-9]{8}|default)$'
    """
    for call in (
        "jobq.release(job_id, attempt)",
        "jobq.fail(job_id, attempt, 'no')",
        "jobq.fail_many(jsonb_agg(jsonb_build_object('job_id', job_id, 'attempt', attempt)))",
    ):
        with connection.transaction():
            connection.execute(f"select {call} from jobq.claim('{{default}}', 'w')".encode())
            assert connection.execute(locked).fetchone() == (1,), call


def test_priorities_with_nothing_due_cost_a_claim_no_probe_each(connect: Connect) -> None:
    connection = connect()
    connection.execute(
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object(
                'kind', 'k', 'priority', n,
                'run_at', now() + interval '1 h' + n * 997 %% 3000 * interval '1 s'
            ))
            from generate_series(1, 3000) as n
        ))
        """,
        [],
    )
    for call in ("jobq.claim('{default}', 'w')", "jobq.due_in('{default}')"):
        # so that the session knows that they are many
        connection.execute(f"select from {call}".encode())
        reads = [cost(connection, call, {}) for _ in range(2)][1]
        assert reads[0] < 400, f"{call}: a probe each would be 9,000"
    connection.execute("select jobq.enqueue('due')")
    assert connection.execute("select kind from jobq.claim('{default}', 'w')").fetchall() == [
        ("due",)
    ]
    assert connection.execute(
        "select jobq_private.next_due('{default}') = min(run_at)"
        " from jobq.job where state = 'queued'"
    ).fetchone() == (True,)


def test_many_empty_queues_cost_a_worker_one_probe_each(connect: Connect) -> None:
    connection = connect()
    connection.execute(FILL, ["now", MANY])
    queues = [f"queue {n}" for n in range(1000)]
    for call in ("jobq.exchange(%(queues)s, 'w', 10)", "jobq.due_in(%(queues)s)"):
        reads = [cost(connection, call, {"queues": queues}) for _ in range(2)][1]
        assert reads[0] <= 4 * len(queues), call


def test_a_snapshot_that_keeps_dead_entries_costs_a_claim_beside_limits_little(
    connect: Connect,
) -> None:
    connection, reader = connect(), connect()
    connection.execute("select jobq.put_kind('limited', max_running => 1)")
    connection.execute("select jobq.enqueue('k', priority => 5, run_at => now() + interval '1 h')")
    claim = "jobq.claim('{default}', 'w', 1)"
    base = [cost(connection, claim, {}) for _ in range(2)][1][0]
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select from jobq_private.job")
        connection.execute(FILL, ["now", MANY])
        while connection.execute("select from jobq.claim('{default}', 'w', 10000)").rowcount:
            connection.execute(
                "update jobq_private.job set state = 'succeeded' where state = 'running'"
            )
        until = time.monotonic() + PATIENCE / 4
        while (reads := cost(connection, claim, {})[0]) > 2 * base:
            assert time.monotonic() < until, f"{reads} instead of {base} buffers"
            connection.execute(f"select from {claim}".encode())


def saturate(connection: Connection, keys: int) -> None:
    """Store keys of which each runs all that it may, with jobs behind, and have them met."""
    connection.execute("select jobq.put_queue('default', key_max_running => 1)")
    connection.execute(
        """
        select count(*) from jobq.enqueue_many((
            select jsonb_agg(jsonb_build_object('kind', 'k', 'concurrency_key', 'k' || n / 3))
            from generate_series(0, %s) as n
        ))
        """,
        [3 * keys - 1],
    )
    connection.execute("select jobq.put_kind('k', lease => '1 h')")
    connection.execute("update jobq_private.job set lease = '1 h'")
    while connection.execute("select from jobq.claim('{default}', 'w', 100)").rowcount:
        pass
    # a new limit has been counted by then
    connection.execute("update jobq_private.limit_change set changed_at = '-infinity'")
    connection.execute("select jobq.maintain()")


@pytest.mark.oldest_version(is_usual=True)
def test_a_claim_behind_saturated_keys_reads_as_much_as_one_of_an_empty_queue(
    connect: Connect,
) -> None:
    connection = connect()
    claim = "jobq.claim('{default}', 'w', 1)"
    empty = [cost(connection, claim, {}) for _ in range(2)][1][0]
    saturate(connection, 1000)
    buffers, scans = [cost(connection, claim, {}) for _ in range(2)][1]
    assert scans == 0
    assert buffers <= empty + SLACK
    connection.execute("select jobq.enqueue('k', concurrency_key => 'another')")
    assert len(connection.execute("select from jobq.claim('{default}', 'w', 1)").fetchall()) == 1
    connection.execute("select jobq.enqueue('k', concurrency_key => 'one more')")
    assert cost(connection, claim, {})[0] < 400, "a key is opened without a look at all others"
