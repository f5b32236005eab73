"""plpgsql_check, Debian's for PostgreSQL 15, over every PL/pgSQL function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers import Cluster

# A finding is allowed by (function, the start of its message), with the reason.
ALLOWED = {
    ("jobq_private.event_span", "control reached end"): "it ends in an endless loop",
    ("jobq_private.settled_at", "control reached end"): "it ends in an endless loop",
    ("jobq_private.make_partition", 'syntax error at or near "_default"'): (
        "it tries dynamic SQL with an empty name"
    ),
}

FINDINGS = """
select p.oid::regproc::text, c.lineno, c.level, c.message, c.hint
from pg_proc as p
join pg_language as l on l.oid = p.prolang and l.lanname = 'plpgsql'
left join pg_trigger as t on t.tgfoid = p.oid and t.tgparentid = 0
cross join lateral plpgsql_check_function_tb(
    p.oid, coalesce(t.tgrelid, 0),
    fatal_errors => false,
    other_warnings => true,
    extra_warnings => true,
    performance_warnings => false,
    security_warnings => true,
    oldtable => t.tgoldtable,
    newtable => t.tgnewtable
) as c
where p.pronamespace::regnamespace::text in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private')
order by 1, 2
"""


def test_plpgsql_check_finds_nothing(clusters: Callable[[str], Cluster]) -> None:
    with clusters("15").database() as url, psycopg.connect(url) as connection:
        connection.execute("create extension plpgsql_check")
        findings = [
            (function, f"line {line}: {level}: {message} {hint or ''}")
            for function, line, level, message, hint in connection.execute(FINDINGS)
            if not is_allowed(function, message)
        ]
    report = "\n".join(f"{function} {finding}" for function, finding in findings)
    assert not findings, f"{len(findings)} findings:\n{report}"


def is_allowed(function: str, message: str) -> bool:
    return any(function == name and message.startswith(start) for name, start in ALLOWED)
