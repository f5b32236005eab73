"""A cluster's router: a database whose functions call those of the shards, by PL/Proxy."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, nothing, scalar
from jobq.client import Client
from jobq.database import conninfo, use_json
from jobq.errors import DatabaseUnavailable, InvalidArgument, JobqError, NotDeployed, translate
from jobq.models import record
from jobq.project import project_dir
from jobq_sharding.routes import Epoch, Shard
from jobq_sharding.shards import choose_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from jobq.models import Json

__all__ = [
    "Difference",
    "Leftover",
    "Member",
    "add",
    "check",
    "drain",
    "init",
    "members",
    "move",
    "remove",
]

# Whom a connection is for is not part of a shard's address.
_LOGIN = ("user", "password")
# Jobs that move in one transaction: few enough that large payloads need little memory.
BATCH = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A shard, and how it stands.

    Attributes:
        shard_id: its number.
        url: its address.
        gets_keys: whether new keys go there.
        state: `ok`, or why it does not answer.
        lag: for how long the oldest job that could run has waited; None without one.
        queued: how many of its jobs wait.
        running: how many run.
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
    """Something that shards declare differently.

    Attributes:
        type: what it is, such as `kind`.
        name: its name.
        finding: which shards have it, or have it otherwise.
    """

    type: str
    name: str
    finding: str


@dataclass(frozen=True, slots=True)
class Leftover:
    """What a shard still has: such as `queued jobs`, and how many."""

    type: str
    count: int


@dataclass(frozen=True, slots=True)
class _Declaration:
    type: str
    name: str
    declaration: Json


@contextmanager
def connected(url: str) -> Iterator[Client]:
    """Give a client on one connection, whose failure is told at once."""
    with (
        translate(),
        psycopg.connect(conninfo(url, "jobq cluster"), autocommit=True) as connection,
    ):
        use_json(connection)
        yield Client(connection)


def init(router: str, shards: Sequence[str]) -> list[int]:
    """Make a router of a database, or make it anew after an upgrade; return the shards' numbers.

    Shards that have a number and an epoch keep them. What is new is numbered in order.

    Args:
        router: the URL of a superuser's of the router's database.
        shards: the URLs of the shards, of the owner of jobq there or a superuser.

    Raises:
        InvalidArgument: a shard is named twice.
    """
    if len({_address(url) for url in shards}) < len(shards):
        raise InvalidArgument("each shard is another database: one is named twice")
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(url)) for url in shards]
        known = [client.run(_shards()) for client in clients]
        removed = {shard.shard_id: shard for rows in known for shard in rows if shard.is_removed}
        if gone := [shard for rows in known for shard in rows if shard.is_own and shard.is_removed]:
            raise InvalidArgument(f"shard {gone[0].shard_id} was removed")
        numbers = _numbered(known, set(removed))
        told = [client.run(_epochs()) for client in clients]
        epochs = max(told, key=len)
        _install(router, shards[0])
        to = stack.enter_context(connected(router))
        members = dict(zip(numbers, shards, strict=True))
        for number, client in zip(numbers, clients, strict=True):
            _tell(client, members, number)
        _tell(to, {n: shard.url for n, shard in removed.items() if n not in _ids(to)} | members)
        _succeed(to, known)
        if not epochs:
            epochs = [Epoch(1, numbers, datetime.now(UTC), datetime.now(UTC))]
        for epoch in sorted(epochs, key=lambda epoch: epoch.epoch):
            for client in (*clients, to):
                client.run(_put_epoch(epoch))
        to.run(_keep_keys(clients))
    return numbers


def add(
    router: str, shard: str, login: str = "", wait: float = 30, *, without_workers: bool = False
) -> int:
    """Have a further shard get new keys, some seconds from now; return its number.

    Args:
        router: the router's URL.
        shard: the new shard's URL.
        login: how to log in to the other shards, as ``user=... password=...``; empty for the
            router's own.
        wait: so many seconds ahead the epoch begins, for clients and routers to learn of it.
        without_workers: whether to add it even if no live worker there serves the queues that
            live workers of the other shards serve.

    Raises:
        InvalidArgument: it is in the cluster already, or nobody would do its jobs.
    """
    with ExitStack() as stack:
        to = stack.enter_context(connected(router))
        known, epochs = _map(to)
        clients = {
            each.shard_id: stack.enter_context(connected(_reached(each.url, router, login)))
            for each in known
            if not each.is_removed
        }
        new = stack.enter_context(connected(shard))
        (number,) = _numbered([new.run(_shards())], {each.shard_id for each in known})
        if number in clients:
            raise InvalidArgument(f"shard {number} is in the cluster already")
        served = {queue for client in clients.values() for queue in _served(client)}
        if not without_workers and (unserved := sorted(served - _served(new))):
            raise InvalidArgument(
                "no live worker of the new shard serves queues that the others serve",
                detail=f"queues {', '.join(unserved)}",
                hint="start workers with its --database first, or pass --without-workers",
            )
        _tell(new, {each.shard_id: each.url for each in known} | {number: shard}, number)
        _succeed(new, [known])
        for client in (*clients.values(), to):
            _tell(client, {number: shard})
        clients[number] = new
        begins = datetime.now(UTC) + timedelta(seconds=wait)
        latest = epochs[0]
        next_ = Epoch(latest.epoch + 1, sorted([*latest.shard_ids, number]), begins, begins)
        for epoch in reversed(epochs):
            new.run(_put_epoch(epoch))
        for client in (*clients.values(), to):
            client.run(_put_epoch(next_))
        to.run(_keep_keys(clients.values()))
    return number


def drain(router: str, shard_id: int, login: str = "", wait: float = 30) -> None:
    """Have a shard get no new keys, some seconds from now. Its jobs go on until they have ended.

    Args:
        router: the router's URL.
        shard_id: the shard's number.
        login: as for `add`.
        wait: as for `add`.

    Raises:
        InvalidArgument: it gets no keys already, or no other shard would get any.
    """
    with ExitStack() as stack:
        to = stack.enter_context(connected(router))
        known, epochs = _map(to)
        clients = [
            stack.enter_context(connected(_reached(each.url, router, login)))
            for each in known
            if not each.is_removed
        ]
        left = sorted(set(epochs[0].shard_ids) - {shard_id})
        if not left or len(left) == len(epochs[0].shard_ids):
            raise InvalidArgument(
                f"shard {shard_id} cannot be drained",
                detail=f"new keys go to {_listed(epochs[0].shard_ids)}",
            )
        begins = datetime.now(UTC) + timedelta(seconds=wait)
        for client in (*clients, to):
            client.run(_put_epoch(Epoch(epochs[0].epoch + 1, left, begins, begins)))


def move(router: str, shard_id: int, successor: int, login: str = "") -> tuple[int, list[Leftover]]:
    """Move waiting jobs off a drained shard; return how many moved, and what it still has.

    A job is on one of the two shards, or recorded on the first as on the move: whatever
    interrupts this, the same call again finishes it, and every job arrives once.

    Args:
        router: the router's URL.
        shard_id: the shard's number.
        successor: the shard that takes them; the same at every call.
        login: as for `add`.

    Raises:
        InvalidArgument: it is not drained, has another successor, or they declare kinds, queues,
            endpoints or limits differently.
    """
    with ExitStack() as stack:
        to = stack.enter_context(connected(router))
        clients = _clients(stack, to, router, login)
        source, target = _known_one(clients, shard_id), _known_one(clients, successor)
        if other := _unlike(source, target):
            raise InvalidArgument(
                "the shards have different definitions", detail=", ".join(other),
                hint="run jobq cluster check, and put the definitions again through the router",
            )  # fmt: skip
        for client in (*clients.values(), to):
            client.run(_put_successor(shard_id, successor))
        moved = 0
        while jobs := source.run(_send_jobs()):
            documents = {"jobs": as_jsonb([job for _, job in jobs])}
            moved += target.run(Call("receive_jobs", documents, scalar))
            confirmed = {"job_ids": [job_id for job_id, _ in jobs]}
            source.run(Call("confirm_jobs", confirmed, nothing))
        return moved, source.run(_leftovers())


def remove(
    router: str, shard_id: int, login: str = "", *, forget_keys: bool = False
) -> tuple[int, list[Leftover]]:
    """Remove a drained shard that has no unfinished job; return its successor, and what it keeps.

    Args:
        router: the router's URL.
        shard_id: the shard's number.
        login: as for `add`.
        forget_keys: whether to remove it even if idempotency keys there are still valid.

    Raises:
        InvalidArgument: it is not drained, or has unfinished jobs, schedules or valid keys.
    """
    with ExitStack() as stack:
        to = stack.enter_context(connected(router))
        known, epochs = _map(to)
        clients = _clients(stack, to, router, login)
        own = _known_one(clients, shard_id)
        (shard,) = (each for each in known if each.shard_id == shard_id)
        if shard.successor is not None:
            successor = shard.successor
        else:
            successor = next(n for n in sorted(epochs[0].shard_ids) if n != shard_id)
        left = own.run(_leftovers())
        if not forget_keys and any(each.type == "idempotency keys" for each in left):
            raise InvalidArgument(
                f"shard {shard_id} has idempotency keys that are still valid",
                detail=", ".join(f"{each.count} {each.type}" for each in left),
                hint="wait until key_retention has passed, or pass --forget-keys",
            )
        for client in (own, *(c for n, c in clients.items() if n != shard_id), to):
            client.run(_put_successor(shard_id, successor, is_removed=True))
        return successor, left


def _clients(stack: ExitStack, to: Client, router: str, login: str) -> dict[int, Client]:
    return {
        each.shard_id: stack.enter_context(connected(_reached(each.url, router, login)))
        for each in _map(to)[0]
        if not each.is_removed
    }


def _known_one(clients: Mapping[int, Client], shard_id: int) -> Client:
    if shard_id not in clients:
        raise InvalidArgument(f"the cluster has no shard {shard_id}")
    return clients[shard_id]


def _unlike(source: Client, target: Client) -> list[str]:
    """Return the definitions of the source that the target lacks or has otherwise."""
    there = {(each.type, each.name): each.declaration for each in target.run(_declarations())}
    return [
        f"{each.type} {each.name}"
        for each in source.run(_declarations())
        if each.type not in {"map", "schedule"}
        and there.get((each.type, each.name)) != each.declaration
    ]


def _ids(client: Client) -> set[int]:
    return {shard.shard_id for shard in client.run(_shards())}


def _succeed(client: Client, known: Sequence[Sequence[Shard]]) -> None:
    """Name the successors of shards that any of these rows have, the removed ones first."""
    rows = {
        shard.shard_id: shard for rows in known for shard in rows if shard.successor is not None
    }
    for shard in sorted(rows.values(), key=lambda shard: not shard.is_removed):
        assert shard.successor is not None  # noqa: S101 - so they were chosen
        client.run(_put_successor(shard.shard_id, shard.successor, is_removed=shard.is_removed))


def _put_successor(shard_id: int, successor: int, *, is_removed: bool = False) -> Call[None]:
    arguments = {"shard_id": shard_id, "successor": successor, "is_removed": is_removed}
    return Call("put_successor", arguments, nothing)


def _send_jobs() -> Call[list[tuple[UUID, Json]]]:
    return Call("send_jobs", {"max_jobs": BATCH}, list)


def _leftovers() -> Call[list[Leftover]]:
    return Call("list_leftovers", {}, list, record(Leftover))


def members(router: str, login: str = "") -> list[Member]:
    """Return the shards, and how each one stands."""
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
    """Return where the shards differ in what they must have alike.

    Raises:
        DatabaseUnavailable: a shard does not answer.
    """
    with connected(router) as client:
        known, epochs = _map(client)
    found: dict[tuple[str, str], dict[int, str]] = {}
    kept = []
    homes = {s.shard_id: s.successor for s in known if s.removed_at and s.successor is not None}
    known = [shard for shard in known if not shard.is_removed]
    for shard in known:
        with connected(_reached(shard.url, router, login)) as client:
            kept.append(_key_retention(client.run(_epochs())))
            for each in client.run(_declarations()):
                text = json.dumps(each.declaration, sort_keys=True)
                found.setdefault((each.type, each.name), {})[shard.shard_id] = text
    shards = [shard.shard_id for shard in known]
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
    """Return what is wrong with one declaration, or None."""
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
    """Write the router's functions, from the catalog of a shard."""
    statements = [
        (project_dir() / "router.sql").read_text(),
        *_fetched(shard),
    ]
    with translate(), psycopg.connect(router) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _fetched(shard: str) -> list[str]:
    with connected(shard) as client:
        return client.run(
            Call("list_router_statements", {}, lambda rows: [row[1] for row in sorted(rows)])
        )


def _numbered(known: list[list[Shard]], taken: set[int] | None = None) -> list[int]:
    """Return the number of each shard: the one that it has, else the lowest that is free."""
    own = [next((each.shard_id for each in rows if each.is_own), None) for rows in known]
    used = (taken or set()) | {number for number in own if number is not None}
    free = iter(sorted(set(range(256)) - used))
    return [next(free) if number is None else number for number in own]


def _tell(client: Client, members: Mapping[int, str], own: int | None = None) -> None:
    """Name shards, of which one may be the one that is told."""
    for number, url in members.items():
        arguments = {"shard_id": number, "url": _address(url), "is_own": number == own}
        client.run(Call("put_shard", arguments, nothing))


def _address(url: str) -> str:
    """Return where a database is, without who asks."""
    given = conninfo_to_dict(url)
    return make_conninfo("", **{k: v for k, v in given.items() if k not in _LOGIN})


def _reached(url: str, router: str, login: str) -> str:
    """Return an address with somebody who asks."""
    given: dict[str, Any] = conninfo_to_dict(login or router)
    return make_conninfo(url, **{k: v for k, v in given.items() if k in _LOGIN})


def _put_epoch(epoch: Epoch) -> Call[None]:
    arguments = {
        "epoch": epoch.epoch, "shard_ids": epoch.shard_ids, "began_at": epoch.began_at,
    }  # fmt: skip
    return Call("put_epoch", arguments, nothing)


def _keep_keys(shards: Iterable[Client]) -> Call[None]:
    """Tell a router for how long keys live: as long as on the shard that keeps them longest."""
    longest = max(_key_retention(shard.run(_epochs())) for shard in shards)
    arguments = {"key_retention": longest}
    return Call("jobq_router.keep_keys", arguments, nothing)


def _key_retention(epochs: list[Epoch]) -> timedelta:
    return max(epoch.keys_until - epoch.began_at for epoch in epochs)


def _map(router: Client) -> tuple[list[Shard], list[Epoch]]:
    try:
        return router.run(_shards()), router.run(_epochs())
    except NotDeployed as error:
        raise NotDeployed(
            "this database is no router", hint="make it one with: jobq cluster init"
        ) from error


def _shards() -> Call[list[Shard]]:
    return Call("list_shards", {}, list, record(Shard))


def _epochs() -> Call[list[Epoch]]:
    return Call("list_epochs", {}, list, record(Epoch))


def _declarations() -> Call[list[_Declaration]]:
    return Call("list_declarations", {}, list, record(_Declaration))
