"""Every public function with hostile arguments: a typed refusal or an answer, no more.

The functions are those of the catalog, so a new one is tested from the day it is made.
Each argument in turn takes each hostile value of its type while the others are sane;
then all of them take hostile values at random (see chance.py). Text that
would run as SQL, if it got there, draws from a sequence, which no rollback hides. Of the
documents with a hostile member each argument takes some;
JOBQ_FUZZ_MEMBERS=1000 takes all.
"""

from __future__ import annotations

import json
import os
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import chance
import psycopg
import pytest
from psycopg import sql

from catalog import qualified

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from servers import Cluster

    Connection = psycopg.Connection[tuple[Any, ...]]

ROUNDS = int(os.environ.get("JOBQ_FUZZ_ROUNDS", "1"))
MEMBER_VALUES = int(os.environ.get("JOBQ_FUZZ_MEMBERS", "3"))
# A refusal: jobq's own, bad data, a state change that the transitions do not have, a
# rule of the tables (what a view's column says), a conflict to try again, a missing right.
# PostgreSQL's refusal of a LIMIT (2201W) is none: the maximum is an argument to be checked.
REFUSALS = ("JQ", "22")
UNCHECKED = "2201W"
REFUSED = ("23503", "40001", "40P01", "42501")

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

INJECTED = "nextval('public.hijacked')"
INJECTIONS = [
    f"' || {INJECTED} || '", f"'; select {INJECTED}; --", f"x'); select {INJECTED}; --",
    f'"; select {INJECTED}; --', f"$$; select {INJECTED}; --", f"1; select {INJECTED}",
    f"\\'; select {INJECTED}; --", f"x union select {INJECTED}::text", f"({INJECTED})",
]  # fmt: skip
TEXT = [
    *INJECTIONS,
    "", " ", "x" * 100_000, "Ω" * 600, "'; drop table jobq_private.job; --", "%s %I $1 {} \\",
    "\x01\x1b[2J\u202e", "null", "infinity", "a\nb", "../../etc/passwd", "${jndi:x}",
    "* * * * *", "Europe/Berlin", "(((((((((((a+)+)+)+)+)+)+)+)+)+)+$",
]  # fmt: skip
JSONB = [
    "null", "0", "true", '""', "[]", "{}", "[null]", "[[]]", "[{}]", '{"": null}',
    "1e131071", "-1e-16383", '[1e131071]', '{"a": 1e131071}', '{"kind": 1e131071}',
    "[" * 5000 + "]" * 5000, '{"a":' * 3000 + "1" + "}" * 3000,
    '"' + "x" * 2_000_000 + '"', "[" + ",".join(["{}"] * 2000) + "]",
    '{"type": "object", "pattern": "((((a+)+)+)+)+$"}', '{"type": ["object", 1]}',
    '{"minLength": 1e131071}', '{"enum": {}}', '{"items": []}', '{"pattern": "["}',
    '{"properties": []}', '{"required": {}}', '{"minimum": "x"}',
]  # fmt: skip
MEMBERS = (
    "kind", "payload", "queue", "run_at", "priority", "max_attempts", "timeout",
    "idempotency_key", "dedup_key", "dedup", "metadata", "job_id", "attempt", "error",
    "error_code", "retryable", "retry_in",
)  # fmt: skip
SCALARS = [
    *(json.dumps(text) for text in INJECTIONS[:3]),
    "null", "1e131071", "-1", "2147483648", '"infinity"', '"-infinity"', '""', "[]", "{}",
    '"x"', "true", '"-178000000 years"', '"294276-12-31"', '"\\u0001"',
]  # fmt: skip
WITH_MEMBERS = [
    form % (m, s)
    for form in ('[{"%s": %s}]', '[{"kind": "fuzz", "%s": %s}]')
    for m in MEMBERS
    for s in SCALARS
]
NUMBERS = ["0", "-1", "1", "32768", "-32769", "2147483647", "-2147483648"]
UUIDS = [
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
]  # fmt: skip
HOSTILE: dict[str, list[str]] = {
    "text": TEXT,
    "jsonb": JSONB,
    "integer": NUMBERS,
    "smallint": NUMBERS[:4],
    "numeric": [*NUMBERS, "NaN", "infinity", "1e40", "0.1"],
    "bigint": [*NUMBERS, "9223372036854775807", "-9223372036854775808"],
    "double precision": ["NaN", "infinity", "-infinity", "1e308", "-0", "-1", "1e-308"],
    "boolean": ["true", "false"],
    "uuid": UUIDS,
    "interval": [
        "0", "-1 s", "1 us", "infinity", "-infinity", "178000000 years", "-178000000 years",
        "1 mon -30 days", "9223372036854775807 us", "2147483647 days",
    ],
    "timestamp with time zone": [
        "infinity", "-infinity", "4713-01-02 BC", "294276-12-31", "epoch", "now",
    ],
    "bytea": ["", "\\x00", "\\x" + "00" * 32, "\\x" + "ff" * 1_000_000],
    "text[]": [
        *(json.dumps([text]).replace("[", "{").replace("]", "}") for text in INJECTIONS),
        "{}", "{NULL}", '{""}', "{{a,b},{c,d}}", "[5:6]={a,b}", "{default,default}",
        "{" + ",".join(f"q{n}" for n in range(20_000)) + "}",
    ],
    "uuid[]": ["{}", "{NULL}", f"{{{UUIDS[0]},{UUIDS[0]}}}", f"{{{{{UUIDS[0]}}},{{{UUIDS[1]}}}}}",
               f"[7:7]={{{UUIDS[2]}}}", "{" + ",".join(UUIDS * 5000) + "}"],
    "integer[]": ["{}", "{NULL}", "{1,1}", "{{1},{2}}", "[7:7]={1}", "{2147483647}",
                  "{" + ",".join(["1"] * 20_000) + "}"],
    "jsonb[]": ["{}", "{NULL}", "{1,null}", "{{1},{2}}", "[7:7]={1}", r'{"{\"a\": 1}"}',
                "{" + ",".join(["1"] * 20_000) + "}"],
}  # fmt: skip
SANE = {
    "kind": "fuzz", "queue": "fuzz", "worker": "w", "payload": "{}", "max_jobs": "2",
    "attempt": "1", "job_ids": "{job}", "attempts": "{1}", "queues": "{fuzz}",
    "job_id": "job", "execution_id": "job", "jobs": '[{"kind": "fuzz"}]',
    "failures": '[{"job_id": "job", "attempt": 1}]', "level": "INFO",
    "retry_in": "1 s", "priority": "0", "max_attempts": "3", "timeout": "1 min",
    "cron": "0 0 * * *", "time_zone": "UTC", "after": "2026-01-01", "run_at": "2026-01-01",
}  # fmt: skip


@contextmanager
def undone(connection: Connection) -> Iterator[None]:
    """Take back what the block does."""
    connection.execute("begin")
    try:
        yield
    finally:
        connection.execute("rollback; select pg_advisory_unlock_all()")


def is_refusal(error: psycopg.Error) -> bool:
    state = error.sqlstate or "no SQLSTATE"
    return (state.startswith(REFUSALS) and state != UNCHECKED) or state in REFUSED


def statement(function: str, names: list[str], types: list[str]) -> str:
    given = ", ".join(f"{n} => %s::{t}" for n, t in zip(names, types, strict=True))
    return f"select * from {qualified(function)}({given})"


class Fuzzer:
    """Calls functions and keeps what they should not have done."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.problems: list[str] = []
        self.calls = 0
        connection.execute("set statement_timeout = '120s'")
        connection.execute("create sequence public.hijacked")
        connection.execute("select jobq.put_kind('fuzz', payload_schema => '{}')")
        connection.execute("select jobq.enqueue('fuzz', queue => 'fuzz')")
        ((self.job_id,),) = connection.execute(
            "select job_id from jobq.claim('{fuzz}', 'w')"
        ).fetchall()
        self.castable: dict[tuple[str, str], bool] = {}

    def can_be(self, value: str, type_: str) -> bool:
        """Tell whether PostgreSQL itself takes the value for one of the type."""
        key = (value, type_)
        if key not in self.castable:
            try:
                self.connection.execute(f"select %s::{type_}", (value,))
                self.castable[key] = True
            except psycopg.Error:
                self.castable[key] = False
        return self.castable[key]

    def hostile(self, type_: str, draw: random.Random) -> list[str | None]:
        assert type_ in HOSTILE, f"no hostile values for the type {type_}: add some"
        values = list(HOSTILE[type_])
        if type_ == "jsonb":
            values += draw.sample(WITH_MEMBERS, min(MEMBER_VALUES, len(WITH_MEMBERS)))
        return [None, *(v for v in values if self.can_be(v, type_))]

    def sane(self, name: str) -> str | None:
        value = SANE.get(name)
        return (
            value.replace("job", str(self.job_id))
            if value
            and "job" in value
            and (name in ("job_id", "execution_id", "job_ids", "failures"))
            else value
        )

    def call(self, function: str, names: list[str], types: list[str], values: list[Any]) -> None:
        self.calls += 1
        with undone(self.connection):
            try:
                self.connection.execute(statement(function, names, types), values)
            except psycopg.Error as error:
                if is_refusal(error):
                    return
                shown = [v if v is None or len(v) < 60 else f"{v[:60]}…" for v in values]
                self.problems.append(f"{function}{dict(zip(names, shown, strict=True))}: "
                                     f"{error.sqlstate} {str(error)[:160]}")  # fmt: skip

    def fuzz(self, function: str, names: list[str], types: list[str], needed: int) -> None:
        draw = random.Random(f"{chance.seed()} {function}")
        sane = [self.sane(name) for name in names]
        given = [n for n, value in enumerate(sane) if n < needed or value is not None]
        self.call(function, names, types, [None] * len(names))
        for n, type_ in enumerate(types):
            for value in self.hostile(type_, draw):
                # Whatever is not sane and not tried is left out, for its default.
                chosen = sorted({*given, n})
                self.call(
                    function,
                    [names[i] for i in chosen],
                    [types[i] for i in chosen],
                    [value if i == n else sane[i] for i in chosen],
                )
        for _ in range(ROUNDS if names else 0):
            self.call(
                function, names, types,
                [
                    draw.choice([*self.hostile(t, draw), s])
                    for t, s in zip(types, sane, strict=True)
                ],
            )  # fmt: skip

    def was_hijacked(self) -> bool:
        """Tell whether any text has run as SQL."""
        [(drawn,)] = self.connection.execute("select is_called from public.hijacked").fetchall()
        return bool(drawn)


@pytest.fixture
def fuzzer(connect: Callable[[], Connection]) -> Fuzzer:
    return Fuzzer(connect())


@pytest.mark.prove
@pytest.mark.long
def test_hostile_arguments_are_refused_or_answered(fuzzer: Fuzzer) -> None:
    functions = fuzzer.connection.execute(FUNCTIONS).fetchall()
    for function, names, types, needed in functions:
        fuzzer.fuzz(function, names, types, needed)
        assert not fuzzer.connection.closed, f"{function} ended the connection"
        assert not fuzzer.was_hijacked(), f"{function} ran an argument as SQL"
    report = "\n".join(dict.fromkeys(fuzzer.problems))
    assert not fuzzer.problems, report
    assert fuzzer.calls > 1000, "the catalog was not read"


@pytest.mark.parametrize(
    "body",
    [
        "execute 'select 1 from jobq_private.job where queue = ''' || queue || ''''",
        "execute format('select 1 from jobq_private.job where queue = ''%s''', queue)",
        "execute 'select ' || queue",
    ],
)
def test_a_function_that_runs_its_argument_is_found_out(fuzzer: Fuzzer, body: str) -> None:
    fuzzer.connection.execute(
        "create function jobq.weak(queue text) returns void language plpgsql "
        f"as $weak$ begin {body}; end $weak$"
    )
    fuzzer.fuzz("weak", ["queue"], ["text"], 1)
    assert fuzzer.was_hijacked()


@pytest.mark.parametrize(
    ("value", "state"),
    [
        ('"\\u0000"', "22P05"),
        ('"\\ud800"', "22P02"),
        ('"\\udc00\\ud800"', "22P02"),
        ('"\x01"', "22P02"),
        ("[" * 100_000, "54001"),
        ("1e1000000", "22003"),
        ("NaN", "22P02"),
    ],
)
def test_what_is_no_jsonb_never_gets_in(
    connect: Callable[[], Connection], value: str, state: str
) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connect().execute("select jobq.enqueue('x', %s::jsonb)", (value,))
    assert raised.value.sqlstate == state


def test_a_nul_is_no_text(connect: Callable[[], Connection]) -> None:
    statement = "select jobq.enqueue(convert_from(%b, 'UTF8'))"
    with pytest.raises(psycopg.errors.CharacterNotInRepertoire):
        connect().execute(statement, (b"a\0b",))


# So many that what takes the square of their number in steps is found out by the timeout.
MANY = int(os.environ.get("JOBQ_FUZZ_MANY", "50000"))
MANY_SECONDS = 20 + MANY // 5000
AGGREGATES = {
    "text[]": "array_agg('q' || n)",
    "uuid[]": "array_agg(gen_random_uuid())",
    "integer[]": "array_agg(1)",
    "jsonb": "jsonb_agg('{}'::jsonb)",
}


@pytest.mark.prove
@pytest.mark.long
def test_many_elements_are_refused_or_answered(fuzzer: Fuzzer) -> None:
    """Every function, all its arrays and documents with many elements at once."""
    connection = fuzzer.connection
    connection.execute(f"set statement_timeout = '{MANY_SECONDS}s'")
    for type_, aggregate in AGGREGATES.items():
        connection.execute(
            f'create table "{type_}" (value) as'
            f" select {aggregate} from generate_series(1, {MANY}) as n"
        )
    called = 0
    for function, names, types, needed in connection.execute(FUNCTIONS).fetchall():
        given = [
            f'{name} => (select value from "{type_}")'
            if type_ in AGGREGATES
            else f"{name} => {literal(fuzzer.sane(name))}::{type_}"
            for n, (name, type_) in enumerate(zip(names, types, strict=True))
            if type_ in AGGREGATES or n < needed
        ]
        if not AGGREGATES.keys() & set(types):
            continue
        called += 1
        with undone(connection):
            try:
                connection.execute(
                    f"select count(*) from {qualified(function)}({', '.join(given)})"
                )
            except psycopg.Error as error:
                if not is_refusal(error):
                    fuzzer.problems.append(f"{function}: {error}")
    assert not fuzzer.problems
    assert called > 20


# A batch whose last part is bad: none of it may stay.
HALF_BAD = {
    "enqueue_many": """jobs => '[{"kind": "a"}, {"kind": "b", "dedup_key": "k"},
        {"kind": "c", "idempotency_key": "k"}, {"kind": ""}]'""",
    "enqueue_graph": """graph => '{"jobs": [{"name": "a", "kind": "a"},
        {"name": "b", "kind": "", "after": ["a"]}]}'""",
    "open_batch": """on_success => '{"kind": "a"}', on_end => '{"kind": ""}'""",
    "complete_many": """job_ids => array[%(job)s, null], attempts => '{1,1}',
        results => '[1, 1e131071]'""",
    "fail_many": """failures => jsonb_build_array(
        jsonb_build_object('job_id', %(job)s, 'attempt', 1),
        jsonb_build_object('job_id', %(job)s, 'attempt', 1, 'retry_in', '-1 s'))""",
    "release_many": "job_ids => array[%(job)s], attempts => '{1}', run_at => 'infinity'",
    "save_steps": """job_ids => array[%(job)s, %(job)s], attempts => '{1,1}',
        names => '{a,""}', results => '[1, 2]'""",
    "heartbeat": "worker => 'new', job_ids => array[%(job)s], attempts => '{1,1}'",
    "exchange": """queues => '{other}', worker => repeat('w', 300), max_jobs => 1,
        job_ids => array[%(job)s], attempts => '{1}'""",
    "claim": "queues => '{other,null}', worker => 'w'",
    "create_api_key": """name => 'a', key_hash => sha256('a'), prefix => 'a',
        scopes => '{read,all}'""",
    "submit_job": """given => '{"kind": "a", "payload": {}, "metadata": {"a": 1e131071}}'""",
    "submit_schedule": """given => '{"name": "s", "kind": "a", "cron": "* * * * * * * *"}'""",
    "create_schedule": """name => 's', kind => 'a', cron => '@daily',
        payload => '1e131071'""",
    "put_config": """config => 'c', entries => '[]'""",
    "put_endpoint": """endpoint => 'e', type => 'HTTP',
        spec => '{"url": "https://a.example/{{config.nothing}}"}'""",
    "test_endpoint": """endpoint => 'e', payload => '1e131071'""",
    "put_epoch": "epoch => 1, shard_ids => '{0,99}'",
    "confirm_jobs": "job_ids => null",
    "receive_jobs": """jobs =>
        '[{"job_id": "0198c0de-1234-7abc-9f03-0123456789ab", "moves": 1}, {}]'""",
    "put_payload_spec": """payload_spec => 'p', schema => '[]'""",
    "put_kind": """kind => 'k', retry_jitter => 2""",
    "revise_job": "job_id => (select schedule_id from jobq.schedule), changes => '[]'",
    "update_schedule": """schedule => 'standing', changes => '{"payload": 1e131071}'""",
    "set_progress": "job_id => %(job)s, attempt => 1, progress => '1e131071'",
    "fail": "job_id => %(job)s, attempt => 1, error => 'x', retry_in => '-1 s'",
    "complete": "job_id => %(job)s, attempt => 1, result => '1e131071'",
    "cancel_many": "queue => 'default', max_jobs => 0",
    "change_many": """changes => '{"priority": 99999}', queue => 'default'""",
    "claim_calls": "queues => '{other,null}'",
    "delete_many": "queue => 'default', state => 'nonsense'",
    "publish": "event => 'e', payload => '1e131071'",
    "emit": "event => 'e', payload => '1e131071'",
    "save_step": "job_id => %(job)s, attempt => 1, name => 'a', value => '1e131071'",
    "ask": "job_id => %(job)s, attempt => 1, name => 'a', question => 'b', form => '[]'",
    "answer": "job_id => %(job)s, name => 'a', is_approved => true, data => '1e131071'",
    "append": """job_id => %(job)s, attempt => 1, stream => 'a',
        chunks => '[1, 1e131071]'""",
    "append_many": """job_ids => array[%(job)s, %(job)s], attempts => '{1,1}',
        streams => '{a,a}', numbers => '{1,2}', chunks => '[1, 1e131071]'""",
    "start_children": """job_id => %(job)s, attempt => 1,
        children => '[{"name": "a", "kind": "a"}, {"name": "b", "kind": ""}]'""",
    "call_children": """job_id => %(job)s, attempt => 1,
        children => '[{"name": "a", "kind": "a"}, {"name": "b", "kind": ""}]'""",
    "call_many": """job_ids => array[%(job)s, %(job)s], attempts => '{1,1}',
        calls => '[[{"name": "a", "kind": "a"}], [{"name": "b", "kind": ""}]]'""",
    "read_streams": """job_ids => array[%(job)s], streams => '{a,b}', afters => '{1-1}'""",
    "read_steps": "job_ids => array[%(job)s], attempts => '{1,1}'",
    "wait_any": "job_id => %(job)s, attempt => 1, name => 'a', events => '{a,\"\"}'",
    "send_message": "job_id => %(job)s, name => 'a', payload => '1e131071'",
    "signal": "job_id => %(job)s, name => 'a', payload => '1e131071'",
    "redrive_many": "max_jobs => 0",
    "submit_jobs": """jobs => '[{"kind": "a"}, {"kind": ""}]', endpoints => '{}'""",
    "run_calls": """run => '{a,b}', is_batch => true, job_ids => array[%(job)s],
        attempts => '{1,1}', payloads => '{1}', small => 9""",
    "work": "queues => '{other,null}'",
    "enqueue": """kind => 'a', idempotency_key => 'k', metadata => '[]'""",
}
READ_ONLY = {
    "begin_wait", "choose_shard",
    "due_in", "health", "list_moved", "list_payload_schemas", "list_undeclared_kinds",
    "list_undeliverable", "listen_events",
    "page_jobs", "show_jobs",
}  # fmt: skip
STATE = """
    select (select md5(string_agg(j::text, ' ' order by j.job_id)) from jobq.job as j),
        (select count(*) from jobq_private.idempotency_key),
        (select count(*) from jobq_private.schedule),
        (select count(*) from jobq_private.kind), (select count(*) from jobq_private.worker),
        (select count(*) from jobq_private.api_key),
        (select count(*) from jobq_private.definition_version)
"""


def test_every_function_that_takes_a_batch_is_tried_with_a_bad_one(fuzzer: Fuzzer) -> None:
    takers = {
        function
        for function, _, types, _ in fuzzer.connection.execute(FUNCTIONS).fetchall()
        if AGGREGATES.keys() & set(types)
    }
    assert takers - HALF_BAD.keys() - READ_ONLY == set()


@pytest.fixture(scope="module")
def unchanged(cluster: Cluster) -> Iterator[Fuzzer]:
    """One for calls that leave nothing: they share a database."""
    with cluster.database() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select jobq.configure(lease => '1 day')")
        fuzzer = Fuzzer(connection)
        connection.execute("select jobq.enqueue('x', queue => 'other')")
        connection.execute("select jobq.create_schedule('standing', 'x', '@daily')")
        yield fuzzer


@pytest.mark.parametrize("function", HALF_BAD)
def test_a_batch_that_is_refused_leaves_nothing(unchanged: Fuzzer, function: str) -> None:
    connection = unchanged.connection
    before = connection.execute(STATE).fetchall()
    given = HALF_BAD[function].replace("%(job)s", f"{literal(str(unchanged.job_id))}::uuid")
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(f"select * from {qualified(function)}({given})")
    assert (raised.value.sqlstate or "").startswith(REFUSALS), raised.value
    assert connection.execute(STATE).fetchall() == before


def literal(value: str | None) -> str:
    return sql.Literal(value).as_string()
