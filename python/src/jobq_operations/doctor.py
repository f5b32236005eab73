"""`jobq doctor`: find what threatens jobs, and the remedies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from jobq.calls.call import Call
from jobq.client import Client
from jobq.errors import JobqError
from jobq.models import record
from jobq_operations.deploy import single_file
from jobq_operations.schema import release_of

# The parts of jobq.health(), each with its own call, so that a slow one is cancelled alone.
PARTS: Final = (
    "server", "vacuum", "replication", "trial", "locks", "settings", "jobs", "workers",
    "maintenance", "schema", "clock",
)  # fmt: skip
CANCELLED: Final = "57014"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        subject: its subject, such as ``fsync`` or ``leases``.
        is_ok: whether it passed.
        finding: the finding as text.
        remedy: the remedy; None if it passed.
        severity: the severity if it fails.
    """

    subject: str
    is_ok: bool
    finding: str
    remedy: str | None
    severity: Literal["failure", "warning"]


def examine(client: Client) -> list[Finding]:
    """Return the findings: failures first, then warnings, then passed checks.

    Args:
        client: client of a user who may act as jobq_operator or jobq_reader; the statement timeout
            of its connection applies to each part.

    Raises:
        JobqError: the database does not respond.
        FileNotFoundError: the package lacks the files of its release.
    """
    release = release_of(single_file())
    found = [each for part in PARTS for each in _part(client, part, release)]
    return sorted(found, key=lambda each: (each.is_ok, each.severity, each.subject))


def status_of(findings: Iterable[Finding]) -> int:
    """Return the exit status: 0 if all checks pass, 1 for warnings, 2 for failures."""
    bad = {finding.severity for finding in findings if not finding.is_ok}
    return 2 if "failure" in bad else len(bad)


def _part(client: Client, part: str, release: str) -> list[Finding]:
    given = {"client_time": datetime.now(UTC), "release": release, "part": part}
    try:
        return client.run(Call("health", given, list, record(Finding)))
    except JobqError as error:
        if error.sqlstate != CANCELLED:
            raise
        remedy = "find in pg_stat_activity why the server is busy, and try again"
        return [Finding(part, False, "could not be checked in time", remedy, "failure")]
