"""Leaves nothing behind: ends what tests have started when their process is gone.

The end of a fixture may never come: a worker of pytest-xdist dies with its controller, and a
second Ctrl-C cuts short what the first has begun. So a process of its own holds one end of a
pipe, and when the other is closed, however that came about, ends what is left.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "JOBQ_TEST_RUN"
PATIENCE = 10.0


@contextmanager
def keeping(servers: Path, files: Path) -> Iterator[None]:
    """End what this process starts meanwhile, at the latest when it ends itself.

    Args:
        servers: the folder of servers, removed in the end.
        files: the folder of what else tests write.
    """
    mark = secrets.token_hex(8)
    keeper = subprocess.Popen(
        [sys.executable, __file__, mark, str(servers), str(files)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    os.environ[MARK] = mark
    with keeper:
        yield


def end_all(mark: str, files: Path) -> None:
    """End the processes that inherited a mark, or that work in a folder."""
    left = [process for process in psutil.process_iter() if is_left(process, mark, files)]
    for process in left:
        with suppress(psutil.Error):
            # A postmaster takes its children along, whose environment is overwritten.
            is_server = process.name() == "postgres"
            process.send_signal(signal.SIGQUIT if is_server else signal.SIGKILL)
    _, stubborn = psutil.wait_procs(left, PATIENCE)
    for process in stubborn:
        with suppress(psutil.Error):
            process.kill()


def is_left(process: psutil.Process, mark: str, files: Path) -> bool:
    """Tell whether a process was started by the tests."""
    with suppress(psutil.Error):
        if process.environ().get(MARK) == mark:
            return True
    with suppress(psutil.Error):
        return Path(process.cwd()).is_relative_to(files)
    return False


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_all(sys.argv[1], Path(sys.argv[3]))
    shutil.rmtree(sys.argv[2], ignore_errors=True)
