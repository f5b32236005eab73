#!/usr/bin/env python3
"""Check both models with Spin, exhaustively, and that it finds what is wrong with each broken twin.

Prints the states explored and exits with 1 if a model fails or a twin passes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import relation

HERE = Path(__file__).resolve().parent
SECONDS = 240
MEMORY_MB = 6000
DEPTH = 1_000_000
TWINS = {
    "jobs": {
        1: "a stale attempt records an outcome",
        2: "a claim does not raise the attempt",
        3: "a release counts as an attempt",
        4: "a claim does not look at the limit",
        5: "a claim looks, and writes later what it saw",
        6: "recovery does not check that the attempt runs",
        7: "a child is released when its parent died",
        8: "a success can be redriven",
        9: "any update of the state is accepted",
    },
    "wake_up": {
        11: "a producer tests for waiters before it is announced",
        12: "a commit does not notify",
        13: "a worker tests for producers before it is announced",
        14: "a worker sleeps without a last claim",
    },
}


@dataclass(frozen=True, slots=True)
class Run:
    """What the checker said of a model.

    Attributes:
        states: how many it explored.
        problem: what it found wrong; empty if nothing.
    """

    states: int
    problem: str


def check(model: str, twin: int, folder: Path) -> Run:
    """Explore all states of a model, or those up to the first error.

    Args:
        model: the name of a file here.
        twin: which rule is broken; 0 for none.
        folder: where the checker is built.

    Raises:
        RuntimeError: the checker could not be built, or has not explored everything.
    """
    (folder / "relation.pml").write_text(relation.promela())
    (folder / "model.pml").write_text((HERE / f"{model}.pml").read_text())
    has_formula = "\nltl " in (folder / "model.pml").read_text()
    for command in (
        ["spin", f"-DTWIN={twin}", "-a", "model.pml"],
        ["gcc", "-O0" if twin else "-O2", "-w", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}",
         *([] if has_formula else ["-DSAFETY"]), "-o", "pan", "pan.c"],
    ):  # fmt: skip
        built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if built.returncode:
            raise RuntimeError(f"{model}: {built.stdout}{built.stderr}")
    options = [f"-m{DEPTH}", *(["-a"] if has_formula else [])]
    run = subprocess.run(
        ["./pan", *options],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    said = run.stdout
    counted = re.search(r"([\d.e+]+) states, stored", said)
    is_cut = "Search not completed" in said or "max search depth too small" in said
    if counted is None or (is_cut and "errors: 0" in said):
        raise RuntimeError(f"{model}: not all states were explored\n{said}")
    problem = re.search(r"^pan:1: (.*?) \(at depth", said, re.MULTILINE)
    return Run(int(float(counted[1])), problem[1] if problem else "")


def main() -> int:
    """Return 0 if the models hold and all twins are caught."""
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for model, twins in TWINS.items():
            cases = {0: "as it is", **twins}
            for twin, title in cases.items():
                run = check(model, twin, Path(name))
                failed += bool(run.problem) == (twin == 0)
                verdict = f"caught: {run.problem[:60]}" if run.problem else "holds"
                print(f"{model:8} {title:52} {run.states:>10,} states  {verdict}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
