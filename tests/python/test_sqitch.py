"""Sqitch's project: deploy, verify, revert, adopt, rework, and the two gates."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from released import rename, sqitch
from waiting import until

import render
from catalog import catalog, seeds
from jobq import __version__
from jobq_operations import deploy
from jobq_operations.schema import compare, release_of
from servers import ROOT, Cluster, copy_project, copy_unreleased

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PATIENCE = 60.0
of_deployed = pytest.mark.xdist_group("sqitch")
"""Marks what shares a database that took Sqitch long to deploy."""


@pytest.fixture(scope="session")
def exported(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy that the other databases are made from, with rendered scripts as in the wheel.

    They cost a third of those of a checkout, which run Python for each change.
    """
    folder = tmp_path_factory.mktemp("project") / "exported"
    render.export(project, folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _deploy_the_copy(exported: Path) -> Iterator[None]:
    """Let jobq.deploy use it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deploy, "project_dir", lambda: exported)
        yield


@pytest.fixture(scope="module")
def deployed(cluster: Cluster) -> Iterator[str]:
    """The URL of a database that Sqitch has reverted, and then deployed change by change."""
    with cluster.database() as url:
        deploy.adopt(url)
        deploy.revert(url)
        assert schemas(url) == 0
        assert deploy.deploy(url) == "the schema is up to date", "a script failed"
        yield url


def scalar(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def recorded(url: str) -> list[str]:
    """Return the names of the changes that Sqitch has recorded."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("select change from sqitch.changes order by committed_at")
        return [row[0] for row in rows]


def keep_changes(project: Path, *names: str) -> None:
    """Shorten a plan to the first line of each of these changes: each costs 0.2 s."""
    plan = project / "sqitch.plan"
    head = plan.read_text().partition("\n\n")[0]
    first = {render.name_of(line): line for line in reversed(render.read_plan(project))}
    plan.write_text("\n".join([head, "", *(first[name] for name in names), ""]))


def schemas(url: str) -> object:
    query = "select count(*) from pg_namespace where nspname like 'jobq%'"
    return scalar(url, query)


def test_the_plan_and_the_lists_of_columns_are_up_to_date() -> None:
    assert render.check(ROOT) == []


def test_the_core_is_chosen_by_floor() -> None:
    core = render.single_file(ROOT, 1)
    changes = re.findall(r"^-- Deploy jobq:(\w+) to pg$", core, re.MULTILINE)
    assert {name.split("_")[0] for name in changes} == {"schemas", *render.FLOORS[1].split()}


def test_a_topic_without_python_is_not_deployed_as_nothing(
    empty_database: str, project: Path, tmp_path: Path
) -> None:
    copy = copy_project(tmp_path, project)
    (copy / "sql" / "render.py").unlink()
    keep_changes(copy, "schemas", "error_tables", "error")
    with pytest.raises(subprocess.CalledProcessError):
        sqitch(copy, "deploy", target=empty_database)
    assert recorded(empty_database) == ["schemas", "error_tables"]


@pytest.mark.prove
@pytest.mark.long
def test_rendered_scripts_and_those_of_the_checkout_do_the_same(
    cluster: Cluster, empty_database: str, database: str, project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The rendered ones build what the single file does, as another test shows."""
    monkeypatch.chdir(project)
    names = render.scripts(render.read_plan(project))
    run(cluster, empty_database, "deploy", names)
    assert catalog(empty_database) == catalog(database)
    current = [name for name in names if "@" not in name]
    run(cluster, empty_database, "verify", current)
    with psycopg.connect(empty_database) as connection:
        connection.execute("drop function jobq.claim_job")
    with pytest.raises(AssertionError, match=r"verify/work\.sql:.*claim_job"):
        run(cluster, empty_database, "verify", current)
    run(cluster, empty_database, "revert", reversed(names))
    assert schemas(empty_database) == 0


def run(cluster: Cluster, url: str, verb: str, names: Iterable[str]) -> None:
    """Run scripts as Sqitch does, all in one psql: Sqitch starts two for each."""
    lines = (f"begin;\n\\i {verb}/{name}.sql\nrollback;" for name in names)
    if verb != "verify":
        lines = (f"\\i {verb}/{name}.sql" for name in names)
    cluster.psql(url, "\n".join(lines))


@of_deployed
def test_a_deployed_database_is_verified(deployed: str) -> None:
    assert "Verify successful" in deploy.verify(deployed)


@of_deployed
def test_deploying_twice_changes_nothing(deployed: str) -> None:
    lines: list[str] = []
    deploy.deploy(deployed, lines.append)
    assert lines == [
        "Nothing to deploy (up-to-date)", "comparing the schema with this release",
        "the schema is up to date",
    ]  # fmt: skip


def test_an_empty_database_is_not_adopted(empty_database: str) -> None:
    with pytest.raises(deploy.DeployError, match="this database has no jobq"):
        deploy.adopt(empty_database)


@of_deployed
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


@pytest.mark.prove
def test_a_change_that_a_killed_deployment_left_unrecorded_is_recorded(
    exported: Path, empty_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between a change's commit and Sqitch's note of it, held there by a lock."""
    copy = shutil.copytree(exported, tmp_path / "copy")
    cut_plan(copy, "delivery_tables")
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
    assert scalar(empty_database, "select to_regclass('jobq_private.worker') is not null")
    assert "+ work_tables" not in deploy._let_sqitch_deploy(empty_database, print)
    assert "Verify successful" in deploy.verify(empty_database)


@pytest.mark.prove
@pytest.mark.long
def test_an_installation_that_was_killed_before_all_was_noted_goes_on(
    exported: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is there, and Sqitch has noted all but a table, rules and code at the end."""
    before = catalog(database)
    copy = shutil.copytree(exported, tmp_path / "copy")
    cut_plan(copy, "error")
    monkeypatch.setattr(deploy, "project_dir", lambda: copy)
    deploy._sqitch(database, "deploy", "--log-only", "--to", "shard_tables")
    deploy.deploy(database)
    assert "Nothing to deploy" in deploy._let_sqitch_deploy(database, print)
    assert catalog(database) == before


def cut_plan(project: Path, name: str) -> None:
    """Remove a change and all after it from a plan."""
    plan = project / "sqitch.plan"
    plan.write_text(re.sub(rf"(?ms)^{name} .*", "", plan.read_text()))


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
    cluster: Cluster, database: str, empty_database: str, exported: Path
) -> None:
    """What a killed deployment left behind is found by these words alone."""
    for name in render.scripts(render.read_plan(exported)):
        script = exported / "deploy" / f"{name}.sql"
        cluster.psql(empty_database, script)
        with suppress_that_it_exists():
            cluster.psql(empty_database, script)
    assert catalog(empty_database) == catalog(database)


@of_deployed
def test_the_single_file_builds_the_same_catalog(deployed: str, database: str) -> None:
    assert catalog(database) == catalog(deployed)
    assert seeds(database) == seeds(deployed)


@pytest.mark.oldest_version
def test_loading_the_sources_again_changes_nothing(cluster: Cluster, database: str) -> None:
    before = catalog(database)
    scripts = render.scripts(render.read_plan(cluster.project))
    # In the order of their first lines: a later one of `job` alone leaves the hooks as they are.
    plan = dict.fromkeys(name.partition("@")[0] for name in scripts)
    topics = [name for name in plan if name in render.topics(cluster.project)]
    ordered = [render.join(render.read_topic(cluster.project, name)).text for name in topics]
    cluster.psql(database, "set role jobq_owner;\n" + "\n".join(ordered))
    assert len(ordered) > 5
    assert catalog(database) == before


def test_an_empty_database_gets_the_single_file_and_sqitchs_record(
    empty_database: str,
) -> None:
    assert "installed" in deploy.deploy(empty_database)
    assert "is up to date" in deploy.deploy(empty_database)
    assert deploy._pending(empty_database) == []


@pytest.mark.prove
def test_without_sqitch_an_empty_database_is_installed_and_no_table_changed(
    empty_database: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    deploy.deploy(empty_database)
    assert catalog(empty_database) == catalog(database)
    assert "is up to date" in deploy.deploy(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("alter table jobq_private.job add column colour text")
    with pytest.raises(deploy.DeployError, match=r"column jobq_private\.job\.colour") as raised:
        deploy.deploy(empty_database)
    assert "install sqitch" in raised.value.remedy


def test_what_the_single_file_made_is_adopted_by_the_next_deploy(database: str) -> None:
    deploy.deploy(database)
    assert deploy._pending(database) == []


@pytest.mark.prove
def test_code_of_another_commit_is_brought_up_to_date(
    cluster: Cluster, empty_database: str, database: str, project: Path, tmp_path: Path
) -> None:
    """Other words, other parameters, a column more, objects that are gone, and an error's hint."""
    stale = copy_project(tmp_path, project)
    code = stale / "sql" / "job" / "private"
    (code / "old_helper.sql").write_text(OLD_HELPER)
    (code / "old_view.sql").write_text(
        "-- Purpose: a view.\n"
        "create or replace view jobq_private.old_view as select jobq_private.old_helper();"
    )
    edit(
        stale / "sql" / "workflow" / "private" / "id_floor.sql",
        r"id_floor\((\w+) timestamptz\)",
        r"id_floor(\1 timestamptz, x int)",
    )
    edit(stale / "sql" / "job" / "cancel.sql", "-- Purpose: .*", "-- Purpose: Stops a job.")
    edit(stale / "sql" / "admin" / "replica_lag.sql", r"grant .*", "")
    view = stale / "sql" / "error" / "error.sql"
    edit(view, r"(?m)^select ", "select 1 as more, ")
    edit(stale / "deploy" / "error_tables.sql", "job not found", "job is not there")
    cluster.psql(empty_database, render.single_file(stale))
    assert catalog(empty_database) != catalog(database)

    said = deploy.deploy(empty_database)
    assert "routine jobq_private.old_helper() is not of this release" in said
    assert catalog(empty_database) == catalog(database)
    assert seeds(empty_database) == seeds(database)


def edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace what a pattern finds in a file, which must be something."""
    text, count = re.subn(pattern, replacement, path.read_text())
    assert count, f"{path} has no {pattern}"
    path.write_text(text)


@pytest.mark.prove
def test_tables_of_another_commit_are_refused_and_named(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path
) -> None:
    stale = copy_project(tmp_path, project)
    edit(stale / "deploy" / "admin_tables.sql", "took interval not null", "took bigint not null")
    edit(stale / "sql" / "job" / "cancel.sql", "-- Purpose: .*", "-- Purpose: Stops a job.")
    cluster.psql(empty_database, render.single_file(stale))
    with pytest.raises(deploy.DeployError, match=r"not those of this release: column "
                       r"jobq_private\.waiting_count\.took is another"):  # fmt: skip
        deploy.deploy(empty_database)
    took = [each for each in catalog(empty_database) if str(each[1]).endswith("waiting_count.took")]
    assert "bigint" in str(took[0][2])


@pytest.mark.prove
@pytest.mark.long
def test_a_record_that_sqitch_does_not_understand_is_made_anew(
    empty_database: str, database: str, exported: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A commit between releases had other changes; its tables are the same."""
    stale = shutil.copytree(exported, tmp_path / "stale")
    edit(stale / "sqitch.plan", "(?m)^http 2026-11-22T01", "http 2026-11-22T02")
    with monkeypatch.context() as patch:
        patch.setattr(deploy, "project_dir", lambda: stale)
        deploy.deploy(empty_database)
    deploy.deploy(empty_database)
    assert "Nothing to deploy" in deploy._let_sqitch_deploy(empty_database, print)
    assert catalog(empty_database) == catalog(database)


@pytest.mark.prove
@pytest.mark.oldest_version
def test_what_was_damaged_is_made_anew(database: str) -> None:
    """And `jobq doctor` names each damage before."""
    before = catalog(database)
    script = deploy.single_file()
    release = release_of(script)
    asked = "select is_ok, finding from jobq.health(null, %s) where subject = 'schema'"
    unchanged = (True, "the schema is unchanged since its deployment")
    with psycopg.connect(database, autocommit=True) as connection:
        for damage, name in DAMAGES.items():
            with connection.transaction(force_rollback=True):
                connection.execute(damage)
                found = connection.execute(asked, [release]).fetchone()
                assert found is not None and not found[0] and name in found[1], damage
            assert connection.execute(asked, [release]).fetchone() == unchanged
        for damage in DAMAGES:
            connection.execute(damage)
        differing = "; ".join(map(str, compare(connection, script)[1]))
        assert [name for name in DAMAGES.values() if name not in differing] == []
        deploy._mend(database, print, None)
        assert connection.execute(asked, [release]).fetchone() == unchanged
    assert catalog(database) == before


@pytest.mark.prove
def test_a_deployment_waits_for_others_briefly_and_names_them(database: str) -> None:
    """It waits a second at a time, so nobody waits behind it for longer."""
    with psycopg.connect(database) as holder:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("drop trigger job_birth on jobq_private.job")
        pid = holder.info.backend_pid
        holder.execute("select from jobq_private.job; lock table jobq_private.job in share mode")

        def heard(line: str) -> None:
            lines.append(line)
            if line.startswith("waiting"):
                holder.rollback()

        lines: list[str] = []
        said = deploy.deploy(database, heard)
    assert said == "brought to this release: trigger job_birth on jobq_private.job is missing"
    waits = [line for line in lines if line.startswith("waiting")]
    assert waits
    assert f"waiting for pid {pid} (, idle in transaction, for " in waits[0]


@pytest.mark.prove
def test_deployments_that_meet_in_an_empty_database_install_it_once(
    empty_database: str, database: str
) -> None:
    with ThreadPoolExecutor() as pool:
        said = list(pool.map(deploy.deploy, [empty_database] * 3))
    assert sum(line.startswith("schema installed") for line in said) == 1
    assert said.count("the schema is up to date") == 2
    assert catalog(empty_database) == catalog(database)
    assert "Nothing to deploy" in deploy._let_sqitch_deploy(empty_database, print)


def add_column(project: Path, name: str) -> None:
    """Add a hand-written change, which adds a column to the table of throttles."""
    for verb, text in (
        # In capitals, as `sqitch add` writes it.
        ("deploy", "BEGIN;\nset local role jobq_owner;\nalter table jobq_private.throttle"
                   f" add column {name} text;\nCOMMIT;"),
        ("revert", f"alter table jobq_private.throttle drop column {name};"),
        ("verify", f"select {name} from jobq_private.throttle where false;"),
    ):  # fmt: skip
        path = project / verb / f"throttle_{name}.sql"
        path.write_text(f"-- jobq:throttle_{name}\n{text}\n")
    with (project / "sqitch.plan").open("a") as plan:
        plan.write(f"throttle_{name} 2026-11-24T01:00:00Z {render.PLANNER} # A column\n")


@pytest.fixture(scope="module")
def release(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one release, of this version."""
    copy = copy_unreleased(tmp_path_factory.mktemp("release"), project)
    render.release(copy, f"v{__version__}")
    return copy


@pytest.fixture
def released_copy(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to change."""
    copy = shutil.copytree(release, tmp_path / "copy")
    monkeypatch.setattr(deploy, "project_dir", lambda: copy)
    return copy


@pytest.fixture(scope="module")
def of_release(cluster: Cluster, release: Path) -> Iterator[str]:
    """The name of a database where that release is deployed."""
    with cluster.database() as url:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deploy, "project_dir", lambda: release)
            deploy.deploy(url)
        yield str(conninfo_to_dict(url)["dbname"])


@pytest.fixture
def deployed_release(cluster: Cluster, of_release: str) -> Iterator[str]:
    """The URL of a copy of it."""
    with cluster.database(template=of_release) as url:
        yield url


@pytest.mark.prove
@of_deployed
def test_tables_of_a_release_that_psql_installed_are_upgraded(
    database: str, released_copy: Path
) -> None:
    add_column(released_copy, "colour")
    with pytest.raises(deploy.DeployError, match=r"colour is missing.*run `jobq deploy`"):
        deploy.verify(database)
    deploy.deploy(database)
    assert scalar(database, "select count(colour) from jobq_private.throttle") == 0
    assert deploy._pending(database) == []


@of_deployed
@pytest.mark.parametrize("way", ["deploy", pytest.param("adopt", marks=pytest.mark.prove)])
def test_what_psql_installed_of_a_release_without_some_functions_is_recorded(
    cluster: Cluster, empty_database: str, released_copy: Path, way: str
) -> None:
    """The scripts that verify the release before name those functions."""
    rename(released_copy, "work", "wake")
    render.update(released_copy)
    cluster.psql(empty_database, render.single_file(released_copy))
    getattr(deploy, way)(empty_database)
    assert deploy._pending(empty_database) == []


@of_deployed
@pytest.mark.prove
def test_a_column_that_a_killed_deployment_left_unrecorded_is_recorded(
    cluster: Cluster, deployed_release: str, released_copy: Path
) -> None:
    for name in ("colour", "shape"):
        add_column(released_copy, name)
    cluster.psql(deployed_release, released_copy / "deploy" / "throttle_colour.sql")
    deploy.deploy(deployed_release)
    assert scalar(deployed_release, "select count(shape) from jobq_private.throttle") == 0
    assert recorded(deployed_release)[-2:] == ["throttle_colour", "throttle_shape"]


def test_a_database_of_a_newer_release_is_left_as_it_is(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "create or replace function jobq.version() returns text language sql"
            " as $$select '99.1.0'$$"
        )
    before = catalog(database)
    for act in (deploy.deploy, deploy.verify, lambda url: deploy.revert(url, "1.0.0")):
        with pytest.raises(deploy.DeployError, match=r"has jobq 99\.1\.0, .* newer") as raised:
            act(database)
        assert raised.value.remedy.startswith("use jobq 99.1.0")
    assert catalog(database) == before


def test_a_user_without_rights_gets_the_remedy(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create role nobody_in_particular login password 'secret'")
        try:
            url = make_conninfo(database, user="nobody_in_particular", password="secret")
            for act in (deploy.deploy, deploy.verify, deploy.adopt):
                with pytest.raises(deploy.DeployError, match="user may not deploy") as raised:
                    act(url)
                assert raised.value.remedy.startswith("use the login that deployed it before")
        finally:
            connection.execute("drop role nobody_in_particular")


@pytest.mark.prove
def test_a_database_without_records_is_verified_by_comparison(
    database: str, empty_database: str
) -> None:
    assert deploy.verify(database) == "the schema is that of this release"
    with psycopg.connect(database) as connection:
        connection.execute("drop trigger job_birth on jobq_private.job")
    with pytest.raises(deploy.DeployError, match=r"trigger job_birth .* is missing") as raised:
        deploy.verify(database)
    assert raised.value.remedy == "run `jobq deploy`"
    with pytest.raises(deploy.DeployError, match="this database has no jobq; run `jobq deploy`"):
        deploy.verify(empty_database)


@pytest.mark.prove
@of_deployed
def test_upgrades_that_meet_wait_for_each_other(
    deployed_release: str, released_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=1s")
    add_column(released_copy, "colour")
    lines: list[str] = []
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: deploy.deploy(deployed_release, lines.append), range(2)))
    assert "waiting for another deployment" in lines
    assert [line for line in lines if "Blocked" in line or "not ok" in line] == []
    assert sum("+ throttle_colour" in line for line in lines) == 1


def test_the_lock_of_a_deployment_outlives_the_timeout_of_idle_sessions(
    empty_database: str,
) -> None:
    name = conninfo_to_dict(empty_database)["dbname"]
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(f'alter database "{name}" set idle_session_timeout = 100'.encode())
    with deploy._alone(empty_database, print):
        other = psycopg.connect(empty_database)
        session = f"select count(*) from pg_stat_activity where pid = {other.info.backend_pid}"
        until(lambda: scalar(empty_database, session) == 0)
        locks = "select count(*) from pg_locks where locktype = 'advisory'"
        assert scalar(empty_database, locks) == 1
    other.close()


@pytest.mark.prove
@of_deployed
def test_an_upgrade_of_tables_waits_for_others_briefly(
    deployed_release: str, released_copy: Path
) -> None:
    add_column(released_copy, "colour")
    with psycopg.connect(deployed_release) as holder:
        pid = holder.info.backend_pid
        holder.execute("select from jobq_private.throttle")

        def heard(line: str) -> None:
            lines.append(line)
            if line.startswith("waiting"):
                holder.rollback()

        lines: list[str] = []
        deploy.deploy(deployed_release, heard)
    assert any(f"waiting for pid {pid}" in line for line in lines)
    assert lines[-1] == "the schema is up to date"
    assert scalar(deployed_release, "select count(colour) from jobq_private.throttle") == 0


DAMAGES = {
    "drop view jobq.worker cascade": "view jobq.worker",
    "drop trigger job_birth on jobq_private.job": "trigger job_birth on jobq_private.job",
    "alter table jobq_private.job drop constraint job_transition_fkey":
        "constraint job_transition_fkey on jobq_private.job",
    "create index other on jobq_private.queue (queue)":
        "index jobq_private.other",
    "update pg_index set indisvalid = false"
    " where indexrelid = 'jobq_private.job_lease_idx'::regclass":
        "index jobq_private.job_lease_idx",
    "drop index jobq_private.job_blocked_idx": "index jobq_private.job_blocked_idx",
    "drop policy job_delete on jobq_private.job": "policy job_delete on jobq_private.job",
    "revoke execute on function jobq.claim from jobq_worker": "grant execute on routine jobq.claim",
    "grant execute on function jobq.cancel to public": "grant execute on routine jobq.cancel",
    "alter function jobq.redrive owner to current_user": "owner of routine jobq.redrive",
    "alter table jobq_private.throttle owner to current_user":
        "owner of table jobq_private.throttle",
}  # fmt: skip


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


def test_a_database_that_is_read_only_is_refused_with_the_remedy(
    database: str, empty_database: str
) -> None:
    for url in (database, empty_database):
        read_only = make_conninfo(url, options="-c default_transaction_read_only=on")
        with pytest.raises(deploy.DeployError, match="the database is read-only") as raised:
            deploy.deploy(read_only)
        assert "reset default_transaction_read_only" in raised.value.remedy


def test_a_second_load_of_the_single_file_is_refused(cluster: Cluster, database: str) -> None:
    before = catalog(database)
    with pytest.raises(AssertionError, match="already exists"):
        cluster.psql(database, cluster.project / "jobq.sql")
    assert catalog(database) == before


OLD_HELPER = """\
-- Purpose: a helper.
create or replace function jobq_private.old_helper() returns integer
language sql immutable parallel safe security invoker
set search_path = pg_catalog, pg_temp
as 'select 1';
revoke all on function jobq_private.old_helper from public;
"""


@pytest.mark.prove
@pytest.mark.long
def test_a_released_topic_is_reworked(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One function in other words, one with a parameter more, one gone, one new; and back."""
    copy = copy_unreleased(tmp_path, project)
    monkeypatch.chdir(copy)
    helper = copy / "sql" / "job" / "private" / "old_helper.sql"
    helper.write_text(OLD_HELPER)
    render.release(copy, "v1")
    cluster.psql(empty_database, render.single_file(copy))
    before = catalog(empty_database)

    cancel = copy / "sql" / "job" / "cancel.sql"
    cancel.write_text(cancel.read_text() + "comment on function jobq.cancel is 'Stops it.';\n")
    assert "sqitch.plan is stale: run make update" in render.check(copy)
    helper.unlink()
    helper.with_name("new_helper.sql").write_text(OLD_HELPER.replace("old_helper", "new_helper"))
    floor = copy / "sql" / "workflow" / "private" / "id_floor.sql"
    floor.write_text(
        re.sub(
            r"id_floor\((\w+) timestamptz\)",
            r"id_floor(\1 timestamptz, more integer default 0)",
            floor.read_text(),
        )
    )
    assert "sqitch.plan" in render.update(copy)
    assert render.check(copy) == []
    pending = names_after(copy, "@v1")
    run(cluster, empty_database, "deploy", pending)
    assert functions(empty_database, "id_floor") == ["timestamp with time zone, integer"]
    assert functions(empty_database, "new_helper") == [""]
    assert functions(empty_database, "old_helper") == []
    comment = "select obj_description('jobq.cancel'::regproc)"
    assert scalar(empty_database, comment) == "Stops it."

    run(cluster, empty_database, "revert", reversed(pending))
    assert catalog(empty_database) == before


def names_after(project: Path, tag: str) -> list[str]:
    """Return the names of the scripts after a tag of the plan."""
    plan = render.read_plan(project)
    place = next(n for n, line in enumerate(plan) if render.name_of(line) == tag)
    return render.scripts(plan)[sum(line[0] != "@" for line in plan[:place]) :]


def functions(url: str, name: str) -> list[str]:
    """Return the types of the parameters of each private function of a name."""
    query = """
        select pg_get_function_identity_arguments(p.oid) from pg_proc as p
        where p.pronamespace = 'jobq_private'::regnamespace and p.proname = %s
    """
    with psycopg.connect(url) as connection:
        rows = connection.execute(query, [name]).fetchall()
    return [", ".join(a.split(" ", 1)[1] for a in row[0].split(", ") if a) for row in rows]


@pytest.mark.prove
@pytest.mark.long
def test_an_upgrade_and_a_new_database_have_the_same_catalog(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Over two releases, of which the second changes nothing."""
    copy = copy_unreleased(tmp_path, project)
    monkeypatch.chdir(copy)
    render.release(copy, "v1")
    cluster.psql(empty_database, render.single_file(copy))
    view = copy / "sql" / "job" / "job.sql"
    view.write_text(view.read_text() + "comment on view jobq.job is 'Jobs.';\n")
    for tag in ("v2", "v3"):
        render.update(copy)
        render.release(copy, tag)
    view.write_text(view.read_text() + "comment on view jobq.job is 'All jobs.';\n")
    render.update(copy)
    run(cluster, empty_database, "deploy", names_after(copy, "@v1"))
    with cluster.database(template="template0") as new:
        cluster.psql(new, render.single_file(copy))
        assert catalog(new) == catalog(empty_database)
    stored = {path.name for path in (copy / "deploy").glob("job@*.sql")}
    assert stored == {"job@v1.sql", "job@v2.sql"}


def test_a_new_column_is_copied_by_what_copies_jobs(project: Path, tmp_path: Path) -> None:
    """One line in the table's definition; a change after a tag counts as well."""
    copy = copy_project(tmp_path, project)
    tables = copy / "deploy" / "job_tables.sql"
    text = tables.read_text().replace(
        "    progress jsonb,\n", "    progress jsonb,\n    colour text,\n"
    )
    tables.write_text(f"{text}\nalter table jobq_private.job add column shape text;\n")
    taken = render.updated(copy)
    for name, alias in (
        ("archive_jobs", "g"),
        ("redrive_jobs", "a"),
    ):
        source = taken[f"sql/job/private/{name}.sql"]
        assert source is not None
        for column in ("colour", "shape"):
            assert len(re.findall(rf" {column},?\s", source)) == 1
            assert len(re.findall(rf"\b{alias}\.{column},?\s", source)) == 1


def test_a_list_of_columns_names_what_is_there(project: Path, tmp_path: Path) -> None:
    copy = copy_project(tmp_path, project)
    tables = copy / "deploy" / "job_tables.sql"
    tables.write_text(tables.read_text().replace("    slot smallint,\n", ""))
    with pytest.raises(render.RenderError, match="job has no column slot"):
        render.updated(copy)


def test_topics_that_need_each_other_are_refused(project: Path, tmp_path: Path) -> None:
    copy = copy_project(tmp_path, project)
    for name, origin in (("work/a", "error"), ("admin/b", "a"), ("work/c", "b")):
        view = f"create or replace view jobq.{name[-1]} as select * from jobq.{origin};\n"
        (copy / "sql" / f"{name}.sql").write_text(f"-- Purpose: a view.\n{view}")
    with pytest.raises(render.RenderError, match="need each other: work admin work"):
        render.updated(copy)


def test_a_script_after_a_release_holds_only_what_has_changed(tmp_path: Path) -> None:
    """And a second one only what has changed since the first, also if it is as it was before."""
    copy = copy_unreleased(tmp_path)
    sources = {name: copy / "sql" / "work" / name for name in ("claim.sql", "fail.sql")}
    texts = {path: path.read_text() for path in sources.values()}
    render.release(copy, "v1")

    def change(name: str, text: str) -> str:
        sources[name].write_text(text)
        render.update(copy)
        return render.render_script(copy, render.read_plan(copy), "deploy", "work")

    claim = texts[sources["claim.sql"]]
    script = change("claim.sql", claim.replace("\nbegin\n", "\nbegin\n    null;\n"))
    assert re.findall("create or replace function (\\S+?)\\(", script) == ["jobq.claim"]
    render.release(copy, "v2")
    script = change("claim.sql", claim)
    assert re.findall("create or replace function (\\S+?)\\(", script) == ["jobq.claim"]
    render.release(copy, "v3")
    assert (copy / "sqitch.plan").read_text().count("\nwork ") == 3
    # Layout and comments outside bodies are no change.
    header, head, body = re.split("(?=create or)|(?<=as )(?=[$])", claim, maxsplit=2)
    head = " ".join(head.split()).replace("( ", "(").replace(" )", ")")
    change("claim.sql", f"{header}-- Never: x\n{head} {body}")
    assert (copy / "sqitch.plan").read_text().count("\nwork ") == 3
    script = change("fail.sql", texts[sources["fail.sql"]].replace("jobq.fail", "jobq.lose"))
    assert re.findall("create or replace function (\\S+?)\\(", script) == ["jobq.lose"]
    assert "drop function if exists jobq.fail;" in script
    back = render.render_script(copy, render.read_plan(copy), "revert", "work")
    assert re.findall("create or replace function (\\S+?)\\(", back) == ["jobq.fail"]
    assert "drop function if exists jobq.lose;" in back


def test_a_hook_stays_as_a_release_had_it(tmp_path: Path) -> None:
    copy = copy_unreleased(tmp_path)
    render.release(copy, "v1")
    hook = copy / "sql" / "job" / "private" / "on_store.sql"
    text = hook.read_text()
    for changed in (text.replace("begin\n", "begin\n    null;\n"), text.replace("jobs ", "new ")):
        assert changed != text
        hook.write_text(changed)
        with pytest.raises(render.RenderError, match="on_store is a hook"):
            render.update(copy)
