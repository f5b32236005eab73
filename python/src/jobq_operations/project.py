"""The Sqitch project of this release, and the errors that it defines."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from jobq_operations.schema import statements

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


def read_plan(project: Path) -> list[str]:
    """Return the names of the plan's changes and tags."""
    lines = (project / "sqitch.plan").read_text().splitlines()
    return [line.split()[0] for line in lines if line.strip() and not line.startswith("%")]


@contextmanager
def rendered(project: Path) -> Iterator[Path]:
    """Yield a Sqitch project with rendered scripts: a checkout's is rendered into a copy."""
    render = project / "sql" / "render.py"
    if not render.is_file():
        yield project
        return
    with TemporaryDirectory() as folder:
        runpy.run_path(str(render))["export"](project, Path(folder))
        yield Path(folder)


def scripts_between(plan: list[str], start: int, end: int) -> list[str]:
    """Return the names of the scripts between two places of the plan.

    The script of a change that a later release has changed again is stored under its tag.
    """
    names = []
    for n in range(start, end):
        if not plan[n].startswith("@"):
            tag = next((name for name in plan[n:] if name.startswith("@")), "")
            names.append(plan[n] + (tag if plan[n] in plan[n + 1 :] else ""))
    return names


def join(project: Path, verb: str, names: list[str]) -> str:
    """Return scripts as statements for the transaction of the caller."""
    parts = []
    for name in names:
        text = statements((project / verb / f"{name}.sql").read_text()).strip()
        parts.append(text + "\n\nreset role;" * ("set local role" in text))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts))


def is_code(project: Path, name: str) -> bool:
    """Return whether a change has only functions, views and triggers, which are rendered."""
    text = (project / "deploy" / f"{name}.sql").read_text()
    return "sql/render.py" in text or "set local check_function_bodies" in text


def read_errors() -> dict[str, ErrorRow]:
    """Return the errors that the database raises, by symbolic code."""
    text = (project_dir() / "deploy" / "error_tables.sql").read_text()
    return {
        code: ErrorRow(sqlstate, int(status), message.replace("''", "'"))
        for code, sqlstate, status, message in _ERROR.findall(text)
    }
