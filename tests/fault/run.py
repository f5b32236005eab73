"""Run jobq under faults; print what was acknowledged, lost, repeated, and the longest stall.

Usage: make fault ARGS="[--short] [--seconds N] [--seed N] [--keep] [FAULT ...]"

Also prints how many committed changes of state were replayed against the specification
(tests/spec); a dash where the history ended with a server that was replaced. Exits with 1 when
anything was lost, ran twice under one attempt, repeated without a cause, was rejected, or did
not finish in time.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path

from faults import FAULTS, NEEDS, SHORT, lacks
from rig import Outcome, Rig

from jobq_embedded import Server

SETTINGS = {
    "max_connections": "40",
    "log_min_messages": "fatal",
    "restart_after_crash": "on",
    "shared_buffers": "32MB",
    "max_wal_size": "64MB",
    "min_wal_size": "32MB",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
    # What was committed is replayed against the specification.
    "wal_level": "logical",
}
HEAD = (
    "fault", "times", "acknowledged", "lost", "repeated", "at most", "longest stall",
    "finished in", "replayed", "rejected",
)  # fmt: skip
WIDTHS = (24, 6, 13, 6, 9, 8, 14, 12, 9, 9)


def main() -> int:
    """Run the chosen faults and print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=", ".join(FAULTS))
    parser.add_argument("--short", action="store_true", help="a minute's worth of them")
    parser.add_argument("--seconds", type=float, help="how long each fault lasts")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--keep", action="store_true", help="keep journals and logs")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = chosen(options.faults) or (SHORT if options.short else FAULTS)
    seconds = options.seconds or (1.5 if options.short else 20.0)

    print(f"seed {options.seed}")
    print_row(HEAD)
    print_row(tuple("---" for _ in HEAD))
    folder = Path(tempfile.mkdtemp(prefix="jobq-fault-"))
    folder.chmod(0o755)
    problems: list[str] = []
    version = max(("18", "16"), key=int)
    settings = SETTINGS | ({"max_notify_queue_pages": "64"} if version == "18" else {})
    server = Server(folder / "server", version, settings=settings)
    try:
        with server:
            for n, name in enumerate(names):
                if name in NEEDS and (lack := lacks(*NEEDS[name])):
                    print_row((name, "-", lack, *["-"] * 7))
                    continue
                chance = random.Random(f"{options.seed} {name}")
                rig = Rig(server, folder, f"run_{n}", chance, seconds)
                problems += [f"{name}: {p}" for p in one(name, rig)]
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        print(f"PROBLEM {problem}")
    if problems:
        print(f"repeat with --seed {options.seed}")
    return 1 if problems else 0


def chosen(given: list[str]) -> list[str]:
    """Return the faults of these names; the name before a colon stands for its whole group."""
    unknown = [g for g in given if not any(g in (f, f.partition(":")[0]) for f in FAULTS)]
    if unknown:
        raise SystemExit(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    return [f for g in given for f in FAULTS if g in (f, f.partition(":")[0])]


def one(name: str, rig: Rig) -> list[str]:
    """Run one fault, print its line, and return what must not be."""
    try:
        FAULTS[name](rig)
        outcome: Outcome = rig.outcome or rig.check()
    except Exception:
        print_row((name, str(rig.faults), "failed", *["-"] * 7))
        return [traceback.format_exc()]
    finally:
        rig.stop()
    print_row((
        name, str(outcome.faults), str(outcome.acknowledged), str(outcome.lost),
        str(outcome.repeated), str(outcome.at_most), f"{outcome.stall:.1f} s",
        f"{outcome.finished_in:.1f} s",
        *(("-", "-") if outcome.steps is None else (str(outcome.steps), str(outcome.rejected))),
    ))  # fmt: skip
    return outcome.problems


def print_row(cells: tuple[str, ...]) -> None:
    """Print a row of a Markdown table as soon as it is known."""
    padded = (cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    print(f"| {' | '.join(padded)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
