"""Print how soon a handler starts after its job's commit, and how many wake-ups are lost.

Usage: make bench PART=pick_up ARGS="[--rounds 10000] [--rate 500] [--seconds 10]"

Measured from when the enqueuer knows of the commit to the handler's first line, in a worker
process with the default settings but for polling, which is set to 60 seconds.

The idle worker sleeps for long when its job comes: without a wake-up it starts up to a minute
late. Then come rounds with random pauses, so that jobs come at every moment of a worker's
falling asleep; a worker looks once more 20 ms after it has fallen asleep, so a wake-up that
is lost in these rounds shows as a job that starts more than 20 ms late.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING

from bench import database
from stamps import percentiles, stamping, stamps

if TYPE_CHECKING:
    from bench import Connection

ENQUEUE = "select jobq.enqueue('stamp', to_jsonb(%s::bigint))"
IDLE_PAUSE = 0.1
LOOK = 0.02
LATE = 1.0


def main() -> None:
    """Measure a worker that is idle, one that falls asleep, and one under load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--idle-rounds", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with database() as (connection, url), stamping(url, "--poll", "60") as pipe:
        taken = [one(connection, pipe, IDLE_PAUSE) for _ in range(options.idle_rounds)]
        show("pick-up by an idle worker", taken)
        taken = [one(connection, pipe, random.uniform(0, 0.008)) for _ in range(options.rounds)]
        show(f"{options.rounds:,} rounds, polling each 60 s", taken)
        taken = paced(connection, pipe, options.rate, options.seconds)
        show(f"pick-up at {options.rate:.0f} jobs/s", taken)


def one(connection: Connection, pipe: int, pause: float) -> float:
    """Return the seconds until a job starts, after a pause."""
    time.sleep(pause)
    connection.execute(ENQUEUE, [0], prepare=True)
    committed = time.monotonic()
    [(_, started)] = stamps(pipe, 120)
    return started - committed


def paced(connection: Connection, pipe: int, rate: float, seconds: float) -> list[float]:
    """Return the seconds until each job starts that comes at a steady rate."""
    start = time.monotonic()
    committed: list[float] = []
    started: dict[int, float] = {}
    for number in range(int(rate * seconds)):
        time.sleep(max(0, start + number / rate - time.monotonic()))
        connection.execute(ENQUEUE, [number], prepare=True)
        committed.append(time.monotonic())
        started.update(stamps(pipe, 0))
    while len(started) < len(committed):
        started.update(stamps(pipe, 60))
    return [started[number] - moment for number, moment in enumerate(committed)]


def show(what: str, seconds: list[float]) -> None:
    """Print the percentiles of a list of seconds."""
    middle, late, longest = percentiles(seconds)
    print(
        f"{what:<36} p50 {middle:.2f} ms, p99 {late:.2f} ms, longest {longest:.1f} ms;"
        f" later than 20 ms: {sum(t > LOOK for t in seconds)},"
        f" than 1 s: {sum(t > LATE for t in seconds)}",
        flush=True,
    )


if __name__ == "__main__":
    main()
