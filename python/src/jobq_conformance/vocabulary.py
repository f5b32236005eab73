"""The scenarios, read from their files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

LEVELS: Final = ("producer", "worker", "full")
FOLDER: Final = Path(__file__).parent / "scenarios"
# The default options of a worker.
WORK: Final = dict(  # noqa: C408 - "listen" would be SQL
    concurrency=1, poll=0.5, grace=30, listen=True, transactional=False
)
# The default declaration of the jobs' kind.
KIND: Final = {"retry_strategy": "fixed", "retry_initial_delay": "0.05 s", "retry_jitter": 0}


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    Attributes:
        name: a claim about the program.
        level: ``producer``, ``worker`` or ``full``.
        kind: declaration of the jobs' kind.
        work: options of the worker; None for a producer.
        steps: preparations, actions and expectations, in this order.
    """

    name: str
    level: str
    kind: dict[str, Any]
    work: dict[str, Any] | None
    steps: list[dict[str, Any]] = field(default_factory=list)


def load() -> list[Scenario]:
    """Read all scenarios, level by level."""
    found = []
    for level in LEVELS:
        for text in json.loads((FOLDER / f"{level}.json").read_text()):
            steps = [step for part in ("given", "when", "then") for step in text.get(part, [])]
            work = None if level == "producer" else WORK | text.get("work", {})
            kind = KIND | text.get("kind", {})
            found.append(Scenario(text["name"], level, kind, work, steps))
    return found
