"""Processes for handlers that work the CPU: one that hangs is killed, and replaced."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jobq.context import JobContext, Written
from jobq.outcomes import Unable
from jobq.redaction import error_text
from jobq.settlement import ProcessDiedError, Raised, Returned
from jobq.steps import Steps
from jobq.worker.forks import generation, leave_if_forked

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from multiprocessing.connection import Connection
    from uuid import UUID

    from jobq.models import Input, Json
    from jobq.steps import Wait
    from jobq.worker.threads import Threads

__all__ = ["Process", "Processes"]

# What a process is asked, before a function, and before arguments.
LOAD: Final = b"l"
CALL: Final = b"c"
# What a process says when its handler wants something of its context.
ASK: Final = b"a"
# What a process says when it has a function; anything else is why it has not.
LOADED: Final = b""


class Nobody:
    """Stands where the process puts its own recorder."""

    def progress(self, _context: JobContext, _value: Json) -> Written:
        """Note nothing."""
        return Written()

    def log(self, _context: JobContext, _level: str, _message: str) -> Written:
        """Note nothing."""
        return Written()


class HandlerError(Exception):
    """What a handler raised, where only its text can leave the process."""


class Process:
    """A process that makes one call after the other."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", __name__])
        self._end, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs,), name="jobq handler", daemon=True
        )
        self._process.start()
        theirs.close()
        self._loaded: bytes | None = None
        self.is_fit = True

    def load(self, function: Callable[..., Any]) -> None:
        """Have the process import a function, which is not yet called.

        Raises:
            Unable: the process ended, or cannot import it.
        """
        asked = pickle.dumps(function)
        if asked == self._loaded:
            return
        try:
            self._end.send_bytes(LOAD + asked)
            words = self._end.recv_bytes()
        except (OSError, EOFError) as error:
            self.is_fit = False
            raise Unable("NO_PROCESS", "the process of the handler ended before it") from error
        if words != LOADED:
            self.is_fit = False
            raise Unable("NO_PROCESS", words.decode())
        self._loaded = asked

    def call(self, *arguments: object) -> object:
        """Call the function that was loaded; return what it returns or raise what it raises.

        Raises:
            ProcessDiedError: the process ended before the function did.
        """
        context = next((a for a in arguments if isinstance(a, JobContext)), None)
        asked = pickle.dumps(tuple(_bare(a) for a in arguments))
        try:
            self._end.send_bytes(CALL + asked)
            while (said := self._end.recv_bytes()).startswith(ASK):
                self._end.send_bytes(_given(context, said))
            did, words = pickle.loads(said)  # noqa: S301 - our own process
        except (OSError, EOFError) as error:
            self.is_fit = False
            raise ProcessDiedError("the process of the handler ended before it did") from error
        try:
            outcome: Returned | Raised = pickle.loads(did)  # noqa: S301 - as above
        except Exception as error:
            raise HandlerError(words) from error
        if isinstance(outcome, Raised):
            raise outcome.error
        return outcome.value

    def kill(self) -> None:
        """End the process, and all that it has started."""
        self.is_fit = False
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()


class Processes:
    """So many processes, started when they are first needed.

    Args:
        most: how many handlers run at a time.
        threads: where to wait for their answers.
    """

    def __init__(self, most: int, threads: Threads) -> None:
        self._threads = threads
        self._turns = asyncio.Semaphore(most)
        self._idle: list[Process] = []
        self._all: set[Process] = set()

    async def take(self, function: Callable[..., Any]) -> Process:
        """Wait for a process that does nothing else, and can call a function at once.

        Raises:
            Unable: the system gives no process, or it cannot import the function.
        """
        await self._turns.acquire()
        try:
            getting = self._threads.run(self._get, function)
        except Unable:
            self._turns.release()
            raise
        try:
            did = await asyncio.shield(getting)
        except asyncio.CancelledError:
            getting.add_done_callback(self._on_late)
            raise
        if isinstance(did, Returned) and isinstance(did.value, Process):
            return did.value
        self._turns.release()
        if isinstance(did, Raised) and not isinstance(did.error, OSError):
            raise did.error
        raise Unable("NO_PROCESS", error_text(did), in_=1.0)

    def _get(self, function: Callable[..., Any]) -> Process:
        """Return a process that has a function, in a thread: both may take a while."""
        process = self._idle.pop() if self._idle else Process()
        self._all.add(process)
        try:
            process.load(function)
        except BaseException:
            process.kill()
            self._all.discard(process)
            raise
        return process

    def give_back(self, process: Process) -> None:
        """Let another handler have a process, or a new one in its place."""
        if process.is_fit:
            self._idle.append(process)
        else:
            process.kill()
            self._all.discard(process)
        self._turns.release()

    def close(self) -> None:
        """Kill all."""
        for process in self._all:
            process.kill()

    def _on_late(self, got: asyncio.Future[Returned | Raised]) -> None:
        """Keep a process that nobody waits for any more."""
        did = None if got.cancelled() else got.result()
        if isinstance(did, Returned) and isinstance(did.value, Process):
            self.give_back(did.value)
        else:
            self._turns.release()


def _bare(argument: object) -> object:
    """Return an argument; a context without what stays in the worker."""
    if isinstance(argument, JobContext):
        return replace(argument, recorder=Nobody(), steps=None)
    return argument


def _given(context: JobContext | None, said: bytes) -> bytes:
    """Do what a handler asks of its context, and return what that does."""
    name, arguments = pickle.loads(said[len(ASK) :])  # noqa: S301 - our own process
    did: Returned | Raised
    try:
        if name in ("progress", "log"):
            getattr(context, name)(*arguments)
            did = Returned(None)
        else:
            journal = context.steps.journal if context and context.steps else None
            did = Returned(getattr(journal, name)(*arguments))
    except BaseException as error:
        did = Raised(error)
    return pickle.dumps(did)


class Afar:
    """Recorder and journal of a context whose worker is another process.

    Args:
        end: of the pipe to the worker.
    """

    def __init__(self, end: Connection) -> None:
        self._end = end
        self._lock = threading.Lock()

    def progress(self, _context: JobContext, value: Json) -> Written:
        """Note how far the job is."""
        self._ask("progress", value)
        return Written()

    def log(self, _context: JobContext, level: str, message: str) -> Written:
        """Note a line."""
        self._ask("log", level, message)
        return Written()

    def load(self, job_id: UUID) -> dict[str, Json]:
        """Return what earlier attempts have recorded."""
        loaded: dict[str, Json] = self._ask("load", job_id)
        return loaded

    def save(self, job_id: UUID, attempt: int, name: str, value: str) -> Json:
        """Record what a step has come to."""
        return self._ask("save", job_id, attempt, name, value)

    def wait(self, job_id: UUID, attempt: int, event: str, within: timedelta | None) -> Wait:
        """Wait for an event."""
        waited: Wait = self._ask("wait", job_id, attempt, event, within)
        return waited

    def inputs(self, job_id: UUID) -> list[Input]:
        """Return what the jobs have come to that this one waited for."""
        found: list[Input] = self._ask("inputs", job_id)
        return found

    def attend(self, context: JobContext) -> None:
        """Have a context that has come from the worker ask it."""
        context.recorder = self
        context.steps = Steps(self, context.job_id, context.attempt, is_awaited=False)

    def _ask(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - what the worker says
        with self._lock:
            self._end.send_bytes(ASK + pickle.dumps((name, arguments)))
            did: Returned | Raised = pickle.loads(self._end.recv_bytes())  # noqa: S301 - the worker's
        if isinstance(did, Raised):
            raise did.error
        return did.value


def _serve(end: Connection) -> None:
    """Make calls until nobody asks any more."""
    os.setsid()  # so that it can be killed with all that handlers start
    # It may start processes of its own, which multiprocessing forbids what it ends at exit.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined] # noqa: SLF001
    born = generation()
    function: Callable[..., Any] | None = None
    with suppress(OSError, EOFError):
        while True:
            asked = end.recv_bytes()
            if function is not None and asked.startswith(CALL):
                arguments = pickle.loads(asked[1:])  # noqa: S301 - the worker's
                for argument in arguments:
                    if isinstance(argument, JobContext):
                        Afar(end).attend(argument)
                answer = _answer(function, arguments)
                leave_if_forked(born)
            else:
                function, answer = _load(asked[1:])
            end.send_bytes(answer)


def _load(asked: bytes) -> tuple[Callable[..., Any] | None, bytes]:
    """Import a function; return it, and what is wrong with it."""
    try:
        return pickle.loads(asked), LOADED  # noqa: S301 - the worker's
    except BaseException as error:
        return None, error_text(error).encode()


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    """Call a function; return what it did, and in words what of it cannot be pickled."""
    did: Returned | Raised
    try:
        did = Returned(function(*arguments))
    except BaseException as error:
        did = Raised(error)
    words = error_text(did.error) if isinstance(did, Raised) else "a result that no pickle takes"
    try:
        return pickle.dumps((pickle.dumps(did), words))
    except Exception:
        return pickle.dumps((b"", words))
