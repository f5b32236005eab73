"""Lists from a standby: a real one, that follows a primary and can be held back."""

from __future__ import annotations

import math
import shutil
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import psycopg
import pytest
from http_api import SETTINGS, opened
from test_console import Browser
from waiting import until, until_async

from jobq import Client
from jobq_embedded import Server
from jobq_http import metrics
from servers import SETTINGS as FAST
from servers import Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from http_api import Api
    from httpx import Response

pytestmark = pytest.mark.xdist_group("standby")


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[Cluster]:
    """A server of its own, for standbys copy the whole of it."""
    with Server(tmp_path_factory.mktemp("primary"), "18", settings=FAST, durable=False) as server:
        yield Cluster(server, project)


@pytest.fixture
def url(primary: Cluster) -> Iterator[str]:
    """A database on the primary."""
    with primary.database() as url:
        yield url


@pytest.fixture(scope="module")
def standby(primary: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A standby of the primary."""
    settings = FAST | {"hot_standby_feedback": "on"}
    with standby_of(primary.server, tmp_path_factory.mktemp("standby"), settings) as server:
        yield server


@contextmanager
def standby_of(primary: Server, folder: Path, settings: dict[str, str]) -> Iterator[Server]:
    """Run a standby of a server in a folder."""
    subprocess.run(
        [primary.programs / "pg_basebackup", "-D", folder / "cluster", "-R",
         "-d", primary.url, "-X", "stream", "-c", "fast", "--no-sync"],
        check=True,
    )  # fmt: skip
    give_to_server(folder / "cluster", primary.data_dir / "cluster")
    shutil.copy2(primary.data_dir / "password", folder / "password")
    with Server(folder, "18", settings=settings, durable=False) as server:
        yield server


def give_to_server(folder: Path, pattern: Path) -> None:
    """Make a folder belong to whom another belongs."""
    owner = pattern.stat()
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, owner.st_uid, owner.st_gid)


def on_standby(standby: Server, url: str) -> str:
    """Return the URL of a database on the standby, as soon as it is there."""
    found = standby.url_of(url.rsplit("/", 1)[1])

    def look() -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(found) as connection:
            return connection.execute("select to_regclass('jobq.job')").fetchone() != (None,)
        return False

    until(look)
    return found


@contextmanager
def held_back(standby: Server) -> Iterator[None]:
    """Let the standby replay nothing for a while."""
    with psycopg.connect(standby.url, autocommit=True) as connection:
        connection.execute("select pg_wal_replay_pause()")
        try:
            yield
        finally:
            connection.execute("select pg_wal_replay_resume()")


@pytest.fixture
async def api(url: str, standby: Server) -> AsyncIterator[Api]:
    """The HTTP API with the standby as its read database, which answers."""
    settings = replace(SETTINGS, read_database_url=on_standby(standby, url))
    async with opened(url, settings) as api:
        await until_async(lambda: from_standby(api))
        yield api


async def from_standby(api: Api) -> Response | None:
    """Return a list of jobs if the standby has answered."""
    answer = await api.ask("GET", "/jobs?limit=200")
    assert answer.status_code == 200, answer.text
    return answer if "x-jobq-lag" in answer.headers else None


async def is_listed(api: Api, job_id: str) -> bool:
    answer = await from_standby(api)
    return answer is not None and job_id in answer.text


async def figure(api: Api, name: str) -> float:
    lines = (await api.ask("GET", "/metrics")).text.splitlines()
    return next(float(line.split(" ")[1]) for line in lines if line.startswith(f"{name} "))


async def test_lists_lag_and_a_job_does_not(api: Api, standby: Server) -> None:
    with held_back(standby):
        job_id = (await api.job())["job_id"]
        assert not await is_listed(api, job_id)
        looked_up = await api.ask("GET", f"/jobs/{job_id}")
        assert looked_up.status_code == 200 and "x-jobq-lag" not in looked_up.headers
    await until_async(lambda: is_listed(api, job_id))


@pytest.mark.parametrize("path", ["/jobs", "/queues", "/configs", "/metrics"])
async def test_the_standby_answers_it(api: Api, path: str) -> None:
    answer = await api.ask("GET", path)
    assert answer.status_code == 200, answer.text
    assert float(answer.headers["x-jobq-lag"]) >= 0


async def test_the_console_lists_from_it_and_says_how_far_it_lies_behind(
    api: Api, standby: Server
) -> None:
    browser = Browser(api)
    await browser.sign_in(["read", "operate"])
    looker = dict(api.client.cookies)
    api.client.cookies.clear()
    await browser.sign_in(["read", "operate"])
    actor = dict(api.client.cookies)

    async def listed(word: str, who: dict[str, str] = actor, path: str = "jobs") -> bool:
        api.client.cookies = httpx.Cookies(who)
        return word in (await browser.get(f"/console/{path}")).text

    await until_async(lambda: listed("s behind"))
    with held_back(standby):
        ((job_id,),) = api.run("select jobq.enqueue('late')::text")
        assert not await listed(job_id)
        assert await listed(job_id, path=f"jobs/{job_id}")
        assert await listed(job_id, path="jobs/bulk?action=cancel&kind=late"), (
            "what an action is for is current"
        )
        api.client.cookies = httpx.Cookies(actor)
        await browser.act("/console/queues/pause", queue="default")
        assert not await listed(job_id, looker)
        assert await listed(job_id), "who has acted is not shown what others are"
        assert not await listed("s behind")
        assert await listed("s behind", looker)


async def test_one_that_is_too_far_behind_is_not_asked(url: str, standby: Server) -> None:
    settings = replace(SETTINGS, read_database_url=on_standby(standby, url), longest_lag=0.1)
    async with opened(url, settings) as api:
        await until_async(lambda: from_standby(api))
        with held_back(standby):
            job_id = (await api.job())["job_id"]
            await until_async(lambda: is_answered_by_primary(api))
            assert job_id in (await api.ask("GET", "/jobs?limit=200")).text
        await until_async(lambda: is_listed(api, job_id))


async def is_answered_by_primary(api: Api) -> bool:
    return await from_standby(api) is None


async def test_while_it_is_away_the_primary_answers(
    url: str, primary: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MEMORY", 0.0)
    away = url.replace(f":{primary.server.port}/", ":1/")
    async with opened(url, replace(SETTINGS, read_database_url=away)) as api:
        assert await is_answered_by_primary(api)
        assert math.isnan(await figure(api, "jobq_read_lag_seconds"))
        assert await figure(api, "jobq_up") == 1


async def test_the_figures_tell_the_lag(api: Api) -> None:
    assert await figure(api, "jobq_read_lag_seconds") >= 0
    assert await figure(api, "jobq_up") == 1


def test_the_client_lists_from_it(url: str, standby: Server) -> None:
    with Client(url, read_database=on_standby(standby, url)) as client:
        until(lambda: client.replica_lag() is not None)
        with held_back(standby):
            job_id = client.enqueue("test").job_id
            assert client.get(job_id).job_id == job_id
            assert job_id not in {job.job_id for job in client.list_jobs()}
            lag = client.replica_lag()
            assert lag is not None and lag.total_seconds() > 0
        until(lambda: job_id in {job.job_id for job in client.list_jobs()})
        for call in (client.queue_stats, client.list_schedules):
            call()
        client.list_definitions("config")


def test_a_primary_lies_behind_nobody(url: str) -> None:
    with Client(url) as client:
        assert client.replica_lag() is None


def test_health_says_that_it_asks_a_standby(standby: Server, url: str) -> None:
    """And makes no trial there."""
    with psycopg.connect(on_standby(standby, url)) as connection:
        asked = "select is_ok, severity, remedy from jobq.health() where subject = 'standby'"
        is_ok, severity, remedy = connection.execute(asked).fetchone() or ()
        assert (is_ok, severity) == (False, "warning") and "target_session_attrs" in remedy
        failed = "select finding from jobq.health() where finding like 'could not be checked%'"
        assert connection.execute(failed).fetchall() == []
        assert connection.execute("select jobq.health(part => 'trial')").fetchall() == []
