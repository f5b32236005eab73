"""The HTTP API: recurring jobs, and what deliveries are made of."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from http_api import Api

pytest_plugins = ["http_fixtures"]

# Requests as the documents have them.
CRON = {
    "endpoint": "push-notification",
    "trigger": "CRON",
    "cron": "0 9 * * MON",
    "timezone": "Asia/Kolkata",
    "starts_at": "2026-03-16T00:00:00Z",
    "ends_at": None,
    "input": {
        "user_id": "u_abc",
        "title": "Weekly Summary",
        "body": "Here's your weekly report",
    },
}
UPDATE = {
    "cron": "0 10 * * MON",
    "timezone": "Asia/Kolkata",
    "input": {"report_type": "weekly", "include_charts": True},
}
SPEC = {
    "name": "send-welcome-email-input",
    "schema": {
        "type": "object",
        "properties": {
            "user_id": {"type": "string", "description": "Target user ID"},
            "order_id": {"type": "string", "description": "Associated order ID"},
        },
        "required": ["user_id"],
    },
}
CONFIG = {
    "name": "email-service",
    "values": {"api_base_url": "https://api.myapp.com", "sender": "noreply@myapp.com"},
}
HTTP = {
    "name": "send-welcome-email",
    "type": "HTTP",
    "payload_spec": "send-welcome-email-input",
    "config": "email-service",
    "spec": {
        "url": "{{config.api_base_url}}/emails/welcome",
        "method": "POST",
        "headers": {"Content-Type": "application/json"},
        "body_template": {
            "user_id": "{{input.user_id}}",
            "sender": "{{config.sender}}",
        },
        "timeout_ms": 5000,
        "expected_status_codes": [200, 201, 202, 204],
    },
    "retry_policy": {
        "max_attempts": 3,
        "backoff": "exponential",
        "initial_delay_ms": 1000,
        "max_delay_ms": 30000,
        "jitter": 0.25,
    },
}


JOBS: list[dict[str, Any]] = [
    {"name": "orders", "kind": "total", "payload": {"of": [5.10, 7]}, "timeout_ms": 5000},
    {"name": "balance", "kind": "balance", "after": ["orders"], "after_failure": "run"},
]
NIGHTLY = {
    "kind": "open_day",
    "trigger": "CRON",
    "cron": "0 3 * * *",
    "timezone": "UTC",
    "graph": {"jobs": JOBS},
}
FIRST, SECOND = JOBS
UNFIT_GRAPHS: dict[str, tuple[Any, int, str]] = {
    "a cycle": ([{**FIRST, "after": ["balance"]}, SECOND], 400, "GRAPH_CYCLE"),
    "an unknown name": ([{**FIRST, "after": ["refunds"]}], 404, "JOB_NOT_FOUND"),
    "a name twice": ([FIRST, FIRST], 400, "INVALID_REQUEST"),
    "the name of its own job": ([{**FIRST, "name": "open_day"}], 400, "INVALID_REQUEST"),
    "no jobs": ([], 400, "INVALID_REQUEST"),
    "a batch": ([{**FIRST, "batch_id": str(uuid4())}], 400, "INVALID_REQUEST"),
    "an unfit payload": ([{"name": "a", "kind": "strict"}], 422, "INPUT_VALIDATION_FAILED"),
}


@pytest.fixture(autouse=True)
def endpoints(api: Api) -> None:
    """What the requests name."""
    for name in ("push-notification", "other"):
        api.endpoint(name)


async def made(api: Api, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = await api.ask("POST", path, json=body)
    assert response.status_code == 201, response.text
    return dict(response.json())


async def test_a_cron_job_is_answered_as_the_document_has_it(api: Api) -> None:
    job = await made(api, "/jobs", CRON)
    for name in CRON.keys() - {"starts_at"}:
        assert job[name] == CRON[name], name
    assert job["starts_at"].startswith("2026-03-16T00:00:00")
    assert (job["status"], job["version"], job["created"]) == ("ACTIVE", 1, True)
    assert job["next_run_at"].endswith("T09:00:00+05:30")
    found = await api.ask("GET", f"/jobs/{job['job_id']}")
    assert found.json() == {k: v for k, v in job.items() if k != "created"}


async def test_a_name_gives_the_recurring_job_again(api: Api) -> None:
    first = await made(api, "/jobs", {**CRON, "name": "weekly"})
    second = await api.ask("POST", "/jobs", json={**CRON, "name": "weekly"})
    assert second.status_code == 200
    assert (second.json()["job_id"], second.json()["created"]) == (first["job_id"], False)
    other = await api.ask("POST", "/jobs", json={**CRON, "endpoint": "other", "name": "weekly"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "DEFINITION_EXISTS")


async def test_a_key_is_one_of_its_endpoint(api: Api) -> None:
    key = {"idempotency-key": "weekly"}
    bodies = [CRON, CRON, {**CRON, "endpoint": "other"}, {**CRON, "endpoint": "other"}]
    answers = [await api.ask("POST", "/jobs", json=body, headers=key) for body in bodies]
    assert [answer.status_code for answer in answers] == [201, 200, 201, 200]
    first, again, other, _ = (answer.json() for answer in answers)
    assert first["job_id"] == again["job_id"] != other["job_id"]
    assert other["endpoint"] == "other"
    for unfit in ("", "k" * 513):
        answer = await api.ask("POST", "/jobs", json=CRON, headers={"idempotency-key": unfit})
        assert answer.status_code == 400


async def test_a_kind_recurs_too_and_a_start_is_now_by_default(api: Api) -> None:
    body = {"kind": "report", "trigger": "CRON", "every_ms": 60_000, "timezone": "UTC"}
    job = await made(api, "/jobs", body)
    assert (job["kind"], job["endpoint_type"]) == ("report", None)
    assert job["starts_at"] == job["created_at"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/jobs/{}/explain"),
        ("GET", "/jobs/{}/attempts"),
        ("GET", "/jobs/{}/logs"),
        ("GET", "/executions/{}/logs"),
        ("POST", "/jobs/{}/redrive"),
    ],
)
async def test_what_only_a_run_has_is_not_asked_of_a_recurring_job(
    api: Api, method: str, path: str
) -> None:
    job = await made(api, "/jobs", {"kind": "report", "trigger": "CRON", "every_ms": 60_000})
    answer = await api.ask(method, path.format(job["job_id"]))
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (404, "JOB_IS_RECURRING")
    assert "/jobs/{job_id}/executions" in error["hint"]
    runs = await api.ask("GET", f"/jobs/{job['job_id']}/executions")
    assert (runs.status_code, runs.json()["items"]) == (200, [])


async def test_the_graph_of_a_recurring_job_runs_after_its_job(api: Api) -> None:
    job = await made(api, "/jobs", {**NIGHTLY, "name": "nightly"})
    assert job["graph"] == NIGHTLY["graph"]
    assert (await api.ask("GET", f"/jobs/{job['job_id']}")).json()["graph"] == NIGHTLY["graph"]
    [listed] = (await api.ask("GET", "/jobs?trigger=CRON")).json()["items"]
    assert listed["graph"] == NIGHTLY["graph"]
    api.run("update jobq_private.schedule set next_run_at = now() - interval '1 s'")
    api.run("select jobq_internal.tick()")
    for kind in ("open_day", "total", "balance"):
        claimed = await api.claim()
        assert claimed["kind"] == kind
        await api.ask("POST", f"/jobs/{claimed['job_id']}/attempts/1/complete")


async def test_an_update_changes_the_graph_or_takes_it_away(api: Api) -> None:
    old = await made(api, "/jobs", NIGHTLY)
    path = f"/jobs/{old['job_id']}"
    same = (await api.ask("PUT", path, json={"graph": old["graph"]})).json()
    assert same["job_id"] == old["job_id"]
    shorter = (await api.ask("PUT", path, json={"graph": {"jobs": [FIRST]}})).json()
    assert (shorter["version"], shorter["graph"]) == (2, {"jobs": [FIRST]})
    path = f"/jobs/{shorter['job_id']}"
    kept = (await api.ask("PUT", path, json={"cron": "0 4 * * *"})).json()
    assert kept["graph"] == {"jobs": [FIRST]}
    gone = await api.ask("PUT", f"/jobs/{kept['job_id']}", json={"graph": None})
    assert (gone.json()["version"], gone.json()["graph"]) == (4, None)


@pytest.mark.parametrize("case", UNFIT_GRAPHS)
async def test_a_graph_that_could_not_run_is_refused(api: Api, case: str) -> None:
    api.run("""select jobq.put_kind('strict', payload_schema => '{"required": ["to"]}')""")
    jobs, status, code = UNFIT_GRAPHS[case]
    old = await made(api, "/jobs", {**NIGHTLY, "graph": None})
    answers = [
        await api.ask("POST", "/jobs", json={**NIGHTLY, "graph": {"jobs": jobs}}),
        await api.ask("PUT", f"/jobs/{old['job_id']}", json={"graph": {"jobs": jobs}}),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text


async def test_a_graph_needs_the_job_that_it_runs_after(api: Api) -> None:
    """It stands beside one kind or one endpoint, and only a recurring job has one."""
    alone = {name: NIGHTLY[name] for name in NIGHTLY.keys() - {"kind"}}
    once = {"kind": "open_day", "graph": NIGHTLY["graph"]}
    for body in (alone, {**NIGHTLY, "endpoint": "other"}, once):
        refused = await api.ask("POST", "/jobs", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    made_of_endpoint = await made(api, "/jobs", {**CRON, "graph": NIGHTLY["graph"]})
    assert made_of_endpoint["graph"] == NIGHTLY["graph"]


async def test_previews_show_the_clocks_of_the_zone(api: Api) -> None:
    job = await made(api, "/jobs", CRON)
    slots = (await api.ask("GET", f"/jobs/{job['job_id']}/preview")).json()["slots"]
    assert slots[0] == job["next_run_at"]
    assert [slot[-14:] for slot in slots] == ["T09:00:00+05:30"[-14:]] * 5


async def test_an_update_makes_a_version_and_retires_the_old(api: Api) -> None:
    old = await made(api, "/jobs", CRON)
    response = await api.ask("PUT", f"/jobs/{old['job_id']}", json=UPDATE)
    new = response.json()
    assert response.status_code == 200
    assert {name: new[name] for name in UPDATE} == UPDATE
    assert (new["version"], new["previous_version_id"]) == (2, old["job_id"])
    assert new["starts_at"] == old["starts_at"]
    before = (await api.ask("GET", f"/jobs/{old['job_id']}")).json()
    assert (before["status"], before["replaced_by_id"]) == ("RETIRED", new["job_id"])
    versions = (await api.ask("GET", f"/jobs/{new['job_id']}/versions?limit=1")).json()
    assert [item["version"] for item in versions["items"]] == [2]
    cursor = versions["cursor"]
    rest = (await api.ask("GET", f"/jobs/{new['job_id']}/versions?cursor={cursor}")).json()
    assert ([item["version"] for item in rest["items"]], rest["cursor"]) == ([1], None)
    named = api.run(
        "select reason, starts_with(acting_for, 'API key ') from jobq.audit"
        " where action = 'put_schedule' order by 1"
    )
    assert named == [("version 1", True), ("version 2", True)]
    again = await api.ask("PUT", f"/jobs/{old['job_id']}", json=UPDATE)
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "SCHEDULE_RETIRED"
    assert "replaced_by_id of GET /jobs/{job_id}" in again.json()["error"]["hint"]
    heir = await api.ask("PUT", f"/jobs/{before['replaced_by_id']}", json={"cron": "0 11 * * MON"})
    assert (heir.status_code, heir.json()["version"]) == (200, 3)


async def test_cancel_retires_a_recurring_job_once(api: Api) -> None:
    job = await made(api, "/jobs", CRON)
    path = f"/jobs/{job['job_id']}/cancel"
    first = await api.ask("POST", path)
    assert (first.status_code, first.json()["outcome"]) == (200, "retired")
    assert (await api.ask("POST", path)).status_code == 409
    assert (await api.ask("GET", f"/jobs/{job['job_id']}")).json()["status"] == "RETIRED"


async def test_status_and_executions_tell_how_it_does(api: Api) -> None:
    job = await made(api, "/jobs", {**CRON, "cron": None, "every_ms": 60000})
    path = f"/jobs/{job['job_id']}"
    status = (await api.ask("GET", f"{path}/status")).json()
    assert (status["health"], status["trigger"]) == ("IDLE", "CRON")
    assert status["active_executions"] == {"pending": 0, "running": 0, "total": 0}
    api.run("update jobq_private.schedule set next_run_at = now() - interval '90 s'")
    api.run("select jobq_internal.tick()")
    claimed = await api.claim()
    await api.ask("POST", f"/jobs/{claimed['job_id']}/attempts/1/complete")
    status = (await api.ask("GET", f"{path}/status")).json()
    assert status["health"] == "HEALTHY"
    assert status["last_execution"]["execution_id"] == claimed["job_id"]
    assert status["last_execution"]["status"] == "SUCCESS"
    assert status["stats"]["last_24h"]["succeeded"] == 1
    items = (await api.ask("GET", f"{path}/executions")).json()["items"]
    assert claimed["job_id"] in {item["execution_id"] for item in items}
    assert {item["job_id"] for item in items} == {job["job_id"]}
    firing = (await api.ask("GET", f"/jobs/{claimed['job_id']}")).json()
    assert (firing["trigger"], firing["schedule_id"]) == ("CRON", job["job_id"])


async def test_recurring_jobs_are_listed_and_filtered(api: Api) -> None:
    first = await made(api, "/jobs", CRON)
    second = await made(api, "/jobs", {**CRON, "endpoint": "other"})
    await api.job()

    async def ids(query: str) -> list[str]:
        response = await api.ask("GET", f"/jobs?trigger=CRON{query}")
        assert response.status_code == 200, response.text
        return [item["job_id"] for item in response.json()["items"]]

    assert await ids("") == [second["job_id"], first["job_id"]]
    assert await ids("&endpoint=other") == [second["job_id"]]
    page = (await api.ask("GET", "/jobs?trigger=CRON&limit=1")).json()
    assert await ids(f"&cursor={page['cursor']}") == [first["job_id"]]
    await api.ask("POST", f"/jobs/{first['job_id']}/cancel")
    assert await ids("&status=ACTIVE") == [second["job_id"]]
    assert await ids("&status=RETIRED") == [first["job_id"]]
    mixed = await api.ask("GET", "/jobs?trigger=CRON&state=dead")
    assert mixed.status_code == 400


async def test_a_recurring_job_is_paused_and_resumed(api: Api) -> None:
    job = await made(api, "/jobs", CRON)
    path = f"/jobs/{job['job_id']}"
    await api.ask("POST", f"{path}/pause", json={"reason": "holidays"})
    found = (await api.ask("GET", path)).json()
    assert (found["status"], found["pause_reason"]) == ("PAUSED", "holidays")
    assert (await api.ask("POST", f"{path}/resume", json={"since": 1})).status_code == 400
    assert (await api.ask("GET", path)).json()["status"] == "PAUSED"
    await api.ask("POST", f"{path}/resume", json={})
    assert (await api.ask("GET", path)).json()["status"] == "ACTIVE"
    assert (await api.ask("POST", f"{path}/run", json={"since": 1})).status_code == 400
    assert (await api.ask("POST", f"{path}/run")).status_code == 201
    slots = (await api.ask("GET", f"{path}/preview")).json()["slots"]
    assert len(slots) == 5


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"cron": "often"}, 422, "INVALID_CRON"),
        ({"cron": "0 0 30 2 *"}, 422, "CRON_NEVER_FIRES"),
        ({"timezone": "Mars/Base"}, 422, "INVALID_TIME_ZONE"),
        ({"cron": None}, 400, "INVALID_REQUEST"),
        ({"run_at": "2126-01-01T00:00:00Z"}, 400, "INVALID_REQUEST"),
    ],
)
async def test_a_recurring_job_that_cannot_be_is_refused(
    api: Api, change: dict[str, Any], status: int, code: str
) -> None:
    response = await api.ask("POST", "/jobs", json={**CRON, **change})
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("part", ["status", "versions", "preview"])
async def test_only_recurring_jobs_have_some_parts(api: Api, part: str) -> None:
    for job_id in ((await api.job())["job_id"], str(uuid4()), "job_xyz"):
        response = await api.ask("GET", f"/jobs/{job_id}/{part}")
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "JOB_NOT_FOUND"


@pytest.mark.parametrize(
    ("path", "body", "changed"),
    [
        ("/payload-specs", SPEC, {"schema": {"type": "object"}}),
        ("/configs", CONFIG, {"values": {"a": 1}}),
    ],
)
async def test_a_definition_is_created_replaced_and_deleted(
    api: Api, path: str, body: dict[str, Any], changed: dict[str, Any]
) -> None:
    item = await made(api, path, body)
    assert {name: item[name] for name in body} == body
    assert item["created_at"] == item["updated_at"]
    one = f"{path}/{body['name']}"
    again = await api.ask("POST", path, json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "DEFINITION_EXISTS")
    assert (await api.ask("GET", one)).json() == item
    assert (await api.ask("GET", path)).json() == {"items": [item], "cursor": None}
    for full in ({}, {"name": body["name"]}):
        replaced = await api.ask("PUT", one, json={**changed, **full})
        assert replaced.status_code == 200
        assert {name: replaced.json()[name] for name in changed} == changed
    other = await api.ask("PUT", one, json={**changed, "name": "other"})
    assert other.status_code == 400
    gone = await api.ask("DELETE", one)
    assert (gone.status_code, gone.content) == (204, b"")
    for method in ("GET", "PUT", "DELETE"):
        missing = await api.ask(method, one, json=changed if method == "PUT" else None)
        assert missing.status_code == 404
        noun = "PAYLOAD_SPEC" if "spec" in path else "CONFIG"
        assert missing.json()["error"]["code"] == f"{noun}_NOT_FOUND"


async def test_a_secret_is_never_shown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBQ_SECRET_KEYS", raising=False)
    monkeypatch.delenv("JOBQ_SECRET_KEY_FILE", raising=False)
    body = {"name": "email_api_key", "value": "sk-live-abc123..."}
    refused = await api.ask("POST", "/secrets", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        503,
        "SECRET_KEY_MISSING",
    )
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    item = await made(api, "/secrets", body)
    assert item.keys() == {"name", "version", "created_at", "updated_at"}
    changed = await api.ask("PUT", "/secrets/email_api_key", json={"value": "sk-2"})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    answers = [item, changed.json()]
    for path in ("/secrets/email_api_key", "/secrets"):
        answers += [(await api.ask("GET", path)).json()]
    assert "sk-" not in str(answers)
    stored = str(api.run("select d::text from jobq_private.definition as d"))
    assert b"sk-2".hex() not in stored
    unused = await api.ask("DELETE", "/secrets/email_api_key")
    assert unused.status_code == 204


async def test_every_version_of_a_definition_is_listed(api: Api) -> None:
    await made(api, "/configs", CONFIG)
    changed = {"values": {"a": 1}}
    await api.ask("PUT", "/configs/email-service", json=changed)
    answer = await api.ask("GET", "/configs/email-service/versions")
    items = answer.json()["items"]
    assert [item["version"] for item in items] == [2, 1]
    assert items[1]["document"] == {"values": CONFIG["values"]}
    missing = await api.ask("GET", "/endpoints/nobody/versions")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "ENDPOINT_NOT_FOUND")


async def test_an_endpoint_delivers_jobs_of_its_kind(api: Api) -> None:
    for path, body in (("/payload-specs", SPEC), ("/configs", CONFIG), ("/endpoints", HTTP)):
        item = await made(api, path, body)
        assert {name: item[name] for name in body} == body
    job = await made(
        api,
        "/jobs",
        {
            "endpoint": "send-welcome-email",
            "trigger": "IMMEDIATE",
            "idempotency_key": "order-1234-welcome-email",
            "input": {"user_id": "u_abc", "order_id": "order-1234"},
        },
    )
    assert (job["endpoint_type"], job["max_attempts"]) == ("HTTP", 3)
    recurring = await made(api, "/jobs", {**CRON, "endpoint": "send-welcome-email"})
    assert recurring["endpoint_type"] == "HTTP"
    for path in ("/configs/email-service", "/payload-specs/send-welcome-email-input"):
        kept = await api.ask("DELETE", path)
        assert (kept.status_code, kept.json()["error"]["code"]) == (409, "CONFLICT")
    busy = await api.ask("DELETE", "/endpoints/send-welcome-email")
    assert (busy.status_code, busy.json()["error"]["code"]) == (409, "CONFLICT")
    unfit = await api.ask(
        "POST",
        "/jobs",
        json={
            "endpoint": "send-welcome-email",
            "trigger": "IMMEDIATE",
            "idempotency_key": "x",
            "input": {"user_id": 5},
        },
    )
    assert unfit.status_code == 422
    assert unfit.json()["error"]["code"] == "INPUT_VALIDATION_FAILED"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"payload_spec": "none"}, "INVALID_PAYLOAD_SPEC_REF"),
        ({"config": "none", "payload_spec": None}, "INVALID_CONFIG_REF"),
        ({"config": None, "payload_spec": None}, "TEMPLATE_RESOLUTION_FAILED"),
    ],
)
async def test_an_endpoint_refers_to_what_is_there(
    api: Api, change: dict[str, Any], code: str
) -> None:
    await made(api, "/configs", CONFIG)
    response = await api.ask("POST", "/endpoints", json={**HTTP, **change})
    assert (response.status_code, response.json()["error"]["code"]) == (422, code)


async def test_a_schema_that_is_none_is_refused(api: Api) -> None:
    body = {"name": "bad", "schema": {"type": "nothing"}}
    response = await api.ask("POST", "/payload-specs", json=body)
    assert response.status_code == 422
    assert response.json()["error"]["code"] == "INVALID_SCHEMA"


async def test_a_span_of_the_past_is_backfilled_once(api: Api) -> None:
    given = {n: v for n, v in CRON.items() if n not in ("endpoint", "input")} | {"kind": "report"}
    job_id = (await api.ask("POST", "/jobs", json=given)).json()["job_id"]
    path = f"/jobs/{job_id}/backfill"
    span = {"since": "2026-01-05T00:00:00+05:30", "until": "2026-01-13T00:00:00+05:30"}
    shown = (await api.ask("POST", path, json={**span, "dry_run": True})).json()["items"]
    assert [slot["job_id"] for slot in shown] == [None, None]
    items = (await api.ask("POST", path, json=span)).json()["items"]
    assert [slot["slot_at"] for slot in items] == [slot["slot_at"] for slot in shown]
    for slot in items:
        job = (await api.ask("GET", f"/jobs/{slot['job_id']}")).json()
        assert (job["kind"], job["schedule_id"]) == ("report", job_id)
    assert (await api.ask("POST", path, json=span)).json() == {"items": []}
    for change in ({"max_slots": 1}, {"until": "2999-01-01T00:00:00Z"}, {"since": span["until"]}):
        refused = await api.ask("POST", path, json={**span, **change})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    missing = await api.ask("POST", f"/jobs/{uuid4()}/backfill", json=span)
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "JOB_NOT_FOUND")
