"""Clients of several databases that are one queue: each call goes where its jobs are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

from jobq.call import Call
from jobq.client import PATIENCE, POOL_SIZE, AsyncClient, Client
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError
from jobq.models import record
from jobq.routes import Epoch, ShardMap, routed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.registry import Registry

__all__ = ["AsyncShardedClient", "ShardedClient"]

T = TypeVar("T")

# Seconds for which a map is good; an epoch begins later than that after it was made.
FRESH: Final = 10.0
_SHARDS: Final = Call("list_shards", {}, lambda rows: {row[0]: row[2] for row in rows})
_EPOCHS: Final = Call("list_epochs", {}, list, record(Epoch))


class ShardedClient(Client):
    """A client of a cluster: `Client`, but that each call goes to the shards it is for.

    A new job goes where its keys say (`jobq.shards.choose_shard`); what names a job, a batch
    or a schedule by its id goes where that is; definitions go to all, and lists come from
    all. Calls that only make sense for one database raise InvalidArgument. One call is one
    transaction on each shard that it goes to: `enqueue_many` is all or none where its jobs
    have no keys, or the same; else for the jobs of each shard.

    Args:
        databases: libpq URLs of all shards, in any order.
        pool_size: at most so many connections to each.
        patience: seconds to wait for a connection of a pool.
        is_pooled: whether poolers in transaction mode stand before the databases.
        registry: as `Client` has it; each shard is told before its first job.

    Raises:
        JobqError: every method, as `Client`; DatabaseUnavailable when a shard that is needed
            does not answer, and names it.
    """

    def __init__(
        self,
        databases: Sequence[str],
        *,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        is_pooled: bool = False,
        registry: Registry | None = None,
    ) -> None:
        if not databases:
            raise InvalidArgument("a cluster has at least one database")
        super().__init__(databases[0], registry=registry)
        self._clients = [
            Client(
                url,
                pool_size=pool_size,
                patience=patience,
                is_pooled=is_pooled,
                registry=registry,
            )
            for url in databases
        ]
        self._known: dict[int, Client] = {}
        self._map: ShardMap | None = None
        self._map_at = 0.0
        self._teller = self._clients[0]

    def close(self) -> None:
        """Close the client's connections."""
        super().close()
        for client in self._clients:
            client.close()

    def run(self, call: Call[T]) -> T:
        """Make a call where it belongs and return what it answers."""
        steps = routed(call, self._current())
        try:
            shard, wanted = next(steps)
            while True:
                try:
                    answer = self._of(shard).run(wanted)
                except DatabaseUnavailable as error:
                    raise _away(shard, error) from error
                shard, wanted = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _of(self, shard: int) -> Client:
        if shard not in self._known:
            self._learn(shard)
        if shard not in self._known:
            raise DatabaseUnavailable("no database with this number answers")
        return self._known[shard]

    def _current(self) -> ShardMap:
        if self._map is None or time.monotonic() - self._map_at > FRESH:
            self._learn()
        assert self._map is not None  # noqa: S101 - it has learnt it
        return self._map

    def _learn(self, wanted: int | None = None) -> None:
        """Ask for the map, first who told it last, and until a shard that is wanted is known."""
        reason: JobqError | None = None
        told: tuple[list[int], list[Epoch]] | None = None
        for client in sorted(self._clients, key=lambda client: client is not self._teller):
            if told is not None and (wanted is None or wanted in self._known):
                break
            try:
                shards, epochs = client.run(_SHARDS), client.run(_EPOCHS)
            except DatabaseUnavailable as error:
                reason = error
                continue
            self._known[_own(shards, epochs)] = client
            if told is None:
                self._teller, told = client, (sorted(shards), epochs)
        self._map, self._map_at = _mapped(told, self._map, reason), time.monotonic()


class AsyncShardedClient(AsyncClient):
    """A client of a cluster whose methods are awaited; otherwise as `ShardedClient`."""

    def __init__(
        self,
        databases: Sequence[str],
        *,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        is_pooled: bool = False,
        registry: Registry | None = None,
    ) -> None:
        if not databases:
            raise InvalidArgument("a cluster has at least one database")
        super().__init__(databases[0], registry=registry)
        self._clients = [
            AsyncClient(
                url,
                pool_size=pool_size,
                patience=patience,
                is_pooled=is_pooled,
                registry=registry,
            )
            for url in databases
        ]
        self._known: dict[int, AsyncClient] = {}
        self._map: ShardMap | None = None
        self._map_at = 0.0
        self._teller = self._clients[0]

    async def close(self) -> None:
        """Close the client's connections."""
        await super().close()
        for client in self._clients:
            await client.close()

    async def run(self, call: Call[T]) -> T:
        """Make a call where it belongs and return what it answers."""
        steps = routed(call, await self._current())
        try:
            shard, wanted = next(steps)
            while True:
                try:
                    answer = await (await self._of(shard)).run(wanted)
                except DatabaseUnavailable as error:
                    raise _away(shard, error) from error
                shard, wanted = steps.send(answer)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _of(self, shard: int) -> AsyncClient:
        if shard not in self._known:
            await self._learn(shard)
        if shard not in self._known:
            raise DatabaseUnavailable("no database with this number answers")
        return self._known[shard]

    async def _current(self) -> ShardMap:
        if self._map is None or time.monotonic() - self._map_at > FRESH:
            await self._learn()
        assert self._map is not None  # noqa: S101 - it has learnt it
        return self._map

    async def _learn(self, wanted: int | None = None) -> None:
        """Ask for the map, first who told it last, and until a shard that is wanted is known."""
        reason: JobqError | None = None
        told: tuple[list[int], list[Epoch]] | None = None
        for client in sorted(self._clients, key=lambda client: client is not self._teller):
            if told is not None and (wanted is None or wanted in self._known):
                break
            try:
                shards, epochs = await client.run(_SHARDS), await client.run(_EPOCHS)
            except DatabaseUnavailable as error:
                reason = error
                continue
            self._known[_own(shards, epochs)] = client
            if told is None:
                self._teller, told = client, (sorted(shards), epochs)
        self._map, self._map_at = _mapped(told, self._map, reason), time.monotonic()


def _own(shards: dict[int, bool], epochs: list[Epoch]) -> int:
    for shard, is_own in shards.items():
        if is_own and epochs:
            return shard
    raise InvalidArgument(
        "a database is in no cluster",
        hint="give it a number with jobq.put_shard() and an epoch with jobq.put_epoch()",
    )


def _mapped(
    told: tuple[list[int], list[Epoch]] | None, known: ShardMap | None, reason: JobqError | None
) -> ShardMap:
    """Return the map that was told, else the one that is known."""
    if told is not None:
        return ShardMap(*told)
    if known is None:
        raise reason or DatabaseUnavailable("no shard answers")
    return known


def _away(shard: int, error: DatabaseUnavailable) -> DatabaseUnavailable:
    """Say which shard does not answer."""
    detail = ", ".join(filter(None, (f"shard {shard}", error.detail)))
    return DatabaseUnavailable(
        error.message, sqlstate=error.sqlstate, detail=detail, hint=error.hint
    )
