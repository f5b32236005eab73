"""The router of a cluster: a database whose functions call those of the shards, by PL/Proxy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, nothing, scalar
from jobq.client import Client
from jobq.database import conninfo, use_json
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError, NotDeployed, translate
from jobq.models import Json, record
from jobq_operations.project import project_dir
from jobq_sharding.routes import EPOCHS, SHARDS, Epoch, Shard
from jobq_sharding.shards import choose_shard

# The login is not part of a shard's address.
_LOGIN = ("user", "password")
# Jobs that move in one transaction: few enough that large payloads need little memory.
BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A shard and its state.

    Attributes:
        state: ``ok``, or why it does not respond.
        lag: how long the oldest runnable job has waited; None without one.
    """

    shard_id: int
    url: str
    gets_keys: bool
    state: str
    lag: timedelta | None = None
    queued: int | None = None
    running: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that the shards declare differently, such as a ``kind``, and how."""

    type: str
    name: str
    finding: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """The rest of a shard: a type, such as ``queued jobs``, and a number."""

    type: str
    count: int


@dataclass(frozen=True, slots=True)
class _Declaration:
    type: str
    name: str
    declaration: Json


SEND_JOBS: Final[Call[list[tuple[UUID, Json]]]] = Call("send_jobs", {"max_jobs": BATCH}, list)
LEFTOVERS: Final[Call[list[Leftover]]] = Call("list_leftovers", {}, list, record(Leftover))
DECLARATIONS: Final[Call[list[_Declaration]]] = Call(
    "list_declarations", {}, list, record(_Declaration)
)


@contextmanager
def connected(url: str) -> Iterator[Client]:
    """Yield a client on one connection; a failure is raised at once."""
    with (
        translate(),
        psycopg.connect(conninfo(url, "jobq cluster"), autocommit=True) as connection,
    ):
        use_json(connection)
        yield Client(connection)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A cluster: its shards, also removed ones, its epochs, newest first, and the clients."""

    router: Client
    known: list[Shard]
    epochs: list[Epoch]
    shards: dict[int, Client]

    @property
    def everyone(self) -> list[Client]:
        """The clients of the shards and the router."""
        return [*self.shards.values(), self.router]

    def shard(self, shard_id: int) -> Client:
        """Return the client of a shard."""
        if shard_id not in self.shards:
            raise InvalidArgument(f"the cluster has no shard {shard_id}")
        return self.shards[shard_id]


@contextmanager
def opened(router: str, login: str) -> Iterator[_Opened]:
    """Connect to a router and its shards."""
    with ExitStack() as stack:
        to = stack.enter_context(connected(router))
        known, epochs = _map(to)
        shards = {
            each.shard_id: stack.enter_context(connected(_reached(each.url, router, login)))
            for each in known
            if not each.is_removed
        }
        yield _Opened(to, known, epochs, shards)


def init(router: str, shards: Sequence[str]) -> list[int]:
    """Create a router in a database, or update it after an upgrade; return the shards' numbers.

    Shards keep their numbers and epochs. New shards are numbered in order.

    Args:
        router: URL of the router's database, of a superuser.
        shards: URLs of the shards, each of the owner of jobq there or a superuser.
    """
    if len({_address(url) for url in shards}) < len(shards):
        raise InvalidArgument("each shard is another database: one is named twice")
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(url)) for url in shards]
        known = [client.run(SHARDS) for client in clients]
        removed = {shard.shard_id: shard for rows in known for shard in rows if shard.is_removed}
        if gone := [shard for rows in known for shard in rows if shard.is_own and shard.is_removed]:
            raise InvalidArgument(f"shard {gone[0].shard_id} was removed")
        numbers = _numbered(known, set(removed))
        epochs = max((client.run(EPOCHS) for client in clients), key=len)
        _install(router, shards[0])
        to = stack.enter_context(connected(router))
        members = dict(zip(numbers, shards, strict=True))
        for number, client in zip(numbers, clients, strict=True):
            _put_shards(client, members, number)
        there = {shard.shard_id for shard in to.run(SHARDS)}
        _put_shards(to, {n: shard.url for n, shard in removed.items() if n not in there} | members)
        _put_successors(to, known)
        if not epochs:
            epochs = [Epoch(1, numbers, datetime.now(UTC), datetime.now(UTC))]
        for epoch in sorted(epochs, key=lambda epoch: epoch.epoch):
            _put_epoch(epoch, [*clients, to])
        _keep_keys(to, clients)
    return numbers


def add(
    router: str, shard: str, login: str = "", wait: float = 30, *, without_workers: bool = False
) -> int:
    """Add a shard that receives new keys some seconds from now; return its number.

    Args:
        router: the router's URL.
        shard: the new shard's URL.
        login: login for the other shards, as ``user=... password=...``; empty for that of the
            router.
        wait: seconds until the epoch begins, in which clients and routers learn of it.
        without_workers: whether to add it even if no live worker there serves the queues that
            live workers of the other shards serve.

    Raises:
        InvalidArgument: it is in the cluster already, or no worker would run its jobs.
    """
    with opened(router, login) as cluster, connected(shard) as new:
        known = cluster.known
        (number,) = _numbered([new.run(SHARDS)], {each.shard_id for each in known})
        if number in cluster.shards:
            raise InvalidArgument(f"shard {number} is in the cluster already")
        served = {queue for client in cluster.shards.values() for queue in _served(client)}
        if not without_workers and (unserved := sorted(served - _served(new))):
            raise InvalidArgument(
                "no live worker of the new shard serves queues that the others serve",
                detail=f"queues {', '.join(unserved)}",
                hint="start workers with its --database first, or pass --without-workers",
            )
        _put_shards(new, {each.shard_id: each.url for each in known} | {number: shard}, number)
        _put_successors(new, [known])
        for client in cluster.everyone:
            _put_shards(client, {number: shard})
        cluster.shards[number] = new
        for epoch in reversed(cluster.epochs):
            _put_epoch(epoch, [new])
        _begin_epoch(cluster, [*cluster.epochs[0].shard_ids, number], wait)
        _keep_keys(cluster.router, cluster.shards.values())
    return number


def drain(router: str, shard_id: int, login: str = "", wait: float = 30) -> None:
    """Send no new keys to a shard, some seconds from now. Its jobs continue until they end.

    Raises:
        InvalidArgument: it receives no keys already, or no other shard would receive any.
    """
    with opened(router, login) as cluster:
        current = cluster.epochs[0].shard_ids
        left = set(current) - {shard_id}
        if not left or len(left) == len(current):
            raise InvalidArgument(
                f"shard {shard_id} cannot be drained", detail=f"new keys go to {_listed(current)}"
            )
        _begin_epoch(cluster, left, wait)


def move(router: str, shard_id: int, successor: int, login: str = "") -> tuple[int, list[Leftover]]:
    """Move waiting jobs off a drained shard; return their number, and what is left.

    A job is on one of the two shards, or recorded on the first one as moving. So after an
    interruption the same call, with the same successor, finishes the move, and every job arrives
    once.

    Raises:
        InvalidArgument: the shard is not drained or has another successor, or the two declare
            kinds, queues, endpoints or limits differently.
    """
    with opened(router, login) as cluster:
        source, target = cluster.shard(shard_id), cluster.shard(successor)
        if other := _unlike(source, target):
            raise InvalidArgument(
                "the shards have different definitions", detail=", ".join(other),
                hint="run jobq cluster check, and put the definitions again through the router",
            )  # fmt: skip
        for client in cluster.everyone:
            _do(client, "put_successor", shard_id=shard_id, successor=successor)
        moved = 0
        while jobs := source.run(SEND_JOBS):
            documents = {"jobs": as_jsonb([job for _, job in jobs])}
            moved += target.run(Call("receive_jobs", documents, scalar))
            _do(source, "confirm_jobs", job_ids=[job_id for job_id, _ in jobs])
        return moved, source.run(LEFTOVERS)


def remove(
    router: str, shard_id: int, login: str = "", *, forget_keys: bool = False
) -> tuple[int, list[Leftover]]:
    """Remove a drained shard without unfinished jobs; return its successor, and what is left.

    With `forget_keys`, it is removed even if idempotency keys there are still valid.

    Raises:
        InvalidArgument: it is not drained, or has unfinished jobs, schedules or valid keys.
    """
    with opened(router, login) as cluster:
        own = cluster.shard(shard_id)
        (shard,) = (each for each in cluster.known if each.shard_id == shard_id)
        successor = shard.successor
        if successor is None:
            successor = min(n for n in cluster.epochs[0].shard_ids if n != shard_id)
        left = own.run(LEFTOVERS)
        if not forget_keys and any(each.type == "idempotency keys" for each in left):
            raise InvalidArgument(
                f"shard {shard_id} has idempotency keys that are still valid",
                detail=", ".join(f"{each.count} {each.type}" for each in left),
                hint="wait until key_retention has passed, or pass --forget-keys",
            )
        others = [client for client in cluster.everyone if client is not own]
        for client in (own, *others):
            _do(client, "put_successor", shard_id=shard_id, successor=successor, is_removed=True)
        return successor, left


def _unlike(source: Client, target: Client) -> list[str]:
    """Return the definitions of the source that the target lacks or declares differently."""
    there = {(each.type, each.name): each.declaration for each in target.run(DECLARATIONS)}
    return [
        f"{each.type} {each.name}"
        for each in source.run(DECLARATIONS)
        if each.type not in {"map", "schedule"}
        and there.get((each.type, each.name)) != each.declaration
    ]


def _put_successors(client: Client, known: Sequence[Sequence[Shard]]) -> None:
    """Name the successors of shards that any of these rows have, the removed ones first."""
    rows = {shard.shard_id: shard for rows in known for shard in rows}
    for shard in sorted(rows.values(), key=lambda shard: not shard.is_removed):
        if shard.successor is not None:
            names = ("shard_id", "successor", "is_removed")
            _do(client, "put_successor", **{name: getattr(shard, name) for name in names})


def _do(client: Client, function: str, **arguments: object) -> None:
    client.run(Call(function, arguments, nothing))


def members(router: str, login: str = "") -> list[Member]:
    """Return the shards and their states."""
    with connected(router) as client:
        known, epochs = _map(client)
    now = datetime.now(UTC)
    current = next((epoch for epoch in epochs if epoch.began_at <= now), epochs[-1])
    return [
        _member(each, each.shard_id in current.shard_ids, router, login)
        for each in known
        if not each.is_removed
    ]


def _served(client: Client) -> set[str]:
    """Return the queues that live workers of a database serve."""
    return {queue for worker in client.list_workers() if worker.is_live for queue in worker.queues}


def _member(shard: Shard, gets_keys: bool, router: str, login: str) -> Member:
    try:
        with connected(_reached(shard.url, router, login)) as client:
            stats = client.queue_stats()
    except JobqError as error:
        words = "away" if isinstance(error, DatabaseUnavailable) else str(error)
        return Member(shard.shard_id, shard.url, gets_keys, words)
    return Member(
        shard.shard_id, shard.url, gets_keys, "ok",
        max(filter(None, (queue.oldest_runnable for queue in stats)), default=None),
        sum(queue.queued + queue.retrying for queue in stats),
        sum(queue.running for queue in stats),
    )  # fmt: skip


def check(router: str, login: str = "") -> list[Difference]:
    """Return the differences between the declarations of the shards."""
    found: dict[tuple[str, str], dict[int, str]] = {}
    kept = []
    with opened(router, login) as cluster:
        known, epochs, shards = cluster.known, cluster.epochs, list(cluster.shards)
        for shard_id, client in cluster.shards.items():
            kept.append(_key_retention(client.run(EPOCHS)))
            for each in client.run(DECLARATIONS):
                text = json.dumps(each.declaration, sort_keys=True)
                found.setdefault((each.type, each.name), {})[shard_id] = text
    homes = {s.shard_id: s.successor for s in known if s.removed_at and s.successor is not None}
    first = epochs[-1].shard_ids

    def home(name: str) -> int:
        shard = choose_shard(first, name)
        return homes.get(shard, shard)

    differences = [
        Difference(type_, name, finding)
        for (type_, name), by_shard in sorted(found.items())
        if (finding := _finding(type_, by_shard, shards, home(name))) is not None
    ]
    told = found.get(("map", f"epoch {epochs[0].epoch}"), {})
    if set(told) != set(shards):
        differences.append(Difference("map", "router", "the shards do not know its last epoch"))
    if max(kept) != _key_retention(epochs):
        finding = "is different on the router: run jobq cluster init"
        differences.append(Difference("setting", "key_retention", finding))
    return differences


def _finding(
    type_: str, by_shard: Mapping[int, str], shards: Sequence[int], home: int
) -> str | None:
    """Return the problem of one declaration, or None."""
    if type_ == "schedule":
        wrong = sorted(set(by_shard) - {home})
        return f"fires on {_listed(wrong)}, to which its name does not lead" if wrong else None
    missing = sorted(set(shards) - set(by_shard))
    if missing:
        return f"is missing on {_listed(missing)}"
    texts = list(by_shard.values())
    common = max(texts, key=texts.count)
    other = [shard for shard, text in by_shard.items() if text != common]
    return f"is different on {_listed(other)}" if other else None


def _listed(shards: Sequence[int]) -> str:
    return ("shard " if len(shards) == 1 else "shards ") + ", ".join(map(str, shards))


def _install(router: str, shard: str) -> None:
    """Create the router's functions, from the catalog of a shard."""
    with connected(shard) as client:
        made = client.run(Call("list_router_statements", {}, sorted))
    with translate(), psycopg.connect(router) as connection:
        for statement in ((project_dir() / "router.sql").read_text(), *(row[1] for row in made)):
            connection.execute(statement.encode())


def _numbered(known: list[list[Shard]], taken: set[int] | None = None) -> list[int]:
    """Return the number of each shard: its own, else the lowest free one."""
    own = [next((each.shard_id for each in rows if each.is_own), None) for rows in known]
    used = (taken or set()) | {number for number in own if number is not None}
    free = iter(sorted(set(range(256)) - used))
    return [next(free) if number is None else number for number in own]


def _put_shards(client: Client, members: Mapping[int, str], own: int | None = None) -> None:
    """Name shards to a database, which may be one of them."""
    for number, url in members.items():
        _do(client, "put_shard", shard_id=number, url=_address(url), is_own=number == own)


def _address(url: str) -> str:
    """Return the address of a database, without the login."""
    given = conninfo_to_dict(url)
    return make_conninfo("", **{k: v for k, v in given.items() if k not in _LOGIN})


def _reached(url: str, router: str, login: str) -> str:
    """Return an address with a login."""
    given: dict[str, Any] = conninfo_to_dict(login or router)
    return make_conninfo(url, **{k: v for k, v in given.items() if k in _LOGIN})


def _begin_epoch(cluster: _Opened, shard_ids: Iterable[int], wait: float) -> None:
    """Let these shards receive new keys, some seconds from now."""
    begins = datetime.now(UTC) + timedelta(seconds=wait)
    epoch = Epoch(cluster.epochs[0].epoch + 1, sorted(shard_ids), begins, begins)
    _put_epoch(epoch, cluster.everyone)


def _put_epoch(epoch: Epoch, clients: Iterable[Client]) -> None:
    names = ("epoch", "shard_ids", "began_at")
    for client in clients:
        _do(client, "put_epoch", **{name: getattr(epoch, name) for name in names})


def _keep_keys(router: Client, shards: Iterable[Client]) -> None:
    """Set the lifetime of keys in a router: the longest of the shards."""
    longest = max(_key_retention(shard.run(EPOCHS)) for shard in shards)
    _do(router, "jobq_router.keep_keys", key_retention=longest)


def _key_retention(epochs: list[Epoch]) -> timedelta:
    return max(epoch.keys_until - epoch.began_at for epoch in epochs)


def _map(router: Client) -> tuple[list[Shard], list[Epoch]]:
    epochs: list[Epoch] = []
    with suppress(NotDeployed):
        known, epochs = router.run(SHARDS), router.run(EPOCHS)
    if not epochs:
        raise NotDeployed(
            "this database is no router", hint="make an empty one a router: jobq cluster init"
        )
    return known, epochs
