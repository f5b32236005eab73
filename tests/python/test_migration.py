"""`jobq migration`: the schema in the tools of applications."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from commands import invoked

import render
from catalog import catalog, seeds
from jobq import __version__
from jobq_operations import deploy, migration
from jobq_operations.migration import FORMATS
from jobq_operations.schema import release_of
from servers import ROOT, Cluster, copy_unreleased

if TYPE_CHECKING:
    from pathlib import Path

ENV = """
import os
from alembic import context
from sqlalchemy import create_engine

with create_engine(os.environ["DATABASE_URL"]).begin() as connection:
    context.configure(connection=connection)
    context.run_migrations()
"""
DJANGO = """
import os
import django
from django.conf import settings
from django.core.management import call_command
from psycopg.conninfo import conninfo_to_dict

parts = conninfo_to_dict(os.environ["PLAIN_URL"])
names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}
               | {name: parts[key] for name, key in names.items()}},
    INSTALLED_APPS=["shop"],
)
django.setup()
call_command("migrate", "shop", os.environ["TARGET"], verbosity=0)
"""


def printed(*arguments: str) -> str:
    done = invoked("", "migration", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_tool(program: str, folder: Path, database: str, **environment: str) -> None:
    """Run a program of a tool, which must succeed."""
    url = database.replace("postgresql:", "postgresql+psycopg:")
    words = ["-c", program] if "\n" in program else program.split()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder, capture_output=True, text=True, check=False, timeout=280,
        env=os.environ | {"DATABASE_URL": url, "PLAIN_URL": database} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def without(table: str, database: str) -> list[Any]:
    """Return the catalog without the tool's own table."""
    return [row for row in catalog(database) if table not in str(row)]


def has_jobq(database: str) -> bool:
    with psycopg.connect(database) as connection:
        row = connection.execute("select count(*) from pg_namespace where nspname ~ '^jobq'")
        return row.fetchone() != (0,)


def test_sql_installs_what_jobq_deploy_installs(
    cluster: Cluster, empty_database: str, database: str
) -> None:
    cluster.psql(empty_database, printed())
    assert catalog(empty_database) == catalog(database)
    assert seeds(empty_database) == seeds(database)
    asked = "select is_ok from jobq.health(null, %s) where subject = 'schema'"
    with psycopg.connect(empty_database) as connection:
        release = release_of(deploy.single_file())
        assert connection.execute(asked, [release]).fetchone() == (True,)


@pytest.mark.prove
def test_alembic_installs_and_removes_it(
    empty_database: str, database: str, tmp_path: Path
) -> None:
    (tmp_path / "alembic.ini").write_text("[alembic]\nscript_location = .\n")
    (tmp_path / "env.py").write_text(ENV)
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "jobq.py").write_text(printed("--format", "alembic"))
    in_tool("-m alembic upgrade head", tmp_path, empty_database)
    assert without("alembic_version", empty_database) == catalog(database)
    in_tool("-m alembic downgrade base", tmp_path, empty_database)
    assert not has_jobq(empty_database)


@pytest.mark.prove
def test_django_installs_and_removes_it(empty_database: str, database: str, tmp_path: Path) -> None:
    folder = tmp_path / "shop" / "migrations"
    folder.mkdir(parents=True)
    for path in (folder.parent, folder):
        (path / "__init__.py").touch()
    (folder / "0001_jobq.py").write_text(printed("--format", "django"))
    in_tool(DJANGO, tmp_path, empty_database, TARGET="0001")
    assert [
        row for row in catalog(empty_database) if "django_migrations" not in str(row)
    ] == catalog(database)
    in_tool(DJANGO, tmp_path, empty_database, TARGET="zero")
    assert not has_jobq(empty_database)


@pytest.mark.prove
@pytest.mark.parametrize("form", ["flyway", "prisma"])
def test_plain_sql_runs_in_the_transaction_of_the_tool(
    form: str, empty_database: str, database: str
) -> None:
    text = printed("--format", form)
    assert not re.search(r"^(begin|commit);|^\\", text, re.MULTILINE)
    assert "${" not in text, "Flyway would replace it"
    with psycopg.connect(empty_database) as connection:
        connection.execute(text.encode())
    assert catalog(empty_database) == catalog(database)


def test_rails_gets_ruby(tmp_path: Path) -> None:
    text = printed("--format", "rails")
    path = tmp_path / "migration.rb"
    path.write_text(text)
    checked = subprocess.run(["ruby", "-c", path], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert f"class InstallJobq{__version__.replace('.', '')} < ActiveRecord::Migration" in text
    assert text.count("JOBQ_SQL") == 4


@pytest.fixture
def released(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a release 0.0.9, whose successor changes a view."""
    copy = copy_unreleased(tmp_path / "released", project)
    render.release(copy, "v0.0.9")
    view = copy / "sql" / "job" / "job.sql"
    view.write_text(view.read_text() + "comment on view jobq.job is 'Jobs.';\n")
    render.update(copy)
    for module in (deploy, migration):
        monkeypatch.setattr(module, "project_dir", lambda: copy)
    return copy


@pytest.mark.prove
def test_an_upgrade_has_only_what_changed_and_is_undone(
    cluster: Cluster, empty_database: str, database: str, released: Path
) -> None:
    cluster.psql(empty_database, printed("--to", "0.0.9"))
    assert catalog(empty_database) == catalog(database)
    done = invoked("", "migration", "--from", __version__, "--to", "0.0.9")
    assert "wrong order" in done.stderr
    step = migration.migration("0.0.9", form="sql")
    assert "-- Upgrade jobq from 0.0.9" in step
    assert "create or replace function jobq.claim(" not in step
    cluster.psql(empty_database, step)
    with cluster.database(template="template0") as new:
        cluster.psql(new, render.single_file(released))
        assert catalog(new) == catalog(empty_database)
    names: dict[str, object] = {}
    exec(
        migration.migration("0.0.9", form="alembic").replace("from alembic import op\n", ""), names
    )
    with psycopg.connect(empty_database) as connection:
        connection.execute(str(names["DOWN"]).encode())
    assert catalog(empty_database) == catalog(database)


@pytest.mark.prove
def test_what_comes_after_a_release_of_the_same_version_is_installed(
    cluster: Cluster, empty_database: str, project: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A checkout has the version of its last release until the next one."""
    copy = copy_unreleased(tmp_path / "released", project)
    render.release(copy, f"v{__version__}")
    view = copy / "sql" / "job" / "job.sql"
    view.write_text(view.read_text() + "comment on view jobq.job is 'Jobs.';\n")
    render.update(copy)
    for module in (deploy, migration):
        monkeypatch.setattr(module, "project_dir", lambda: copy)
    cluster.psql(empty_database, printed())
    with cluster.database(template="template0") as new:
        cluster.psql(new, render.single_file(copy))
        assert catalog(new) == catalog(empty_database)
        cluster.psql(new, printed("--from", __version__))
        assert catalog(new) == catalog(empty_database)


@pytest.mark.parametrize(
    "tag", [name for name in map(render.name_of, render.read_plan(ROOT)) if name[0] == "@"]
)
def test_the_scripts_of_this_release_upgrade_each_earlier_one(
    cluster: Cluster, empty_database: str, database: str, tag: str
) -> None:
    """`jobq deploy` would mend what they leave, or cannot do; other tools run them as they are."""
    version = tag.removeprefix("@v")
    cluster.psql(empty_database, printed("--to", version))
    before = catalog(empty_database)
    if render.name_of(render.read_plan(ROOT)[-1]) == tag:
        assert "is already" in invoked("", "migration", "--from", version).stderr
        return
    names: dict[str, object] = {}
    form = printed("--from", version, "--format", "alembic")
    exec(form.replace("from alembic import op\n", ""), names)
    unchanged = "select from jobq.health(null, 'any') where subject = 'schema' and is_ok"
    for script, wanted in (("UP", catalog(database)), ("DOWN", before)):
        with psycopg.connect(empty_database) as connection:
            connection.execute(str(names[script]).encode())
            assert connection.execute(unchanged.encode()).fetchone() is not None
        assert catalog(empty_database) == wanted


RELEASES = ", ".join(
    dict.fromkeys([*re.findall(r"(?m)^@v(\S+)", (ROOT / "sqitch.plan").read_text()), __version__])
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", ""], f"there is no release ; choose one of {RELEASES}"),
        (["--to", "9.9.9"], f"there is no release 9.9.9; choose one of {RELEASES}"),
        (["--from", __version__, "--to", __version__], "is already"),
    ],
)
def test_a_release_that_does_not_exist_is_refused(arguments: list[str], said: str) -> None:
    done = invoked("", "migration", *arguments)
    assert done.returncode == 1
    assert said in done.stderr


def test_every_tool_is_documented() -> None:
    page = (ROOT / "docs" / "versions.md").read_text()
    assert [form for form in FORMATS if f"`{form}`" not in page] == []
