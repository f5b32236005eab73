"""`jobq run` does what the README promises, and leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, ClassVar

from jobq_embedded import find_bin_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KINDS = ["resize_image", "webhook_delivery", "send_email", "summarize_text", "health_check",
         "example-hook", "example-stream"]  # fmt: skip


def environment(database: str | None) -> dict[str, str]:
    """The tests' own environment, with this database or none."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    env.pop("DATABASE_URL", None)
    return env if database is None else {**env, "DATABASE_URL": database}


def start(folder: Path, env: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start `jobq run`, with Ctrl-C as a terminal gives it, even if these tests ignore it."""
    return subprocess.Popen(
        [sys.executable, "-m", "jobq_cli", "run", *arguments],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def processes_in(folder: Path) -> list[str]:
    """The command lines of processes that work in this folder or below it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            cwd = (process / "cwd").readlink()
            if cwd.is_relative_to(folder):
                found.append(f"{process.name} {cwd}")
    return found


class Stranger(BaseHTTPRequestHandler):
    """Somebody else's server, which is ready for anything."""

    keys: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.keys.append(self.headers["authorization"])
        self.send_response(200)
        self.end_headers()


@contextmanager
def stranger() -> Iterator[int]:
    """A port of the loopback address where a stranger listens."""
    with HTTPServer(("127.0.0.1", 0), Stranger) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def run_examples(database: str, folder: Path) -> None:
    """Run the examples on a database, as test_managed.py does with the rights of an owner.

    Whoever listens on the port that was wished for gets no key.
    """
    with stranger() as taken:
        process = start(folder, environment(database), "--exit", "--port", str(taken))
        report, _ = process.communicate(timeout=600)

    assert Stranger.keys == []
    assert f"port {taken} is taken; the HTTP API gets port" in report
    assert process.returncode == 0, report
    for kind in KINDS:
        assert re.search(rf"{kind} +succeeded", report), report
    assert "all 7 jobs succeeded" in report
    assert "the webhook's receiver got {'event': 'picture.resized'}" in report
    assert "the webhook's receiver got {'amount': 12.5, 'order_id': 'order-1234'}" in report
    assert re.search(r"example-stream +succeeded +stream example", report), report
    assert "the mail server got 'Your picture is ready'" in report
    assert (folder / ".jobq" / "mandelbrot-small.png").stat().st_size > 0
    assert processes_in(folder) == []


def test_a_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".jobq").touch()
    process = start(tmp_path, environment(None), "--exit")
    report, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert report.startswith("Error: ") and str(tmp_path / ".jobq") in report


def test_it_serves_from_a_private_server_until_interrupted(tmp_path: Path) -> None:
    process = start(tmp_path, environment(None))
    report = ""
    assert process.stdout is not None
    for line in process.stdout:
        report += line
        if "Serving until interrupted" in line:
            break
    assert "all 7 jobs succeeded" in report, report
    url = re.search(r"http://127\.0\.0\.1:(\d+)", report)
    assert url is not None
    with socket.create_connection(("127.0.0.1", int(url[1])), timeout=5):
        pass
    assert (tmp_path / ".jobq" / "postgres" / "password").read_text().strip() not in report
    command = next(line for line in report.splitlines() if "psql" in line)
    psql = ["sh", "-c", f"PATH={find_bin_dir()}:$PATH; {command} -XqAtc 'select 42'"]
    assert subprocess.check_output(psql, text=True) == "42\n"

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 0
    assert processes_in(tmp_path) == []
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(url[1]))) != 0
