"""The Sqitch project of this release, and the errors that it defines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_SOURCE: Final = Path(__file__).parents[1]
TEXT: Final = r"'((?:[^']|'')*)'"
_ERROR: Final = re.compile(rf"^\('([A-Z_]+)', '(\w{{5}})', (\d+), {TEXT}", re.MULTILINE)


class ErrorRow(NamedTuple):
    """One error of the database: its SQLSTATE, its HTTP status and its fixed message."""

    sqlstate: str
    http_status: int
    message: str


def project_dir() -> Path:
    """Return the folder of ``sqitch.plan``: the checkout's, else the package's.

    Raises:
        FileNotFoundError: neither exists.
    """
    for folder in (_SOURCE.parents[1], _SOURCE / "jobq" / "sqitch"):
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
