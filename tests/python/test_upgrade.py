"""Upgrades from each release, with jobs in every state, under workers of both releases; and back.

A release is a tag of sqitch.plan. The stored scripts make its schema, and its worker is that of the
release's commit. In addition, the present sources are taken as a release, and a changed copy as its
successor. So there is always something to upgrade to.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import released
from waiting import until

import render
from catalog import catalog
from jobq_operations import deploy
from servers import ROOT, Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("upgrade")
RELEASES = [name for name in map(render.name_of, render.read_plan(ROOT)) if name[0] == "@"]
NEXT = "the next release"
OLDER = [*RELEASES[:-1], NEXT]
ROWS = 1_000
"""Jobs that the upgrade finds. `make bench PART=upgrade` has five million."""
LONGEST_CLAIM = 15.0
"""Seconds. The promise is 2 on an idle machine; tests share one."""
HANDLERS = """
from jobq import Registry
registry = Registry()
registry.handler("work")(lambda payload: payload)
"""
# One job in each state, in a queue that no worker serves.
STATES = """
    select jobq.put_kind('kept', queue => 'kept', max_attempts => 1);
    select jobq.enqueue('kept', '"queued"', run_at => now() + interval '1 day');
    select jobq.enqueue('kept', '"succeeded"');
    select jobq.complete(c.job_id, c.attempt) from jobq.claim('{kept}', 'me') as c;
    select jobq.enqueue('kept', '"dead"');
    select jobq.fail(c.job_id, c.attempt, 'no') from jobq.claim('{kept}', 'me') as c;
    select jobq.enqueue('kept', '"retrying"', max_attempts => 2);
    select jobq.fail(c.job_id, c.attempt, 'no', retry_in => interval '1 day')
    from jobq.claim('{kept}', 'me') as c;
    select jobq.cancel(jobq.enqueue('kept', '"cancelled"'));
    select jobq.configure(lease => interval '1 day');
    select jobq.enqueue('kept', '"running"');
    select jobq.enqueue('kept', '"blocked"', after => array_agg(c.job_id))
    from jobq.claim('{kept}', 'me') as c;
    select jobq.configure(lease => interval '30 s');
"""
ALL_STATES = "queued running retrying succeeded dead cancelled blocked".split()
KEPT = """
    select payload #>> '{}' as name, state, job_id, attempt, created_at, run_at, previous_state
    from jobq.job where kind = 'kept' order by job_id
"""
FINISH = """
    select jobq.complete(j.job_id, j.attempt) from jobq.job as j
    where j.kind = 'kept' and j.state = 'running'
"""


@dataclass
class Releases:
    """An older release and the one to upgrade to.

    Attributes:
        old, new: folders of rendered Sqitch projects.
        tag: of the old release, in the plan of the new one.
        source: where the packages of the old release are.
    """

    old: Path
    new: Path
    tag: str
    source: Path


@dataclass
class Load:
    """Sessions that enqueue all the time; one claims and completes its jobs too."""

    url: str
    longest: float = 0.0
    enqueued: int = 0
    errors: list[str] = field(default_factory=list)
    is_over: bool = False
    threads: list[threading.Thread] = field(default_factory=list)

    def begin(self) -> None:
        self.threads = [threading.Thread(target=each) for each in (self.claim, self.enqueue)]
        for thread in self.threads:
            thread.start()

    def end(self) -> None:
        """Wait for the last calls, so that `enqueued` is final."""
        self.is_over = True
        for thread in self.threads:
            thread.join()

    def claim(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self.is_over:
                started = time.monotonic()
                self._try(
                    connection,
                    "select jobq.enqueue('probe', queue => 'probe');"
                    "select jobq.complete(c.job_id, c.attempt)"
                    " from jobq.claim('{probe}', 'probe') as c",
                )
                self.longest = max(self.longest, time.monotonic() - started)
                time.sleep(0.02)

    def enqueue(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            while not self.is_over:
                if self._try(connection, "select jobq.enqueue('work', '{}')"):
                    self.enqueued += 1
                time.sleep(0.05)

    def _try(self, connection: psycopg.Connection[Any], statement: str) -> bool:
        try:
            connection.execute(statement.encode())
        except psycopg.Error as error:
            self.errors.append(str(error))
            return False
        return True


@contextmanager
def loaded(url: str) -> Iterator[Load]:
    """Load a database meanwhile."""
    load = Load(url)
    load.begin()
    try:
        yield load
    finally:
        load.end()


@contextmanager
def working(url: str, folder: Path, source: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker of the packages in a folder."""
    (folder / "upgrade_handlers.py").write_text(HANDLERS)
    command = [sys.executable, "-m", "jobq_cli", "worker", "upgrade_handlers:registry"]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--no-metrics", "--name", name, "--poll", "0.5"],
            cwd=folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": f"{source}{os.pathsep}{folder}"},
        )  # fmt: skip
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            there = "select from jobq.worker where worker = %s"
            until(lambda: connection.execute(there, [name]).fetchone() is not None, "for a worker")
        yield process
    finally:
        process.terminate()
        assert process.wait(60) == 0, (folder / f"{name}.log").read_text()


def source_of(tag: str, folder: Path) -> Path:
    """Return the packages of a release, from the commit that `make release` made."""
    version = tag.removeprefix("@v")
    found = git("log", "-1", "--format=%H", "-F", f"--grep=release: version {version}")
    if not found:
        pytest.skip(f"the worker of {version} is in its commit, which this clone does not have")
    with tarfile.open(fileobj=io.BytesIO(git("archive", found.decode().strip()))) as tar:
        tar.extractall(folder, filter="data")
    subprocess.run([sys.executable, folder / "python" / "generate.py"], check=True)
    return folder / "python" / "src"


def git(*command: str) -> bytes:
    """Return what git prints; nothing where the project is no clone."""
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, check=False).stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The projects of a release made from the present sources, and of its successor."""
    return released.releases(tmp_path_factory.mktemp("sources"))


@pytest.fixture(
    params=[RELEASES[-1], *(pytest.param(name, marks=pytest.mark.prove) for name in OLDER)]
)
def releases(
    request: pytest.FixtureRequest, sources: tuple[Path, Path], tmp_path: Path
) -> Releases:
    """Two releases, as their packages have them."""
    new = tmp_path / "new"
    if request.param != NEXT:
        render.export(ROOT, new)
        source = source_of(request.param, tmp_path / "source")
        return Releases(new, new, request.param, source)
    for origin, folder in zip(sources, (tmp_path / "old", new), strict=True):
        render.export(origin, folder)
    return Releases(tmp_path / "old", new, "@v0.1.0", ROOT / "python" / "src")


@pytest.mark.long
def test_an_upgrade_loses_nothing_and_is_undone(
    releases: Releases, cluster: Cluster, empty_database: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    url = empty_database
    monkeypatch.setattr(deploy, "project_dir", lambda: releases.old)
    cluster.psql(url, f"begin;\n{deploy._script_of(releases.tag.removeprefix('@v'))}\ncommit;")
    deploy._sqitch(url, *deploy._ADOPT, "--to", releases.tag)
    before = schema(url)
    monkeypatch.setattr(deploy, "project_dir", lambda: releases.new)
    with psycopg.connect(url, autocommit=True) as connection, ExitStack() as stack:
        connection.execute(STATES.encode())
        connection.execute(
            "select count(*) from jobq.enqueue_many((select jsonb_agg(jsonb_build_object("
            "'kind', 'work')) from generate_series(1, %s)))",
            [ROWS],
        )
        kept = connection.execute(KEPT).fetchall()
        assert {row[0] for row in kept} == set(ALL_STATES)
        assert [row[0] for row in kept] == [row[1] for row in kept]
        load = stack.enter_context(loaded(url))
        stack.enter_context(working(url, tmp_path, releases.source, "old"))
        await_success(connection, load)

        assert deploy.deploy(url, print) == "the schema is up to date", "a script failed"
        with cluster.database(template="template0") as fresh:
            cluster.psql(fresh, releases.new / "jobq.sql")
            assert schema(url) == schema(fresh)
        assert connection.execute(KEPT).fetchall() == kept
        # Workers of both releases. The newer ones end first: they may call what the older lacks.
        with working(url, tmp_path, ROOT / "python" / "src", "new"):
            await_success(connection, load)

        deploy.revert(url, releases.tag.removeprefix("@v"), print)
        assert schema(url) == before
        await_success(connection, load)
        assert connection.execute(KEPT).fetchall() == kept
        load.end()
        until(lambda: count(connection, "finished_at is null") == 0, "for the last jobs")
        assert count(connection, "state = 'succeeded'") == load.enqueued + ROWS
        assert load.errors == []
        assert load.longest < LONGEST_CLAIM
        connection.execute(FINISH.encode())
        # The worker's maintain() finds that the parent has ended.
        until(lambda: ("blocked", "queued") in [row[:2] for row in connection.execute(KEPT)])


def schema(url: str) -> list[Any]:
    """Return the catalog without the partitions of days, which maintain() makes and drops."""
    return [row for row in catalog(url) if not re.search(r"_20\d{6}", str(row[:3]))]


def count(connection: psycopg.Connection[Any], condition: str) -> int:
    """Return how many jobs of the workers there are."""
    query = f"select count(*) from jobq.job where kind = 'work' and {condition}"
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])


def await_success(connection: psycopg.Connection[Any], load: Load) -> None:
    """Wait until as many jobs have succeeded as there are now, and some more."""
    wanted = load.enqueued + ROWS + 5
    until(lambda: count(connection, "state = 'succeeded'") >= wanted, f"for {wanted} jobs")


def test_a_release_that_does_not_exist_is_refused(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, sources: tuple[Path, Path]
) -> None:
    monkeypatch.setattr(deploy, "project_dir", lambda: sources[1])
    with pytest.raises(deploy.DeployError, match="no release 9") as raised:
        deploy.revert(empty_database, "9.9.9")
    assert raised.value.remedy.endswith("0.1.0")


@pytest.mark.parametrize("verb", ["deploy", "revert"])
def test_a_change_locks_jobs_before_the_tables_that_calls_use_after_them(
    verb: str, sources: tuple[Path, Path]
) -> None:
    """Otherwise the change and a call would each wait for what the other has locked."""
    new = sources[1]
    script = render.render_script(new, render.read_plan(new), verb, "job")
    first = script.index("lock table jobq_private.job in share row exclusive mode;\n")
    assert script.index("lock table jobq_private.job_archive in") > first
    assert script.index("create or replace trigger") > first
    assert script.index("function jobq_private.archive_jobs") < first, "functions lock no table"
