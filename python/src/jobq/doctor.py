"""What threatens the promise that no job is lost, and what to do about it: `jobq doctor`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

import click

from jobq.calls import Call
from jobq.client import Client
from jobq.errors import JobqError
from jobq.models import record

__all__ = ["Finding", "doctor", "examine"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: what it is, such as ``fsync`` or ``leases``.
        is_ok: whether it is as it should be.
        finding: what was found, in words.
        remedy: what to do; None where nothing is to be done.
    """

    subject: str
    is_ok: bool
    finding: str
    remedy: str | None


def examine(client: Client) -> list[Finding]:
    """Return what was found, that which is not in order first.

    Args:
        client: of a user who may act as jobq_operator or jobq_reader.

    Raises:
        JobqError: the database cannot be asked.
    """
    return client.run(Call("health", {}, list, record(Finding)))


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print JSON, a line for each finding.")
@click.option("--database", envvar="DATABASE_URL", required=True, help="The database.")
def doctor(*, is_json: bool, database: str) -> None:
    """Say what threatens the queue's promise, with the remedy; exit with 1 if anything does."""
    try:
        with Client(database, pool_size=1) as client:
            findings = examine(client)
    except JobqError as error:
        raise click.ClickException(f"{error.code}: {error}; {error.hint}") from error
    for finding in findings:
        if is_json:
            click.echo(json.dumps(asdict(finding)))
            continue
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        mark = "ok " if finding.is_ok else "BAD"
        click.echo(f"{mark}  {finding.subject:<20}  {finding.finding}{remedy}")
    sys.exit(0 if all(finding.is_ok for finding in findings) else 1)
