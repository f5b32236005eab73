"""`jobq doctor` and `jobq certify`: check the queue, or whether a server can have one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq_cli.parameters import AS_JSON, DATABASE, Url, argument
from jobq_cli.terminal import asking, plainly, say, show_json
from jobq_operations.certify import certify as certified
from jobq_operations.doctor import Finding, examine, status_of
from jobq_operations.visible import in_line

MARKS: Final = {"failure": "BAD ", "warning": "WARN"}
# Milliseconds for each part: also beside a busy server the whole ends within a minute.
PATIENCE: Final = 5000
VERDICTS: Final = (
    "jobq can run here",
    "jobq can run here; read the warnings",
    "jobq cannot run here",
)


class Unanswered(click.ClickException):
    """The database cannot be asked."""

    exit_code = 2


@click.command(params=[AS_JSON, DATABASE])
def doctor(*, is_json: bool, database_url: str) -> None:
    """Check for problems and print remedies.

    Exits with 0 when all is well, 1 with warnings only, and 2 when something failed or the
    database cannot be asked.
    """
    given = conninfo_to_dict(database_url).get("options") or ""
    options = f"{given} -c statement_timeout={PATIENCE}".strip()
    try:
        with asking(make_conninfo(database_url, options=options)) as client:
            findings = examine(client)
    except click.ClickException as error:
        raise Unanswered(error.message) from error
    show_findings(findings, is_json=is_json)
    sys.exit(status_of(findings))


@click.command(params=[argument("url", type=Url(), envvar="DATABASE_URL"), AS_JSON])
def certify(*, url: str, is_json: bool) -> None:
    """Check whether the server, login and pooler of URL can run jobq.

    Use it before you install jobq on a managed service. It installs the schema and runs a job in a
    transaction that it rolls back. Exits with 0 when all is well, 1 with warnings only, and 2 when
    jobq cannot run there or the database cannot be reached.
    """
    try:
        with plainly():
            findings = certified(url)
    except psycopg.OperationalError as error:
        raise Unanswered(str(error).strip()) from error
    show_findings(findings, is_json=is_json)
    status = status_of(findings)
    if not is_json:
        say(VERDICTS[status])
    sys.exit(status)


def show_findings(findings: Sequence[Finding], *, is_json: bool) -> None:
    """Print findings as JSON, or one a line."""
    if is_json:
        show_json(findings)
        return
    for finding in findings:
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        mark = "ok  " if finding.is_ok else MARKS[finding.severity]
        say(in_line(f"{mark}  {finding.subject:<20}  {finding.finding}{remedy}"))
