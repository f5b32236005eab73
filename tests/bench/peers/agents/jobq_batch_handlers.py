"""A handler that jobq's worker calls once for many jobs."""

from __future__ import annotations

from typing import Any

from agent import Notes

from jobq import Registry

notes = Notes()
registry = Registry()


@registry.handler("noop", batch=500)
async def noop(payloads: list[dict[str, Any]]) -> None:
    """Count the jobs."""
    for _payload in payloads:
        notes.noop()
