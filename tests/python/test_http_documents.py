"""The documents' example requests, sent to the letter, and their answers field by field."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from http_api import Api

pytest_plugins = ["http_fixtures"]


def given_names(job: dict[str, Any]) -> list[str]:
    """What a document calls that which the job was given."""
    return [name for name in ("payload", "input") if name in job]


async def test_what_a_job_was_given_stands_once_in_a_document(api: Api) -> None:
    api.endpoint("e")
    invocation = {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k"}
    cron = {"trigger": "CRON", "every_ms": 60000, "timezone": "UTC"}
    for made, name in (
        ({"kind": "a"}, "payload"),
        (invocation, "input"),
        ({"kind": "e"}, "payload"),
        ({"kind": "a", **cron}, "input"),
        ({"endpoint": "e", **cron}, "input"),
    ):
        answer = await api.ask("POST", "/jobs", json=made)
        assert answer.status_code == 201, answer.text
        job = answer.json()
        assert given_names(job) == [name], made
        for vocabulary, called in (("kind", "payload"), ("endpoint", "input")):
            one = f"/jobs/{job['job_id']}?vocabulary={vocabulary}"
            assert given_names((await api.ask("GET", one)).json()) == [called]
    for query, names in (
        ("", {("input",), ("payload",)}),
        ("?vocabulary=kind", {("payload",)}),
        ("?trigger=CRON&vocabulary=kind", {("payload",)}),
        ("?trigger=CRON", {("input",)}),
    ):
        items = (await api.ask("GET", f"/jobs{query}")).json()["items"]
        assert {tuple(given_names(item)) for item in items} == names, query
    large = {"kind": "large", "payload": {"text": "x" * 100_000}}
    answer = await api.ask("POST", "/jobs", json=large)
    assert len(answer.content) < 110_000
    refused = await api.ask("GET", f"/jobs/{answer.json()['job_id']}?vocabulary=both")
    assert refused.status_code == 400


PAYLOAD_SPEC = """
{
  "name": "send-welcome-email-input",
  "schema": {
    "type": "object",
    "properties": {
      "user_id": { "type": "string", "description": "Target user ID" },
      "order_id": { "type": "string", "description": "Associated order ID" }
    },
    "required": ["user_id"]
  }
}
"""
CONFIG = """
{
  "name": "email-service",
  "values": {
    "api_base_url": "https://api.myapp.com",
    "sender": "noreply@myapp.com"
  }
}
"""
KAFKA_CONFIG = """
{
  "name": "order-events",
  "values": {
    "bootstrap_servers": "kafka-1:9092,kafka-2:9092",
    "topic": "order.events.v1"
  }
}
"""
REDIS_CONFIG = """
{
  "name": "notification-stream",
  "values": {
    "redis_url": "redis://redis-cluster:6379",
    "stream_name": "notifications:outbound",
    "max_stream_length": 100000
  }
}
"""
SECRET = """
{
  "name": "email_api_key",
  "value": "sk-live-abc123..."
}
"""
SECRET_ANSWER = """
{
  "name": "email_api_key",
  "created_at": "2026-03-15T10:00:00Z",
  "updated_at": "2026-03-15T10:00:00Z"
}
"""
HTTP_ENDPOINT = """
{
  "name": "send-welcome-email",
  "type": "HTTP",
  "payload_spec": "send-welcome-email-input",
  "config": "email-service",
  "spec": {
    "url": "{{config.api_base_url}}/emails/welcome",
    "method": "POST",
    "headers": {
      "Authorization": "Bearer {{secret.email_api_key}}",
      "Content-Type": "application/json"
    },
    "body_template": {
      "user_id": "{{input.user_id}}",
      "sender": "{{config.sender}}"
    },
    "timeout_ms": 5000,
    "expected_status_codes": [200, 201, 202, 204]
  },
  "retry_policy": {
    "max_attempts": 3,
    "backoff": "exponential",
    "initial_delay_ms": 1000,
    "max_delay_ms": 30000
  }
}
"""
KAFKA_ENDPOINT = """
{
  "name": "publish-order-event",
  "type": "KAFKA",
  "payload_spec": "order-event-input",
  "config": "order-events",
  "spec": {
    "bootstrap_servers": "{{config.bootstrap_servers}}",
    "topic": "{{config.topic}}",
    "key_template": "{{input.order_id}}",
    "value_template": {
      "event_type": "{{input.event_type}}",
      "order_id": "{{input.order_id}}",
      "amount": "{{input.amount}}"
    },
    "headers": {
      "ce-type": "order.{{input.event_type}}",
      "ce-source": "task-executor"
    },
    "acks": "all",
    "timeout_ms": 10000
  },
  "retry_policy": {
    "max_attempts": 5,
    "backoff": "exponential",
    "initial_delay_ms": 500,
    "max_delay_ms": 15000
  }
}
"""
REDIS_ENDPOINT = """
{
  "name": "push-notification",
  "type": "REDIS_STREAM",
  "payload_spec": "notification-input",
  "config": "notification-stream",
  "spec": {
    "redis_url": "{{config.redis_url}}",
    "stream": "{{config.stream_name}}",
    "fields_template": {
      "user_id": "{{input.user_id}}",
      "title": "{{input.title}}",
      "body": "{{input.body}}"
    },
    "max_len": "{{config.max_stream_length}}",
    "approximate_trimming": true,
    "timeout_ms": 3000
  },
  "retry_policy": {
    "max_attempts": 3,
    "backoff": "exponential",
    "initial_delay_ms": 500,
    "max_delay_ms": 10000
  }
}
"""
IMMEDIATE = """
{
  "endpoint": "send-welcome-email",
  "trigger": "IMMEDIATE",
  "idempotency_key": "order-1234-welcome-email",
  "input": {
    "user_id": "u_abc",
    "order_id": "order-1234"
  }
}
"""
IMMEDIATE_ANSWER = """
{
  "job_id": "job_8f3a...",
  "endpoint": "send-welcome-email",
  "endpoint_type": "HTTP",
  "trigger": "IMMEDIATE",
  "status": "ACTIVE",
  "version": 1,
  "idempotency_key": "order-1234-welcome-email",
  "input": {
    "user_id": "u_abc",
    "order_id": "order-1234"
  },
  "execution": {
    "execution_id": "exec_2b7c...",
    "status": "QUEUED",
    "created_at": "2026-03-15T10:00:00Z"
  },
  "created_at": "2026-03-15T10:00:00Z"
}
"""
DELAYED = """
{
  "endpoint": "send-welcome-email",
  "trigger": "DELAYED",
  "idempotency_key": "order-1234-reminder",
  "run_at": "2026-03-15T18:00:00Z",
  "input": {
    "user_id": "u_abc",
    "order_id": "order-1234"
  }
}
"""
CRON = """
{
  "endpoint": "push-notification",
  "trigger": "CRON",
  "cron": "0 9 * * MON",
  "timezone": "Asia/Kolkata",
  "starts_at": "2026-03-16T00:00:00Z",
  "ends_at": null,
  "input": {
    "user_id": "u_abc",
    "title": "Weekly Summary",
    "body": "Here's your weekly report"
  }
}
"""
CRON_ANSWER = """
{
  "job_id": "job_c72f...",
  "endpoint": "push-notification",
  "endpoint_type": "REDIS_STREAM",
  "trigger": "CRON",
  "status": "ACTIVE",
  "version": 1,
  "cron": "0 9 * * MON",
  "timezone": "Asia/Kolkata",
  "starts_at": "2026-03-16T00:00:00Z",
  "ends_at": null,
  "next_run_at": "2026-03-16T09:00:00+05:30",
  "input": {
    "user_id": "u_abc",
    "title": "Weekly Summary",
    "body": "Here's your weekly report"
  },
  "created_at": "2026-03-15T10:00:00Z"
}
"""
UPDATE = """
{
  "cron": "0 10 * * MON",
  "timezone": "Asia/Kolkata",
  "input": { "report_type": "weekly", "include_charts": true }
}
"""
STATUS_ANSWER = """
{
  "job_id": "job_c72f...",
  "endpoint": "push-notification",
  "endpoint_type": "REDIS_STREAM",
  "trigger": "CRON",
  "health": "HEALTHY",
  "version": 1,
  "last_execution": {
    "execution_id": "exec_8f3a...",
    "status": "SUCCESS",
    "started_at": "2026-03-15T10:30:00Z",
    "completed_at": "2026-03-15T10:30:01Z",
    "attempt_number": 1
  },
  "active_executions": { "pending": 2, "running": 1, "total": 3 },
  "cron": {
    "expression": "0 9 * * MON",
    "next_run_at": "2026-03-16T09:00:00+05:30",
    "last_tick_at": "2026-03-09T09:00:00+05:30"
  },
  "stats": {
    "last_24h": {
      "total": 142, "succeeded": 139, "failed": 3,
      "avg_duration_ms": 340, "p99_duration_ms": 1200
    }
  }
}
"""
ERROR_ANSWER = """
{
  "error": {
    "code": "JOB_NOT_FOUND",
    "message": "Job with ID 'job_xyz' does not exist.",
    "request_id": "req_9a8b..."
  }
}
"""
# The documents refer to these, and do not show them.
UNSHOWN = ("order-event-input", "notification-input")
DEFINITIONS = (
    ("/payload-specs", PAYLOAD_SPEC),
    *(("/payload-specs", json.dumps({"name": n, "schema": {"type": "object"}})) for n in UNSHOWN),
    ("/configs", CONFIG),
    ("/configs", KAFKA_CONFIG),
    ("/configs", REDIS_CONFIG),
    ("/secrets", SECRET),
    ("/endpoints", HTTP_ENDPOINT),
    ("/endpoints", KAFKA_ENDPOINT),
    ("/endpoints", REDIS_ENDPOINT),
)


def differences(given: Any, example: Any, counted: Sequence[str] = (), path: str = "") -> list[str]:
    """Return where an answer is not as its example has it.

    Ids may be any id, moments any moment with a zone, and what is `counted` any number.
    The answer may hold more members than the example.
    """
    if isinstance(example, dict):
        missing = [f"{path}/{name} is missing" for name in example.keys() - given.keys()]
        return missing + [
            problem
            for name in example.keys() & given.keys()
            for problem in differences(given[name], example[name], counted, f"{path}/{name}")
        ]
    name = path.rsplit("/", 1)[-1]
    if name in counted:
        is_same = isinstance(given, int | float)
    elif name == "request_id":
        is_same = re.fullmatch("req_[0-9a-f]{16}", given) is not None
    elif name in ("job_id", "execution_id"):
        is_same = str(UUID(given)) == given
    elif name.endswith("_at") and example is not None:
        is_same = datetime.fromisoformat(given).tzinfo is not None
    else:
        is_same = given == example and type(given) is type(example)
    return [] if is_same else [f"{path}: {given!r}, not {example!r}"]


def test_a_difference_is_seen() -> None:
    example = json.loads(IMMEDIATE_ANSWER)
    id_of_one = "01a1fdac-222a-7efd-9232-ffd89900cb30"
    given = {**example, "job_id": id_of_one, "execution": {"execution_id": id_of_one}}
    assert sorted(differences({**given, "version": 2}, example)) == [
        "/execution/created_at is missing",
        "/execution/status is missing",
        "/version: 2, not 1",
    ]


@pytest.fixture
async def defined(api: Api, monkeypatch: pytest.MonkeyPatch) -> Api:
    """The HTTP API with all that the documents define."""
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    for path, text in DEFINITIONS:
        response = await api.ask("POST", path, content=text)
        assert response.status_code == 201, response.text
    return api


@pytest.mark.parametrize(("path", "text"), DEFINITIONS)
async def test_a_definition_is_answered_as_it_was_given(defined: Api, path: str, text: str) -> None:
    given = json.loads(text)
    expected = json.loads(SECRET_ANSWER) if path == "/secrets" else given
    moments = {"created_at": "2026-03-15T10:00:00Z", "updated_at": "2026-03-15T10:00:00Z"}
    answer = (await defined.ask("GET", f"{path}/{given['name']}")).json()
    assert not differences(answer, {**expected, **moments})
    assert "value" not in answer
    again = await defined.ask("POST", path, content=text)
    assert again.status_code == 409
    replaced = await defined.ask("PUT", f"{path}/{given['name']}", content=text)
    assert replaced.status_code == 200
    assert not differences(replaced.json(), {**expected, **moments})
    listed = (await defined.ask("GET", path)).json()
    assert listed.keys() == {"items", "cursor"}
    assert given["name"] in [item["name"] for item in listed["items"]]


async def test_an_immediate_job(defined: Api) -> None:
    first = await defined.ask("POST", "/jobs", content=IMMEDIATE)
    assert first.status_code == 201
    assert not differences(first.json(), json.loads(IMMEDIATE_ANSWER))
    second = await defined.ask("POST", "/jobs", content=IMMEDIATE)
    assert second.status_code == 200
    assert second.json() == {**first.json(), "created": False}


async def test_a_delayed_job(defined: Api) -> None:
    first = await defined.ask("POST", "/jobs", content=DELAYED)
    assert first.status_code == 201
    given = json.loads(DELAYED)
    expected = {**json.loads(IMMEDIATE_ANSWER), **given}
    assert not differences(first.json(), expected)
    run_at = datetime.fromisoformat(first.json()["run_at"])
    assert run_at == datetime.fromisoformat(given["run_at"])
    assert (await defined.ask("POST", "/jobs", content=DELAYED)).status_code == 200


async def test_a_cron_job_its_update_and_its_end(defined: Api) -> None:
    first = await defined.ask("POST", "/jobs", content=CRON)
    job = first.json()
    assert first.status_code == 201
    assert not differences(job, json.loads(CRON_ANSWER))
    next_run_at = datetime.fromisoformat(job["next_run_at"])
    assert next_run_at.strftime("%a %T %z") == "Mon 09:00:00 +0530"
    assert next_run_at > datetime.fromisoformat(job["starts_at"])
    path = f"/jobs/{job['job_id']}"

    defined.run("update jobq_private.schedule set next_run_at = next_run_at - interval '1 week'")
    defined.run("select jobq_internal.tick()")
    claimed = await defined.claim()
    await defined.ask("POST", f"/jobs/{claimed['job_id']}/attempts/1/complete")
    status = (await defined.ask("GET", f"{path}/status")).json()
    numbers = (
        *("pending", "running", "total", "succeeded", "failed"),
        *("avg_duration_ms", "p99_duration_ms"),
    )
    assert not differences(status, json.loads(STATUS_ANSWER), numbers)

    updated = await defined.ask("PUT", path, content=UPDATE)
    changed = {**json.loads(CRON_ANSWER), **json.loads(UPDATE), "version": 2}
    assert updated.status_code == 200
    assert not differences(updated.json(), {**changed, "previous_version_id": job["job_id"]})
    assert (await defined.ask("GET", path)).json()["status"] == "RETIRED"
    ended = await defined.ask("POST", f"/jobs/{updated.json()['job_id']}/cancel")
    assert ended.status_code == 200


async def test_an_error(defined: Api) -> None:
    response = await defined.ask("GET", "/jobs/job_xyz")
    assert response.status_code == 404
    assert not differences(response.json(), json.loads(ERROR_ANSWER))


async def test_a_job_with_a_key_in_the_header_and_its_cancel(api: Api) -> None:
    """S0: 201, then 200; 200 while it waits, 202 while it runs, 409 when it has ended."""
    body = '{"kind": "send_email", "payload": {"to": "ada@example.org"}}'
    key = {"idempotency-key": "welcome-ada"}
    answers = [await api.ask("POST", "/jobs", content=body, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    [job_id] = {answer.json()["job_id"] for answer in answers}
    running = await api.job(queue="other")
    api.run("select jobq.claim_job(%s, 'w')", running["job_id"])
    cancels = [
        (await api.ask("POST", f"/jobs/{each}/cancel")).status_code
        for each in (job_id, running["job_id"], job_id)
    ]
    assert cancels == [200, 202, 409]


async def test_the_same_key_three_times_is_one_job(api: Api) -> None:
    """S3: the first is created, the next two are that one."""
    body = {
        "kind": "daily_pipeline",
        "payload": {"symbol": "ACME", "asof": "2026-03-13"},
        "idempotency_key": "daily_pipeline:ACME:2026-03-13",
    }
    answers = [(await api.ask("POST", "/jobs", json=body)).json() for _ in range(3)]
    assert [answer["created"] for answer in answers] == [True, False, False]
    assert len({answer["job_id"] for answer in answers}) == 1
    ready = (await api.ask("GET", "/ready")).json()
    assert ready.keys() == {"queue", "repo", "timestamp"}
    assert (ready["queue"], ready["repo"]) == ("ok", "ok")
