"""How many jobs of endpoints one worker delivers in a second, to a sink on this machine.

    python tests/bench/bench_delivery.py [--jobs 5000] [--rounds 3] [--type HTTP]

HTTP goes to a server that reads requests and says OK, in a process of its own; Redis to
Debian's server; Kafka to librdkafka's mock cluster. Jobs are enqueued before the worker
starts; the time is from its start to the last job's end.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import uvloop
from bench import SETTINGS, install

from jobq import AsyncClient, Client
from jobq.registry import Registry
from jobq.worker import Worker
from jobq_delivery import Deliverer, Guard, Keyring
from jobq_embedded import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

BODY = {"user_id": "{{input.user_id}}", "sender": "noreply@example.org"}
CLUSTER = Path(__file__).resolve().parents[1] / "python" / "kafka_cluster.py"


def sink(told: Connection) -> None:
    """Serve HTTP: read requests, say OK."""

    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Ok, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(serve())


class Ok(asyncio.Protocol):
    """A connection that answers each request with 200."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport: Any = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, _, rest = self.data.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or 0)
            if len(rest) < length:
                return
            self.data = rest[length:]
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nOK")


@contextmanager
def target(kind: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Run what is delivered to, and give the endpoint's spec."""
    if kind == "HTTP":
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=sink, args=(theirs,), daemon=True)
        process.start()
        yield {"url": f"http://127.0.0.1:{ours.recv()}/hook", "body_template": BODY}
        process.terminate()
    elif kind == "KAFKA":
        cluster = subprocess.Popen(
            [sys.executable, CLUSTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert cluster.stdout is not None
        servers = cluster.stdout.readline().strip()
        yield {"bootstrap_servers": servers, "topic": "bench", "value_template": BODY}
        cluster.terminate()
    else:
        socket = folder / "redis.sock"
        command = [shutil.which("redis-server") or "redis-server", "--port", "0", "--save", ""]
        redis = subprocess.Popen([*command, "--unixsocket", socket], stdout=subprocess.DEVNULL)
        while not socket.exists():
            time.sleep(0.01)
        yield {"redis_url": f"unix://{socket}", "stream": "bench", "fields_template": BODY}
        redis.terminate()


async def drain(url: str, jobs: int) -> float:
    """Run one worker until every job has ended; return seconds."""
    registry = Registry()
    guard = Guard.allowing("127.0.0.1")
    async with (
        AsyncClient(url) as client,
        Deliverer(url, keyring=Keyring(), guard=guard) as deliverer,
    ):
        registry.otherwise(deliverer.deliver)
        started = time.perf_counter()
        async with Worker(url, registry):
            while any(q.queued + q.running + q.retrying for q in await client.queue_stats()):
                await asyncio.sleep(0.02)
        seconds = time.perf_counter() - started
        succeeded = await client.list_jobs("succeeded", max_jobs=1)
        assert succeeded, f"of {jobs} jobs none succeeded"
        return seconds


def main() -> None:
    """Print deliveries per second: the median, and the range of all rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--type", choices=("HTTP", "KAFKA", "REDIS_STREAM"), default="HTTP")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        server = stack.enter_context(Server(folder / "postgres", settings=SETTINGS))
        install(server.url)
        spec = stack.enter_context(target(given.type, folder))
        rates = []
        with Client(server.url) as client:
            client.put_endpoint("bench", given.type, spec, max_concurrency=50)
            job = {"kind": "bench", "payload": {"user_id": "u_abc"}}
            for _ in range(given.rounds):
                client.enqueue_many([job] * given.jobs)
                rates.append(given.jobs / uvloop.run(drain(server.url, given.jobs)))
        dead = 0
        with Client(server.url) as client:
            dead = sum(q.dead for q in client.queue_stats())
    low, middle, high = min(rates), statistics.median(rates), max(rates)
    print(f"{given.type}: {middle:,.0f} deliveries/s ({low:,.0f} to {high:,.0f}), {dead} dead")


if __name__ == "__main__":
    main()
