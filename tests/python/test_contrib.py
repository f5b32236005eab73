"""jobq_contrib: each framework's own transaction decides whether a job exists."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any

import fastapi
import flask
import httpx
import pytest
import sqlalchemy
from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from jobq import AsyncClient, Registry
from jobq.errors import InvalidArgument
from jobq_contrib.flask import Jobq
from jobq_contrib.sqlalchemy import async_client_of, client_of
from jobq_contrib.starlette import client_of as client_of_app
from jobq_contrib.starlette import lifespan_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

CONFTEST = 'pytest_plugins = ["jobq_contrib.pytest"]\n'
TEST = """
from jobq import Registry
registry = Registry()
registry.handler("greet")(lambda payload: f"hello {payload}")

def test_it(jobq_client, run_due):
    jobq_client.enqueue("greet", "Ada")
    [ran] = run_due(registry)
    assert ran.result == "hello Ada"
"""


def kinds(connect: Callable[[], Connection]) -> list[str]:
    with connect() as connection:
        rows = connection.execute("select kind from jobq.job order by job_id").fetchall()
        return [kind for (kind,) in rows]


def test_a_session_of_sqlalchemy_decides(database: str, connect: Callable[[], Connection]) -> None:
    engine = sqlalchemy.create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    with Session(engine) as session:
        client_of(session).enqueue("lost")
        session.rollback()
        job = client_of(session).enqueue("kept", {"a": [1]})
        assert client_of(session).get(job.job_id).payload == {"a": [1]}
        session.commit()
    engine.dispose()
    assert kinds(connect) == ["kept"]


async def test_an_asynchronous_session_decides(
    database: str, connect: Callable[[], Connection]
) -> None:
    engine = create_async_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    async with AsyncSession(engine) as session:
        await (await async_client_of(session)).enqueue("lost")
        await session.rollback()
        await (await async_client_of(session)).enqueue("kept")
        await session.commit()
    await engine.dispose()
    assert kinds(connect) == ["kept"]


def test_another_driver_is_refused() -> None:
    with (
        Session(sqlalchemy.create_engine("sqlite://")) as session,
        pytest.raises(InvalidArgument, match="sqlite3") as refused,
    ):
        client_of(session)
    assert "postgresql+psycopg://" in refused.value.hint


async def test_fastapi_enqueues_and_works(database: str) -> None:
    registry = Registry()
    registry.handler("greet")(lambda payload: f"hello {payload}")
    app = fastapi.FastAPI(lifespan=lifespan_of(database, registry, metrics_port=None))

    @app.post("/greetings")
    async def greet(client: Annotated[AsyncClient, Depends(client_of_app)]) -> Any:
        job = await client.enqueue("greet", "Ada")
        return await client.result(job.job_id, timeout=60)

    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app", timeout=90) as browser,
    ):
        answer = await browser.post("/greetings")
    assert answer.json() == "hello Ada"


def test_flask_enqueues(database: str, connect: Callable[[], Connection]) -> None:
    app = flask.Flask("app")
    app.config["JOBQ_DATABASE_URL"] = database
    registry = Registry()
    registry.handler("greet", max_attempts=2)(lambda: None)
    jobq = Jobq(app, registry)

    @app.post("/greetings")
    def greet() -> str:
        return str(jobq.client.enqueue("greet").job_id)

    assert app.test_client().post("/greetings").status_code == 200
    with app.app_context():
        assert [kind.max_attempts for kind in jobq.client.list_kinds()] == [2]
        jobq.client.close()
    assert kinds(connect) == ["greet"]


@pytest.mark.prove
def test_the_plugins_fixtures_roll_back(
    database: str, connect: Callable[[], Connection], tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path],
        env={**os.environ, "DATABASE_URL": database}, capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert kinds(connect) == []
