"""The HTTP API: jobs, executions, queues and workers."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from http_api import Api

pytest_plugins = ["http_fixtures"]

# Requests as the documents have them.
IMMEDIATE = {
    "endpoint": "send-welcome-email",
    "trigger": "IMMEDIATE",
    "idempotency_key": "order-1234-welcome-email",
    "input": {"user_id": "u_abc", "order_id": "order-1234"},
}
DELAYED = {
    "endpoint": "send-welcome-email",
    "trigger": "DELAYED",
    "idempotency_key": "order-1234-reminder",
    "run_at": "2126-03-15T18:00:00Z",
    "input": {"user_id": "u_abc", "order_id": "order-1234"},
}


@pytest.fixture(autouse=True)
def endpoints(api: Api) -> None:
    """What the requests name."""
    for name in ("send-welcome-email",):
        api.endpoint(name)


async def test_a_key_in_the_header_gives_the_job_again(api: Api) -> None:
    body = {"kind": "send_email", "payload": {"to": "ada@example.org"}}
    key = {"idempotency-key": "welcome-ada"}
    first = await api.ask("POST", "/jobs", json=body, headers=key)
    second = await api.ask("POST", "/jobs", json=body, headers=key)
    assert (first.status_code, first.json()["created"]) == (201, True)
    assert (second.status_code, second.json()["created"]) == (200, False)
    assert second.json()["job_id"] == first.json()["job_id"]
    assert first.json()["idempotency_key"] == "welcome-ada"


async def test_two_headers_with_keys_that_differ_are_refused(api: Api) -> None:
    async def answered(*keys: str) -> int:
        headers = [("idempotency-key", key) for key in keys]
        return (await api.ask("POST", "/jobs", json={"kind": "a"}, headers=headers)).status_code

    assert await answered("x", "y") == 400
    assert await answered("x", "x") == 201


async def test_a_key_is_utf_8_in_the_header_as_in_the_body(api: Api) -> None:
    first = await api.job(idempotency_key="größe")
    second = await api.ask(
        "POST",
        "/jobs",
        json={"kind": "test"},
        headers={b"idempotency-key": "größe".encode()},
    )
    assert second.json()["job_id"] == first["job_id"]


async def test_two_keys_that_differ_are_refused(api: Api) -> None:
    response = await api.ask(
        "POST",
        "/jobs",
        json={"kind": "a", "idempotency_key": "x"},
        headers={"idempotency-key": "y"},
    )
    assert response.status_code == 400
    assert api.run("select count(*) from jobq.job") == [(0,)]


async def test_an_immediate_job_is_answered_as_the_document_has_it(api: Api) -> None:
    response = await api.ask("POST", "/jobs", json=IMMEDIATE)
    job = response.json()
    assert response.status_code == 201
    wanted = {
        "endpoint": "send-welcome-email",
        "trigger": "IMMEDIATE",
        "status": "ACTIVE",
        "version": 1,
        "idempotency_key": "order-1234-welcome-email",
        "input": IMMEDIATE["input"],
    }
    assert {name: job[name] for name in wanted} == wanted
    assert job["execution"] == {
        "execution_id": job["job_id"],
        "status": "QUEUED",
        "created_at": job["created_at"],
    }
    again = await api.ask("POST", "/jobs", json=IMMEDIATE)
    assert (again.status_code, again.json()["job_id"]) == (200, job["job_id"])


async def test_a_delayed_job_is_pending_and_stays_delayed_through_retries(
    api: Api,
) -> None:
    job = (await api.ask("POST", "/jobs", json=DELAYED)).json()
    assert (job["trigger"], job["execution"]["status"]) == ("DELAYED", "PENDING")
    assert job["run_at"].startswith("2126-03-15T18:00:00")
    api.run("update jobq_private.job set run_at = now()")
    claimed = await api.claim()
    await api.ask(
        "POST",
        f"/jobs/{claimed['job_id']}/attempts/1/fail",
        json={"error": "later", "retry_in_ms": 0},
    )
    job = (await api.ask("GET", f"/jobs/{job['job_id']}")).json()
    assert (job["trigger"], job["execution"]["status"]) == ("DELAYED", "RETRYING")


@pytest.mark.parametrize(
    "change",
    [
        {"idempotency_key": None},
        {"run_at": "2126-01-01T00:00:00Z"},
        {"trigger": "DELAYED"},
        {"trigger": "SOMETIMES"},
        {"kind": "both"},
    ],
)
async def test_a_trigger_that_does_not_fit_is_refused(api: Api, change: dict[str, Any]) -> None:
    response = await api.ask("POST", "/jobs", json={**IMMEDIATE, **change})
    assert response.status_code == 400, response.text
    assert response.json()["error"]["code"] == "INVALID_REQUEST"


async def test_every_option_of_a_job_is_kept(api: Api) -> None:
    given = {
        "queue": "mail",
        "priority": 7,
        "max_attempts": 2,
        "timeout_ms": 1500,
        "dedup_key": "ada",
        "metadata": {"order": "1234"},
        "run_at": "2126-01-01T00:00:00+00:00",
    }
    job = await api.job(**given)
    assert {name: job[name] for name in given} == given


async def test_numbers_keep_every_digit(api: Api) -> None:
    body = b'{"kind":"a","payload":{"n":12345678901234567890.10}}'
    created = await api.ask("POST", "/jobs", content=body)
    found = await api.ask("GET", f"/jobs/{created.json()['job_id']}")
    assert b"12345678901234567890.10" in found.content
    claimed = await api.ask("POST", "/workers/w/claim")
    assert b"12345678901234567890.10" in claimed.content


async def test_a_batch_is_all_or_none(api: Api) -> None:
    good = {"kind": "a", "idempotency_key": "k"}
    refused = await api.ask(
        "POST", "/jobs:batch", json={"jobs": [good, {"kind": "b", "priority": 99999}]}
    )
    assert refused.status_code == 400
    assert api.run("select count(*) from jobq.job") == [(0,)]
    first = await api.ask("POST", "/jobs:batch", json={"jobs": [good, {"kind": "b"}]})
    assert first.status_code == 201
    assert [item["created"] for item in first.json()["items"]] == [True, True]
    keyed = await api.ask(
        "POST", "/jobs:batch", json={"jobs": [good]}, headers={"idempotency-key": "k"}
    )
    assert keyed.status_code == 400, "each job has its own key"
    turns = {"jobs": [{"kind": "k", "concurrency_key": "c"}]}
    assert (await api.ask("POST", "/jobs:batch", json=turns)).status_code == 201
    assert api.run("select concurrency_key from jobq.job where kind = 'k'") == [("c",)]
    again = await api.ask("POST", "/jobs:batch", json={"jobs": [good]})
    assert again.status_code == 200
    assert again.json()["items"] == [
        {"job_id": first.json()["items"][0]["job_id"], "created": False}
    ]


async def test_cancel_answers_200_202_and_409(api: Api) -> None:
    waiting, running = await api.job(), await api.job(queue="other")
    path = "/jobs/{}/cancel"
    done = await api.ask("POST", path.format(waiting["job_id"]), json={"reason": "no"})
    assert (done.status_code, done.json()["outcome"]) == (200, "cancelled")
    api.run("select jobq.claim_job(%s, 'w')", running["job_id"])
    asked = await api.ask("POST", path.format(running["job_id"]))
    assert (asked.status_code, asked.json()["outcome"]) == (202, "cancel_requested")
    late = await api.ask("POST", path.format(waiting["job_id"]))
    assert late.status_code == 409
    job = (await api.ask("GET", f"/jobs/{waiting['job_id']}")).json()
    assert (job["status"], job["state"], job["cancel_reason"]) == (
        "RETIRED",
        "cancelled",
        "no",
    )


async def test_an_execution_is_cancelled_only_while_it_waits(api: Api) -> None:
    job = await api.job()
    path = f"/executions/{job['job_id']}/cancel"
    await api.claim()
    refused = await api.ask("POST", path)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "EXECUTION_NOT_CANCELLABLE"
    assert api.run("select cancel_requested_at from jobq_private.job") == [(None,)]
    await api.ask("POST", f"/jobs/{job['job_id']}/attempts/1/release")
    done = await api.ask("POST", path)
    assert (done.status_code, done.json()["status"]) == (200, "CANCELLED")


async def test_an_execution_shows_its_attempts_and_logs(api: Api) -> None:
    job = await api.job()
    attempt = f"/jobs/{job['job_id']}/attempts"
    await api.claim("w1")
    await api.ask("POST", f"{attempt}/1/logs", json={"message": "one", "level": "WARN"})
    await api.ask("POST", f"{attempt}/1/logs", json={"message": "two"})
    await api.ask(
        "POST",
        f"{attempt}/1/fail",
        json={"error": "no answer", "error_code": "TIMEOUT", "retry_in_ms": 0},
    )
    await api.claim("w2")
    await api.ask("POST", f"{attempt}/2/complete", json={"result": {"ok": True}})

    path = f"/executions/{job['job_id']}"
    execution = (await api.ask("GET", path)).json()
    assert execution["status"] == "SUCCESS"
    assert execution["output"] == {"ok": True}
    assert execution["attempt_count"] == 2
    attempts = (await api.ask("GET", f"{path}/attempts?limit=1")).json()
    [first] = attempts["items"]
    assert (first["status"], first["worker_id"]) == ("FAILED", "w1")
    assert first["error"] == {"type": "TIMEOUT", "message": "no answer"}
    rest = await api.ask("GET", f"{path}/attempts?cursor={attempts['cursor']}")
    [second] = rest.json()["items"]
    assert (second["status"], second["attempt_number"]) == ("SUCCESS", 2)
    assert rest.json()["cursor"] is None
    logs = (await api.ask("GET", f"{path}/logs?limit=1")).json()
    assert [(x["message"], x["level"]) for x in logs["items"]] == [("one", "WARN")]
    rest = await api.ask("GET", f"{path}/logs?cursor={logs['cursor']}")
    assert [line["message"] for line in rest.json()["items"]] == ["two"]
    listed = await api.ask("GET", f"/jobs/{job['job_id']}/executions")
    assert listed.json() == {"items": [execution], "cursor": None}


async def test_pages_are_stable_while_jobs_are_added(api: Api) -> None:
    api.run("select jobq.enqueue('old') from generate_series(1, 25)")
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await api.ask("GET", f"/jobs?limit=10{cursor}")).json()
        seen += [job["job_id"] for job in page["items"]]
        if page["cursor"] is None:
            break
        await api.job(kind="new")
        cursor = f"&cursor={page['cursor']}"
    rows = api.run("select job_id::text from jobq.job where kind = 'old' order by 1 desc")
    assert seen == [job_id for (job_id,) in rows]


async def test_a_page_ends_where_the_last_job_is(api: Api) -> None:
    api.run("select jobq.enqueue('a') from generate_series(1, 10)")
    page = (await api.ask("GET", "/jobs?limit=10")).json()
    assert (len(page["items"]), page["cursor"]) == (10, None)


async def test_a_page_of_large_jobs_ends_early(api: Api) -> None:
    api.run("select jobq.enqueue('a', to_jsonb(repeat('x', 1000000))) from generate_series(1, 7)")
    first = (await api.ask("GET", "/jobs?limit=200")).json()
    assert 0 < len(first["items"]) < 7
    rest = (await api.ask("GET", f"/jobs?cursor={first['cursor']}")).json()
    ids = {job["job_id"] for job in first["items"] + rest["items"]}
    while rest["cursor"]:
        rest = (await api.ask("GET", f"/jobs?cursor={rest['cursor']}")).json()
        ids |= {job["job_id"] for job in rest["items"]}
    assert len(ids) == 7


async def test_lists_filter_by_everything_they_offer(api: Api) -> None:
    mail = await api.job(kind="mail", queue="q", metadata={"order": "7", "x": 1})
    await api.job(kind="image", queue="q")
    await api.job(kind="mail")
    dead = await api.job(kind="dead")
    api.run("select jobq.claim_job(%s, 'w')", dead["job_id"])
    api.run("select jobq.fail(%s, 1, 'x', retryable => false)", dead["job_id"])

    async def count(query: str) -> int:
        response = await api.ask("GET", f"/jobs?{query}")
        assert response.status_code == 200, response.text
        return len(response.json()["items"])

    assert await count("") == 4
    assert await count("kind=mail") == 2
    assert await count("endpoint=mail&queue=q") == 1
    assert await count("queue=q") == 2
    assert await count("state=dead") == 1
    assert await count("state=queued,dead") == 4
    assert await count('metadata={"order":"7"}') == 1
    moment = mail["created_at"].replace("+00:00", "Z")
    assert await count(f"created_before={moment}") == 0
    assert await count(f"created_after={moment[:-5]}Z") == 4
    assert await count("created_after=2126-01-01T00:00:00Z") == 0


async def test_operators_redrive_one_and_many(api: Api) -> None:
    ids = [(await api.job(queue=queue))["job_id"] for queue in "aab"]
    for job_id in ids:
        api.run("select jobq.claim_job(%s, 'w')", job_id)
        api.run("select jobq.fail(%s, 1, 'x', 'BOOM', false)", job_id)
    one = await api.ask("POST", f"/jobs/{ids[0]}/redrive")
    assert one.json() == {"job_id": ids[0], "state": "queued"}
    child = (await api.job(after=[ids[1]], after_failure="wait"))["job_id"]
    api.run("select jobq.cancel(%s)", child)
    waiting = await api.ask("POST", f"/jobs/{child}/redrive")
    assert waiting.json() == {"job_id": child, "state": "blocked"}
    again = await api.ask("POST", f"/jobs/{ids[0]}/redrive")
    assert again.json()["error"]["code"] == "ILLEGAL_STATE"
    for nothing in ({}, {"max_jobs": 5}, {"all": False}):
        refused = await api.ask("POST", "/jobs:redrive", json=nothing)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    api.run("select jobq.cancel(%s)", child)
    more = await api.ask("POST", f"/jobs/{child}/redrive", json={"max_attempts": 9})
    assert more.json() == {"job_id": child, "state": "blocked"}
    changed = {"job_ids": [ids[0]], "changes": {"max_attempts": 8}}
    assert (await api.ask("POST", "/jobs:change", json=changed)).status_code == 200
    made = api.run("select max_attempts from jobq.job where job_id = any(%s)", [ids[0], child])
    assert sorted(made) == [(8,), (9,)]
    waits = await api.ask("POST", f"/jobs/{ids[0]}/rerun")
    assert waits.json()["error"]["code"] == "ILLEGAL_STATE"
    copy = await api.ask("POST", f"/jobs/{ids[2]}/rerun")
    assert copy.status_code == 201
    [(link,)] = api.run(
        "select metadata ->> 'rerun_of' from jobq.job where job_id = %s", copy.json()["job_id"]
    )
    assert link == ids[2]
    api.run("select jobq.cancel(%s)", child)
    body = {"queue": "a", "error_code": "BOOM"}
    many = await api.ask("POST", "/jobs:redrive", json=body)
    assert many.json() == {"job_ids": [ids[1]]}
    assert api.run("select queue from jobq.job where state = 'dead'") == [("b",)]
    rest = await api.ask("POST", "/jobs:redrive", json={"all": True})
    assert rest.json() == {"job_ids": [ids[2]]}


async def test_operators_change_cancel_and_delete_many(api: Api) -> None:
    ids = [(await api.job(queue=queue, payload=1))["job_id"] for queue in "aab"]
    changes = {"run_at": "2126-01-01T00:00:00Z", "payload": {"n": 2}, "timeout_ms": 5.0}
    dry = await api.ask(
        "POST", "/jobs:change", json={"queue": "a", "changes": changes, "dry_run": True}
    )
    assert dry.json() == {"job_ids": ids[:2]}
    changed = await api.ask("POST", "/jobs:change", json={"job_ids": ids[:1], "changes": changes})
    assert changed.json() == {"job_ids": ids[:1]}
    assert api.run("select job_id::text, timeout::text from jobq.job where payload <> '1'") == [
        (ids[0], "00:00:00.005")
    ]
    changes = {"run_now": True, "priority": 5}
    now = await api.ask("POST", "/jobs:change", json={"queue": "a", "changes": changes})
    assert now.status_code == 200, now.text
    assert api.run("select jobq.due_in('{a}') <= interval '0'") == [(True,)]
    assert api.run("select distinct priority from jobq.job where queue = 'a'") == [(5,)]
    body = {"queue": "a", "max_jobs": 1, "reason": "why"}
    cancelled = await api.ask("POST", "/jobs:cancel", json=body)
    assert cancelled.json() == {"jobs": [{"job_id": ids[0], "outcome": "cancelled"}]}
    deleted = await api.ask("POST", "/jobs:delete", json={"queue": "a"})
    assert deleted.json() == {"job_ids": [ids[1]]}
    assert (await api.ask("GET", f"/jobs/{ids[1]}")).status_code == 404
    actions = "select action, acting_for is not null from jobq.audit order by 1"
    assert {action for action, _ in api.run(actions)} >= {
        "cancel",
        "delete",
        "change run_at, priority",
    }
    refused = [
        ("/jobs:change", {"changes": {"priority": 1}}, "INVALID_REQUEST"),
        ("/jobs:change", {"queue": "b", "changes": {}}, "INVALID_REQUEST"),
        ("/jobs:change", {"queue": "b", "changes": {"kind": "x"}}, "INVALID_REQUEST"),
        ("/jobs:cancel", {}, "INVALID_REQUEST"),
        ("/jobs:cancel", {"job_ids": ids[:1]}, "ILLEGAL_STATE"),
        ("/jobs:delete", {"job_ids": ids[1:2]}, "JOB_NOT_FOUND"),
    ]
    for path, given, code in refused:
        answer = await api.ask("POST", path, json=given)
        assert answer.json()["error"]["code"] == code, (path, given)


async def test_a_paused_queue_gives_no_job_and_says_why(api: Api) -> None:
    job = await api.job()
    paused = await api.ask("POST", "/queues/default/pause", json={"reason": "fire"})
    assert paused.json() == {"queue": "default", "is_paused": True}
    assert (await api.ask("POST", "/workers/w/claim")).json() == {"jobs": []}
    why = (await api.ask("GET", f"/jobs/{job['job_id']}/explain")).json()["reasons"]
    assert why[0]["reason"] == "paused"
    assert "fire" in why[0]["explanation"]
    [queue] = (await api.ask("GET", "/queues")).json()["items"]
    assert (queue["queue"], queue["queued"], queue["is_paused"]) == ("default", 1, True)
    await api.ask("POST", "/queues/default/resume")
    held = await api.ask("POST", f"/kinds/{job['kind']}/pause", json={"reason": "fire"})
    assert held.json() == {"kind": job["kind"], "is_paused": True}
    assert (await api.ask("POST", "/workers/w/claim")).json() == {"jobs": []}
    kinds = (await api.ask("GET", "/kinds")).json()["items"]
    reasons = {kind["kind"]: kind["pause_reason"] for kind in kinds}
    assert reasons[job["kind"]] == "fire"
    await api.ask("POST", f"/kinds/{job['kind']}/resume")
    assert (await api.ask("POST", "/queues/*/pause")).json()["is_paused"]
    assert (await api.ask("POST", "/workers/w/claim")).json() == {"jobs": []}
    await api.ask("POST", "/queues/*/resume")
    assert (await api.claim())["job_id"] == job["job_id"]


async def test_queues_come_in_pages(api: Api) -> None:
    for queue in "cab":
        await api.job(queue=queue)
    first = (await api.ask("GET", "/queues?limit=2")).json()
    assert [item["queue"] for item in first["items"]] == ["a", "b"]
    rest = (await api.ask("GET", f"/queues?limit=2&cursor={first['cursor']}")).json()
    assert [item["queue"] for item in rest["items"]] == ["c"]
    assert rest["cursor"] is None


async def test_a_worker_claims_beats_and_completes(api: Api) -> None:
    job = await api.job(payload={"x": 1}, metadata={"y": 2})
    claimed = await api.claim()
    assert claimed["job_id"] == job["job_id"]
    assert (claimed["payload"], claimed["metadata"]) == ({"x": 1}, {"y": 2})
    assert (claimed["attempt"], claimed["lease_ms"]) == (1, 30000)
    await api.ask("POST", f"/jobs/{job['job_id']}/cancel")
    held = {"job_id": job["job_id"], "attempt": 1}
    gone = {"job_id": str(uuid4()), "attempt": 1}
    beat = await api.ask("POST", "/workers/w/heartbeat", json={"jobs": [held, gone]})
    outcomes = [item["outcome"] for item in beat.json()["jobs"]]
    assert outcomes == ["cancel_requested", "lost"]
    attempt = f"/jobs/{job['job_id']}/attempts/1"
    await api.ask("POST", f"{attempt}/progress", json={"progress": [1]})
    assert (await api.ask("GET", f"/jobs/{job['job_id']}")).json()["progress"] == [1]
    done = await api.ask("POST", f"{attempt}/cancel")
    assert done.json()["state"] == "cancelled"


async def test_a_worker_leaves_kinds_that_it_does_not_know(api: Api) -> None:
    unknown = (await api.job(kind="unknown", priority=9))["job_id"]
    known = (await api.job(kind="known"))["job_id"]
    body = {"max_jobs": 5, "except_kinds": ["unknown"]}
    claimed = (await api.ask("POST", "/workers/w/claim", json=body)).json()["jobs"]
    assert [job["job_id"] for job in claimed] == [known]
    body = {"queues": ["default"], "except_kinds": ["unknown"]}
    await api.ask("POST", "/workers/w/heartbeat", json=body)
    told = (await api.ask("GET", f"/jobs/{unknown}/explain")).json()["reasons"]
    assert told[0]["reason"] == "unknown_kind"


async def test_a_failure_says_more_by_details(api: Api) -> None:
    job = await api.job()
    path = f"/jobs/{job['job_id']}/attempts"
    failures: list[dict[str, Any]] = [
        {"details": {"status_code": 503, "host": {"name": "a"}}},
        {"details": {}},
        {"details": None},
        {},
    ]
    for n, more in enumerate(failures, 1):
        await api.claim()
        body = {"error": "busy", "error_code": "HTTP_ERROR", "retry_in_ms": 0, **more}
        failed = await api.ask("POST", f"{path}/{n}/fail", json=body)
        assert (failed.status_code, failed.json()["state"]) == (200, "retrying")
    told = {"type": "HTTP_ERROR", "message": "busy"}
    errors = [item["error"] for item in (await api.ask("GET", path)).json()["items"]]
    assert errors == [{**told, "status_code": 503, "host": {"name": "a"}}, told, told, told]


async def test_a_failure_whose_details_are_no_object_is_refused(api: Api) -> None:
    job = await api.job()
    await api.claim()
    for details in ([1], "text", 1):
        body = {"error": "busy", "details": details}
        refused = await api.ask("POST", f"/jobs/{job['job_id']}/attempts/1/fail", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")
    assert (await api.ask("GET", f"/jobs/{job['job_id']}")).json()["state"] == "running"


async def test_the_specification_has_the_details_of_a_failure(api: Api) -> None:
    schemas = (await api.ask("GET", "/openapi.json")).json()["components"]["schemas"]
    details = schemas["Failure"]["properties"]["details"]
    assert {branch["type"] for branch in details["anyOf"]} == {"object", "null"}


async def test_a_result_counts_once_and_a_stale_attempt_never(api: Api) -> None:
    job = await api.job()
    await api.claim()
    attempt = f"/jobs/{job['job_id']}/attempts"
    for _ in range(2):
        done = await api.ask("POST", f"{attempt}/1/complete", json={"result": 5})
        assert (done.status_code, done.json()["state"]) == (200, "succeeded")
    stale = await api.ask("POST", f"{attempt}/2/complete")
    assert (stale.status_code, stale.json()["error"]["code"]) == (409, "LEASE_LOST")
    assert (await api.ask("GET", f"/jobs/{job['job_id']}")).json()["result"] == 5


async def test_a_released_job_waits_until_it_is_told_to(api: Api) -> None:
    job = await api.job()
    await api.claim()
    moment = "2126-01-01T00:00:00+00:00"
    released = await api.ask(
        "POST", f"/jobs/{job['job_id']}/attempts/1/release", json={"run_at": moment}
    )
    assert released.json()["state"] == "queued"
    job = (await api.ask("GET", f"/jobs/{job['job_id']}")).json()
    assert (job["attempts"], job["run_at"]) == (0, moment)


async def test_a_claim_waits_for_a_job(api: Api) -> None:
    claim = asyncio.create_task(api.ask("POST", "/workers/w/claim", json={"wait_ms": 20000}))
    polls = "select count(*) from pg_stat_activity where query like '%%\"claim\"%%'"
    while api.run(polls) == [(0,)]:
        await asyncio.sleep(0.01)
    job = await api.job()
    async with asyncio.timeout(15):
        [claimed] = (await claim).json()["jobs"]
    assert claimed["job_id"] == job["job_id"]


async def test_a_claim_that_finds_nothing_ends_in_time(api: Api) -> None:
    async with asyncio.timeout(60):
        response = await api.ask("POST", "/workers/w/claim", json={"wait_ms": 200})
    assert response.json() == {"jobs": []}


async def test_one_shot_jobs_are_not_updatable(api: Api) -> None:
    job = await api.job()
    response = await api.ask("PUT", f"/jobs/{job['job_id']}", json={"cron": "* * * * *"})
    assert response.status_code == 409
    assert response.json()["error"]["code"] == "JOB_NOT_UPDATABLE"


async def test_figures_are_told_in_prometheus_form(api: Api) -> None:
    await api.job(idempotency_key="once")
    await api.ask("POST", "/jobs", json={"kind": "test", "idempotency_key": "once"})
    dead = await api.job(queue="bad")
    api.run("select jobq.claim_job(%s, 'w')", dead["job_id"])
    api.run("select jobq.fail(%s, 1, 'x', retryable => false)", dead["job_id"])
    text = (await api.ask("GET", "/metrics")).text
    lines = dict(x.rsplit(" ", 1) for x in text.splitlines() if not x.startswith("#"))
    assert lines["jobq_up"] == "1.0"
    assert lines['jobq_queue_backlog{queue="default"}'] == "1.0"
    assert lines['jobq_dlq_size{queue="bad"}'] == "1.0"
    assert lines["jobq_fail_rate"] == "1.0"
    assert float(lines["jobq_job_latency_p95_seconds"]) > 0
    assert float(lines["jobq_enqueue_qps"]) == pytest.approx(2 / 60)
    assert float(lines["jobq_idempotency_conflicts_total"]) >= 1
    status = '{method="POST",path="/jobs",status="201"}'
    assert float(lines[f"jobq_http_request_duration_seconds_count{status}"]) >= 2


@pytest.mark.parametrize("trigger", ["IMMEDIATE", "DELAYED", "CRON"])
async def test_an_unknown_endpoint_is_not_found_and_uses_up_no_key(api: Api, trigger: str) -> None:
    body: dict[str, Any] = {"endpoint": "later-made", "trigger": trigger, "input": {}}
    if trigger == "CRON":
        body |= {"cron": "0 9 * * *", "timezone": "UTC"}
    else:
        body |= {"idempotency_key": "k"}
    if trigger == "DELAYED":
        body["run_at"] = "2126-03-15T18:00:00Z"
    refused = await api.ask("POST", "/jobs", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "ENDPOINT_NOT_FOUND")
    api.endpoint("later-made")
    assert (await api.ask("POST", "/jobs", json=body)).status_code == 201


async def test_an_endpoint_takes_the_options_of_any_job(api: Api) -> None:
    options = {"queue": "mail", "priority": 7, "max_attempts": 4, "timeout_ms": 9000}
    body = {**DELAYED, **options, "metadata": {"order": "1"}}
    job = (await api.ask("POST", "/jobs", json=body)).json()
    assert {name: job[name] for name in options} == options
    assert (job["trigger"], job["metadata"]["order"]) == ("DELAYED", "1")


async def test_a_batch_takes_both_vocabularies(api: Api) -> None:
    jobs = [{"kind": "a", "payload": [1]}, IMMEDIATE, {**DELAYED, "priority": 3}]
    answer = await api.ask("POST", "/jobs:batch", json={"jobs": jobs})
    assert answer.status_code == 201, answer.text
    ids = [item["job_id"] for item in answer.json()["items"]]
    found = [(await api.ask("GET", f"/jobs/{job_id}")).json() for job_id in ids]
    assert [job["trigger"] for job in found] == ["IMMEDIATE", "IMMEDIATE", "DELAYED"]
    assert [job["endpoint_type"] for job in found] == [None, "HTTP", "HTTP"]
    unknown = {**IMMEDIATE, "endpoint": "nobody", "idempotency_key": "n"}
    refused = await api.ask("POST", "/jobs:batch", json={"jobs": [{"kind": "b"}, unknown]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "ENDPOINT_NOT_FOUND")
    assert api.run("select count(*) from jobq.job where kind = 'b'") == [(0,)]


async def test_jobs_are_listed_by_key_trigger_and_status(api: Api) -> None:
    now = (await api.ask("POST", "/jobs", json=IMMEDIATE)).json()["job_id"]
    later = (await api.ask("POST", "/jobs", json=DELAYED)).json()["job_id"]

    async def ids(query: str) -> list[str]:
        response = await api.ask("GET", f"/jobs?{query}")
        assert response.status_code == 200, response.text
        return [item["job_id"] for item in response.json()["items"]]

    assert await ids(f"idempotency_key={IMMEDIATE['idempotency_key']}") == [now]
    assert await ids("trigger=DELAYED") == [later]
    assert await ids("trigger=IMMEDIATE&status=ACTIVE") == [now]
    await api.ask("POST", f"/jobs/{now}/cancel")
    assert await ids("status=RETIRED") == [now]
    assert await ids("status=ACTIVE&endpoint=send-welcome-email") == [later]
    assert (await api.ask("GET", "/jobs?status=PAUSED")).status_code == 400


async def test_dead_jobs_are_redriven_by_endpoint(api: Api) -> None:
    job = (await api.ask("POST", "/jobs", json=IMMEDIATE)).json()["job_id"]
    await api.claim()
    body = {"error": "no", "retryable": False}
    await api.ask("POST", f"/jobs/{job}/attempts/1/fail", json=body)
    attempts = (await api.ask("GET", f"/jobs/{job}/attempts")).json()["items"]
    assert attempts[0]["created_at"] == attempts[0]["started_at"]
    wrong = await api.ask("POST", "/jobs:redrive", json={"endpoint": "other"})
    assert wrong.json()["job_ids"] == []
    code = attempts[0]["error"]["type"]
    for given, found in ((code, [job]), ("OTHER", [])):
        listed = await api.ask("GET", f"/jobs?error_code={given}")
        assert [item["job_id"] for item in listed.json()["items"]] == found
        dry = {"error_code": given, "dry_run": True}
        assert (await api.ask("POST", "/jobs:redrive", json=dry)).json()["job_ids"] == found
    assert (await api.ask("GET", f"/jobs/{job}")).json()["state"] == "dead"
    assert (await api.ask("GET", "/jobs?trigger=CRON&error_code=A")).status_code == 400
    name = "send-welcome-email"
    given = {**(await api.ask("GET", f"/endpoints/{name}")).json(), "queue": "other"}
    assert (await api.ask("PUT", f"/endpoints/{name}", json=given)).json()["version"] == 2
    right = await api.ask("POST", "/jobs:redrive", json={"endpoint": name, "latest": True})
    assert right.json()["job_ids"] == [job]
    [(is_latest,)] = api.run(
        "select j.delivery_version = k.delivery_version"
        " from jobq.job as j join jobq_private.kind as k using (kind)"
    )
    assert is_latest


async def test_jobs_that_are_named_are_redriven_by_the_endpoint_as_it_is_now(api: Api) -> None:
    jobs = []
    for key in "abc":
        body = {**IMMEDIATE, "idempotency_key": key}
        jobs.append((await api.ask("POST", "/jobs", json=body)).json()["job_id"])
    name = IMMEDIATE["endpoint"]
    shown = (await api.ask("GET", f"/endpoints/{name}")).json()
    await api.ask("PUT", f"/endpoints/{name}", json={**shown, "queue": "other"})

    async def fail_all() -> None:
        for job in jobs:
            api.run(
                "select jobq.fail(job_id, attempt, 'x', retryable => false)"
                " from jobq.claim_job(%s, 'w')",
                job,
            )

    async def versions() -> list[tuple[str, int]]:
        return api.run(
            "select j.state, 1 + (j.delivery_version = k.delivery_version)::integer"
            " from jobq.job as j join jobq_private.kind as k using (kind) order by j.job_id"
        )

    await fail_all()
    assert (await api.ask("POST", f"/jobs/{jobs[0]}/redrive", json={"latest": True})).json() == {
        "job_id": jobs[0],
        "state": "queued",
    }
    assert (await api.ask("POST", f"/jobs/{jobs[1]}/redrive")).status_code == 200
    assert await versions() == [("queued", 2), ("queued", 1), ("dead", 1)]
    await fail_all()
    some = {"job_ids": jobs[1:], "latest": True}
    dry = await api.ask("POST", "/jobs:redrive", json={**some, "dry_run": True})
    assert set(dry.json()["job_ids"]) == set(jobs[1:])
    done = await api.ask("POST", "/jobs:redrive", json=some)
    assert set(done.json()["job_ids"]) == set(jobs[1:])
    assert await versions() == [("dead", 2), ("queued", 2), ("queued", 2)]
    wrong = await api.ask("POST", f"/jobs/{jobs[0]}/redrive", json={"latest": "yes"})
    assert wrong.status_code == 400


async def test_a_job_of_a_graph_may_expire(api: Api) -> None:
    jobs = [
        {"name": "a", "kind": "a"},
        {"name": "b", "kind": "b", "after": ["a"], "expires_at": "2999-01-01T00:00:00Z"},
    ]
    made = await api.ask("POST", "/graphs", json={"jobs": jobs})
    assert made.status_code == 201, made.text
    last = made.json()["items"][1]["job_id"]
    assert (await api.ask("GET", f"/jobs/{last}")).json()["expires_at"].startswith("2999-01-01")
    for moment in ("expires_at", "run_at"):
        jobs[1] = {"name": "b", "kind": "b", moment: "2999-01-01T00:00:00Z"}
        again = {"trigger": "CRON", "kind": "c", "every_ms": 60_000, "graph": {"jobs": jobs}}
        refused = await api.ask("POST", "/jobs", json=again)
        assert (refused.status_code, moment in refused.text) == (400, True)


async def test_a_job_at_the_end_of_a_batch_is_refused_in_the_words_of_the_api(api: Api) -> None:
    job = {"kind": "report", "timeout_ms": 5000, "concurrency_key": "c"}
    made = await api.ask("POST", "/batches", json={"on_end": job})
    assert made.status_code == 201, made.text
    [(timeout, key)] = api.run("select timeout, concurrency_key from jobq.job")
    assert (timeout, key) == (timedelta(seconds=5), "c")
    for keys in ({"idempotency_key": "k"}, {"after_failure": "run"}, {"dedup_key": "k"}):
        refused = await api.ask("POST", "/batches", json={"on_success": {**job, **keys}})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (400, "INVALID_REQUEST")
        assert error["detail"].endswith(f"unknown field `{min(keys)}` - at `$.on_success`")


async def test_steps_and_waits_of_a_worker_over_http(api: Api) -> None:
    job = await api.job()
    claimed = await api.claim()
    attempt = f"/jobs/{claimed['job_id']}/attempts/1"
    charge = {"name": "charge", "value": {"id": 12345678901234567890.5}}
    saved = await api.ask("POST", f"{attempt}/steps", json=charge)
    assert (saved.status_code, saved.json()["name"]) == (200, "charge")
    again = await api.ask("POST", f"{attempt}/steps", json={"name": "charge", "value": 2})
    assert again.content == saved.content
    waiting = await api.ask("POST", f"{attempt}/wait", json={"event": "paid", "timeout_ms": 60000})
    assert (waiting.status_code, waiting.json()["outcome"]) == (200, "waiting")
    lost = await api.ask("POST", f"{attempt}/steps", json={"name": "ship"})
    assert (lost.status_code, lost.json()["error"]["code"]) == (409, "LEASE_LOST")

    event = {"event": "paid", "payload": {"euro": 5}}
    answers = [await api.ask("POST", "/events", json=event) for _ in range(2)]
    assert [(a.status_code, a.json()) for a in answers] == [
        (201, {"created": True}), (200, {"created": False}),
    ]  # fmt: skip
    assert (await api.claim())["attempt"] == 2
    attempt = f"/jobs/{job['job_id']}/attempts/2"
    arrived = await api.ask("POST", f"{attempt}/wait", json={"event": "paid"})
    assert arrived.json()["payload"] == {"euro": 5}
    told = await api.ask("POST", f"/jobs/{job['job_id']}/signals", json={"name": "stop"})
    assert told.status_code == 201
    heard = await api.ask("POST", f"{attempt}/wait", json={"event": "stop"})
    assert (heard.json()["outcome"], heard.json()["payload"]) == ("arrived", None)
    late = await api.ask("POST", f"{attempt}/wait", json={"event": "never", "timeout_ms": 0})
    assert late.json()["outcome"] == "timed_out"
    listed = (await api.ask("GET", f"/jobs/{job['job_id']}/steps")).json()["items"]
    assert [s["name"] for s in listed] == ["charge", "event:paid", "event:stop", "event:never"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/events", {"event": ""}),
        ("/events", {"event": "x" * 257}),
        ("/events", {"event": "a", "payload": "\0"}),
        ("/events", {"payload": 1}),
        ("/jobs/{job_id}/signals", {"name": "a\0"}),
        ("/jobs/{job_id}/attempts/1/steps", {"name": "event:a", "value": 1}),
        ("/jobs/{job_id}/attempts/1/steps", {"value": 1}),
        ("/jobs/{job_id}/attempts/1/wait", {"event": "a", "timeout_ms": -1}),
    ],
)
async def test_steps_and_events_that_cannot_be_meant_are_refused(
    api: Api, path: str, body: dict[str, Any]
) -> None:
    job = await api.job()
    await api.claim()
    refused = await api.ask("POST", path.format(job_id=job["job_id"]), json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_what_ends_is_told_once_after_a_cursor(api: Api) -> None:
    first = (await api.ask("GET", "/jobs:events")).json()
    assert (first["items"], first["is_behind"], first["is_settled"]) == ([], False, True)
    waiting = asyncio.create_task(
        api.ask("GET", f"/jobs:events?after={first['cursor']}&kind=b&wait_ms=30000")
    )
    ids = []
    for kind in ("a", "b"):
        job = (await api.ask("POST", "/jobs", json={"kind": kind})).json()
        ids.append(job["job_id"])
        await api.ask("POST", f"/jobs/{job['job_id']}/cancel")
    told = (await waiting).json()
    assert [item["job_id"] for item in told["items"]] == [ids[1]]
    page = (await api.ask("GET", f"/jobs:events?after={first['cursor']}&limit=1")).json()
    assert [item["job_id"] for item in page["items"]] == ids[:1]
    rest = (await api.ask("GET", f"/jobs:events?after={page['cursor']}")).json()
    assert [(i["job_id"], i["state"]) for i in rest["items"]] == [(ids[1], "cancelled")]
    nothing = (await api.ask("GET", f"/jobs:events?after={rest['cursor']}&wait_ms=1")).json()
    assert nothing["items"] == []


@pytest.mark.parametrize(
    "query", ["after=x", "limit=0", "wait_ms=40000", "since=2999-01-01T00:00:00Z", "nonsense=1"]
)
async def test_events_that_cannot_be_meant_are_refused(api: Api, query: str) -> None:
    response = await api.ask("GET", f"/jobs:events?{query}")
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_REQUEST")


async def test_a_tree_is_shown_cancelled_and_redriven(api: Api) -> None:
    jobs = [{"name": "a", "kind": "a"}, {"name": "b", "kind": "b", "after": ["a"]}]
    made = (await api.ask("POST", "/graphs", json={"jobs": jobs})).json()["items"]
    ids = {item["name"]: item["job_id"] for item in made}
    inputs = (await api.ask("GET", f"/jobs/{ids['b']}/inputs")).json()["items"]
    assert [(each["job_id"], each["name"], each["state"]) for each in inputs] == [
        (ids["a"], "a", "queued")
    ]
    cancelled = await api.ask("POST", f"/jobs/{ids['a']}/tree/cancel", json={"reason": "wrong"})
    done = {each["job_id"]: each["outcome"] for each in cancelled.json()["items"]}
    assert done == dict.fromkeys(ids.values(), "cancelled")
    redriven = await api.ask("POST", f"/jobs/{ids['a']}/tree/redrive", json={"scope": "all"})
    done = {each["job_id"]: each["outcome"] for each in redriven.json()["items"]}
    assert done == dict.fromkeys(ids.values(), "redriven")


async def test_subscribers_get_a_job_for_what_is_published(api: Api) -> None:
    subscription = {"event": "paid", "kind": "receipt"}
    added = await api.ask("POST", "/subscriptions", json={**subscription, "queue": "mail"})
    assert (added.status_code, added.json()) == (200, subscription)
    [item] = (await api.ask("GET", "/subscriptions")).json()["items"]
    assert item.items() >= {**subscription, "queue": "mail"}.items()
    event = {"event": "paid", "payload": {"n": 1}, "metadata": {"m": 2}}
    published = await api.ask("POST", "/events:publish", json=event)
    assert published.status_code == 200, published.text
    [job] = published.json()["jobs"]
    made = api.run("select kind, queue, payload from jobq.job where job_id = %s", job["job_id"])
    assert (job["kind"], made) == ("receipt", [("receipt", "mail", {"n": 1})])
    for existed in (True, False):
        removed = await api.ask("POST", "/subscriptions/delete", json=subscription)
        assert removed.json() == {"existed": existed}
