"""The example handlers do real work, and fail as they say."""

from __future__ import annotations

import socket
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from waiting import until_async

from jobq import AsyncClient, Client, Worker
from jobq.errors import PayloadInvalid
from jobq_examples import registry
from jobq_examples.agent import registry as agents
from jobq_examples.sinks import MailServer, WebhookReceiver
from jobq_examples.text import SummarizeText, summarize_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from jobq.models import Job

BAD = [
    ("resize_image", {"source": "a.png", "target": "b.png", "width": "wide", "height": 1}),
    ("resize_image", {"source": "a.png"}),
    ("webhook_delivery", {"url": 7, "body": {}}),
    ("webhook_delivery", {"url": "http://localhost"}),
    ("send_email", {"to": "ada@example.org", "subject": "no body"}),
    ("summarize_text", {"text": ["not", "a", "text"]}),
    ("summarize_text", {}),
]


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client, Worker(database, registry):
        yield client


async def end_of(client: AsyncClient, kind: str, payload: Any = None) -> Job:
    """Run a job to its end, or to its first retry."""
    job = await client.enqueue(kind, payload)

    async def look() -> Job | None:
        found = await client.get(job.job_id)
        return found if found.is_finished or found.state == "retrying" else None

    ended = await until_async(look)
    assert ended is not None
    return ended


@pytest.mark.parametrize(("kind", "payload"), BAD)
def test_a_bad_payload_is_refused_at_enqueue(database: str, kind: str, payload: Any) -> None:
    with Client(database) as client:
        registry.declare(client)
        with pytest.raises(PayloadInvalid) as caught:
            client.enqueue(kind, payload)
    assert caught.value.detail


async def test_an_image_is_resized(client: AsyncClient, tmp_path: Path) -> None:
    source, target = tmp_path / "source.png", tmp_path / "target.png"
    Image.new("RGB", (800, 400), "red").save(source)
    payload = {"source": str(source), "target": str(target), "width": 200, "height": 200}
    job = await end_of(client, "resize_image", payload)
    assert job.state == "succeeded"
    with Image.open(target) as image:
        assert image.size == (200, 100)
        assert image.getpixel((0, 0)) == (255, 0, 0)
    assert job.result["bytes"] == target.stat().st_size


async def test_what_is_no_image_is_dead(client: AsyncClient, tmp_path: Path) -> None:
    source = tmp_path / "source.png"
    source.write_text("not an image")
    for path, code in ((source, "NOT_AN_IMAGE"), (tmp_path / "none", "FILE_NOT_FOUND")):
        payload = {"source": str(path), "target": str(path), "width": 1, "height": 1}
        job = await end_of(client, "resize_image", payload)
        assert (job.state, job.last_error_code) == ("dead", code)


async def test_a_webhook_is_delivered(client: AsyncClient) -> None:
    with WebhookReceiver() as receiver:
        job = await end_of(client, "webhook_delivery", {"url": receiver.url, "body": {"n": 1}})
    assert (job.state, job.result) == ("succeeded", {"status_code": 204})
    assert receiver.received == [{"n": 1}]


@pytest.fixture
def answering() -> Iterator[Any]:
    """A function that starts an HTTP server which gives one answer to every POST."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, headers: dict[str, str] | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        (400, "dead", "REFUSED"),
        (404, "dead", "REFUSED"),
        (408, "retrying", "ERROR"),
        (429, "retrying", "ERROR"),
        (500, "retrying", "ERROR"),
        (503, "retrying", "ERROR"),
    ],
)
async def test_a_receiver_that_refuses(
    client: AsyncClient, answering: Any, status: int, state: str, code: str
) -> None:
    job = await end_of(client, "webhook_delivery", {"url": answering(status), "body": {}})
    assert (job.state, job.last_error_code) == (state, code)


async def test_a_receiver_says_when_to_come_back(client: AsyncClient, answering: Any) -> None:
    url = answering(429, {"Retry-After": "3600"})
    job = await end_of(client, "webhook_delivery", {"url": url, "body": {}})
    assert (job.state, job.last_error_code) == ("retrying", "RETRY")
    assert (job.run_at - job.created_at).total_seconds() > 3000


async def test_a_receiver_that_is_down_is_tried_again(client: AsyncClient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    payload = {"url": f"http://127.0.0.1:{port}/", "body": {}}
    job = await end_of(client, "webhook_delivery", payload)
    assert job.state == "retrying"


class KeepingServer(MailServer):
    """A mail server that keeps whole messages."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.kept.append(envelope.original_content.decode())
        return await super().handle_DATA(server, session, envelope)


async def test_an_email_is_sent(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with KeepingServer() as server:
        monkeypatch.setenv("SMTP_HOST", "127.0.0.1")
        monkeypatch.setenv("SMTP_PORT", str(server.port))
        payload = {"to": "ada@example.org", "subject": "Hello", "body": "Hi, Ada"}
        job = await end_of(client, "send_email", payload)
    assert job.state == "succeeded"
    [text] = server.kept
    assert server.subjects == ["Hello"]
    assert "Hi, Ada" in text
    assert f"Message-ID: <{job.job_id}@jobq>" in text


async def test_a_header_that_is_none_is_dead(client: AsyncClient) -> None:
    payload = {"to": "ada@example.org", "subject": "a\nBcc: all@example.org", "body": ""}
    job = await end_of(client, "send_email", payload)
    assert (job.state, job.last_error_code) == ("dead", "INVALID_HEADER")


async def test_a_text_is_summarised(client: AsyncClient) -> None:
    text = (
        "Queues hold jobs. A queue of jobs is read by workers, and workers run jobs. "
        "The weather was mild. Workers hold a lease on jobs from the queue."
    )
    job = await end_of(client, "summarize_text", {"text": text, "sentences": 2})
    assert job.state == "succeeded"
    assert "weather" not in job.result["summary"]
    assert job.result["sentences"] == 2


def test_a_summary_keeps_the_order_of_the_text() -> None:
    text = "Jobs jobs jobs. Nothing here. Jobs and jobs."
    assert summarize_text(SummarizeText(text, 2))["summary"] == "Jobs jobs jobs. Jobs and jobs."
    assert summarize_text(SummarizeText(text, 99))["summary"] == text


async def test_a_health_check_says_when(client: AsyncClient) -> None:
    job = await end_of(client, "health_check", {})
    assert job.state == "succeeded"
    assert job.result["checked_at"].startswith("20")
    [line] = await client.logs(job.job_id)
    assert line.message.startswith("healthy at")


async def test_a_health_check_recurs(client: AsyncClient) -> None:
    """The same handler on a schedule: the worker's own maintenance fires it, slot by slot."""
    schedule_id = await client.create_schedule("health", "health_check", "* * * * * *")

    async def ran_twice() -> list[Job]:
        jobs = await client.list_jobs(state="succeeded", kind="health_check")
        return jobs if len(jobs) > 1 else []

    jobs = await until_async(ran_twice, "for two slots")
    assert {job.schedule_id for job in jobs} == {schedule_id}
    assert len({job.slot_at for job in jobs}) == len(jobs), (
        "a row for each run, a run for each slot"
    )
    for job in jobs:
        assert job.slot_at is not None
        assert datetime.fromisoformat(job.result["checked_at"]) >= job.slot_at
        [line] = await client.logs(job.job_id)
        assert line.message == f"healthy at {job.result['checked_at']}"


@pytest.mark.parametrize(
    ("is_approved", "turns"),
    [
        (True, ["I look up", "There will be rain", "I have bought", "I have changed this: later."]),
        (False, ["I look up", "There will be rain", "Then I do not buy"]),
    ],
)
async def test_an_agent_streams_calls_tools_asks_and_listens(
    database: str, is_approved: bool, turns: list[str]
) -> None:
    async with AsyncClient(database) as client, Worker(database, agents):
        job_id = (await client.enqueue("agent", {"request": "Ulm", "pause": 0.0})).job_id
        await client.send_message(job_id, "chat", "later")
        [question] = await until_async(client.list_waits, "for a question")
        assert (question.name, question.question) == ("purchase", "Buy the ticket for 30 euro?")
        await client.answer(job_id, "purchase", is_approved=is_approved)
        transcript = await client.result(job_id, timeout=20)
        said = [line["content"] for line in transcript if line["role"] == "assistant"]
        heard = [
            " ".join([str(chunk.value) async for chunk in client.stream(job_id, f"turn {n}")])
            for n in range(1, len(turns) + 1)
        ]
        kinds = sorted(job.kind for job in await client.list_jobs())
    assert said == heard
    assert all(text.startswith(turn) for text, turn in zip(said, turns, strict=True))
    assert kinds == ["agent", "look_up_trains", "look_up_weather"]
    tools = [line["content"] for line in transcript if line["role"] == "tool"]
    assert tools == ["rain", 30]
