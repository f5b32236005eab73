"""`jobq certify`: whether a server, a login and a pooler can run jobq. Nothing is left behind."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import psycopg
from psycopg.conninfo import make_conninfo

from jobq_operations.deploy import single_file
from jobq_operations.doctor import Finding
from jobq_operations.schema import statements

Connection = psycopg.Connection[tuple[Any, ...]]

OLDEST: Final = 150000
OTHERS: Final = re.compile(r"CockroachDB|-YB-|Redshift|Greenplum|Materialize|CrateDB")
"""Servers that speak PostgreSQL's protocol, and lack what jobq's guarantees need."""
PATIENCE: Final = 2.0  # seconds for a notification
CONNECTIONS: Final = 20  # two workers, an HTTP server, producers
SETTINGS: Final = {
    "fsync": ("on", "a crash of the machine can lose committed jobs and damage the database"),
    "full_page_writes": ("on", "a crash of the machine can damage the database"),
    "synchronous_commit": ("on local remote_write remote_apply", "a crash can lose committed jobs"),
    "autovacuum": ("on", "dead rows slow down every queue"),
    "track_counts": ("on", "autovacuum does not run without it"),
    "statement_timeout": ("0", "it must be longer than `jobq deploy` and maintain() take"),
    "idle_session_timeout": ("0", "it ends the session in which a worker listens"),
}
"""The values that are right, and what another one means."""

_LOGIN: Final = """
    select current_user::text, r.rolsuper, r.rolcreaterole,
        has_database_privilege(current_database(), 'create'),
        array(
            select o.rolname::text
            from pg_catalog.pg_roles as o
            where o.rolname = any(%s)
            -- before PostgreSQL 16, CREATEROLE alone is enough
            and current_setting('server_version_num')::integer >= 160000
            and not pg_has_role(current_user, o.oid, 'member with admin option')
        )
    from pg_catalog.pg_roles as r where r.rolname = current_user
"""
_ROLES: Final = ["jobq_owner", "jobq_producer", "jobq_worker", "jobq_operator", "jobq_reader"]
_JOB: Final = """
    select jobq.enqueue('jobq certify', queue => 'jobq certify');
    select jobq.complete(c.job_id, c.attempt, '"done"')
    from jobq.claim('{jobq certify}', 'jobq certify') as c;
    select count(*) from jobq.job as j where j.queue = 'jobq certify' and j.state = 'succeeded'
"""


def certify(url: str) -> list[Finding]:
    """Return what each check has found, in a fixed order.

    The schema is installed, and a job is run, in a transaction that is rolled back. Where jobq is
    installed already, only the job is run. The URL is of the user who is to deploy jobq, by the way
    that workers will take.
    """
    findings: list[Finding] = []
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        for check in CHECKS:
            findings += check(connection, url)
            if check is version and not findings[-1].is_ok:
                break
    return findings


def passed(subject: str, finding: str) -> Finding:
    """Return what a check has found that passed."""
    return Finding(subject, True, finding, None, "failure")


def failed(
    subject: str,
    finding: str,
    remedy: str,
    severity: Literal["failure", "warning"] = "failure",
) -> Finding:
    """Return what a check has found that failed."""
    return Finding(subject, False, finding, remedy, severity)


def one(connection: Connection, query: str, parameters: Sequence[object] = ()) -> tuple[Any, ...]:
    """Return the one row of a query."""
    row = connection.execute(query.encode(), parameters or None).fetchone()
    assert row is not None  # noqa: S101 - it has no conditions
    return row


def version(connection: Connection, _: str) -> Iterator[Finding]:
    """Check that it is PostgreSQL, and which."""
    said, number = one(
        connection, "select version(), current_setting('server_version_num')::integer"
    )
    name = said.partition(" on ")[0].partition(" (")[0]
    if other := OTHERS.search(said):
        yield failed("version", f"{name} ({other[0]}) is not PostgreSQL", "use PostgreSQL")
    elif number < OLDEST:
        yield failed("version", f"{name} is too old", "use PostgreSQL 15 or newer")
    else:
        yield passed("version", name)


def database(connection: Connection, _: str) -> Iterator[Finding]:
    """Check the database: its encoding, and that it can be written."""
    encoding, is_standby, is_read_only = one(
        connection,
        "select current_setting('server_encoding'), pg_is_in_recovery(),"
        " current_setting('transaction_read_only')::boolean",
    )
    if encoding == "UTF8":
        yield passed("encoding", "UTF8")
    else:
        yield failed("encoding", f"it is {encoding}", "create a database with encoding 'UTF8'")
    if is_standby or is_read_only:
        found = "the server is a standby" if is_standby else "transactions are read-only"
        yield failed("writable", found, "use the URL of the primary, and reset the setting")
    else:
        yield passed("writable", "transactions can write")


def login(connection: Connection, _: str) -> Iterator[Finding]:
    """Check what the user may do without being a superuser."""
    user, is_super, creates_roles, creates_schemas, ungranted = one(connection, _LOGIN, [_ROLES])
    if is_super:
        yield passed("roles", f"{user} is a superuser, which jobq does not need")
    elif creates_roles and ungranted:
        roles = ", ".join(ungranted)
        yield failed(
            "roles",
            f"jobq's roles belong to another installation in this cluster: {user} may not grant"
            f" {roles}",
            f"as their owner: grant {roles} to {user} with admin option",
        )
    elif creates_roles:
        yield passed("roles", f"{user} may create roles, and is no superuser")
    else:
        yield failed(
            "roles",
            f"{user} may not create roles",
            f"as an administrator: alter role {user} createrole",
        )
    if creates_schemas:
        yield passed("schemas", f"{user} may create schemas in this database")
    else:
        remedy = f"grant create on database to {user}, or make it the owner"
        yield failed("schemas", f"{user} may not create schemas in this database", remedy)


def installation(connection: Connection, _: str) -> Iterator[Finding]:
    """Install jobq and run a job, in a transaction that is rolled back."""
    yield passed("extensions", "none is needed")
    [is_installed] = one(connection, "select to_regnamespace('jobq_private') is not null")
    started = time.monotonic()
    try:
        with connection.transaction(force_rollback=True):
            if not is_installed:
                connection.execute(statements(single_file()).encode())
                connection.execute("reset role")
            installed_in = time.monotonic() - started
            [release] = one(connection, "select jobq.version()")
            done = connection.execute(_JOB.encode())
            while done.nextset():
                pass
            row = done.fetchone()
    except psycopg.Error as error:
        remedy = "see the other findings; if they pass, report it with the error"
        yield failed("installation", f"the server refused it: {str(error).splitlines()[0]}", remedy)
        return
    if is_installed:
        yield passed("installation", f"jobq {release} is installed here; jobq doctor checks it")
    else:
        yield passed(
            "installation", f"jobq {release} was installed in {installed_in:.1f} s, and undone"
        )
    if row == (1,):
        yield passed("job", "a job was enqueued, claimed and completed, and undone")
    else:
        yield failed("job", "a job was not completed", "run jobq doctor")


def settings(connection: Connection, _: str) -> Iterator[Finding]:
    """Check settings of the server and of this login."""
    for name, (right, reason) in SETTINGS.items():
        [value] = one(connection, f"select current_setting('{name}')")
        if value in right.split():
            yield passed(name, value)
        else:
            yield failed(name, f"{value}: {reason}", f"set it to {right.split()[0]}", "warning")
    [free] = one(
        connection,
        "select current_setting('max_connections')::integer"
        " - current_setting('superuser_reserved_connections')::integer"
        " - count(*) filter (where backend_type = 'client backend')::integer"
        " from pg_stat_activity",
    )
    if free >= CONNECTIONS:
        yield passed("connections", f"{free} are free")
    else:
        remedy = f"two workers and a server need {CONNECTIONS}: raise max_connections"
        yield failed("connections", f"only {free} are free", remedy, "warning")


def startup(_: Connection, url: str) -> Iterator[Finding]:
    """Check whether a connection may bring settings, as `jobq deploy` needs."""
    try:
        psycopg.connect(make_conninfo(url, options="-c lock_timeout=500ms")).close()
    except psycopg.Error as error:
        found = f"connections cannot bring settings: {str(error).splitlines()[-1]}"
        remedy = "run `jobq deploy` on a direct URL; give workers --pooled, clients is_pooled=True"
        yield failed("startup_settings", found, remedy, "warning")
    else:
        yield passed("startup_settings", "connections can bring settings")


def pooler(connection: Connection, url: str) -> Iterator[Finding]:
    """Check what belongs to a session: notifications and prepared statements."""
    channel = f"jobq_certify_{secrets.token_hex(4)}"
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as other:
        [pid] = one(connection, "select pg_backend_pid()")
        way = "directly" if pid == connection.info.backend_pid else "through a pooler"
        connection.execute(f"listen {channel}".encode())
        started = time.monotonic()
        other.execute("select pg_notify(%s, '')", [channel])
        heard = list(connection.notifies(timeout=PATIENCE, stop_after=1))
        took = (time.monotonic() - started) * 1000
        connection.execute("unlisten *")
        if heard:
            yield passed("listen", f"connected {way}; a notification came after {took:.0f} ms")
        else:
            yield failed(
                "listen",
                f"connected {way}; no notification came within {PATIENCE:.0f} s: it pools"
                " transactions, not sessions",
                "give workers --pooled, and --listen-database with a direct URL; without that they"
                " poll",
                "warning",
            )
        connection.prepare_threshold = other.prepare_threshold = 1
        try:
            for each in (connection, other, connection, other):
                each.execute("select %s::integer", [1], prepare=True)
        except psycopg.Error as error:
            found = f"they do not survive: {str(error).splitlines()[0]}"
            remedy = "give workers --pooled, and clients is_pooled=True"
            yield failed("prepared_statements", found, remedy, "warning")
        else:
            yield passed("prepared_statements", "they work")


CHECKS: Final[tuple[Callable[[Connection, str], Iterator[Finding]], ...]] = (
    version, database, login, installation, settings, startup, pooler,
)  # fmt: skip
