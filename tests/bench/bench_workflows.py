"""Print what fan-in and batches cost, and how many workflows one worker does in a second.

Usage: make bench PART=workflows ARGS="[--rounds 3] [--jobs 20000] ..."

The workflows have three steps, or call another one, beside absurd's and DBOS'. The rounds are
interleaved, each in a fresh database; the arguments are those of bench-peers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import bench_fan_in
import run

if __name__ == "__main__":
    what = ("--systems", "jobq,absurd,dbos", "--measures", "flows,calls", "--jobs", "20000")
    sys.argv[1:1] = what
    run.parsed()  # a wrong argument, or --help, ends it here and not after a minute
    bench_fan_in.measure()
    run.main()
