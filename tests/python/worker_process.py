"""A worker in a process of its own, for tests that send signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


@dataclass
class WorkerProcess:
    """A running ``jobq worker``, its log in a file."""

    process: subprocess.Popen[bytes]
    log_file: Path

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_file.read_text()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self, timeout: float = 90) -> int:
        """Wait for its end; return the exit status."""
        return self.process.wait(timeout)


@contextmanager
def working(
    database: str, folder: Path, *options: str, target: str = "worker_handlers:registry"
) -> Iterator[WorkerProcess]:
    """Run a worker of the test handlers; kill it at the end if it still runs.

    When the test fails, print what the worker has logged.

    Args:
        database: its URL.
        folder: where its log goes.
        *options: of ``jobq worker``.
        target: the registry.
    """
    log_file = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
    command = [sys.executable, "-m", "jobq_cli", "worker", target, "--metrics-port", "0"]
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--log-format", "json", *options],
            env={**os.environ, "DATABASE_URL": database, "PYTHONPATH": str(HERE)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield WorkerProcess(process, log_file)
    except BaseException:
        print(f"{log_file.name}, exit status {process.poll()}:\n{log_file.read_text()}")
        raise
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.wait(60)
