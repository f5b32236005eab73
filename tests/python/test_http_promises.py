"""What the HTTP API promises beside the meaning of its operations: limits, lists, names, time."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from http_api import Api, served

if TYPE_CHECKING:
    import httpx


pytest_plugins = ["http_fixtures"]


def code_of(response: httpx.Response) -> str:
    return str(response.json()["error"]["code"])


async def test_the_databases_limit_of_a_payload_is_the_only_one(api: Api) -> None:
    large = {"kind": "a", "payload": "x" * 2**21}
    refused = await api.ask("POST", "/jobs", json=large)
    assert (refused.status_code, code_of(refused)) == (413, "MESSAGE_TOO_LARGE")
    api.run("select jobq.configure(max_payload_bytes => 4194304, max_payload_depth => 100)")
    async with asyncio.timeout(30):
        while (answer := await api.ask("POST", "/jobs", json=large)).status_code == 413:
            await asyncio.sleep(0.05)
    assert answer.status_code == 201
    claimed = await api.claim()
    attempt = f"/jobs/{claimed['job_id']}/attempts/1"
    deep = b'{"result":' + b"[" * 90 + b"]" * 90 + b"}"
    assert (await api.ask("POST", f"{attempt}/progress", json={"progress": 1})).is_success
    assert (await api.ask("POST", f"{attempt}/complete", content=deep)).is_success
    api.run("select jobq.configure(max_payload_bytes => 1048576)")
    assert (await api.ask("POST", "/jobs", json=large)).status_code == 413


async def test_a_compressed_body_is_refused_by_its_encoding(api: Api) -> None:
    body = gzip.compress(b'{"kind": "a"}')
    refused = await api.ask("POST", "/jobs", content=body, headers={"content-encoding": "gzip"})
    assert (refused.status_code, code_of(refused)) == (415, "ENCODING_UNSUPPORTED")
    assert refused.headers["accept-encoding"] == "identity"
    plain = {"content-encoding": "Identity"}
    assert (await api.ask("POST", "/jobs", json={"kind": "a"}, headers=plain)).status_code == 201


@pytest.mark.parametrize("path", ["/jobs/{id}/events", "/jobs:events?wait_ms=30000"])
async def test_no_answer_outlives_its_key(
    database: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq_http.auth.MEMORY", 0.1)
    async with served(database) as api:
        job = await api.job(run_at="2126-01-01T00:00:00Z")
        headers = api.key(["read"])

        async def read() -> str:
            address = path.format(id=job["job_id"])
            async with api.client.stream("GET", address, headers=headers) as response:
                return "".join([part async for part in response.aiter_text()])

        reading = asyncio.create_task(read())
        asked = "select 1 from pg_stat_activity where query ~ 'show_job|listen_events'"
        while len(api.run(f"{asked} and pid <> pg_backend_pid()")) < 1:
            await asyncio.sleep(0.01)
        api.run(
            "select jobq_http.revoke_api_key(name) from jobq_http.list_api_keys()"
            " where name = 'test-1'"
        )
        async with asyncio.timeout(15):
            said = await reading
    assert "UNAUTHORIZED" in said or ("event: job" in said and "event: end" not in said)


async def test_a_heartbeat_says_which_leases_others_hold_up(api: Api) -> None:
    await api.job()
    held = await api.claim()
    jobs = [{"job_id": held["job_id"], "attempt": held["attempt"]}]
    with psycopg.connect(api.url) as other:
        other.execute("select from jobq_private.job for update")
        answer = await api.ask("POST", "/workers/w/heartbeat", json={"jobs": jobs})
    [beat] = answer.json()["jobs"]
    schemas = (await api.ask("GET", "/openapi.json")).json()["components"]["schemas"]
    assert beat["outcome"] == "held"
    assert beat["outcome"] in schemas["Beat"]["properties"]["outcome"]["enum"]


async def test_a_number_that_is_too_long_is_refused(api: Api) -> None:
    job = await api.job()
    for path in (
        f"/jobs/{job['job_id']}/attempts/{'9' * 4301}/complete",
        f"/jobs/{job['job_id']}/attempts/{'9' * 10}/complete",
    ):
        assert (await api.ask("POST", path, json={})).status_code == 400
    assert (await api.ask("GET", f"/jobs?limit={'9' * 4301}")).status_code == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/graphs", {"jobs": [{"name": "a", "kind": "k"}]}),
        ("/batches", {}),
        ("/jobs:batch", {"jobs": [{"kind": "k"}]}),
    ],
)
async def test_an_idempotency_key_is_heeded_or_refused(
    api: Api, path: str, body: dict[str, Any]
) -> None:
    answer = await api.ask("POST", path, json=body, headers={"idempotency-key": "once"})
    assert (answer.status_code, code_of(answer)) == (400, "INVALID_REQUEST")
    assert api.run("select count(*) from jobq.job") == [(0,)]
    described = (await api.ask("GET", "/openapi.json")).json()["paths"][path]["post"]
    assert "`Idempotency-Key` is refused" in described["description"]
    named = [p["name"] for p in described["parameters"] if "name" in p]
    assert "Idempotency-Key" not in named


async def test_a_slash_in_a_name_is_no_part_of_the_path(api: Api) -> None:
    assert (await api.ask("POST", "/queues/x%2Fpause")).status_code == 405
    assert api.run("select count(*) from jobq.audit where action = 'pause_queue'") == [(0,)]
    assert (await api.ask("POST", "/queues/x%2Fpause/pause")).json() == {
        "queue": "x/pause",
        "is_paused": True,
    }
    for name, path in (
        ("a/", "a%2F"),
        ("50%", "50%25"),
        ("50%2F", "50%252F"),
        ("ä b", "%C3%A4%20b"),
    ):
        assert (await api.ask("GET", f"/queues/{path}")).json()["queue"] == name
    assert (await api.ask("GET", "/jobs%3Aevents")).is_success


async def test_allow_names_head_too(api: Api) -> None:
    refused = await api.ask("DELETE", "/queues/q")
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD"}


async def test_what_is_known_is_not_sent_again(api: Api) -> None:
    created = await api.ask("POST", "/configs", json={"name": "c", "values": {"a": 1}})
    known = {"if-none-match": f'"0", W/{created.headers["etag"]}'}
    same = await api.ask("GET", "/configs/c", headers=known)
    assert (same.status_code, same.content) == (304, b"")
    assert same.headers["etag"] == created.headers["etag"]
    changed = await api.ask("PUT", "/configs/c", json={"values": {"a": 2}}, headers=known)
    assert changed.status_code == 200
    assert (await api.ask("GET", "/configs/c", headers=known)).status_code == 200


async def test_every_list_has_pages(api: Api) -> None:
    api.run("select jobq.put_kind('k' || n) from generate_series(1, 5) as n")
    api.run("select jobq.put_limit('q' || mod(n, 2), n::text, 1) from generate_series(1, 5) as n")
    api.run("select from generate_series(1, 5) as n, jobq.heartbeat('w' || n, '{}', '{}', '{q}')")
    for n in range(5):
        given = {"name": "c", "values": {"n": n}}
        method, path = ("PUT", "/configs/c") if n else ("POST", "/configs")
        assert (await api.ask(method, path, json=given)).is_success
    await api.job()
    held = await api.claim()
    attempt = f"/jobs/{held['job_id']}/attempts/1"
    for n in range(5):
        step = {"name": f"s{n}", "value": n}
        assert (await api.ask("POST", f"{attempt}/steps", json=step)).is_success
    for path, wanted in (
        ("/kinds", [("kind", f"k{n}") for n in range(1, 6)]),
        ("/limits", [("concurrency_key", n) for n in "24135"]),
        ("/workers", [("worker", f"w{n}") for n in range(1, 6)]),
        ("/configs/c/versions", [("version", n) for n in (5, 4, 3, 2, 1)]),
        (f"/jobs/{held['job_id']}/steps", [("name", f"s{n}") for n in range(5)]),
    ):
        found, sizes, cursor = [], [], None
        while True:
            query = {"limit": 2, **({"cursor": cursor} if cursor else {})}
            page = (await api.ask("GET", path, params=query)).json()
            found += page["items"]
            sizes.append(len(page["items"]))
            if (cursor := page["cursor"]) is None:
                break
        name = wanted[0][0]
        assert [(name, item[name]) for item in found if item[name] != "w"] == wanted, path
        assert max(sizes) == 2, path


async def test_a_job_that_is_given_back_keeps_its_trigger(api: Api) -> None:
    job = await api.job()
    assert job["trigger"] == "IMMEDIATE"
    held = await api.claim()
    back = {"run_at": "2126-01-01T00:00:00Z"}
    path = f"/jobs/{held['job_id']}/attempts/1/release"
    assert (await api.ask("POST", path, json=back)).is_success
    shown = (await api.ask("GET", f"/jobs/{held['job_id']}")).json()
    assert (shown["trigger"], shown["run_at"][:4]) == ("IMMEDIATE", "2126")
    later = await api.job(run_at="2126-01-01T00:00:00Z")
    assert later["trigger"] == "DELAYED"


async def test_an_empty_cron_is_no_cron(api: Api) -> None:
    given = {"kind": "k", "trigger": "CRON", "cron": "", "timezone": "UTC"}
    answer = await api.ask("POST", "/jobs", json=given)
    assert (answer.status_code, code_of(answer)) == (422, "INVALID_CRON")


async def test_an_execution_names_its_region(api: Api) -> None:
    job = await api.job()
    shown = (await api.ask("GET", f"/executions/{job['job_id']}")).json()
    assert shown["region"] == job["region"]
    assert json.dumps(shown)
