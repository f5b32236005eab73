"""What threatens the promise that no job is lost, and what to do about it: `jobq doctor`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from psycopg.types.json import Jsonb

from jobq.call import Call
from jobq.deploy import project_dir
from jobq.models import record

if TYPE_CHECKING:
    from pathlib import Path

    from jobq.client import Client

__all__ = ["Finding", "examine", "release_of"]

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
    for script in project.glob("deploy/*.sql"):
        if "@" in script.stem:  # what a later change has replaced
            continue
        for name, _, body in _FUNCTION.findall(script.read_text()):
            digest = hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
            sums.setdefault(name, []).append(digest)
    return sums
