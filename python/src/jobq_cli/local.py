"""`jobq run`: run all of jobq on one machine, with example jobs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, Final
from uuid import uuid4

import httpx
import psycopg
from PIL import Image

from jobq.client import Client
from jobq.worker import Worker, loop_factory
from jobq_console import Site
from jobq_delivery import Deliverer
from jobq_embedded import Server
from jobq_examples import deliveries, registry
from jobq_examples.sinks import MailServer, WebhookReceiver
from jobq_http import Settings, create_key, server
from jobq_operations.deploy import deploy

__all__ = ["RunError", "run"]

HOST: Final = "127.0.0.1"
FINAL: Final = frozenset({"succeeded", "dead", "cancelled"})
SECONDS_TO_START: Final = 30
SECONDS_TO_ANSWER: Final = 5
SECONDS_FOR_JOBS: Final = 60
TEXT: Final = (
    "A job queue lets a program promise work and do it later. The promise must survive a crash, so "
    "the job is stored with the data that called for it. A worker claims a job, holds a lease on "
    "it, and says when it is done. If the worker dies, the lease runs out and another worker takes "
    "the job. A worker that comes back late must be refused, or a job would be finished twice. "
    "That is why every claim gives the job a new attempt number. Lunch has nothing to do with it. "
    "Handlers should be written so that a second run of a job does no harm."
)


class RunError(RuntimeError):
    """A part of the system did not start."""


@dataclass(frozen=True, slots=True)
class Example:
    """A job to submit: its kind, or its endpoint, and its payload."""

    kind: str
    payload: dict[str, Any]
    is_delivery: bool = False

    @property
    def request(self) -> dict[str, Any]:
        """What POST /jobs takes."""
        if not self.is_delivery:
            return {"kind": self.kind, "payload": self.payload}
        return {
            "endpoint": self.kind,
            "trigger": "IMMEDIATE",
            "idempotency_key": uuid4().hex,
            "input": self.payload,
        }


def run(
    database_url: str | None,
    *,
    folder: Path = Path(".jobq"),
    port: int = 8080,
    is_brief: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """Start everything, run the example jobs, and serve until interrupted.

    Args:
        database_url: the database to use; None starts a private PostgreSQL in ``folder``.
        folder: where the private server, logs and the example's files go.
        port: the HTTP port; a free one where it is taken.
        is_brief: whether to end after the examples.
        say: what to do with each line of the report.

    Returns:
        0 when every example job succeeded, else 1.

    Raises:
        RunError: the server did not start, with the place of the log.
        ServerError: PostgreSQL did not start.
        DeployError: the schema could not be installed.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        stack.enter_context(interruptible())
        if database_url is None:
            say("starting PostgreSQL")
            database_url = stack.enter_context(Server(folder / "postgres")).url
        install(database_url, say)
        receiver = stack.enter_context(WebhookReceiver())
        mail = stack.enter_context(MailServer())
        redis = stack.enter_context(deliveries.redis())
        secrets = deliveries.environment(folder, receiver.url, redis)
        os.environ |= {"SMTP_HOST": HOST, "SMTP_PORT": str(mail.port), **secrets}
        log = folder / "jobq.log"
        logging.basicConfig(filename=log, filemode="w", level=logging.INFO, force=True)
        api = stack.enter_context(serving(database_url, listener(port, say), log))

        with Client(database_url) as client:
            registry.declare(client)
            endpoints = deliveries.declare(client, secrets, receiver.url, redis)
        say("running the example jobs")
        jobs = examples(folder, receiver.url)
        jobs += [Example(name, deliveries.INPUT, is_delivery=True) for name in endpoints]
        states = finish(api, jobs, say)
        for body in receiver.received:
            say(f"the webhook's receiver got {body}")
        for subject in mail.subjects:
            say(f"the mail server got {subject!r}")
        failed = [kind for kind, state in states.items() if state != "succeeded"]
        say(f"failed: {', '.join(failed)}" if failed else f"all {len(states)} jobs succeeded")
        if not is_brief:
            hints(database_url, api, say)
            while True:  # not signal.pause(), which misses a signal that comes just before it
                time.sleep(0.5)
        return 1 if failed else 0
    say("stopped")
    return 130 if is_brief else 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that everything is stopped."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def install(database_url: str, say: Callable[[str], None]) -> None:
    """Install or upgrade the schema."""
    say("installing the schema")
    deploy(database_url, lambda line: say(f"  {line}"))


def listener(port: int, say: Callable[[str], None]) -> socket.socket:
    """Return a socket on this port of the loopback address; if it is taken, on a free one."""
    try:
        return socket.create_server((HOST, port))
    except OSError:
        listening = socket.create_server((HOST, 0))
        say(f"port {port} is taken; the HTTP API gets port {listening.getsockname()[1]}")
        return listening


@contextmanager
def serving(database_url: str, listening: socket.socket, log: Path) -> Iterator[httpx.Client]:
    """Run the HTTP API and a worker in a thread, and yield a client of the API with a new key.

    Raises:
        RunError: they did not start.
    """
    port = listening.getsockname()[1]
    settings = Settings(console=Site.maker())
    api = server(database_url, HOST, port, settings)

    async def work() -> None:
        own = copy(registry)
        async with Deliverer(database_url) as deliverer:
            own.otherwise(deliverer.deliver, beyond=deliverer.beyond)
            async with Worker(database_url, own):
                await api.serve([listening])

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work())

    with psycopg.connect(database_url) as connection:
        key = create_key(connection, f"run {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}")
    thread = Thread(target=run, name="jobq server")
    thread.start()
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx.Client(
            base_url=f"http://{HOST}:{port}",
            headers=headers,
            trust_env=False,
            timeout=SECONDS_FOR_JOBS,
        ) as client:
            deadline = time.monotonic() + SECONDS_TO_START
            while not answers(client):
                if not thread.is_alive() or time.monotonic() > deadline:
                    raise RunError(f"the server did not start; its log is {log}")
                time.sleep(0.05)
            yield client
    finally:
        api.should_exit = True
        thread.join()


def examples(folder: Path, hook: str) -> list[Example]:
    """The example jobs, and the picture that one of them needs."""
    picture = folder / "mandelbrot.png"
    Image.effect_mandelbrot((1600, 1200), (-2.2, -1.2, 1.0, 1.2), 100).save(picture)
    target = folder / "mandelbrot-small.png"
    box = {"width": 320, "height": 320}
    mail = {"to": "ada@example.org", "subject": "Your picture is ready", "body": str(target)}
    return [
        Example("resize_image", {"source": str(picture), "target": str(target), **box}),
        Example("webhook_delivery", {"url": hook, "body": {"event": "picture.resized"}}),
        Example("send_email", mail),
        Example("summarize_text", {"text": TEXT, "sentences": 2}),
        Example("health_check", {}),
    ]


def finish(api: httpx.Client, jobs: list[Example], say: Callable[[str], None]) -> dict[str, str]:
    """Submit jobs over HTTP, report each change of their states, and return the last ones."""
    kinds: dict[str, str] = {}
    for job in jobs:
        answer = api.post("/jobs", json=job.request)
        answer.raise_for_status()
        kinds[answer.json()["job_id"]] = job.kind
    states = dict.fromkeys(kinds, "")
    deadline = time.monotonic() + SECONDS_FOR_JOBS
    while not FINAL.issuperset(states.values()) and time.monotonic() < deadline:
        for job_id in (i for i, state in states.items() if state not in FINAL):
            job = api.get(f"/jobs/{job_id}").raise_for_status().json()
            if job["state"] != states[job_id]:
                states[job_id] = job["state"]
                say(f"  {kinds[job_id]:<17}{job['state']:<10} {outcome(job)}".rstrip())
        time.sleep(0.02)
    return {kinds[job_id]: state for job_id, state in states.items()}


def outcome(job: Mapping[str, Any]) -> str:
    """Return the result or the last error of a job, in one line."""
    if job["state"] == "succeeded":
        return ", ".join(f"{name} {value}" for name, value in (job["result"] or {}).items())
    return f"{job['last_error_code']}: {job['last_error']}" if job["last_error"] else ""


def hints(database_url: str, api: httpx.Client, say: Callable[[str], None]) -> None:
    """Print what to try next."""
    curl = f"curl -s {api.base_url}/jobs -H 'Authorization: {api.headers['Authorization']}'"
    say(
        f"""
Try next, in another terminal:

  psql '{database_url}'
    select jobq.enqueue('health_check');
    select job_id, kind, state, result from jobq.job order by job_id desc limit 5;
    select * from jobq.queue_stats();

  {curl} \\
    -d '{{"kind": "summarize_text", "payload": {{"text": "One. Two. Three.", "sentences": 1}}}}'

  the console: {api.base_url}, with the key {api.headers["Authorization"].removeprefix("Bearer ")}
  the API's documentation: {api.base_url}/docs

Serving until interrupted (Ctrl-C)."""  # noqa: S608 (words for a person)
    )


def answers(client: httpx.Client) -> bool:
    """Return whether the HTTP API is ready."""
    try:
        return client.get("/ready", timeout=SECONDS_TO_ANSWER).is_success
    except httpx.TransportError:
        return False
