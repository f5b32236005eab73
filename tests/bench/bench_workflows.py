"""Print how many workflows of three steps one worker does in a second, beside absurd and DBOS.

Usage: make bench PART=workflows ARGS="[--rounds 3] [--jobs 20000] ..."

The rounds are interleaved, each in a fresh database; the arguments are those of bench-peers.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

import run

if __name__ == "__main__":
    sys.argv[1:1] = ["--systems", "jobq,absurd,dbos", "--measures", "flows", "--jobs", "20000"]
    run.main()
