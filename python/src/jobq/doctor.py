"""What threatens the promise that no job is lost, and what to do about it: `jobq doctor`."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click
from psycopg.types.json import Jsonb

from jobq.calls import Call
from jobq.client import Client
from jobq.deploy import DeployError, project_dir
from jobq.errors import JobqError
from jobq.models import record

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Finding", "doctor", "examine", "release_of"]

_FUNCTION: Final = re.compile(
    r"^ *create or replace function ([\w.]+)\(.*?^ *as (\$\$|')(.*?)\2", re.MULTILINE | re.DOTALL
)


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
        DeployError: the package lacks the files of its release.
    """
    release = Jsonb(release_of(project_dir()))
    given = {"client_time": datetime.now(UTC), "release": release}
    return client.run(Call("health", given, list, record(Finding)))


def release_of(project: Path) -> dict[str, list[str]]:
    """Return the MD5 sums that the bodies of a release's functions may have, by name.

    Args:
        project: the folder of the release's Sqitch project.
    """
    sums: dict[str, list[str]] = {}
    for script in project.glob("deploy/*/*.sql"):
        if "@" in script.stem:  # what a later change has replaced
            continue
        for name, _, body in _FUNCTION.findall(script.read_text()):
            digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
            sums.setdefault(name, []).append(digest)
    return sums


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
    except DeployError as error:
        raise click.ClickException(str(error)) from error
    for finding in findings:
        if is_json:
            click.echo(json.dumps(asdict(finding)))
            continue
        remedy = f"; {finding.remedy}" if finding.remedy else ""
        mark = "ok " if finding.is_ok else "BAD"
        click.echo(f"{mark}  {finding.subject:<20}  {finding.finding}{remedy}")
    sys.exit(0 if all(finding.is_ok for finding in findings) else 1)
