#!/usr/bin/env python3
"""Replay random loads until so many changes of state have followed the specification.

    soak.py [--steps 1000000] [--seed 1] [--loads 3] [--calls 1000] [--most 200]

Each round has a seed of its own and a new database: several loads work on it side by side, in
batches and singly, with leases so short that attempts lose them, and then its history is
replayed. Prints a line for each round with its seed, and exits with 1 when a change is rejected.
Loads side by side meet in another order when a seed is run again.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "sql")]

import history  # noqa: E402
from load import LIMITS, SHORT_LEASES, Load  # noqa: E402
from replay import Replay, replay  # noqa: E402

from jobq_operations.deploy import single_file  # noqa: E402
from servers import Cluster  # noqa: E402


def main() -> int:
    """Run rounds; return 1 if a change was rejected."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--loads", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1000, help="of each load")
    parser.add_argument("--most", type=int, default=200, help="jobs of a call")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server ends too
    steps = rejected = 0
    with TemporaryDirectory(prefix="jobq-soak-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "jobq.sql").write_text(single_file())
        with Cluster.started("18", folder / "server", folder) as cluster:
            seed = options.seed
            while steps < options.steps:
                started = time.monotonic()
                replayed = played(cluster, seed, options)
                steps += replayed.steps.total()
                rejected += len(replayed.rejected)
                print(
                    f"seed {seed}: {steps:,} steps replayed, {rejected} rejected,"
                    f" {len(replayed.steps)} kinds of change in {time.monotonic() - started:.0f} s",
                    *replayed.rejected[:20], sep="\n", flush=True,
                )  # fmt: skip
                seed += 1
    return int(rejected > 0)


def played(cluster: Cluster, seed: int, options: argparse.Namespace) -> Replay:
    """Run loads side by side in a new database, and replay its history."""
    with cluster.database() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(SHORT_LEASES.encode())
        history.record(url)
        with ThreadPoolExecutor(options.loads) as threads:
            running = [
                threads.submit(
                    Load(url, random.Random(f"{seed} {n}"), most=options.most).run, options.calls
                )
                for n in range(options.loads)
            ]
            for load in running:
                load.result()
        replayed = replay(url, LIMITS)
        history.forget(url)
    return replayed


if __name__ == "__main__":
    sys.exit(main())
