"""The core without the features: it installs, works, and takes the features later."""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from commands import invoked
from psycopg.conninfo import make_conninfo
from released import add_note
from test_pgtap import OPTIONS, tap_problem
from waiting import until_async

import jobq_operations.deploy
import render
from catalog import catalog
from jobq import AsyncClient, Client, Registry, __version__
from jobq.worker import Worker
from jobq_delivery.deliverer import Deliverer
from jobq_embedded import Server
from jobq_operations.deploy import deploy
from servers import DEBIAN_15, ROOT, SETTINGS, copy_unreleased, pgtap_script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers import Cluster

CORE = render.FLOORS[1].split()
NEEDS_MORE = "-- Needs more than the core.\n"
SCRIPTS = sorted(
    path
    for topic in CORE
    for path in (ROOT / "tests" / "pgtap" / topic).glob("*.sql")
    if NEEDS_MORE not in path.read_text()
)


@pytest.fixture
def owned(tmp_path_factory: pytest.TempPathFactory, pg: str) -> Iterator[tuple[Server, str]]:
    """A server without jobq's roles, and the URL of a database's owner, who is no superuser."""
    bin_dir = DEBIAN_15 if pg == "15" and DEBIAN_15.is_dir() else None
    folder = tmp_path_factory.mktemp("core")
    with Server(folder, pg, bin_dir, settings=SETTINGS, durable=False) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("create role app login createrole password 'app'")
            connection.execute("create database app template template0 owner app")
        yield server, make_conninfo(server.url, user="app", password="app", dbname="app")


def run(server: Server, url: str, script: str) -> str:
    """Run a script in psql, and return what it printed."""
    done = subprocess.run(
        [server.programs / "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-f", "-", url],
        input=script, capture_output=True, text=True, check=False, timeout=100,
        env={"PGOPTIONS": "-c client_min_messages=warning"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.oldest_version(is_usual=True)
def test_an_ordinary_owner_installs_it_and_works(owned: tuple[Server, str]) -> None:
    server, url = owned
    run(server, url, render.single_file(ROOT, 1))
    registry = Registry()
    done = []

    @registry.handler("greet")
    def greet(payload: dict[str, str]) -> str:
        done.append(payload["name"])
        return f"hello {payload['name']}"

    @registry.handler("break", max_attempts=1)
    def fail() -> None:
        raise ValueError("as it should")

    with Client(url, registry=registry) as client:
        greeted = client.enqueue("greet", {"name": "ada"}).job_id
        broken = client.enqueue("break", max_attempts=1).job_id
        asyncio.run(Worker(url, registry, until_empty=True).run())
        assert done == ["ada"]
        assert client.get(greeted).result == "hello ada"
        assert client.get(broken).state == "dead"
        client.redrive(broken)
        assert client.get(broken).state == "queued"
    with psycopg.connect(url, autocommit=True) as connection:
        tasks = connection.execute("select task, affected from jobq.maintain()").fetchall()
        assert tasks and all(affected is not None for _, affected in tasks)


async def test_a_worker_with_delivery_kills_no_job_of_an_unknown_kind(
    core: str, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    async with AsyncClient(core) as client, Deliverer(core) as deliverer:
        registry.otherwise(deliverer.deliver, beyond=deliverer.beyond)
        job = await client.enqueue("unknown", max_attempts=1)
        async with Worker(core, registry):
            await until_async(lambda: asyncio.sleep(0, "UNKNOWN_KIND" in caplog.text))
        assert (await client.get(job.job_id)).state == "queued"


@pytest.mark.parametrize(
    "call",
    [
        "enqueue('k', concurrency_key => 'c')",
        "enqueue('k', after => array[gen_random_uuid()])",
        "put_kind('k', max_running => 1)",
        "put_kind('k', run => 'pg_catalog.jsonb_strip_nulls')",
        "put_kind('k', dead_letter_kind => 'l')",
        "put_queue('q', rate_limit => 1)",
    ],
)
def test_what_the_core_does_not_enforce_it_refuses(core: str, call: str) -> None:
    with (
        psycopg.connect(core) as connection,
        pytest.raises(psycopg.errors.InvalidParameterValue) as refused,
    ):
        connection.execute(f"select jobq.{call}".encode())
    assert "require the features of jobq" in str(refused.value.diag.message_detail)


def test_it_refuses_a_debounced_job_after_one_that_has_begun(core: str) -> None:
    call = "select jobq.enqueue('k', dedup_key => 'd', dedup => 'debounce', run_at => now())"
    with psycopg.connect(core) as connection:
        connection.execute(call)
        connection.execute("select from jobq.claim('{default}', 'w')")
        with pytest.raises(psycopg.DatabaseError) as refused:
            connection.execute(call)
    assert refused.value.diag.constraint_name == "INVALID_ARGUMENT"


@pytest.fixture
def core(cluster: Cluster) -> Iterator[str]:
    """The URL of a database with the core alone."""
    with cluster.database(template="template0") as url:
        cluster.psql(url, render.single_file(ROOT, 1), {"client_min_messages": "warning"})
        yield url


def test_its_own_tests_pass_on_the_core_alone(cluster: Cluster, core: str) -> None:
    cluster.psql(core, pgtap_script())
    assert len(SCRIPTS) > 20
    problems = {
        path.name: problem
        for path in SCRIPTS
        if (problem := tap_problem(cluster.psql(core, path, OPTIONS)))
    }
    assert problems == {}


# Jobs in every state that the core has, with what hangs on them.
FILL = """
    select jobq.put_kind('k', queue => 'q', max_attempts => 1);
    select jobq.enqueue('k', '{"is": "queued"}', idempotency_key => 'i', dedup_key => 'd');
    select jobq.enqueue('later', run_at => now() + interval '1 h');
    select jobq.enqueue('retries', queue => 'a');
    select from jobq.claim('{a}', 'w') as c, lateral jobq.fail(c.job_id, c.attempt, 'x');
    select jobq.enqueue('runs', queue => 'b');
    select from jobq.claim('{b}', 'w');
    select jobq.enqueue('ends', queue => 'c');
    select from jobq.claim('{c}', 'w') as c, lateral jobq.complete(c.job_id, 1, '"done"');
    select jobq.enqueue('dies', queue => 'e');
    select from jobq.claim('{e}', 'w') as c, lateral jobq.fail(c.job_id, 1, 'x', 'E', false);
    select jobq.cancel(jobq.enqueue('goes'));
"""
STATES = {"queued", "retrying", "running", "succeeded", "dead", "cancelled"}


def everything(url: str) -> tuple[list[Any], ...]:
    """All jobs, attempts, kinds and keys."""
    queries = (
        "select j.* from jobq.job as j order by j.job_id",
        "select * from jobq_private.attempt order by job_id, attempt, finished_at",
        "select kind, queue, max_attempts from jobq_private.kind order by kind",
        "select kind, idempotency_key, job_id from jobq_private.idempotency_key order by 1, 2",
    )
    with psycopg.connect(url) as connection:
        return tuple(connection.execute(query).fetchall() for query in queries)


@pytest.mark.prove
@pytest.mark.parametrize("way", ["psql", "deploy"])
def test_features_that_come_later_lose_nothing(
    cluster: Cluster, core: str, database: str, way: str
) -> None:
    cluster.psql(core, FILL)
    before = everything(core)
    with psycopg.connect(core) as connection:
        states = connection.execute("select distinct state from jobq.job").fetchall()
        assert {state for (state,) in states} == STATES
    if way == "psql":
        cluster.psql(core, render.single_file(ROOT), {"client_min_messages": "warning"})
    else:
        assert "features added" in deploy(core)
        assert "is up to date" in deploy(core)
    assert everything(core) == before
    assert {row[:3] for row in catalog(core)} == {row[:3] for row in catalog(database)}
    with psycopg.connect(core, autocommit=True) as connection:
        query = "select state from jobq.job where kind = 'runs'"
        assert connection.execute(query).fetchall() == [("running",)]
        for statement in (
            "select jobq.redrive(job_id) from jobq.job where kind = 'dies'",
            "select jobq.enqueue('after', after => array_agg(job_id)) from jobq.job"
            " where kind in ('k', 'runs')",
            "select jobq.put_kind('k', max_running => 1)",
            "select jobq.complete(job_id, attempt) from jobq.job where kind = 'runs'",
            "select jobq.enforce_queue_grants(true)",
        ):
            connection.execute(statement)
        queue = "select queue from jobq_private.kind_queue where kind = 'k'"
        assert connection.execute(queue).fetchall() == []  # put_kind() names none any more
        # The first claim moves the job of the kind that has a limit now, and another starts it.
        claim = "select kind from jobq.claim('{q,e}', 'w', 9)"
        claimed = [row for _ in range(2) for row in connection.execute(claim).fetchall()]
        assert sorted(claimed) == [("dies",), ("k",)]


@pytest.fixture
def next_project(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:  # fmt: skip
    """The successor of a release, whose core is in the empty database. Jobs have a column more."""
    copy = copy_unreleased(tmp_path, project)
    render.release(copy, f"v{__version__}")
    cluster.psql(empty_database, render.single_file(copy, 1))
    add_note(copy)
    render.update(copy)
    monkeypatch.setattr(jobq_operations.deploy, "project_dir", lambda: copy)
    return copy


@pytest.mark.prove
@pytest.mark.parametrize("way", ["psql", "deploy"])
def test_the_core_of_an_older_release_takes_also_what_its_tables_lack(
    cluster: Cluster, empty_database: str, next_project: Path, way: str
) -> None:
    cluster.psql(empty_database, FILL)
    if way == "psql":
        cluster.psql(empty_database, render.single_file(next_project))
    else:
        assert "features added" in deploy(empty_database)
    with cluster.database(template="template0") as new:
        cluster.psql(new, render.single_file(next_project))
        assert names_of(empty_database) == names_of(new)


def names_of(url: str) -> set[Any]:
    """Return what is in a database, but not the partitions of days, which jobs make."""
    return {row[:3] for row in catalog(url) if not re.search(r"_20\d{6}", str(row[:3]))}


def test_a_command_of_a_feature_says_that_it_is_not_installed(core: str) -> None:
    told = "Error: NOT_DEPLOYED: the features of this release are not installed; run: jobq deploy\n"
    for command in ("limits", "list"), ("emit", "e"), ("queues",):
        done = invoked(core, *command)
        assert (done.returncode, done.stderr) == (1, told)


def test_the_command_prints_it() -> None:
    done = invoked("", "sql", "--core")
    assert done.stdout == render.single_file(ROOT, 1)
