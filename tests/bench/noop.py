"""A handler that does nothing, for measuring everything else."""

from __future__ import annotations

from jobq.registry import Registry

registry = Registry()


@registry.handler("noop")
async def noop() -> None:
    """Do nothing."""
