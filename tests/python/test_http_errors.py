"""The HTTP API: every error has its status, its code and one envelope."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, get_args
from uuid import uuid4

import httpx
import msgspec
import psycopg
import pytest
import pytest_asyncio
from http_api import SETTINGS, opened, served

from jobq_http import create_app
from jobq_http.app import OPERATIONS
from jobq_http.errors import DURATIONS, ERROR_TABLE, ERRORS, FRACTIONS, RENAMED, translate
from jobq_http.openapi import errors_of
from jobq_http.queues import NewKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from http_api import Api

    from servers import Cluster

pytest_plugins = ["http_fixtures"]

GONE = uuid4()
DEEP = b"[" * 65 + b"]" * 65

# Requests that are refused: method, path, body, status, code.
REFUSED: dict[str, tuple[str, str, Any, int, str]] = {
    "no JSON": ("POST", "/jobs", b"{", 400, "INVALID_REQUEST"),
    "not an object": ("POST", "/jobs", b"[]", 400, "INVALID_REQUEST"),
    "nothing": ("POST", "/jobs", b"", 400, "INVALID_REQUEST"),
    "not UTF-8": ("POST", "/jobs", b'{"kind":"\xff"}', 400, "INVALID_REQUEST"),
    "not UTF-8 in the payload": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":"\xff"}',
        400,
        "INVALID_REQUEST",
    ),
    "a query that is not UTF-8": ("GET", "/jobs?kind=%ff", None, 400, "INVALID_REQUEST"),
    "half a surrogate in a query": ("GET", "/jobs?kind=%ed%a0%80", None, 400, "INVALID_REQUEST"),
    "a path that is not UTF-8": ("GET", "/queues/%ff", None, 400, "INVALID_REQUEST"),
    "half a surrogate": (
        "POST",
        "/jobs",
        rb'{"kind":"a","payload":"\ud800"}',
        400,
        "INVALID_REQUEST",
    ),
    "wrong type": ("POST", "/jobs", {"kind": 5}, 400, "INVALID_REQUEST"),
    "unknown member": (
        "POST",
        "/jobs",
        {"kind": "a", "kid": 1},
        400,
        "INVALID_REQUEST",
    ),
    "NUL in a name": ("POST", "/jobs", {"kind": "a\0"}, 400, "INVALID_REQUEST"),
    "NUL in a payload": (
        "POST",
        "/jobs",
        {"kind": "a", "payload": {"a\0": 1}},
        400,
        "INVALID_REQUEST",
    ),
    "no time zone": (
        "POST",
        "/jobs",
        {"kind": "a", "run_at": "2126-01-01T00:00:00"},
        400,
        "INVALID_REQUEST",
    ),
    "number past its range": (
        "POST",
        "/jobs",
        {"kind": "a", "priority": 2**70},
        400,
        "INVALID_REQUEST",
    ),
    "number past numeric": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":1e999999}',
        400,
        "INVALID_REQUEST",
    ),
    "number past a double": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":1e400}',
        422,
        "INPUT_VALIDATION_FAILED",
    ),
    "too large": (
        "POST",
        "/jobs",
        {"kind": "a", "payload": "x" * 2**20},
        413,
        "MESSAGE_TOO_LARGE",
    ),
    "too deep": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":' + DEEP + b"}",
        422,
        "INVALID_MESSAGE",
    ),
    "a result that is too deep": (
        "POST",
        f"/jobs/{GONE}/attempts/1/complete",
        b'{"result":' + DEEP + b"}",
        422,
        "INVALID_MESSAGE",
    ),
    "very deep": ("POST", "/jobs", b"[" * 500_000, 422, "INVALID_MESSAGE"),
    "a very deep payload": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":' + b"[" * 250_000 + b"]" * 250_000 + b"}",
        422,
        "INVALID_MESSAGE",
    ),
    "a payload that can just be read": (
        "POST",
        "/jobs",
        b'{"kind":"a","payload":' + b"[" * 700 + b"]" * 700 + b"}",
        422,
        "INVALID_MESSAGE",
    ),
    "unfit payload": (
        "POST",
        "/jobs",
        {"kind": "strict", "payload": {"to": 5}},
        422,
        "INPUT_VALIDATION_FAILED",
    ),
    "a queue that means all": (
        "POST",
        "/jobs",
        {"kind": "a", "queue": "*"},
        400,
        "INVALID_REQUEST",
    ),
    "full queue": ("POST", "/jobs", {"kind": "a", "queue": "full"}, 429, "QUEUE_FULL"),
    "no such job": ("GET", f"/jobs/{GONE}", None, 404, "JOB_NOT_FOUND"),
    "a job that cannot be": ("GET", "/jobs/job_xyz", None, 404, "JOB_NOT_FOUND"),
    "NUL in an id": ("GET", "/jobs/a%00", None, 404, "JOB_NOT_FOUND"),
    "no such execution": (
        "GET",
        f"/executions/{GONE}",
        None,
        404,
        "EXECUTION_NOT_FOUND",
    ),
    "attempts of no execution": (
        "GET",
        f"/executions/{GONE}/attempts",
        None,
        404,
        "EXECUTION_NOT_FOUND",
    ),
    "cancel of no execution": (
        "POST",
        f"/executions/{GONE}/cancel",
        None,
        404,
        "EXECUTION_NOT_FOUND",
    ),
    "cancel of no job": ("POST", f"/jobs/{GONE}/cancel", None, 404, "JOB_NOT_FOUND"),
    "no such queue": (
        "POST",
        "/queues/none/resume",
        None,
        404,
        "QUEUE_NOT_FOUND",
    ),
    "NUL in a queue": ("POST", "/queues/a%00/pause", None, 400, "INVALID_REQUEST"),
    "a queue's name too long": (
        "POST",
        f"/queues/{'q' * 129}/pause",
        None,
        400,
        "INVALID_REQUEST",
    ),
    "a foreign cursor": ("GET", "/jobs?cursor=abc", None, 400, "INVALID_REQUEST"),
    "a cursor that is no name": ("GET", "/endpoints?cursor=W10=", None, 400, "INVALID_REQUEST"),
    "limit of nothing": ("GET", "/jobs?limit=0", None, 400, "INVALID_REQUEST"),
    "limit past 200": ("GET", "/jobs?limit=201", None, 400, "INVALID_REQUEST"),
    "unknown parameter": ("GET", "/jobs?page=2", None, 400, "INVALID_REQUEST"),
    "parameter twice": ("GET", "/jobs?kind=a&kind=b", None, 400, "INVALID_REQUEST"),
    "unknown state": ("GET", "/jobs?state=lost", None, 400, "INVALID_REQUEST"),
    "an attempt that is none": (
        "POST",
        f"/jobs/{GONE}/attempts/0/complete",
        None,
        400,
        "INVALID_REQUEST",
    ),
    "an attempt of no job": (
        "POST",
        f"/jobs/{GONE}/attempts/1/complete",
        None,
        404,
        "JOB_NOT_FOUND",
    ),
    "a log line of no job": (
        "POST",
        f"/jobs/{GONE}/attempts/1/logs",
        {"message": "x"},
        404,
        "JOB_NOT_FOUND",
    ),
    "no such path": ("GET", "/nothing", None, 404, "NOT_FOUND"),
    "no such method": ("PATCH", "/jobs", None, 405, "METHOD_NOT_ALLOWED"),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def refusing(cluster: Cluster) -> AsyncIterator[Api]:
    """The HTTP API for requests that leave nothing: they share a database with one job."""
    with cluster.database() as url:
        async with opened(url) as api:
            api.run(
                "select jobq.put_kind('strict', payload_schema => %s)",
                '{"type": "object", "properties": {"to": {"type": "string"}}}',
            )
            api.run("select jobq.put_queue('full', max_depth => 1)")
            api.run("select jobq.enqueue('a', queue => 'full')")
            yield api


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("name", REFUSED)
async def test_a_bad_request_gets_its_own_answer(refusing: Api, name: str) -> None:
    method, path, body, status, code = REFUSED[name]
    options = {"content": body} if isinstance(body, bytes) else {"json": body}
    response = await refusing.ask(method, path, **options)
    assert (response.status_code, code_of(response)) == (status, code), response.text
    assert response.headers["x-request-id"] == request_id_of(response)
    assert refusing.run("select count(*) from jobq.job") == [(1,)]


def code_of(response: httpx.Response) -> str:
    error = response.json()["error"]
    assert error.keys() <= {"code", "message", "request_id", "detail", "hint"}
    assert error["message"]
    return str(error["code"])


def request_id_of(response: httpx.Response) -> str:
    return str(response.json()["error"]["request_id"])


async def test_a_missing_job_is_named_as_the_document_does(api: Api) -> None:
    error = (await api.ask("GET", "/jobs/job_xyz")).json()["error"]
    assert error["message"] == "Job with ID 'job_xyz' does not exist."


async def test_a_payload_of_64_levels_is_taken(api: Api) -> None:
    deep = b"[" * 64 + b"]" * 64
    single = b'{"kind":"a","payload":' + deep + b"}"
    assert (await api.ask("POST", "/jobs", content=single)).status_code == 201
    batch = b'{"jobs":[' + single + b"]}"
    assert (await api.ask("POST", "/jobs:batch", content=batch)).status_code == 201


async def test_the_request_id_is_the_callers_when_it_is_fit(api: Api) -> None:
    async def answered(given: str) -> str:
        response = await api.ask("GET", "/jobs/x", headers={"x-request-id": given})
        assert request_id_of(response) == response.headers["x-request-id"]
        return request_id_of(response)

    assert await answered("trace-1.2:3") == "trace-1.2:3"
    assert (await answered("no spaces")).startswith("req_")
    assert (await answered("x" * 129)).startswith("req_")


KEY = {"queue": "q", "concurrency_key": "k", "max_running": 1}
CRON = {"trigger": "CRON", "kind": "a", "name": "n"}
LIMITLESS = "rate_period_ms and rate_burst need a rate_limit"


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("/limits", {**KEY, "rate_period_ms": 1000}, LIMITLESS),
        ("/kinds", {"kind": "a", "rate_burst": 1}, LIMITLESS),
        (
            "/kinds",
            {"kind": "a", "key_rate_period_ms": 1000},
            "key_rate_period_ms and key_rate_burst need a key_rate_limit",
        ),
        (
            "/jobs",
            {**CRON, "every_ms": 1},
            "every_ms must be from 1 s to 3660 days, without months; for those use cron",
        ),
    ],
)
async def test_a_refusal_names_members_as_the_caller_does(
    api: Api, path: str, body: dict[str, object], detail: str
) -> None:
    answer = await api.ask("POST", path, json=body)
    assert (answer.status_code, answer.json()["error"]["detail"]) == (400, detail)


def test_every_length_of_time_is_known_by_its_name_in_sql() -> None:
    bodies = [operation.body for operation in OPERATIONS if operation.body is not None]
    models = {model for body in bodies for model in get_args(body) or [body]}
    _, parts = msgspec.json.schema_components(list(models))
    members = {m for part in parts.values() for m in part.get("properties", ())}
    lengths = {m.removesuffix("_ms") for m in members if m.endswith("_ms")}
    # For which the server waits or a link is valid, and what the database too knows by these names.
    assert lengths - {"wait", "valid_for", "initial_delay", "max_delay"} == {*DURATIONS}


def test_every_error_of_the_database_has_its_status(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        rows = connection.execute("select code, http_status from jobq.error").fetchall()
        for code, status in rows:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute("select jobq_private.raise_error(%s, 'x')", [code])
            answer = translate(caught.value)
            expected = RENAMED.get(code, code)
            assert answer.code == expected
            assert answer.status == status
            assert answer.detail == "x"
            assert not re.search(r"jobq|select |\(\.\.\.\)", answer.hint or "")
    assert len(rows) > 10


@pytest.mark.prove
async def test_an_outage_is_503_and_passes(database: str) -> None:
    """Turn the database off, see /ready and the routes say so, and turn it on again."""
    admin = psycopg.conninfo.make_conninfo(database, dbname="postgres")
    name = psycopg.conninfo.conninfo_to_dict(database)["dbname"]

    def allow(allowed: bool) -> None:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"alter database {name} allow_connections {allowed}")
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                [name],
            )

    async with served(database) as api:
        ready = await api.ask("GET", "/ready")
        assert ready.status_code == 200
        body = ready.json()
        assert (body.pop("queue"), body.pop("repo")) == ("ok", "ok")
        assert list(body) == ["timestamp"]

        allow(False)
        try:
            down = await api.ask("GET", "/ready")
            assert down.status_code == 503
            assert down.json()["queue"].startswith("error(")
            assert down.json()["repo"].startswith("error(")
            read = await api.ask("GET", "/jobs")
            assert (read.status_code, code_of(read)) == (503, "REPO_UNAVAILABLE")
            assert read.headers["retry-after"] == "1"
            write = await api.ask("POST", "/jobs", json={"kind": "a"})
            assert (write.status_code, code_of(write)) == (503, "QUEUE_UNAVAILABLE")
            figures = await api.ask("GET", "/metrics")
            assert "jobq_up 0.0" in figures.text
            assert (await api.ask("GET", "/healthz")).json()["status"] == "ok"
        finally:
            allow(True)
        async with asyncio.timeout(120):
            while (await api.ask("GET", "/ready")).status_code != 200:
                await asyncio.sleep(0.05)
        assert (await api.ask("POST", "/jobs", json={"kind": "a"})).status_code == 201


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"password": "wrong"}, "auth_failed"),
        ({"host": "no-such-host.invalid"}, "dns_error"),
        ({"port": "1"}, "refused"),
        ({"dbname": "none"}, "not_deployed"),
        ({"dbname": "template1"}, "not_deployed"),
    ],
)
async def test_ready_names_the_reason_and_soon(
    database: str, change: dict[str, str], reason: str
) -> None:
    app = create_app(psycopg.conninfo.make_conninfo(database, **change), SETTINGS)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://jobq") as client,
        asyncio.timeout(4),
    ):
        ready = await client.get("/ready")
    assert ready.status_code == 503
    assert (ready.json()["queue"], ready.json()["repo"]) == (f"error({reason})",) * 2


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("priority", "40000", "Expected `integer` <= 32767 - at `$.priority`"),
        ("priority", "-40000", "Expected `integer` >= -32768 - at `$.priority`"),
        ("priority", "1.5", "Expected `integer` - at `$.priority`"),
        ("priority", '"a"', "Expected `integer | null`, got `str` - at `$.priority`"),
        ("retry_jitter", "2", "Expected `number` <= 1.0 - at `$.retry_jitter`"),
        ("retry_preset", "1.5", "Expected `str | null`, got `float` - at `$.retry_preset`"),
    ],
)
def test_a_whole_number_is_called_an_integer(member: str, value: str, said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(f'{{"kind":"a","{member}":{value}}}', type=NewKind)
    assert translate(refused.value).detail == said


def test_every_number_that_may_be_a_fraction_is_known() -> None:
    """In requests; so that the others may be called integers."""
    bodies = [operation.body for operation in OPERATIONS if operation.body is not None]
    models = {model for body in bodies for model in get_args(body) or [body]}
    schemas, parts = msgspec.json.schema_components(list(models), ref_template="{name}")
    assert fractions({**parts, "": schemas}) == FRACTIONS


def fractions(schema: Any, name: str = "") -> set[str]:
    """Return the members of a JSON schema that are numbers, but not whole ones."""
    if isinstance(schema, list):
        return {found for part in schema for found in fractions(part, name)}
    if not isinstance(schema, dict):
        return set()
    if schema.get("type") == "number" and "multipleOf" not in schema:
        return {name}
    kept = {"anyOf", "items", "oneOf"}
    return {
        found
        for key, part in schema.items()
        for found in fractions(part, name if key in kept else key)
    }


def test_each_error_is_described_at_its_own_status() -> None:
    """OpenAPI has the statuses of the database's table, and of what HTTP adds to it."""
    statuses = {RENAMED.get(code, code): row.http_status for code, row in ERROR_TABLE.items()}
    statuses |= {code: status for code, (status, _) in ERRORS.items()}
    described = [
        (code, status)
        for operation in OPERATIONS
        for status, codes in errors_of(operation).items()
        for code in codes
    ]
    assert len(described) > 100
    assert [found for found in described if statuses[found[0]] != found[1]] == []


async def test_a_server_that_only_reads_has_no_queue(database: str) -> None:
    read_only = psycopg.conninfo.make_conninfo(
        database, options="-c default_transaction_read_only=on"
    )
    app = create_app(read_only, SETTINGS)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://jobq") as client,
    ):
        ready = await client.get("/ready")
    assert ready.status_code == 503
    assert ready.json()["queue"] == "error(read_only)"
    assert ready.json()["repo"] == "ok"
