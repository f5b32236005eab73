"""`jobq certify`: what it finds on servers and through poolers of several kinds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from commands import invoked
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from test_worker_connections import find_pgbouncer, pgbouncer

from jobq_embedded import Server
from jobq_operations.certify import OTHERS
from jobq_operations.deploy import deploy
from servers import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Settings of the test's servers that no production server should have.
FASTER = {"fsync", "full_page_writes", "synchronous_commit"}


def certified(url: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the findings by subject."""
    done = invoked("", "certify", url, "--json")
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {each["subject"]: each for each in findings}


def objects(url: str) -> list[tuple[int, ...]]:
    """Count what an installation would leave behind."""
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select (select count(*) from pg_class), (select count(*) from pg_proc),"
            " (select count(*) from pg_namespace), (select count(*) from pg_roles)"
        ).fetchall()


def bad(findings: dict[str, dict[str, Any]]) -> set[str]:
    """Return the subjects of the checks that failed, but for the settings of test servers."""
    return {name for name, each in findings.items() if not each["is_ok"]} - FASTER


def test_an_ordinary_server_passes_and_keeps_nothing(empty_database: str) -> None:
    before = objects(empty_database)
    status, findings = certified(empty_database)
    assert bad(findings) == set()
    assert status < 2
    assert findings["job"]["finding"] == "a job was enqueued, claimed and completed, and undone"
    assert "connected directly" in findings["listen"]["finding"]
    assert objects(empty_database) == before


def test_a_person_reads_what_to_do(empty_database: str) -> None:
    done = invoked(empty_database, "certify")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ok    version               PostgreSQL 18")
    assert "WARN  fsync                 off: a crash" in done.stdout
    assert lines[-1] == "jobq can run here; read the warnings"
    assert done.returncode == 1


def test_where_jobq_is_installed_a_job_is_run_and_undone(database: str) -> None:
    _, findings = certified(database)
    assert bad(findings) == set()
    assert "is installed here" in findings["installation"]["finding"]
    with psycopg.connect(database) as connection:
        assert connection.execute("select count(*) from jobq.job").fetchone() == (0,)


@pytest.fixture
def logins(pg: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URLs of an owner who may create roles, one who may not, and a superuser, without jobq."""
    folder = tmp_path_factory.mktemp("certified")
    urls = {}
    with Server(folder, pg, settings=SETTINGS, durable=False) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for name in ("createrole", "nocreaterole"):
                made = "create role {} login password 'secret' " + name
                connection.execute(sql.SQL(made).format(sql.Identifier(name)))
                owned = sql.SQL("create database {} owner {}")
                connection.execute(owned.format(*[sql.Identifier(name)] * 2))
                urls[name] = make_conninfo(server.url, user=name, password="secret", dbname=name)
        yield {**urls, "superuser": server.url}


def test_an_owner_who_may_create_roles_is_enough(logins: dict[str, str]) -> None:
    status, findings = certified(logins["createrole"])
    assert bad(findings) == set()
    assert status < 2
    assert findings["roles"]["finding"] == "createrole may create roles, and is no superuser"

    status, findings = certified(logins["nocreaterole"])
    assert status == 2
    assert bad(findings) == {"roles", "installation"}
    assert findings["roles"]["remedy"].endswith("alter role nocreaterole createrole")


@pytest.mark.prove
def test_another_owner_needs_the_roles_of_the_first(logins: dict[str, str]) -> None:
    first, second = logins["createrole"], logins["nocreaterole"]
    deploy(first)
    with psycopg.connect(logins["superuser"], autocommit=True) as connection:
        connection.execute("alter role nocreaterole createrole")
    _, findings = certified(second)
    assert bad(findings) == {"roles", "installation"}
    remedy = findings["roles"]["remedy"]
    assert remedy.endswith("to nocreaterole with admin option")
    _, elsewhere = certified(make_conninfo(second, dbname="createrole"))
    assert "permission denied" in elsewhere["installation"]["finding"]
    with psycopg.connect(first, autocommit=True) as connection:
        connection.execute(remedy.removeprefix("as their owner: ").encode())
    _, findings = certified(second)
    assert bad(findings) == set()
    deploy(second)


@pytest.mark.prove
@pytest.mark.skipif(find_pgbouncer() is None, reason="pgbouncer is not installed")
def test_poolers_are_told_apart(empty_database: str, tmp_path: Path) -> None:
    for mode in ("transaction", "session"):
        folder = tmp_path / mode
        folder.mkdir()
        tmp_path.chmod(0o755)
        with pgbouncer(empty_database, folder, mode) as pooled:
            status, findings = certified(pooled)
        assert status == 1
        assert "through a pooler" in findings["listen"]["finding"]
        assert "--pooled" in findings["startup_settings"]["remedy"]
        if mode == "transaction":
            assert bad(findings) == {"startup_settings", "listen", "prepared_statements"}
            assert "--listen-database" in findings["listen"]["remedy"]
        else:
            assert bad(findings) == {"startup_settings"}


def test_settings_of_a_login_are_seen(empty_database: str) -> None:
    name = str(conninfo_to_dict(empty_database)["dbname"])
    with psycopg.connect(empty_database, autocommit=True) as connection:
        for setting in ("statement_timeout = '1 min'", "default_transaction_read_only = on"):
            connection.execute(f"alter database {name} set {setting}".encode())
    status, findings = certified(empty_database)
    assert status == 2
    assert bad(findings) == {"statement_timeout", "writable", "installation"}


def test_a_server_that_is_away_is_reported() -> None:
    done = invoked("", "certify", "postgresql://u@127.0.0.1:1/x?connect_timeout=2")
    assert done.returncode == 2
    assert "onnection" in done.stderr


@pytest.mark.parametrize(
    "version",
    [
        "CockroachDB CCL v25.2.0 (x86_64-pc-linux-gnu, built 2025/05/12)",
        "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu",
    ],
)
def test_other_databases_with_its_protocol_are_known(version: str) -> None:
    assert OTHERS.search(version)
