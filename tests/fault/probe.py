"""A worker whose handler writes down each start and end: the history to be checked.

Usage: python probe.py URL JOURNAL [LISTEN_URL]
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING

from jobq import Registry
from jobq.worker import Worker

if TYPE_CHECKING:
    from jobq import JobContext

registry = Registry()
journal = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def note(what: str, context: JobContext) -> None:
    """Append a line, whole or not at all."""
    line = f"{what} {context.job_id} {context.attempt} {time.monotonic():.6f}\n"
    os.write(journal, line.encode())


@registry.handler("probe")
async def probe(payload: dict[str, float], context: JobContext) -> dict[str, float]:
    """Take as long as the payload says."""
    note("start", context)
    await asyncio.sleep(payload["seconds"])
    note("end", context)
    return payload


if __name__ == "__main__":
    listen = sys.argv[3] if len(sys.argv) > 3 else None
    worker = Worker(
        sys.argv[1], registry, ["probe"], concurrency=8, poll=1.0, grace=5.0,
        declare=False, listen_database=listen,
    )  # fmt: skip
    sys.exit(asyncio.run(worker.run()))
