"""Print what more cores bring, beside the prediction made on two, and what sessions wait for.

Usage: make bench PART=cores ARGS="[--cores 1,2,4,8,16] [--cpus 0,2,4,6] [--jobs 40000]
    [--batches 1,20,100] [--rounds 3]"

The whole server is held to so many processors, and twice as many sessions finish a batch in the
call that claims the next, within the server. The prediction is Gunther's universal scalability
law: of `n` cores, one does `n / (1 + a (n - 1) + b n (n - 1))` times as much, where `a` is the
share of the work that only one can do at a time, and `b` what each pair costs each other
("Guerrilla Capacity Planning", 2007, chapter 4; arXiv:0808.1431). `PREDICTED` has both numbers
as docs/contributing/design.md derives them; with three or more numbers of cores they are fitted to
what was measured, too. Cores that this machine lacks get a prediction alone. Without --cpus the
first processors are taken, of which two may be one core's.
"""

from __future__ import annotations

import argparse
import os
import statistics
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bench import database
from bench_sessions import drained

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench import Connection

# What is serial, and what pairs cost: docs/contributing/design.md derives both.
PREDICTED = (0.043, 0.0001)
SESSIONS = 2  # for each core: one commits while another works


def main() -> None:
    """Print a line for each size of batch and number of cores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cores", type=numbers, default=[1, 2, 4, 8, 16])
    parser.add_argument("--cpus", type=numbers, default=sorted(os.sched_getaffinity(0)))
    parser.add_argument("--jobs", type=int, default=40_000, help="for each core")
    parser.add_argument("--batches", type=numbers, default=[1, 20, 100])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    shared = f"{max(512, 128 * len(options.cpus))}MB"
    with database(shared_buffers=shared, max_connections="300") as (connection, url):
        for batch in options.batches:
            rates: dict[int, float] = {}
            for cores in options.cores:
                if cores > len(options.cpus):
                    show(batch, cores, rates, "")
                    continue
                pin(connection, options.cpus[:cores])
                # A commit for each job takes ten times as long.
                jobs = options.jobs * cores // (10 if batch == 1 else 1)
                rounds = [
                    drained(connection, url, SESSIONS * cores, batch, jobs)
                    for _ in range(options.rounds)
                ]
                rates[cores] = statistics.median(each.rate for each in rounds)
                waits = sum((each.waits for each in rounds[1:]), rounds[0].waits)
                cpu = statistics.median(each.cpu_seconds for each in rounds) / jobs
                show(batch, cores, rates, f"{1e6 * cpu:,.0f} µs of CPU a job; {shares(waits)}")
            if len(rates) > 2:
                serial, pairs = fitted(rates)
                print(f"  fitted: {serial:.3f} serial, {pairs:.5f} for pairs", flush=True)


def numbers(text: str) -> list[int]:
    """Read numbers with commas between them."""
    return [int(number) for number in text.split(",")]


def show(batch: int, cores: int, rates: Mapping[int, float], beside: str) -> None:
    """Print what was measured, and what was predicted of the rate of the fewest cores."""
    least = min(rates, default=0)
    predicted = rates[least] * gain(cores) / gain(least) if least else 0
    measured = f"{rates[cores]:>9,.0f} jobs/s" if cores in rates else f"{'not here':>16}"
    print(
        f"batches of {batch:>3}, {cores:>2} cores: {measured}, predicted {predicted:>9,.0f}"
        f"{'; ' if beside else ''}{beside}",
        flush=True,
    )


def gain(cores: int) -> float:
    """Return how many times as much as one core so many are predicted to do."""
    serial, pairs = PREDICTED
    return cores / (1 + serial * (cores - 1) + pairs * cores * (cores - 1))


def fitted(rates: Mapping[int, float]) -> tuple[float, float]:
    """Fit the law's two numbers to rates by least squares; neither is negative.

    With `c` times as much by `n` cores, `n / c - 1 = a (n - 1) + b n (n - 1)` is linear in both.
    """
    least = min(rates)
    one = rates[least] / least
    points = [(n - 1, n * (n - 1), n * one / rate - 1) for n, rate in rates.items() if n > 1]
    aa, ab, bb = (sum(p[i] * p[j] for p in points) for i, j in ((0, 0), (0, 1), (1, 1)))
    ay, by = (sum(p[i] * p[2] for p in points) for i in (0, 1))
    determinant = aa * bb - ab * ab
    serial, pairs = (ay * bb - by * ab) / determinant, (aa * by - ab * ay) / determinant
    if pairs < 0:
        serial, pairs = ay / aa, 0.0
    if serial < 0:
        serial, pairs = 0.0, max(0.0, by / bb)
    return serial, pairs


def shares(waits: Mapping[str, int]) -> str:
    """Return what sessions waited for, the longest waits first."""
    total = max(1, sum(waits.values()))
    longest = sorted(waits, key=lambda event: -waits[event])
    return ", ".join(f"{event} {waits[event] / total:.0%}" for event in longest[:6])


def pin(connection: Connection, cpus: Sequence[int]) -> None:
    """Hold the server, and every session that is opened from now on, to processors."""
    backend = connection.info.backend_pid
    postmaster = int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for pid in (postmaster, *map(int, children)):
        with suppress(ProcessLookupError):  # a worker of autovacuum may have ended
            os.sched_setaffinity(pid, cpus)


if __name__ == "__main__":
    main()
