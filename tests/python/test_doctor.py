"""`jobq doctor` tells a sound system from one that may lose jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, generate_latest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq_cli import doctor as doctor_command
from jobq_cli import main
from jobq_embedded import Server
from jobq_http.metrics import Scrape
from jobq_operations import deploy
from jobq_operations import doctor as doctor_module
from jobq_operations.schema import release_of
from servers import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Connection = psycopg.Connection[tuple[Any, ...]]

pytestmark = pytest.mark.xdist_group("doctor")
PATIENCE = 60.0
MAINTAIN = "select bool_or(has_more) from jobq.maintain()"
# The server is durable, unlike those of other tests. Its autovacuum sleeps: it would put right
# what a test has made look bad.
SETTINGS = {
    "max_notify_queue_pages": "64",
    "max_prepared_transactions": "1",
    "autovacuum_naptime": "1d",
    "max_wal_size": "32MB",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is set as it should be."""
    with Server(tmp_path_factory.mktemp("server"), "18", settings=SETTINGS) as server:
        yield server


@pytest.fixture(scope="module")
def maintained(server: Server, project: Path) -> Iterator[tuple[Cluster, str]]:
    """The cluster, and a database in it that others are copied from, with all its partitions."""
    cluster = Cluster(server, project)
    with cluster.database() as url:
        maintain(url)
        yield cluster, str(conninfo_to_dict(url)["dbname"])


def maintain(url: str) -> None:
    """Do what a worker does for the database, which is alive."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select jobq.heartbeat('w', '{}', '{}')")
        while connection.execute(MAINTAIN).fetchone() == (True,):
            pass


@pytest.fixture
def sound(
    maintained: tuple[Cluster, str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a database that nothing threatens."""
    monkeypatch.setattr(doctor_module, "single_file", (project / "jobq.sql").read_text)
    monkeypatch.setattr(deploy, "project_dir", lambda: project)
    cluster, template = maintained
    with cluster.database(template) as url:
        maintain(url)
        yield url


def doctor(database: str, *options: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["doctor", "--database", database, *options])
    return done.exit_code, done.output


def findings(database: str) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in doctor(database, "--json")[1].splitlines()]
    return {row["subject"]: row for row in rows}


@contextmanager
def switched_off(url: str, setting: str) -> Iterator[None]:
    """Switch a setting of the server off, and on again."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter system set {setting} = off")
        connection.execute("select pg_reload_conf()")
        yield
        connection.execute(f"alter system reset {setting}")
        connection.execute("select pg_reload_conf()")


@contextmanager
def set_for(url: str, subject: str, setting: str) -> Iterator[None]:
    """Set something for a role or a database, and take it back."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"alter {subject} set {setting}")
        yield
        connection.execute(f"alter {subject} reset all")


def use_up_transaction_ids(connection: Connection) -> None:
    """Let a million transactions come and go."""
    connection.execute("set synchronous_commit = off")
    connection.execute(
        "do $$ declare _id xid8; begin for i in 1 .. 1000001 loop _id := pg_current_xact_id();"
        " commit; end loop; end $$"
    )


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Let a session look as if it had begun long ago: others have done much since."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as other:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        use_up_transaction_ids(other)
        yield


@contextmanager
def forgotten_transaction(url: str) -> Iterator[None]:
    """Leave a prepared transaction alone for as long."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("begin")
        connection.execute("select pg_current_xact_id()")
        connection.execute("prepare transaction 'forgotten'")
        use_up_transaction_ids(connection)
        yield
        connection.execute("rollback prepared 'forgotten'")


@contextmanager
def slot_left_behind(url: str) -> Iterator[None]:
    """Keep the server's log for somebody who never comes."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("select pg_create_physical_replication_slot('left_behind', true)")
        for _ in range(9):
            connection.execute("select pg_logical_emit_message(false, '', ''), pg_switch_wal()")
        yield
        connection.execute("select pg_drop_replication_slot('left_behind')")


@contextmanager
def maintenance_kept(url: str) -> Iterator[None]:
    """Leave a transaction open that has called maintain()."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "update jobq_private.history_mark set rolled_to = rolled_to - interval '6 min'"
        )
        connection.execute("begin")
        connection.execute(
            "select pg_advisory_xact_lock(jobq_private.lock_class('maintaining'), 0)"
        )
        yield
        connection.execute("rollback")


@contextmanager
def dead_rows(url: str) -> Iterator[None]:
    """Fill the table of live jobs with rows that no vacuum has removed."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter table jobq_private.job set (autovacuum_enabled = off)")
        with connection.transaction(force_rollback=True):
            connection.execute(
                "select count(*) from jobq.enqueue_many((select jsonb_agg("
                "jsonb_build_object('kind', 'k')) from generate_series(1, 50000)))"
            )
        connection.execute("select pg_stat_force_next_flush()")
        yield


@contextmanager
def hung_listener(url: str) -> Iterator[None]:
    """Fill a good part of the notification queue behind a listener that does not read."""
    with ExitStack() as stack:
        hung, noisy = (stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in range(2))
        hung.execute("listen noise")
        hung.execute("begin")
        hung.execute("select 1")
        usage = "select pg_notification_queue_usage() < 0.3"
        while noisy.execute(usage).fetchone() == (True,):
            noisy.execute("select pg_notify('noise', repeat('x', 7000))")
        yield
        hung.execute("rollback")
        noisy.execute("select pg_notification_queue_usage()")


@contextmanager
def standby(url: str, folder: Path, programs: Path) -> Iterator[None]:
    """Let somebody follow the server's log, as a standby does."""
    follower = subprocess.Popen([programs / "pg_receivewal", "-D", folder, "-d", url])
    try:
        yield
    finally:
        follower.terminate()
        follower.wait()


@contextmanager
def locked(url: str, table: str) -> Iterator[None]:
    """Lock a table, as a forgotten `alter table` does."""
    with psycopg.connect(url) as connection:
        connection.execute(f"lock table {table}")
        yield


@contextmanager
def terminated_later(url: str, table: str) -> Iterator[None]:
    """Lock a table in a session that somebody will terminate."""
    with suppress(psycopg.OperationalError), locked(url, table):
        yield


@contextmanager
def full_disk(url: str) -> Iterator[None]:
    """Let the file system refuse what a large payload would need: no space is left."""
    where = (
        "select current_setting('data_directory') || '/' || pg_relation_filepath(reltoastrelid)"
        " from pg_class where oid = 'jobq_private.job'::regclass"
    )
    with psycopg.connect(url) as connection:
        [path] = connection.execute(where).fetchone() or ()
    file, kept = Path(path), Path(f"{path}.kept")
    file.rename(kept)
    file.symlink_to("/dev/full")
    try:
        yield
    finally:
        kept.rename(file)


@contextmanager
def waiting_for(url: str, standby: str) -> Iterator[None]:
    """Let all commits wait for a standby."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit = local")
        connection.execute(f"alter system set synchronous_standby_names = '{standby}'")
        connection.execute("select pg_reload_conf()")
        yield


@contextmanager
def many_sessions(url: str) -> Iterator[None]:
    """Use nine tenths of the connections."""
    with ExitStack() as stack:
        connection = stack.enter_context(psycopg.connect(url))
        most = connection.execute("show max_connections").fetchone()
        assert most is not None
        for _ in range(int(most[0]) * 9 // 10 - 1):
            stack.enter_context(psycopg.connect(url))
        yield


@contextmanager
def statement(url: str, query: str) -> Iterator[None]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(query)
        yield


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, and how it is mended.

    Attributes:
        subject: the check that finds it.
        remedy: a part of what doctor advises.
        cure: what is then done: SQL; REMEDY is the advice itself, which is SQL; DEPLOY is
            ``jobq deploy``; empty where the cause ends by itself.
        inject: makes it happen for a while.
    """

    subject: str
    remedy: str
    cure: str
    inject: Callable[[str], AbstractContextManager[None]]


REMEDY = "as doctor says"
DEPLOY = "`jobq deploy`"


def off(setting: str) -> Callable[[str], AbstractContextManager[None]]:
    return lambda url: switched_off(url, setting)


def sql(query: str) -> Callable[[str], AbstractContextManager[None]]:
    return lambda url: statement(url, query)


def altered(subject: str, setting: str) -> Callable[[str], AbstractContextManager[None]]:
    return lambda url: set_for(
        url, subject.format(database=conninfo_to_dict(url)["dbname"]), setting
    )


WORK = "select jobq.complete(job_id, attempt) from jobq.claim('{default}', 'w')"
FAULTS = {
    "`fsync` is off": Fault("fsync", "set fsync = on", "", off("fsync")),
    "`synchronous_commit` is off":
        Fault("synchronous_commit", "set synchronous_commit = on", "", off("synchronous_commit")),
    "`full_page_writes` is off":
        Fault("full_page_writes", "set full_page_writes = on", "", off("full_page_writes")),
    "`autovacuum` is off": Fault("autovacuum", "set autovacuum = on", "", off("autovacuum")),
    "nine of ten connections are in use":
        Fault("connections", "end unused sessions", "", many_sessions),
    "a listener hangs in a transaction":
        Fault("notifications", "end the listening session", "", hung_listener),
    "a role's commits do not wait for the disk": Fault(
        "role_settings", "alter role jobq_worker reset synchronous_commit", REMEDY,
        altered("role jobq_worker", "synchronous_commit = off"),
    ),
    "a database's commits do not wait for the disk": Fault(
        "role_settings", "reset synchronous_commit", REMEDY,
        altered("database {database}", "synchronous_commit = off"),
    ),
    "a tenant has `row_security = off`": Fault(
        "role_settings", "alter role jobq_worker reset row_security", REMEDY,
        altered("role jobq_worker", "row_security = off"),
    ),
    "everybody may connect to a database with grants by queue": Fault(
        "connect", "from public", "revoke connect on database {database} from public",
        sql("select jobq.enforce_queue_grants()"),
    ),
    "the database is read-only": Fault(
        "trial", "default_transaction_read_only",
        "alter database {database} reset default_transaction_read_only",
        altered("database {database}", "default_transaction_read_only = on"),
    ),
    "the disk is full": Fault("trial", "free disk space", "", full_disk),
    "a table is locked": Fault(
        "locks", "pg_terminate_backend",
        "select pg_terminate_backend(pid) from pg_locks where mode = 'AccessExclusiveLock'"
        " and relation = 'jobq_private.job'::regclass",
        lambda url: terminated_later(url, "jobq_private.job"),
    ),
    "an old snapshot": Fault("snapshot", "end the session", "", old_snapshot),
    "a forgotten prepared transaction": Fault(
        "snapshot", "finish the prepared transaction", "", forgotten_transaction
    ),
    "dead rows pile up": Fault(
        "dead_tuples", "vacuum jobq_private.job", "vacuum jobq_private.job", dead_rows
    ),
    "autovacuum is off for a table": Fault(
        "table_autovacuum", "reset (autovacuum_enabled)",
        "alter table jobq_private.job reset (autovacuum_enabled)",
        sql("alter table jobq_private.job set (autovacuum_enabled = off)"),
    ),
    "transaction ids are a billion old": Fault(
        "transaction_ids", "vacuum (freeze)", "vacuum (freeze)",
        sql(
            "update pg_database set datfrozenxid = mod(txid_current() + 3200000000, 4294967296)"
            "::text::xid where datname = current_database()"
        ),
    ),
    "multixacts are 500 million old": Fault(
        "multixact", "vacuum (freeze)", "vacuum (freeze)",
        sql(
            "update pg_database set datminmxid = (mod(datminmxid::text::bigint + 3800000000,"
            " 4294967296))::text::xid where datname = current_database()"
        ),
    ),
    "a replication slot is left behind": Fault("wal", "drop the slot", "", slot_left_behind),
    "commits wait for a standby that is gone": Fault(
        "confirmation", "synchronous_standby_names",
        "alter system reset synchronous_standby_names; select pg_reload_conf()",
        lambda url: waiting_for(url, "gone"),
    ),
    "a publication carries the jobs": Fault(
        "publication", "alter publication", "drop publication hot",
        sql("create publication hot for table jobq_private.job"),
    ),
    "a lease has expired": Fault(
        "leases", "maintain()", "select jobq.maintain()",
        sql(
            "select jobq.enqueue('k'); select jobq.claim('{default}', 'w');"
            " set session_replication_role = replica;"
            " update jobq_private.job set lease_expires_at = now() - interval '1 min'"
        ),
    ),
    "a job is in an impossible state": Fault(
        "rows", "delete the others",
        "set session_replication_role = replica;"
        " delete from jobq_private.job where state = 'nonsense'",
        sql(
            "select jobq.enqueue('k'); set session_replication_role = replica;"
            " update jobq_private.job set state = 'nonsense'"
        ),
    ),
    "a move to another shard was interrupted": Fault(
        "moves", 'jobq cluster move --database "$ROUTER" 0 --to 1',
        "select jobq_internal.confirm_jobs(array(select job_id from jobq_private.moved_job))",
        sql(
            "insert into jobq_private.moved_job values"
            " (gen_random_uuid(), 1, 1, '{}', now() - interval '2 min')"
        ),
    ),
    "nobody serves a queue": Fault(
        "queues", "start a worker for these queues",
        "select jobq.heartbeat('w2', '{}', '{}', '{mail}')",
        sql(
            "select jobq.enqueue('k', queue => 'mail'); set session_replication_role = replica;"
            " update jobq_private.job set due_at = now() - interval '2 min'"
        ),
    ),
    "a queue is paused for long": Fault(
        "waiting", "resume the queue", f"select jobq.resume_queue('default'); {WORK}",
        sql(
            "select jobq.enqueue('k', run_at => now() - interval '6 min');"
            " select jobq.pause_queue('default', 'lunch')"
        ),
    ),
    "a limit of a key stops claims": Fault(
        "waiting", "release the key",
        f"select jobq.release_key('default', 'a'); {WORK}",
        sql(
            "select jobq.hold_key('default', 'a', 'infinity', 'lunch'); select jobq.enqueue("
            "'k', concurrency_key => 'a', run_at => now() - interval '6 min')"
        ),
    ),
    "no worker has a handler for a kind": Fault(
        "kinds", "start a worker with handlers",
        "select jobq.heartbeat('w2', '{}', '{}', '{default}', '{}')",
        sql(
            "select jobq.enqueue('k');"
            " select jobq.heartbeat('w', '{}', '{}', '{default}', '{k}')"
        ),
    ),
    "an endpoint is paused for long": Fault(
        "endpoints", "resume_endpoint()", "select jobq.resume_endpoint('e')",
        sql(
            """select jobq.put_endpoint('e', 'HTTP', '{"url": "https://e.example"}');"""
            " select jobq.pause_endpoint('e', 'down');"
            " select jobq.enqueue('e', run_at => now() - interval '6 min');"
            " select from jobq.claim('{default}', 'w')"
        ),
    ),
    "no worker is alive": Fault(
        "workers", "start a worker", "select jobq.heartbeat('w', '{}', '{}')",
        sql("delete from jobq_private.worker"),
    ),
    "handlers hang": Fault(
        "slots", "add timeouts inside", "select jobq.heartbeat('w', '{}', '{}', stuck => 0)",
        sql("select jobq.heartbeat('w', '{}', '{}', stuck => 2)"),
    ),
    "a kind's function is gone": Fault(
        "functions", "create the function",
        "create function public.f(jsonb) returns jsonb language sql as 'select $1'",
        sql(
            "create function public.f(jsonb) returns jsonb language sql as 'select $1';"
            " select jobq.put_kind('f', run => 'public.f'); drop function public.f(jsonb)"
        ),
    ),
    "a transaction keeps `maintain()` to itself": Fault(
        "maintenance", "end that session", "", maintenance_kept
    ),
    "a task of `maintain()` fails": Fault(
        "maintenance", "fix the cause of the error",
        "alter table jobq_private.away rename to worker; select jobq.maintain()",
        sql("alter table jobq_private.worker rename to away; select jobq.maintain()"),
    ),
    "a schedule cannot fire": Fault(
        "schedules", "change or retire the schedule", "select jobq.retire_schedule('s')",
        sql(
            "select jobq.create_schedule('s', 'k', every => '1 h');"
            " update jobq_private.schedule set login = 'gone', next_run_at = now();"
            " select jobq.enforce_queue_grants(); select from jobq_internal.tick();"
            " select jobq.enforce_queue_grants(false)"
        ),
    ),
    "the archive has no partition for tomorrow": Fault(
        "partitions", "call maintain()", "select jobq.maintain()",
        sql(
            "do $$ begin execute 'drop table jobq_private.job_archive_' ||"
            " to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD'); end $$"
        ),
    ),
    "an index is missing": Fault(
        "indexes", "run jobq deploy", DEPLOY, sql("drop index jobq_private.job_lease_idx")
    ),
    "an index is invalid": Fault(
        "indexes", "run jobq deploy", DEPLOY,
        sql(
            "update pg_index set indisvalid = false"
            " where indexrelid = 'jobq_private.job_blocked_idx'::regclass"
        ),
    ),
    "a foreign key is missing": Fault(
        "constraints", "run jobq deploy", DEPLOY,
        sql("alter table jobq_private.job drop constraint job_transition_fkey"),
    ),
    "a trigger is missing": Fault(
        "triggers", "run jobq deploy", DEPLOY, sql("drop trigger job_birth on jobq_private.job")
    ),
    "a trigger is disabled": Fault(
        "triggers", "run jobq deploy", DEPLOY,
        sql("alter table jobq_private.job disable trigger job_transition"),
    ),
    "foreign keys are disabled": Fault(
        "triggers", "run jobq deploy", DEPLOY,
        sql("alter table jobq_private.job disable trigger all"),
    ),
    "a grant is revoked": Fault(
        "grants", "run jobq deploy", DEPLOY,
        sql("revoke execute on function jobq.claim from jobq_worker"),
    ),
    "a function belongs to another owner": Fault(
        "owners", "run jobq deploy", DEPLOY,
        sql("alter function jobq.redrive owner to current_user"),
    ),
    "everybody may execute a function": Fault(
        "public", "run jobq deploy", DEPLOY,
        sql("grant execute on function jobq.cancel to public"),
    ),
    "a function was replaced": Fault(
        "schema", "run jobq deploy", DEPLOY,
        sql(
            "create or replace function jobq.end_wait() returns void language sql"
            " security definer as 'select'"
        ),
    ),
    "a function is missing": Fault(
        "schema", "run jobq deploy", DEPLOY, sql("drop function jobq.end_wait()")
    ),
    "a column was added": Fault(
        "schema", "which it lists", "alter table jobq_private.job drop column colour",
        sql("alter table jobq_private.job add column colour text"),
    ),
    "another release was deployed": Fault(
        "release", "run jobq deploy", DEPLOY, sql("select jobq_private.record_release('other')")
    ),
}  # fmt: skip


# The alert of each check that has one of its own; the others share two.
ALERTS = {
    "snapshot": "JobqSnapshotIsOld",
    "dead_tuples": "JobqSnapshotIsOld",
    "table_autovacuum": "JobqSnapshotIsOld",
    "wal": "JobqSlotKeepsLog",
    "maintenance": "JobqMaintenanceFails",
    "partitions": "JobqMaintenanceFails",
    "schedules": "JobqSchedulesFail",
    **dict.fromkeys(
        ("schema", "indexes", "constraints", "triggers", "owners", "grants", "public"),
        "JobqSchemaDrifts",
    ),
}
WARNINGS = (
    "autovacuum", "clock", "connect", "connections", "dead_tuples", "endpoints", "failover",
    "functions",
    "kinds", "notifications", "partitions", "publication", "release", "schedules", "slots",
    "snapshot", "standby", "table_autovacuum", "waiting", "wal",
)  # fmt: skip


def alert_of(check: str) -> str:
    """Return the alert that tells of a check."""
    return ALERTS.get(check, "JobqCheckWarns" if check in WARNINGS else "JobqCheckFails")


def test_a_sound_system_is_called_so(sound: str) -> None:
    status, output = doctor(sound)
    assert status == 0, output
    assert "BAD" not in output
    assert all(finding["remedy"] is None for finding in findings(sound).values())


WARNING, FAILURE = "a publication carries the jobs", "no worker is alive"


@pytest.mark.parametrize(
    ("names", "status", "mark"),
    [([WARNING], 1, "WARN"), ([FAILURE], 2, "BAD"), ([WARNING, FAILURE], 2, "BAD")],
    ids=["a warning", "a failure", "both"],
)
def test_the_status_the_text_and_the_metrics_say_how_bad_it_is(
    sound: str, names: list[str], status: int, mark: str
) -> None:
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(FAULTS[name].inject(sound))
        said, output = doctor(sound)
        assert (said, output.split()[0]) == (status, mark)
        assert output.count("\nBAD") + output.count("\nWARN") == len(names) - 1
        found = findings(sound)
        expected = {
            f'jobq_check_failed{{check="{check}",severity="{row["severity"]}"}}'
            f" {float(not row['is_ok'])}"
            for check, row in found.items()
            if check != "release"
        }
        told = {line for line in metric(sound).splitlines() if "jobq_check_failed{" in line}
        assert told == expected
        assert sum(line.endswith(" 1.0") for line in told) == len(names)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_mended_as_doctor_says(sound: str, name: str) -> None:
    """With JOBQ_DRILLS=FILE it appends a row of docs/contributing/drills.md."""
    fault = FAULTS[name]
    with fault.inject(sound):
        found = eventually_bad(sound, fault.subject)
        assert fault.remedy in found["remedy"]
        assert found["severity"] == ("warning" if fault.subject in WARNINGS else "failure")
        file = os.environ.get("JOBQ_DRILLS")
        if fault.cure == DEPLOY and not file:
            return  # the next test mends all of these at once
        if fault.cure:
            cure(sound, fault.cure, found["remedy"])
            after = eventually(sound, fault.subject, is_ok=True)
    if not fault.cure:
        after = eventually(sound, fault.subject, is_ok=True)
    if file:
        alert = f"`{alert_of(fault.subject)}`" if fault.subject != "release" else ""
        said = [found["finding"], found["remedy"], after["finding"]]
        cells = [name, f"`{fault.subject}`", found["severity"], alert, *said]
        with Path(file).open("a") as drills:
            drills.write(f"| {' | '.join(cells)} |\n")


def test_a_deployment_mends_all_that_it_should(sound: str) -> None:
    faults = [fault for fault in FAULTS.values() if fault.cure == DEPLOY]
    assert len(faults) > 10
    with ExitStack() as stack:
        # A release that is recorded takes what is there for right, so it comes first.
        for fault in sorted(faults, key=lambda fault: fault.subject != "release"):
            stack.enter_context(fault.inject(sound))
        bad = {subject for subject, found in findings(sound).items() if not found["is_ok"]}
        assert {fault.subject for fault in faults} <= bad
        cure(sound, DEPLOY, "")
        assert [found for found in findings(sound).values() if not found["is_ok"]] == []


def cure(url: str, what: str, remedy: str) -> None:
    """Do what mends a fault, as a superuser."""
    if what == DEPLOY:
        deploy._mend(url, print, None)
        return
    query = remedy if what == REMEDY else what
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = off")
        for each in query.replace("{database}", str(conninfo_to_dict(url)["dbname"])).split("; "):
            connection.execute(each)


def metric(url: str) -> str:
    """Return what /metrics tells of the checks."""
    own = CollectorRegistry()
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("select * from jobq.health(now())").fetchall()
        rows += connection.execute("select * from jobq.health(part => 'trial')").fetchall()
        scrape = Scrape()
        scrape.checks = rows
        own.register(scrape)
    return generate_latest(own).decode()


def eventually_bad(database: str, subject: str) -> dict[str, Any]:
    return eventually(database, subject, is_ok=False)


def eventually(database: str, subject: str, *, is_ok: bool) -> dict[str, Any]:
    """Return the finding as soon as it is so: a reloaded setting takes a moment."""
    deadline = time.monotonic() + PATIENCE
    while (found := findings(database)[subject])["is_ok"] is not is_ok:
        assert time.monotonic() < deadline, found
    return found


def test_who_holds_a_snapshot_is_named(sound: str) -> None:
    with psycopg.connect(sound) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        found = findings(sound)["snapshot"]["finding"]
        assert f"pid {holder.info.backend_pid} holds back vacuum by" in found
        assert ", for 00:00:" in found
    with psycopg.connect(sound) as writer:
        writer.execute("select pg_current_xact_id()")
        writer.execute("select 1")
        found = findings(sound)["snapshot"]["finding"]
        assert f"pid {writer.info.backend_pid} holds back vacuum by" in found, (
            "idle, with no snapshot"
        )


def test_while_the_jobs_are_locked_all_else_is_told(sound: str) -> None:
    with locked(sound, "jobq_private.job"):
        eventually_bad(sound, "locks")
        found = findings(sound)
    for part in ("jobs", "trial"):
        assert re.fullmatch(
            r"could not be checked: canceling statement due to lock timeout \(55P03\);"
            r" pid \d+ holds AccessExclusiveLock on jobq_private\.job for 00:00:\d\d",
            found[part]["finding"],
        )
        assert found[part]["remedy"] == "end the session that holds the lock"
    assert {"fsync", "snapshot", "role_settings", "workers", "partitions", "clock"} <= set(found)
    assert not {"leases", "queues"} & set(found)


def test_a_part_that_takes_too_long_is_cancelled_and_the_others_answer(
    sound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_command, "PATIENCE", 500)
    slow = """
        create or replace view jobq_private.snapshot_holder as
        select ''::text collate "C" as holder, 0 as age, now() as began_at,
            pg_sleep(60) is null as is_young
    """
    with statement(sound, slow):
        found = findings(sound)
    assert found["vacuum"]["finding"] == "could not be checked in time"
    assert found["vacuum"]["severity"] == "failure"
    assert {"fsync", "failover", "trial", "workers", "schema"} <= set(found)


def test_what_doctor_asks_is_all_that_health_says(sound: str) -> None:
    with psycopg.connect(sound, autocommit=True) as connection:
        rows = connection.execute(
            "select subject from jobq.health(now(), %s)", [release_of(deploy.single_file())]
        )
        assert {row[0] for row in rows} == set(findings(sound)) - {"trial"}
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("select jobq.health(part => 'nonsense')")


def test_a_trial_leaves_nothing(sound: str) -> None:
    findings(sound)
    with psycopg.connect(sound) as connection:
        count = "select (select count(*) from jobq.job), (select count(*) from jobq_private.queue)"
        before = connection.execute(count).fetchone()
        findings(sound)
        assert connection.execute(count).fetchone() == before


def test_what_claims_meet_is_told_with_the_queue(sound: str) -> None:
    with statement(
        sound,
        "select jobq.enqueue('k', queue => 'mail', run_at => now() - interval '6 min');"
        " select jobq.pause_queue('mail', 'lunch')",
    ):
        found = findings(sound)["waiting"]["finding"]
    assert re.match(r"queue mail: a job has been due since .* \(paused: queue mail since", found)
    assert found.endswith(": lunch)")


def test_a_client_whose_clock_is_wrong_is_told(sound: str) -> None:
    query = (
        "select is_ok, finding, remedy from jobq.health(now() + interval '1 h' * %s)"
        " where subject = 'clock'"
    )
    with psycopg.connect(sound) as connection:
        behind, right, ahead = (connection.execute(query, [h]).fetchone() for h in (1, 0, -1))
    assert right is not None and right[0] is True and right[2] is None
    assert behind is not None and not behind[0] and "s behind the client" in behind[1]
    assert ahead is not None and not ahead[0] and "s ahead of the client" in ahead[1]
    # Besides the hour, the time that has passed since the transaction began.
    seconds = [float(row[1].split()[3]) for row in (behind, ahead)]
    assert 3600 - PATIENCE < seconds[0] <= 3600 <= seconds[1] < 3600 + PATIENCE
    assert "NTP" in ahead[2]


def test_a_standby_that_no_commit_waits_for_is_named(
    sound: str, server: Server, tmp_path: Path
) -> None:
    with standby(sound, tmp_path, server.programs):
        found = eventually_bad(sound, "failover")
        assert found["finding"] == "1 are connected, and no commit waits for them"
        assert "synchronous_standby_names" in found["remedy"]
        with psycopg.connect(sound, autocommit=True) as connection:
            connection.execute("set synchronous_commit = local")
            connection.execute("alter system set synchronous_standby_names = 'ANY 1 (*)'")
            connection.execute("select pg_reload_conf()")
            try:
                eventually(sound, "failover", is_ok=True)
            finally:
                connection.execute("alter system reset synchronous_standby_names")
                connection.execute("select pg_reload_conf()")


def test_what_differs_from_the_release_is_named(sound: str) -> None:
    with statement(sound, "drop function jobq.end_wait(); drop function jobq_internal.ready()"):
        found = findings(sound)["schema"]["finding"]
    assert "routine jobq.end_wait() is missing, routine jobq_internal.ready() is missing" in found


def test_a_disabled_trigger_is_named_once_also_in_a_partition(sound: str) -> None:
    with statement(
        sound,
        "alter table jobq_private.job disable trigger job_birth;"
        " alter table jobq_private.job_archive_default disable trigger archive_immutable",
    ):
        found = findings(sound)["triggers"]["finding"]
    assert found == (
        "2 objects differ from the deployed schema:"
        " trigger archive_immutable on jobq_private.job_archive_default is disabled,"
        " trigger job_birth on jobq_private.job is disabled"
    )


def test_another_release_is_told(sound: str) -> None:
    with psycopg.connect(sound) as connection:
        query = "select is_ok, finding from jobq.health(null, 'other') where subject = 'release'"
        assert connection.execute(query).fetchone() == (
            False, "the deployed schema belongs to another release",
        )  # fmt: skip


def test_without_a_client_nothing_is_compared(sound: str) -> None:
    with psycopg.connect(sound) as connection:
        subjects = {row[0] for row in connection.execute("select subject from jobq.health()")}
    assert not subjects & {"clock", "release"}
    assert {"clock", "release"} <= set(findings(sound))


def test_a_database_without_jobq_is_named(empty_database: str) -> None:
    status, output = doctor(empty_database)
    assert status == 2
    assert "jobq deploy" in output and "create the database" not in output
    status, output = doctor(make_conninfo(empty_database, dbname="nowhere"))
    assert status == 2
    assert "create the database, and install the schema with: jobq deploy" in output
