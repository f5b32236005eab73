"""Print how fast one HTTP server answers; asserts nothing.

Usage: make bench PART=http ARGS="[--seconds 5] [--connections 16] [--rounds 3]"

PostgreSQL 18 with fsync on, one server process and one process that asks share the
machine. Figures are medians of the rounds, with the range. The CPU time of a request is
told apart: that of the server process (the shim), of PostgreSQL with all its processes,
and of the process that asks. What a list and a scrape take is told with a million jobs
in the archive, one request at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import socket
import statistics
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import psutil  # type: ignore[import-untyped]
import psycopg
import uvloop
from bench import SETTINGS, install

from jobq_embedded import Server
from jobq_http import Settings, create_key, metrics, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b'{"kind":"noop","payload":{"to":"ada@example.org","subject":"Hello"}}'
ARCHIVED = 1_000_000
# Jobs that have ended within the last hour, a hundredth of them dead.
ARCHIVE = """
    insert into jobq_private.job_archive (
        job_id, kind, queue, lease, timeout, max_attempts, attempt, state, previous_state,
        created_at, run_at, claimed_at, finished_at, payload
    )
    select
        jobq_private.new_id(0), 'noop', 'default', '30 s', '1 min', 5, 1,
        case when n %% 100 = 0 then 'dead' else 'succeeded' end, 'running',
        t.at, t.at, t.at, t.at + interval '1 s', jsonb_build_object('n', n)
    from generate_series(1, %s) as n
    cross join lateral (
        select now() - interval '1 hour' + n * interval '3 ms' as at
    ) as t
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What to ask of whom: a whole request, connections, seconds."""

    port: int
    request: bytes
    connections: int
    seconds: float


class Asker(asyncio.Protocol):
    """A connection that asks again as soon as it is answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.answers = 0
        self.failures = 0
        self.transport: asyncio.WriteTransport | None = None
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.WriteTransport", transport)
        self.transport.write(self.load.request)

    def data_received(self, data: bytes) -> None:
        assert self.transport is not None
        if self._missing <= 0:
            head, _, rest = data.partition(b"\r\n\r\n")
            self.failures += data[9:10] != b"2"
            length = head.lower().partition(b"content-length: ")[2].split(b"\r", 1)[0]
            self._missing = int(length) - len(rest)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self.answers += 1
            self.transport.write(self.load.request)


def same(asker: Asker) -> Asker:
    """Return what it is given, as a protocol's factory must."""
    return asker


async def ask(load: Load) -> tuple[float, int]:
    """Ask for a while; return requests/s and failures."""
    loop = asyncio.get_running_loop()
    askers = [Asker(load) for _ in range(load.connections)]
    for asker in askers:
        await loop.create_connection(partial(same, asker), "127.0.0.1", load.port)
    started = time.perf_counter()
    await asyncio.sleep(load.seconds)
    answers = sum(asker.answers for asker in askers)
    rate = answers / (time.perf_counter() - started)
    return rate, sum(asker.failures for asker in askers)


def asking(load: Load, results: multiprocessing.Queue[tuple[float, int, float]]) -> None:
    """Ask, in a process of its own; also tell the CPU seconds that it took."""
    before = time.process_time()
    rate, failures = uvloop.run(ask(load))
    results.put((rate, failures, time.process_time() - before))


def measure(
    name: str, load: Load, server: psutil.Process, database: psutil.Process, rounds: int
) -> None:
    """Print how many requests are answered in a second, and what CPU each takes."""
    rates, costs = [], []
    for _ in range(rounds):
        results: multiprocessing.Queue[tuple[float, int, float]] = multiprocessing.Queue()
        before = cpu(server), cpu_of_all(database)
        asker = multiprocessing.Process(target=asking, args=(load, results))
        asker.start()
        rate, failures, own = results.get()
        asker.join()
        if failures:
            raise SystemExit(f"{name}: {failures} requests failed")
        used = cpu(server) - before[0], cpu_of_all(database) - before[1], own
        rates.append(rate)
        costs.append([seconds / (rate * load.seconds) * 1e6 for seconds in used])
    shim, postgres, client = (statistics.median(each) for each in zip(*costs, strict=True))
    print(
        f"{name:<22} {statistics.median(rates):8,.0f} requests/s"
        f" ({min(rates):,.0f} to {max(rates):,.0f});"
        f" CPU of each: shim {shim:.0f} µs, PostgreSQL {postgres:.0f} µs,"
        f" asking {client:.0f} µs; the shim is {shim / (shim + postgres):.0%} of the server side",
        flush=True,
    )


def cpu(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_of_all(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of its children, ended ones too."""
    times = process.cpu_times()
    used = cpu(process) + float(times.children_user + times.children_system)
    for child in process.children():
        with suppress(psutil.NoSuchProcess):
            used += cpu(child)
    return used


def postmaster(folder: str) -> psutil.Process:
    """Return the PostgreSQL server whose data are in a folder."""
    [file] = Path(folder).rglob("postmaster.pid")
    return psutil.Process(int(file.read_text().splitlines()[0]))


@contextmanager
def serving(url: str, port: int) -> Iterator[psutil.Process]:
    """Run one HTTP server."""
    settings = Settings(requests_per_second=1e9, pool_size=16)
    process = multiprocessing.Process(target=serve, args=(url, "127.0.0.1", port, settings))
    process.start()
    assert process.pid is not None
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.join()


def request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    """Return a request as it goes over the wire."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def fill(url: str) -> None:
    """Put a million jobs into the archive."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ARCHIVE, [ARCHIVED])
        connection.execute("vacuum analyze jobq_private.job_archive")


def measure_pages(connection: http.client.HTTPConnection, key: str) -> None:
    """Walk a list of a million jobs and print what its pages take."""
    path = "/jobs?limit=50"
    for number in range(1, 1001):
        if number in (1, 10, 100, 1000):
            milliseconds = statistics.median(timed(connection, path, key)[0] for _ in range(20))
            print(f"GET /jobs, page {number:>5,} of 50 jobs  {milliseconds:8.1f} ms", flush=True)
        cursor = json.loads(timed(connection, path, key)[1])["cursor"]
        path = f"/jobs?limit=50&cursor={cursor}"


def measure_scrapes(connection: http.client.HTTPConnection, key: str) -> None:
    """Print what a scrape takes that asks the database."""
    figures = []
    for _ in range(10):
        time.sleep(1.1 * metrics.MEMORY)
        figures.append(timed(connection, "/metrics", key)[0])
    print(
        f"GET /metrics, {ARCHIVED:,} archived jobs  {statistics.median(figures):.1f} ms"
        f" ({min(figures):.1f} to {max(figures):.1f})"
    )


def timed(connection: http.client.HTTPConnection, path: str, key: str) -> tuple[float, bytes]:
    """Ask once; return the milliseconds that it took, and the answer."""
    started = time.perf_counter()
    connection.request("GET", path, headers={"authorization": f"Bearer {key}"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}")
    return (time.perf_counter() - started) * 1000, body


def main() -> None:
    """Run every measurement and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        Server(Path(folder) / "data", settings=SETTINGS) as database,
    ):
        install(database.url)
        with psycopg.connect(database.url, autocommit=True) as connection:
            key = create_key(connection, "bench")
            row = connection.execute("select jobq.enqueue('noop')").fetchone()
        assert row is not None
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        print(
            f"one server process, {options.connections} connections,"
            f" {os.cpu_count()} cores shared with PostgreSQL and the load"
        )
        requests = {
            "GET /healthz": request("GET", "/healthz", key),
            "GET /jobs/{job_id}": request("GET", f"/jobs/{row[0]}", key),
            "POST /jobs": request("POST", "/jobs", key, BODY),
            "GET /jobs (50 jobs)": request("GET", "/jobs?limit=50", key),
        }
        with serving(database.url, port) as server:
            for name, text in requests.items():
                load = Load(port, text, options.connections, options.seconds)
                measure(name, load, server, postmaster(folder), options.rounds)
            fill(database.url)
            connection = http.client.HTTPConnection("127.0.0.1", port)
            measure_pages(connection, key)
            measure_scrapes(connection, key)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
