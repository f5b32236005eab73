"""Migrations that carry jobq's schema in the tool of an application.

The scripts are those of Sqitch's plan: each release has a tag there. A migration is what the plan
has between two tags, for the transaction in which the tool runs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from jobq.version import __version__
from jobq_operations.deploy import DeployError, single_file
from jobq_operations.project import join, project_dir, read_plan, rendered, scripts_between
from jobq_operations.schema import release_of

Format = Literal["sql", "alembic", "django", "flyway", "rails", "prisma"]


@dataclass(frozen=True, slots=True)
class Step:
    """A migration in SQL, without a transaction, and its titles for people and programs."""

    title: str
    name: str
    up: str
    down: str


def migration(since: str | None, until: str | None = None, form: Format = "sql") -> str:
    """Return a migration from one release to another.

    Args:
        since: the release that is installed, such as ``1.0.0``; None for none.
        until: the release to come to; this one by default.
        form: the tool.

    Raises:
        DeployError: there is no such release, or they are in the wrong order.
    """
    with rendered(project_dir()) as project:
        plan = read_plan(project)
        start = 0 if since is None else _place(plan, since)
        end = len(plan) if until is None else _place(plan, until)
        until = until or __version__
        if end < start:
            raise DeployError("the releases are in the wrong order", "use the down migration")
        names = scripts_between(plan, start, end)
        if not names:
            raise DeployError(f"{since} is already {until}", "name two releases")
        is_last = not scripts_between(plan, end, len(plan))
        up = join(project, "deploy", names)
        up += _record(release_of(single_file()) if is_last else f"v{until}")
        down = join(project, "revert", names[::-1])
        down += _record(f"v{since}") if since else ""
    title = f"Upgrade jobq from {since} to {until}" if since else f"Install jobq {until}"
    name = re.sub(r"\W+", "_", title.lower())
    return FORMATS[form](Step(title, name, up, down))


def _record(release: str) -> str:
    """Return the statement that lets `jobq doctor` compare the database with what it became."""
    return f"\n\nselect jobq_private.record_release('{release}');"


def _place(plan: list[str], version: str) -> int:
    """Return where a release ends in the plan."""
    if f"@v{version}" in plan:
        return plan.index(f"@v{version}")
    if version == __version__:
        return len(plan)
    tags = [name.removeprefix("@v") for name in plan if name.startswith("@")]
    known = ", ".join(dict.fromkeys([*tags, __version__]))
    raise DeployError(f"there is no release {version}", f"choose one of {known}")


def _sql(step: Step) -> str:
    return f"-- {step.title}\nbegin;\n\n{step.up}\n\ncommit;\n"


def _plain(step: Step) -> str:
    return f"-- {step.title}\n\n{step.up}\n"


def _alembic(step: Step) -> str:
    return f'''"""{step.title}"""

from alembic import op

revision = "{step.name}"
down_revision = None  # the revision before it
branch_labels = None
depends_on = None

UP = r"""
{step.up}
"""

DOWN = r"""
{step.down}
"""


def run(script: str) -> None:
    """Give the script to the driver as it is: it has its own % and colons."""
    op.get_bind().execution_options(no_parameters=True).exec_driver_sql(script)


def upgrade() -> None:
    run(UP)


def downgrade() -> None:
    run(DOWN)
'''


def _django(step: Step) -> str:
    return f'''"""{step.title}"""

from django.db import migrations

UP = r"""
{step.up}
"""

DOWN = r"""
{step.down}
"""


class Migration(migrations.Migration):
    dependencies = []  # the migration before it

    operations = [migrations.RunSQL(UP, DOWN)]
'''


def _rails(step: Step) -> str:
    camel = "".join(part.capitalize() for part in step.name.split("_"))
    return f"""# {step.title}. It needs config.active_record.schema_format = :sql.
class {camel} < ActiveRecord::Migration[6.1]
  def up
    execute UP
  end

  def down
    execute DOWN
  end

  UP = <<'JOBQ_SQL'
{step.up}
JOBQ_SQL

  DOWN = <<'JOBQ_SQL'
{step.down}
JOBQ_SQL
end
"""


FORMATS: Final[dict[str, Callable[[Step], str]]] = {
    "sql": _sql,
    "alembic": _alembic,
    "django": _django,
    "flyway": _plain,
    "rails": _rails,
    "prisma": _plain,
}
"""The tools, and what makes a migration of each. Prisma and Flyway run plain SQL."""
