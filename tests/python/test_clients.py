"""The clients in clients/ hold the level of the conformance suite that they claim."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

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
@pytest.mark.prove
def test_a_client_holds_its_level(client: str, levels: str) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    tried = run(str(CLIENTS / "test"), client, "--patience", "60", PATH=path)
    assert tried.returncode == 0, tried.stdout
    assert f"levels: {levels}" in tried.stdout


@pytest.mark.long
@pytest.mark.parametrize("client", ["go", "sh"])
def test_a_client_tries_a_failed_job_again(client: str) -> None:
    """One scenario of those above. The other clients do jobs below."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    tried = run(str(CLIENTS / "test"), client, "--only", "a failed attempt", PATH=path)
    assert tried.returncode == 0, tried.stdout
    assert "a failed attempt is tried again" in tried.stdout


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


PROGRAMS = ROOT / "tests/clients"
# A kind, what its handler raises, and then: whether the job is retried, and after how many seconds.
ENDINGS = {
    ("named", "busy"): (True, 100),
    ("named", "gone"): (False, None),
    ("named", "other"): (False, None),
    ("named", "outcome"): (True, 50),
    ("named", "outage"): (True, None),
    ("delayed", "busy"): (True, 200),
    ("delayed", "other"): (True, None),
    ("broken", "busy"): (True, None),
}


@contextmanager
def program(client: str, url: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the program of a client in tests/clients."""
    environment = os.environ | {"DATABASE_URL": url}
    if client == "go":
        (tmp_path / "src").mkdir()
        (tmp_path / "src/jobq").symlink_to(CLIENTS / "go")
        environment |= {"GO111MODULE": "off", "GOPATH": f"{tmp_path}:/usr/share/gocode"}
        command = ["go", "run", str(PROGRAMS / "program.go")]
    elif client == "typescript":
        folder = CLIENTS / "typescript"
        if not (folder / "node_modules").is_dir():
            subprocess.run(["npm", "install", "--silent"], cwd=folder, check=True)
        subprocess.run(["npm", "run", "--silent", "build"], cwd=folder, check=True)
        command = ["node", str(PROGRAMS / "program.mjs")]
    else:
        command = ["ruby", str(PROGRAMS / "program.rb")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.terminate()


@pytest.mark.long
@pytest.mark.parametrize("client", ["go", "ruby", "typescript"])
def test_a_client_publishes_and_emits(client: str, database: str, tmp_path: Path) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "select jobq.subscribe('order.paid', k) from unnest('{a,b}'::text[]) as k"
        )
        with program(client, database, tmp_path) as running:
            assert running.stdout is not None
            answer = json.loads(running.stdout.readline())
        jobs = connection.execute(
            "select kind, job_id::text, payload, metadata ->> 'by' from jobq.list_jobs()"
        ).fetchall()
    ids = {kind: job_id for kind, job_id, *_ in jobs}
    assert sorted(ids) == ["a", "b"]
    assert answer == {"published": [ids, ids], "emitted": [True, False]}
    assert [rest for _, _, *rest in jobs] == [[{"id": 7}, "test"]] * 2


@pytest.mark.long
@pytest.mark.parametrize("client", ["ruby", "typescript"])
def test_a_handler_declares_which_exceptions_are_retried(
    client: str, database: str, tmp_path: Path
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for kind, failure in ENDINGS:
            connection.execute(
                "select jobq.enqueue(%s, jsonb_build_object('fail', %s::text))", (kind, failure)
            )
        with program(client, database, tmp_path):
            found = ended(connection)
    for case, (is_retried, delay) in ENDINGS.items():
        state, seconds = found[case]
        assert state == ("retrying" if is_retried else "dead"), case
        if delay is not None:
            assert seconds == pytest.approx(delay, abs=5), case
        elif is_retried:
            assert 0 < seconds < 50, case


def ended(connection: psycopg.Connection) -> dict[tuple[str, str], tuple[str, float]]:
    """Wait until all attempts have ended; return the states, and the seconds until a retry."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        rows = connection.execute(
            """select kind, payload ->> 'fail', state,
                extract(epoch from run_at - updated_at)::float8
            from jobq.job where state in ('retrying', 'dead')"""
        ).fetchall()
        if len(rows) == len(ENDINGS):
            return {(kind, failure): (state, seconds) for kind, failure, state, seconds in rows}
        time.sleep(0.1)
    raise AssertionError(f"only {rows} have ended")


TYPED = """
import { JobFailed, producer, result, Worker } from "./dist/jobq.js";
import pg from "pg";
const connectionString = process.env.DATABASE_URL;
const handlers = {
  add: ({ a, b }) => ({ sum: a + b }),
  fail: { run() { throw new RangeError("no"); }, discardOn: RangeError },
};
const worker = new Worker({ connectionString, handlers });
worker.start();
const db = new pg.Pool({ connectionString });
const jobs = producer();
const [one, two] = await jobs.enqueueMany(db, "add", [{ a: 1, b: 2 }, { a: 3, b: 4 }]);
const sums = [await result(db, one, 30), await result(db, two.jobId, 30)];
const failed = await result(db, await jobs.enqueue(db, "fail", {}), 30).catch((error) => error);
const late = await result(db, await jobs.enqueue(db, "unknown", {}), 0).catch((error) => error);
const codes = [failed, late].map((error) => error instanceof JobFailed && error.code);
console.log(JSON.stringify({ sums, codes }));
await worker.stop();
await db.end();
"""


@pytest.mark.long
def test_typescript_infers_payloads_and_results(database: str) -> None:
    folder = CLIENTS / "typescript"
    if not (folder / "node_modules").is_dir():
        subprocess.run(["npm", "install", "--silent"], cwd=folder, check=True)
    subprocess.run(["npm", "run", "--silent", "build"], cwd=folder, check=True)
    checked = run(
        str(folder / "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck",
        "--ignoreConfig", "--target", "es2022", "--module", "nodenext", "--types", "node",
        "--typeRoots", str(folder / "node_modules/@types"), str(PROGRAMS / "kinds.ts"),
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", TYPED], cwd=folder, capture_output=True, text=True,
        env=os.environ | {"DATABASE_URL": database}, check=True, timeout=120,
    )  # fmt: skip
    assert json.loads(ran.stdout) == {
        "sums": [{"sum": 3}, {"sum": 7}],
        "codes": ["ERROR", "TIMEOUT"],
    }


@pytest.mark.long
def test_active_job_enqueues_and_runs(database: str) -> None:
    ran = run("ruby", str(PROGRAMS / "active_job.rb"), DATABASE_URL=database)
    assert ran.returncode == 0, ran.stdout
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "is_row": True,
        "delayed": {"queue": "slow", "wait": "3600"},
        "priority": "-3",
        "first": [["greet", "Countess Ada"], ["try", 1], ["try", 2]],
        "is_own": True,
        "busy": [["try", 1], ["try", 2], ["try", 3], ["gave up", 3]],
        "gone": [["try", 1], ["discarded", "gone"]],
        "broken": {"state": "dead", "last_error_code": "RuntimeError"},
        "step": [["step", {"n": 1}]],
        "many": 2,
        "greeted": ["a", "b"],
    }
