"""The handlers that jobq's worker runs here."""

from __future__ import annotations

from agent import Notes

from jobq import Registry

notes = Notes()
registry = Registry()


@registry.handler("noop")
async def noop() -> None:
    """Count the job."""
    notes.noop()


@registry.handler("stamp")
async def stamp(payload: dict[str, int | str]) -> None:
    """Note when the job started."""
    notes.stamp(int(payload["n"]))
