"""The HTTP API: what the console shows is there for every client, as its specification says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

if TYPE_CHECKING:
    from http_api import Api

pytest_plugins = ["http_fixtures"]

SETUP = """
select jobq.enqueue('bill', queue => 'money', max_attempts => 1, metadata => '{"tenant": "acme"}')
from generate_series(1, 3);
select jobq.fail(c.job_id, c.attempt, 'no funds', 'NO_FUNDS')
from jobq.claim('{money}', 'till', 1) as c;
select from jobq.claim('{money}', 'till', 1);
select jobq.heartbeat('till', '{}', '{}', '{money}');
select jobq.pause_queue('money', 'audit');
insert into jobq_private.history
values (1, date_trunc('minute', now()) - interval '2 min', 'money', 'bill', 3, 0, 0, 1, 0);
insert into jobq_private.latency
select 1, date_trunc('minute', now()) - interval '2 min', array_fill(1::bigint, array[50]);
"""


async def answered(api: Api, path: str, address: str | None = None) -> Any:
    """Return what a path answers, once it is found to be as the specification says."""
    response = await api.ask("GET", address or path)
    assert response.status_code == 200, response.text
    whole = (await api.ask("GET", "/openapi.json")).json()
    content = whole["paths"][path]["get"]["responses"]["200"]["content"]
    schema = content["application/json"]["schema"]
    jsonschema.validate(response.json(), {**schema, "components": whole["components"]})
    return response.json()


async def test_what_the_console_shows_is_there_for_every_client(api: Api) -> None:
    api.run(SETUP)
    [queue] = (await answered(api, "/glance/queues"))["items"]
    assert (queue["queue"], queue["queued"], queue["running"], queue["dead"]) == ("money", 1, 1, 1)
    totals = await answered(api, "/glance/totals")
    assert {k: v for k, v in totals.items() if v and k != "oldest_runnable_ms"} == {
        "queued": 1, "running": 1, "dead": 1, "queues": 1, "paused": 1
    }  # fmt: skip
    assert queue["goes_on"] == [] and queue["is_paused"] and queue["pause_reason"] == "audit"
    api.run("select jobq.enqueue('k', queue => q) from unnest('{a,z}'::text[]) as q")
    first = await answered(api, "/glance/queues", "/glance/queues?limit=2")
    rest = await answered(api, "/glance/queues", f"/glance/queues?limit=2&cursor={first['cursor']}")
    pages = [[item["queue"] for item in page["items"]] for page in (first, rest)]
    assert pages == [["a", "money"], ["z"]] and rest["cursor"] is None
    [group] = (await answered(api, "/glance/dead"))["groups"]
    assert (group["error_code"], group["metadata"]) == ("NO_FUNDS", {"tenant": "acme"})
    [worker] = (await answered(api, "/workers"))["items"]
    assert worker["kinds"] == {"bill": 1} and worker["oldest"]["kind"] == "bill"
    api.run("select jobq.hold_key('money', 'acme', 'infinity', 'unpaid')")
    path = "/queues/{queue}"
    one = await answered(api, path, "/queues/money?concurrency_key=acme")
    assert one["holds"][0]["reason"] == "unpaid" and one["key"]["is_held"]
    assert (await answered(api, path, "/queues/none"))["key"] is None
    history = await answered(api, "/history", "/history?span=hour&by=kind")
    assert [counts[1:3] for counts in history["counts"]] == [["bill", 3]] and history["latency"]
    wide = await answered(api, "/history", "/history?span=hour&max_buckets=6")
    assert (wide["width_ms"], [c[2] for c in wide["counts"]]) == (600_000, [3])
    [deed] = (await answered(api, "/audit", "/audit?subject=money"))["items"]
    assert (deed["action"], deed["reason"]) == ("pause_queue", "audit")
    holds = await answered(api, "/settings", "/settings?kind=bill&queue=money")
    assert (holds["queue"], holds["max_attempts"], holds["retention"]) == ("money", 5, "30 days")


async def test_jobs_are_found_by_all_that_the_console_filters_by(api: Api) -> None:
    api.run(SETUP)
    for query, many in {
        "state=dead,running": 2,
        "error_code=NO_FUNDS": 1,
        "worker=till&state=running": 1,
        'metadata={"tenant":"acme"}&kind=bill&queue=money': 3,
        "created_after=2126-01-01T00:00:00Z": 0,
    }.items():
        found = await answered(api, "/glance/jobs", f"/glance/jobs?{query}")
        assert found["matched"] == len(found["items"]) == many, query
    first = await answered(api, "/glance/jobs", "/glance/jobs?limit=2")
    second = await answered(api, "/glance/jobs", f"/glance/jobs?limit=2&cursor={first['cursor']}")
    seen = [job["job_id"] for page in (first, second) for job in page["items"]]
    assert len(set(seen)) == 3 and second["cursor"] is None


@pytest.mark.parametrize(
    "path", ["/glance/jobs?state=lost", "/glance/jobs?metadata=x", "/history?span=year"]
)
async def test_a_filter_that_is_none_is_refused(api: Api, path: str) -> None:
    assert (await api.ask("GET", path)).status_code == 400


async def test_the_audit_is_for_operators(api: Api) -> None:
    reader = api.key(["read"])
    assert (await api.ask("GET", "/audit", headers=reader)).status_code == 403
    assert (await api.ask("GET", "/history", headers=reader)).status_code == 200
