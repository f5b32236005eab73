"""Hooks around handlers, handlers that take batches, and coroutines that a cancel interrupts."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from waiting import until_async

from jobq import AsyncClient, Client, Worker
from jobq.registry import JobContext, Permanent, Registry, Retry, Unable
from jobq.worker import loop_factory
from jobq_delivery import Deliverer, Guard

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from psycopg import AsyncConnection

    from jobq.models import Enqueued, Job


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


async def ended(client: AsyncClient, job_id: UUID) -> Job:
    async def has_ended() -> bool:
        return (await client.get(job_id)).is_finished

    await until_async(has_ended, "for the job to end")
    return await client.get(job_id)


def told(registry: Registry, *, is_awaited: bool) -> list[tuple[Any, ...]]:
    """Register hooks, and return what they write down."""
    said: list[tuple[Any, ...]] = []

    def note(*words: object) -> None:
        said.append((*words, threading.current_thread() is threading.main_thread()))

    async def before(context: JobContext) -> None:
        note("before", context.kind)

    async def after(context: JobContext, result: object) -> None:
        note("after", context.kind, result)

    def failed(context: JobContext, error: BaseException) -> None:
        note("error", context.kind, type(error).__name__)
        raise RuntimeError("a hook for errors that fails changes nothing")

    registry.before(before if is_awaited else lambda context: note("before", context.kind))
    registry.after(after)
    registry.on_error(failed)
    return said


@pytest.mark.parametrize("is_awaited", [True, False])
async def test_hooks_run_around_every_handler(
    database: str, client: AsyncClient, *, is_awaited: bool
) -> None:
    registry = Registry()
    said = told(registry, is_awaited=is_awaited)

    @registry.handler("coroutine")
    async def coroutine() -> int:
        return 1

    @registry.handler("thread")
    def thread(payload: dict[str, Any]) -> int:
        return 2

    @registry.handler("transaction", transactional=True)
    async def transaction(payload: Any, connection: AsyncConnection[Any]) -> int:
        return 4

    @registry.handler("fails")
    async def fails() -> None:
        raise Permanent("NO")

    async with Worker(database, registry):
        for handler in registry:
            await ended(client, (await client.enqueue(handler.kind)).job_id)
    assert said == [
        ("before", "coroutine", True), ("after", "coroutine", 1, True),
        ("before", "thread", is_awaited), ("after", "thread", 2, True),
        ("before", "transaction", True), ("after", "transaction", 4, True),
        ("before", "fails", True), ("error", "fails", "Permanent", True),
    ]  # fmt: skip


async def test_a_hook_can_refuse_what_the_handler_would_do(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    ran = []

    @registry.before
    def closed(context: JobContext) -> None:
        raise Permanent("CLOSED", f"no {context.kind} today")

    @registry.handler("a")
    def handler() -> None:
        ran.append("a")

    async with Worker(database, registry):
        job = await ended(client, (await client.enqueue("a")).job_id)
    assert (job.state, job.last_error_code, job.last_error) == ("dead", "CLOSED", "no a today")
    assert ran == []


async def test_whatever_a_hook_raises_fails_its_own_job(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.before
    async def exits(context: JobContext) -> None:
        raise SystemExit(4)

    @registry.handler("thread", max_attempts=1)
    def thread() -> None: ...

    @registry.handler("transaction", transactional=True, max_attempts=1)
    def transaction(payload: Any, connection: Any) -> None: ...

    async with Worker(database, registry):
        for handler in registry:
            job = await ended(client, (await client.enqueue(handler.kind)).job_id)
            assert (job.state, job.last_error_code) == ("dead", "ERROR")


async def test_no_hooks_run_for_jobs_without_a_handler(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.before
    def fails(context: JobContext) -> None:
        raise Permanent("CLOSED")

    async def other(payload: Any, context: JobContext) -> None:
        raise Unable("UNKNOWN_KIND", "no endpoint of this kind", in_=0)

    registry.otherwise(other)
    registry.handler("known")(lambda: None)
    unknown = (await client.enqueue("unknown", priority=1)).job_id
    known = (await client.enqueue("known")).job_id
    async with Worker(database, registry, concurrency=1):
        assert (await ended(client, known)).last_error_code == "CLOSED"
    assert (await client.get(unknown)).state == "queued"


async def test_hooks_run_around_deliveries(database: str, client: AsyncClient) -> None:
    registry = Registry()
    said = told(registry, is_awaited=True)
    await client.put_endpoint("hook", "HTTP", {"url": "http://127.0.0.1:9/"}, max_attempts=1)
    async with Deliverer(database, guard=Guard()) as deliverer:
        registry.otherwise(deliverer.deliver)
        async with Worker(database, registry):
            job = await ended(client, (await client.enqueue("hook")).job_id)
    assert job.last_error_code == "ADDRESS_REFUSED"
    assert said == [("before", "hook", True), ("error", "hook", "Permanent", True)]


@pytest.mark.parametrize("mode", ["coroutine", "thread"])
async def test_a_batch_is_done_by_one_call(database: str, client: AsyncClient, mode: str) -> None:
    registry = Registry()
    calls: list[list[int]] = []

    def outcomes(payloads: list[int], contexts: list[JobContext]) -> list[Any]:
        assert len(payloads) == len(contexts)
        calls.append(payloads)
        return [Permanent("ODD") if n % 2 else n * 10 for n in payloads]

    async def awaited(payloads: list[int], contexts: list[JobContext]) -> list[Any]:
        return outcomes(payloads, contexts)

    registry.handler("index", batch=4, batch_wait=0.2)(awaited if mode == "coroutine" else outcomes)
    jobs = await client.enqueue_many({"kind": "index", "payload": n} for n in range(10))
    async with Worker(database, registry, concurrency=20):
        all_jobs = [await ended(client, job.job_id) for job in jobs]
    assert sorted(len(call) for call in calls) == [2, 4, 4]
    assert [job.result for job in all_jobs[::2]] == [0, 20, 40, 60, 80]
    assert {job.last_error_code for job in all_jobs[1::2]} == {"ODD"}


@pytest.mark.parametrize("returned", [[1], "xx", Retry("later")])
async def test_a_batch_that_fails_fails_each_of_its_jobs(
    database: str, client: AsyncClient, returned: Any
) -> None:
    registry = Registry()

    @registry.handler("index", batch=2, batch_wait=60, max_attempts=1)
    def index(payloads: list[Any]) -> Any:
        if isinstance(returned, Retry):
            raise returned
        return returned

    jobs = await client.enqueue_many({"kind": "index"} for _ in range(2))
    async with Worker(database, registry):
        states = [(await ended(client, job.job_id)).last_error_code for job in jobs]
    assert states == ["RETRY" if isinstance(returned, Retry) else "ERROR"] * 2


async def test_a_job_that_cannot_be_read_is_in_no_batch(database: str, client: AsyncClient) -> None:
    jobs = await client.enqueue_many({"kind": "index", "payload": n} for n in ("x", 1, 2))
    registry = Registry()

    @registry.handler("index", batch=2, batch_wait=60, max_attempts=1)
    async def index(payloads: list[int]) -> list[int]:
        return payloads

    async with Worker(database, registry, declare=False):
        bad, *good = [await ended(client, job.job_id) for job in jobs]
    assert bad.last_error_code == "PAYLOAD_INVALID"
    assert [job.result for job in good] == [1, 2]


async def test_a_batch_leaves_a_job_half_of_its_timeout(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("index", batch=9, batch_wait=600, timeout=600)
    async def index(payloads: list[Any]) -> None: ...

    async with Worker(database, registry):
        jobs = [
            await client.enqueue("index"),
            await client.enqueue("index", timeout="10 s"),
        ]
        assert [(await ended(client, job.job_id)).state for job in jobs] == ["succeeded"] * 2


def test_a_batch_that_waits_for_nobody_begins_on_any_event_loop(database: str) -> None:
    registry = Registry()
    calls: list[int] = []

    @registry.handler("index", batch=4, batch_wait=0, max_attempts=1)
    async def index(payloads: list[Any]) -> None:
        calls.append(len(payloads))

    async def work() -> set[str]:
        async with AsyncClient(database) as client:
            jobs = await client.enqueue_many({"kind": "index"} for _ in range(6))
            async with Worker(database, registry, concurrency=20):
                return {(await ended(client, job.job_id)).state for job in jobs}

    for factory in {loop_factory(), asyncio.SelectorEventLoop}:
        with asyncio.Runner(loop_factory=factory) as runner:
            assert runner.run(work()) == {"succeeded"}
    assert calls == [4, 2, 4, 2]


async def test_a_batch_waits_for_no_more_jobs_than_the_worker_runs(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    calls: list[int] = []

    @registry.handler("index", batch=500, batch_wait=600)
    async def index(payloads: list[int]) -> None:
        calls.append(len(payloads))

    jobs = await client.enqueue_many({"kind": "index", "payload": n} for n in range(6))
    async with Worker(database, registry, concurrency=3):
        assert {(await ended(client, job.job_id)).state for job in jobs} == {"succeeded"}
    assert calls == [3, 3]


@pytest.mark.parametrize("takes_contexts", [True, False])
async def test_a_job_leaves_its_batch_when_its_time_is_up_and_the_last_one_ends_it(
    database: str, client: AsyncClient, takes_contexts: bool
) -> None:
    registry = Registry()
    begun, unwound = asyncio.Event(), asyncio.Event()

    async def alone(payloads: list[int]) -> None:
        assert len(payloads) == 2, "they are done together"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            unwound.set()

    async def with_contexts(payloads: list[int], contexts: list[JobContext]) -> None:
        await alone(payloads)

    handler = with_contexts if takes_contexts else alone
    registry.handler("index", batch=3, batch_wait=0.2)(handler)
    first = (await client.enqueue("index", 1, timeout="1 s", max_attempts=1)).job_id
    last = (await client.enqueue("index", 2)).job_id
    async with Worker(database, registry) as worker:
        await asyncio.wait_for(begun.wait(), 60)
        assert (await ended(client, first)).last_error_code == "TIMEOUT"
        assert not unwound.is_set(), "another job still waits for it"
        assert worker.running == 1, "its slot is free"
        await worker.stop(grace=0)
        assert unwound.is_set()
    assert (await client.get(last)).state == "queued"


async def test_a_coroutine_that_allows_it_is_interrupted_when_its_job_is_cancelled(
    database: str, client: AsyncClient
) -> None:
    registry = Registry()
    started, unwound = asyncio.Event(), asyncio.Event()

    @registry.handler("long", interrupt_on_cancel=True)
    async def handler() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            unwound.set()

    async with Worker(database, registry):
        job_id = (await client.enqueue("long")).job_id
        await started.wait()
        assert await client.cancel(job_id) == "cancel_requested"
        job = await ended(client, job_id)
        await asyncio.wait_for(unwound.wait(), 60)
    assert job.state == "cancelled"


def test_what_cannot_be_is_refused() -> None:
    registry = Registry()
    with pytest.raises(TypeError, match="a thread cannot be interrupted"):

        @registry.handler("a", interrupt_on_cancel=True)
        def thread() -> None: ...

    with pytest.raises(TypeError, match="must take a list"):

        @registry.handler("b", batch=2)  # type: ignore[arg-type]
        async def no_list(payload: int) -> None: ...

    with pytest.raises(TypeError, match="cannot be transactional or in a process"):

        @registry.handler("c", batch=2, process=True)
        def process(payloads: list[int]) -> None: ...

    with pytest.raises(TypeError, match="payload: 'contexts', not context"):

        @registry.handler("d", batch=2)
        async def context(payloads: list[int], context: JobContext) -> None: ...


@pytest.mark.parametrize(
    "options",
    [
        {"batch": "x"},
        {"batch": True},
        {"batch": 2.5},
        {"batch": -3},
        {"batch": 2, "batch_wait": -1},
        {"batch": 2, "batch_wait": float("inf")},
    ],
)
def test_a_batch_is_a_number_of_jobs_and_waits_for_seconds(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="a number of"):

        @Registry().handler("a", **options)  # type: ignore[untyped-decorator]
        async def handler(payloads: list[int]) -> None: ...


# ---- around enqueueing


def test_hooks_run_around_enqueueing(database: str) -> None:
    seen: list[Any] = []
    registry = Registry()

    @registry.before_enqueue
    def add_tenant(job: dict[str, Any]) -> None:
        job["metadata"] = {**(job.get("metadata") or {}), "tenant": "acme"}

    @registry.after_enqueue
    def note(job: dict[str, Any], enqueued: Enqueued) -> None:
        seen.append((job["kind"], enqueued.job_id))

    with Client(database, registry=registry) as client:
        one = client.enqueue("a", {"n": 1}, metadata={"own": 2})
        two, three = client.enqueue_many([{"kind": "b"}, {"kind": "c", "idempotency_key": "k"}])
        assert client.get(one.job_id).metadata == {"own": 2, "tenant": "acme"}
        assert client.get(three.job_id).metadata == {"tenant": "acme"}
        assert seen == [("a", one.job_id), ("b", two.job_id), ("c", three.job_id)]

        @registry.before_enqueue
        def refuse(job: dict[str, Any]) -> None:
            raise ValueError(job["kind"])

        with pytest.raises(ValueError, match=r"^d$"):
            client.enqueue("d")
        assert [job.kind for job in client.list_jobs()].count("d") == 0
    with Client(database) as other:
        assert other.get(other.enqueue("e").job_id).metadata == {}


async def test_hooks_run_around_enqueueing_of_coroutines(database: str) -> None:
    seen: list[Any] = []
    registry = Registry()
    registry.before_enqueue(lambda job: seen.append(job["kind"]))
    registry.after_enqueue(lambda _, enqueued: seen.append(enqueued.created))
    async with AsyncClient(database, registry=registry) as client:
        await client.enqueue("a")
        await client.enqueue_many([{"kind": "b"}])
    assert seen == ["a", True, "b", True]
