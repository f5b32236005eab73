"""`jobq doctor` tells a sound system from one that may lose jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from jobq.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg


def doctor(database: str, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["doctor", "--database", database, *options])
    return done.exit_code, done.output


def findings(database: str) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in doctor(database, "--json")[1].splitlines()]
    return {row["subject"]: row for row in rows}


def test_what_is_wrong_comes_first_with_its_remedy(database: str) -> None:
    status, output = doctor(database)
    assert status == 1
    assert output.startswith("BAD")
    # The tests' servers run without fsync.
    assert "fsync = off; set fsync = on" in output


def test_findings_follow_the_system(
    database: str, connect: Callable[[], psycopg.Connection[Any]]
) -> None:
    assert not findings(database)["workers"]["is_ok"]
    assert not findings(database)["partitions"]["is_ok"]
    connection = connect()
    connection.execute("select jobq.heartbeat('w', '{}', '{}')")
    connection.execute("select jobq.maintain()")
    after = findings(database)
    assert after["workers"]["is_ok"] and after["partitions"]["is_ok"]
    assert after["workers"]["remedy"] is None


def test_a_database_without_jobq_is_named(empty_database: str) -> None:
    status, output = doctor(empty_database)
    assert status == 1
    assert "jobq deploy" in output
