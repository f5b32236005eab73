"""Handlers that behave badly, and a good one, for `make fault` and for the tests."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from jobq.registry import Cancelled, JobContext, Permanent, Registry, Retry, Snooze, Unable

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import AsyncConnection, Connection

registry = Registry()
# Short, so that a run of some seconds sees what follows from it.
TIMEOUT = 1.0


def bad(function: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """Register a handler under its own name, with one attempt and a short timeout."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        given: dict[str, Any] = {"timeout": TIMEOUT, "max_attempts": 1, "queue": "bad", **options}
        registry.handler(function.__name__, **given)(function)
        return function

    return register if function is None else register(function)


@registry.handler("good", queue="good")
async def good() -> str:
    """Do some work."""
    await asyncio.sleep(0.01)
    return "fine"


@registry.handler("wait_for_long", queue="default", timeout=60)
async def wait_for_long(context: JobContext) -> int:
    """Outlast what holds up the loop."""
    await asyncio.sleep(13)
    return context.attempt


# ---- hang


@bad
def hang_thread() -> None:
    time.sleep(20)


@bad
async def hang_coroutine() -> None:
    await asyncio.Event().wait()


@bad(process=True)
def hang_process() -> None:
    threading.Event().wait()


@bad(process=True)
def hang_child() -> None:
    subprocess.run(["sleep", "1000"], check=False)


@bad(process=True)
def hang_and_ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    threading.Event().wait()


@bad(transactional=True)
async def hang_in_transaction(connection: AsyncConnection[Any]) -> None:
    await connection.execute("select pg_sleep(1000)")


@bad(transactional=True)
def hang_in_transaction_in_thread(connection: Connection[Any]) -> None:
    connection.execute("select pg_sleep(20)")


# ---- loop


@bad(timeout=60, queue="default")
async def loop_coroutine() -> None:
    while True:
        pass


@bad
async def block_coroutine() -> None:
    time.sleep(2)  # noqa: ASYNC251


@bad(process=True)
def loop_process() -> None:
    while True:
        pass


@bad
def loop_thread() -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        pass


@bad(process=True)
def match_for_ever() -> None:
    re.match(r"(a+)+$", "a" * 40 + "b")


@bad
async def recurse() -> None:
    await recurse()


# ---- exit


@bad
async def exit_coroutine() -> None:
    sys.exit(3)


@bad
def exit_thread() -> None:
    sys.exit(3)


@bad(process=True)
def exit_process() -> None:
    os._exit(3)


@bad(process=True)
def segfault() -> None:
    ctypes.string_at(0)


@bad(process=True)
def kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@bad
def interrupt() -> None:
    raise KeyboardInterrupt


# ---- cancellation


@bad
async def swallow_cancellation() -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            continue


@bad
async def cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


@bad
async def await_what_is_cancelled() -> None:
    task = asyncio.ensure_future(asyncio.sleep(1))
    task.cancel()
    await task


@bad
async def claim_to_be_cancelled() -> None:
    raise Cancelled


# ---- raise


@bad
def stop_iteration() -> None:
    next(iter(()))


@bad
async def generator_exit() -> None:
    raise GeneratorExit


class UnspeakableError(Exception):
    """It cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


@bad
def unspeakable() -> None:
    raise UnspeakableError


@bad(process=True)
def unpicklable() -> None:
    error = ValueError("with a lock")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


@bad
async def group() -> None:
    raise BaseExceptionGroup("two", [SystemExit(1), KeyboardInterrupt()])


@bad
def retry_with_a_number() -> None:
    raise Retry(404)  # type: ignore[arg-type]


@bad
def permanent_with_everything() -> None:
    raise Permanent("x" * 9999, "\ud800\0" * 9999, details={"a": object()})


@bad
def snooze_nonsense() -> None:
    raise Snooze("tomorrow")  # type: ignore[arg-type]


@bad
async def unable() -> None:
    raise Unable("NOTHING", "it lacks something", in_=3600)


# ---- memory, connections, log


@bad
def leak() -> None:
    leaked.append(bytearray(1_000_000))


leaked: list[bytearray] = []


@bad
def return_too_much() -> str:
    return "x" * 5_000_000


@bad
async def return_nonsense() -> object:
    return object()


@bad(transactional=True)
async def close_connection(connection: AsyncConnection[Any]) -> None:
    await connection.close()


@bad(transactional=True)
def cut_connection(connection: Connection[Any]) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


@bad
def log_without_end(context: JobContext) -> None:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        context.log("INFO", "x" * 8192)


@bad
def close_standard_error() -> None:
    sys.stderr.close()


@bad
async def stop_the_loop() -> None:
    asyncio.get_running_loop().stop()


@bad(queue="default")
async def cancel_every_task() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


@bad
async def leave_a_task_that_exits() -> None:
    async def leave() -> None:
        sys.exit(3)

    left = asyncio.create_task(leave())
    while not left.done():
        await asyncio.sleep(0)


BAD = tuple(handler.kind for handler in registry if handler.definition["queue"] == "bad")
