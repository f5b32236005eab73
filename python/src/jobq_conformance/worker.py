"""jobq's own producer and worker, with the interface of the suite.

jobq conformance -- python -m jobq_conformance.worker
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from jobq import AsyncClient, JobContext, Permanent, Registry, Retry, Snooze, Worker
from jobq.errors import JobqError, of_database
from jobq.models import Enqueued, Json
from jobq.registry.outcomes import Cancelled
from jobq_conformance.stage import SQL

Order = Mapping[str, Any]

# Interval of checks for cancellation, in seconds.
LOOK = 0.02


class HostileError(BaseException):
    """The worst exception of a handler: not an Exception, and without a text."""

    def __str__(self) -> str:
        raise RuntimeError("nor is this")


class Peer:
    """The peer of the suite."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._orders: dict[tuple[str, int], asyncio.Queue[Order]] = {}
        self._client = AsyncClient(url)
        self._worker: asyncio.Task[int] | None = None
        self._told: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Process requests until the input or the worker ends; return the exit status."""
        reader = asyncio.StreamReader(limit=2**24)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async with self._client:
            while line := await self._next(reader):
                order = json.loads(line)
                if order["op"] == "handle":
                    self._orders[order["job_id"], order["attempt"]].put_nowait(order)
                else:
                    task = asyncio.create_task(self._answer(order))
                    self._told.add(task)
                    task.add_done_callback(self._told.discard)
        return self._worker.result() if self._worker and self._worker.done() else 0

    async def _next(self, reader: asyncio.StreamReader) -> bytes:
        """Return the next line, or nothing if the worker ends first."""
        line = asyncio.create_task(reader.readline())
        while not line.done() and not (self._worker and self._worker.done()):
            await asyncio.wait(
                {line, *([self._worker] if self._worker else [])},
                timeout=LOOK if self._worker is None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
        if line.done():
            return line.result()
        line.cancel()
        return b""

    # ---- requests

    async def _answer(self, order: Order) -> None:
        given = {k: v for k, v in order.items() if k not in ("op", "id")}
        try:
            answer = await getattr(self, f"_{order['op']}")(**given)
        except JobqError as error:
            answer = {"error": {"sqlstate": error.sqlstate, "code": error.code}}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": {"sqlstate": "XX000", "code": repr(error)}}
        say({"id": order["id"], **answer})

    async def _enqueue(self, **job: Json) -> dict[str, Any]:
        return shown(await self._client.enqueue(**job))

    async def _enqueue_many(self, jobs: list[Any]) -> dict[str, Any]:
        return {"jobs": [shown(job) for job in await self._client.enqueue_many(jobs)]}

    async def _transaction(self, note: str, jobs: list[Any], end: str) -> dict[str, Any]:
        try:
            async with await psycopg.AsyncConnection.connect(self._url) as connection:
                await connection.execute(SQL["note"], [note])
                client = AsyncClient(connection)
                made = [shown(await client.enqueue(**job)) for job in jobs]
                await (connection.commit() if end == "commit" else connection.rollback())
        except psycopg.Error as error:
            raise of_database(error) from error
        return {"jobs": made}

    async def _cancel(self, job_id: str) -> dict[str, Any]:
        return {"outcome": await self._client.cancel(job_id)}

    async def _work(
        self,
        kind: str,
        queues: list[str],
        *,
        transactional: bool,
        **options: Any,  # noqa: ANN401 - options of Worker
    ) -> dict[str, Any]:
        registry = Registry()
        if transactional:
            registry.handler(kind, transactional=True)(self._handle_in_transaction)
        else:
            registry.handler(kind)(self._handle)
        worker = Worker(self._url, registry, queues, declare=False, **options)
        self._worker = asyncio.create_task(worker.run())
        while not worker.health()["alive"]:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(LOOK)
        return {}

    # ---- the handler, which follows orders of the suite

    async def _handle(self, payload: Any, context: JobContext) -> Any:  # noqa: ANN401 - any JSON
        return await self._obey(payload, context, None)

    async def _handle_in_transaction(
        self,
        payload: Any,  # noqa: ANN401
        context: JobContext,
        connection: psycopg.AsyncConnection[Any],
    ) -> Any:  # noqa: ANN401
        return await self._obey(payload, context, connection)

    async def _obey(
        self,
        payload: Any,  # noqa: ANN401
        context: JobContext,
        connection: psycopg.AsyncConnection[Any] | None,
    ) -> Any:  # noqa: ANN401
        key = (str(context.job_id), context.attempt)
        about = {"job_id": key[0], "attempt": key[1]}
        orders = self._orders[key] = asyncio.Queue()
        say({"event": "started", **about, "kind": context.kind, "payload": payload})
        try:
            while True:
                order = await self._ordered(orders, context)
                if order["do"] == "step":
                    ran: list[str] = []

                    def call(order: Order = order, ran: list[str] = ran) -> Json:
                        ran.append(order["name"])
                        return order["value"]

                    value = await context.step(order["name"], call)
                    say({"event": "step", **about, "value": value, "ran": bool(ran)})
                elif order["do"] == "note":
                    assert connection is not None  # noqa: S101 - an error of the scenario
                    await connection.execute(SQL["note"], [order["note"]])
                    say({"event": "noted", **about})
                elif order["do"] == "spend":
                    await context.spend(order["cost"])
                    say({"event": "spent", **about})
                elif order["do"] == "wait":
                    came = await context.wait_for(order["event"])
                    say({"event": "arrived", **about, "payload": came})
                else:
                    return end(order)
        except (Cancelled, asyncio.CancelledError):
            say({"event": "stopping", **about})
            raise

    async def _ordered(self, orders: asyncio.Queue[Order], context: JobContext) -> Order:
        while True:
            context.check_cancelled()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    return await orders.get()


def end(order: Order) -> Json:
    """End a handler as ordered."""
    match order["do"]:
        case "return":
            if order.get("commit") is False:
                raise RuntimeError("its transaction is rolled back")
            return order["value"]
        case "raise":
            raise RuntimeError(order["message"])
        case "retry":
            raise Retry(order["message"], in_=order.get("in"), code=order["code"])
        case "permanent":
            raise Permanent(order["code"], order["message"])
        case "snooze":
            raise Snooze(timedelta(seconds=order["in"]))
        case _:
            raise HostileError


def shown(job: Enqueued) -> dict[str, Any]:
    """Return a new job for the suite."""
    return {"job_id": str(job.job_id), "created": job.created}


def say(line: Mapping[str, Any]) -> None:
    """Write a line for the suite."""
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    status = asyncio.run(Peer(os.environ["DATABASE_URL"]).run())
    sys.exit(status)
