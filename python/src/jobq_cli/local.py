"""`jobq run`: run all of jobq on one machine, with example jobs."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Any, Final

import httpx
import psycopg
from PIL import Image
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.client import Client
from jobq.models import Job
from jobq.worker import Worker, loop_factory
from jobq_console import Site
from jobq_delivery import Deliverer
from jobq_embedded import Server
from jobq_examples import deliveries, registry
from jobq_examples.sinks import MailServer, WebhookReceiver
from jobq_http import Settings, create_key, server
from jobq_operations.deploy import deploy

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
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack, suppress(KeyboardInterrupt):
        stack.enter_context(interruptible())
        secret = ""
        if database_url is None:
            say("starting PostgreSQL")
            database_url = stack.enter_context(Server(folder / "postgres")).url
            secret = f'PGPASSWORD="$(cat {shlex.quote(str(folder))}/postgres/password)" '
        install(database_url, say)
        receiver = stack.enter_context(WebhookReceiver())
        mail = stack.enter_context(MailServer())
        redis = stack.enter_context(deliveries.redis())
        secrets = deliveries.environment(folder, receiver.url, redis)
        os.environ |= {"SMTP_HOST": HOST, "SMTP_PORT": str(mail.port), **secrets}
        log = folder / "jobq.log"
        logging.basicConfig(filename=log, filemode="w", level=logging.INFO, force=True)
        listening = listener(port, say)
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        stack.enter_context(serving(database_url, listening, url, log))
        with Client(database_url) as client:
            registry.declare(client)
            endpoints = deliveries.declare(client, secrets, receiver.url, redis)
            say("running the example jobs")
            jobs = examples(folder, receiver.url)
            states = finish(client, jobs | dict.fromkeys(endpoints, deliveries.INPUT), say)
        for body in receiver.received:
            say(f"the webhook's receiver got {body}")
        for subject in mail.subjects:
            say(f"the mail server got {subject!r}")
        failed = [kind for kind, state in states.items() if state != "succeeded"]
        say(f"failed: {', '.join(failed)}" if failed else f"all {len(states)} jobs succeeded")
        if not is_brief:
            hints(database_url, secret, url, say)
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
def serving(database_url: str, listening: socket.socket, url: str, log: Path) -> Iterator[None]:
    """Run the HTTP API, at this URL, and a worker in a thread."""
    settings = Settings(console=Site.maker())
    api = server(database_url, HOST, listening.getsockname()[1], settings)

    async def work() -> None:
        own = copy(registry)
        async with Deliverer(database_url) as deliverer:
            own.otherwise(deliverer.deliver, beyond=deliverer.beyond)
            async with Worker(database_url, own):
                await api.serve([listening])

    def run() -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(work())

    thread = Thread(target=run, name="jobq server")
    thread.start()
    try:
        deadline = time.monotonic() + SECONDS_TO_START
        while not answers(url):
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RunError(f"the server did not start; its log is {log}")
            time.sleep(0.05)
        yield
    finally:
        api.should_exit = True
        thread.join()


def examples(folder: Path, hook: str) -> dict[str, Any]:
    """The payloads of the example jobs, by kind, and the picture that one of them needs."""
    picture = folder / "mandelbrot.png"
    Image.effect_mandelbrot((1600, 1200), (-2.2, -1.2, 1.0, 1.2), 100).save(picture)
    target = folder / "mandelbrot-small.png"
    box = {"width": 320, "height": 320}
    mail = {"to": "ada@example.org", "subject": "Your picture is ready", "body": str(target)}
    return {
        "resize_image": {"source": str(picture), "target": str(target), **box},
        "webhook_delivery": {"url": hook, "body": {"event": "picture.resized"}},
        "send_email": mail,
        "summarize_text": {"text": TEXT, "sentences": 2},
        "health_check": {},
    }


def finish(client: Client, jobs: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, str]:
    """Enqueue jobs, report each change of their states, and return the last ones by kind."""
    ids = {kind: client.enqueue(kind, payload).job_id for kind, payload in jobs.items()}
    states = dict.fromkeys(ids, "")
    deadline = time.monotonic() + SECONDS_FOR_JOBS
    while not FINAL.issuperset(states.values()) and time.monotonic() < deadline:
        for kind in (kind for kind, state in states.items() if state not in FINAL):
            job = client.get(ids[kind])
            if job.state != states[kind]:
                states[kind] = job.state
                say(f"  {kind:<17}{job.state:<10} {outcome(job)}".rstrip())
        time.sleep(0.02)
    return states


def outcome(job: Job) -> str:
    """Return the result or the last error of a job, in one line."""
    if isinstance(job.result, dict):
        return ", ".join(f"{name} {value}" for name, value in job.result.items())
    return f"{job.last_error_code}: {job.last_error}" if job.last_error else ""


def hints(database_url: str, secret: str, url: str, say: Callable[[str], None]) -> None:
    """Print what to try next, with a new key of the API, but without the database's password."""
    with psycopg.connect(database_url) as connection:
        key = create_key(connection, f"run {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}")
    known: dict[str, Any] = {**conninfo_to_dict(database_url), "password": None}
    shown = make_conninfo(**known)
    curl = f"curl -s {url}/jobs -H 'Authorization: Bearer {key}'"
    say(
        f"""
Try next, in another terminal:

  {secret}psql {shlex.quote(shown)}
    select jobq.enqueue('health_check');
    select job_id, kind, state, result from jobq.job order by job_id desc limit 5;
    select * from jobq.queue_stats();

  {curl} \\
    -d '{{"kind": "summarize_text", "payload": {{"text": "One. Two. Three.", "sentences": 1}}}}'

  the console: {url}, with the key {key}
  the API's documentation: {url}/docs

Serving until interrupted (Ctrl-C)."""  # noqa: S608 (words for a person)
    )


def answers(url: str) -> bool:
    """Return whether the HTTP API is ready."""
    try:
        return httpx.get(f"{url}/ready", timeout=SECONDS_TO_ANSWER, trust_env=False).is_success
    except httpx.TransportError:
        return False
