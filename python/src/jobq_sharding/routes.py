"""The shards that a call goes to, and how their results are merged."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from psycopg.rows import tuple_row

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, scalar
from jobq.calls.graph import others_of
from jobq.errors import DatabaseUnavailable, InvalidArgument
from jobq.models import Enqueued, JobPage, record
from jobq_operations.project import TEXT, project_dir
from jobq_sharding.shards import choose_shard, shard_of

logger = logging.getLogger("jobq.client")

# Yields a shard and the call for it, receives the result (or DatabaseUnavailable), and so on, until
# it returns the whole result.
Steps = Generator["tuple[int, Call[Any]]", Any, Any]


def read_routes() -> dict[str, tuple[str, str]]:
    """Return the class of each function in a cluster, and a detail of it."""
    text = (project_dir() / "deploy" / "shard_tables.sql").read_text()
    found = re.findall(rf"^    \('(\w+)', {TEXT}, {TEXT}\)", text, re.MULTILINE)
    return {
        name: (way, "" if way in {"all", "lists"} else detail.replace("''", "'"))
        for way, detail, names in found
        for name in names.split()
    }


# By the name of the function.
ROUTES: Final = read_routes()
# Functions outside of the public interface.
OTHER: Final = ("refused", "it is the HTTP server's")
MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Epoch:
    """The shards that receive new keys from a time on.

    Attributes:
        keys_until: until when idempotency keys of the epoch before may be valid.
    """

    epoch: int
    shard_ids: list[int]
    began_at: datetime
    keys_until: datetime


@dataclass(frozen=True, slots=True)
class Shard:
    """A database of the cluster.

    Attributes:
        is_own: whether it is the queried database.
        successor: the shard that takes over its jobs, if any.
        removed_at: when it was removed; since then, its ids lead to the successor.
    """

    shard_id: int
    url: str
    is_own: bool
    successor: int | None
    removed_at: datetime | None

    @property
    def is_removed(self) -> bool:
        """Whether it no longer belongs to the cluster."""
        return self.removed_at is not None


SHARDS: Final[Call[list[Shard]]] = Call("list_shards", {}, list, record(Shard))
EPOCHS: Final[Call[list[Epoch]]] = Call("list_epochs", {}, list, record(Epoch))


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shards and epochs of a cluster.

    Attributes:
        shards: numbers of the shards.
        epochs: the epochs, newest first.
        moving: the successors of shards whose jobs move.
        removed: the successors of removed shards.
        moved: the shards of jobs that have moved.
    """

    shards: Sequence[int]
    epochs: Sequence[Epoch]
    moving: Mapping[int, int] = field(default_factory=dict)
    removed: Mapping[int, int] = field(default_factory=dict)
    moved: Mapping[UUID, int] = field(default_factory=dict)

    def of_id(self, job_id: UUID | str) -> int:
        """Return the shard of an id; any shard if none has its number."""
        id_ = UUID(str(job_id))
        return self.moved.get(id_, self._known(shard_of(id_)))

    def _known(self, shard: int) -> int:
        shard = self.removed.get(shard, shard)
        return shard if shard in self.shards else self.shards[0]

    def choices(self, job: Mapping[str, Any]) -> list[int]:
        """Return the shard for a new job, and those that may have its key from earlier epochs."""
        now = datetime.now(UTC)
        begun = [epoch for epoch in self.epochs if epoch.began_at <= now] or self.epochs[-1:]
        living = [begun[0]]
        for newer, older in pairwise(begun):
            if newer.keys_until <= now:
                break
            living.append(older)
        batch = job.get("batch_id")
        if of := self.together([*([batch] if batch else []), *(job.get("after") or ())]):
            return of
        found = [self._known(_choose(epoch.shard_ids, job)) for epoch in living]
        return list(dict.fromkeys(found)) if job.get("idempotency_key") else found[:1]

    def together(self, job_ids: Iterable[UUID | str]) -> list[int]:
        """Return the shard of all these ids; empty without ids."""
        shards = {self.of_id(job_id) for job_id in job_ids}
        if len(shards) > 1:
            raise InvalidArgument(
                "a job or graph cannot name jobs on different shards",
                detail=f"shards {', '.join(map(str, sorted(shards)))}",
                hint="enqueue jobs that belong together as one graph, or with one concurrency_key",
            )
        return list(shards)

    def of_schedule(self, name: str) -> int:
        """Return the shard of a schedule: by its id, or by its name in the first epoch."""
        try:
            return self.of_id(name)
        except ValueError:
            return self._known(choose_shard(self.epochs[-1].shard_ids, name))


def _choose(shard_ids: Sequence[int], job: Mapping[str, Any]) -> int:
    keys = [
        None if job.get(key) is None else str(job[key])
        for key in ("concurrency_key", "idempotency_key", "dedup_key")
    ]
    return choose_shard(shard_ids, *keys)


def routed(call: Call[Any], cluster: ShardMap) -> Steps:
    """Yield shards and calls, receive each result, and return the whole result."""
    call = replace(call, arguments=call.given)
    if cluster.moving:
        cluster = replace(cluster, moved=(yield from _find_moved(call, cluster)))
    return (yield from _steps(call, cluster))


def _find_moved(call: Call[Any], cluster: ShardMap) -> Generator[Any, Any, dict[UUID, int]]:
    """Query which of the jobs named by a call have moved to the successors of their shards."""
    asked: dict[int, list[UUID]] = {}
    for id_ in _named(call):
        if (shard := cluster.of_id(id_)) in cluster.moving:
            asked.setdefault(shard, []).append(id_)
    moved: dict[UUID, int] = {}
    for shard, ids in asked.items():
        found = replace(
            call, function="list_moved", arguments={"job_ids": ids}, read=dict, inputs=(),
            row_factory=tuple_row, from_now=None,
        )  # fmt: skip
        moved |= yield shard, found
    return moved


def _named(call: Call[Any]) -> Iterator[UUID]:
    """Yield the ids of jobs in a call's arguments, and in those of new jobs."""
    given = [call.arguments]
    if call.function == "enqueue_many":
        given = call.arguments["jobs"].obj  # type: ignore[attr-defined]
    elif call.function == "enqueue_graph":
        given.append({"after": others_of(call.arguments["graph"].obj)})  # type: ignore[attr-defined]
    for arguments in given:
        singles = [arguments.get(name) for name in ("job_id", "graph_of", "schedule", "batch_id")]
        many = [arguments.get(name) for name in ("job_ids", "after")]
        for value in (*singles, *(id_ for ids in many for id_ in ids or ())):  # type: ignore[attr-defined]
            with suppress(ValueError):
                yield UUID(str(value))


def _steps(call: Call[Any], cluster: ShardMap) -> Steps:
    way, detail = ROUTES.get(call.function, OTHER)
    if call.function == "enqueue_many":
        return _enqueue_many(call, cluster)
    if call.function == "enqueue_graph":
        return _enqueue_graph(call, cluster)
    if way == "some":
        by_ids = call.arguments.get("job_ids") is not None
        return _by_ids(call, cluster) if by_ids else _some(call, cluster)
    shard = _only(way, detail, call.arguments, cluster)
    if shard is not None:
        return _one(shard, call)
    merge = _agreed if way == "every" else _MERGES.get(call.function)
    if merge is None:
        raise InvalidArgument(
            "this call works on one database, not on a cluster",
            code="ONE_DATABASE",
            detail=f"{call.function}: {detail}",
        )
    return _all(call, cluster, merge, may_miss=way == "lists")


def _only(way: str, detail: str, given: Mapping[str, Any], cluster: ShardMap) -> int | None:
    """Return the shard of a call that goes to one."""
    if way in {"key", "lot"}:
        return cluster.choices(given)[0]
    if way == "id":
        return cluster.of_id(str(given[detail]))
    if way == "schedule":
        return cluster.of_schedule(str(given[detail]))
    return cluster.shards[0] if way == "any" else None


def _one(shard: int, call: Call[Any]) -> Steps:
    return (yield shard, call)


def _all(call: Call[Any], cluster: ShardMap, merge: Callable[..., Any], *, may_miss: bool) -> Steps:
    """Merge the results of all shards. Lists omit shards that do not respond."""
    answers = []
    for shard in cluster.shards:
        try:
            answers.append((yield shard, call))
        except DatabaseUnavailable:
            if not may_miss or (shard == cluster.shards[-1] and not answers):
                raise
            logger.warning("a shard does not respond: its rows are missing (shard %s)", shard)
    return merge(answers, call)


def _enqueue_many(call: Call[Any], cluster: ShardMap) -> Steps:
    """Split the jobs by shard; those without a key or a parent go to one shard together."""
    jobs: list[Mapping[str, Any]] = call.arguments["jobs"].obj  # type: ignore[attr-defined]
    lot = cluster.choices({})[0]
    groups: dict[int, list[int]] = {}
    for n, job in enumerate(jobs):
        choices = cluster.choices(job) if _is_bound(job) else [lot]
        shard = choices[0]
        for earlier in choices[1:]:
            held = replace(
                call, function="find_job", read=scalar, inputs=(), row_factory=tuple_row,
                arguments={"kind": job.get("kind"), "idempotency_key": job["idempotency_key"]},
            )  # fmt: skip
            if (yield earlier, held) is not None:
                shard = earlier
                break
        groups.setdefault(shard, []).append(n)
    if len(groups) <= 1:
        return (yield next(iter(groups), lot), call)
    found: dict[int, Enqueued] = {}
    for shard, places in groups.items():
        arguments = {"jobs": as_jsonb([jobs[n] for n in places])}
        inputs = [call.inputs[n] for n in places]
        answer = yield shard, replace(call, arguments=arguments, inputs=inputs)
        found |= zip(places, answer, strict=True)
    return [found[n] for n in range(len(jobs))]


def _enqueue_graph(call: Call[Any], cluster: ShardMap) -> Steps:
    """Send a graph to the shard of the existing jobs that it names."""
    [shard] = cluster.together(_named(call)) or cluster.choices({})
    return (yield shard, call)


def _is_bound(job: Mapping[str, Any]) -> bool:
    keys = ("concurrency_key", "idempotency_key", "dedup_key", "after", "batch_id")
    return any(job.get(key) for key in keys)


def _by_ids(call: Call[Any], cluster: ShardMap) -> Steps:
    groups: dict[int, list[UUID]] = {}
    for job_id in call.arguments["job_ids"]:  # type: ignore[attr-defined]
        groups.setdefault(cluster.of_id(job_id), []).append(job_id)
    found: list[Any] = []
    for shard, ids in groups.items():
        found += yield shard, replace(call, arguments={**call.arguments, "job_ids": ids})
    return found


def _some(call: Call[Any], cluster: ShardMap) -> Steps:
    """Call one shard after another until the maximum number of jobs is reached."""
    found: list[Any] = []
    given = call.arguments.get("max_jobs")
    most = MOST if given is None else int(str(given))
    for shard in cluster.shards:
        if not found or len(found) < most:  # the first shard refuses a maximum below 1
            arguments = {**call.arguments, "max_jobs": most - len(found)}
            found += yield shard, replace(call, arguments=arguments)
    return found


def _agreed(answers: list[Any], _call: Call[Any]) -> Any:  # noqa: ANN401 - any result
    """Return any true, the sum of counts, or the first."""
    if isinstance(answers[0], bool):
        return any(answers)
    return sum(answers) if isinstance(answers[0], int) else answers[0]


def _joined(answers: Sequence[list[Any]], _call: Call[Any]) -> list[Any]:
    return [row for answer in answers for row in answer]


def _distinct(answers: Sequence[list[Any]], _call: Call[Any]) -> list[Any]:
    return sorted({row for answer in answers for row in answer})


def _jobs(answers: list[JobPage], call: Call[Any]) -> JobPage:
    """Merge pages down to the end of the shortest: other shards may have read further."""
    cursors = [page.cursor for page in answers if page.cursor is not None]
    floor = max(cursors, default=UUID(int=0))
    jobs = [job for job in _joined(answers, call) if job.job_id >= floor]
    most = int(str(call.arguments["max_jobs"]))
    page = sorted(jobs, key=lambda job: job.job_id, reverse=True)[:most]
    if len(page) == most:
        return JobPage(page, page[-1].job_id)
    return JobPage(page, floor if cursors else None)


def _schedules(answers: list[list[Any]], call: Call[Any]) -> list[Any]:
    found = sorted(_joined(answers, call), key=lambda row: row.schedule_id, reverse=True)
    return found[: int(str(call.arguments.get("max_schedules", 50)))]


def _found(answers: list[Any], _call: Call[Any]) -> Any:  # noqa: ANN401 - an id or None
    return next((answer for answer in answers if answer is not None), None)


def _folded(
    of: Callable[[Any], Any], add: Callable[[Any, Any], Any]
) -> Callable[[list[list[Any]], Call[Any]], list[Any]]:
    """Return a merge that adds the rows which are of the same thing, and sorts by it."""

    def merge(answers: list[list[Any]], call: Call[Any]) -> list[Any]:
        found: dict[Any, Any] = {}
        for row in _joined(answers, call):
            key = of(row)
            found[key] = add(found[key], row) if key in found else row
        return [found[key] for key in sorted(found)]

    return merge


def _budget_of(row: Any) -> tuple[Any, ...]:  # noqa: ANN401 - Budget
    key = row.concurrency_key
    period = row.period, row.time_zone
    return row.scope_type, row.scope, row.each_key, key is not None, key or "", period


def _budget(one: Any, two: Any) -> Any:  # noqa: ANN401 - Budget
    is_total = one.spent is None  # of each key, which have rows of their own
    return replace(
        one,
        amount=one.amount + two.amount,
        spent=None if is_total else one.spent + two.spent,
        reserved=None if is_total else one.reserved + two.reserved,
        next_period_at=min(one.next_period_at, two.next_period_at),
    )


def _limit(one: Any, two: Any) -> Any:  # noqa: ANN401 - Limit
    return replace(one, running=one.running + two.running)


def _questions(answers: list[list[Any]], call: Call[Any]) -> list[Any]:
    found = sorted(_joined(answers, call), key=lambda row: (row.since, row.job_id, row.name))
    return found[: int(str(call.arguments.get("max_rows", 100)))]


def _stats(one: Any, two: Any) -> Any:  # noqa: ANN401 - QueueStats
    ages = [age for age in (one.oldest_runnable, two.oldest_runnable) if age is not None]
    counts = (
        "queued", "scheduled", "running", "retrying", "dead", "finished_last_minute",
        "waiting_keys", "closed_keys", "blocked",
    )  # fmt: skip
    return replace(
        one,
        **{name: getattr(one, name) + getattr(two, name) for name in counts},
        oldest_runnable=max(ages, default=None),
        is_paused=one.is_paused and two.is_paused,
        is_exact=one.is_exact and two.is_exact,
    )


_MERGES: Final[dict[str, Callable[..., Any]]] = {
    "list_budgets": _folded(_budget_of, _budget),
    "list_limits": _folded(lambda row: (row.queue, row.concurrency_key), _limit),
    "list_undeclared_kinds": _distinct,
    "list_waits": _questions,
    "list_workers": _joined,
    "find_job": _found,
    "list_jobs": _jobs,
    "list_schedules": _schedules,
    "queue_stats": _folded(lambda row: row.queue, _stats),
}
