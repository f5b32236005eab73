"""A release and its successor, made from the present sources."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import render
from jobq_operations import deploy
from servers import copy_project, copy_unreleased

if TYPE_CHECKING:
    from pathlib import Path

# The successor has a column more in the busiest tables, and other functions, triggers and a view
# that all calls use.
NOTE = """
begin;
set local role jobq_owner;
alter table jobq_private.job add column note text;
alter table jobq_private.job_archive add column note text;
commit;
"""
NO_NOTE = """
begin;
set local role jobq_owner;
alter table jobq_private.job drop column note;
alter table jobq_private.job_archive drop column note;
commit;
"""
REWORKED = {
    "work": ("claim", "complete_many", "private/settle_failures"),
    "job": ("private/job_transition", "private/archive_birth"),
    "schedule": ("private/due_schedule",),
}
# Private functions with other names there. Sqitch deploys the topic of the first before topics that
# call it, and that of the second after one.
RENAMED = {"job": "archive_jobs", "work": "wake"}


def releases(folder: Path) -> tuple[Path, Path]:
    """Make the projects of release 0.1.0 and of its successor; return their folders."""
    for name in ("old", "new"):
        (folder / name).mkdir(parents=True)
    old = copy_unreleased(folder / "old")
    render.release(old, "v0.1.0")
    new = copy_project(folder / "new", old)
    add_note(new)
    for topic, names in REWORKED.items():
        for name in names:
            source = new / "sql" / topic / f"{name}.sql"
            text = source.read_text().replace("\nbegin\n", "\nbegin\n    null;\n")
            source.write_text(text.replace("\nwhere ", "\nwhere true and "))
    for topic, name in RENAMED.items():
        rename(new, topic, name)
    render.update(new)
    return old, new


def add_note(project: Path) -> None:
    """Add a hand-written change, a column of jobs."""
    sqitch(project, "add", "note", "--note", "a column more")
    (project / "deploy" / "note.sql").write_text(NOTE)
    (project / "revert" / "note.sql").write_text(NO_NOTE)
    verify = "select note from jobq_private.job where false;\n"
    (project / "verify" / "note.sql").write_text(verify)


def rename(project: Path, topic: str, name: str) -> None:
    """Give a private function another name, also where it is called."""
    made = project / "sql" / topic / "private" / f"{name}.sql"
    made.write_text(re.sub(rf"\b{name}\.", f"{name}_2.", made.read_text()))
    for path in (project / "sql").glob("*/**/*.sql"):
        text = path.read_text()
        if (changed := re.sub(rf"(jobq_private\.{name})\b", r"\1_2", text)) != text:
            path.write_text(changed)
    made.rename(made.with_stem(f"{name}_2"))


def sqitch(project: Path, verb: str, *options: str, target: str | None = None) -> None:
    """Run Sqitch in a project, as its author does."""
    name, variables = deploy._target(target) if target else ("", {})
    done = subprocess.run(
        ["sqitch", verb, *options, *filter(None, [name])],
        cwd=project, env={**os.environ, **variables, **deploy._identity()},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    done.check_returncode()
