"""jobq: its own client, and `jobq worker` in its default configuration."""

from __future__ import annotations

import asyncio
import importlib
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from agent import key_of, main, wait_at_gate

import jobq
import jobq.worker
import jobq_cli
from jobq.database import use_json
from jobq_operations.deploy import single_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class JobqProducer:
    """Enqueues by the client, on a connection of its own."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self._client = jobq.AsyncClient(connection)

    async def add(self, kind: str, payload: dict[str, Any]) -> None:
        await self._client.enqueue(kind, payload)

    async def add_many(self, payloads: list[dict[str, Any]]) -> None:
        await self._client.enqueue_many({"kind": "noop", "payload": p} for p in payloads)

    async def add_flows(self, payloads: list[dict[str, Any]]) -> None:
        await self._client.enqueue_many({"kind": "flow", "payload": p} for p in payloads)

    async def add_calls(self, payloads: list[dict[str, Any]]) -> None:
        await self._client.enqueue_many({"kind": "caller", "payload": p} for p in payloads)

    async def add_keyed(self, payloads: list[dict[str, Any]]) -> None:
        await self._client.put_queue("default", key_max_running=1)
        await self._client.enqueue_many(
            {"kind": "noop", "payload": p, "concurrency_key": key_of(p)} for p in payloads
        )


async def has_upkeep(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Do some of the database's upkeep; return whether there is more."""
    rows = await connection.execute("select bool_or(has_more) from jobq.maintain()")
    return await rows.fetchone() == (True,)


class JobqAgent:
    chunk = 10_000

    async def install(self, url: str) -> str:
        command = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-d", url, "-f", "-"]
        environment = {**os.environ, "PGOPTIONS": "--client-min-messages=warning"}
        await asyncio.to_thread(
            subprocess.check_output, command, env=environment, input=single_file().encode()
        )
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            # The tables of the next days, as they are there on any day but the first.
            while await has_upkeep(connection):
                pass
        return jobq.__version__

    @asynccontextmanager
    async def producer(self, url: str) -> AsyncIterator[JobqProducer]:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            use_json(connection)
            yield JobqProducer(connection)


def work(url: str, target: str = "jobq_handlers:registry", *options: str) -> None:
    """Be `jobq worker`, which makes its own event loop; all is imported before the gate opens."""
    importlib.import_module(target.partition(":")[0])
    wait_at_gate()
    os.environ["DATABASE_URL"] = url
    command = ["worker", target, "--metrics-port", "0", "--log-level", "warning"]
    jobq_cli.main([*command, *options])


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2])
    else:
        main(JobqAgent())
