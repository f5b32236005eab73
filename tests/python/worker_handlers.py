"""Handlers for the tests of the worker. Where they wait, it is for a file to appear."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from jobq.registry import JobContext, Registry

if TYPE_CHECKING:
    from psycopg import AsyncConnection

registry = Registry()


@dataclass(frozen=True, slots=True)
class Gate:
    """A file that says that the handler has started, and one that lets it go on."""

    started: str
    open: str

    @classmethod
    def within(cls, folder: Path, name: str = "gate") -> Gate:
        """Make a gate in a folder; it is shut."""
        return cls(str(folder / f"{name}.started"), str(folder / f"{name}.open"))

    def arrive(self) -> None:
        """Say that the handler has started."""
        Path(self.started).touch()

    @property
    def is_open(self) -> bool:
        """Whether the handler may go on."""
        return Path(self.open).exists()

    @property
    def has_started(self) -> bool:
        """Whether the handler has started."""
        return Path(self.started).exists()

    def let_through(self) -> None:
        """Let the handler go on."""
        Path(self.open).touch()


@registry.handler("noop")
async def noop() -> None:
    """Do nothing."""


@registry.handler("echo")
async def echo(payload: Any) -> Any:
    """Return the payload."""
    return payload


@registry.handler("wait")
async def wait(payload: Gate, context: JobContext) -> int:
    """Wait for the gate; return the attempt."""
    payload.arrive()
    while not payload.is_open:
        await asyncio.sleep(0.005)
    return context.attempt


@registry.handler("wait_in_thread")
def wait_in_thread(payload: Gate, context: JobContext) -> int:
    """Wait for the gate in a thread; return the attempt."""
    payload.arrive()
    while not payload.is_open:
        time.sleep(0.005)
    return context.attempt


@registry.handler("wait_politely")
async def wait_politely(payload: Gate, context: JobContext) -> None:
    """Wait for the gate, and stop when asked to."""
    payload.arrive()
    while not payload.is_open:
        context.check_cancelled()
        await asyncio.sleep(0.005)


@registry.handler("record")
def record(payload: dict[str, Any], context: JobContext) -> None:
    """Note that the job was processed, and by which process."""
    note(context)


@registry.handler("record_and_wait")
def record_and_wait(payload: Gate, context: JobContext) -> None:
    """The same, then wait for the gate in a thread."""
    note(context)
    while not payload.is_open:
        time.sleep(0.005)


def note(context: JobContext) -> None:
    """Write a row in a connection of its own."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            "insert into public.processed_log (job_id, attempt, worker) values (%s, %s, %s)",
            (context.job_id, context.attempt, os.getpid()),
        )


@registry.handler("write", transactional=True)
async def write(payload: Gate, context: JobContext, connection: AsyncConnection[Any]) -> int:
    """Write a row in the completion's transaction, wait for the gate; return the attempt."""
    await connection.execute(
        "insert into public.processed_log (job_id, attempt, worker) values (%s, %s, %s)",
        (context.job_id, context.attempt, os.getpid()),
    )
    payload.arrive()
    while not payload.is_open:
        await asyncio.sleep(0.005)
    return context.attempt
