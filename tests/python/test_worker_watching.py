"""What can be seen of a worker: logs, metrics, health, traces; and how it is embedded."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from starlette.applications import Starlette
from waiting import until_async

from jobq import AsyncClient, JobContext, Registry, Retry, Worker
from jobq.worker import tuning
from jobq.worker.metrics import Probe
from jobq_cli.logs import JsonFormatter, PrettyFormatter, configure_logging

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

FIELDS = {"job_id", "kind", "attempt", "queue", "worker", "idempotency_key"}


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What jobq and handlers log, as JSON."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    loggers = [logging.getLogger(name) for name in ("jobq", "app")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield stream
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


async def finished(client: AsyncClient, number: int) -> bool:
    ended = [job for job in await client.list_jobs(max_jobs=1000) if job.is_finished]
    return len(ended) == number


async def test_lines_about_jobs_say_which(
    database: str, client: AsyncClient, log: io.StringIO
) -> None:
    registry = Registry()

    @registry.handler("good")
    async def good() -> None:
        logging.getLogger("app").info("in a coroutine", extra={"symbol": "ACME", "asof": "today"})

    @registry.handler("bad", max_attempts=1)
    def bad() -> None:
        logging.getLogger("app").info("in a thread")
        raise Retry("no password=hunter2", code="UPSTREAM_EMPTY")

    async with Worker(database, registry, name="me"):
        jobs = [await client.enqueue(kind, idempotency_key=kind) for kind in ("good", "bad")]
        await until_async(lambda: finished(client, 2))
    about = [line for line in lines(log) if "job_id" in line]
    assert len(about) == 6
    for line in about:
        assert line.keys() >= FIELDS
        assert line["worker"] == "me"
        assert line["job_id"] in {str(job.job_id) for job in jobs}
    by_message = {(line["message"], line["kind"]): line for line in about}
    assert by_message["in a coroutine", "good"]["symbol"] == "ACME"
    assert by_message["in a coroutine", "good"]["idempotency_key"] == "good"
    assert by_message["in a thread", "bad"]["kind"] == "bad"
    succeeded = by_message["job succeeded", "good"]
    assert (succeeded["status"], succeeded["level"]) == ("succeeded", "INFO")
    dead = by_message["job dead", "bad"]
    assert (dead["status"], dead["error_code"]) == ("dead", "UPSTREAM_EMPTY")
    assert dead["level"] == "ERROR"
    assert "hunter2" not in log.getvalue()


def test_a_line_for_people_says_the_same() -> None:
    record = logging.makeLogRecord(
        {"msg": "see https://me:secret@host", "levelname": "INFO", "symbol": "ACME"}
    )
    line = PrettyFormatter().format(record)
    assert line.endswith("INFO    see https://***@host  symbol=ACME")


def test_logging_is_set_up(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure_logging("json", logging.INFO)
        logging.getLogger("app").info("hello")
        logging.getLogger("app").debug("nobody sees it")
    finally:
        root.handlers[:], root.level = before
    [line] = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "hello"


async def test_metrics_and_health_are_served(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("good")
    async def good() -> None: ...

    @registry.handler("bad", max_attempts=1)
    async def bad() -> None:
        raise ValueError

    async with (
        Worker(database, registry, metrics_port=0, name="me") as worker,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.metrics_port}") as http,
    ):
        await client.enqueue_many([{"kind": kind} for kind in ("good", "good", "bad")])

        async def counted() -> str:
            text = (await http.get("/metrics")).text
            counts = re.findall(r"^worker_jobs_completed_total\{.*\} (.*)$", text, re.MULTILINE)
            return text if sum(map(float, counts)) == 3 else ""

        metrics = await until_async(counted, "for the worker to know what it has settled")
        health = await http.get("/healthz")
        ready = await http.get("/readyz")
        nothing = await http.get("/")
    assert 'worker_jobs_started_total{kind="good"} 2.0' in metrics
    assert 'worker_jobs_completed_total{kind="good",outcome="succeeded"} 2.0' in metrics
    assert 'worker_jobs_completed_total{kind="bad",outcome="dead"} 1.0' in metrics
    assert 'worker_job_duration_seconds_count{kind="good",outcome="succeeded"} 2.0' in metrics
    assert 'worker_job_duration_seconds_bucket{kind="bad",le="+Inf",outcome="dead"} 1.0' in metrics
    assert "# TYPE worker_job_duration_seconds histogram" in metrics
    assert "worker_jobs_running 0.0" in metrics
    assert (health.status_code, ready.status_code) == (200, 200)
    assert health.json()["ok"] is True
    assert health.json()["worker"] == "me"
    assert nothing.status_code == 404


async def test_a_request_that_is_too_long_ends_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = Worker("postgresql://127.0.0.1:1/x", Registry())
    probe = Probe(worker.health, worker.metrics_text)
    port = await probe.open("127.0.0.1", 0)
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /" + b"x" * 200_000)
        with suppress(ConnectionError):
            assert await reader.read() == b""
    writer.close()
    await probe.close()
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_a_worker_that_has_no_database_is_not_ready() -> None:
    worker = Worker("postgresql://127.0.0.1:1/x", Registry())
    assert worker.health()["ok"] is False


@pytest.mark.prove
async def test_a_worker_full_of_long_jobs_is_alive_and_ready_from_its_start(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SIGN_OF_LIFE", 3.0)
    registry = Registry()

    @registry.handler("long")
    async def long() -> None:
        await asyncio.sleep(8)

    async with (
        Worker(database, registry, concurrency=1, poll=1, metrics_port=0) as worker,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{worker.metrics_port}") as http,
    ):
        assert [(await http.get(p)).status_code for p in ("/healthz", "/readyz")] == [200, 200]
        job = await client.enqueue("long")
        statuses = set()
        while not (await client.get(job.job_id)).is_finished:
            statuses |= {
                (await http.get(p, timeout=60)).status_code for p in ("/healthz", "/readyz")
            }
            await asyncio.sleep(0.2)
    assert statuses == {200}


async def test_a_port_that_is_taken_is_told_and_the_worker_works(
    database: str, client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry()
    registry.handler("a")(lambda: "fine")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with Worker(database, registry, metrics_port=port) as worker:
            job = await client.enqueue("a")
            assert await client.result(job.job_id, timeout=30) == "fine"
            assert worker.metrics_port is None
    assert f"no metrics and no health at 127.0.0.1:{port}" in caplog.text


@pytest.mark.parametrize("has_fallback", [False, True])
async def test_kinds_that_callers_name_do_not_fill_the_metrics(
    database: str, client: AsyncClient, has_fallback: bool
) -> None:
    registry = Registry()
    registry.handler("known")(lambda: None)
    if has_fallback:
        registry.otherwise(lambda: None)
    jobs = [{"kind": f"unknown {n}"} for n in range(300)] + [{"kind": "known"}]
    async with Worker(database, registry, metrics_port=0) as worker:
        await client.enqueue_many(jobs)
        ended = 301 if has_fallback else 1  # what nobody knows waits
        await until_async(lambda: finished(client, ended), "for the jobs to end")
        text = (worker.metrics_text() or b"").decode()
    kinds = set(re.findall(r'jobs_started_total\{kind="([^"]+)"\}', text))
    assert "known" in kinds
    assert len(kinds - {"(other)"}) == (101 if has_fallback else 1)
    assert "worker_jobs_unnamed_total" in text


async def test_an_attempt_is_a_span_of_the_enqueuers_trace(
    database: str, client: AsyncClient
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    registry = Registry()
    inside: list[int] = []

    @registry.handler("good")
    async def good() -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)

    @registry.handler("bad", max_attempts=1)
    def bad() -> None:
        inside.append(trace.get_current_span().get_span_context().trace_id)
        raise Retry("no", code="BROKEN")

    async with Worker(database, registry):
        with trace.get_tracer("test").start_as_current_span("enqueue") as span:
            trace_id = span.get_span_context().trace_id
            good_one = await client.enqueue("good", metadata={"m": 1})
            await client.enqueue("bad")
        await until_async(lambda: finished(client, 2))
    assert inside == [trace_id] * 2
    spans = {s.name: s for s in exporter.get_finished_spans()}
    process = spans["process good"]
    assert process.context is not None and process.context.trace_id == trace_id
    assert process.parent is not None
    assert process.parent.span_id == span.get_span_context().span_id
    assert process.attributes is not None
    assert process.attributes["messaging.message.id"] == str(good_one.job_id)
    assert spans["process bad"].status.status_code == StatusCode.ERROR
    assert (await client.get(good_one.job_id)).metadata.keys() == {"m", "traceparent"}


async def test_a_worker_lives_as_long_as_an_application(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler(context: JobContext) -> str:
        return context.kind

    app = Starlette(lifespan=Worker(database, registry).lifespan)
    async with app.router.lifespan_context(app):
        job = await client.enqueue("a")
        assert await client.result(job.job_id, timeout=20) == "a"
    late = await client.enqueue("a")
    async with AsyncClient(database) as other:
        assert (await other.get(late.job_id)).state == "queued"


async def test_leaving_the_context_lets_jobs_finish(database: str, client: AsyncClient) -> None:
    registry = Registry()
    may_end = asyncio.Event()

    @registry.handler("a")
    async def handler() -> str:
        await may_end.wait()
        return "finished"

    # With poll and grace out of reach, it must itself see that all is done.
    worker = Worker(database, registry, poll=3600, grace=3600)
    async with asyncio.timeout(60), worker:
        job = await client.enqueue("a")

        async def runs() -> bool:
            return worker.health()["running"] == 1

        await until_async(runs)
        asyncio.get_running_loop().call_later(0.05, may_end.set)
    assert (await client.get(job.job_id)).result == "finished"


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"queues": []},
        {"queues": "default"},
        {"queues": [""]},
        {"queues": ["*"], "sleepy": True},
        {"queues": ["a", "b*"], "max_in_process": {"a": 1}},
        {"queues": [["a"]]},
        {"queues": [1]},
        {"name": ["a"]},
        {"queues": {"a": -1}},
        {"queues": {"a": float("nan")}},
    ],
)
def test_nonsense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        Worker("postgresql://", Registry(), **options)


async def test_an_idle_worker_fires_a_slot_when_it_is_due(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With regular maintenance out of reach."""
    for name in ("MAINTAIN_EVERY", "SIGN_OF_LIFE"):
        monkeypatch.setattr(tuning, name, 3600.0)
    registry, fired = Registry(), asyncio.Semaphore(0)

    @registry.handler("often")
    async def often() -> None:
        fired.release()

    await client.create_schedule("often", "often", every="1 s")
    async with Worker(database, registry), asyncio.timeout(90):
        for _ in range(5):
            await fired.acquire()


async def declared(client: AsyncClient, kind: str) -> bool:
    return kind in {each.kind for each in await client.list_kinds()}


def wait_a_second() -> None:
    time.sleep(1)


async def test_a_job_that_no_process_is_ready_for_is_released_with_a_line(
    database: str, client: AsyncClient, log: io.StringIO
) -> None:
    registry = Registry()
    registry.handler("slow", process=True, lease=1)(wait_a_second)
    async with Worker(database, registry, concurrency=2, processes=1, poll=0.1):
        await until_async(lambda: declared(client, "slow"))
        jobs = await client.enqueue_many([{"kind": "slow"}] * 2)
        for job in jobs:
            await client.result(job.job_id, timeout=60)
    said = [line["message"] for line in lines(log) if "no process was ready" in line["message"]]
    assert re.match(r"releasing a job of kind slow: no process was ready within \d\.\d s", said[0])
    for job in jobs:
        codes = {attempt.error_code for attempt in await client.attempts(job.job_id)}
        assert "LEASE_EXPIRED" not in codes


SLOW_TASK = """
    create function jobq_private.slow_task() returns bigint language plpgsql
    as 'begin perform pg_sleep(60); return 0; end';
    insert into jobq_private.maintenance_task (position, task, function)
    values (85, 'slow', 'slow_task');
"""


async def test_a_task_of_maintenance_that_hangs_keeps_the_others_from_nothing(
    database: str, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "CALL_SECONDS", 1.0)  # maintain() has half of it
    monkeypatch.setattr(tuning, "MAINTAIN_EVERY", 0.2)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SLOW_TASK)
        connection.execute("select jobq.put_queue('default', lease => '1 s')")
        lost = (await client.enqueue("noop")).job_id
        connection.execute("select from jobq.claim('{default}', 'who will not come back')")
        registry = Registry()
        registry.handler("noop")(lambda: None)
        async with Worker(database, registry, poll=0.1):
            await client.result(lost, timeout=60)
        found = connection.execute(
            "select finding from jobq.health(part => 'maintenance') where subject = 'maintenance'"
        ).fetchall()
    # On a busy machine, others may have failed too.
    assert any(re.match(r"slow failed \d+ times, .*: 57014", finding) for [finding] in found)
