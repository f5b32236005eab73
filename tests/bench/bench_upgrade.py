"""Print for how long an upgrade, and the way back, hold up claims of a long queue.

Usage: make bench PART=upgrade ARGS="[--rows 5000000] [--rate 500] [--times 3]"

The upgrade adds a column to the tables of jobs, and replaces functions and a trigger that all calls
use. Meanwhile producers enqueue at a rate, and sessions claim and complete.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psycopg
from bench import SETTINGS
from bench_deploy import CLAIMERS, Outcome, consume, produce, repeat

from jobq_embedded import Server
from jobq_operations import deploy

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "sql")]

from released import releases  # noqa: E402

import render  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

FILL = """
    insert into jobq_private.job (
        job_id, kind, queue, priority, run_at, max_attempts, timeout, lease
    )
    select jobq_private.new_id(0), 'k', 'default', 0, now(), 5, '5 min', '30 s'
    from generate_series(1, %s)
"""
CHUNK = 250_000


def main() -> None:
    """Fill a queue, upgrade and return some times, and print the longest pauses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        Server(Path(folder) / "data", settings=SETTINGS) as server,
    ):
        old, new = rendered(Path(folder))
        use(old)
        deploy.deploy(server.url)
        started = time.monotonic()
        fill(server.url, options.rows)
        print(f"{options.rows:,} jobs stored in {time.monotonic() - started:.0f} s", flush=True)
        use(new)
        outcome = under_load(server.url, options.rate, options.times)
    print(f"jobs completed          {outcome.jobs:,}")
    for name in ("enqueue", "complete"):
        print(f"longest {name:<15} {outcome.waits[name]:.2f} s")
    print(f"errors of clients       {len(outcome.errors)} {outcome.errors[:3]}")


def rendered(folder: Path) -> list[Path]:
    """Return the projects of two releases as their packages have them."""
    projects = []
    for origin in releases(folder / "sources"):
        projects.append(folder / origin.name)
        render.export(origin, projects[-1])
    return projects


def use(project: Path) -> None:
    """Let jobq.deploy use a project."""
    deploy.project_dir = lambda: project


def fill(url: str, rows: int) -> None:
    """Store jobs that are due."""
    with psycopg.connect(url, autocommit=True) as connection:
        for first in range(0, rows, CHUNK):
            connection.execute(FILL, [min(CHUNK, rows - first)])
        connection.execute("vacuum analyze jobq_private.job")


def under_load(url: str, rate: int, times: int) -> Outcome:
    """Upgrade and return some times under load; return what clients met.

    Args:
        url: a superuser's URL of a database with the older release.
        rate: jobs a second.
        times: how often.
    """
    outcome, stop = Outcome(), threading.Event()
    clients: list[Callable[[psycopg.Connection], None]] = [
        lambda c: produce(c, rate, outcome),
        *[lambda c: consume(c, outcome)] * CLAIMERS,
    ]
    threads = [threading.Thread(target=repeat, args=(c, url, stop, outcome)) for c in clients]
    for thread in threads:
        thread.start()
    try:
        for _ in range(times):
            for name, act in (("upgrade", deploy.deploy), ("return", go_back)):
                time.sleep(2)
                outcome.waits["claim"] = 0.0
                started, waiting = time.monotonic(), []
                act(url, lambda line, w=waiting: w.append(line) if "waiting" in line else None)
                time.sleep(1)
                print(
                    f"{name} in {time.monotonic() - started - 1:.1f} s, {len(waiting)} tries more;"
                    f" longest claim {outcome.waits['claim']:.2f} s",
                    flush=True,
                )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return outcome


def go_back(url: str, report: Callable[[str], None]) -> None:
    """Return to the older release."""
    deploy.revert(url, "0.1.0", report)


if __name__ == "__main__":
    main()
