"""The HTTP API: query strings, cursors and paths that are not meant, and how triggers are told."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import pytest

from jobq_http.app import OPERATIONS

if TYPE_CHECKING:
    from http_api import Api

pytest_plugins = ["http_fixtures"]

LISTS = (
    "/jobs",
    "/jobs?kind=a",
    "/jobs?state=queued",
    "/jobs?trigger=CRON",
    "/glance/jobs",
    "/queues",
    "/configs",
    "/payload-specs",
    "/audit",
)


async def test_every_route_refuses_a_parameter_that_it_does_not_know(api: Api) -> None:
    api.run("select jobq.put_queue('name')")
    for operation in OPERATIONS:
        if not operation.scopes:
            continue
        path = re.sub(
            r"{(\w+)}",
            lambda m: "1" if m[1] == "attempt" else str(uuid4()) if "_id" in m[1] else "name",
            operation.path,
        )
        answer = await api.ask(operation.method, f"{path}?zzz=1")
        assert answer.status_code == 400, (operation.method, path, answer.text)
        assert "zzz" in answer.json()["error"]["detail"]


async def test_every_number_and_flag_of_a_query_is_read(api: Api) -> None:
    specification = (await api.ask("GET", "/openapi.json")).json()
    asked = 0
    for path, methods in specification["paths"].items():
        place = re.sub(r"{(\w+)}", lambda m: str(uuid4()) if "_id" in m[1] else "name", path)
        for each in methods.get("get", {}).get("parameters", ()):
            schema = each.get("schema", {})
            if each.get("in") != "query" or schema.get("type") not in {"integer", "boolean"}:
                continue
            value = schema.get("minimum", "true")
            answer = await api.ask("GET", place, params={each["name"]: value})
            assert answer.status_code != 400, (path, each["name"], answer.text)
            asked += 1
    assert asked > 20


async def test_a_cursor_leads_on_from_the_longest_key(api: Api) -> None:
    for key in ("\x01" * 1024, "z" * 1024):
        api.run("select jobq.put_limit(%s, %s, 2)", "q" * 128, key)
    first = (await api.ask("GET", "/limits?limit=1")).json()
    rest = await api.ask("GET", f"/limits?limit=1&cursor={first['cursor']}")
    assert rest.status_code == 200, rest.text
    assert [item["concurrency_key"] for item in rest.json()["items"]] == ["z" * 1024]


async def test_a_cursor_leads_on_in_its_own_list_alone(api: Api) -> None:
    api.run("select jobq.enqueue('a') from generate_series(1, 3)")
    api.run("select jobq.create_schedule(n, 'a', every => '1 h') from unnest('{x,y}'::text[]) n")
    api.run("select jobq.put_config(n, '{}') from unnest('{x,y}'::text[]) n")
    api.run("select jobq.put_payload_spec(n, '{}') from unnest('{x,y}'::text[]) n")
    api.run("select jobq.put_queue(rpad(n, 128, 'é')) from unnest('{x,y}'::text[]) n")
    for queue in "xy":
        await api.ask("POST", f"/queues/{queue}/pause")

    def with_(path: str, more: str) -> str:
        return f"{path}{'&' if '?' in path else '?'}limit=1{more}"

    cursors = {path: (await api.ask("GET", with_(path, ""))).json()["cursor"] for path in LISTS}
    assert all(cursors.values()), cursors
    for path in LISTS:
        for of, cursor in cursors.items():
            answer = await api.ask("GET", with_(path, f"&cursor={cursor}"))
            assert answer.status_code == (200 if of == path else 400), (path, of, answer.text)


async def test_the_newest_lines_of_a_log_are_asked_for(api: Api) -> None:
    job = await api.job(kind="a")
    api.run("select jobq.claim_job(%s, 'w')", job["job_id"])
    api.run(
        "select jobq.log(%s, 1, 'INFO', n::text) from generate_series(1, 3) as n", job["job_id"]
    )
    lines = f"/jobs/{job['job_id']}/logs?newest=true&limit=2"
    page = (await api.ask("GET", lines)).json()
    assert {line["message"] for line in page["items"]} == {"2", "3"}
    rest = (await api.ask("GET", f"{lines}&cursor={page['cursor']}")).json()
    assert [line["message"] for line in rest["items"]] == ["1"]


@pytest.mark.parametrize("path", ["/configs/", "/jobs/", "/queues/", "/queues/a/"])
async def test_a_path_with_a_slash_behind_it_is_no_path(api: Api, path: str) -> None:
    answer = await api.ask("GET", path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "NOT_FOUND")


async def test_names_of_kinds_and_queues_may_have_slashes(api: Api) -> None:
    await api.ask("POST", "/kinds", json={"kind": "mail/é\n"})
    assert (await api.ask("DELETE", "/kinds/mail%2F%C3%A9%0A")).status_code == 204
    assert (await api.ask("GET", "/kinds")).json()["items"] == []
    for verb, is_paused in (("pause", True), ("resume", False)):
        answer = await api.ask("POST", f"/queues/mail%2Feu/{verb}")
        assert answer.json() == {"queue": "mail/eu", "is_paused": is_paused}
    assert (await api.ask("GET", "/queues/mail%2Feu")).json()["queue"] == "mail/eu"


async def test_who_hangs_up_in_a_request_is_no_mistake_of_the_server(live: Api) -> None:
    url = httpx.URL(str(live.client.base_url))
    _, writer = await asyncio.open_connection(url.host, url.port)
    key = live.client.headers["authorization"]
    head = f"POST /jobs HTTP/1.1\r\nHost: a\r\nAuthorization: {key}\r\nContent-Length: 99\r\n\r\n{{"
    writer.write(head.encode())
    await writer.drain()
    writer.close()
    told = re.compile(r'_count{[^}]*path="/jobs"[^}]*status="499"')
    async with asyncio.timeout(60):
        while not told.search((await live.ask("GET", "/metrics")).text):
            await asyncio.sleep(0.05)


async def test_a_recurring_job_takes_its_key_in_the_body_or_the_header(api: Api) -> None:
    body = {"kind": "a", "trigger": "CRON", "every_ms": 3_600_000}
    first = await api.ask("POST", "/jobs", json={**body, "idempotency_key": "k"})
    assert first.status_code == 201, first.text
    again = await api.ask("POST", "/jobs", json=body, headers={"idempotency-key": "k"})
    assert (again.status_code, again.json()["job_id"]) == (200, first.json()["job_id"])
    for more in ({"name": "n"}, {"idempotency_key": "other"}):
        both = await api.ask(
            "POST", "/jobs", json={**body, **more}, headers={"idempotency-key": "k"}
        )
        assert both.status_code == 400, both.text
    cron = {"kind": "a", "trigger": "CRON", "cron": "0 9 * * *"}
    assert "timezone" in (await api.ask("POST", "/jobs", json=cron)).text
    assert (await api.ask("POST", "/jobs", json=cron)).status_code == 400


async def test_a_job_of_a_paused_endpoint_keeps_its_trigger(api: Api) -> None:
    api.endpoint("e")
    body = {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k"}
    lying = await api.ask("POST", "/jobs", json={**body, "metadata": {"trigger": "DELAYED"}})
    assert lying.status_code == 400
    job_id = (await api.ask("POST", "/jobs", json=body)).json()["job_id"]
    api.run("select jobq.pause_endpoint('e')")
    assert api.run("select job_id from jobq.claim('{default}', 'w')") == []
    assert api.run("select run_at > now() from jobq.job") == [(True,)]
    assert (await api.ask("GET", f"/jobs/{job_id}")).json()["trigger"] == "IMMEDIATE"
    listed = (await api.ask("GET", "/jobs?trigger=IMMEDIATE")).json()["items"]
    assert [job["job_id"] for job in listed] == [job_id]
