"""A log-in with grants by queue, against every public function and view of the catalog.

The victim, `theirs`, has jobs in every state, schedules, an endpoint with a secret, logs
and keys, all on its queue `theirs`; CANARY stands in whatever of it no caller can know.
The intruder, `mine`, holds the queue `mine` and all four of jobq's roles, and knows every
name and id of the victim's. It must learn and change nothing. The same attack on a
database where grants are not enforced succeeds, so the test can tell. An attack makes every
pair of arguments meet; JOBQ_TENANTS_ALL=1 makes it try all combinations.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from catalog import qualified
from jobq import AsyncClient, Registry, Worker
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]

IS_EXHAUSTIVE = "JOBQ_TENANTS_ALL" in os.environ
CANARY = "canary-7f3a"
SECRET = CANARY.encode().ljust(40, b".")

ROLES = "jobq_producer, jobq_worker, jobq_operator, jobq_reader"

LOG_INS = f"""
do $$
declare
    _role text;
begin
    foreach _role in array array['theirs', 'mine', 'bystander'] loop
        if not exists (select from pg_roles where rolname = _role) then
            execute format('create role %I login password %L', _role, _role);
            execute format('grant {ROLES} to %I', _role);
        end if;
    end loop;
end
$$;
select jobq.grant_queue(r.name, r.name, p.privilege)
from (values ('theirs'), ('mine')) as r (name)
cross join (values ('enqueue'), ('work')) as p (privilege);
"""

# What the operator of the database declares for the victim.
DEFINITIONS = f"""
create function public.their_call(jsonb) returns jsonb language sql as 'select $1';
select jobq.put_kind('theirs.call', 'theirs', run => 'public.their_call');
select jobq.put_queue('theirs', max_depth => 1000);
select jobq.put_limit('theirs', 'some-key', 3);
select jobq.put_budget('queue', 'theirs', 1000000);
select jobq.hold_key('theirs', 'some-key', now() + interval '1 day', '{CANARY}');
select jobq.put_payload_spec('theirs-spec', '{{"title": "{CANARY}", "not": {{"type": "array"}}}}');
select jobq.put_queue('theirs-spare');
select jobq.put_payload_spec('theirs-spare', '{{}}');
select jobq.put_config('theirs-spare', '{{}}');
select jobq.put_secret('theirs-spare', decode('{SECRET.hex()}', 'hex'), '{CANARY}');
select jobq.put_config('theirs-config', '{{"host": "{CANARY}.example"}}');
select jobq.put_secret('theirs-secret', decode('{SECRET.hex()}', 'hex'), '{CANARY}');
select jobq.put_endpoint(
    'theirs-endpoint', 'HTTP',
    '{{"url": "https://{{{{config.host}}}}/{CANARY}",
       "headers": {{"a": "{{{{secret.theirs-secret}}}}"}}}}',
    'theirs-spec', 'theirs-config', queue => 'theirs'
);
select jobq.put_endpoint(
    'theirs-paused', 'HTTP', '{{"url": "https://theirs.example"}}', queue => 'theirs'
);
select jobq.pause_endpoint('theirs-paused');
"""

# What the victim does; its schedule is due, its lease has expired, its worker is gone.
DEEDS = f"""
set session authorization theirs;
select jobq.put_kind('theirs-spare', 'theirs');
select jobq.put_kind('theirs.mail', 'theirs', payload_schema => '{{"title": "{CANARY}"}}');
select jobq.subscribe('theirs-event', 'theirs.mail');
select jobq.pause_kind('theirs-spare', '{CANARY}');
select jobq_http.create_api_key('theirs-api', sha256('theirs'), 'theirs', '{{produce,operate}}');
select jobq.create_schedule(
    'theirs-schedule', 'theirs.mail', every => '1 day', queue => 'theirs',
    payload => '{{"x": "{CANARY}"}}'
);
select jobq.create_schedule(
    'theirs-paused', 'theirs.mail', every => '1 day', queue => 'theirs'
);
select jobq.pause_schedule('theirs-paused');
select jobq.enqueue('theirs.mail', '{{"x": "{CANARY}"}}') from generate_series(1, 5);
select jobq.enqueue('theirs.mail', idempotency_key => 'theirs-key', dedup_key => 'theirs-dedup');
select jobq.enqueue('theirs-endpoint', '{{"x": "{CANARY}"}}');
select jobq.open_batch('{{"kind": "theirs-endpoint", "payload": {{"x": "{CANARY}"}}}}');
select jobq.enqueue('theirs.mail', after => array[max(j.job_id::text)::uuid])
from jobq.job as j where j.kind = 'theirs.mail';
select jobq.heartbeat('theirs-worker', '{{}}', '{{}}', '{{theirs}}');
select from jobq.claim('{{theirs}}', 'theirs-worker', 4);
select jobq.log(job_id, 1, 'INFO', 'theirs {CANARY}') from jobq.list_jobs('running');
select jobq.set_progress(job_id, 1, '"{CANARY}"') from jobq.list_jobs('running');
select jobq.save_step(job_id, 1, 'theirs-step', '"{CANARY}"') from jobq.list_jobs('running');
select jobq.append(job_id, 1, 'theirs-stream', '["{CANARY}"]') from jobq.list_jobs('running');
select jobq.cancel(job_id, '{CANARY}') from jobq.list_jobs('running', max_jobs => 1);
select jobq.fail(job_id, 1, '{CANARY}', retryable => false)
from jobq.job where state = 'running' and cancel_requested_at is null limit 1;
select jobq.complete(job_id, 1, '"{CANARY}"')
from jobq.job where state = 'running' and cancel_requested_at is null limit 1;
select jobq.cancel(job_id, '{CANARY}') from jobq.list_jobs('queued', max_jobs => 1);
select jobq.enqueue('theirs.ask', queue => 'theirs', priority => 9);
select jobq.ask(c.job_id, 1, 'theirs-question', 'theirs {CANARY}')
from jobq.claim('{{theirs}}', 'theirs-worker', 1) as c;
select jobq.enqueue('theirs.call', '{{"x": "{CANARY}"}}');
reset session authorization;
set session_replication_role = replica;
insert into jobq_private.history
select 1, date_trunc('minute', now()) - interval '5 min', 'theirs', 'theirs.mail', 1;
insert into jobq_private.total values ('theirs', 1, 0, 0, 0, 0);
update jobq_private.job set lease_expires_at = now() - interval '1 day'
where state = 'running';
update jobq_private.schedule set next_run_at = now() - interval '1 min';
update jobq_private.worker set seen_at = now() - interval '1 day';
update jobq_private.idempotency_key set created_at = now() - interval '90 days';
reset session_replication_role;
"""

FUNCTIONS = """
select p.proname, array(
    select a.name from unnest(p.proargnames) with ordinality as a (name, n)
    where p.proargmodes is null or p.proargmodes[a.n] in ('i', 'b')
), array(
    select format_type(t.oid, null) from unnest(p.proargtypes) with ordinality as t (oid, n)
), p.pronargs - p.pronargdefaults
from pg_proc as p
where p.pronamespace::regnamespace::text in ('jobq', 'jobq_http', 'jobq_internal')
order by p.proname
"""

# What the intruder says for each parameter. JOB stands for one of the victim's ids.
AIMED: dict[str, list[str]] = {
    "after": ["2026-01-01", "0_00000000-0000-0000-0000-000000000000"],
    "batch_id": ["BATCH"],
    "graph": ['{"jobs": [{"name": "a", "kind": "theirs.mail"}]}'],
    "graph_of": ["JOB"],
    "scope": ["all", "theirs"],
    "scope_type": ["queue"],
    "amount": ["1"],
    "cost": ["7"],
    "on_success": ['{"kind": "theirs.mail"}'],
    "attempt": ["1"],
    "attempts": ["{1}"],
    "by": ["1 hour"],
    "changes": ['{"payload": {}}', '{"priority": 7}'],
    "drivers": ["{}"],
    "key_ids": ["{}"],
    "afters": ["{1-0}"],
    "calls": ['[[{"name": "x", "kind": "theirs.mail"}]]'],
    "children": ['[{"name": "x", "kind": "theirs.mail"}]'],
    "chunks": ['["theirs"]'],
    "ciphertext": ["\\x" + "00" * 40],
    "concurrency_key": ["some-key"],
    "config": ["theirs-config", "theirs-spare"],
    "cron": ["* * * * *"],
    "dedup": ["replace"],
    "dedup_key": ["theirs-dedup"],
    "endpoint": ["theirs-endpoint", "theirs-paused"],
    "enforced": ["false"],
    "entries": ['{"x": 1}'],
    "epoch": ["1"],
    "error": ["x"],
    "event": ["theirs-event"],
    "events": ["{theirs-event}"],
    "endpoints": ["{theirs-endpoint}"],
    "execution_id": ["JOB"],
    "failures": ['[{"job_id": "JOB", "attempt": 1, "error": "x"}]'],
    "given": [
        '{"kind": "x", "queue": "theirs"}',
        '{"kind": "theirs.mail", "queue": "mine"}',
        '{"kind": "theirs.mail", "dedup_key": "theirs-dedup", "dedup": "replace"}',
        '{"name": "theirs-new", "kind": "x", "queue": "theirs", "cron": "* * * * *"}',
        '{"name": "theirs-new", "kind": "theirs.mail", "queue": "mine", "cron": "* * * * *"}',
        '{"name": "theirs-new", "kind": "theirs.mail", "cron": "* * * * *"}',
    ],
    "grantee": ["mine"],
    "hold_for": ["1 h"],
    "idempotency_key": ["theirs-key"],
    "initial_delay": ["1 s"],
    "is_approved": ["true"],
    "is_batch": ["true"],
    "job_id": ["JOB"],
    "job_ids": ["{JOB}"],
    "jitter": ["0"],
    "jobs": [
        '[{"kind": "x", "queue": "theirs"}]',
        '[{"kind": "theirs.mail", "queue": "mine"}]',
        '[{"kind": "theirs-endpoint", "queue": "mine"}]',
        '[{"kind": "theirs.mail", "dedup_key": "theirs-dedup", "dedup": "replace"}]',
    ],
    "key_hash": ["\\x" + hashlib.sha256(b"theirs").hexdigest()],
    "key_id": ["k"],
    "kind": ["theirs.mail", "theirs-endpoint", "theirs-spare"],
    "kinds": ["{theirs.mail,theirs-endpoint}"],
    "level": ["INFO"],
    "max_delay": ["1 s"],
    "max_jobs": ["100"],
    "message": ["theirs"],
    "names": ["{theirs-new}"],
    "numbers": ["{2}"],
    "max_running": ["1"],
    "name": [
        "theirs-api", "theirs-schedule", "theirs-endpoint", "theirs-paused", "theirs-secret",
        "theirs-question",
    ],
    "payloads": ["{1}"],
    "payload_spec": ["theirs-spec", "theirs-spare"],
    "prefix": ["x"],
    "privilege": ["work"],
    "progress": ["{}"],
    "question": ["x"],
    "queue": ["theirs", "theirs-spare", "mine"],
    "queues": ["{theirs}", "{mine,theirs}"],
    "reason": ["x"],
    "retry_in": ["1 h"],
    "results": ["[1]"],
    "run": ["{pg_catalog,jsonb_strip_nulls}"],
    "schedule_id": ["SCHEDULE"],
    "schedule": ["theirs-schedule", "theirs-paused", "SCHEDULE"],
    "schema": ["{}"],
    "shard_id": ["0"],
    "shard_ids": ["{0}"],
    "successor": ["1"],
    "scopes": ["{operate}"],
    "small": ["9"],
    "secret": ["theirs-secret", "theirs-spare"],
    "spec": ['{"url": "https://intruder.example", "headers": {"a": "{{secret.theirs-secret}}"}}'],
    "strategy": ["fixed"],
    "stream": ["theirs-stream"],
    "streams": ["{theirs-stream}"],
    "ticks": ["1"],
    "time_zone": ["UTC"],
    "url": ["postgresql://theirs/x"],
    "since": ["2026-01-01"],
    "until": ["infinity", "2026-01-03"],
    "type": ["HTTP", "endpoint", "config", "secret", "payload_spec"],
    "version": ["1"],
    "value": ["1"],
    "worker": ["theirs-worker"],
}  # fmt: skip

# Functions with which an intruder would win nothing: they compute, wait, or are not its to call.
HARMLESS = {
    "act_for", "advance_clock", "await_events", "begin_wait", "choose_shard",
    "confirm_jobs",
    "create_api_key",
    "end_wait", "enforce_queue_grants", "get_call", "grant_queue", "health", "list_declarations",
    "list_epochs",
    "list_leftovers", "list_moved",
    "list_queue_grants", "list_router_statements", "list_shards", "list_undeclared_kinds",
    "maintain_in", "next_tick", "preview_cron",
    "put_epoch", "put_shard", "put_successor", "receive_jobs", "send_jobs",
    "ready", "replica_lag", "revoke_queue", "shard_of", "show_login", "show_pulse", "show_totals",
    "version",
}  # fmt: skip

# Functions whose every answer but null tells of the victim.
TELLING = {
    "await_stream", "due_in", "endpoint_stats", "preview_schedule", "preview_slots", "wait",
}  # fmt: skip


# What a session may try to set so as to be taken for somebody else.
PRETENCES = {
    "a role": "set local role jobq_operator",
    "no row security": "set local row_security = off",
    "settings": "set local search_path = pg_temp, pg_catalog; set local jobq.tenant = 'theirs'",
}
# What stands in for jobq's own where a function looks for it in pg_temp first.
STAND_INS = """
    create temporary view held_queue as
    select '{*}'::text[] as any_of, '{*}'::text[] as enqueued, '{*}'::text[] as worked;
    create function pg_temp.pg_has_role(name, oid, text) returns boolean
    language sql as 'select true';
"""


class Intruder:
    """Calls everything as `mine`, and keeps what it learnt or changed.

    Args:
        connection: a superuser's; each call is made as `mine`, and taken back.
        pretence: the statements that each call starts with.
    """

    def __init__(self, connection: Connection, pretence: str) -> None:
        self.connection = connection
        self.pretence = pretence
        self.calls = 0
        self.harmful: set[str] = set()
        jobs = connection.execute(
            """select distinct on (state, kind, cancel_requested_at is null) job_id::text
            from jobq.job where queue = 'theirs'
            order by state, kind, cancel_requested_at is null, idempotency_key"""
        )
        self.jobs = [job_id for (job_id,) in jobs]
        self.schedule = str(
            connection.execute(
                "select schedule_id from jobq.schedule where name = 'theirs-schedule'"
            ).fetchall()[0][0]
        )
        self.batch = str(
            connection.execute("select batch_id from jobq_private.batch").fetchall()[0][0]
        )
        tables = connection.execute(
            """select c.oid::regclass::text from pg_class as c
            where c.relnamespace = 'jobq_private'::regnamespace
            and c.relkind in ('r', 'p') and not c.relispartition"""
        )
        self.all = " union all ".join(f"select t::text from {t} as t" for (t,) in tables)
        # state() names every table, and would be compiled anew at each of many calls.
        connection.execute("set jit = off")
        with connection.transaction():
            connection.execute("set local session authorization mine")
            connection.execute(STAND_INS)
        self.before = self.state()

    def state(self) -> str | None:
        """Return all rows that mention the victim or hold for all, and which are guarded."""
        query = f"""
            select md5(string_agg(r.text, '\n' order by r.text)) from (
                select s.text from ({self.all}) as s (text)
                where s.text like '%theirs%' or s.text like '%{CANARY}%'
                union all
                select g::text from jobq_private.setting as g
                union all
                select concat_ws(' ', c.relname, c.relrowsecurity) from pg_class as c
                where c.relnamespace = 'jobq_private'::regnamespace and not c.relispartition
            ) as r (text)
        """
        [(digest,)] = self.connection.execute(query).fetchall()
        return str(digest)

    def attack(self, name: str, statement: str, values: list[str]) -> None:
        """Run a statement as `mine`; note the name when it does harm, which is said once."""
        if name in self.harmful:
            return
        self.calls += 1
        with self.connection.transaction(force_rollback=True):
            rows: list[tuple[Any, ...]] = []
            try:
                with self.connection.transaction():
                    self.connection.execute(
                        f"set local session authorization mine; {self.pretence}"
                    )
                    rows = self.connection.execute(statement, values).fetchall()
            except psycopg.Error as error:
                said = f"{error} {error.diag.message_detail}"
                if CANARY in said:
                    self.harmful.add(name)
                return
            learnt = repr(rows)
            if CANARY in learnt or base64.b64encode(SECRET).decode() in learnt:
                self.harmful.add(name)
            if name in TELLING and any(value is not None for row in rows for value in row):
                self.harmful.add(name)
            names = ("theirs", *self.jobs)
            if any(n in learnt and not any(n in v for v in values) for n in names):
                self.harmful.add(name)
            self.connection.execute(
                "reset session authorization; reset role; set local search_path to default"
            )
            if self.has_written() and self.state() != self.before:
                self.harmful.add(name)

    def has_written(self) -> bool:
        """Tell whether the transaction has changed anything: only then has it a number."""
        [(has,)] = self.connection.execute(
            "select pg_current_xact_id_if_assigned() is not null"
        ).fetchall()
        return bool(has)

    def arguments(self, parameters: list[str]) -> Iterator[list[str]]:
        """Yield combinations of what is aimed at the victim."""
        targets = [*self.jobs, self.schedule]
        for choice in combinations([AIMED[p] for p in parameters]):
            aims = targets if any("JOB" in value for value in choice) else [""]
            for target in aims:
                named = {"JOB": target, "SCHEDULE": self.schedule, "BATCH": self.batch}
                values = list(choice)
                for word, found in named.items():
                    values = [value.replace(word, found) for value in values]
                yield values

    def attack_all(self) -> set[str]:
        """Call every function, with and without what it need not be given.

        since goes with until, but not with after; a key may be a queue's, not a kind's.
        """
        functions = self.connection.execute(FUNCTIONS).fetchall()
        for function, names, types, needed in functions:
            unknown = set(names[:needed]) - AIMED.keys()
            assert not unknown, f"{function}: say in AIMED what {unknown} are aimed at"
            type_of = dict(zip(names, types, strict=True))
            chosen = [n for n in names if n in AIMED]
            others = [n for n in chosen if n != "since" or n in names[:needed]]
            kindless = [n for n in chosen if n != "kind" or n in names[:needed]]
            for parameters in {
                tuple(names[:needed]), tuple(chosen), tuple(others), tuple(kindless)
            }:  # fmt: skip
                given = ", ".join(f"{p} => %s::{type_of[p]}" for p in parameters)
                for values in self.arguments(list(parameters)):
                    self.attack(function, f"select * from {qualified(function)}({given})", values)
        views = self.connection.execute(
            """select relname from pg_class
            where relnamespace = 'jobq'::regnamespace and relkind = 'v'"""
        ).fetchall()
        for (view,) in views:
            self.attack(view, f"select * from jobq.{view}", [])
        self.attack(
            "update",
            "update jobq.job set state = 'cancelled' where state = 'queued' returning job_id",
            [],
        )
        self.attack(
            "insert",
            "insert into jobq.job (kind, queue) values ('x', 'theirs') returning job_id",
            [],
        )
        return self.harmful


def combinations(choices: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Yield one of each of the choices together, until every pair of them has met."""
    met: set[tuple[tuple[int, str], ...]] = set()
    for chosen in itertools.product(*choices):
        pairs = set(itertools.combinations(enumerate(chosen), min(2, len(chosen))))
        if IS_EXHAUSTIVE or not met or pairs - met:
            met |= pairs
            yield chosen


@pytest.fixture
def victim(connect: Callable[[], Connection]) -> Connection:
    """A superuser's connection to a database where the victim has been at work."""
    connection = connect()
    for script in (LOG_INS, DEFINITIONS, DEEDS):
        connection.execute(script)
    return connection


@pytest.fixture
def isolated(victim: Connection) -> Connection:
    """The same with grants enforced."""
    victim.execute("select jobq.enforce_queue_grants()")
    return victim


def test_no_function_or_view_gives_away_or_changes_what_is_anothers(isolated: Connection) -> None:
    intruder = Intruder(isolated, "select")
    assert intruder.attack_all() == set()
    assert intruder.calls > 300


@pytest.mark.parametrize(
    "pretence",
    [
        pytest.param(statement, id=name, marks=[pytest.mark.prove] if n else [])
        for n, (name, statement) in enumerate(PRETENCES.items())
    ],
)
@pytest.mark.long
def test_nobody_is_taken_for_another(isolated: Connection, pretence: str) -> None:
    intruder = Intruder(isolated, pretence)
    assert intruder.attack_all() == set()
    assert intruder.calls > 300


@pytest.mark.prove
@pytest.mark.long
def test_the_same_attack_succeeds_where_grants_are_not_enforced(victim: Connection) -> None:
    intruder = Intruder(victim, "select")
    harmful = intruder.attack_all()
    functions = {name for name, *_ in victim.execute(FUNCTIONS).fetchall()}
    # Jobs that have waited for a minute are named, which they have on a busy machine.
    assert functions - harmful | {"health"} == HARMLESS
    assert harmful - functions == {
        "attempt", "audit", "insert", "job", "kind", "question", "queue", "schedule", "update",
        "worker",
    }  # fmt: skip


def log_in(database: str, user: str) -> str:
    return make_conninfo(database, user=user, password=user)


@pytest.fixture
def mine(isolated: Connection, database: str) -> Iterator[Connection]:
    """The intruder's own connection, by its own password."""
    del isolated
    with psycopg.connect(log_in(database, "mine"), autocommit=True) as connection:
        yield connection


BEYOND_A_LOG_IN = (
    "set role theirs",
    "set role jobq_owner",
    "set session authorization theirs",
    "select set_config('session_authorization', 'theirs', false)",
    "select set_config('role', 'jobq_owner', false)",
    "select jobq.grant_queue('mine', 'theirs', 'work')",
    "select jobq.revoke_queue('theirs', 'theirs', 'work')",
    "select jobq.enforce_queue_grants(false)",
    "insert into jobq_private.queue_grant values ('mine'::regrole, 'theirs', 'work')",
    "insert into jobq.queue_grant (queue, privilege) values ('theirs', 'work')",
    "select * from jobq_private.held_queue",
    "alter table jobq_private.job disable row level security",
    "create policy p on jobq_private.job using (true)",
    "grant theirs to mine",
    "create view jobq.v as select 1",
    "comment on table jobq_private.job is 'x'",
)


@pytest.mark.oldest_version
def test_a_log_in_cannot_become_another_or_change_the_rules(mine: Connection) -> None:
    for statement in BEYOND_A_LOG_IN:
        with pytest.raises(psycopg.Error) as raised:
            mine.execute(statement)
        assert raised.value.sqlstate in ("42501", "55000"), (statement, raised.value)


@pytest.mark.oldest_version
def test_a_function_in_a_query_on_a_view_is_shown_no_row_of_anothers(mine: Connection) -> None:
    seen: list[str] = []
    mine.add_notice_handler(lambda notice: seen.append(str(notice.message_primary)))
    mine.execute("""
        create function pg_temp.tell(jsonb) returns boolean language plpgsql cost 0.0001
        as $$ begin raise notice 'told %', $1; return true; end $$
    """)
    mine.execute("select jobq.enqueue('x', '1', queue => 'mine')")
    rows = mine.execute("select payload from jobq.job where pg_temp.tell(payload)").fetchall()
    assert rows == [(1,)]
    assert seen == ["told 1"]


@pytest.mark.oldest_version
@pytest.mark.usefixtures("isolated")
def test_without_a_grant_there_is_nothing(database: str) -> None:
    with psycopg.connect(log_in(database, "bystander"), autocommit=True) as connection:
        assert connection.execute("select from jobq.job").fetchall() == []
        assert connection.execute("select * from jobq.queue_grant").fetchall() == []
        for statement in ("select jobq.enqueue('x')", "select jobq.heartbeat('w', '{}', '{}')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_who_may_only_enqueue_signals_and_answers_but_does_not_work(
    isolated: Connection, mine: Connection, database: str
) -> None:
    isolated.execute("select jobq.grant_queue('bystander', 'mine', 'enqueue')")

    def claimed() -> list[Any]:
        return mine.execute("select job_id, attempt from jobq.claim('{mine}', 'w')").fetchall()

    with psycopg.connect(log_in(database, "bystander"), autocommit=True) as producer:
        [(job_id,)] = producer.execute("select jobq.enqueue('x', queue => 'mine')").fetchall()
        assert claimed() == [(job_id, 1)]
        for call in (
            "select jobq.save_step(%s, 1, 'a', '1')",
            "select jobq.append(%s, 1, 'a', '[1]')",
            """select jobq.call_children(%s, 1, '[{"name": "a", "kind": "x", "queue": "mine"}]')""",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege) as raised:
                producer.execute(call, [job_id])
            assert raised.value.diag.constraint_name == "QUEUE_DENIED", call
        mine.execute("select jobq.save_step(%s, 1, 'a', '1')", [job_id])
        mine.execute("select jobq.append(%s, 1, 'a', '[1]')", [job_id])
        mine.execute("select jobq.wait_for(%s, 1, 'go')", [job_id])
        assert claimed() == []
        assert producer.execute("select jobq.signal(%s, 'go')", [job_id]).fetchall() == [(True,)]
        assert claimed() == [(job_id, 2)], "which a worker of the queue makes due"
        mine.execute("select jobq.ask(%s, 2, 'pay', 'Pay?')", [job_id])
        producer.execute("select jobq.answer(%s, 'pay', true)", [job_id])
        assert claimed() == [(job_id, 3)]


def test_a_superuser_and_the_owner_hold_every_queue(isolated: Connection) -> None:
    assert isolated.execute("select count(*) from jobq.list_jobs()").fetchall() != [(0,)]
    isolated.execute("select jobq.enqueue('x', queue => 'new', dedup_key => 'k')")
    recovered = isolated.execute("select state from jobq_internal.recover()").fetchall()
    assert recovered, "maintenance by the owner reaches every queue"


def test_a_group_passes_its_queues_on_to_members_that_inherit(
    isolated: Connection, database: str
) -> None:
    isolated.execute("""
        begin;
        do $$ begin
            if not exists (select from pg_roles where rolname = 'team') then
                create role team;
                create role hidden login noinherit password 'hidden';
                grant jobq_reader, team to hidden;
            end if;
        end $$;
        grant team to bystander;
        select jobq.grant_queue('team', 'theirs', 'work');
        commit;
    """)
    count = "select count(*) > 0 from jobq.job"
    with psycopg.connect(log_in(database, "bystander"), autocommit=True) as member:
        assert member.execute(count).fetchall() == [(True,)]
    with psycopg.connect(log_in(database, "hidden"), autocommit=True) as hidden:
        hidden.execute("set role jobq_reader")
        assert hidden.execute(count).fetchall() == [(False,)], "no privileges without inherit"
    isolated.execute("revoke team from bystander")


@pytest.mark.oldest_version
def test_what_is_due_happens_under_a_log_in_of_the_queue(
    isolated: Connection, database: str
) -> None:
    with psycopg.connect(log_in(database, "theirs"), autocommit=True) as theirs:
        done: dict[str, int] = dict(
            theirs.execute("select task, affected from jobq.maintain()").fetchall()
        )
        assert done["recovered"] == 2
        assert done["ticked"] == 1
        [(found,)] = theirs.execute(
            "select jobq_internal.find_job('theirs.mail', 'theirs-key')"
        ).fetchall()
        assert found is not None
        assert theirs.execute("select jobq.redrive_many('theirs')").rowcount == 1
        [(secrets,)] = theirs.execute(
            "select secrets from jobq_internal.get_delivery('theirs-endpoint')"
        ).fetchall()
        assert secrets.keys() == {"theirs-secret"}
        # Jobs of a version that refers to what the endpoint has left are as they were.
        pinned = (
            "select schema is not null, config_version, secrets is not null"
            " from jobq_internal.get_delivery({})"
        )
        isolated.execute(
            "select jobq.put_endpoint('theirs-endpoint', 'HTTP', %s, queue => 'theirs')",
            ['{"url": "https://theirs.example"}'],
        )
        given = "'theirs-endpoint', (select min(delivery_version) from jobq.job)"
        assert theirs.execute(pinned.format(given)).fetchall() == [(True, 1, True)]
        newest = pinned.format("'theirs-endpoint'")
        assert theirs.execute(newest).fetchall() == [(False, None, False)]
        audited = theirs.execute("select distinct actor from jobq.audit").fetchall()
        assert audited == [("theirs",)]
    assert isolated.execute(
        "select count(*) > 1 from (select distinct actor from jobq.audit) as a"
    ).fetchall() == [(True,)]


@pytest.mark.usefixtures("isolated")
async def test_a_worker_and_a_client_need_no_more_than_their_queue(database: str) -> None:
    registry = Registry()

    @registry.handler("mine.double", queue="mine", max_attempts=2)
    async def double(payload: int) -> int:
        return 2 * payload

    url = log_in(database, "mine")
    async with AsyncClient(url) as client, Worker(url, registry, ["mine"]):
        job = await client.enqueue("mine.double", 21, idempotency_key="k")
        assert await client.result(job.job_id, timeout=30) == 42


def test_the_guides_grants_do_as_it_says(connect: Callable[[], Connection]) -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    [snippet] = re.findall(r"^```sql\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    connection = connect()
    connection.execute("begin")
    connection.execute(snippet)
    connection.execute("set local session authorization shop_app")
    connection.execute(
        "select jobq.enqueue('x', queue => q) from unnest('{orders,mail}'::text[]) q"
    )
    claimed = connection.execute("select queue from jobq.claim('{orders,other}', 'w', 9)")
    assert claimed.fetchall() == [("orders",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
        connection.execute("select from jobq.claim('{mail}', 'w')")
    connection.execute("set local session authorization platform_app")
    jobs = connection.execute("select queue from jobq.list_jobs() order by 1")
    assert jobs.fetchall() == [("mail",), ("orders",)]
    connection.execute("rollback")
