"""Deliveries over HTTP, to a server that misbehaves."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import signal
import time
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from delivery_sink import KEY, posting, sinking
from waiting import until_async
from worker_process import working

from jobq import AsyncClient
from jobq.registry import Snooze
from jobq_delivery import Keyring
from jobq_delivery.http import retry_after, target_of
from jobq_delivery.limit import Limit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import psycopg
    from delivery_sink import Post

    Connection = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


async def test_the_example_of_the_documents_is_delivered(post: Post) -> None:
    schema = {
        "type": "object",
        "properties": {"user_id": {"type": "string"}, "order_id": {"type": "string"}},
        "required": ["user_id"],
    }
    await post.client.put_payload_spec("send-welcome-email-input", schema)
    config = {"api_base_url": post.sink.url, "sender": "noreply@myapp.com"}
    await post.client.put_config("email-service", config)
    await post.client.put_secret("email_api_key", "sk-live-abc123", keyring=Keyring([KEY]))
    spec = {
        "url": "{{config.api_base_url}}/emails/welcome",
        "method": "POST",
        "headers": {
            "Authorization": "Bearer {{secret.email_api_key}}",
            "Content-Type": "application/json",
        },
        "body_template": {"user_id": "{{input.user_id}}", "sender": "{{config.sender}}"},
        "timeout_ms": 5000,
        "expected_status_codes": [200, 201, 202, 204],
    }
    await post.endpoint(
        "send-welcome-email",
        spec,
        payload_spec="send-welcome-email-input",
        config="email-service",
        max_attempts=3,
    )
    job = await post.deliver("send-welcome-email", {"user_id": "u_abc", "order_id": "1234"})
    assert job.state == "succeeded"
    assert job.result == {
        "status_code": 200,
        "body": "OK",
        "endpoint_version": 1,
        "config_version": 1,
    }
    [request] = post.sink.received
    assert (request.method, request.path) == ("POST", "/emails/welcome")
    assert msgspec.json.decode(request.body) == {"user_id": "u_abc", "sender": "noreply@myapp.com"}
    assert request.headers["authorization"] == "Bearer sk-live-abc123"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == str(job.job_id)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("status/500", "HTTP_ERROR"),
        ("status/404", "HTTP_ERROR"),
        ("redirect", "HTTP_ERROR"),
        ("reset", "CONNECTION_ERROR"),
        ("garbage", "CONNECTION_ERROR"),
        ("hang", "TIMEOUT"),
        ("drip", "TIMEOUT"),
        ("slow-head", "TIMEOUT"),
        ("short", "CONNECTION_ERROR"),
        ("endless-head", "CONNECTION_ERROR"),
        ("busy/0", "HTTP_ERROR"),
    ],
)
async def test_misbehaviour_is_tried_again_and_named(post: Post, path: str, code: str) -> None:
    # Where an answer is awaited in vain, not for long; but for so long that the request arrives.
    timeout_ms = 1000 if code == "TIMEOUT" else 30_000
    spec = {"url": f"{post.sink.url}/{path}", "timeout_ms": timeout_ms}
    await post.endpoint("bad", spec, max_attempts=2)
    job = await post.deliver("bad")
    assert (job.state, job.last_error_code, job.attempts) == ("dead", code, 2)
    assert [r.path for r in post.sink.received] == [f"/{path}"] * 2
    assert {r.headers["idempotency-key"] for r in post.sink.received} == {str(job.job_id)}
    logs = await post.client.logs(job.job_id)
    pattern = (
        rf"POST {post.sink.url}/{path}: {code} in \d+ ms, attempt (\d), version 1 of the endpoint\n"
    )
    found = [re.match(pattern, line.message) for line in logs]
    assert [match and match[1] for match in found] == ["1", "2"]
    assert {line.level for line in logs} == {"WARN"}


async def test_nobody_listening_is_a_connection_error(post: Post) -> None:
    await post.endpoint("gone", {"url": "http://127.0.0.1:1/"})
    job = await post.deliver("gone")
    assert (job.last_error_code, job.last_error) == ("CONNECTION_ERROR", "cannot connect")


async def test_a_huge_answer_is_cut(post: Post) -> None:
    await post.endpoint("huge", {"url": f"{post.sink.url}/huge"})
    job = await post.deliver("huge")
    assert job.result["body"] == "x" * 65536
    assert job.result["body_truncated"] is True


async def test_an_answer_may_come_in_chunks(post: Post) -> None:
    await post.endpoint("chunked", {"url": f"{post.sink.url}/chunked"})
    assert (await post.deliver("chunked")).result["body"] == "OneTwo!"


async def test_a_huge_request_arrives_whole(post: Post) -> None:
    spec = {"url": post.sink.url + "/ok", "body_template": "{{input.text}}"}
    await post.endpoint("large", spec)
    assert (await post.deliver("large", {"text": "x" * 1_000_000})).state == "succeeded"
    assert [len(r.body) for r in post.sink.received] == [1_000_002]


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\rb", "ünïcode"])
async def test_input_cannot_add_headers(post: Post, value: str) -> None:
    spec = {"url": post.sink.url + "/ok", "headers": {"x-to": "{{input.to}}"}}
    await post.endpoint("headers", spec, max_attempts=3)
    job = await post.deliver("headers", {"to": value})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "REQUEST_INVALID", 1)
    assert post.sink.received == []


async def test_spaces_around_a_header_are_left_out(post: Post) -> None:
    spec = {"url": post.sink.url + "/ok", "headers": {"x-to": "{{input.to}}\t"}}
    await post.endpoint("headers", spec)
    assert (await post.deliver("headers", {"to": " Ada"})).state == "succeeded"
    assert post.sink.received[0].headers["x-to"] == "Ada"


async def test_a_config_may_bring_a_host_that_is_none(post: Post) -> None:
    await post.client.put_config("place", {"url": "http://a..b/"})
    await post.endpoint("placed", {"url": "{{config.url}}"}, config="place")
    assert (await post.deliver("placed")).last_error_code == "CONNECTION_ERROR"
    assert target_of("http://xn--a/")[1] == "xn--a"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_every_method_is_spoken(post: Post, method: str) -> None:
    await post.endpoint("method", {"url": post.sink.url + "/ok?a=1", "method": method})
    assert (await post.deliver("method")).state == "succeeded"
    [request] = post.sink.received
    body = b"" if method in ("GET", "DELETE") else b"{}"
    assert (request.method, request.path, request.body) == (method, "/ok?a=1", body)


async def test_an_answer_may_hold_anything(post: Post) -> None:
    spec = {"url": f"{post.sink.url}/status/418", "expected_status_codes": [418]}
    await post.endpoint("teapot", spec)
    job = await post.deliver("teapot")
    assert (job.state, job.result["status_code"]) == ("succeeded", 418)
    assert job.result["body"] == "no\ufffdpe"


async def test_retry_after_is_honoured(post: Post) -> None:
    spec = {"url": f"{post.sink.url}/busy/3600"}
    await post.endpoint("busy", spec, max_attempts=2, retry_initial_delay="1 s")
    enqueued = await post.client.enqueue("busy")
    async with asyncio.timeout(60):
        while (job := await post.client.get(enqueued.job_id)).state != "retrying":
            await asyncio.sleep(0.01)
    wait = (job.run_at - datetime.now(UTC)).total_seconds()
    assert 3500 < wait <= 3600


def test_retry_after_is_read_in_both_forms() -> None:
    assert retry_after("120") == timedelta(seconds=120)
    assert retry_after("1e9") == timedelta(days=1)
    soon = datetime.now(UTC) + timedelta(seconds=90)
    found = retry_after(soon.strftime("%a, %d %b %Y %H:%M:%S GMT"))
    assert found is not None
    assert timedelta(seconds=80) < found <= timedelta(seconds=90)
    far = (
        "Wed, 21 Oct 2026 07:28:00 +99999999999999999999",
        f"Wed, 21 Oct {'2' * 20} 07:28:00 GMT",
    )
    for bad in (None, "", "soon", "0", "-5", "nan", "Mon, 01 Jan 2001 00:00:00 GMT", *far):
        assert retry_after(bad) is None


async def test_a_flaky_target_gets_the_same_id_again(post: Post) -> None:
    await post.endpoint("flaky", {"url": f"{post.sink.url}/flaky/503"}, max_attempts=2)
    job = await post.deliver("flaky")
    assert (job.state, job.attempts) == ("succeeded", 2)
    assert [r.headers["webhook-id"] for r in post.sink.received] == [str(job.job_id)] * 2


async def test_a_signature_can_be_verified(post: Post) -> None:
    key = b64encode(b"0123456789abcdef0123456789abcdef").decode()
    secret = f"whsec_{key} plain-old"
    await post.client.put_secret("hook", secret, keyring=Keyring([KEY]))
    body = {"n": "{{input.n}}"}
    spec = {"url": post.sink.url + "/hook", "sign_with": "hook", "body_template": body}
    await post.endpoint("hook", spec)
    assert (await post.deliver("hook", {"n": 1})).state == "succeeded"
    [request] = post.sink.received
    stamp = request.headers["webhook-timestamp"]
    assert abs(int(stamp) - time.time()) < 60
    message = f"{request.headers['webhook-id']}.{stamp}.".encode() + request.body
    expected = [
        "v1," + b64encode(hmac.digest(k, message, hashlib.sha256)).decode()
        for k in (b64decode(key), b"plain-old")
    ]
    assert request.headers["webhook-signature"].split() == expected


@pytest.mark.parametrize("secret", ["", " ", "whsec_", "whsec_!!!", "whsec_MDEyMzQ1Njc4OWFiY2RlZg"])
async def test_what_is_no_key_signs_nothing(post: Post, secret: str) -> None:
    await post.client.put_secret("hook", secret, keyring=Keyring([KEY]))
    await post.endpoint("hook", {"url": post.sink.url + "/hook", "sign_with": "hook"})
    job = await post.deliver("hook")
    assert (job.state, job.last_error_code) == ("dead", "SECRET_INVALID")
    assert post.sink.received == []


async def test_an_unresolvable_template_is_dead_at_once(post: Post) -> None:
    spec = {"url": post.sink.url, "body_template": "{{input.to}}"}
    await post.endpoint("template", spec, max_attempts=5)
    job = await post.deliver("template")
    assert (job.state, job.attempts) == ("dead", 1)
    assert job.last_error_code == "TEMPLATE_RESOLUTION_FAILED"
    assert post.sink.received == []


async def test_a_kind_that_is_no_endpoint_is_left_to_others(
    post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    job_id = (await post.client.enqueue("nobody")).job_id

    async def is_given_back() -> bool:
        job = await post.client.get(job_id)
        return "UNKNOWN_KIND" in caplog.text and job.state == "queued"

    await until_async(is_given_back, "for the worker to give it back and to say why")
    assert (await post.client.get(job_id)).attempts == 0


async def test_a_worker_without_the_key_gives_the_job_back(
    post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    """Another worker may have it at once: the job has lost nothing."""
    await post.client.put_secret("hook", "v", keyring=Keyring([b"x" * 32]))
    await post.endpoint("hook", {"url": post.sink.url, "sign_with": "hook"})
    job_id = (await post.client.enqueue("hook", {})).job_id

    async def is_given_back() -> bool:
        job = await post.client.get(job_id)
        is_said = "the key of a secret is not there: secret hook" in caplog.text
        return is_said and job.state == "queued" and job.attempt == 1

    await until_async(is_given_back, "for the worker to give it back and to say why")
    job = await post.client.get(job_id)
    assert (job.attempts, job.last_error_code) == (0, None)
    assert job.run_at == job.created_at
    assert post.sink.received == []


async def test_a_delivery_logs_what_came_back(post: Post) -> None:
    await post.client.put_secret("hook", "hunter2-7f3a9c", keyring=Keyring([KEY]))
    spec = {
        "url": f"{post.sink.url}/echo",
        "headers": {"authorization": "{{secret.hook}}" + "x" * 3000},
    }
    await post.endpoint("echo", spec)
    job = await post.deliver("echo")
    [line] = await post.client.logs(job.job_id)
    head, _, answer = line.message.partition("\n")
    assert line.level == "INFO"
    assert re.fullmatch(
        rf"POST {post.sink.url}/echo: delivered in \d+ ms, attempt 1, version 1 of the endpoint",
        head,
    )
    assert answer == "***" + "x" * 2045


@pytest.mark.parametrize("at", [65_536 - 40, 65_536 - 14, 65_536 - 1])
async def test_a_secret_across_the_end_of_what_is_kept_is_hidden(post: Post, at: int) -> None:
    secret = "".join(chr(ord("a") + n % 26) for n in range(44))
    await post.client.put_secret("long", secret, keyring=Keyring([KEY]))
    spec = {
        "url": f"{post.sink.url}/mirror",
        "body_template": "x" * (at - 1) + "{{secret.long}}" + "y" * 100_000,
    }
    await post.endpoint("mirror", spec)
    job = await post.deliver("mirror")
    body = job.result["body"]
    assert body.rstrip("y") == '"' + "x" * (at - 1) + "***"
    assert job.result["body_truncated"] is True


async def test_the_input_is_the_body_where_no_other_is_given(post: Post) -> None:
    await post.endpoint("plain", {"url": post.sink.url})
    await post.endpoint("none", {"url": post.sink.url, "body_template": None})
    for kind in ("plain", "none"):
        assert (await post.deliver(kind, {"a": [1]})).state == "succeeded"
    assert [r.body for r in post.sink.received] == [b'{"a":[1]}', b""]
    assert [r.headers.get("content-type") for r in post.sink.received] == ["application/json", None]


async def test_input_stands_in_urls_and_the_attempt_in_a_header(post: Post) -> None:
    spec = {
        "url": f"{post.sink.url}/flaky/503/{{{{input.name}}}}?job={{{{job.id}}}}",
        "body_template": {"attempt": "{{job.attempt}}", "nick": "{{input.nick ?? null}}"},
    }
    await post.endpoint("url", spec, max_attempts=2)
    later = {"url": f"{post.sink.url}/flaky/503", "body_template": {"attempt": "{{job.attempt}}"}}
    await post.endpoint("later", later, max_attempts=2)
    job = await post.deliver("url", {"name": "a/b c"})
    assert job.state == "succeeded"
    assert (await post.deliver("later")).state == "succeeded"
    first, *others = post.sink.received
    assert first.path == f"/flaky/503/a%2Fb%20c?job={job.job_id}"
    assert msgspec.json.decode(first.body) == {"attempt": 1, "nick": None}
    assert [r.headers["jobq-attempt"] for r in others] == ["1", "2"]
    assert [msgspec.json.decode(r.body) for r in others] == [{"attempt": 1}, {"attempt": 2}]


async def test_numbers_arrive_with_every_digit(
    post: Post, connect: Callable[[], Connection]
) -> None:
    await post.client.put_config("rates", {"rate": 1})
    body = {"amount": "{{input.amount}}", "text": "{{input.amount}}!", "rate": "{{config.rate}}"}
    await post.endpoint("exact", {"url": post.sink.url, "body_template": body}, config="rates")
    digits = "0.1000000000000000055511151231257827"
    connect().execute("select jobq.put_config('rates', %s)", [f'{{"rate": {digits}}}'])
    [job_id] = (
        connect()
        .execute("select jobq.enqueue('exact', %s)", [f'{{"amount": {digits}}}'])
        .fetchone()
        or ()
    )
    assert (await post.ended(job_id)).state == "succeeded"
    [request] = post.sink.received
    assert request.body.decode() == f'{{"rate":{digits},"text":"{digits}!","amount":{digits}}}'


async def test_a_message_that_is_too_large_is_dead_and_not_sent(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DELIVERY_MAX_BODY_BYTES", "10000")
    async with posting(database) as post:
        spec = {"url": post.sink.url, "body_template": ["{{input.text}}"] * 2000}
        await post.endpoint("large", spec, max_attempts=3)
        job = await post.deliver("large", {"text": "x" * 100})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "MESSAGE_TOO_LARGE", 1)
    assert post.sink.received == []


async def test_connections_are_kept(post: Post) -> None:
    await post.endpoint("keep", {"url": f"{post.sink.url}/ok"})
    for _ in range(5):
        await post.deliver("keep")
    assert post.sink.connections == 1
    assert len(post.sink.received) == 5


@pytest.mark.parametrize("path", ["twice", "twice-at-once", "twice-later"])
async def test_an_answer_that_nobody_asked_for_is_no_other_jobs(post: Post, path: str) -> None:
    await post.endpoint("twice", {"url": f"{post.sink.url}/{path}"})
    await post.endpoint("keep", {"url": f"{post.sink.url}/ok"})
    first = await post.deliver("twice")
    if path == "twice-later":
        post.sink.hold.set()
        await until_async(post.sink.has_said_more, "for another answer")
    second = await post.deliver("keep")
    assert first.result["body"] in ("on", "once")
    assert second.result["body"] == "OK"
    assert [request.path for request in post.sink.received] == [f"/{path}", "/ok"]


async def test_fifty_deliveries_run_at_a_time(post: Post) -> None:
    await post.endpoint("hang", {"url": f"{post.sink.url}/hang"}, max_concurrency=50)
    await post.client.enqueue_many([{"kind": "hang"}] * 60)

    async def all_are_here() -> bool:
        return len(post.sink.received) >= 50

    await until_async(all_are_here, "for fifty requests at a time")
    assert len({r.connection for r in post.sink.received}) == 50


async def test_a_slow_target_does_not_starve_others(post: Post) -> None:
    """200 jobs of a target that hangs for long, 10 slots of 50 for it; another goes on."""
    spec = {"url": f"{post.sink.url}/hang", "timeout_ms": 120_000}
    await post.endpoint("slow", spec, max_concurrency=10)
    await post.endpoint("fast", {"url": f"{post.sink.url}/ok"})
    await post.client.enqueue_many([{"kind": "slow", "priority": 9}] * 200)
    for _ in range(20):
        assert (await post.deliver("fast")).state == "succeeded"
    assert 1 <= sum(r.path == "/hang" for r in post.sink.received) <= 10


async def test_the_longer_a_target_hangs_the_rarer_it_is_tried() -> None:
    limit = Limit(1)
    async with limit.turn():
        limit._moved_at -= 20
        with pytest.raises(Snooze) as raised:
            async with limit.turn():
                pass
    assert isinstance(raised.value.until, timedelta)
    assert raised.value.until > timedelta(seconds=19)


async def test_a_rate_is_kept(post: Post) -> None:
    await post.endpoint("paced", {"url": f"{post.sink.url}/ok"}, max_per_second=20)
    started = time.monotonic()
    await post.client.enqueue_many([{"kind": "paced"}] * 30)
    async with asyncio.timeout(30):
        while len(post.sink.received) < 30:
            await asyncio.sleep(0.01)
    assert time.monotonic() - started > 29 / 20 * 0.9


async def test_jobs_keep_the_endpoint_that_they_were_made_for(
    post: Post, connect: Callable[[], Connection]
) -> None:
    await post.endpoint("moved", {"url": f"{post.sink.url}/v1"})
    later = datetime.now(UTC) + timedelta(hours=1)
    old = await post.client.enqueue("moved", run_at=later)
    await post.endpoint("moved", {"url": f"{post.sink.url}/v2"})
    new = await post.deliver("moved")
    assert new.result["endpoint_version"] == 2
    connect().execute("update jobq_private.job set run_at = now()")
    assert (await post.ended(old.job_id)).result["endpoint_version"] == 1
    assert [r.path for r in post.sink.received] == ["/v2", "/v1"]


async def test_a_worker_killed_between_send_and_settle_repeats_once_with_the_same_id(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_DELIVERY_ALLOW", "127.0.0.1")
    async with sinking() as sink, AsyncClient(database) as client:
        spec = {"url": f"{sink.url}/once-held"}
        await client.put_queue("default", lease="4 s")
        await client.put_endpoint("kill", "HTTP", spec, max_attempts=2)
        job = await client.enqueue("kill")

        async def has_arrived() -> bool:
            return bool(sink.received)

        async def has_ended() -> bool:
            return (await client.get(job.job_id)).is_finished

        with working(database, tmp_path) as doomed:
            await until_async(has_arrived, "for the request")
            doomed.signal(signal.SIGKILL)
            await asyncio.to_thread(doomed.wait)
        with working(database, tmp_path):
            await until_async(has_ended, "for the second attempt", 60)
        ended = await client.get(job.job_id)
    assert (ended.state, ended.attempts) == ("succeeded", 2)
    assert [r.headers["idempotency-key"] for r in sink.received] == [str(job.job_id)] * 2
