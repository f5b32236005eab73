"""What lets tests run side by side: groups, and the keeper of what they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from waiting import until

HERE = Path(__file__).parent
KEPT = """
import subprocess, sys
from pathlib import Path
from keeper import keeping
with keeping(Path(sys.argv[1]), Path(sys.argv[2])):
    marked = subprocess.Popen(["sleep", "600"])
    at_work = subprocess.Popen(["sleep", "600"], env={}, cwd=sys.argv[2])
    print(marked.pid, at_work.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.oldest_version(is_usual=True)
def test_a_group_is_known_by_its_name(request: pytest.FixtureRequest, pg: str) -> None:
    """pytest-xdist goes by what stands behind the @; without it, each test is for itself."""
    groups = {mark.args[0] for mark in request.node.iter_markers("xdist_group")}
    is_older = pg != request.config.getoption("--pg")
    assert groups == ({f"pg{pg}"} if is_older else set())
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.partition("@")[2] == "".join(groups)


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def test_what_tests_started_ends_with_their_process(tmp_path: Path) -> None:
    servers = Path(tempfile.mkdtemp(dir=tmp_path))
    files = Path(tempfile.mkdtemp(dir=tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", KEPT, str(servers), str(files)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )
    assert process.stdout is not None
    started = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
    assert len(started) == 2
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    until(lambda: not any(is_alive(p) for p in started), "for both to be ended")
    until(lambda: not servers.exists(), "for the folder to be removed")
    assert files.exists()
