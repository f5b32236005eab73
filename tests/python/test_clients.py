"""The clients in clients/ hold the level of the conformance suite that they claim."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobq.conformance import suite
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS = ROOT / "clients"
GO_SOURCES = Path("/usr/share/gocode")


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def build(*command: str, folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout


def holds(outcome: suite.Outcome) -> None:
    assert outcome.verdict == "holds", f"{outcome.scenario.name}: {outcome.reason}"


def try_out(command: Sequence[str], level: str = "full") -> None:
    outcomes = suite.run(command, level, patience=60, report=holds)
    assert level in suite.reached(outcomes)


@pytest.mark.long
def test_typescript_is_full() -> None:
    needs("node", "npm")
    folder = CLIENTS / "typescript"
    if not (folder / "node_modules").is_dir():
        build("npm", "install", "--no-audit", "--no-fund", folder=folder)
    build("npm", "run", "build", folder=folder)
    try_out(["node", str(folder / "dist/conformance.js")])


def test_typescripts_types_are_those_of_the_database(database: str) -> None:
    generate = CLIENTS / "typescript/generate.py"
    build(sys.executable, str(generate), "--check", database, folder=ROOT)


@pytest.mark.long
def test_ruby_is_full() -> None:
    needs("ruby")
    if subprocess.run(["ruby", "-e", "require 'pg'"], check=False, stderr=-3).returncode:
        pytest.skip("ruby-pg is not installed")
    try_out(["ruby", str(CLIENTS / "ruby/bin/conformance")])


@pytest.mark.long
def test_go_is_full(tmp_path: Path) -> None:
    needs("go")
    if not (GO_SOURCES / "src/github.com/jackc/pgconn").is_dir():
        pytest.skip("golang-github-jackc-pgconn-dev is not installed")
    sources = tmp_path / "go/src"
    sources.mkdir(parents=True)
    (sources / "jobq").symlink_to(CLIENTS / "go")
    program = tmp_path / "conformance"
    debian = {"GO111MODULE": "off", "GOPATH": f"{tmp_path / 'go'}:{GO_SOURCES}", "GOFLAGS": ""}
    build("go", "vet", "jobq", "jobq/conformance", folder=tmp_path, **debian)
    build("go", "build", "-o", str(program), "jobq/conformance", folder=tmp_path, **debian)
    try_out([str(program)])


@pytest.mark.long
def test_the_shell_is_a_worker() -> None:
    try_out(["sh", str(CLIENTS / "sh/conformance.sh")], "worker")
