"""The scenarios, as their files say them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["LEVELS", "Scenario", "load"]

LEVELS: Final = ("producer", "worker", "full")
FOLDER: Final = Path(__file__).parent / "scenarios"
# What a worker is told unless a scenario says otherwise.
WORK: Final = dict(  # noqa: C408 - "listen" would be SQL
    concurrency=1, poll=0.5, grace=30, listen=True, transactional=False
)
# How the jobs' kind is declared unless a scenario says otherwise.
KIND: Final = {"retry_strategy": "fixed", "retry_initial_delay": "0.05 s", "retry_jitter": 0}


@dataclass(frozen=True)
class Scenario:
    """What is given, what happens, and what holds then.

    Attributes:
        name: a claim about the program.
        level: ``producer``, ``worker`` or ``full``.
        kind: how the jobs' kind is declared.
        work: what the worker is told; None for a producer.
        steps: what is given, what happens and what holds, in this order.
    """

    name: str
    level: str
    kind: dict[str, Any]
    work: dict[str, Any] | None
    steps: list[dict[str, Any]] = field(default_factory=list)


def load() -> list[Scenario]:
    """Read all scenarios, level by level."""
    return [
        _scenario(level, given)
        for level in LEVELS
        for given in json.loads((FOLDER / f"{level}.json").read_text())
    ]


def _scenario(level: str, text: dict[str, Any]) -> Scenario:
    steps = [step for part in ("given", "when", "then") for step in text.get(part, [])]
    work = None if level == "producer" else WORK | text.get("work", {})
    return Scenario(text["name"], level, KIND | text.get("kind", {}), work, steps)
