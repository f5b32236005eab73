"""An HTTP server that misbehaves in every way, and a worker that delivers to it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jobq import AsyncClient
from jobq.registry import Registry
from jobq.worker import Worker
from jobq_delivery import Deliverer, Guard, Keyring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from uuid import UUID

    from jobq.models import Job

KEY = b"k" * 32
LOCAL = Guard.allowing("127.0.0.0/8 unix:")


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int


@dataclass
class Sink:
    """What a server received; the path says how it answers."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def has_said_more(self) -> bool:
        """Tell whether ``/twice-later`` has gone on after it was told to."""
        return not self.hold.is_set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while line := await reader.readline():
                method, path, _ = line.decode().split(" ", 2)
                headers = {}
                while (header := (await reader.readline()).decode().strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.received.append(Received(method, path, headers, body, number))
                if not await self.answer(path, headers, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(  # noqa: C901, PLR0912 - a table
        self, path: str, headers: Mapping[str, str], writer: asyncio.StreamWriter
    ) -> bool:
        """Answer as the path says; return whether the connection goes on."""
        first = sum(r.path == path for r in self.received) == 1
        match path.strip("/").split("/"):
            case ["status", code]:
                write(writer, int(code), b"no\0pe")
            case ["flaky", code]:
                write(writer, int(code) if first else 200, b"", "retry-after: 0.01\r\n")
            case ["busy", seconds]:
                write(writer, 429, b"later", f"retry-after: {seconds.replace('_', ' ')}\r\n")
            case ["twice"]:
                write(writer, 200, b"once")
                write(writer, 200, b"again")
                return True
            case ["twice-at-once"]:
                head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
                writer.writelines((head + b"on", head + b"no"))
                return True
            case ["twice-later"]:
                write(writer, 200, b"once")
                await writer.drain()
                await self.hold.wait()
                write(writer, 200, b"again")
                self.hold.clear()
                return True
            case ["redirect"]:
                write(writer, 302, b"", f"location: {self.url}/inside\r\n")
            case ["echo"]:
                write(writer, 200, headers.get("authorization", "").encode())
            case ["mirror"]:
                write(writer, 200, self.received[-1].body)
            case ["huge"]:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
                for _ in range(100):
                    writer.write(b"x" * 65536)
                    await writer.drain()
            case ["short"]:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nonly this")
            case ["endless-head"]:
                writer.write(b"HTTP/1.1 200 OK\r\n")
                for number in range(20_000):
                    writer.write(b"x-%d: %s\r\n" % (number, b"y" * 100))
                    await writer.drain()
            case ["slow-head"]:
                writer.write(b"HTTP/1.1 200 OK\r\nx: ")
                while not self.hold.is_set():
                    writer.write(b"y")
                    await writer.drain()
                    await asyncio.sleep(0.02)
            case ["chunked"]:
                writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
                writer.write(b"3\r\nOne\r\n4\r\nTwo!\r\n0\r\n\r\n")
            case ["drip"]:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while not self.hold.is_set():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.02)
            case ["once-held"] if first:
                await self.hold.wait()
            case ["hang"]:
                await self.hold.wait()
            case ["reset"]:
                writer.transport.abort()
            case ["garbage"]:
                writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            case _:
                write(writer, 200, b"OK")
                return True
        await writer.drain()
        return path.startswith(("/status", "/flaky", "/busy", "/echo"))


def write(writer: asyncio.StreamWriter, status: int, body: bytes, headers: str = "") -> None:
    head = f"HTTP/1.1 {status} Said\r\n{headers}content-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


@asynccontextmanager
async def sinking() -> AsyncIterator[Sink]:
    """Run a sink on a free port of the loopback address."""
    sink = Sink()
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0)
    sink.port = server.sockets[0].getsockname()[1]
    try:
        yield sink
    finally:
        sink.hold.set()
        server.close()


@dataclass
class Post:
    """A database, a client of it, and a worker that delivers."""

    client: AsyncClient
    sink: Sink

    async def endpoint(self, name: str, spec: dict[str, Any], **options: Any) -> None:
        """Declare an endpoint that retries at once."""
        options.setdefault("retry_initial_delay", "0 s")
        kind = options.pop("type", "HTTP")
        await self.client.put_endpoint(name, kind, spec, **options)

    async def deliver(self, name: str, payload: Any = None) -> Job:
        """Enqueue a job of an endpoint and wait until it has ended."""
        return await self.ended((await self.client.enqueue(name, payload or {})).job_id)

    async def ended(self, job_id: UUID) -> Job:
        """Wait until a job has ended."""
        async with asyncio.timeout(90):
            while not (job := await self.client.get(job_id)).is_finished:
                await asyncio.sleep(0.01)
        return job


@asynccontextmanager
async def posting(database: str, guard: Guard = LOCAL, **options: Any) -> AsyncIterator[Post]:
    """Run a sink and a worker that delivers, with one key for secrets."""
    registry = Registry()
    async with (
        sinking() as sink,
        AsyncClient(database) as client,
        Deliverer(database, keyring=Keyring([KEY]), guard=guard) as deliverer,
    ):
        registry.otherwise(deliverer.deliver)
        async with Worker(database, registry, poll=0.1, **options):
            yield Post(client, sink)
            sink.hold.set()
