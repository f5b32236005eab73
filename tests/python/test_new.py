"""`jobq new`: the project that it makes runs as it stands."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import psycopg
import pytest
import yaml
from click.testing import CliRunner
from test_compose import SCHEMA, users_of

from jobq_cli import main
from servers import ROOT

JOBQ = Path(sys.executable).with_name("jobq")


@pytest.fixture
def new_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project called demo."""
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(main, ["new", "demo"])
    assert made.exit_code == 0, made.output
    return tmp_path / "demo"


@pytest.mark.prove
def test_a_new_project_passes_its_tests_and_works(new_project: Path, database: str) -> None:
    environment = {**os.environ, "DATABASE_URL": database, "PYTHONPATH": str(new_project)}

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=new_project, env=environment, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode in (0, 75), done.stdout + done.stderr
        return done.stdout

    assert "2 passed" in run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(JOBQ, "enqueue", "greet", '{"name": "Ada"}')
    run(JOBQ, "worker", "demo.jobs:registry", "--no-metrics", "--max-jobs", "1")
    with psycopg.connect(database) as connection:
        jobs = connection.execute("select state, result ->> 'said' from jobq.job").fetchall()
        schedules = connection.execute("select name from jobq.schedule").fetchall()
    assert (jobs, schedules) == ([("succeeded", "Hello, Ada")], [("good morning",)])


def test_its_files_are_about_itself(new_project: Path) -> None:
    files = [path for path in new_project.rglob("*") if path.is_file()]
    assert {"demo/jobs.py", ".dockerignore", ".gitignore", ".github/workflows/test.yml"} <= {
        str(path.relative_to(new_project)) for path in files
    }
    assert not [path for path in files if "myapp" in path.read_text()]
    compose = yaml.safe_load((new_project / "compose.yaml").read_text())
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(compose)
    assert users_of(compose["services"]) == {
        "deploy": {"postgres"}, "worker": {"app"}, "http": {"app"},
    }  # fmt: skip
    mounted = compose["services"]["db"]["volumes"][1].split(":")
    assert (new_project / mounted[0]).is_file()
    assert yaml.safe_load((new_project / ".github/workflows/test.yml").read_text())["jobs"]


def test_it_is_installed_from_where_jobq_came_from(new_project: Path) -> None:
    readme = (new_project / "README.md").read_text()
    [source] = re.findall(r"^pip wheel --no-deps --wheel-dir vendor (.*)$", readme, re.MULTILINE)
    assert Path(shlex.split(source)[0]) == ROOT / "python"
    for installs in ("README.md", "Dockerfile", ".github/workflows/test.yml"):
        for line in re.findall("pip install.*", (new_project / installs).read_text()):
            assert "vendor/*.whl" in line


@pytest.mark.parametrize(
    ("direct", "source"),
    [
        (None, "jobq==1.2"),
        ({"url": "file:///a%20b/python", "dir_info": {}}, "/a b/python"),
        (
            {
                "url": "https://a.example/jobq.git",
                "subdirectory": "python",
                "vcs_info": {"vcs": "git", "commit_id": "abc"},
            },
            "git+https://a.example/jobq.git@abc#subdirectory=python",
        ),
    ],
)
def test_it_knows_where_jobq_came_from(
    direct: dict[str, Any] | None, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "jobq-1.2.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: jobq\nVersion: 1.2\n")
    if direct:
        (installed / "direct_url.json").write_text(json.dumps(direct))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["new", "demo"]).exit_code == 0
    readme = (tmp_path / "demo" / "README.md").read_text()
    assert f"--wheel-dir vendor {shlex.quote(source)}\n" in readme


@pytest.mark.usefixtures("new_project")
@pytest.mark.parametrize("name", ["demo", "Demo", "my-app", "../x", "", "class", "tests", "jobq"])
def test_what_is_there_or_no_name_is_refused(name: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(main, ["new", name])
    assert refused.exit_code in (1, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
