"""The HTTP API behind a real socket: events, the specification, its page.

JOBQ_API_EXAMPLES=100 has more requests drawn for each operation of the specification, and every
bound of every value tried.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import chance
import httpx
import jsonschema
import psycopg
import pytest
from http_api import SETTINGS, served

from jobq_http import create_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from http_api import Api

pytest_plugins = ["http_fixtures"]

# Of schemathesis's checks: not that all valid requests are taken, since a cursor, a NUL
# or a job that is not there have no place in a schema.
CHECKS = ",".join(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
        "unsupported_method",
        "ignored_auth",
    ]
)
BROWSER = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=20000",
]


async def follow(api: Api, job_id: str, found: list[tuple[str, dict[str, Any]]]) -> None:
    """Follow a job to its end, and add each event to those found."""
    async with api.client.stream("GET", f"/jobs/{job_id}/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        name = ""
        async for line in response.aiter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                found.append((name, json.loads(value)))


@pytest.mark.parametrize("form", ["json", "pretty"])
def test_the_log_has_each_request_with_the_id_of_its_answer(database: str, form: str) -> None:
    with psycopg.connect(database) as connection:
        key = create_key(connection, "reporting", ["read"])
    server = subprocess.Popen(
        [sys.executable, "-m", "jobq_cli", "http", "--port", "0", "--log-format", form],
        env={**os.environ, "DATABASE_URL": database},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        port = re.search(r"serving on 127.0.0.1 port (\d+)", server.stderr.readline())
        assert port is not None
        with httpx.Client(base_url=f"http://127.0.0.1:{port[1]}", trust_env=False) as client:
            assert client.get("/healthz").is_success
            authorization = {"authorization": f"Bearer {key}"}
            done = client.get("/jobs?limit=1", headers=authorization)
            refused = client.get("/jobs", headers={"x-request-id": "mine-1"})
    finally:
        server.terminate()
        lines = server.communicate(timeout=60)[1].splitlines()
    assert key not in "".join(lines)
    first, second = [line for line in lines if "/jobs" in line]
    ids = [answer.headers["x-request-id"] for answer in (done, refused)]
    if form == "pretty":
        assert "GET /jobs 200" in first and f"request_id={ids[0]} key=reporting status=200" in first
        assert "GET /jobs 401" in second and f"request_id={ids[1]} status=401" in second
        return
    told = [json.loads(line) for line in (first, second)]
    assert [line["request_id"] for line in told] == ids == [ids[0], "mine-1"]
    assert [(line["key"], line["status"]) for line in told] == [("reporting", 200), (None, 401)]
    assert all(0 < line["ms"] < 60_000 for line in told)
    assert not [line for line in lines if "healthz" in line]


async def test_events_follow_a_job_to_its_end(live: Api) -> None:
    job = await live.job()
    events: list[tuple[str, dict[str, Any]]] = []
    async with asyncio.timeout(60):
        following = asyncio.create_task(follow(live, job["job_id"], events))
        claimed = await live.claim()
        attempt = f"/jobs/{claimed['job_id']}/attempts/1"
        await live.ask("POST", f"{attempt}/progress", json={"progress": {"percent": 50}})
        while {"percent": 50} not in [item.get("progress") for _, item in events]:
            await asyncio.sleep(0.01)
        await live.ask("POST", f"{attempt}/complete", json={"result": "done"})
        await following
    assert [name for name, _ in events[-2:]] == ["job", "end"]
    assert events[-2][1]["result"] == "done"


async def test_events_of_a_job_that_is_not_there_are_404(live: Api) -> None:
    response = await live.ask("GET", "/jobs/job_xyz/events")
    assert response.status_code == 404


async def test_what_waits_ends_when_the_server_stops(database: str) -> None:
    async with served(database) as api:
        job = await api.job(run_at="2126-01-01T00:00:00Z")
        events: list[tuple[str, dict[str, Any]]] = []
        following = asyncio.create_task(follow(api, job["job_id"], events))
        claim = asyncio.create_task(api.ask("POST", "/workers/w/claim", json={"wait_ms": 20000}))
        asked = "select count(*) from pg_stat_activity where query like %s"
        for function in ("show_job", "claim"):
            while api.run(asked, f'%"{function}"%') == [(0,)]:
                await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            api.stop()
            assert (await claim).json() == {"jobs": []}
            await following
        assert [name for name, _ in events] == ["job"]


async def test_a_connection_is_kept_and_carries_request_ids(live: Api) -> None:
    for n in range(3):
        response = await live.ask("GET", "/healthz", headers={"x-request-id": f"r{n}"})
        assert response.headers["x-request-id"] == f"r{n}"


async def test_a_body_without_a_length_is_limited_too(live: Api) -> None:
    async def body() -> Any:
        yield b'{"kind":"a","payload":"'
        for _ in range(32):
            yield b"x" * 65536
        yield b'"}'

    response = await live.ask("POST", "/jobs", content=body())
    assert response.status_code == 413
    assert response.json()["error"]["detail"] == f"at most {2**20 + 2**16} bytes"


async def test_examples_of_the_specification_fit_their_schemas(live: Api) -> None:
    specification = (await live.ask("GET", "/openapi.json")).json()
    assert specification["openapi"].startswith("3.1")
    checked = 0
    for path, methods in specification["paths"].items():
        for method, operation in methods.items():
            contents = [operation.get("requestBody", {})]
            contents += operation["responses"].values()
            for content in contents:
                for media in content.get("content", {}).values():
                    schema = {**media["schema"], "components": specification["components"]}
                    examples = [e["value"] for e in media.get("examples", {}).values()]
                    examples += [media["example"]] if "example" in media else []
                    for example in examples:
                        jsonschema.validate(example, schema)
                        checked += 1
            assert operation["responses"], (method, path)
    assert checked > 150


@pytest.mark.parametrize(
    ("path", "body", "is_fit"),
    [
        ("/jobs", {"kind": "a", "priority": 5.0, "timeout_ms": 5394.0}, True),
        ("/jobs", {"kind": "a", "priority": 5.5}, False),
        ("/jobs", {"kind": "a\0"}, False),
        ("/jobs", {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k"}, True),
        ("/jobs", {"endpoint": "e", "trigger": "DELAYED", "idempotency_key": "k"}, False),
        (
            "/jobs",
            {"endpoint": "e", "trigger": "CRON", "timezone": "UTC", "every_ms": 60000.0},
            True,
        ),
        ("/jobs", {"endpoint": "e", "trigger": "CRON", "timezone": "UTC"}, False),
        ("/jobs", {"kind": "e", "trigger": "CRON", "timezone": "UTC", "every_ms": 60000}, True),
        (
            "/jobs:batch",
            {
                "jobs": [
                    {"kind": "e", "payload": 1},
                    {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k", "input": 1},
                ],
                "endpoint": "e",
            },
            False,
        ),
        ("/jobs:batch", {"jobs": [{"kind": "e", "input": 1}]}, False),
        ("/jobs:batch", {"jobs": [{"endpoint": "e", "trigger": "IMMEDIATE"}]}, False),
        ("/jobs:redrive", {}, False),
        ("/jobs:redrive", {"endpoint": "e"}, True),
        ("/jobs:redrive", {"all": True}, True),
        ("/jobs:redrive", {"queue": "a", "max_jobs": 7.0}, True),
        ("/endpoints", {"name": "e", "type": "HTTP", "spec": {"url": "http://a.example/"}}, True),
        ("/endpoints", {"name": "e", "type": "HTTP", "spec": {"uri": "x"}}, False),
        ("/workers/w/claim", {"max_jobs": 2.0, "wait_ms": 0.0}, True),
    ],
)
async def test_what_the_specification_says_of_a_request_is_so(
    live: Api, path: str, body: dict[str, Any], is_fit: bool
) -> None:
    specification = (await live.ask("GET", "/openapi.json")).json()
    template = path.replace("/w/", "/{worker}/")
    request = specification["paths"][template]["post"]["requestBody"]
    schema = request["content"]["application/json"]["schema"]
    schema = {**schema, "components": specification["components"]}
    assert jsonschema.Draft202012Validator(schema).is_valid(body) is is_fit
    if body.get("endpoint"):
        live.endpoint(body["endpoint"])
    answer = await live.ask("POST", path, json=body)
    assert answer.is_success is is_fit, answer.text


async def test_examples_of_requests_are_taken_as_they_stand(live: Api) -> None:
    specification = (await live.ask("GET", "/openapi.json")).json()
    for name in ("send-welcome-email", "push-notification"):
        live.endpoint(name)
    for path in ("/jobs", "/jobs:batch"):
        body = specification["paths"][path]["post"]["requestBody"]
        for example in body["content"]["application/json"]["examples"].values():
            response = await live.ask("POST", path, json=example["value"])
            assert response.status_code == 201, response.text


@pytest.fixture
async def brief(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """The HTTP API behind a real socket, with claims that hardly wait."""
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    async with served(database, replace(SETTINGS, longest_wait=0.05)) as api:
        yield api


async def not_drawn(live: Api) -> list[str]:
    """Choose eleven twelfths of the operations, of which not every bound of every value is tried.

    Trying them is nine tenths of the work; JOBQ_API_EXAMPLES tries all.
    """
    specification = (await live.ask("GET", "/openapi.json")).json()
    names = [
        operation["operationId"]
        for methods in specification["paths"].values()
        for operation in methods.values()
    ]
    is_whole = "JOBQ_API_EXAMPLES" in os.environ
    return [] if is_whole else random.Random(chance.seed()).sample(names, len(names) * 11 // 12)


@pytest.mark.prove
@pytest.mark.long
async def test_the_specification_holds_against_schemathesis(brief: Api, tmp_path: Path) -> None:
    """No 5xx, no answer that is not described, no unfit request that is taken."""
    live = brief
    # Whoever names another version by If-Match hears of that first.
    refusals = "400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429, '5xx'"
    (tmp_path / "schemathesis.toml").write_text(
        f"[checks]\nnegative_data_rejection.expected-statuses = [{refusals}]\n"
        f"[[operations]]\ninclude-operation-id = {json.dumps(await not_drawn(live))}\n"
        "phases.coverage.enabled = false\n"
    )
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("schemathesis"),
        "run",
        f"{live.client.base_url}/openapi.json",
        "--header",
        f"Authorization: {live.client.headers['authorization']}",
        "--checks",
        CHECKS,
        "--exclude-path",
        "/jobs/{job_id}/events",
        "--exclude-path",
        "/jobs/{job_id}/streams/{stream}",
        "--max-examples",
        os.environ.get("JOBQ_API_EXAMPLES", "1"),
        "--seed",
        str(chance.seed()),
        "--request-timeout",
        "40",
        "--suppress-health-check=too_slow",
        "--generation-database",
        "none",
        "--no-color",
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(600):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-6000:]


def test_the_page_needs_no_other_host() -> None:
    pages = files("jobq_http") / "pages"
    page = (pages / "index.html").read_text() + (pages / "start.js").read_text()
    assert not re.search(r"https?://|//[a-z]", page.replace("// Opens", ""))
    assert (pages / "swagger-ui.LICENSE.txt").is_file()


@pytest.mark.prove
async def test_the_page_shows_the_specification_in_a_browser(database: str, tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "chromium is missing: run .ci/packages test"
    async with served(database) as api:
        asked = urlsplit(str(api.client.base_url))
        process = await asyncio.create_subprocess_exec(
            chromium,
            *BROWSER,
            f"--user-data-dir={tmp_path}",
            f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {asked.hostname}",
            "--dump-dom",
            f"{api.client.base_url}/docs#/jobs/create_job",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(300):
            page, _ = await process.communicate()
    text = page.decode()
    assert text.count('class="opblock-summary-path"') >= 25
    assert "an endpoint, later" in text
    assert "Execute" in text
