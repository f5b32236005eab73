"""Install, remove and check jobq's schema with Sqitch.

The Sqitch project is the checkout's own, or the copy that an installed wheel carries.
Connection details, the password among them, reach Sqitch by libpq's environment
variables and never by its command line, which other users of the machine can read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from jobq.embedded import ServerError, find_bin_dir

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DeployError", "adopt", "deploy", "project_dir", "revert", "verify"]

_PACKAGE = Path(__file__).parent
# A change that waits for a busy table makes everybody else wait behind it.
_LOCK_TIMEOUT = "-c lock_timeout=10s"
_DEPLOY = ("deploy", "--mode", "change", "--verify")
# What Sqitch says of a change that is in place already, though it has not noted it.
_UNRECORDED = re.compile(
    r"^  \+ (\S+) \.\.+ (?:psql:.*\n)*?psql:.*ERROR:  .* already exists$", re.MULTILINE
)


class DeployError(RuntimeError):
    """Sqitch is missing, or it failed.

    Attributes:
        remedy: what the reader can do about it, as one sentence.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.remedy = remedy


def deploy(url: str, report: Callable[[str], None] | None = None) -> str:
    """Bring a database to the newest schema; return Sqitch's report.

    Args:
        url: a libpq URL or connection string of a user who may create roles.
        report: called with each line of the report as it comes.

    A deployment that was killed between the commit of a change and Sqitch's note of it
    leaves that one change unrecorded; where its verification passes, it is recorded.

    Raises:
        DeployError: Sqitch is missing, or a change failed and was taken back.
    """
    try:
        return _sqitch(url, *_DEPLOY, report=report)
    except DeployError as error:
        unrecorded = _UNRECORDED.search(str(error))
        if unrecorded is None:
            raise
    _sqitch(url, "deploy", "--log-only", "--to", unrecorded[1], report=report)
    return _sqitch(url, *_DEPLOY, report=report)


def adopt(url: str) -> str:
    """Record that ``jobq.sql`` has been loaded, so that later deploys go on from there.

    Raises:
        DeployError: Sqitch is missing or failed.
    """
    return _sqitch(url, "deploy", "--log-only")


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
            "install sqitch and libdbd-pg-perl, or load jobq.sql with psql -f",
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
    environment["PGOPTIONS"] = f"{_LOCK_TIMEOUT} {options}".strip()
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
