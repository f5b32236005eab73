"""When handlers start: a worker's handler writes it into a pipe, a benchmark reads it there."""

from __future__ import annotations

import os
import select
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench import working

from jobq.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PIPE = "STAMPS"
STAMP = struct.Struct("=qd")  # the job's number, and seconds of the monotonic clock

registry = Registry()


@registry.handler("stamp")
async def stamp(number: int) -> None:
    """Write down that a job has started."""
    os.write(int(os.environ[PIPE]), STAMP.pack(number, time.monotonic()))


@contextmanager
def stamping(url: str, *options: str) -> Iterator[int]:
    """Run a worker, idle when this gives the pipe of its stamps."""
    pipe, inherited = os.pipe()
    os.environ[PIPE] = str(inherited)
    try:
        with working(url, 1, *options, target="stamps:registry", fds=[inherited]):
            time.sleep(3)
            yield pipe
    finally:
        os.close(inherited)
        os.close(pipe)


def stamps(pipe: int, seconds: float) -> list[tuple[int, float]]:
    """Return the stamps that are there, or come first within a number of seconds."""
    if not select.select([pipe], [], [], seconds)[0]:
        return []
    return [(number, moment) for number, moment in STAMP.iter_unpack(os.read(pipe, 1 << 16))]


def percentiles(seconds: Sequence[float]) -> tuple[float, float, float]:
    """Return p50, p99 and the longest, in milliseconds."""
    ordered = sorted(seconds)
    shares = (len(ordered) // 2, len(ordered) * 99 // 100, len(ordered) - 1)
    middle, late, longest = (1000 * ordered[index] for index in shares)
    return middle, late, longest
