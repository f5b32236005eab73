"""Print how many requests one HTTP server answers in a second; asserts nothing.

Usage: python tests/bench/bench_http.py [--seconds 5] [--connections 16] [--rounds 3]

PostgreSQL 18 with fsync on, one server process and one process that asks share the
machine. Figures are medians of the rounds, with the range; the shim's share is the
server's part of the CPU time that it, PostgreSQL and the asking process used together.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import socket
import statistics
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import psutil  # type: ignore[import-untyped]
import psycopg
import uvloop
from bench import SETTINGS, install

from jobq.embedded import Server
from jobq.http import Settings, create_key, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b'{"kind":"noop","payload":{"to":"ada@example.org","subject":"Hello"}}'


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
    rate, failures = uvloop.run(ask(load))
    results.put((rate, failures, time.process_time()))


def measure(
    name: str, load: Load, server: psutil.Process, database: psutil.Process, rounds: int
) -> None:
    """Print a figure."""
    rates, shares, costs = [], [], []
    for _ in range(rounds):
        results: multiprocessing.Queue[tuple[float, int, float]] = multiprocessing.Queue()
        before = cpu(server), cpu_of_all(database)
        asker = multiprocessing.Process(target=asking, args=(load, results))
        asker.start()
        rate, failures, own = results.get()
        asker.join()
        if failures:
            raise SystemExit(f"{name}: {failures} requests failed")
        shim, postgres = cpu(server) - before[0], cpu_of_all(database) - before[1]
        rates.append(rate)
        shares.append(shim / (shim + postgres + own))
        costs.append(shim / (rate * load.seconds))
    print(
        f"{name:<22} {statistics.median(rates):8,.0f} requests/s"
        f" ({min(rates):,.0f} to {max(rates):,.0f}),"
        f" shim {statistics.median(costs) * 1e6:.0f} µs of CPU each,"
        f" {statistics.median(shares):.0%} of all"
    )


def cpu(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def cpu_of_all(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and of its children that live."""
    return sum(cpu(one) for one in (process, *process.children(recursive=True)))


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


def main() -> None:
    """Run every measurement and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
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


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
