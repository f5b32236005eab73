"""Sqitch's project: deploy, verify, revert, adopt, rework, and the two gates."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import snapshot
from catalog import catalog, seeds
from jobq import deploy
from servers import ROOT, Cluster, copy_project, take_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("sqitch")

PATIENCE = 60.0


@pytest.fixture(scope="module", autouse=True)
def _deploy_the_copy(project: Path) -> Iterator[None]:
    """Let jobq.deploy use the copy that the other databases are made from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deploy, "project_dir", lambda: project)
        yield


@pytest.fixture(scope="module")
def deployed(cluster: Cluster) -> Iterator[str]:
    """The URL of a database that Sqitch has deployed, change by change."""
    with cluster.database(template="template0") as url:
        deploy._upgrade(url, print)
        yield url


def scalar(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def schemas(url: str) -> object:
    query = "select count(*) from pg_namespace where nspname like 'jobq%'"
    return scalar(url, query)


def test_snapshot_is_up_to_date() -> None:
    script = ROOT / "sql" / "snapshot.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"run make snapshot:\n{done.stdout}{done.stderr}"


def test_a_deployed_database_is_verified(deployed: str) -> None:
    assert "Verify successful" in deploy.verify(deployed)


def test_deploying_twice_changes_nothing(deployed: str) -> None:
    assert "Nothing to deploy" in deploy.deploy(deployed)


def test_an_empty_database_is_not_adopted(empty_database: str) -> None:
    with pytest.raises(deploy.DeployError, match="Verify script"):
        deploy.adopt(empty_database)


def test_verify_notices_damage(cluster: Cluster, deployed: str) -> None:
    name = conninfo_to_dict(deployed)["dbname"]
    with cluster.database(template=str(name)) as damaged:
        with psycopg.connect(damaged) as connection:
            connection.execute("drop function jobq.claim_job")
            connection.execute("grant execute on function jobq.cancel to public")
            connection.execute("drop trigger job_birth on jobq_private.job")
        with pytest.raises(deploy.DeployError, match="verify failed") as raised:
            deploy.verify(damaged)
    for change in ("work", "job"):
        assert f'Verify script "verify/{change}.sql" failed' in str(raised.value)


def test_a_change_that_a_killed_deployment_left_unrecorded_is_recorded(
    project: Path, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between a change's commit and Sqitch's note of it, held there by a lock."""
    copy = copy_project(tmp_path, project)
    plan = (copy / "sqitch.plan").read_text()
    (copy / "sqitch.plan").write_text(plan[: plan.index("work_tables ")])
    monkeypatch.setattr(deploy, "project_dir", lambda: copy)
    sqitch(copy, "deploy", "--to", "job_tables", target=empty_database)
    with (
        psycopg.connect(empty_database) as holder,
        psycopg.connect(empty_database, autocommit=True) as watcher,
    ):
        holder.execute("lock table sqitch.events in share mode")
        target, environment = deploy._target(empty_database)
        killed = subprocess.Popen(
            ["sqitch", "deploy", target],
            cwd=copy, env=os.environ | environment | deploy._identity(),
            stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            await_lock(watcher, "sqitch.events")
        finally:
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait()
    assert scalar(empty_database, "select to_regtype('jobq_private.cron') is not null")
    assert "+ cron_types" not in deploy.deploy(empty_database)
    assert "Verify successful" in deploy.verify(empty_database)


def test_an_installation_that_was_killed_before_all_was_noted_goes_on(
    database: str,
) -> None:
    """Everything is there, and Sqitch has noted all but tables, rules and code at the end."""
    before = catalog(database)
    deploy._sqitch(database, "deploy", "--log-only", "--to", "limit_tables")
    deploy.deploy(database)
    assert "Verify successful" in deploy.verify(database)
    assert catalog(database) == before


def await_lock(watcher: psycopg.Connection[tuple[object, ...]], table: str) -> None:
    """Return as soon as somebody waits for a table."""
    waits = "select from pg_locks where not granted and relation = %s::regclass"
    deadline = time.monotonic() + PATIENCE
    while watcher.execute(waits, [table]).fetchone() is None:
        assert time.monotonic() < deadline, f"nobody waits for {table}"


@contextmanager
def suppress_that_it_exists() -> Iterator[None]:
    """Pass over psql's failure when what it was to make is there."""
    try:
        yield
    except AssertionError as error:
        if "already exists" not in str(error):
            raise


def test_every_change_can_be_repeated_or_says_that_it_is_there(
    cluster: Cluster, database: str
) -> None:
    """What a killed deployment left behind is found by these words alone."""
    before = catalog(database)
    plan = snapshot.Plan.read((cluster.project / "sqitch.plan").read_text())
    for path in plan.scripts():
        script = cluster.project / "deploy" / f"{path}.sql"
        with suppress_that_it_exists():
            cluster.psql(database, script)
    assert catalog(database) == before


def test_the_single_file_builds_the_same_catalog(deployed: str, database: str) -> None:
    assert catalog(database) == catalog(deployed)
    assert seeds(database) == seeds(deployed)


@pytest.mark.every_version
def test_loading_the_sources_again_changes_nothing(cluster: Cluster, database: str) -> None:
    before = catalog(database)
    plan = snapshot.Plan.read((cluster.project / "sqitch.plan").read_text())
    topics = snapshot.read_topics(cluster.project)
    ordered = [topics[name].text for name in plan.scripts() if name in topics]
    cluster.psql(database, "set role jobq_owner;\n" + "\n".join(ordered))
    assert len(ordered) == len(topics)
    assert catalog(database) == before


def test_an_empty_database_gets_the_single_file_and_sqitchs_record(
    empty_database: str,
) -> None:
    assert "installed" in deploy.deploy(empty_database)
    assert "Nothing to deploy" in deploy.deploy(empty_database)
    assert "Verify successful" in deploy.verify(empty_database)


def test_without_sqitch_an_empty_database_is_installed_and_no_other_upgraded(
    empty_database: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    deploy.deploy(empty_database)
    assert catalog(empty_database) == catalog(database)
    with pytest.raises(deploy.DeployError, match="sqitch, which upgrades it, is not") as raised:
        deploy.deploy(empty_database)
    assert "install sqitch" in raised.value.remedy


def test_what_the_single_file_made_is_adopted_by_the_next_deploy(database: str) -> None:
    """Sqitch verifies each change as it records it, as the test of an empty database shows."""
    lines: list[str] = []
    deploy.deploy(database, lines.append)
    assert lines[0] == "taking over what jobq.sql installed"
    assert "Nothing to deploy" in deploy.deploy(database)


def test_a_database_of_another_encoding_is_refused(cluster: Cluster) -> None:
    with psycopg.connect(cluster.server.url, autocommit=True) as connection:
        connection.execute("create database latin encoding 'LATIN1' locale 'C' template template0")
        url = cluster.server.url_of("latin")
        try:
            with pytest.raises(deploy.DeployError, match=r"encoding is UTF8\n.*LATIN1"):
                deploy.deploy(url)
            assert schemas(url) == 0
        finally:
            connection.execute("drop database latin with (force)")


def test_a_second_load_of_the_single_file_is_refused(cluster: Cluster, database: str) -> None:
    before = catalog(database)
    with pytest.raises(AssertionError, match="already exists"):
        cluster.psql(database, cluster.project / "jobq.sql")
    assert catalog(database) == before


OLD_HELPER = """
create or replace function jobq_private.old_helper() returns integer
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as 'select 1';
revoke all on function jobq_private.old_helper from public;
"""


def test_a_released_topic_is_reworked(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One function in other words, one with a parameter more, one gone, one new; and back."""
    copy = copy_project(tmp_path, project)
    monkeypatch.setattr(deploy, "project_dir", lambda: copy)
    helper = copy / "sql" / "job" / "private" / "old_helper.sql"
    helper.write_text(OLD_HELPER)
    take_snapshot(copy)
    sqitch(copy, "tag", "v1", "--note", "first")
    cluster.psql(empty_database, copy / "jobq.sql")
    deploy.adopt(empty_database)
    before = catalog(empty_database)

    new_id = copy / "sql" / "job" / "private" / "new_id.sql"
    new_id.write_text(new_id.read_text().replace("A new UUID", "A newer UUID"))
    with pytest.raises(snapshot.SnapshotError, match="sqitch rework job"):
        snapshot.render(copy)

    sqitch(copy, "rework", "job", "--note", "better words")
    helper.unlink()
    helper.with_name("new_helper.sql").write_text(OLD_HELPER.replace("old_helper", "new_helper"))
    floor = copy / "sql" / "job" / "private" / "id_floor.sql"
    floor.write_text(
        re.sub(
            r"id_floor\((\w+) timestamptz\)",
            r"id_floor(\1 timestamptz, more integer default 0)",
            floor.read_text(),
        )
    )
    take_snapshot(copy)
    deploy.deploy(empty_database)
    assert functions(empty_database, "id_floor") == ["timestamp with time zone, integer"]
    assert functions(empty_database, "new_helper") == [""]
    assert functions(empty_database, "old_helper") == []
    comment = "select obj_description('jobq_private.new_id'::regproc)"
    assert scalar(empty_database, comment) == "A newer UUID of version 7."

    sqitch(copy, "revert", "-y", "--to", "@v1", target=empty_database)
    assert catalog(empty_database) == before


def functions(url: str, name: str) -> list[str]:
    """Return the types of the parameters of each private function of a name."""
    query = """
        select pg_get_function_identity_arguments(p.oid) from pg_proc as p
        where p.pronamespace = 'jobq_private'::regnamespace and p.proname = %s
    """
    with psycopg.connect(url) as connection:
        rows = connection.execute(query, [name]).fetchall()
    return [", ".join(a.split(" ", 1)[1] for a in row[0].split(", ") if a) for row in rows]


def test_the_single_file_of_a_reworked_project_has_both_versions(
    project: Path, tmp_path: Path
) -> None:
    copy = copy_project(tmp_path, project)
    sqitch(copy, "tag", "v1", "--note", "first")
    sqitch(copy, "rework", "job", "--note", "better words")
    single_file = take_snapshot(copy)["jobq.sql"]
    assert single_file.count("-- Deploy jobq:job to pg") == 2


def test_a_new_column_is_copied_by_what_copies_jobs(project: Path, tmp_path: Path) -> None:
    """One line in the table's definition; a change after a tag counts as well."""
    copy = copy_project(tmp_path, project)
    tables = copy / "deploy" / "job_tables.sql"
    text = tables.read_text().replace(
        "    progress jsonb,\n", "    progress jsonb,\n    colour text,\n"
    )
    tables.write_text(f"{text}\nalter table jobq_private.job add column shape text;\n")
    taken = take_snapshot(copy)
    for name, alias in (
        ("archive_jobs", "g"),
        ("archive_redrive", "new"),
        ("redrive_jobs", "a"),
    ):
        source = taken[f"sql/job/private/{name}.sql"]
        for column in ("colour", "shape"):
            assert len(re.findall(rf" {column},?\s", source)) == 1
            assert len(re.findall(rf"\b{alias}\.{column},?\s", source)) == 1


def test_a_list_of_columns_names_what_is_there(project: Path, tmp_path: Path) -> None:
    copy = copy_project(tmp_path, project)
    tables = copy / "deploy" / "job_tables.sql"
    tables.write_text(tables.read_text().replace("    place smallint,\n", ""))
    with pytest.raises(snapshot.SnapshotError, match="job has no column place"):
        snapshot.render(copy)


def test_topics_that_need_each_other_are_refused(project: Path, tmp_path: Path) -> None:
    copy = copy_project(tmp_path, project)
    for name, origin in (("work/a", "error"), ("audit/b", "a"), ("work/c", "b")):
        view = f"create or replace view jobq.{name[-1]} as select * from jobq.{origin};\n"
        (copy / "sql" / f"{name}.sql").write_text(view)
    with pytest.raises(snapshot.SnapshotError, match="need each other: audit work audit"):
        snapshot.render(copy)


def test_revert_leaves_nothing_and_deploy_starts_over(deployed: str) -> None:
    before = catalog(deployed)
    deploy.revert(deployed)
    assert schemas(deployed) == 0
    deploy.deploy(deployed)
    assert catalog(deployed) == before


def sqitch(project: Path, verb: str, *options: str, target: str | None = None) -> None:
    """Run Sqitch in a project, as its author does."""
    environment = dict(os.environ)
    arguments = list(options)
    if target is not None:
        name, variables = deploy._target(target)
        environment |= variables
        arguments.append(name)
    subprocess.run(
        ["sqitch", verb, *arguments],
        cwd=project,
        env=environment | deploy._identity(),
        check=True,
        capture_output=True,
    )
