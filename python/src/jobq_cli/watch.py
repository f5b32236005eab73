"""`jobq worker --watch`: restart a worker when code changes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

import click

# Polling interval, and time for a worker to stop before it is killed, in seconds.
LOOK: Final = 0.5
PATIENCE: Final = 35.0
PASSED_OVER: Final = {"__pycache__", "node_modules", "site-packages"}


def watch(arguments: list[str], folder: Path) -> int:
    """Run `jobq` with these arguments and restart it when a Python file in a folder changes.

    Returns the exit status of the last run. A signal ends it.
    """
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.append(number)

    is_in_terminal = sys.stdin.isatty()
    numbers = [signal.SIGTERM, signal.SIGINT]
    if not is_in_terminal and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        signal.signal(number, ask)
    # Without a terminal, signals to the process group reach the worker only from here. With one,
    # it stays in the group of this process, which may read from the terminal.
    group = None if is_in_terminal else 0
    while True:
        seen = stamps(folder)
        command = [sys.executable, "-m", "jobq_cli", *arguments]
        process = subprocess.Popen(command, process_group=group)
        while not asked and stamps(folder) == seen:
            time.sleep(LOOK)
        is_over = process.poll() is not None
        # A terminal sends Ctrl-C to the worker too; a second signal would end it at once.
        if not (is_over or (asked == [signal.SIGINT] and is_in_terminal)):
            process.terminate()
        for end in (process.terminate, process.kill):
            try:
                status = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                end()
        status = process.wait()
        if asked:
            return status if status >= 0 else 128 - status
        click.echo("code has changed: restarting", err=True)


def stamps(folder: Path) -> dict[Path, float]:
    """Return the modification times of the Python files in a folder."""
    found: dict[Path, float] = {}
    folders = [folder]
    while folders:
        try:
            entries = list(folders.pop().iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.name.startswith(".") or entry.name in PASSED_OVER:
                continue
            try:
                if entry.is_dir() and not entry.is_symlink():
                    folders.append(entry)
                elif entry.suffix == ".py":
                    found[entry] = entry.stat().st_mtime
            except OSError:
                continue  # deleted meanwhile
    return found
