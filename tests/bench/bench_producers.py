"""Print whether many producers get in each other's way where a commit takes 2 ms.

Usage: make bench PART=producers ARGS="[--seconds 5] [--clients 16]"

The slow commit is PostgreSQL's own `commit_delay`, which commits at the same moment share.
One producer and many enqueue one by one, by pgbench, while a worker drains a backlog. For
comparison the same with a NOTIFY in each transaction, whose lock PostgreSQL holds through
the commit.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench import bulk, clear, database, one, working

from jobq_embedded import find_bin_dir

if TYPE_CHECKING:
    from bench import Connection

BATCH = 100_000
ENQUEUE = "select jobq.enqueue('noop', '{\"n\": 1}');"
NOTIFY = "begin; notify bench; " + ENQUEUE + " commit;"


def main() -> None:
    """Measure jobq, then what a NOTIFY in each transaction makes of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with database(commit_delay="2000", commit_siblings="0") as (connection, url):
        for what, script in (("enqueue", ENQUEUE), ("the same with a NOTIFY in each", NOTIFY)):
            rates = [
                beside_a_worker(connection, url, script, clients, options.seconds)
                for clients in (1, options.clients)
            ]
            print(
                f"{what:<32} 1 producer {rates[0]:,.0f}/s, {options.clients} producers"
                f" {rates[1]:,.0f}/s, {rates[1] / rates[0]:.1f} times",
                flush=True,
            )


def beside_a_worker(
    connection: Connection, url: str, script: str, clients: int, seconds: int
) -> float:
    """Return the transactions a second of producers while a worker drains a backlog."""
    clear(connection)
    for _ in range(seconds):
        bulk(connection, BATCH)
    with working(url, 1):
        while one(connection, "select not exists (select from jobq_private.job_archive)"):
            time.sleep(0.01)
        rate = transactions(url, script, clients, seconds)
        if not one(connection, "select exists (select from jobq_private.job)"):
            print("the worker ran out of jobs")
    return rate


def transactions(url: str, script: str, clients: int, seconds: int) -> float:
    """Return the transactions a second of pgbench."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "script.sql"
        file.write_text(script)
        program = str(find_bin_dir() / "pgbench")
        command = f"{program} -n -M prepared -c {clients} -j 1 -T {seconds} -f {file} {url}"
        done = subprocess.run(command.split(), check=True, capture_output=True, text=True)
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    assert found is not None
    return float(found[1])


if __name__ == "__main__":
    main()
