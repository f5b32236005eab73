"""How a libpq URL reaches Sqitch, and what is said when programs are missing."""

from __future__ import annotations

import asyncio
import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from types import ModuleType
from typing import TYPE_CHECKING

import psycopg
import pytest

import render
from jobq import Worker
from jobq_operations import deploy
from servers import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_but_the_name_goes_by_the_environment() -> None:
    url = "postgresql://a%40b:p%2Fw@host:5433/my%20db?sslmode=require&options=-c%20x%3D1"
    target, environment = deploy._target(url)
    assert target == "db:pg:my%20db"
    assert environment["PGHOST"] == "host"
    assert environment["PGPORT"] == "5433"
    assert environment["PGUSER"] == "a@b"
    assert environment["PGPASSWORD"] == "p/w"
    assert environment["PGSSLMODE"] == "require"
    assert environment["PGOPTIONS"].endswith("-c x=1")


def test_a_connection_string_will_do() -> None:
    target, environment = deploy._target("host=/run/pg dbname=d user=u")
    assert target == "db:pg:d"
    assert environment["PGHOST"] == "/run/pg"


def test_a_server_that_is_away_is_reported() -> None:
    with pytest.raises(deploy.DeployError, match="does not answer") as raised:
        deploy.deploy("postgresql://u@127.0.0.1:1/x?connect_timeout=2")
    assert "DATABASE_URL" in raised.value.remedy


def test_the_password_is_not_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sqitch"
    program.write_text('#!/bin/sh\necho arguments: "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    lines: list[str] = []
    lines += deploy.verify("postgresql://u:secret@h/d").splitlines()
    assert lines[0].startswith("arguments: verify")
    assert "secret" not in lines[0]


of_the_wheel = pytest.mark.xdist_group("wheel")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built of the source distribution as others will build it."""
    built = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(built)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT / "python", check=True, capture_output=True)
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(built, filter="data")
    folder = next(path for path in built.iterdir() if path.is_dir())
    subprocess.run([*build, "-t", "wheel"], cwd=folder, check=True, capture_output=True)
    return next(built.glob("*.whl"))


@of_the_wheel
def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
    said = email.message_from_bytes(archive.read(metadata))
    assert said["License-Expression"] == "PostgreSQL"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload() == (ROOT / "python" / "README.md").read_text()
    license_text = archive.read(metadata.replace("METADATA", "licenses/LICENSE")).decode()
    assert license_text == (ROOT / "LICENSE").read_text()
    assert "Typing :: Typed" in said.get_all("Classifier", [])


def test_the_readme_of_the_package_does_as_it_says(database: str) -> None:
    text = (ROOT / "python" / "README.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    module = ModuleType("readme")
    sys.modules["readme"] = module
    exec(code, vars(module))

    async def work() -> object:
        async with Worker(database, module.registry):
            return await asyncio.to_thread(module.ask, database)

    assert asyncio.run(work()) == "Hello, Ada!"
    del sys.modules["readme"]


@of_the_wheel
def test_the_wheel_carries_the_project(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    scripts = {
        f"{kind}/{name}.sql"
        for kind in ("deploy", "revert", "verify")
        for name in render.scripts(render.read_plan(ROOT))
    }
    wanted = scripts | {"sqitch.plan", "sqitch.conf", "jobq.sql", "router.sql"}
    assert {f"jobq/sqitch/{name}" for name in wanted} <= set(names)
    assert "jobq/py.typed" in names


@of_the_wheel
def test_the_wheel_needs_no_sources(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        if name.startswith("jobq/sqitch/") and name.endswith(".sql"):
            assert "python3" not in archive.read(name).decode(), name


@of_the_wheel
@pytest.mark.prove
def test_the_wheel_alone_installs_a_database_by_psql(
    wheel: Path, tmp_path: Path, empty_database: str
) -> None:
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target)]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
    printed = subprocess.run(
        [sys.executable, "-c", "from jobq_cli import main; main(['sql'])"],
        env={**os.environ, "PYTHONPATH": str(target)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    subprocess.run(
        ["psql", "-X", "-q", "-d", empty_database],
        input=printed.stdout,
        check=True,
        capture_output=True,
        text=True,
    )
    with psycopg.connect(empty_database) as connection:
        connection.execute("select jobq.enqueue('greet')")
        assert connection.execute("select kind from jobq.job").fetchall() == [("greet",)]
