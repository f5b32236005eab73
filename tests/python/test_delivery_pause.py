"""Endpoints that are paused: their jobs wait, tests go all the same, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from delivery_sink import KEY, posting
from http_api import opened
from waiting import until_async

from jobq.errors import NotFound, PayloadInvalid
from jobq_cli import main
from jobq_delivery import Keyring
from jobq_delivery.preview import sent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from delivery_sink import Post


RACED = {"kind": "raced"}


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


async def test_a_paused_endpoint_gets_nothing_but_tests(post: Post) -> None:
    await post.client.put_payload_spec("input", {"type": "object", "required": ["n"]})
    await post.endpoint("paused", {"url": f"{post.sink.url}/p"}, payload_spec="input")
    await post.endpoint("other", {"url": f"{post.sink.url}/o"})
    await post.client.pause_endpoint("paused", "they are down")
    jobs = await post.client.enqueue_many(
        [{"kind": "paused", "payload": {"n": n}} for n in range(20)]
    )
    assert (await post.deliver("other")).state == "succeeded"

    test = await post.client.test_endpoint("paused", {"n": "test"})
    assert (await post.client.result(test, 60))["body"] == "OK"
    assert [json.loads(r.body) for r in post.sink.received if r.path == "/p"] == [{"n": "test"}]
    with pytest.raises(PayloadInvalid):
        await post.client.test_endpoint("paused", {})
    [reason, *_] = await post.client.explain(jobs[0].job_id)
    assert reason.reason == "paused" and "they are down" in reason.explanation

    await post.client.resume_endpoint("paused")
    ended = [await post.ended(job.job_id) for job in jobs]
    assert {(job.state, job.attempt) for job in ended} == {("succeeded", 1)}
    for call in (post.client.pause_endpoint, post.client.resume_endpoint):
        with pytest.raises(NotFound):
            await call("nobody")


async def test_pauses_at_any_moment_lose_nothing(post: Post, database: str) -> None:
    """Pauses and resumes race with claims, and with producers; no job is stranded or repeated."""
    await post.endpoint("raced", {"url": post.sink.url}, max_concurrency=50)
    jobs = []
    for _ in range(6):
        jobs += await post.client.enqueue_many([RACED] * 20)
        await post.client.pause_endpoint("raced")
        jobs += await post.client.enqueue_many([RACED] * 5)
        await asyncio.sleep(0)

        async def are_aside() -> bool:
            return not run(
                database,
                "select from jobq_private.job where state in ('queued', 'running')"
                " and run_at <= now()",
            )

        await until_async(are_aside, "for what waits to be put aside, and what runs to end")
        _, late = await asyncio.gather(
            post.client.resume_endpoint("raced"), post.client.enqueue_many([RACED] * 5)
        )
        jobs += late
    ended = [await post.ended(job.job_id) for job in jobs]
    # One that did not get its turn in time is given back, uncounted.
    assert {(job.state, job.attempts) for job in ended} == {("succeeded", 1)}
    assert len(post.sink.received) == len(jobs)
    assert run(database, "select from jobq_private.parked_job") == []


async def test_a_job_claimed_while_somebody_resumes_is_not_stranded(
    post: Post, database: str
) -> None:
    """The claim comes between the two halves of a resume that has not been committed."""
    await post.endpoint("halved", {"url": post.sink.url})
    await post.client.pause_endpoint("halved")
    with psycopg.connect(database) as other:
        other.execute("select jobq.resume_endpoint('halved')")
        job = await post.client.enqueue("halved")
        assert run(database, "select * from jobq.claim('{default}', 'w', 9)") == []
        assert run(database, "select from jobq_private.parked_job") == []
    assert (await post.ended(job.job_id)).state == "succeeded"


async def test_pause_resume_and_test_over_http(post: Post, database: str) -> None:
    await post.endpoint("e", {"url": f"{post.sink.url}/mirror"})
    async with opened(database) as api:

        async def ask(action: str, **body: Any) -> tuple[int, Any]:
            answer = await api.ask("POST", f"/endpoints/{action}", json=body)
            return answer.status_code, answer.json()

        assert await ask("e/pause", reason="why") == (200, {"endpoint": "e", "is_paused": True})
        shown = (await api.ask("GET", "/endpoints/e")).json()
        assert shown["pause_reason"] == "why" and shown["paused_at"]
        status, made = await ask("e/test", input={"n": 1.10})
        assert status == 201
        result = await post.client.result(made["job_id"], 60)
        assert json.loads(result["body"]) == {"n": 1.1}
        job = await post.client.enqueue("e")

        async def is_aside() -> bool:
            return run(database, "select job_id from jobq_private.parked_job") == [(job.job_id,)]

        await until_async(is_aside, "for the job to be put aside")
        answer = {"endpoint": "e", "is_paused": False, "jobs": 1}
        assert await ask("e/resume") == (200, answer)
        assert (await api.ask("GET", "/endpoints/e")).json()["paused_at"] is None
        for action in ("pause", "resume", "test"):
            status, said = await ask(f"nobody/{action}")
            assert (status, said["error"]["code"]) == (404, "ENDPOINT_NOT_FOUND")


SPECS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "HTTP": (
        {
            "url": "https://a.example/{{config.path}} x/{{input.n}}?k={{secret.key}}#part",
            "headers": {"Authorization": "Bearer {{secret.key}}"},
            "body_template": {"n": "{{input.n}}", "key": "{{secret.key}}", "job": "{{job.id}}"},
            "sign_with": "key",
        },
        {
            "method": "POST",
            "url": "https://a.example/p%20x/1.10?k=***",
            "body": '{"n":1.10,"job":"00000000-0000-0000-0000-000000000000","key":"***"}',
        },
    ),
    "KAFKA": (
        {
            "bootstrap_servers": "{{config.path}}:9092",
            "topic": "t",
            "key_template": "{{input.n}}",
            "headers": {"a": "{{secret.key}}"},
        },
        {"bootstrap_servers": "p:9092", "topic": "t", "key": "1.10", "value": '{"n":1.10}'},
    ),
    "REDIS_STREAM": (
        {"redis_url": "redis://:{{secret.key}}@a.example", "stream": "s", "max_len": 7},
        {"redis_url": "redis://:***@a.example"},
    ),
}


@pytest.mark.parametrize("kind", SPECS)
async def test_a_preview_shows_what_would_be_sent_but_no_secret(
    post: Post, database: str, kind: str
) -> None:
    spec, wanted = SPECS[kind]
    await post.client.put_secret("key", "canary", keyring=Keyring([KEY]))
    await post.client.put_config("c", {"path": "p"})
    await post.client.put_payload_spec("input", {"type": "object", "required": ["n"]})
    await post.endpoint("e", spec, type=kind, config="c", payload_spec="input")
    async with opened(database) as api:
        given = b'{"input": {"n": 1.10}}'
        answer = await api.ask("POST", "/endpoints/e/preview", content=given)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        refused = await api.ask("POST", "/endpoints/e/preview")
        missing = await api.ask("POST", "/endpoints/nobody/preview")
    assert "canary" not in answer.text
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["type"] == kind
    if kind == "HTTP":
        headers = shown["headers"]
        assert headers["authorization"] == "Bearer ***"
        assert headers["webhook-signature"] == "***"
        assert headers["jobq-attempt"] == "1"
    elif kind == "KAFKA":
        assert (shown["headers"]["a"], shown["headers"]["jobq-attempt"]) == ("***", "1")
    else:
        assert shown["command"][:7] == ["XADD", "s", "MAXLEN", "~", "7", "*", "n"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        422,
        "INPUT_VALIDATION_FAILED",
    )
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "ENDPOINT_NOT_FOUND")
    assert post.sink.received == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://É.example:80/ x/é?q= [#part", "http://xn--9ca.example/%20x/%C3%A9?q=%20["),
        ("http://a.example:8080", "http://a.example:8080/"),
        ("http://a.example/***/a b?k=***#***", "http://a.example/***/a%20b?k=***"),
        ("http://***:***/a b#c", "http://***:***/a%20b"),
        ("***", "***"),
        ("***/a b", "***/a%20b"),
        ("***?q=a b", "***?q=a%20b"),
    ],
)
def test_a_preview_shows_the_url_that_is_sent(url: str, shown: str) -> None:
    assert sent(url) == shown


@pytest.mark.parametrize("to", ["a\r\nx-evil: 1", "ünïcode"])
async def test_a_preview_refuses_what_could_not_be_sent(post: Post, database: str, to: str) -> None:
    await post.endpoint("e", {"url": post.sink.url, "headers": {"x-to": "{{input.to}}"}})
    await post.client.put_config("place", {"url": "http://[::1/"})
    await post.endpoint("f", {"url": "{{config.url}}"}, config="place")
    async with opened(database) as api:
        for name in ("e", "f"):
            path = f"/endpoints/{name}/preview"
            answer = await api.ask("POST", path, json={"input": {"to": to}})
            assert (answer.status_code, answer.json()["error"]["code"]) == (422, "REQUEST_INVALID")


async def test_a_preview_says_why_a_delivery_would_fail(post: Post, database: str) -> None:
    await post.endpoint("e", {"url": "https://a.example/{{input.n}}"})
    async with opened(database) as api:
        answer = await api.ask("POST", "/endpoints/e/preview", json={"input": {}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        422,
        "TEMPLATE_RESOLUTION_FAILED",
    )


async def test_an_endpoint_tells_how_its_deliveries_went(post: Post, database: str) -> None:
    await post.endpoint("e", {"url": f"{post.sink.url}/flaky/503"}, max_attempts=2)
    await post.deliver("e")
    found = await post.client.endpoint_stats("e")
    assert (found.attempts, found.success_rate, found.failures) == (2, 0.5, {"HTTP_ERROR": 1})
    assert found.p50_ms is not None and found.p99_ms is not None
    async with opened(database) as api:
        answer = await api.ask("GET", "/endpoints/e/stats?period_ms=60000")
        assert (answer.json()["attempts"], answer.json()["failures"]) == (2, {"HTTP_ERROR": 1})
        assert (await api.ask("GET", "/endpoints/e/stats?period_ms=1")).status_code == 400
        assert (await api.ask("GET", "/endpoints/nobody/stats")).status_code == 404
    done = await asyncio.to_thread(
        CliRunner().invoke, main, ["endpoints", "stats", "e", "--json", "--database", database]
    )
    assert json.loads(done.output)["success_rate"] == 0.5


async def test_the_command_line_pauses_resumes_and_tests(post: Post, database: str) -> None:
    await post.endpoint("e", {"url": f"{post.sink.url}/mirror"})
    await post.endpoint("broken", {"url": f"{post.sink.url}/status/500"})

    async def jobq(*words: str) -> tuple[int, str]:
        environment = {"DATABASE_URL": database}
        done = await asyncio.to_thread(CliRunner().invoke, main, ["endpoints", *words],
                                       env=environment)  # fmt: skip
        return done.exit_code, done.output

    assert await jobq("pause", "e", "--reason", "they are down") == (0, "")
    status, listed = await jobq()
    assert status == 0 and "they are down" in listed
    status, said = await jobq("test", "e", '{"n": 1}')
    assert status == 0 and json.loads(json.loads(said)["body"]) == {"n": 1}
    assert await jobq("resume", "e") == (0, "")
    assert [json.loads(row)["paused_at"] for row in (await jobq("--json"))[1].splitlines()] == [
        None,
        None,
    ]
    status, said = await jobq("test", "broken")
    assert status == 1 and "HTTP_ERROR" in said
    status, said = await jobq("preview", "e", '{"n": 2}')
    assert status == 0 and json.loads(said)["body"] == '{"n":2}'
    status, said = await jobq("pause", "nobody")
    assert status == 1 and "ENDPOINT_NOT_FOUND" in said


def run(database: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(statement).fetchall()
