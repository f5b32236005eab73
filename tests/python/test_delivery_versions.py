"""Jobs are delivered by the version of their endpoint that held when they were made."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from delivery_sink import posting
from http_api import opened
from psycopg.types.json import Jsonb
from waiting import until_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from delivery_sink import Post

    Connection = psycopg.Connection[tuple[Any, ...]]

JOBS = int(os.environ.get("JOBQ_TEST_VERSIONED_JOBS", "100"))


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


async def test_a_change_holds_for_the_next_job_at_once(post: Post) -> None:
    for version in (1, 2, 1):
        await post.endpoint("moved", {"url": f"{post.sink.url}/v{version}"})
        assert (await post.deliver("moved")).state == "succeeded"
    assert [r.path for r in post.sink.received] == ["/v1", "/v2", "/v1"]


async def test_a_changed_payload_spec_holds_for_the_next_job_at_once(post: Post) -> None:
    for name in ("a", "b"):
        await post.client.put_payload_spec("input", {"type": "object", "required": [name]})
        await post.endpoint("checked", {"url": post.sink.url}, payload_spec="input")
        assert (await post.deliver("checked", {name: 2})).state == "succeeded"


async def test_a_job_made_before_the_payload_spec_changed_is_still_good(
    post: Post, database: str
) -> None:
    await post.client.put_payload_spec("input", {"type": "object", "required": ["a"]})
    await post.endpoint("checked", {"url": post.sink.url}, payload_spec="input")
    later = datetime.now(UTC) + timedelta(hours=1)
    old = await post.client.enqueue("checked", {"a": 1}, run_at=later)
    await post.client.put_payload_spec("input", {"type": "object", "required": ["b"]})
    run(database, "update jobq_private.job set run_at = now()")
    assert (await post.ended(old.job_id)).state == "succeeded"


async def test_the_transaction_of_a_job_may_be_older_than_the_change(
    post: Post, database: str
) -> None:
    await post.endpoint("moved", {"url": f"{post.sink.url}/v1"})
    with psycopg.connect(database) as connection:
        connection.execute("select now()")
        await post.endpoint("moved", {"url": f"{post.sink.url}/v2"})
        [job_id] = connection.execute("select jobq.enqueue('moved')").fetchone() or ()
    assert (await post.ended(job_id)).result["endpoint_version"] == 2
    assert [r.path for r in post.sink.received] == ["/v2"]


async def test_retries_stay_those_that_the_job_was_made_with(post: Post) -> None:
    spec = {"url": f"{post.sink.url}/status/500"}
    await post.endpoint("retried", spec, max_attempts=3, retry_initial_delay="1 h",
                        retry_max_delay="1 h", retry_jitter=0.0)  # fmt: skip
    held = await post.client.enqueue("retried", run_at=datetime.now(UTC) + timedelta(seconds=0.5))
    await post.endpoint("retried", spec, max_attempts=3, retry_initial_delay="1 ms")

    async def has_failed() -> bool:
        return (await post.client.get(held.job_id)).state == "retrying"

    await until_async(has_failed, "for the first attempt")
    job = await post.client.get(held.job_id)
    assert job.run_at - datetime.now(UTC) > timedelta(minutes=59)


async def test_the_type_of_an_endpoint_stays_with_its_jobs(post: Post, database: str) -> None:
    await post.endpoint("reused", {"url": post.sink.url})
    job = await post.deliver("reused")
    async with opened(database) as api:

        async def seen() -> set[str]:
            paths = (f"/jobs/{job.job_id}", f"/executions/{job.job_id}")
            return {(await api.ask("GET", path)).json()["endpoint_type"] for path in paths}

        await post.client.delete_definition("endpoint", "reused")
        assert await seen() == {"HTTP"}
        spec = {"redis_url": "redis://r.example", "stream": "s", "fields_template": {"a": "b"}}
        await post.endpoint("reused", spec, type="REDIS_STREAM")
        assert await seen() == {"HTTP"}


async def test_a_redriven_job_goes_where_it_was_made_for(post: Post) -> None:
    await post.endpoint("again", {"url": f"{post.sink.url}/flaky/500"})
    job = await post.deliver("again")
    assert job.state == "dead"
    await post.endpoint("again", {"url": f"{post.sink.url}/elsewhere"})
    await post.client.redrive(job.job_id)
    assert (await post.ended(job.job_id)).state == "succeeded"
    assert [r.path for r in post.sink.received] == ["/flaky/500"] * 2


async def test_jobs_that_are_no_deliveries_have_no_version(post: Post, database: str) -> None:
    await post.client.enqueue("plain", run_at=datetime.now(UTC) + timedelta(hours=1))
    assert run(database, "select delivery_version from jobq_private.job") == [(None,)]


async def test_nobody_changes_what_a_job_is_delivered_by(post: Post, database: str) -> None:
    await post.client.enqueue("plain", run_at=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(psycopg.DatabaseError) as raised:
        run(database, "update jobq_private.job set delivery_version = 3")
    assert raised.value.sqlstate == "JQ002"


@pytest.mark.parametrize("others", [0, 1])
async def test_what_is_checked_is_what_is_pinned(
    connect: Callable[[], Connection], others: int
) -> None:
    """The payload spec changes while an enqueue, checked already, waits for its key.

    One statement has read the version and checked the payload, so the job goes to that version,
    which its payload fits. What is enqueued after the change is checked by the new one.
    """
    first, second, other = connect(), connect(), connect()
    other.execute("select jobq.put_payload_spec('input', '{\"required\": [\"a\"]}')")
    spec = Jsonb({"url": "https://a.example"})
    other.execute("select jobq.put_endpoint('e', 'HTTP', %s, 'input')", [spec])
    version = "select delivery_version from jobq_private.kind where kind = 'e'"
    checked_by = other.execute(version).fetchall()
    one = {"kind": "e", "payload": {"a": 1}}
    jobs = [{**one, "idempotency_key": "k"}, *([one] * others)]
    first.execute("begin")
    first.execute("select jobq.enqueue('e', '{\"a\": 1}', idempotency_key => 'k')")
    waiting = asyncio.create_task(
        asyncio.to_thread(second.execute, "select * from jobq.enqueue_many(%s)", [Jsonb(jobs)])
    )
    pid = second.info.backend_pid

    async def waits() -> bool:
        found = other.execute("select wait_event_type from pg_stat_activity where pid = %s", [pid])
        return found.fetchall() == [("Lock",)]

    await until_async(waits, "for the enqueue to wait for the key")
    other.execute("select jobq.put_payload_spec('input', '{\"required\": [\"b\"]}')")
    assert other.execute(version).fetchall() != checked_by
    first.execute("rollback")
    await waiting
    pinned = other.execute("select distinct delivery_version from jobq_private.job").fetchall()
    assert pinned == checked_by
    with pytest.raises(psycopg.DatabaseError) as refused:
        other.execute("select jobq.enqueue('e', '{\"a\": 1}')")
    assert refused.value.sqlstate == "JQ006"


async def test_every_job_goes_to_the_version_that_held_when_it_was_made(
    post: Post, database: str
) -> None:
    """Definitions change all the time while jobs are made, in two ways, and delivered."""
    expected: dict[str, set[str]] = {}
    made = asyncio.Event()

    async def put(number: int) -> None:
        spec = {
            "url": f"{post.sink.url}/v{number}",
            "body_template": {"job": "{{input.job}}"},
        }
        await post.endpoint("storm", spec, max_concurrency=50)

    async def change() -> None:
        number = 1
        while not made.is_set():
            number += 1
            await put(number)

    def enqueue(first: int) -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            for at in range(first, JOBS, 40):
                names = [f"{at + n}" for n in range(20)]
                rows = connection.execute(
                    "select jobq.enqueue('storm', jsonb_build_object('job', n))"
                    " from unnest(%s::text[]) as n"
                    if at % 80 < 40
                    else "select job_id from jobq.enqueue_many((select jsonb_agg("
                    "jsonb_build_object('kind', 'storm', 'payload', jsonb_build_object("
                    "'job', n))) from unnest(%s::text[]) as n))",
                    [names],
                ).fetchall()
                for (job_id,) in rows:
                    [(name, version)] = connection.execute(
                        "select j.payload ->> 'job', v.document ->> 'endpoint_version'"
                        " from jobq.job as j join jobq_private.definition_version as v"
                        " on v.type = 'delivery' and v.name = j.kind"
                        " and v.version = j.delivery_version where job_id = %s",
                        [job_id],
                    ).fetchall()
                    expected[name] = {f"/v{version}"}

    await put(1)
    changing = asyncio.create_task(change())
    await asyncio.gather(asyncio.to_thread(enqueue, 0), asyncio.to_thread(enqueue, 20))
    made.set()
    await changing

    async def are_delivered() -> bool:
        return len(post.sink.received) >= len(expected)

    await until_async(are_delivered, "for every delivery", 300)
    seen: dict[str, set[str]] = {}
    for request in post.sink.received:
        name = request.body.decode().split('"')[3]
        seen.setdefault(name, set()).add(request.path)
    assert seen == expected
    assert len({path for paths in seen.values() for path in paths}) > 5


def run(database: str, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement as the superuser and return its rows, if it has any."""
    with psycopg.connect(database, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
