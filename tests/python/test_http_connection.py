"""Connections of the HTTP server: trailers, requests that never arrive, too many at a time."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from http_api import SETTINGS, Api, served

from jobq_console import Options, Proxy, Site

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest


@asynccontextmanager
async def connected(api: Api) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a server on which bytes can be sent."""
    url = api.client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer_to(api: Api, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and return the status, the headers and the body of the answer."""
    async with asyncio.timeout(30), connected(api) as (reader, writer):
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(head[0].split()[1]), headers, body


def chunked(api: Api, path: str, body: bytes, trailer: str, **headers: str) -> bytes:
    """A request whose header comes behind its chunked body."""
    given = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return (
        (
            f"POST {path} HTTP/1.1\r\nHost: jobq\r\nTransfer-Encoding: chunked\r\n"
            f"Content-Type: application/json\r\n{given}\r\n{len(body):x}\r\n"
        ).encode()
        + body
        + f"\r\n0\r\n{trailer}\r\n\r\n".encode()
    )


async def test_a_key_in_a_trailer_lets_nobody_in(database: str) -> None:
    async with served(database) as api:
        key = api.key(["produce"])["authorization"]
        body = b'{"kind":"k"}'
        status, _, _ = await answer_to(api, chunked(api, "/jobs", body, f"Authorization: {key}"))
        assert status == 401
        status, _, said = await answer_to(
            api, chunked(api, "/jobs", body, "Idempotency-Key: once", authorization=key)
        )
        assert status == 201
        assert json.loads(said)["idempotency_key"] is None


async def test_no_trailer_names_a_user_or_an_address(database: str) -> None:
    proxy = Proxy("x-forwarded-user", ("read", "operate"))
    settings = replace(
        SETTINGS, console=Site.maker(Options(proxy=proxy)), proxy_from=("127.0.0.1/32",)
    )
    async with served(database, settings) as api:
        answers = [
            await answer_to(
                api,
                b"GET /console/ HTTP/1.1\r\nHost: jobq\r\nTransfer-Encoding: chunked\r\n"
                + header
                + b"\r\n0\r\n"
                + trailer
                + b"\r\n",
            )
            for header, trailer in (
                (b"X-Forwarded-User: ada\r\n", b""),
                (b"", b"X-Forwarded-User: ada\r\n"),
            )
        ]
    assert [status for status, _, _ in answers] == [200, 303]
    assert answers[1][1]["location"].startswith("/console/enter")


async def test_a_condition_in_a_trailer_does_not_hold(database: str) -> None:
    async with served(database) as api:
        assert (await api.ask("POST", "/configs", json={"name": "c", "values": {}})).is_success
        request = chunked(
            api, "/configs/c", b'{"values":{"a":1}}', 'If-Match: "7"',
            **{k: v for k, v in api.client.headers.items() if k == "authorization"},
        ).replace(b"POST", b"PUT", 1)  # fmt: skip
        assert (await answer_to(api, request))[0] == 200


async def test_a_request_that_does_not_arrive_is_given_up(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq_http.connection.HEADERS_SECONDS", 0.2)
    monkeypatch.setattr("jobq_http.connection.REQUEST_SECONDS", 0.4)
    async with served(database) as api, asyncio.timeout(30):
        async with connected(api) as (reader, _):
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        async with connected(api) as (reader, writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: j")
            assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        async with connected(api) as (reader, writer):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: j\r\nContent-Length: 9\r\n\r\n1")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
        async with connected(api) as (reader, writer):
            for _ in range(3):  # the next request has as long as the first
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: j\r\n\r\n")
                assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(len(b'{"status":"ok"}'))


async def test_half_sent_requests_leave_room_for_others(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(database, replace(SETTINGS, max_connections=20)) as api:
        url = api.client.base_url
        idle: list[Any] = [await asyncio.open_connection(url.host, url.port) for _ in range(60)]
        for _, writer in idle:
            writer.write(b"GET /jobs HTTP/1.1\r\nHost: j")
        assert (await api.ask("GET", "/healthz")).is_success
        assert (await api.ask("GET", "/jobs")).is_success
        for _, writer in idle:
            writer.close()
    [line] = [r.message for r in caplog.records if "connections are open" in r.message]
    assert line.startswith("20 ")


async def test_head_does_not_follow_a_job(database: str) -> None:
    """The connection is free for the next request, and no stream stays open."""
    async with served(database) as api:
        job = await api.job()
        async with asyncio.timeout(10), connected(api) as (reader, writer):
            for method, path in (("HEAD", f"/jobs/{job['job_id']}/events"), ("GET", "/healthz")):
                writer.write(
                    f"{method} {path} HTTP/1.1\r\nHost: jobq\r\n"
                    f"Authorization: {api.client.headers['authorization']}\r\n\r\n".encode()
                )
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200"), path
