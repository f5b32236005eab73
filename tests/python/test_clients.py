"""The clients in clients/ hold the level of the conformance suite that they claim."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from servers import ROOT

CLIENTS = ROOT / "clients"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=500,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("client", "levels"),
    [
        ("typescript", "producer worker full"),
        ("ruby", "producer worker full"),
        ("go", "producer worker full"),
        ("sh", "worker"),
    ],
)
def test_a_client_holds_its_level(client: str, levels: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    tried = run(str(CLIENTS / "test"), client, "--patience", "60", PATH=path)
    assert tried.returncode == 0, tried.stdout
    assert f"levels: {levels}" in tried.stdout


@pytest.mark.parametrize(
    ("client", "packages"),
    [
        ("typescript", "nodejs npm"),
        ("ruby", "ruby ruby-pg"),
        ("go", "golang-go"),
        ("sh", "postgresql-client coreutils"),
    ],
)
def test_a_client_says_what_is_missing(client: str, packages: str, tmp_path: Path) -> None:
    for program in ("sh", "dirname"):
        found = shutil.which(program)
        assert found is not None
        (tmp_path / program).symlink_to(found)
    tried = run(str(CLIENTS / "test"), client, PATH=str(tmp_path))
    assert tried.returncode == 69, tried.stdout
    assert f"sudo apt-get install {packages}" in tried.stdout
    readme = (CLIENTS / client / "README.md").read_text()
    assert [name for name in packages.split() if f"`{name}`" not in readme] == []


def test_typescripts_types_are_those_of_the_database(database: str) -> None:
    generate = CLIENTS / "typescript/generate.py"
    checked = run(sys.executable, str(generate), "--check", database)
    assert checked.returncode == 0, checked.stdout
