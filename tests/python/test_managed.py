"""What a managed service offers: an owner who may create roles, and is no superuser."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import psycopg
import pytest
from commands import invoked
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from test_run import run_examples
from test_tutorial import follow

from catalog import catalog
from jobq_embedded import Server
from jobq_operations.deploy import deploy
from servers import ROOT, SETTINGS, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("managed")
COMMANDS = [
    ["doctor"], ["queues"], ["queues", "--declared"], ["kinds"], ["workers"], ["jobs"], ["events"],
    ["settings"], ["schedules"], ["limits", "list"], ["budgets", "list"],
    ["keys", "list"],
    ["pause", "default"], ["resume", "default"], ["deploy"], ["deploy", "--verify"],
]  # fmt: skip


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, pg: str) -> Iterator[Server]:
    """A server of its own: who made jobq's roles matters."""
    folder = tmp_path_factory.mktemp("managed")
    with Server(folder, pg, settings=SETTINGS, durable=False) as server:
        yield server


def url_of(server: Server, user: str, database: str) -> str:
    """Return the URL of a user whose password is its name."""
    return make_conninfo(server.url, user=user, password=user, dbname=database)


@pytest.fixture
def owned(server: Server) -> str:
    """The owner's URL of an empty database."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create role app login createrole password 'app'")
        connection.execute("create database app owner app")
    return url_of(server, "app", "app")


@pytest.mark.prove
@pytest.mark.long
def test_the_owner_runs_the_examples_and_every_command(owned: str, tmp_path: Path) -> None:
    run_examples(owned, tmp_path)
    for command in COMMANDS:
        done = invoked(owned, *command)
        assert "permission denied" not in done.stdout + done.stderr, command
        assert done.returncode == 0 or command == ["doctor"], done.stderr


@pytest.mark.prove
@pytest.mark.long
def test_the_owner_follows_the_tutorial(
    server: Server, owned: str, project: Path, tmp_path: Path
) -> None:
    deploy(owned)
    follow(Cluster(server, project), owned, tmp_path)


@pytest.mark.prove
def test_a_restore_without_the_roles_is_repaired_by_deploy(
    server: Server, cluster: Cluster, database: str, tmp_path: Path
) -> None:
    dump = tmp_path / "app.dump"
    programs = cluster.server.programs
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select jobq.enqueue('restored')")
    subprocess.run([programs / "pg_dump", "-Fc", "-f", dump, database], check=True)
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create database restored template template0")
    url = server.url_of("restored")
    done = subprocess.run(
        [programs / "pg_restore", "-d", url, dump], check=False, capture_output=True, text=True
    )
    assert 'role "jobq_owner" does not exist' in done.stderr
    with psycopg.connect(url) as connection:
        query = "select count(*) from pg_proc where prosecdef and proowner = 10"
        assert connection.execute(query).fetchone() != (0,)
    assert "brought to this release" in deploy(url)
    assert "is up to date" in deploy(url)
    # Definitions have other parentheses after a restore; owners and grants have not.
    assert {(*row[:2], *row[3:]) for row in catalog(url)} == {
        (*row[:2], *row[3:]) for row in catalog(database)
    }
    with psycopg.connect(url) as connection:
        assert connection.execute("select kind from jobq.job").fetchall() == [("restored",)]


@pytest.mark.prove
def test_composes_login_does_what_its_services_do(server: Server) -> None:
    script = (ROOT / "docs" / "compose.sql").read_text()
    subprocess.run(
        [server.programs / "psql", "-Xq", "-v", "ON_ERROR_STOP=1", server.url],
        input=script, text=True, check=True, env={"APP_PASSWORD": "app"},
    )  # fmt: skip
    deploy(server.url)
    app = url_of(server, "app", str(conninfo_to_dict(server.url)["dbname"]))
    assert invoked(app, "keys", "create", "k", "--scope", "produce").returncode == 0
    assert re.search("ok +schema", invoked(app, "doctor").stdout)
    with psycopg.connect(app, autocommit=True) as connection:
        connection.execute("select jobq.enqueue('k')")
        for role in ("producer", "worker", "operator", "reader"):
            connection.execute(f"set role jobq_{role}")
            connection.execute("reset role")
        rows = connection.execute("select count(*) from jobq.claim('{default}', 'w')").fetchone()
        assert rows == (1,)
