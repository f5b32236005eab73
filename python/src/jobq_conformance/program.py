"""The program under test: a process that reads and writes JSON lines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from jobq_conformance.stage import NotSeenError

Line = dict[str, Any]

LOG_TAIL: Final = 15


class Program:
    """A running program.

    Args:
        command: the command that starts it.
        url: URL of the database, passed as DATABASE_URL.
        log: file for its standard error.
        patience: timeout of each wait, in seconds.
        is_traced: whether all lines are copied to standard error.
    """

    def __init__(
        self, command: Sequence[str], url: str, log: Path, patience: float, *, is_traced: bool
    ) -> None:
        self._log = log
        self._patience = patience
        self._is_traced = is_traced
        self._numbers = count(1)
        self._said: list[Line] = []
        self._has_news = threading.Condition()
        self._garbage = ""
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                list(command),
                env={**os.environ, "DATABASE_URL": url},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def tell(self, op: str, members: Mapping[str, Any]) -> int:
        """Send a request; return its number, which the answer contains."""
        number = next(self._numbers)
        line = {"op": op, "id": number, **members}
        self._trace(">", line)
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        try:
            self._process.stdin.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise NotSeenError(f"the program does not listen: {self.tail()}") from error
        return number

    def answer(self, number: int) -> Line:
        """Wait for the answer to a request."""
        return self.expect(lambda line: line.get("id") == number, f"an answer to {number}")

    def event(self, event: str, seconds: float | None = None, **members: object) -> Line:
        """Wait for an event."""
        wanted = {"event": event, **members}
        return self.expect(lambda line: wanted.items() <= line.items(), json.dumps(wanted), seconds)

    def expect(
        self, is_meant: Callable[[Line], bool], what: str, seconds: float | None = None
    ) -> Line:
        """Wait for a line, and remove it; NotSeenError if it does not come."""
        deadline = time.monotonic() + (seconds or self._patience)
        with self._has_news:
            while True:
                for line in self._said:
                    if is_meant(line):
                        self._said.remove(line)
                        return line
                left = deadline - time.monotonic()
                if self._garbage or left < 0 or not self._reader.is_alive():
                    reason = self._garbage or ("" if self.is_running else "the program has ended")
                    raise NotSeenError(f"{what}; {reason or 'waited'}; unread: {self._said[-5:]}")
                self._has_news.wait(min(left, 1.0))

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self, seconds: float) -> int:
        """Wait for its end; return its exit status."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotSeenError("the program does not end") from None

    def kill(self) -> None:
        """Kill it and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(1)
        is_read = not self._reader.is_alive()  # else a child is still alive
        for pipe in (self._process.stdin, self._process.stdout if is_read else None):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def tail(self) -> str:
        """The end of its standard error."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-LOG_TAIL:])

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        with suppress(ValueError):
            for text in self._process.stdout:
                self._take(text)
        with self._has_news:
            self._has_news.notify_all()

    def _take(self, text: str) -> None:
        with self._has_news:
            try:
                line = json.loads(text)
                self._trace("<", line)
                self._said.append(dict(line))
            except (ValueError, TypeError):
                self._garbage = f"this is not a JSON object: {text[:200]!r}"
            self._has_news.notify_all()

    def _trace(self, direction: str, line: Line) -> None:
        if self._is_traced:
            print(direction, json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)  # noqa: T201
