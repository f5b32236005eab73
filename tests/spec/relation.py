#!/usr/bin/env python3
"""The legal changes of a job's state, read from where the product has them.

`deploy/job_tables.sql` fills the table `transition`. The model and the replay of histories both
use these rows, so neither can differ from the product.
"""

from __future__ import annotations

import re
from pathlib import Path

TABLES = Path(__file__).resolve().parents[2] / "deploy" / "job_tables.sql"
STATES = ("queued", "blocked", "running", "retrying", "succeeded", "dead", "cancelled")
LIVE = ("queued", "blocked", "running", "retrying")
FINAL = ("succeeded", "dead", "cancelled")
BIRTHS = ("queued", "blocked")


def transitions(source: Path = TABLES) -> set[tuple[str, str]]:
    """Return the pairs of states (from, to) that the table `transition` allows.

    Args:
        source: the script that fills the table.

    Raises:
        ValueError: the script has no such rows, or names an unknown state.
    """
    insert = re.search(r"insert into jobq_private\.transition .*?;", source.read_text(), re.DOTALL)
    pairs = set(re.findall(r"\('(\w+)', '(\w+)', '", insert.group() if insert else ""))
    if not pairs or not {state for pair in pairs for state in pair} <= set(STATES):
        raise ValueError(f"{source} has no transitions, or states other than {STATES}")
    return pairs


def promela() -> str:
    """Return the states and the relation as macros of Promela."""
    names = [f"#define {state.upper()} {n}" for n, state in enumerate(STATES, 1)]
    legal = " || \\\n    ".join(
        f"(from_state == {a.upper()} && to_state == {b.upper()})" for a, b in sorted(transitions())
    )
    return "\n".join([*names, f"#define LEGAL(from_state, to_state) ( \\\n    {legal})", ""])
