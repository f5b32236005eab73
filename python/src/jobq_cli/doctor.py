"""`jobq doctor`: check the queue for problems."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq_cli.parameters import AS_JSON, DATABASE
from jobq_cli.terminal import asking, say, show_json
from jobq_operations.doctor import Finding, examine, status_of

MARKS: Final = {"failure": "BAD ", "warning": "WARN"}
# Milliseconds for each part: also beside a busy server the whole ends within a minute.
PATIENCE: Final = 5000


class Unanswered(click.ClickException):
    """The database cannot be asked."""

    exit_code = 2


@click.command(params=[AS_JSON, DATABASE])
def doctor(*, is_json: bool, database_url: str) -> None:
    """Check for problems and print remedies.

    Exits with 0 when all is well, 1 with warnings only, and 2 when something failed or the
    database cannot be asked.
    """
    try:
        with asking(_impatient(database_url)) as client:
            findings = examine(client)
    except click.ClickException as error:
        raise Unanswered(error.message) from error
    show_findings(findings, is_json=is_json)
    sys.exit(status_of(findings))


def show_findings(findings: Sequence[Finding], *, is_json: bool) -> None:
    """Print findings as JSON, or one a line."""
    if is_json:
        show_json(findings)
        return
    for finding in findings:
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        mark = "ok  " if finding.is_ok else MARKS[finding.severity]
        say(f"{mark}  {finding.subject:<20}  {finding.finding}{remedy}")


def _impatient(url: str) -> str:
    """Return a URL whose statements end in time."""
    given = conninfo_to_dict(url).get("options") or ""
    return make_conninfo(url, options=f"{given} -c statement_timeout={PATIENCE}".strip())
