"""jobq's commands, run in the test's own process: importing them anew takes half a second."""

from __future__ import annotations

import subprocess
from typing import Any

from click.testing import CliRunner

from jobq_cli import main


def invoked(database: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command on a database; return what a process of its own would have said."""
    env = {"DATABASE_URL": database, "COLUMNS": "80"}
    done = CliRunner().invoke(main, arguments, env=env, **options)
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)
