"""How a libpq URL reaches Sqitch, and what is said when programs are missing."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from jobq import deploy
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


def test_the_wheel_carries_the_project(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT / "python", check=True, capture_output=True)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    scripts = {
        str(path.relative_to(ROOT))
        for kind in ("deploy", "revert", "verify")
        for path in (ROOT / kind).glob("*.sql")
    }
    wanted = scripts | {"sqitch.plan", "sqitch.conf", "jobq.sql"}
    assert {f"jobq/sqitch/{name}" for name in wanted} <= set(names)
    assert "jobq/py.typed" in names
