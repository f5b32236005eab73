"""Clients of several databases that are one queue: each call goes where its jobs are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, Unpack

from jobq.calls.arguments import refuse_unknown
from jobq.calls.call import Call
from jobq.client import AsyncClient, Client
from jobq.database import awaited, finished
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError
from jobq.models import record
from jobq_sharding.routes import Epoch, Shard, ShardMap, routed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobq.registry import Registry

__all__ = ["AsyncShardedClient", "ShardedClient"]

T = TypeVar("T")

# Seconds for which a map is good; an epoch begins later than that after it was made.
FRESH: Final = 10.0
_SHARDS: Final = Call("list_shards", {}, list, record(Shard))
_EPOCHS: Final = Call("list_epochs", {}, list, record(Epoch))


class ClusterOptions(TypedDict, total=False):
    """What a client of a cluster takes beside the databases.

    Attributes:
        pool_size: at most so many connections to each.
        patience: seconds to wait for a connection of a pool.
        is_pooled: whether poolers in transaction mode stand before the databases.
        registry: as `Client` has it; each shard is told before its first job.
    """

    pool_size: int
    patience: float
    is_pooled: bool
    registry: Registry | None


class _Cluster:
    """What a client knows of a cluster: which database is which shard, and the map.

    Args:
        clients: one of each database.

    Raises:
        InvalidArgument: there is none.
    """

    def __init__(self, clients: Sequence[Client | AsyncClient]) -> None:
        if not clients:
            raise InvalidArgument("a cluster has at least one database")
        # Whoever told the map last is asked first.
        self._places = list(range(len(clients)))
        self._clients = clients
        self._known: dict[int, int] = {}
        self._map: ShardMap | None = None
        self._map_at = 0.0

    async def run(self, call: Call[T]) -> T:
        """Return what the whole cluster answers; with clients that wait, nothing suspends.

        Raises:
            DatabaseUnavailable: a required shard does not respond.
            InvalidArgument: the call is for one database, or a database is in no cluster.
        """
        if self._map is None or time.monotonic() - self._map_at > FRESH:
            await self._learn()
        assert self._map is not None  # noqa: S101 - it has learnt it
        steps = routed(call, self._map)
        answer: Any = None
        away: DatabaseUnavailable | None = None
        while True:
            try:
                # Lists do without a shard that is away; other calls do not catch this.
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
        """Return what a database answers, or the error of one that does not answer."""
        try:
            return await awaited(self._clients[place].run(call))
        except DatabaseUnavailable as error:
            return error

    async def _learn(self, wanted: int | None = None) -> None:
        """Ask for the map, and go on until a shard that is wanted is known."""
        reason: JobqError | None = None
        told: ShardMap | None = None
        for place in list(self._places):
            if told is not None and (wanted is None or wanted in self._known):
                break
            shards = await self._ask(place, _SHARDS)
            epochs = shards if isinstance(shards, JobqError) else await self._ask(place, _EPOCHS)
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
    """A client of a cluster: `Client`, but that each call goes to the shards it is for.

    A new job goes where its keys say (`jobq.shards.choose_shard`); what names a job, a batch
    or a schedule by its id goes where that is; definitions go to all, and lists come from
    all. Calls that only make sense for one database raise InvalidArgument. One call is one
    transaction on each shard that it goes to: `enqueue_many` is all or none where its jobs
    have no keys, or the same; else for the jobs of each shard.

    Args:
        databases: libpq URLs of all shards, in any order.
        options: see `ClusterOptions`.

    Raises:
        TypeError: there is no such option.
        JobqError: every method, as `Client`; DatabaseUnavailable when a shard that is needed
            does not answer, and names it. `queue_stats` and lists answer for the others, and
            log a warning that names it.
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
        """Make a call where it belongs and return what it answers."""
        return finished(self._cluster.run(call))


class AsyncShardedClient(AsyncClient):
    """A client of a cluster whose methods are awaited; otherwise as `ShardedClient`."""

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
        """Make a call where it belongs and return what it answers."""
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
    """Say which shard does not answer."""
    detail = ", ".join(filter(None, (f"shard {shard}", error.detail)))
    away = DatabaseUnavailable(
        error.message, sqlstate=error.sqlstate, detail=detail, hint=error.hint
    )
    away.__cause__ = error
    return away
