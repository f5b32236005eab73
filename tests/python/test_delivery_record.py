"""What an attempt runs with, and what is kept of it."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
import pytest
from delivery_sink import KEY, LOCAL, posting
from http_api import opened
from waiting import until_async

from jobq import AsyncClient, Job, JobContext, Registry, Worker
from jobq.errors import Conflict, InvalidArgument
from jobq_delivery import Deliverer, Keyring, SecretKeyError
from jobq_delivery.endpoint import Endpoints
from jobq_delivery.keyring import Vault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from delivery_sink import Post


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


async def test_attempts_have_the_shapes_of_the_documents(post: Post, database: str) -> None:
    await post.endpoint("flaky", {"url": f"{post.sink.url}/flaky/503"}, max_attempts=2)
    job = await post.deliver("flaky")
    first, second = await post.client.attempts(job.job_id)
    assert (first.error_code, first.error_details) == ("HTTP_ERROR", {"status_code": 503})
    assert second.error_details is None
    async with opened(database) as api:
        answer = await api.ask("GET", f"/executions/{job.job_id}/attempts")
        failed, succeeded = answer.json()["items"]
        logs = (await api.ask("GET", f"/executions/{job.job_id}/logs")).json()["items"]
    error = {"type": "HTTP_ERROR", "message": "status 503", "status_code": 503}
    assert (failed["status"], failed["error"], failed["output"]) == ("FAILED", error, None)
    assert (succeeded["status"], succeeded["error"]) == ("SUCCESS", None)
    assert succeeded["output"] == {**job.result, "status_code": 200, "body": ""}
    assert failed["duration_ms"] >= 0
    assert [line["level"] for line in logs] == ["WARN", "INFO"]


async def test_an_attempt_in_flight_keeps_the_config_that_it_started_with(post: Post) -> None:
    await post.client.put_config("place", {"path": "/once-held", "name": "old"})
    body = {"name": "{{config.name}}"}
    url = f"{post.sink.url}{{{{config.path}}}}"
    spec = {"url": url, "body_template": body, "timeout_ms": 60_000}
    await post.endpoint("held", spec, config="place", max_attempts=2)
    job = await post.client.enqueue("held")

    async def has_arrived() -> bool:
        return bool(post.sink.received)

    await until_async(has_arrived, "for the first attempt")
    await post.client.put_config("place", {"path": "/elsewhere", "name": "new"})
    post.sink.hold.set()  # the first attempt is hung up on, so there is a second

    async def has_ended() -> bool:
        return (await post.client.get(job.job_id)).is_finished

    await until_async(has_ended, "for the second attempt")
    ended = await post.client.get(job.job_id)
    assert (ended.state, ended.attempts) == ("succeeded", 2)
    assert [r.path for r in post.sink.received] == ["/once-held"] * 2
    assert {r.body for r in post.sink.received} == {b'{"name":"old"}'}
    assert (ended.result["config_version"], ended.result["endpoint_version"]) == (1, 1)


async def test_an_execution_keeps_its_config_though_another_worker_goes_on(
    database: str,
) -> None:
    """A worker that has never seen the old config does the second attempt."""
    async with AsyncClient(database) as client:
        async with posting(database) as post:
            await client.put_config("place", {"name": "old"})
            spec = {"url": f"{post.sink.url}/status/500", "body_template": "{{config.name}}"}
            delay = {"retry_initial_delay": "1 h", "retry_max_delay": "1 h"}
            await post.endpoint("moved", spec, config="place", max_attempts=2, **delay)
            job = await client.enqueue("moved")
            later = await client.enqueue("moved", run_at=datetime.now(UTC) + timedelta(days=1))

            async def has_failed() -> bool:
                return (await client.get(job.job_id)).state == "retrying"

            await until_async(has_failed, "for the first attempt")
        await client.put_config("place", {"name": "new"})
        context = context_of("moved", later.job_id, 1, datetime.now(UTC))
        endpoints = Endpoints(client, 60)
        newest = await endpoints.get(context)
        assert newest is not None
        assert newest.config_entries == {"name": "new"}
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("update jobq_private.job set run_at = now() where attempt = 1")
            connection.execute("select from jobq.claim_job(%s, 'w')", [job.job_id])
        made_at = (await client.get(job.job_id)).created_at
        again = await endpoints.get(context_of("moved", job.job_id, 2, made_at))
        assert again is not None
        assert again.config_entries == {"name": "old"}
        assert await endpoints.get(context) is newest


class Counting:
    """A client that counts its calls."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.calls = 0

    async def run(self, call: Any) -> Any:
        self.calls += 1
        return await self.client.run(call)


async def test_endpoints_and_configs_are_asked_for_once_in_a_lifetime(database: str) -> None:
    async with AsyncClient(database) as client:
        await client.put_endpoint("e", "HTTP", {"url": "http://a.example/1"})
        counting = Counting(client)
        endpoints = Endpoints(counting, lifetime=3600)  # type: ignore[arg-type]
        context = context_of("e", uuid4(), 1, datetime.now(UTC))
        found = await asyncio.gather(*(endpoints.get(context) for _ in range(50)))
        assert len({id(endpoint) for endpoint in found}) == 1
        assert counting.calls == 1
        await client.put_endpoint("e", "HTTP", {"url": "http://a.example/2"})
        assert await endpoints.get(context) is found[0]
        forgetful = Endpoints(counting, lifetime=0)  # type: ignore[arg-type]
        for version in (2, 2):
            newest = await forgetful.get(context_of("e", uuid4(), 1, datetime.now(UTC), 2))
            assert newest is not None
            assert newest.version == version
        assert counting.calls == 3


@pytest.mark.parametrize("name", ["JOBQ_CONFIG_CACHE_SECONDS", "JOBQ_SECRET_CACHE_SECONDS"])
def test_a_lifetime_that_is_no_number_is_a_clear_error(
    database: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for text in ("soon", "-1", "inf"):
        monkeypatch.setenv(name, text)
        with pytest.raises(InvalidArgument, match=name):
            Deliverer(database, keyring=Keyring())


async def test_the_environment_sets_lifetimes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_CONFIG_CACHE_SECONDS", "0")
    async with posting(database) as post:
        for version in (1, 2):
            await post.endpoint("e", {"url": f"{post.sink.url}/v{version}"})
            assert (await post.deliver("e")).result["endpoint_version"] == version


async def test_two_versions_of_an_endpoint_are_known_side_by_side(database: str) -> None:
    async with AsyncClient(database) as client:
        await client.put_endpoint("e", "HTTP", {"url": "http://a.example/1"})
        await client.put_endpoint("e", "HTTP", {"url": "http://a.example/2"})
        counting = Counting(client)
        endpoints = Endpoints(counting, 60)  # type: ignore[arg-type]
        versions = []
        for version in (2, 1) * 3:
            endpoint = await endpoints.get(context_of("e", uuid4(), 1, datetime.now(UTC), version))
            assert endpoint is not None
            versions.append(endpoint.version)
        assert versions == [2, 1] * 3
        assert counting.calls == 2


def test_a_secret_is_decrypted_once_in_a_lifetime() -> None:
    class Counted(Keyring):
        count = 0

        def decrypt(self, name: str, ciphertext: bytes, key: str) -> str:
            self.count += 1
            return super().decrypt(name, ciphertext, key)

    keyring = Counted([KEY])
    sealed = {name: seal(keyring, name, value) for name, value in (("a", "x"), ("b", "y"))}
    vault = Vault(keyring, lifetime=3600)
    assert [vault.open(sealed) for _ in range(3)] == [{"a": "x", "b": "y"}] * 3
    assert keyring.count == 2
    assert vault.open({"a": seal(keyring, "a", "changed")}) == {"a": "changed"}
    with pytest.raises(SecretKeyError):
        vault.open({"b": sealed["a"]})
    count = keyring.count
    forgetful = Vault(keyring, lifetime=0)
    for _ in range(3):
        forgetful.open(sealed)
    assert keyring.count == count + 6


def seal(keyring: Keyring, name: str, value: str) -> dict[str, str]:
    """Return a secret as the database tells it."""
    ciphertext, key = keyring.encrypt(name, value)
    return {"ciphertext": b64encode(ciphertext).decode(), "key_id": key}


def context_of(
    kind: str, job_id: Any, attempt: int, created_at: datetime, version: int = 1
) -> JobContext:
    return JobContext(
        job_id=job_id,
        attempt=attempt,
        kind=kind,
        queue="default",
        metadata={},
        max_attempts=2,
        idempotency_key=None,
        run_at=created_at,
        created_at=created_at,
        deadline=0.0,
        recorder=None,  # type: ignore[arg-type]
        delivery_version=version,
    )


async def test_a_worker_with_a_handler_of_an_endpoints_name_is_told(database: str) -> None:
    registry = Registry()
    registry.handler("race", max_attempts=7)(lambda _payload: None)
    async with AsyncClient(database, registry=registry) as client:
        before = await client.put_endpoint("race", "HTTP", {"url": "http://a.example"})
        worker = Worker(database, registry)
        with pytest.raises(Conflict, match="the kind is an endpoint"):
            await worker.run()
        assert await client.get_definition("endpoint", "race") == before


async def done(client: AsyncClient, job_id: UUID) -> Job:
    """Wait for a job's end."""

    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.is_finished else None

    job = await until_async(look, f"for the end of {job_id}")
    assert job is not None
    return job


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_worker_without_key_or_driver_leaves_jobs_to_others(
    database: str, monkeypatch: pytest.MonkeyPatch, is_told: bool
) -> None:
    monkeypatch.delenv("JOBQ_SECRET_KEYS", raising=False)
    # As if not installed, or as if it were and could not be imported.
    missing = "redis" if is_told else "jobq_delivery.redis_stream"
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(
        "jobq.worker.tuning.UNKNOWN_KIND_SECONDS", 3600.0
    )  # however slow the machine is
    kinds = ["driverless", "keyless"]
    lacking, able = Registry(), Registry()
    async with AsyncClient(database) as client, Deliverer(database, guard=LOCAL) as deliverer:
        lacking.otherwise(deliverer.deliver, beyond=deliverer.beyond if is_told else None)
        lacking.handler("other")(lambda _payload: None)
        for kind in kinds:
            able.handler(kind)(lambda _payload: "done")
        await client.put_secret("key", "canary", keyring=Keyring([KEY]))
        spec = {"url": "http://a.example", "headers": {"a": "{{secret.key}}"}}
        await client.put_endpoint("keyless", "HTTP", spec)
        await client.put_endpoint("keyless-2", "HTTP", spec)
        await client.put_endpoint(
            "driverless", "REDIS_STREAM", {"redis_url": "redis://a.example", "stream": "s"}
        )
        ids = [(await client.enqueue(kind, priority=9)).job_id for kind in kinds]

        async with Worker(database, lacking, poll=0.1, metrics_port=0) as worker:

            async def is_said() -> bool:
                reasons = {(await client.explain(job_id))[0].reason for job_id in ids}
                lacks = worker.health()["lacks"]
                return reasons == {"unknown_kind"} and isinstance(lacks, dict) and len(lacks) == 2

            await until_async(is_said)
            lacks = worker.health()["lacks"]
            assert isinstance(lacks, dict)
            assert lacks.keys() == {"SECRET_KEY_MISSING", "NO_DRIVER"}
            named = {code: text.partition(": ")[0] for code, text in lacks.items()}
            assert named["NO_DRIVER"] == "driverless"
            if is_told:
                assert named["SECRET_KEY_MISSING"] == "keyless, keyless-2"
                metrics = worker.metrics_text() or b""
                assert b'worker_kinds_left{code="SECRET_KEY_MISSING"} 2.0' in metrics
            ids += [(await client.enqueue(kind, priority=9)).job_id for kind in kinds]
            await done(client, (await client.enqueue("other")).job_id)
            with psycopg.connect(database) as connection:
                rows = connection.execute(
                    """select v.state, j.previous_state, v.attempts, v.run_at <= now()
                    from jobq_private.job as j join jobq.job as v using (job_id)
                    order by job_id"""
                ).fetchall()
            claimed_once = [("queued", None if is_told else "running", 0, True)] * 2
            assert rows == [*claimed_once, *[("queued", None, 0, True)] * 2]
            async with Worker(database, able):
                for job_id in ids:
                    assert (await done(client, job_id)).result == "done"
