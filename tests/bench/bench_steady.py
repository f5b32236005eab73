"""Print latency and table sizes while jobs come and go at a steady rate, and plot them.

Usage: make bench PART=steady ARGS="[--minutes 3] [--rate 2000] [--plot steady.svg]"

One process enqueues ten jobs at a time and one worker does them, with autovacuum as it comes.
Each ten seconds a line tells the pick-up of that time, from when the enqueuer knows of the
commit to the handler's first line, and how large the table of live jobs is by then, its
indexes apart.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench import database
from plot import Panel, save
from stamps import percentiles, stamping, stamps

if TYPE_CHECKING:
    from bench import Connection

BATCH = 10
WINDOW = 10.0
ENQUEUE = """
    select count(*) from jobq.enqueue_many((
        select jsonb_agg(jsonb_build_object('kind', 'stamp', 'payload', n))
        from generate_series(%s::bigint, %s::bigint) as n
    ))
"""
SIZES = """
    select pg_table_size('jobq_private.job'), pg_indexes_size('jobq_private.job'),
        (select autovacuum_count from pg_stat_all_tables
         where relid = 'jobq_private.job'::regclass)
"""


@dataclass(frozen=True)
class Window:
    """What was seen in ten seconds.

    Attributes:
        jobs: how many started.
        middle: p50 of pick-up, in milliseconds.
        late: p99 of pick-up, in milliseconds.
        table: megabytes of live jobs at the end.
        indexes: megabytes of their indexes at the end.
        vacuums: by autovacuum, since the beginning.
    """

    jobs: int
    middle: float
    late: float
    table: float
    indexes: float
    vacuums: int


def main() -> None:
    """Measure, print each window, and write the plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    with database() as (connection, url), stamping(url) as pipe:
        windows = measured(connection, pipe, options.minutes, options.rate)
    if options.plot:
        save(options.plot, panels(windows), options.minutes)


def measured(connection: Connection, pipe: int, minutes: float, rate: int) -> list[Window]:
    """Keep the rate up, and return what was seen in each window."""
    windows: list[Window] = []
    committed: dict[int, float] = {}
    taken: list[float] = []
    start = time.monotonic()
    number = 0
    while len(windows) < minutes * 60 / WINDOW:
        time.sleep(max(0, start + number / rate - time.monotonic()))
        connection.execute(ENQUEUE, [number, number + BATCH - 1], prepare=True)
        moment = time.monotonic()
        committed.update(dict.fromkeys(range(number, number + BATCH), moment))
        number += BATCH
        taken += [started - committed.pop(job) for job, started in stamps(pipe, 0)]
        if moment >= start + (len(windows) + 1) * WINDOW:
            windows.append(window(connection, taken))
            show(windows[-1], moment - start, len(committed))
            taken = []
    return windows


def window(connection: Connection, taken: list[float]) -> Window:
    """Return what was seen since the window before."""
    middle, late, _ = percentiles(taken)
    row = connection.execute(SIZES).fetchone()
    assert row is not None
    table, indexes, vacuums = row
    return Window(len(taken), middle, late, table / 1e6, indexes / 1e6, vacuums)


def show(seen: Window, seconds: float, waiting: int) -> None:
    """Print a line."""
    print(
        f"{seconds:>6.0f} s: {seen.jobs / WINDOW:,.0f} jobs/s, {waiting} wait,"
        f" pick-up p50 {seen.middle:.1f} ms, p99 {seen.late:.1f} ms,"
        f" table {seen.table:.1f} MB, indexes {seen.indexes:.1f} MB, vacuumed {seen.vacuums} times",
        flush=True,
    )


def panels(windows: list[Window]) -> list[Panel]:
    """Return what the plot shows."""
    return [
        Panel(
            "Pick-up, ms", {"p50": [w.middle for w in windows], "p99": [w.late for w in windows]}
        ),
        Panel(
            "Live jobs, MB",
            {"table": [w.table for w in windows], "indexes": [w.indexes for w in windows]},
        ),
        Panel("Jobs/s", {"started": [w.jobs / WINDOW for w in windows]}),
    ]


if __name__ == "__main__":
    main()
