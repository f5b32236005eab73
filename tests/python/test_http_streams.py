"""Streams of jobs as server-sent events: live, resumed, and through the console."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from http_api import Api

pytest_plugins = ["http_fixtures"]


@pytest.fixture
def job_id(live: Api) -> str:
    [(job_id,)] = live.run("select jobq.enqueue('agent')")
    live.run("select from jobq.claim('{default}', 'w')")
    return str(job_id)


def append(api: Api, job_id: str, *chunks: Any, attempt: int = 1, stream: str = "tokens") -> None:
    api.run("select jobq.append(%s, %s, %s, %s)", job_id, attempt, stream, json.dumps(chunks))


async def events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str, Any]]:
    """The id, the name and the data of each event."""
    event: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        if line:
            event[name] = value
            continue
        if "data" in event:
            yield event.get("id", ""), event["event"], json.loads(event["data"])
        event = {}


async def test_a_reader_gets_each_chunk_once_and_goes_on_where_it_was(
    live: Api, job_id: str
) -> None:
    path = f"/jobs/{job_id}/streams/tokens"
    append(live, job_id, "Hel", "lo")
    async with live.client.stream("GET", path) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = events(answer.aiter_lines())
        first, second = await anext(found), await anext(found)
        assert [e[2]["chunk"] for e in (first, second)] == ["Hel", "lo"]
        assert first[2]["generation"] == 1 and first[:2] == ("1-1", "chunk")
        append(live, job_id, {"n": 12345678901234567890})
        third = await asyncio.wait_for(anext(found), 20)
        assert third[2]["chunk"] == {"n": 12345678901234567890}
    # The connection was lost; a later attempt writes.
    live.run("select jobq.fail(%s, 1, 'lost', retry_in => '0 s')", job_id)
    live.run("select from jobq.claim('{default}', 'w')")
    append(live, job_id, "again", attempt=2)
    live.run("select jobq.complete(%s, 2)", job_id)
    async with live.client.stream("GET", path, headers={"last-event-id": second[0]}) as answer:
        rest = [event async for event in events(answer.aiter_lines())]
    assert [(e[1], e[2].get("generation"), e[2].get("chunk")) for e in rest] == [
        ("chunk", 1, {"n": 12345678901234567890}), ("chunk", 2, "again"), ("end", None, None),
    ]  # fmt: skip
    async with live.client.stream("GET", f"{path}?after=2-1") as answer:
        rest = [event async for event in events(answer.aiter_lines())]
    assert [e[1] for e in rest] == ["end"]


async def test_what_cannot_be_followed_is_refused(live: Api, job_id: str) -> None:
    assert (await live.ask("GET", f"/jobs/{uuid4()}/streams/a")).status_code == 404
    for after in ("x", "1", "1-2-3"):
        path = f"/jobs/{job_id}/streams/a"
        assert (await live.ask("GET", f"{path}?after={after}")).status_code == 400
        headers = {"last-event-id": after}
        assert (await live.ask("GET", path, headers=headers)).status_code == 400
    nobody = {"authorization": ""}
    assert (await live.ask("GET", f"/jobs/{job_id}/streams/a", headers=nobody)).status_code == 401


async def test_the_console_follows_only_the_streams_that_were_written_last(
    live: Api, job_id: str
) -> None:
    """A browser opens six connections to a server, and the page needs some itself."""
    for name in "abcd":
        append(live, job_id, f"of {name}", stream=name)
    append(live, job_id, "more", stream="a")
    base = str(live.client.base_url)
    key = live.key(["read"])["authorization"].removeprefix("Bearer ")
    entered = await live.ask("POST", "/console/enter", data={"key": key}, headers={"origin": base})
    cookie = {"cookie": entered.headers["set-cookie"].split(";")[0]}
    page = (await live.ask("GET", f"/console/jobs/{job_id}", headers=cookie)).text
    assert re.findall(r'data-stream="[^"]*name=(\w)', page) == ["a", "d"]
    assert all(f"of {name}" in page for name in "abcd")


async def test_the_console_shows_a_stream_and_follows_it(live: Api, job_id: str) -> None:
    append(live, job_id, "<b>Hel", "lo</b>")
    base = str(live.client.base_url)
    key = live.key(["read"])["authorization"].removeprefix("Bearer ")
    entered = await live.ask("POST", "/console/enter", data={"key": key}, headers={"origin": base})
    cookie = {"cookie": entered.headers["set-cookie"].split(";")[0]}
    page = (await live.ask("GET", f"/console/jobs/{job_id}", headers=cookie)).text
    assert "&lt;b&gt;Hello&lt;/b&gt;" in page
    path = f"/console/jobs/{job_id}/stream?name=tokens&amp;after=1-2"
    assert f'data-stream="{path}"' in page
    append(live, job_id, "!")
    live.run("select jobq.complete(%s, 1)", job_id)
    path = path.replace("&amp;", "&")
    async with live.client.stream("GET", path, headers=cookie) as answer:
        rest = [event async for event in events(answer.aiter_lines())]
    assert [(e[1], e[2].get("chunk")) for e in rest] == [("chunk", "!"), ("end", None)]
