"""Install jobq's schema, upgrade, remove and check it.

An empty database gets all of it from ``jobq.sql``, in one transaction; what is there already
is brought to a newer version by Sqitch, which notes what each database has. Both are the
checkout's own, or the copies that an installed wheel carries. Connection details, the password
among them, reach Sqitch by libpq's environment variables and never by its command line, which
other users of the machine can read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.embedded import ServerError, find_bin_dir

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeployError", "adopt", "deploy", "project_dir", "revert", "single_file", "verify"]

_PACKAGE = Path(__file__).parent
# A change that waits for a busy table makes everybody else wait behind it.
_OPTIONS = "-c lock_timeout=10s -c client_min_messages=warning"
# What Sqitch's psql says of an error begins with its SQLSTATE.
_DEPLOY = ("deploy", "--mode", "change", "--verify", "--set", "VERBOSITY=verbose")
# A change that is in place already, though Sqitch has not noted it: what it makes is there
# (duplicate schema, table or object).
_UNRECORDED = re.compile(
    r"^  \+ (\S+) \.\.+ (?:psql:.*\n)*?psql:.*ERROR:  (?:42P06|42P07|42710):", re.MULTILINE
)
# What another installation that was quicker leaves to say: its schema, role or type is there.
_ALREADY_THERE = (errors.DuplicateSchema, errors.DuplicateObject, errors.UniqueViolation)
# All that is asked of a database before there is a jobq in it.
_LOOK = "select to_regclass('jobq.job') is not null, to_regclass('sqitch.changes') is not null"


class DeployError(RuntimeError):
    """The schema cannot be brought to this version, or not checked.

    Attributes:
        remedy: what the reader can do about it, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.remedy = remedy


def deploy(url: str, report: Callable[[str], None] | None = None) -> str:
    """Bring a database to the newest schema; return a report.

    Args:
        url: a libpq URL or connection string of a user who may create roles.
        report: called with each line of the report as it comes.

    A schema that ``jobq.sql`` made, and Sqitch has not noted, is adopted first. A deployment
    that was killed between a commit and Sqitch's note of it leaves changes unrecorded; where
    their verification passes, they are recorded.

    Raises:
        DeployError: the database cannot be reached, Sqitch is missing for an upgrade, or a
            change failed and was taken back.
    """
    say = report or _nothing
    has_jobq, has_record = _look(url)
    if not has_jobq and not has_record:
        return _install(url, say)
    if shutil.which("sqitch") is None:
        raise DeployError(
            "the database has a schema of jobq already, and sqitch, which upgrades it, is not "
            "installed",
            "install sqitch and libdbd-pg-perl; jobq doctor says whether an upgrade is needed",
        )
    if has_jobq and not has_record:
        say("taking over what jobq.sql installed")
        adopt(url)
    return _upgrade(url, say)


def _look(url: str) -> tuple[bool, bool]:
    """Tell whether a database has jobq, and whether it has Sqitch's record of changes.

    Raises:
        DeployError: it cannot be reached.
    """
    try:
        with psycopg.connect(url) as connection:
            row = connection.execute(_LOOK).fetchone()
    except psycopg.Error as error:
        raise DeployError(
            f"the database does not answer: {error}", "check DATABASE_URL, and that the server runs"
        ) from error
    return (bool(row[0]), bool(row[1])) if row else (False, False)


def _install(url: str, say: Callable[[str], None]) -> str:
    """Load the single file in one transaction, and have Sqitch note it where there is one.

    Raises:
        DeployError: the database refused it, or Sqitch failed.
    """
    started = time.monotonic()
    statements = re.sub(r"^\\.*$", "", single_file(), flags=re.MULTILINE)
    given = conninfo_to_dict(url).get("options") or os.environ.get("PGOPTIONS", "")
    patient = make_conninfo(url, options=f"{_OPTIONS} {given}".strip())
    try:
        with psycopg.connect(patient, autocommit=True) as connection:
            connection.execute(statements.encode())
    except _ALREADY_THERE as error:
        raise DeployError(
            f"somebody else is installing jobq here, or a part of it is left: {error}",
            "try again, or remove the schemas jobq, jobq_http and jobq_private first",
        ) from error
    except psycopg.Error as error:
        raise DeployError(f"the schema could not be installed: {error}", "mend that") from error
    words = f"schema installed in {time.monotonic() - started:.1f} s"
    say(words)
    if shutil.which("sqitch") is not None:
        _sqitch(url, "deploy", "--log-only", "--no-verify")
    return words


def _upgrade(url: str, say: Callable[[str], None]) -> str:
    """Have Sqitch deploy what is missing; return what it printed.

    What is there and not noted is noted, change by change, where its verification passes.

    Raises:
        DeployError: a change failed and was taken back.
    """
    recorded: set[str] = set()
    while True:
        try:
            return _sqitch(url, *_DEPLOY, report=say)
        except DeployError as error:
            unrecorded = _UNRECORDED.search(str(error))
            if unrecorded is None or unrecorded[1] in recorded:
                raise
        recorded.add(unrecorded[1])
        _sqitch(url, "deploy", "--log-only", "--to", unrecorded[1], report=say)


def _nothing(_line: str) -> None:
    """Take a report that nobody reads."""


def adopt(url: str) -> str:
    """Record that ``jobq.sql`` has been loaded, so that later deploys go on from there.

    Raises:
        DeployError: Sqitch is missing, or the schema is not that of this version.
    """
    return _sqitch(url, "deploy", "--log-only")


def single_file() -> str:
    """Return the text of ``jobq.sql``, which installs everything with psql alone.

    Raises:
        DeployError: the package has no Sqitch project.
    """
    return (project_dir() / "jobq.sql").read_text()


def revert(url: str) -> str:
    """Take every change back, jobs included; the cluster's roles stay.

    Raises:
        DeployError: Sqitch is missing, or a change could not be taken back.
    """
    return _sqitch(url, "revert", "-y")


def verify(url: str) -> str:
    """Check that all changes are in place; return Sqitch's report.

    Raises:
        DeployError: Sqitch is missing, or something is not as deployed.
    """
    return _sqitch(url, "verify")


def project_dir() -> Path:
    """Return the folder of ``sqitch.plan``: the checkout's, else the package's.

    Raises:
        DeployError: there is neither.
    """
    checkout = _PACKAGE.parents[2]
    for folder in (checkout, _PACKAGE / "sqitch"):
        if (folder / "sqitch.plan").is_file() and (folder / "sqitch.conf").is_file():
            return folder
    raise DeployError("the package has no Sqitch project", "install jobq again")


def _sqitch(url: str, verb: str, *options: str, report: Callable[[str], None] | None = None) -> str:
    """Run one Sqitch command and return what it printed.

    Raises:
        DeployError: Sqitch is missing, or it failed; the message ends with its output.
    """
    program = shutil.which("sqitch")
    if program is None:
        raise DeployError(
            "sqitch is not installed",
            "install sqitch and libdbd-pg-perl",
        )
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
        raise DeployError(f"sqitch {verb} failed", f"mend what it says:\n{output.strip()}")
    return output


def _target(url: str) -> tuple[str, dict[str, str]]:
    """Translate a libpq URL into Sqitch's target and libpq's environment.

    Host, port, user, password and every parameter that has an environment variable go
    there; Sqitch's own connection and its psql both read them.
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
    """Return the psql to run scripts with: the one on PATH, else the wheel's.

    Raises:
        DeployError: there is none.
    """
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
    """Return a locale, and the name that Sqitch uses where it has no other."""
    defaults = {
        "SQITCH_ORIG_SYSUSER": "jobq",
        "SQITCH_ORIG_FULLNAME": "jobq",
        "SQITCH_ORIG_EMAIL": "jobq@example.org",
    }
    return {"LC_ALL": "C.UTF-8"} | {
        name: os.environ.get(name, value) for name, value in defaults.items()
    }
