"""Jobs that are functions of the database, run by a worker."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from waiting import until_async

from jobq import AsyncClient, Registry, Worker

if TYPE_CHECKING:
    from typing import Any
    from uuid import UUID


async def test_a_worker_has_functions_of_the_database_run(database: str, connect: Any) -> None:
    connection = connect()
    connection.execute("create schema app")
    connection.execute(
        "create function app.double(payloads jsonb[]) returns jsonb[] language sql return"
        " array(select to_jsonb((p #>> '{}')::int * 2) from unnest(payloads) as p)"
    )
    registry = Registry()
    registry.handler("plain")(lambda: "plain")

    async with AsyncClient(database) as client:
        await client.put_kind("double", run="app.double")

        async def is_done(job_id: UUID) -> bool:
            return (await client.get(job_id)).is_finished

        async def result(kind: str, payload: object) -> object:
            job_id = (await client.enqueue(kind, payload)).job_id
            await until_async(lambda: is_done(job_id), f"for {kind}")
            return (await client.get(job_id)).result

        async with Worker(database, registry, poll=60):
            assert await result("double", 4) == 8
            assert await result("plain", {}) == "plain"
            assert await result("double", 5) == 10
            job = await client.enqueue("double", "no number", max_attempts=1)
            await until_async(lambda: is_done(job.job_id), "for the failure")
        assert (await client.get(job.job_id)).last_error_code == "22P02"


async def test_until_empty_waits_for_functions_of_the_database(database: str, connect: Any) -> None:
    connection = connect()
    connection.execute(
        "create function public.same(payload jsonb) returns jsonb language sql return payload"
    )
    registry = Registry()
    registry.handler("plain")(lambda: "plain")
    async with AsyncClient(database) as client:
        await client.put_kind("same", run="public.same")
        jobs = [(await client.enqueue("same", n)).job_id for n in range(3)]
        async with asyncio.timeout(60):
            await Worker(database, registry, poll=0.5, until_empty=True).run()
        assert [(await client.get(job_id)).state for job_id in jobs] == ["succeeded"] * 3


async def test_a_worker_leaves_the_progress_of_a_functions_job(database: str, connect: Any) -> None:
    connection = connect()
    connection.execute(
        "create function public.same(payload jsonb) returns jsonb language sql return payload"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("same", run="public.same")
        jobs = [(await client.enqueue("same", n)).job_id for n in range(2)]
        connection.execute("select from jobq.claim('{default}', 'before', 2)")
        connection.execute("select jobq.set_progress(%s, 1, '5')", [jobs[0]])
        connection.execute("select jobq.release_many(%s, '{1,1}')", [jobs])
        async with asyncio.timeout(60):
            await Worker(database, Registry(), poll=0.5, until_empty=True).run()
        rows = connection.execute("select progress::text from jobq.job order by job_id").fetchall()
        assert rows == [("5",), (None,)]


async def test_a_function_that_ends_its_session_runs_out_of_attempts(
    database: str, connect: Any
) -> None:
    connection = connect()
    connection.execute(
        "create function public.deadly(payload jsonb) returns jsonb language plpgsql as $$ begin"
        " if payload = '\"die\"' then perform pg_terminate_backend(pg_backend_pid()); end if;"
        " if payload = '\"fail\"' then raise exception 'as asked for'; end if;"
        " return payload; end $$"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("deadly", run="public.deadly", retry_preset="standard")
        payloads = ["die", 12345678901234567890.5, "fail", {"a": ['"', "\\"]}]
        jobs = [
            (await client.enqueue("deadly", payload, max_attempts=1)).job_id for payload in payloads
        ]

        async def are_done() -> bool:
            return all([(await client.get(job_id)).is_finished for job_id in jobs])

        async with Worker(database, Registry(), poll=0.2, metrics_port=0) as worker:
            await until_async(are_done, "for all jobs")
            assert worker.health()["lacks"] == {}

            async def are_counted() -> bool:
                text = (worker.metrics_text() or b"").decode()
                counted = re.findall(r'worker_jobs_completed_total{kind="deadly",(.*)} (.*)', text)
                ended = {outcome: n for outcome, n in counted if "released" not in outcome}
                return ended == {'outcome="dead"': "2.0", 'outcome="succeeded"': "2.0"}

            await until_async(are_counted, "for the metrics of functions")
        ended = [await client.get(job_id) for job_id in jobs]
        assert [job.state for job in ended] == [
            "dead",
            "succeeded",
            "dead",
            "succeeded",
        ]
        assert [job.last_error_code for job in ended] == ["57P01", None, "P0001", None]
        assert [job.attempts for job in ended] == [1, 1, 1, 1]
        assert ended[3].result == payloads[3]


async def test_what_a_function_sets_reaches_nobody_else(database: str, connect: Any) -> None:
    connect().execute(
        "create function public.sets(payload jsonb) returns jsonb language plpgsql as $$ begin"
        " execute format('set %s', payload #>> '{}'); return 'true'; end $$"
    )
    registry = Registry()

    @registry.handler("path", transactional=True)
    async def path(payload: Any, connection: Any) -> Any:
        return (await (await connection.execute("show search_path")).fetchone())[0]

    async with AsyncClient(database) as client:
        await client.put_kind("sets", run="public.sets")

        async def result(kind: str, payload: object) -> object:
            job_id = (await client.enqueue(kind, payload)).job_id

            async def is_done() -> bool:
                return (await client.get(job_id)).is_finished

            await until_async(is_done, f"for {kind}")
            return (await client.get(job_id)).result

        async with Worker(database, registry, poll=0.5, concurrency=1):
            before = await result("path", {})
            assert await result("sets", "search_path = elsewhere") is True
            assert await result("path", {}) == before
            assert await result("sets", "default_transaction_read_only = on") is True
            assert await result("sets", "lock_timeout = 1") is True


async def test_what_a_function_leaves_in_its_session_harms_no_other(
    database: str, connect: Any
) -> None:
    watcher = connect()
    watcher.execute(
        "create function public.leaves(payload jsonb) returns jsonb language plpgsql as $$ begin"
        " create temp table scratch (n integer); perform pg_advisory_lock(4242);"
        " deallocate all; return payload; end $$"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("leaves", run="public.leaves", max_attempts=1)
        async with Worker(database, Registry(), poll=0.5, concurrency=1):
            for n in range(8):  # psycopg prepares what it has sent five times
                job_id = (await client.enqueue("leaves", n)).job_id

                async def is_done(job_id: Any = job_id) -> bool:
                    return (await client.get(job_id)).is_finished

                await until_async(is_done, "for the function")
                job = await client.get(job_id)
                assert (job.state, job.last_error) == ("succeeded", None)
            free = watcher.execute("select pg_try_advisory_lock(4242)").fetchone()
            assert free == (True,)


async def test_a_worker_that_stops_lets_a_function_end(database: str, connect: Any) -> None:
    connection = connect()
    connection.execute(
        "create function public.waits(payload jsonb) returns jsonb language plpgsql as $$ begin"
        " perform pg_advisory_xact_lock(16); return payload; end $$"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("waits", run="public.waits")
        connection.execute("select pg_advisory_lock(16)")
        job = await client.enqueue("waits", 1)

        async def is_begun() -> bool:
            waiting = "select from pg_locks where locktype = 'advisory' and not granted"
            return bool(connection.execute(waiting).rowcount)

        worker = Worker(database, Registry(), poll=0.2)
        running = asyncio.create_task(worker.run())
        await until_async(is_begun, "for the function")
        stopping = asyncio.create_task(worker.stop())
        await asyncio.sleep(0.5)  # what it would undo is undone by now
        connection.execute("select pg_advisory_unlock(16)")
        await stopping
        await running
        assert (await client.get(job.job_id)).state == "succeeded"


async def test_a_batch_that_ends_its_session_costs_only_the_job_that_does(
    database: str, connect: Any
) -> None:
    connect().execute(
        "create function public.deadly(payloads jsonb[]) returns jsonb[] language plpgsql as $$"
        " begin if '\"die\"' = any(payloads) then perform pg_terminate_backend(pg_backend_pid());"
        " end if; return payloads; end $$"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("deadly", run="public.deadly")
        jobs = [
            (await client.enqueue("deadly", payload, max_attempts=1)).job_id
            for payload in ("a", "die", "b")
        ]

        async def are_done() -> bool:
            return all([(await client.get(job_id)).is_finished for job_id in jobs])

        async with Worker(database, Registry(), poll=0.2):
            await until_async(are_done, "for all jobs")
        ended = [await client.get(job_id) for job_id in jobs]
    assert [(job.state, job.last_error_code, job.attempts) for job in ended] == [
        ("succeeded", None, 1), ("dead", "57P01", 1), ("succeeded", None, 1),
    ]  # fmt: skip


async def test_a_function_ends_when_its_time_is_over(database: str, connect: Any) -> None:
    connection = connect()
    connection.execute(
        "create function public.hangs(payload jsonb) returns jsonb language plpgsql as $$ begin"
        " perform pg_sleep(600); return payload; end $$"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("hangs", run="public.hangs")
        job = await client.enqueue("hangs", timeout=1, max_attempts=1)

        async def is_done() -> bool:
            return (await client.get(job.job_id)).is_finished

        async def is_over() -> bool:
            running = "select from pg_stat_activity where wait_event = 'PgSleep'"
            return not connection.execute(running).rowcount

        async with Worker(database, Registry(), poll=0.2) as worker:
            await until_async(is_done, "for the timeout")
            await until_async(is_over, "for the end of the statement")
            assert worker.stuck == 0
        assert (await client.get(job.job_id)).last_error_code == "TIMEOUT"


async def test_a_function_that_came_to_another_owner_is_left_alone(
    database: str, connect: Any
) -> None:
    """The worker has run it before, and must not run what somebody else has put there."""
    connection = connect()
    connection.execute(
        "create function public.same(payload jsonb) returns jsonb language sql return payload"
    )
    async with AsyncClient(database) as client:
        await client.put_kind("same", run="public.same")

        async def is_done(job_id: UUID) -> bool:
            return (await client.get(job_id)).is_finished

        async with Worker(database, Registry(), poll=0.2) as worker:
            first = (await client.enqueue("same")).job_id
            await until_async(lambda: is_done(first), "for the first job")
            connection.execute("alter function public.same(jsonb) owner to jobq_producer")
            second = (await client.enqueue("same")).job_id

            async def is_released() -> bool:
                job = await client.get(second)
                return job.attempt > 0 and job.state == "queued"

            await until_async(is_released, "for the second job to be released")
            assert worker.health()["lacks"] == {}
        assert (await client.get(second)).attempts == 0
