"""`jobq certify`: check whether a server can run jobq."""

from __future__ import annotations

import sys
from typing import Final

import click
import psycopg

from jobq_cli.doctor import Unanswered, show_findings
from jobq_cli.parameters import AS_JSON, Url, argument
from jobq_cli.terminal import plainly, say
from jobq_operations.certify import certify as certified
from jobq_operations.doctor import status_of

VERDICTS: Final = (
    "jobq can run here",
    "jobq can run here: mind the warnings",
    "jobq cannot run here",
)


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
