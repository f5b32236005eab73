"""The handlers that jobq's worker runs here."""

from __future__ import annotations

from agent import Notes

from jobq import JobContext, Registry

notes = Notes()
registry = Registry()


@registry.handler("noop")
async def noop() -> None:
    """Count the job."""
    notes.noop()


@registry.handler("flow")
async def flow(payload: dict[str, int | str], context: JobContext) -> int:
    """Count the workflow, and take three steps."""
    notes.noop()
    n = int(payload["n"])
    for name in ("one", "two", "three"):
        n = await context.step(name, add_one, n)
    return n


async def add_one(n: int) -> int:
    return n + 1


@registry.handler("caller")
async def caller(payload: dict[str, int | str], context: JobContext) -> int:
    """Call another job."""
    return int(await context.call("child", payload))


@registry.handler("child")
async def child(payload: dict[str, int | str]) -> int:
    """Count the call, and return a result."""
    notes.noop()
    return int(payload["n"]) + 1


@registry.handler("stamp")
async def stamp(payload: dict[str, int | str]) -> None:
    """Note when the job started."""
    notes.stamp(int(payload["n"]))
