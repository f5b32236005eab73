"""The Sqitch project that belongs to this code, and the tables in it that Python needs, too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["ErrorRow", "project_dir", "read_errors", "read_routes"]

_PACKAGE: Final = Path(__file__).parent
_TEXT: Final = r"'((?:[^']|'')*)'"
_ERROR: Final = re.compile(rf"^\('([A-Z_]+)', '(\w{{5}})', (\d+), {_TEXT}", re.MULTILINE)
_ROUTE: Final = re.compile(rf"^    \('(\w+)', {_TEXT}, {_TEXT}\)", re.MULTILINE)


class ErrorRow(NamedTuple):
    """One error of the database: its SQLSTATE, its HTTP status and its fixed message."""

    sqlstate: str
    http_status: int
    message: str


def project_dir() -> Path:
    """Return the folder of ``sqitch.plan``: the checkout's, else the package's.

    Raises:
        FileNotFoundError: there is neither.
    """
    for folder in (_PACKAGE.parents[2], _PACKAGE / "sqitch"):
        if (folder / "sqitch.plan").is_file() and (folder / "sqitch.conf").is_file():
            return folder
    raise FileNotFoundError("the package has no Sqitch project; install jobq again")


def read_errors() -> dict[str, ErrorRow]:
    """Return the errors that the database raises, by symbolic code."""
    text = (project_dir() / "deploy" / "error_tables.sql").read_text()
    return {
        code: ErrorRow(sqlstate, int(status), message.replace("''", "'"))
        for code, sqlstate, status, message in _ERROR.findall(text)
    }


def read_routes() -> dict[str, tuple[str, str]]:
    """Return how each function answers in a cluster: its class and what that needs to know."""
    text = (project_dir() / "deploy" / "shard_tables.sql").read_text()
    return {
        name: (way, "" if way in {"all", "lists"} else detail.replace("''", "'"))
        for way, detail, names in _ROUTE.findall(text)
        for name in names.split()
    }
