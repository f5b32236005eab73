"""PostgreSQL servers for tests: the wheel's 16 and 18, Debian's 15."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

import render
from jobq_embedded import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
OLDEST_VERSION = "15"
DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
PGTAP = Path("/usr/share/postgresql/15/extension/pgtap--1.2.0.sql")
# For scripts that call jobq.maintain(): a vacuum of what other scripts have rolled back may be
# at work, and partitions would be left to the next call. This waits until it has given way.
HOLD_OFF_VACUUM = """
    create function hold_off_vacuum() returns setof text language plpgsql as $$
    begin
        lock table jobq_private.job_archive, jobq_private.attempt, jobq_private.job_log
        in access exclusive mode;
    end
    $$;
"""
# A tenth of what a copy of the database costs is what its installation left in the catalog.
COMPACT = r"""
    select format('vacuum (full) %s', oid::regclass) from pg_class
    where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' and not relisshared
    \gexec
"""
# What a statement raises, or "none".
RAISED = """
    create function {name}(statement text)
    returns text
    language plpgsql
    as $$
    declare
        _told text;
    begin
        execute statement;
        return 'none';
    exception
        when others then
            get stacked diagnostics _told = {field};
            return {result};
    end
    $$;
"""
# The SQLSTATE and the code of the error; its detail.
REFUSAL = RAISED.format(
    name="refusal", field="constraint_name", result="sqlstate || ' ' || _told"
) + RAISED.format(name="detail", field="pg_exception_detail", result="_told")


def pgtap_script() -> str:
    """Return a script that makes the schema tap with pgTAP and the helpers of its scripts."""
    if not PGTAP.is_file():
        raise FileNotFoundError(f"{PGTAP} is missing: install postgresql-15-pgtap")
    head = "create schema tap; grant usage on schema tap to public; set search_path = tap;"
    return f"{head}\n{PGTAP.read_text()}\n{HOLD_OFF_VACUUM}{REFUSAL}"


# Fast where a crash of the machine would matter, as in production where it would not.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "max_prepared_transactions": "8",
    "max_wal_size": "256MB",
    # test_spec.py and the random models replay what was committed.
    "wal_level": "logical",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass
class Cluster:
    """A running server, and the template that test databases are copied from."""

    server: Server
    project: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    @contextmanager
    def started(
        cls, version: str, folder: Path, project: Path, isolation: str = "read committed"
    ) -> Iterator[Cluster]:
        """Start a server of a version in a folder, and stop it in the end.

        Args:
            version: the major version.
            folder: the server's data folder.
            project: the folder of the jobq.sql to test.
            isolation: of every transaction that does not choose its own.
        """
        bin_dir = DEBIAN_15 if version == "15" and DEBIAN_15.is_dir() else None
        settings = SETTINGS | {"default_transaction_isolation": isolation}
        server = Server(folder, version, bin_dir, settings=settings, durable=False)
        with server:
            cluster = cls(server, project)
            if int(version) >= 16:
                cluster._hash_briefly()
            yield cluster

    @contextmanager
    def database(self, template: str | None = None, name: str | None = None) -> Iterator[str]:
        """Make a database, yield its URL and drop it, whoever is still connected.

        Args:
            template: the database to copy; None for the one with jobq in it.
            name: of the new one; None for one that no other has.
        """
        name = name or f"test_{next(self._numbers)}"
        self.create(name, template or self.template)
        yield self.server.url_of(name)
        self._admin("drop database {} with (force)", name)

    @cached_property
    def template(self) -> str:
        """The name of a database with jobq, which nobody connects to."""
        script = f"{(self.project / 'jobq.sql').read_text()}\n{COMPACT}"
        return self._made("jobq_template", "template0", script)

    @cached_property
    def pgtap(self) -> str:
        """The URL of a database with jobq, and in the schema tap pgTAP and two helpers."""
        return self.server.url_of(self._made("pgtap", self.template, pgtap_script()))

    def _made(self, name: str, template: str, script: str | Path) -> str:
        """Create a database and run a script there, or leave none behind."""
        self.create(name, template)
        try:
            self.psql(self.server.url_of(name), script)
            # This log-in stores what each first log-in to a copy would collect from the catalog.
            psycopg.connect(self.server.url_of(name)).close()
        except BaseException:
            self._admin("drop database {} with (force)", name)
            raise
        return name

    def create(self, name: str, template: str) -> None:
        """Create a database as a copy of another."""
        # Copying files is the quicker strategy where they lie in memory.
        self._admin("create database {} template {} strategy file_copy", name, template)

    def psql(self, url: str, script: str | Path, options: Mapping[str, str] | None = None) -> str:
        """Run a script, a text or a file, in psql; return what it printed.

        Args:
            url: the database.
            script: the statements, or the path of their file.
            options: server settings of the session.

        Raises:
            AssertionError: psql failed; the message is what it said.
        """
        text = script.read_text() if isinstance(script, Path) else script
        settings = " ".join(f"-c {k}={v}" for k, v in (options or {}).items())
        done = subprocess.run(
            [
                self.server.programs / "psql",
                "-XqAt",
                "-v",
                "ON_ERROR_STOP=1",
                "-f",
                "-",
                url,
            ],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            env={"PGOPTIONS": settings, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
        return done.stdout

    def _hash_briefly(self) -> None:
        """Store the password anew: thousands of rounds are half of what a log-in costs."""
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            password = sql.Literal(connection.info.password)
            connection.execute("set scram_iterations = 1")
            connection.execute(sql.SQL("alter role current_user password {}").format(password))

    def _admin(self, statement: str, *names: str) -> None:
        parts = [sql.Identifier(name) for name in names]
        with suppress(psycopg.OperationalError):
            self._administrator.execute("select")
        if self._administrator.closed:  # a test has restarted the server
            del self._administrator
        self._administrator.execute(sql.SQL(statement).format(*parts))

    @cached_property
    def _administrator(self) -> psycopg.Connection[tuple[object, ...]]:
        """One connection for all databases that are made and dropped."""
        return psycopg.connect(self.server.url, autocommit=True)


def copy_project(folder: Path, origin: Path = ROOT) -> Path:
    """Copy a Sqitch project with its sources into a folder, and build jobq.sql there."""
    for name in ("sql", "deploy", "revert", "verify"):
        shutil.copytree(origin / name, folder / name)
    for name in ("sqitch.plan", "sqitch.conf", "router.sql"):
        shutil.copy(origin / name, folder)
    (folder / "jobq.sql").write_text(render.single_file(folder))
    return folder


def copy_unreleased(folder: Path, origin: Path = ROOT) -> Path:
    """Copy a project as it would be if nothing had been released yet."""
    copy = copy_project(folder, origin)
    for path in copy.glob("*/*@*.sql"):
        path.unlink()
    plan = copy / "sqitch.plan"
    lines = {render.name_of(line): line for line in reversed(plan.read_text().splitlines())}
    kept = [line for name, line in reversed(lines.items()) if not name.startswith("@")]
    plan.write_text("\n".join(kept) + "\n")
    render.update(copy)
    return copy
