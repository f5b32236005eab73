"""Every error code of the documents, each provoked by requests over HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from http_api import SETTINGS

from jobq_http import create_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from http_api import Api

pytest_plugins = ["http_fixtures"]

GONE = "01a1fdac-222a-7efd-9232-ffd89900cb30"
CRON = {"endpoint": "e", "trigger": "CRON", "cron": "0 9 * * MON", "timezone": "UTC"}
ENDPOINT = {
    "name": "new",
    "type": "HTTP",
    "spec": {"url": "https://api.example.org", "method": "POST", "body_template": {}},
}
DEEP = b'{"kind":"a","payload":' + b"[" * 65 + b"]" * 65 + b"}"

# What a request meets: a spec and a config that an endpoint uses, a job that waits and one
# that runs.
MADE = (
    ("/payload-specs", {"name": "s", "schema": {"type": "object", "required": ["to"]}}),
    ("/configs", {"name": "c", "values": {}}),
    ("/endpoints", {**ENDPOINT, "name": "e", "payload_spec": "s", "config": "c"}),
)

# Document, code, status, and the request that is refused: method, path, body.
REFUSED: list[tuple[str, str, int, tuple[str, str, Any]]] = [
    ("S2", "INVALID_REQUEST", 400, ("POST", "/jobs", b"{")),
    ("S2", "PAYLOAD_SPEC_NOT_FOUND", 404, ("GET", "/payload-specs/none", None)),
    ("S2", "CONFIG_NOT_FOUND", 404, ("GET", "/configs/none", None)),
    ("S2", "SECRET_NOT_FOUND", 404, ("GET", "/secrets/none", None)),
    ("S2", "ENDPOINT_NOT_FOUND", 404, ("GET", "/endpoints/none", None)),
    ("S2", "JOB_NOT_FOUND", 404, ("GET", f"/jobs/{GONE}", None)),
    ("S2", "EXECUTION_NOT_FOUND", 404, ("GET", f"/executions/{GONE}", None)),
    ("S2", "CONFLICT", 409, ("DELETE", "/configs/c", None)),
    ("S2", "JOB_NOT_UPDATABLE", 409, ("PUT", "/jobs/{waiting}", {"cron": "* * * * *"})),
    ("S2", "EXECUTION_NOT_CANCELLABLE", 409, ("POST", "/executions/{running}/cancel", None)),
    ("S2", "INVALID_CRON", 422, ("POST", "/jobs", {**CRON, "cron": "often"})),
    (
        "S2",
        "INVALID_SCHEMA",
        422,
        ("POST", "/payload-specs", {"name": "x", "schema": {"type": "nothing"}}),
    ),
    (
        "S2",
        "INVALID_PAYLOAD_SPEC_REF",
        422,
        ("POST", "/endpoints", {**ENDPOINT, "payload_spec": "none"}),
    ),
    ("S2", "INVALID_CONFIG_REF", 422, ("POST", "/endpoints", {**ENDPOINT, "config": "none"})),
    (
        "S2",
        "INPUT_VALIDATION_FAILED",
        422,
        (
            "POST",
            "/jobs",
            {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k", "input": {}},
        ),
    ),
    (
        "S2",
        "TEMPLATE_RESOLUTION_FAILED",
        422,
        ("POST", "/endpoints", {**ENDPOINT, "spec": {"url": "{{config.base}}", "method": "GET"}}),
    ),
    ("S3", "MESSAGE_TOO_LARGE", 413, ("POST", "/jobs", {"kind": "a", "payload": "x" * 2**20})),
    ("S3", "INVALID_MESSAGE", 422, ("POST", "/jobs", DEEP)),
]


@pytest.mark.parametrize(
    ("status", "code", "request_"),
    [pytest.param(s, c, r, id=f"{d} {c}") for d, c, s, r in REFUSED],
)
async def test_a_request_that_is_refused(
    api: Api, status: int, code: str, request_: tuple[str, str, Any]
) -> None:
    for path, body in MADE:
        assert (await api.ask("POST", path, json=body)).status_code == 201
    running = (await api.job())["job_id"]
    await api.claim()
    waiting = (await api.job())["job_id"]
    method, path, body = request_
    options = {"content": body} if isinstance(body, bytes) else {"json": body}
    path = path.format(running=running, waiting=waiting)
    check(await api.ask(method, path, **options), status, code)


def check(response: httpx.Response, status: int, code: str) -> None:
    """Fail unless this is the error, in the documents' envelope."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["request_id"] == response.headers["x-request-id"]


async def without_a_key(api: Api) -> httpx.Response:
    return await api.ask("GET", "/jobs", headers={"authorization": "Bearer jobq_none"})


async def too_often(api: Api) -> httpx.Response:
    header = api.key(["read"], requests_per_second=1)
    for _ in range(100):
        response = await api.ask("GET", "/jobs", headers=header)
        if response.status_code != 200:
            break
    return response


async def beside_a_mistake(api: Api) -> httpx.Response:
    """Ask when a function of the database is not there."""
    api.run("drop function jobq.queue_stats")
    return await api.ask("GET", "/queues")


@asynccontextmanager
async def hasty(api: Api, url: str) -> AsyncIterator[httpx.AsyncClient]:
    """Open the HTTP API on a database, with little patience."""
    app = create_app(url, replace(SETTINGS, patience=0.3))
    transport = httpx.ASGITransport(app)
    headers = {"authorization": api.client.headers["authorization"]}
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://jobq", headers=headers) as client,
    ):
        yield client


async def too_long(api: Api) -> httpx.Response:
    """Cancel a job whose row somebody holds; it is not cancelled later either."""
    async with hasty(api, api.url) as client:
        created = await client.post("/jobs", json={"kind": "a"})
        while created.status_code != 201:
            created = await client.post("/jobs", json={"kind": "a"})
        path = f"/jobs/{created.json()['job_id']}"
        with psycopg.connect(api.url) as holder:
            holder.execute("select from jobq_private.job for update")
            response = await client.post(f"{path}/cancel")
    assert (await api.ask("GET", path)).json()["state"] == "queued"
    return response


async def no_queue(api: Api) -> httpx.Response:
    async with hasty(api, psycopg.conninfo.make_conninfo(api.url, dbname="none")) as client:
        return await client.post("/jobs", json={"kind": "a"})


async def no_repo(api: Api) -> httpx.Response:
    async with hasty(api, psycopg.conninfo.make_conninfo(api.url, dbname="none")) as client:
        return await client.get("/jobs")


async def no_schema(api: Api) -> httpx.Response:
    async with hasty(api, psycopg.conninfo.make_conninfo(api.url, dbname="postgres")) as client:
        return await client.get("/jobs")


@pytest.mark.parametrize(
    ("status", "code", "ask"),
    [
        pytest.param(401, "UNAUTHORIZED", without_a_key, id="S2 UNAUTHORIZED"),
        pytest.param(429, "RATE_LIMITED", too_often, id="S2 RATE_LIMITED"),
        pytest.param(500, "INTERNAL_ERROR", beside_a_mistake, id="S2 INTERNAL_ERROR"),
        pytest.param(504, "TIMEOUT", too_long, id="S0 TIMEOUT"),
        pytest.param(503, "QUEUE_UNAVAILABLE", no_queue, id="S3 QUEUE_UNAVAILABLE"),
        pytest.param(503, "REPO_UNAVAILABLE", no_repo, id="S3 REPO_UNAVAILABLE"),
        pytest.param(503, "REPO_UNAVAILABLE", no_schema, id="S3 REPO_UNAVAILABLE, no schema"),
    ],
)
async def test_a_server_that_refuses(
    api: Api, status: int, code: str, ask: Callable[[Api], Awaitable[httpx.Response]]
) -> None:
    response = await ask(api)
    check(response, status, code)
    assert status not in (429, 503) or int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    "code", ["UPSTREAM_EMPTY", "TRANSFORM_INVALID", "QUALITY_FAILED", "STORAGE_WRITE_FAILED"]
)
async def test_a_worker_that_fails(api: Api, code: str) -> None:
    """S3's codes of failures are kept by the job and by its attempt."""
    job = await api.job(kind="daily_pipeline", max_attempts=1)
    path = f"/jobs/{job['job_id']}"
    await api.claim()
    failure = {"error": "no rows", "error_code": code}
    failed = await api.ask("POST", f"{path}/attempts/1/fail", json=failure)
    assert failed.json()["state"] == "dead"
    job = (await api.ask("GET", path)).json()
    assert (job["last_error_code"], job["last_error"]) == (code, "no rows")
    [attempt] = (await api.ask("GET", f"{path}/attempts")).json()["items"]
    assert attempt["error"] == {"type": code, "message": "no rows"}


async def test_a_key_that_is_taken_is_no_error(api: Api) -> None:
    """S3's IDEMPOTENCY_CONFLICT: the job that has the key is the answer, and is counted."""

    async def conflicts() -> float:
        text = (await api.ask("GET", "/metrics")).text
        [line] = [x for x in text.splitlines() if x.startswith("jobq_idempotency_conflicts_total")]
        return float(line.split()[1])

    before = await conflicts()
    first = await api.job(idempotency_key="k")
    second = await api.ask("POST", "/jobs", json={"kind": "test", "idempotency_key": "k"})
    assert (second.status_code, second.json()["job_id"]) == (200, first["job_id"])
    assert await conflicts() == before + 1
