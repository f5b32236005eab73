"""Clients of several databases that form one queue: each call goes to the shards of its jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, TypedDict, TypeVar, Unpack

from jobq.calls.arguments import refuse_unknown
from jobq.calls.call import Call
from jobq.client import AsyncClient, Client
from jobq.database import awaited, finished
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError
from jobq.registry import Registry
from jobq_sharding.routes import EPOCHS, SHARDS, Epoch, Shard, ShardMap, routed

T = TypeVar("T")

# How long a map is used, in seconds; an epoch begins later than that after its creation.
FRESH: Final = 10.0


class ClusterOptions(TypedDict, total=False):
    """Options of the client of a cluster.

    Attributes:
        pool_size: maximum number of connections to each database.
        patience: seconds to wait for a connection of a pool.
        is_pooled: whether the databases are behind poolers in transaction mode.
        registry: as for `Client`; its kinds are declared in each shard before the first job.
    """

    pool_size: int
    patience: float
    is_pooled: bool
    registry: Registry | None


class _Cluster:
    """The clients of the shards of a cluster, one for each database, and its map."""

    def __init__(self, clients: Sequence[Client | AsyncClient]) -> None:
        if not clients:
            raise InvalidArgument("a cluster has at least one database")
        # The database that returned the last map is asked first.
        self._places = list(range(len(clients)))
        self._clients = clients
        self._known: dict[int, int] = {}
        self._map: ShardMap | None = None
        self._map_at = 0.0

    async def run(self, call: Call[T]) -> T:
        """Return the result of a call for the whole cluster; with synchronous clients it blocks."""
        if self._map is None or time.monotonic() - self._map_at > FRESH:
            await self._learn()
        assert self._map is not None  # noqa: S101 - by _learn()
        steps = routed(call, self._map)
        answer: Any = None
        away: DatabaseUnavailable | None = None
        while True:
            try:
                # Lists omit a shard that does not respond; other calls do not catch this.
                shard, wanted = steps.send(answer) if away is None else steps.throw(away)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if shard not in self._known:
                await self._learn(shard)
            if shard in self._known:
                answer = await self._ask(self._known[shard], wanted)
            else:
                answer = DatabaseUnavailable("no database with this number answers")
            away = _away(shard, answer) if isinstance(answer, DatabaseUnavailable) else None

    async def _ask(self, place: int, call: Call[Any]) -> Any:  # noqa: ANN401 - its answer
        """Return the result of a database, or the error if it does not respond."""
        try:
            return await awaited(self._clients[place].run(call))
        except DatabaseUnavailable as error:
            return error

    async def _learn(self, wanted: int | None = None) -> None:
        """Query the map, and the shards until the wanted one is known."""
        reason: JobqError | None = None
        told: ShardMap | None = None
        for place in list(self._places):
            if told is not None and (wanted is None or wanted in self._known):
                break
            shards = await self._ask(place, SHARDS)
            epochs = shards if isinstance(shards, JobqError) else await self._ask(place, EPOCHS)
            if isinstance(epochs, JobqError):
                reason = epochs
                continue
            own = _own(shards, epochs)
            if own.is_removed:
                continue
            self._known[own.shard_id] = place
            if told is None:
                told = _map(shards, epochs)
                self._places.remove(place)
                self._places.insert(0, place)
        self._map = told or self._map
        if self._map is None:
            raise reason or DatabaseUnavailable("no shard answers")
        self._map_at = time.monotonic()


class ShardedClient(Client):
    """A `Client` for a cluster.

    Each call goes to the shards that it concerns:

    - the keys of a new job determine its shard (`choose_shard`);
    - the id of a job, batch or schedule determines its shard;
    - definitions go to all shards, and lists come from all;
    - calls that make sense only for one database raise InvalidArgument.

    A call is one transaction on each of its shards. So `enqueue_many` is atomic if its jobs have
    no keys or the same key, and otherwise for the jobs of each shard.

    Args:
        databases: libpq URLs of all shards, in any order.
        options: see `ClusterOptions`.

    Raises:
        TypeError: an option does not exist.
        JobqError: from every method, as for `Client`. DatabaseUnavailable names the required shard
            that does not respond; `queue_stats` and lists return the rows of the others, and log a
            warning.
    """

    def __init__(self, databases: Sequence[str], **options: Unpack[ClusterOptions]) -> None:
        refuse_unknown(options, ClusterOptions)
        self._clients = [Client(url, **options) for url in databases]
        self._cluster = _Cluster(self._clients)
        super().__init__(databases[0], registry=options.get("registry"))

    def close(self) -> None:
        """Close the client's connections."""
        super().close()
        for client in self._clients:
            client.close()

    def run(self, call: Call[T]) -> T:
        """Make a call on the shards that it concerns, and return the result."""
        return finished(self._cluster.run(call))


class AsyncShardedClient(AsyncClient):
    """An `AsyncClient` for a cluster; see `ShardedClient`."""

    def __init__(self, databases: Sequence[str], **options: Unpack[ClusterOptions]) -> None:
        refuse_unknown(options, ClusterOptions)
        self._clients = [AsyncClient(url, **options) for url in databases]
        self._cluster = _Cluster(self._clients)
        super().__init__(databases[0], registry=options.get("registry"))

    async def close(self) -> None:
        """Close the client's connections."""
        await super().close()
        for client in self._clients:
            await client.close()

    async def run(self, call: Call[T]) -> T:
        """Make a call on the shards that it concerns, and return the result."""
        return await self._cluster.run(call)


def _map(shards: list[Shard], epochs: list[Epoch]) -> ShardMap:
    moving, removed = (
        {s.shard_id: s.successor for s in shards if s.successor is not None and s.is_removed is way}
        for way in (False, True)
    )
    left = sorted(shard.shard_id for shard in shards if not shard.is_removed)
    return ShardMap(left, epochs, moving, removed)


def _own(shards: list[Shard], epochs: list[Epoch]) -> Shard:
    for shard in shards:
        if shard.is_own and epochs:
            return shard
    raise InvalidArgument(
        "a database is in no cluster",
        hint="give it a number with jobq.put_shard() and an epoch with jobq.put_epoch()",
    )


def _away(shard: int, error: DatabaseUnavailable) -> DatabaseUnavailable:
    """Return the error with the number of the shard."""
    detail = ", ".join(filter(None, (f"shard {shard}", error.detail)))
    away = DatabaseUnavailable(
        error.message, sqlstate=error.sqlstate, detail=detail, hint=error.hint
    )
    away.__cause__ = error
    return away
