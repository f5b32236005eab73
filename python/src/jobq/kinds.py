"""Kinds of job: the calls that declare them and show their schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from jobq.arguments import as_jsonb, as_text
from jobq.call import Call, nothing
from jobq.models import DeclaredKind, Json, record

__all__ = [
    "delete_kind",
    "list_kinds",
    "list_payload_schemas",
    "list_undeclared_kinds",
    "put_kind",
]


def put_kind(
    kind: str,
    *,
    queue: str | None = None,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    retry_strategy: str | None = None,
    retry_initial_delay: timedelta | str | None = None,
    retry_max_delay: timedelta | str | None = None,
    retry_jitter: float | None = None,
    dedup: str | None = None,
    reuse_key_after_failure: bool | None = None,
    payload_schema: Mapping[str, Json] | None = None,
    run: str | None = None,
    concurrency_key: Sequence[str] | None = None,
    max_running: int | None = None,
    rate_limit: int | None = None,
    rate_period: timedelta | str | None = None,
    rate_burst: int | None = None,
    dedup_period: timedelta | str | None = None,
    dedup_max_wait: timedelta | str | None = None,
    keep_succeeded: timedelta | str | None = None,
    keep_dead: timedelta | str | None = None,
    keep_cancelled: timedelta | str | None = None,
    retry_on: Sequence[str] | None = None,
    key_max_running: int | None = None,
    key_rate_limit: int | None = None,
    key_rate_period: timedelta | str | None = None,
    key_rate_burst: int | None = None,
    ordered: bool | None = None,
    on_dead: str | None = None,
    version: int | None = None,
) -> Call[None]:
    """Declare a kind of job in place of what was declared of it; None means the default.

    Args:
        kind: its name.
        queue: where its jobs go.
        priority: higher runs first.
        max_attempts: how many attempts may fail.
        timeout: of each attempt.
        lease: how long a claim holds without a heartbeat, 1 s to 1 day.
        retry_preset: ``standard``, ``decorrelated``, ``powers_of_two`` or ``delivery``.
        retry_strategy: ``fixed``, ``linear``, ``exponential`` or ``decorrelated``.
        retry_initial_delay: the first wait.
        retry_max_delay: the longest.
        retry_jitter: 0 to 1, as a share of the wait.
        dedup: ``skip``, ``enqueue``, ``replace``, ``debounce`` or ``throttle``.
        reuse_key_after_failure: whether the idempotency key of a job that failed may be
            used again.
        payload_schema: a JSON Schema that every payload must meet at enqueue.
        run: a function of the database, such as ``analytics.refresh_sales``, that is run
            by `work`: of a jsonb, or of a jsonb[] for many jobs at a time.
        concurrency_key: the path in the payload at which each job's concurrency key stands.
        max_running: how many jobs of the kind run at once, in all queues.
        rate_limit: how many of them start in each ``rate_period``.
        rate_period: a second by default.
        rate_burst: how many of them may start together; 1 by default.
        dedup_period: for how long debounce waits for another call, or throttle makes no other
            job; 10 seconds by default.
        dedup_max_wait: how long other calls may put a job off in all.
        keep_succeeded: how long its jobs are kept that succeeded, at most the global
            retention; 0 leaves no trace of them.
        keep_dead: the same for dead jobs; at least 1 hour.
        keep_cancelled: the same for cancelled jobs; at least 1 hour.
        retry_on: after which errors of ``run`` a job is tried again: SQLSTATEs, or their
            classes by two characters; ``08``, ``40``, ``53``, ``55`` and ``57`` by default.
        key_max_running: how many of its jobs of each concurrency key run at once, in all
            queues.
        key_rate_limit: how many of its jobs of each key start in each ``key_rate_period``.
        key_rate_period: a second by default.
        key_rate_burst: how many of a key may start together; 1 by default.
        ordered: whether its jobs of each key run one at a time, and wait for one that is
            tried again.
        on_dead: ``continue``, or ``hold``: a dead job of an ordered kind holds its key.
        version: of the program that declares, a number that grows; nothing is changed where
            this version or a newer one has declared the kind. None replaces what any has.

    Raises:
        NotFound: there is no such function of one jsonb that returns jsonb.
        PayloadInvalid: the schema uses a keyword that the database does not enforce.
        InvalidArgument: a value is out of range.
    """
    arguments = {
        "kind": kind,
        "queue": queue,
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": timeout,
        "lease": lease,
        "retry_preset": retry_preset,
        "retry_strategy": retry_strategy,
        "retry_initial_delay": retry_initial_delay,
        "retry_max_delay": retry_max_delay,
        "retry_jitter": retry_jitter,
        "dedup": dedup,
        "reuse_key_after_failure": reuse_key_after_failure,
        "payload_schema": as_jsonb(payload_schema),
        "run": run,
        "concurrency_key": concurrency_key and list(concurrency_key),
        "max_running": max_running,
        "rate_limit": rate_limit,
        "rate_period": rate_period,
        "rate_burst": rate_burst,
        "dedup_period": dedup_period,
        "dedup_max_wait": dedup_max_wait,
        "keep_succeeded": keep_succeeded,
        "keep_dead": keep_dead,
        "keep_cancelled": keep_cancelled,
        "retry_on": retry_on if retry_on is None else list(retry_on),
        "key_max_running": key_max_running,
        "key_rate_limit": key_rate_limit,
        "key_rate_period": key_rate_period,
        "key_rate_burst": key_rate_burst,
        "ordered": ordered,
        "on_dead": on_dead,
        "version": version,
    }
    return Call("put_kind", arguments, nothing)


def list_payload_schemas(kinds: Sequence[str]) -> Call[dict[str, Json]]:
    """Return the schemas of kinds that clients check payloads against.

    Raises:
        InvalidArgument: a kind is no text.
    """
    return Call("list_payload_schemas", {"kinds": [as_text(kind) for kind in kinds]}, dict)


def list_undeclared_kinds(kinds: Sequence[str], version: int | None = None) -> Call[list[str]]:
    """Return which of these kinds nobody has declared, or only an older version of the program.

    Args:
        kinds: their names.
        version: of the program, as `put_kind` has it; None counts only what nobody has declared.
    """
    arguments = {"kinds": list(kinds), "version": version}
    return Call("list_undeclared_kinds", arguments, lambda rows: [row[0] for row in rows])


def list_kinds() -> Call[list[DeclaredKind]]:
    """Return what is declared of each kind, by name."""
    return Call("list_kinds", {}, list, record(DeclaredKind))


def delete_kind(kind: str) -> Call[None]:
    """Forget what was declared of a kind.

    Raises:
        NotFound: nothing was.
        Conflict: live jobs or schedules of it exist, or it is an endpoint.
    """
    return Call("delete_kind", {"kind": kind}, nothing)
