"""A worker that writes down what it does: the history to be checked.

Usage: python probe.py URL JOURNAL [LISTEN_URL]; several URLs are one argument, with spaces between

Each handler notes its start and end, the worker what it is told of outcomes, and when it
had no answer from the database for so long that leases may have run out.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobq import Registry
from jobq.errors import JobqError
from jobq.worker import Worker
from jobq.worker.connections import Link
from jobq_sharding.worker import ShardedWorker

if TYPE_CHECKING:
    from jobq import JobContext

# Leases are of two seconds, renewed when a third has passed: shorter troubles do no harm.
LONG: Final = 0.5
PULSE: Final = 0.1
# How often a worker stops at a boundary of a step.
HALTS: Final = 1 / 500

registry = Registry()
journal = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(*words: object) -> None:
    """Append a line, whole or not at all."""
    os.write(journal, (" ".join(str(word) for word in words) + "\n").encode())


def now() -> str:
    return f"{time.monotonic():.6f}"


@registry.handler("probe")
async def probe(payload: dict[str, float], context: JobContext) -> dict[str, float]:
    """Take as long as the payload says."""
    note("start", context.job_id, context.attempt, os.getpid(), now())
    await asyncio.sleep(payload["seconds"])
    note("end", context.job_id, context.attempt, os.getpid(), now())
    return payload


@registry.handler("workflow")
async def workflow(payload: dict[str, float], context: JobContext) -> list[int]:
    """Take three steps, and return which attempt has taken each."""
    note("start", context.job_id, context.attempt, os.getpid(), now())
    results = []
    for name in ("one", "two", "three"):
        halt()
        results.append(await context.step(name, step, name, payload, context))
    halt()
    note("end", context.job_id, context.attempt, os.getpid(), now())
    return results


async def step(name: str, payload: dict[str, float], context: JobContext) -> int:
    """Take as long as the payload says."""
    note(f"ran:{name}", context.job_id, context.attempt, os.getpid(), now())
    halt()
    await asyncio.sleep(payload["seconds"] / 3)
    halt()
    return context.attempt


def halt() -> None:
    """Stop here, by chance, to be killed by the run that asks for it."""
    if random.random() < HALTS and Path(f"{sys.argv[2]}.halt").exists():
        os.kill(os.getpid(), signal.SIGSTOP)


class Ear(logging.Handler):
    """Hears what the worker says: outcomes, and that something is refused."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write down what matters."""
        fields = getattr(record, "job_fields", None)
        if fields is None:
            if record.levelno >= logging.WARNING or record.levelno == logging.DEBUG:
                note("trouble", os.getpid(), now(), now())
        elif fields.get("status") == "succeeded":
            note("told", fields["job_id"], fields["attempt"], os.getpid(), now())


async def feel(url: str) -> None:
    """Note each time in which the worker had no answer, or no time to ask."""
    link = Link(url, "fault run", is_pooled=True)
    name = f"pulse of {os.getpid()}"
    answered = time.monotonic()
    while True:
        with suppress(JobqError):
            await link.call("select from jobq.heartbeat(%s, '{}', '{}')", [name])
            since, answered = answered, time.monotonic()
            if answered - since > LONG:
                # Other calls may have their answers a little later.
                note("trouble", os.getpid(), since, answered + LONG)
        await asyncio.sleep(PULSE)


async def main(url: str, listen_url: str | None) -> int:
    """Work until told to stop."""
    logger = logging.getLogger("jobq.worker")
    logger.setLevel(logging.DEBUG)  # complaints that are said again
    logger.addHandler(Ear())
    urls = url.splitlines()
    options: Any = {"concurrency": 8, "poll": 1.0, "grace": 5.0, "declare": False}
    if len(urls) > 1:
        worker: Any = ShardedWorker(dict.fromkeys(urls, registry), ["probe"], **options)
    else:
        worker = Worker(url, registry, ["probe"], listen_database=listen_url, **options)
    feeling = [asyncio.create_task(feel(each)) for each in urls]
    try:
        return int(await worker.run())
    finally:
        for task in feeling:
            task.cancel()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None)))
