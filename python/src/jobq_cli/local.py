"""`jobq run`: run all of jobq on one machine, with example jobs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import psycopg
from PIL import Image

from jobq.client import Client
from jobq_embedded import Server
from jobq_examples import deliveries, registry
from jobq_examples.sinks import MailServer, WebhookReceiver
from jobq_http import create_key
from jobq_operations.deploy import deploy

__all__ = ["RunError", "run"]

HOST: Final = "127.0.0.1"
FINAL: Final = frozenset({"succeeded", "dead", "cancelled"})
SECONDS_TO_START: Final = 30
SECONDS_TO_ANSWER: Final = 5
SECONDS_TO_STOP: Final = 40
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
        RunError: a process did not start, with the place of its log.
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
        listening = stack.enter_context(listener(port, say))
        api = stack.enter_context(serving(database_url, listening, folder, secrets))
        smtp = {"SMTP_HOST": HOST, "SMTP_PORT": str(mail.port)}
        stack.enter_context(working(database_url, folder, {**smtp, **secrets}))

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
    """Return a socket that listens on a port of the loopback address, a free one if need be.

    It is opened here and inherited by the server, so that nobody else can be at its other
    end when the key is sent there.
    """
    try:
        return socket.create_server((HOST, port))
    except OSError:
        listening = socket.create_server((HOST, 0))
        say(f"port {port} is taken; the HTTP API gets port {listening.getsockname()[1]}")
        return listening


@contextmanager
def serving(
    database_url: str, listening: socket.socket, folder: Path, env: Mapping[str, str]
) -> Iterator[httpx.Client]:
    """Run the HTTP API with a new key, and give a client of it once it is ready."""
    port = listening.getsockname()[1]
    with psycopg.connect(database_url) as connection:
        key = create_key(connection, f"run {datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f}")
    headers = {"Authorization": f"Bearer {key}"}
    client = httpx.Client(base_url=f"http://{HOST}:{port}", headers=headers, trust_env=False)
    arguments = ["http", "--fd", str(listening.fileno())]
    files = [listening.fileno()]
    with client, process("http", arguments, folder, database_url, env, files=files) as child:
        wait_until(lambda: answers(client), child, folder / "http.log")
        yield client


@contextmanager
def working(database_url: str, folder: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Run a worker of the example handlers, its metrics on a free port."""
    arguments = ["worker", "jobq_examples:registry", "--metrics-port", str(free_port())]
    with process("worker", arguments, folder, database_url, env):
        yield


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
    """What a job has brought about, in one line."""
    if job["state"] == "succeeded":
        return ", ".join(f"{name} {value}" for name, value in (job["result"] or {}).items())
    return f"{job['last_error_code']}: {job['last_error']}" if job["last_error"] else ""


def hints(database_url: str, api: httpx.Client, say: Callable[[str], None]) -> None:
    """Say what to try next."""
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


@contextmanager
def process(
    name: str,
    arguments: list[str],
    folder: Path,
    database_url: str,
    env: Mapping[str, str] | None = None,
    *,
    files: Sequence[int] = (),
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a jobq command in the background, its output in a log, and stop it at the end.

    Args:
        name: of the log.
        arguments: of the command.
        folder: where the log goes.
        database_url: the database.
        env: further variables of its environment.
        files: open files that it inherits.
    """
    with (folder / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "jobq_cli", *arguments],
            env={**os.environ, **(env or {}), "DATABASE_URL": database_url},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=files,
        )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_until(is_ready: Callable[[], bool], child: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a process to be ready.

    Raises:
        RunError: it ended, or is not ready in time.
    """
    deadline = time.monotonic() + SECONDS_TO_START
    while not is_ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise RunError(f"a process did not start; its log is {log}")
        time.sleep(0.05)


def answers(client: httpx.Client) -> bool:
    """Whether the HTTP API is ready."""
    try:
        return client.get("/ready", timeout=SECONDS_TO_ANSWER).is_success
    except httpx.TransportError:
        return False


def free_port() -> int:
    """A free port on the loopback address."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
