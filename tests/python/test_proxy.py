"""The HTTP API and the console behind nginx, with TLS and a path prefix."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest
from http_api import SETTINGS, Api, served
from test_delivery_tls import Authority
from waiting import until_async

from jobq_console import Options, Site
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PREFIX = "/ops/jobq"
AROUND = """
user root;
daemon off;
pid nginx.pid;
events {}
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    proxy_bind 127.0.0.2;
    SERVER
}
"""


@pytest.fixture
async def proxied(database: str, tmp_path: Path) -> AsyncIterator[Api]:
    """The API as its clients see it through nginx."""
    console = Site.maker(Options(prefix=PREFIX))
    settings = replace(SETTINGS, console=console, proxy_from=("127.0.0.2/32",))
    authority = Authority(tmp_path, "authority")
    authority.server("127.0.0.1")
    trusted = ssl.create_default_context(cafile=authority.file)
    async with (
        served(database, settings) as api,
        nginx(str(api.client.base_url).rstrip("/"), tmp_path) as url,
        httpx.AsyncClient(base_url=url, verify=trusted, timeout=60) as client,
    ):
        client.headers["authorization"] = api.client.headers["authorization"]
        yield replace(api, client=client)


@asynccontextmanager
async def nginx(behind: str, folder: Path) -> AsyncIterator[str]:
    """Run nginx with the guide's configuration before a server; yield the URL of the prefix."""
    guide = (ROOT / "docs" / "hosting.md").read_text()
    [server] = re.findall(r"^```nginx\n(server .*?)^```", guide, re.MULTILINE | re.DOTALL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for given, ours in (
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("/etc/ssl/ops.example.org.pem", f"{folder}/server.pem"),
        ("/etc/ssl/ops.example.org.key", f"{folder}/server.pem"),
        ("http://127.0.0.1:8080", behind),
    ):
        assert server.count(given) == 1, given
        server = server.replace(given, ours)
    configuration = folder / "nginx.conf"
    configuration.write_text(AROUND.replace("SERVER", server))
    log = str(folder / "error.log")
    program = ["/usr/sbin/nginx", "-p", str(folder), "-c", str(configuration), "-e", log]
    with subprocess.Popen(program, stderr=subprocess.PIPE) as process:  # noqa: ASYNC220

        async def answers() -> bool:
            assert process.poll() is None, process.stderr and process.stderr.read()
            with socket.socket() as caller:
                return caller.connect_ex(("127.0.0.1", port)) == 0

        try:
            await until_async(answers)
            yield f"https://127.0.0.1:{port}{PREFIX}"
        finally:
            process.terminate()


async def test_the_api_answers_below_the_prefix(proxied: Api) -> None:
    job = await proxied.job(payload={"text": "x" * 1_048_000})
    assert (await proxied.ask("GET", f"/jobs/{job['job_id']}")).json()["state"] == "queued"
    bare = str(proxied.client.base_url).removesuffix("/")
    answer = await proxied.client.get(bare)
    assert (answer.status_code, answer.headers["location"]) == (308, f"{bare}/")
    outside = await proxied.client.get(bare.removesuffix(PREFIX) + "/jobs")
    assert outside.headers["server"].startswith("nginx") and outside.status_code == 404


async def test_a_stream_and_a_long_poll_arrive_at_once(proxied: Api) -> None:
    job = await proxied.job()
    path = f"/jobs/{job['job_id']}/events"
    said: list[tuple[str, float]] = []
    asked = {"wait_ms": 30000, "since": job["created_at"]}
    waiting = asyncio.create_task(proxied.ask("GET", "/jobs:events", params=asked))
    async with proxied.client.stream("GET", path) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                said.append((line.removeprefix("event: "), time.monotonic()))
            if line.startswith("event: job") and len(said) == 1:
                assert not waiting.done()
                ended_at = time.monotonic()
                proxied.run("select jobq.cancel(%s)", job["job_id"])
    assert [event for event, _ in said] == ["job", "job", "end"]
    assert said[-1][1] - ended_at < 10, "the proxy does not wait for more"
    page = (await waiting).json()
    assert [event["job_id"] for event in page["items"]] == [job["job_id"]]
    assert time.monotonic() - ended_at < 20


async def test_a_person_signs_in_and_acts(proxied: Api) -> None:
    client = proxied.client
    key = proxied.key(["read", "operate"])["authorization"].removeprefix("Bearer ")
    del client.headers["authorization"]
    client.headers["origin"] = str(client.base_url.copy_with(path="")).rstrip("/")
    entered = await client.post("/console/enter", data={"key": key})
    assert entered.headers["location"] == f"{PREFIX}/console/"
    assert "secure" in entered.headers["set-cookie"].lower()
    page = (await client.get("/console/queues")).text
    links = re.findall(r'(?:href|src|action|data-live)="(/[^"]+)"', page)
    assert all(link.startswith(f"{PREFIX}/") for link in links)
    for link in re.findall(r'(?:href|src)="(/[^"]+)"', page):
        answer = await client.get(link.removeprefix(PREFIX))
        assert answer.status_code == 200, link
    [token] = set(re.findall(r'name="token" value="([^"]+)"', page))
    paused = await client.post(
        "/console/queues/pause", data={"token": token, "queue": "q", "reason": "why"}
    )
    assert paused.headers["location"] == f"{PREFIX}/console/queues"
    assert proxied.run("select queue from jobq.queue where paused_at is not null") == [
        ("q",)
    ]  # fmt: skip


async def test_each_client_has_its_own_tries(proxied: Api) -> None:
    """The proxy appends the address that it has seen; a client cannot invent another one."""
    proxied.client.headers["origin"] = str(proxied.client.base_url.copy_with(path="")).rstrip("/")
    tries = await asyncio.gather(*(
        proxied.client.post(
            "/console/enter", data={"user": "nobody", "password": "wrong"},
            headers={"x-forwarded-for": f"192.0.2.{n}"},
        )
        for n in range(5)
    ))  # fmt: skip
    assert 429 in [answer.status_code for answer in tries]
