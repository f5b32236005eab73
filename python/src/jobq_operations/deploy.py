"""Install, upgrade, remove and check jobq's schema.

In an empty database, ``jobq.sql`` is run in one transaction. An existing schema is upgraded by
Sqitch, which records the changes of each database. The scripts are those of the checkout or of the
installed wheel. Sqitch gets connection details, such as the password, in environment variables,
because other users of the machine can read its command line.
"""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.version import __version__
from jobq_embedded import ServerError, find_bin_dir
from jobq_operations.project import (
    is_code,
    join,
    project_dir,
    read_plan,
    rendered,
    scripts_between,
)
from jobq_operations.schema import (
    Difference,
    Unmendable,
    compare,
    lock,
    mend,
    numbers,
    of_features,
    record,
    release_of,
    replaced_by,
    statements,
)

T = TypeVar("T")

__all__ = ["DeployError", "adopt", "deploy", "project_dir", "revert", "single_file", "verify"]

# A change that waits for a busy table blocks all later users of the table. It gives up before the
# server checks for deadlocks (deadlock_timeout, 1 s), so that no client is a victim. The session
# that keeps other deployments away is idle while Sqitch runs.
_OPTIONS = "-c lock_timeout=500ms -c idle_session_timeout=0 -c client_min_messages=warning"
# With this, errors of Sqitch's psql begin with their SQLSTATE.
_VERBOSE = ("--set", "VERBOSITY=verbose")
_DEPLOY = ("deploy", "--mode", "change", "--verify", *_VERBOSE)
# Scripts that verify an older release miss functions that a newer one has dropped.
_ADOPT = ("deploy", "--log-only", "--no-verify")
# A change that is applied but not recorded by Sqitch: its objects exist already (duplicate schema,
# table, object or column).
_UNRECORDED = re.compile(
    r"^  \+ (\S+) \.\.+ (?:psql:.*\n)*?psql:.*ERROR:  (?:42P06|42P07|42710|42701):", re.MULTILINE
)
# Errors if a part of jobq is left: its schema, table, role or type exists.
_ALREADY_THERE = (
    errors.DuplicateSchema, errors.DuplicateTable, errors.DuplicateObject, errors.UniqueViolation,
)  # fmt: skip
# Errors if another session holds a required lock.
_IN_THE_WAY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled)
_BLOCKED = re.compile(r"ERROR:  (?:55P03|40P01):|Blocked by another instance of Sqitch")
_TRIES = 60
_SECONDS_BETWEEN_TRIES = 1.0
_NAMED = 8
_IS_ALONE = "select pg_try_advisory_lock(hashtextextended('jobq deploy', 0))"
_ALONE = """
    set lock_timeout = 0; set statement_timeout = 0;
    select pg_advisory_lock(hashtextextended('jobq deploy', 0))
"""
_HOLDERS = """
    select format('%s (%s, %s, for %s, as %s): %s', 'pid ' || a.pid,
        coalesce(a.application_name, ''), a.state, date_trunc('second', now() - a.xact_start),
        a.usename, regexp_replace(left(a.query, 80), '\\s+', ' ', 'g'))
    from pg_stat_activity as a
    where a.pid <> pg_backend_pid()
    and exists (
        select from pg_locks as l
        join pg_class as c on c.oid = l.relation
        join pg_namespace as n on n.oid = c.relnamespace
        where l.pid = a.pid and l.granted
        and n.nspname in ('jobq', 'jobq_http', 'jobq_internal', 'jobq_private')
    )
    order by a.xact_start
    limit 3
"""
_FORGET = """
    delete from sqitch.events where project = 'jobq';
    delete from sqitch.dependencies where change_id in (
        select c.change_id from sqitch.changes as c where c.project = 'jobq'
    );
    delete from sqitch.tags where project = 'jobq';
    delete from sqitch.changes where project = 'jobq';
    delete from sqitch.projects where project = 'jobq';
"""
_ANOTHER = (
    "deploy the release that these tables are of, or, if its jobs may be lost, drop the schemas "
    "jobq, jobq_http, jobq_internal, jobq_private and sqitch, and deploy again"
)
_MEND = "run `jobq deploy`"
_WRITABLE = (
    "connect to the primary, or allow writes: alter database … reset default_transaction_read_only"
)
_NO_SQITCH = "install sqitch and libdbd-pg-perl, which upgrade tables"
# The only query of a database without jobq.
_LOOK = """
    select to_regclass('jobq.job') is not null, to_regclass('sqitch.changes') is not null,
        to_regclass('jobq_private.job') is not null
        and to_regclass('jobq_private.deployed_object') is null,
        to_regprocedure('jobq.version()') is not null,
        current_setting('transaction_read_only')::boolean
"""
_VERSION = "select jobq.version()"
_HAS_RECORD = "select to_regclass('sqitch.changes') is not null"
_DEPLOYED = "select count(*) from sqitch.changes where project = 'jobq'"


class DeployError(RuntimeError):
    """The schema cannot be upgraded or checked.

    Attributes:
        remedy: what to do about it, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.remedy = remedy


class _State(NamedTuple):
    """What a database has: jobq, records of Sqitch, only the core, and its release."""

    has_jobq: bool
    has_record: bool
    is_core: bool
    version: str | None


def deploy(url: str, report: Callable[[str], None] | None = None) -> str:
    """Install or upgrade the schema of this release; return a report.

    Sqitch changes the tables of a released version. Then the database is compared with the release,
    object by object: functions, views, triggers, indexes, constraints, grants and owners that
    differ are replaced in one transaction, so that no call finds functions of two releases.

    Args:
        url: a libpq URL or connection string of a user who may create roles.
        report: called with each line of the report.

    Raises:
        DeployError: the database cannot be reached or has a newer release, Sqitch is missing for
            an upgrade, a change failed and was reverted, or the tables are not those of this
            release.
    """
    say = report or (lambda _line: None)
    with _alone(url, say):
        return _deploy(url, say)


@contextmanager
def _alone(url: str, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other deployment is at work, and let others wait."""
    _look(url, is_written=False)
    try:
        session = _patient(url)
    except psycopg.Error as error:
        raise DeployError(
            f"the connection is refused: {error}", "give a direct URL, past any pooler"
        ) from error
    with session as connection:
        if connection.execute(_IS_ALONE).fetchone() != (True,):
            say("waiting for another deployment")
            connection.execute(_ALONE)
        yield


def _deploy(url: str, say: Callable[[str], None]) -> str:
    state = _look(url)
    if state.is_core or (not state.has_jobq and not state.has_record):
        return _install(url, say, core=state.version if state.is_core else None)
    if shutil.which("sqitch") is None:
        return _mend(url, say, None)
    if state.has_jobq and _pending(url) == _changes():
        try:
            words = _mend(url, say, None)
        except DeployError:
            if not _record_release(url, state.version, say):
                raise
        else:
            _note(url, say, is_anew=False)
            return words
    failure = None
    try:
        _upgrade(url, say, state)
    except DeployError as error:
        failure = error
    words = _mend(url, say, failure)
    if failure:
        _note(url, say, is_anew=True)
    return words


def _record_release(url: str, version: str | None, say: Callable[[str], None]) -> bool:
    """Let Sqitch record a release that a script installed, if tables have changed since then."""
    plan = read_plan(project_dir())
    tag = f"@v{version}"
    if tag not in plan or not _tables(plan[plan.index(tag) :]):
        return False
    _sqitch(url, "deploy", "--log-only", "--no-verify", "--to", tag, report=say)
    return True


def _upgrade(url: str, say: Callable[[str], None], state: _State) -> None:
    """Let Sqitch deploy the pending changes.

    It commits one change after another. So that no call meanwhile finds functions of two releases,
    all functions are replaced in one transaction, after the tables. Sqitch then finds them so.
    """
    pending = _pending(url)
    if pending and state.has_jobq:
        if tables := _tables(pending):
            _let_sqitch_deploy(url, say, "--to", tables[-1])
        _replace_functions(url, single_file(), say)
    _let_sqitch_deploy(url, say)


def _tables(names: Sequence[str]) -> list[str]:
    """Return those of changes and tags that change more than functions, views and triggers."""
    project = project_dir()
    return [name for name in names if not name.startswith("@") and not is_code(project, name)]


def _changes() -> list[str]:
    """Return the names of the changes in the plan."""
    return [name for name in read_plan(project_dir()) if not name.startswith("@")]


def _pending(url: str) -> list[str]:
    """Return the names of the changes of the plan that Sqitch has not recorded."""
    try:
        with psycopg.connect(url) as connection:
            [[has_record]] = connection.execute(_HAS_RECORD)
            deployed = connection.execute(_DEPLOYED).fetchall()[0][0] if has_record else 0
    except psycopg.Error as error:
        raise DeployError(
            f"the records of sqitch cannot be read: {error}",
            "deploy as the user who deployed before",
        ) from error
    return _changes()[deployed:]


def _replace_functions(url: str, script: str, say: Callable[[str], None]) -> None:
    """Bring functions, views and triggers to a release, in one transaction.

    Those that the release does not have remain, for the calls that run.
    """

    def change(connection: psycopg.Connection[Any]) -> None:
        release, differing = compare(connection, script)
        replaced = replaced_by(differing)
        if replaced:
            say(f"replacing {len(replaced)} functions and views in one transaction")
            with connection.transaction():
                lock(connection, replaced)
                kept = [each for each in differing if each not in replaced]
                mend(connection, script, release.keeping(kept), replaced)

    # Sqitch will meet the same errors, and say what is wrong.
    with suppress(Unmendable, psycopg.Error):
        _beside_others(url, say, change)


def _mend(url: str, say: Callable[[str], None], failure: DeployError | None) -> str:
    """Replace objects that differ from the release; return a report."""
    script = single_file()
    say("comparing the schema with this release")

    def change(connection: psycopg.Connection[Any]) -> Sequence[Difference]:
        release, differing = compare(connection, script)
        if differing:
            say(f"changing {len(differing)} objects in one transaction")
        with connection.transaction():
            lock(connection, differing)
            mend(connection, script, release, differing)
            record(connection, release_of(script))
        return differing

    try:
        differing = _beside_others(url, say, change)
    except Unmendable as error:
        raise failure or DeployError(
            f"the tables are not those of this release: {_some(error.differences)}",
            _ANOTHER if shutil.which("sqitch") else _NO_SQITCH,
        ) from error
    except psycopg.Error as error:
        raise failure or DeployError(
            f"the schema could not be brought to this release: {error}",
            "correct the cause, and deploy again",
        ) from error
    words = (
        f"brought to this release: {_some(differing)}" if differing else "the schema is up to date"
    )
    say(words)
    return words


def _beside_others(
    url: str, say: Callable[[str], None], change: Callable[[psycopg.Connection[Any]], T]
) -> T:
    """Return what a change of a connection returns; try again while others hold its locks."""
    for tries_left in reversed(range(_TRIES)):
        try:
            with _patient(url) as connection:
                return change(connection)
        except _IN_THE_WAY as error:
            if not tries_left:
                raise DeployError(
                    f"others were in the way {_TRIES} times: {error}", "end them, or try later"
                ) from error
            _wait(url, say)
    raise AssertionError


def _some(differences: Sequence[Difference]) -> str:
    """Return the first differences as text: tables first, and details last."""
    ordered = sorted(differences, key=lambda d: (not d.holds_data, d.is_detail))
    more = f" and {len(ordered) - _NAMED} more" if len(ordered) > _NAMED else ""
    return ", ".join(map(str, ordered[:_NAMED])) + more


def _wait(url: str, say: Callable[[str], None]) -> None:
    """Report the blocking sessions, and let those behind this deployment go first."""
    with _patient(url) as connection:
        rows = connection.execute(_HOLDERS).fetchall()
    say(f"waiting for {', '.join(str(row[0]) for row in rows) or 'others'}; trying again")
    time.sleep(_SECONDS_BETWEEN_TRIES)


def _patient(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect with the settings of a deployment."""
    given = conninfo_to_dict(url).get("options") or os.environ.get("PGOPTIONS", "")
    return psycopg.connect(
        make_conninfo(url, options=f"{_OPTIONS} {given}".strip()), autocommit=True
    )


def _note(url: str, say: Callable[[str], None], *, is_anew: bool) -> None:
    """Let Sqitch record that all changes are applied; its earlier records go if it is anew."""
    if is_anew:
        with psycopg.connect(url) as connection:
            connection.execute(_FORGET)
    say("recording the changes for sqitch")
    _sqitch(url, *_ADOPT)


def _look(url: str, *, is_written: bool = True) -> _State:
    """Return what a database has.

    Raises:
        DeployError: it does not answer, has a newer release, or is read-only and to be written.
    """
    try:
        with psycopg.connect(url) as connection:
            [row] = connection.execute(_LOOK)
            has_jobq, has_record, is_core, has_version, is_read_only = row
            version = connection.execute(_VERSION).fetchall()[0][0] if has_version else None
    except errors.InsufficientPrivilege as error:
        raise DeployError(
            f"this user may not deploy jobq here: {error}",
            "use the login that deployed it before, the owner of the database",
        ) from error
    except psycopg.Error as error:
        raise DeployError(
            f"the database does not answer: {error}", "check DATABASE_URL, and that the server runs"
        ) from error
    if is_written and is_read_only:
        raise DeployError("the database is read-only", _WRITABLE)
    if version is not None and numbers(version) > numbers(__version__):
        raise DeployError(
            f"the database has jobq {version}, which is newer than this program, "
            f"jobq {__version__}",
            f"use jobq {version}, also for `jobq deploy --back-to {__version__}`",
        )
    return _State(has_jobq, has_record, is_core, version)


def _install(url: str, say: Callable[[str], None], *, core: str | None) -> str:
    """Run the single file in one transaction, or for a core its features; record it with Sqitch."""
    started = time.monotonic()
    whole = single_file()
    script = statements(of_features(whole, core) if core else whole).encode()

    def install(connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute(script)

    try:
        _beside_others(url, say, install)
    except _ALREADY_THERE as error:
        raise DeployError(
            f"a part of jobq is left here: {error}",
            "remove the schemas jobq, jobq_http, jobq_internal and jobq_private, and deploy again",
        ) from error
    except psycopg.Error as error:
        raise DeployError(
            f"the schema could not be installed: {error}",
            "correct the cause, which `jobq certify` may name, and deploy again",
        ) from error
    what = "features added" if core else "schema installed"
    words = f"{what} in {time.monotonic() - started:.1f} s"
    say(words)
    if shutil.which("sqitch") is not None:
        _sqitch(url, *_ADOPT)
    return words


def _let_sqitch_deploy(url: str, say: Callable[[str], None], *options: str) -> str:
    """Let Sqitch deploy missing changes; return its output.

    A change that is applied and not recorded is recorded, if its verification passes.
    """
    recorded: set[str] = set()
    while True:
        try:
            return _sqitch_beside_others(url, say, *_DEPLOY, *options)
        except DeployError as error:
            unrecorded = _UNRECORDED.search(str(error))
            if unrecorded is None or unrecorded[1] in recorded:
                raise
        recorded.add(unrecorded[1])
        _sqitch(url, "deploy", "--log-only", "--to", unrecorded[1], report=say)


def _sqitch_beside_others(url: str, say: Callable[[str], None], verb: str, *options: str) -> str:
    """Run a Sqitch command, and again while other sessions hold the locks that it needs.

    It continues at the change that it has not applied.
    """
    for _ in range(_TRIES):
        try:
            return _sqitch(url, verb, *options, report=say)
        except DeployError as error:
            if not _BLOCKED.search(str(error)):
                raise
        _wait(url, say)
    return _sqitch(url, verb, *options, report=say)


def adopt(url: str) -> str:
    """Record that ``jobq.sql`` has been run, so that later deployments continue from there.

    Raises:
        DeployError: the schema differs from this release, or Sqitch is missing.
    """
    _check_release(url)
    return _sqitch(url, *_ADOPT)


def single_file(*, is_core: bool = False) -> str:
    """Return ``jobq.sql``, which installs everything with psql, or ``jobq-core.sql``.

    A checkout renders it from its sources; an installed package contains it.
    """
    project = project_dir()
    render = project / "sql" / "render.py"
    if render.is_file():
        made = runpy.run_path(str(render))["single_file"]
        return str(made(project, 1) if is_core else made(project))
    return (project / ("jobq-core.sql" if is_core else "jobq.sql")).read_text()


def revert(
    url: str, version: str | None = None, report: Callable[[str], None] | None = None
) -> str:
    """Return to an earlier release, or to none, which deletes all jobs; the roles remain.

    Args:
        url: a libpq URL or connection string of a user who may create roles.
        version: the release to return to.
        report: called with each line of the report.

    Raises:
        DeployError: Sqitch is missing, there is no such release, or a change could not be reverted.
    """
    say = report or (lambda _line: None)
    options = ["-y", *_VERBOSE]
    if version is not None:
        tags = [name[2:] for name in read_plan(project_dir()) if name.startswith("@v")]
        if version not in tags:
            known = f"choose one of {', '.join(tags)}" if tags else "this is the first"
            raise DeployError(f"there is no release {version} before this one", known)
        options += ["--to", f"@v{version}"]
        if not _look(url).has_record:
            raise DeployError("this database has no records of sqitch", _MEND)
    with _alone(url, say):
        return _revert(url, version, options, say)


def _revert(
    url: str, version: str | None, options: Sequence[str], say: Callable[[str], None]
) -> str:
    if version is not None:
        _replace_functions(url, _script_of(version), say)
    try:
        output = _sqitch_beside_others(url, say, "revert", *options)
    except DeployError as error:
        if "No changes deployed since" not in str(error):
            raise
        output = ""
    if version is not None:
        with psycopg.connect(url) as connection:
            record(connection, f"v{version}")
    return output


def _script_of(version: str) -> str:
    """Return what installs an earlier release."""
    with rendered(project_dir()) as project:
        plan = read_plan(project)
        return join(project, "deploy", scripts_between(plan, 0, plan.index(f"@v{version}")))


def verify(url: str) -> str:
    """Check that all changes are applied; return Sqitch's report.

    Without Sqitch or its records, the database is compared with the release.

    Raises:
        DeployError: something is missing or differs, or the database has a newer release.
    """
    if shutil.which("sqitch") is not None:
        try:
            return _sqitch(url, "verify")
        except DeployError:
            _look(url, is_written=False)
            if _pending(url) != _changes():
                raise
    _check_release(url)
    return "the schema is that of this release"


def _check_release(url: str) -> None:
    """Compare a database with the release.

    Raises:
        DeployError: it differs.
    """
    state = _look(url)
    if state.is_core or not state.has_jobq:
        what = "only the core of jobq" if state.is_core else "no jobq"
        raise DeployError(f"this database has {what}", _MEND)
    script = single_file()
    differing = _beside_others(url, print, lambda connection: compare(connection, script)[1])
    if differing:
        raise DeployError(f"the schema is not that of this release: {_some(differing)}", _MEND)


def _sqitch(url: str, verb: str, *options: str, report: Callable[[str], None] | None = None) -> str:
    """Run a Sqitch command and return its output, which a failure contains."""
    program = shutil.which("sqitch")
    if program is None:
        raise DeployError("sqitch is not installed", "install sqitch and libdbd-pg-perl")
    target, environment = _target(url)
    command = [program, verb, "--client", _client(), *options, target]
    lines = []
    with subprocess.Popen(
        command,
        cwd=project_dir(),
        env={**os.environ, **environment, **_identity()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            if report is not None:
                report(line.rstrip())
    output = "".join(lines)
    if "Cannot find change" in output:
        raise DeployError(
            "this database has a schema that was never released",
            "start with an empty one (jobq run keeps its own in .jobq), or revert this one with "
            "the version that deployed it",
        )
    if process.returncode != 0:
        raise DeployError(f"sqitch {verb} failed", f"fix what it reports:\n{output.strip()}")
    return output


def _target(url: str) -> tuple[str, dict[str, str]]:
    """Convert a libpq URL to a target of Sqitch and environment variables of libpq.

    Sqitch's own connection and its psql read these.
    """
    given = {k: str(v) for k, v in conninfo_to_dict(url).items() if v is not None}
    environment = {}
    for option in pq.Conninfo.get_defaults():
        keyword = option.keyword.decode()
        if option.envvar and keyword in given:
            environment[option.envvar.decode()] = given[keyword]
    options = environment.get("PGOPTIONS", os.environ.get("PGOPTIONS", ""))
    environment["PGOPTIONS"] = f"{_OPTIONS} {options}".strip()
    name = given.get("dbname") or os.environ.get("PGDATABASE") or given.get("user", "")
    return f"db:pg:{quote(name, safe='')}", environment


def _client() -> str:
    """Return the path of psql: from PATH, else from the wheel."""
    found = shutil.which("psql")
    if found is not None:
        return found
    try:
        psql = find_bin_dir() / "psql"
    except ServerError:
        psql = Path()
    if not psql.is_file():
        raise DeployError("psql is not installed", "install postgresql-client")
    return str(psql)


def _identity() -> dict[str, str]:
    """Return a locale, and the default name for Sqitch's records."""
    names = {"SYSUSER": "jobq", "FULLNAME": "jobq", "EMAIL": "jobq@example.org"}
    defaults = {f"SQITCH_ORIG_{name}": value for name, value in names.items()}
    return {"LC_ALL": "C.UTF-8", **{n: os.environ.get(n, v) for n, v in defaults.items()}}
