"""What threatens the promise that no job is lost, and what to do about it: `jobq doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from jobq.calls.call import Call
from jobq.errors import JobqError
from jobq.models import record
from jobq_operations.deploy import single_file
from jobq_operations.schema import release_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobq.client import Client

__all__ = ["Finding", "examine", "status_of"]

# The parts of jobq.health(), each asked for by a call of its own: one that takes too long is
# cancelled, and the others still answer.
PARTS: Final = (
    "server", "vacuum", "replication", "trial", "locks", "settings", "jobs", "workers",
    "maintenance", "schema", "clock",
)  # fmt: skip
CANCELLED: Final = "57014"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: what it is, such as ``fsync`` or ``leases``.
        is_ok: whether it is as it should be.
        finding: what was found, in words.
        remedy: what to do; None where nothing is to be done.
        severity: how bad it is while it is not as it should be.
    """

    subject: str
    is_ok: bool
    finding: str
    remedy: str | None
    severity: Literal["failure", "warning"]


def examine(client: Client) -> list[Finding]:
    """Return what was found: failures first, then warnings, then what is in order.

    Args:
        client: of a user who may act as jobq_operator or jobq_reader; the statement timeout
            of its connection bounds each part.

    Raises:
        JobqError: the database cannot be asked.
        FileNotFoundError: the package lacks the files of its release.
    """
    release = release_of(single_file())
    found = [each for part in PARTS for each in _part(client, part, release)]
    return sorted(found, key=lambda each: (each.is_ok, each.severity, each.subject))


def status_of(findings: Iterable[Finding]) -> int:
    """Return the exit status: 0 when all is well, 1 for warnings, 2 when anything failed."""
    bad = {finding.severity for finding in findings if not finding.is_ok}
    return 2 if "failure" in bad else len(bad)


def _part(client: Client, part: str, release: str) -> list[Finding]:
    given = {"client_time": datetime.now(UTC), "release": release, "part": part}
    try:
        return client.run(Call("health", given, list, record(Finding)))
    except JobqError as error:
        if error.sqlstate != CANCELLED:
            raise
        remedy = "look at pg_stat_activity for what the server is busy with, and ask again"
        return [Finding(part, False, "could not be checked in time", remedy, "failure")]
