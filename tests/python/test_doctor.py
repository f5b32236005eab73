"""`jobq doctor` tells a sound system from one that may lose jobs."""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict

from jobq import doctor as doctor_module
from jobq.cli import main
from jobq.embedded import Server
from servers import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

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
def sound_cluster(server: Server, project: Path) -> Cluster:
    return Cluster(server, project)


@pytest.fixture
def sound(sound_cluster: Cluster, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a database that nothing threatens."""
    monkeypatch.setattr(doctor_module, "project_dir", lambda: project)
    with sound_cluster.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("select jobq.heartbeat('w', '{}', '{}')")
            while connection.execute(MAINTAIN).fetchone() == (True,):
                pass
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


@contextmanager
def old_snapshot(url: str) -> Iterator[None]:
    """Let a session look as if it had begun long ago: others have done much since."""
    with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as other:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        other.execute(
            "do $$ begin for i in 1 .. 1000001 loop perform pg_current_xact_id();"
            " commit; end loop; end $$"
        )
        yield


@contextmanager
def forgotten_transaction(url: str) -> Iterator[None]:
    """Leave a prepared transaction alone for as long."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("begin")
        connection.execute("select pg_current_xact_id()")
        connection.execute("prepare transaction 'forgotten'")
        connection.execute(
            "do $$ begin for i in 1 .. 1000001 loop perform pg_current_xact_id();"
            " commit; end loop; end $$"
        )
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
def statement(url: str, query: str) -> Iterator[None]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(query)
        yield


THREATS: dict[str, tuple[str, str, Callable[[str], Any]]] = {
    "fsync": ("fsync", "set fsync = on", lambda url: switched_off(url, "fsync")),
    "synchronous_commit": (
        "synchronous_commit", "set synchronous_commit = on",
        lambda url: switched_off(url, "synchronous_commit"),
    ),
    "full_page_writes": (
        "full_page_writes", "set full_page_writes = on",
        lambda url: switched_off(url, "full_page_writes"),
    ),
    "a role's setting": (
        "role_settings", "alter role jobq_worker reset synchronous_commit",
        lambda url: set_for(url, "role jobq_worker", "synchronous_commit = off"),
    ),
    "a database's setting": (
        "role_settings", "reset synchronous_commit",
        lambda url: set_for(
            url, f"database {conninfo_to_dict(url)['dbname']}", "synchronous_commit = off"
        ),
    ),
    "a database that may only be read": (
        "role_settings", "reset default_transaction_read_only",
        lambda url: set_for(
            url, f"database {conninfo_to_dict(url)['dbname']}", "default_transaction_read_only = on"
        ),
    ),
    "a tenant without its rows": (
        "role_settings", "alter role jobq_worker reset row_security",
        lambda url: set_for(url, "role jobq_worker", "row_security = off"),
    ),
    "slot left behind": ("wal", "drop the slot", slot_left_behind),
    "maintenance kept": ("maintenance", "end that session", maintenance_kept),
    "schedule without a grant": (
        "schedules", "change or retire the schedule",
        lambda url: statement(
            url,
            "select jobq.create_schedule('s', 'k', every => '1 h');"
            " update jobq_private.schedule set login = 'gone', next_run_at = now();"
            " select jobq.enforce_queue_grants(); select from jobq.tick();"
            " select jobq.enforce_queue_grants(false)",
        ),
    ),
    "autovacuum": (
        "autovacuum", "set autovacuum = on", lambda url: switched_off(url, "autovacuum"),
    ),
    "old snapshot": ("snapshot", "end the session", old_snapshot),
    "forgotten transaction": (
        "snapshot", "finish the prepared transaction", forgotten_transaction,
    ),
    "multixacts": (
        "multixact", "vacuum (freeze)",
        lambda url: statement(
            url,
            "update pg_database set datminmxid = (mod(datminmxid::text::bigint + 3800000000,"
            " 4294967296))::text::xid where datname = current_database()",
        ),
    ),
    "dead rows": ("dead_tuples", "vacuum jobq_private.job", dead_rows),
    "hung listener": ("notifications", "end the session that listens", hung_listener),
    "expired lease": (
        "leases", "run a worker",
        lambda url: statement(
            url,
            "select jobq.enqueue('k'); select jobq.claim('{default}', 'w');"
            " set session_replication_role = replica;"
            " update jobq_private.job set lease_expires_at = now() - interval '1 min'",
        ),
    ),
    "no worker": (
        "workers", "start a worker",
        lambda url: statement(url, "delete from jobq_private.worker"),
    ),
    "hung handlers": (
        "slots", "timeouts of their own",
        lambda url: statement(url, "select jobq.heartbeat('w', '{}', '{}', stuck => 2)"),
    ),
    "no partition": (
        "partitions", "have maintain() called",
        lambda url: statement(
            url,
            "do $$ begin execute 'drop table jobq_private.job_archive_' ||"
            " to_char((now() + interval '1 day') at time zone 'UTC', 'YYYYMMDD'); end $$",
        ),
    ),
    "disabled trigger": (
        "triggers", "enable trigger",
        lambda url: statement(url, "alter table jobq_private.job disable trigger job_transition"),
    ),
    "settings loaded past the triggers": (
        "settings", "have maintain() called",
        lambda url: statement(
            url,
            "alter table jobq_private.kind disable trigger all;"
            " insert into jobq_private.kind (kind, priority) values ('loaded', 1);"
            " alter table jobq_private.kind enable trigger all;"
            " alter table jobq_private.kind enable always trigger kind_rules",
        ),
    ),
    "another release": (
        "schema", "run jobq deploy",
        lambda url: statement(
            url,
            "create or replace function jobq.end_wait() returns void language sql"
            " security definer as 'select'",
        ),
    ),
    "missing function": (
        "schema", "run jobq deploy", lambda url: statement(url, "drop function jobq.end_wait()"),
    ),
}  # fmt: skip


def test_a_sound_system_is_called_so(sound: str) -> None:
    status, output = doctor(sound)
    assert status == 0, output
    assert "BAD" not in output
    assert all(finding["remedy"] is None for finding in findings(sound).values())


@pytest.mark.parametrize("threat", THREATS)
def test_each_threat_is_named_first_with_its_remedy(sound: str, threat: str) -> None:
    subject, remedy, threaten = THREATS[threat]
    with threaten(sound):
        found = eventually_bad(sound, subject)
        assert remedy in str(found["remedy"])
        status, output = doctor(sound)
    assert status == 1
    assert output.startswith("BAD")


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
        assert found["finding"] == "1 follow, and no commit waits for them"
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
    with statement(sound, "drop function jobq.end_wait(); drop function jobq.ready()"):
        found = findings(sound)["schema"]["finding"]
    assert found == "2 functions are not those of this release: jobq.end_wait, jobq.ready"


def test_without_a_client_nothing_is_compared(sound: str) -> None:
    with psycopg.connect(sound) as connection:
        subjects = {row[0] for row in connection.execute("select subject from jobq.health()")}
    assert not subjects & {"clock", "schema"}
    assert {"clock", "schema"} <= set(findings(sound))


def test_a_database_without_jobq_is_named(empty_database: str) -> None:
    status, output = doctor(empty_database)
    assert status == 1
    assert "jobq deploy" in output
