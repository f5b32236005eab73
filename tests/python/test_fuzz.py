"""Every public function with hostile arguments: a typed refusal or an answer, no more.

The functions are those of the catalog, so a new one is tested from the day it is made.
Each argument in turn takes each hostile value of its type while the others are sane;
then all of them take hostile values at random (JOBQ_FUZZ_SEED repeats a run).
"""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Connection = psycopg.Connection[tuple[Any, ...]]

SEED = int(os.environ.get("JOBQ_FUZZ_SEED", random.randrange(10**9)))
ROUNDS = int(os.environ.get("JOBQ_FUZZ_ROUNDS", "15"))
# A refusal: jobq's own, bad data, a state change that the transitions do not have, a
# rule of the tables (what a view's column says), a conflict to try again, a missing right.
REFUSALS = ("JQ", "22")
REFUSED = ("23503", "40001", "40P01", "42501")

FUNCTIONS = """
select p.proname, array(
    select a.name from unnest(p.proargnames) with ordinality as a (name, n)
    where p.proargmodes is null or p.proargmodes[a.n] in ('i', 'b')
), array(
    select format_type(t.oid, null) from unnest(p.proargtypes) with ordinality as t (oid, n)
), p.pronargs - p.pronargdefaults
from pg_proc as p
where p.pronamespace = 'jobq'::regnamespace
order by p.proname
"""

TEXT = [
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
    "null", "1e131071", "-1", "2147483648", '"infinity"', '"-infinity"', '""', "[]", "{}",
    '"x"', "true", '"-178000000 years"', '"294276-12-31"', '"\\u0001"',
]  # fmt: skip
NUMBERS = ["0", "-1", "1", "32768", "-32769", "2147483647", "-2147483648"]
UUIDS = [
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
    "00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
]  # fmt: skip
HOSTILE: dict[str, list[str]] = {
    "text": TEXT,
    "jsonb": JSONB
    + [f'[{{"{m}": {s}}}]' for m in MEMBERS for s in SCALARS]
    + [f'[{{"kind": "fuzz", "{m}": {s}}}]' for m in MEMBERS for s in SCALARS],
    "integer": NUMBERS,
    "smallint": NUMBERS[:4],
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
        "{}", "{NULL}", '{""}', "{{a,b},{c,d}}", "[5:6]={a,b}", "{default,default}",
        "{" + ",".join(f"q{n}" for n in range(20_000)) + "}",
    ],
    "uuid[]": ["{}", "{NULL}", f"{{{UUIDS[0]},{UUIDS[0]}}}", f"{{{{{UUIDS[0]}}},{{{UUIDS[1]}}}}}",
               f"[7:7]={{{UUIDS[2]}}}", "{" + ",".join(UUIDS * 5000) + "}"],
    "integer[]": ["{}", "{NULL}", "{1,1}", "{{1},{2}}", "[7:7]={1}", "{2147483647}",
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
        connection.execute("rollback")
        connection.execute("select pg_advisory_unlock_all()")


def statement(function: str, names: list[str], types: list[str]) -> str:
    given = ", ".join(f"{n} => %s::{t}" for n, t in zip(names, types, strict=True))
    return f"select * from jobq.{function}({given})"


class Fuzzer:
    """Calls functions and keeps what they should not have done."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.problems: list[str] = []
        self.calls = 0
        connection.execute("set statement_timeout = '20s'")
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

    def hostile(self, type_: str) -> list[str | None]:
        assert type_ in HOSTILE, f"no hostile values for the type {type_}: add some"
        return [None, *(v for v in HOSTILE[type_] if self.can_be(v, type_))]

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
                state = error.sqlstate or "no SQLSTATE"
                if state.startswith(REFUSALS) or state in REFUSED:
                    return
                shown = [v if v is None or len(v) < 60 else f"{v[:60]}…" for v in values]
                self.problems.append(f"{function}{dict(zip(names, shown, strict=True))}: "
                                     f"{state} {str(error)[:160]}")  # fmt: skip

    def fuzz(self, function: str, names: list[str], types: list[str], needed: int) -> None:
        sane = [self.sane(name) for name in names]
        given = [n for n, value in enumerate(sane) if n < needed or value is not None]
        self.call(function, names, types, [None] * len(names))
        for n, type_ in enumerate(types):
            for value in self.hostile(type_):
                # Whatever is not sane and not tried is left out, for its default.
                chosen = sorted({*given, n})
                self.call(
                    function,
                    [names[i] for i in chosen],
                    [types[i] for i in chosen],
                    [value if i == n else sane[i] for i in chosen],
                )
        draw = random.Random(f"{SEED} {function}")
        for _ in range(ROUNDS if names else 0):
            self.call(
                function, names, types,
                [draw.choice([*self.hostile(t), s]) for t, s in zip(types, sane, strict=True)],
            )  # fmt: skip


def test_hostile_arguments_are_refused_or_answered(
    connect: Callable[[], Connection],
) -> None:
    fuzzer = Fuzzer(connect())
    functions = fuzzer.connection.execute(FUNCTIONS).fetchall()
    for function, names, types, needed in functions:
        fuzzer.fuzz(function, names, types, needed)
        assert not fuzzer.connection.closed, f"{function} ended the connection"
    report = "\n".join(dict.fromkeys(fuzzer.problems))
    assert not fuzzer.problems, f"JOBQ_FUZZ_SEED={SEED}\n{report}"
    assert fuzzer.calls > 1000, "the catalog was not read"
