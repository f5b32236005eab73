"""What the agents of all systems in Python share: their verbs, and what their handlers note.

An agent runs one system inside that system's own environment, as a program:

    AGENT install URL                      make the system's tables; print its version
    AGENT bulk URL JOBS SECONDS            enqueue in bulk until either is spent
    AGENT flows URL JOBS SECONDS           the same with workflows of three steps
    AGENT calls URL JOBS SECONDS           the same with workflows that call another one each
    AGENT keyed URL JOBS SECONDS           the same with 1,000 keys, of which each may run one job
    AGENT single URL CONNECTIONS SECONDS   enqueue one by one, each in its own transaction
    AGENT ping URL SAMPLES                 enqueue one, wait until it has started, and again
    AGENT pace URL RATE SECONDS            enqueue one by one at a steady rate
    AGENT work URL                         be a worker until SIGTERM

Answers are one JSON text on the last line of standard output. Two environment variables
steer a worker: GATE, a path that it waits for before it connects (it makes GATE.PID when it
is ready), and NOTES, the file that its handlers write to. Times are those of the system's
monotonic clock, in seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import uvloop

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

NOTE_EVERY = 100
PAD = "x" * 78
KEYS = 1_000


class Producer(Protocol):
    """One connection that enqueues; a payload is 100 bytes of JSON."""

    async def add(self, kind: str, payload: dict[str, Any]) -> object:
        """Enqueue one job in a transaction of its own."""

    async def add_many(self, payloads: list[dict[str, Any]]) -> object:
        """Enqueue jobs of the kind noop the fastest way that the system documents."""


class FlowProducer(Producer, Protocol):
    """One connection that enqueues workflows too."""

    async def add_flows(self, payloads: list[dict[str, Any]]) -> object:
        """Enqueue workflows of three steps, of the kind flow, in the same way."""

    async def add_calls(self, payloads: list[dict[str, Any]]) -> object:
        """Enqueue workflows of the kind caller, each of which calls one of the kind child."""


class KeyedProducer(Producer, Protocol):
    """One connection that enqueues jobs with keys too, of which a worker runs one at a time."""

    async def add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        """Enqueue jobs of the kind noop, each with the key of its payload."""


class Agent(Protocol):
    """A system under measurement.

    Attributes:
        chunk: jobs in one call of ``add_many``.
    """

    chunk: int

    async def install(self, url: str) -> str:
        """Make what the system keeps in an empty database; return its version."""

    def producer(self, url: str) -> AbstractAsyncContextManager[Producer]:
        """Open one connection to enqueue on."""

    async def work(self, url: str, notes: Notes, /) -> None:
        """Run jobs of the kinds noop and stamp until SIGTERM."""


class Notes:
    """What the handlers of one worker process note."""

    def __init__(self) -> None:
        self._file = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._pid = os.getpid()
        self.count = 0

    def noop(self) -> None:
        """Count a job; write the count down at the first and then at every hundredth."""
        self.count += 1
        if self.count % NOTE_EVERY == 1:
            self._write(f"{self._pid} {self.count} {time.monotonic()}\n")

    def stamp(self, number: int) -> None:
        """Write down when a job started."""
        self._write(f"{number} {time.monotonic()}\n")

    def _write(self, line: str) -> None:
        os.write(self._file, line.encode())


def wait_at_gate() -> None:
    """Say that this process is ready, and wait until the harness opens the gate."""
    gate = Path(os.environ["GATE"])
    Path(f"{gate}.{os.getpid()}").touch()
    while not gate.exists():
        time.sleep(0.001)


def payload(number: int) -> dict[str, Any]:
    """A payload of 100 bytes."""
    return {"n": number, "pad": PAD}


def key_of(payload: dict[str, Any]) -> str:
    """The key of a payload's job."""
    return f"key {payload['n'] % KEYS}"


def main(agent: Agent) -> None:
    """Do what the command line says."""
    verb, url, *numbers = sys.argv[1:]
    if verb == "work":
        wait_at_gate()
        _run(agent.work(url, Notes()))
        return
    if verb == "install":
        answer: object = {"version": _run(agent.install(url))}
    else:
        answer = _run(VERBS[verb](agent, url, *map(float, numbers)))
    print(json.dumps(answer))


def _run(work: Any) -> Any:
    return uvloop.run(work)


async def stopped() -> None:
    """Return at SIGTERM."""
    event = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, event.set)
    await event.wait()


async def bulk(
    agent: Agent, url: str, jobs: float, seconds: float, how: str = "add_many"
) -> dict[str, float]:
    """Enqueue in chunks by one of the producer's methods; return how many in how many seconds."""
    done = 0
    async with agent.producer(url) as producer:
        chunks = [
            [payload(n) for n in range(first, min(first + agent.chunk, int(jobs)))]
            for first in range(0, int(jobs), agent.chunk)
        ]
        start = time.monotonic()
        for chunk in chunks:
            await getattr(producer, how)(chunk)
            done += len(chunk)
            if time.monotonic() - start > seconds:
                break
        return {"jobs": done, "seconds": time.monotonic() - start}


async def single(agent: Agent, url: str, connections: float, seconds: float) -> dict[str, float]:
    """Enqueue one by one from some connections at once; return how many in how long."""
    done = 0
    async with AsyncExitStack() as stack:
        producers = [
            await stack.enter_async_context(agent.producer(url)) for _ in range(int(connections))
        ]
        for producer in producers:
            await producer.add("noop", payload(0))
        start = time.monotonic()

        async def produce(producer: Producer) -> None:
            nonlocal done
            while time.monotonic() - start < seconds:
                await producer.add("noop", payload(done))
                done += 1

        await asyncio.gather(*map(produce, producers))
        return {"jobs": done, "seconds": time.monotonic() - start}


async def ping(agent: Agent, url: str, samples: float) -> dict[str, list[float]]:
    """Return the seconds from the commit to the start of jobs that meet an idle worker."""
    chance = random.Random(1)
    delays = []
    async with agent.producer(url) as producer:
        file = _notes()
        for number in range(int(samples) + 5):
            await asyncio.sleep(chance.uniform(0.03, 0.07))
            await producer.add("stamp", payload(number))
            committed = time.monotonic()
            while not (line := file.readline()):
                await asyncio.sleep(0.001)
            noted, started = line.split()
            if number < 5:
                continue  # the first ones pay for what is set up once
            assert int(noted) == number, f"{noted} started for {number}"
            delays.append(float(started) - committed)
    return {"delays": delays}


def _notes() -> IO[str]:
    return Path(os.environ["NOTES"]).open()


async def pace(agent: Agent, url: str, rate: float, seconds: float) -> dict[str, Any]:
    """Enqueue at a steady rate; return when each job was committed, and how long it took."""
    committed = []
    async with agent.producer(url) as producer:
        start = time.monotonic()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0, start + number / rate - time.monotonic()))
            if time.monotonic() - start > seconds * 1.5:
                break
            await producer.add("stamp", payload(number))
            committed.append(time.monotonic())
        return {"committed": committed, "seconds": time.monotonic() - start}


VERBS: dict[str, Any] = {
    "bulk": bulk, "flows": partial(bulk, how="add_flows"), "calls": partial(bulk, how="add_calls"),
    "keyed": partial(bulk, how="add_keyed"), "single": single, "ping": ping, "pace": pace,
}  # fmt: skip
