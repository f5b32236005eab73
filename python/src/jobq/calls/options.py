"""The options of jobs, kinds, queues and schedules, listed only here.

`Client` takes them as keyword arguments, and the command line has an option for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, TypeAlias, TypedDict
from uuid import UUID

from jobq.calls.arguments import as_timedelta
from jobq.calls.graph import Graph
from jobq.models import AfterFailure, Json

Span: TypeAlias = timedelta | float | str
"""A duration: a timedelta, seconds, or the text of an interval such as ``30 s``."""

Dedup = Literal["skip", "enqueue", "replace", "debounce", "throttle"]
ScheduleDedup = Literal["enqueue", "skip", "replace"]
RetryStrategy = Literal["fixed", "linear", "exponential", "decorrelated"]
OnDead = Literal["continue", "hold"]
Gap = Literal["auto", "run", "skip"]
Fold = Literal["auto", "once", "both"]
Missed = Literal["all", "latest", "none"]
Mode = Literal["put", "create", "update"]
DefinitionType = Literal["payload_spec", "config", "secret", "endpoint"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]


class LimitOptions(TypedDict, total=False):
    """Limits of a kind or a queue; None means no limit.

    Attributes:
        max_running: maximum number of running jobs, over all workers.
        rate_limit: maximum number of starts per ``rate_period``.
        rate_period: one second by default.
        rate_burst: maximum number of starts at once; 1 by default.
        key_max_running: maximum number of running jobs per concurrency key.
        key_rate_limit: maximum number of starts per key and ``key_rate_period``.
        key_rate_period: one second by default.
        key_rate_burst: maximum number of starts at once per key; 1 by default.
        ordered: whether jobs of a key run one at a time, in order; later jobs wait for a
            retried one.
    """

    max_running: int | None
    rate_limit: int | None
    rate_period: Span | None
    rate_burst: int | None
    key_max_running: int | None
    key_rate_limit: int | None
    key_rate_period: Span | None
    key_rate_burst: int | None
    ordered: bool | None


class CommonOptions(LimitOptions, total=False):
    """Options of a kind or its handler; None means the default.

    A duration is a timedelta, seconds, or the text of an interval.

    Attributes:
        queue: queue of its jobs.
        priority: higher values run first.
        max_attempts: maximum number of failed attempts.
        timeout: timeout of each attempt.
        lease: how long a claim is valid without a heartbeat, 1 s to 1 day.
        retry_strategy: ``fixed``, ``linear``, ``exponential`` or ``decorrelated``.
        retry_initial_delay: delay before the first retry.
        retry_max_delay: maximum delay.
        retry_jitter: random share of the delay, 0 to 1.
        dedup: ``skip``, ``enqueue``, ``replace``, ``debounce`` or ``throttle``.
        dedup_key: path of the dedup key in the payload; a text is a path of one name, ``[]`` is the
            whole payload, and a list of paths of the same length is a key of several members.
        dedup_period: how long debounce waits for another call, or throttle creates no other
            job; 10 seconds by default.
        dedup_max_wait: maximum total delay by debounce.
        reuse_key_after_failure: whether the idempotency key of a failed job can be used again.
        concurrency_key: path of the concurrency key in the payload; a text is a path of one
            name.
        cost: path of the cost, a number, in the payload; a text is a path of one name. A job
            without it costs 1.
        keep_succeeded: how long succeeded jobs are kept, at most the global retention; 0 keeps
            nothing.
        keep_dead: how long dead jobs are kept; at least 1 hour.
        keep_cancelled: how long cancelled jobs are kept; at least 1 hour.
        dead_letter_kind: kind of the job that is enqueued when a job dies, with the dead job's id,
            payload and error in its payload.
    """

    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: Span | None
    lease: Span | None
    retry_strategy: RetryStrategy | None
    retry_initial_delay: Span | None
    retry_max_delay: Span | None
    retry_jitter: float | None
    dedup: Dedup | None
    dedup_key: str | Sequence[str] | Sequence[Sequence[str]] | None
    dedup_period: Span | None
    dedup_max_wait: Span | None
    reuse_key_after_failure: bool | None
    concurrency_key: str | Sequence[str] | None
    cost: str | Sequence[str] | None
    keep_succeeded: Span | None
    keep_dead: Span | None
    keep_cancelled: Span | None
    dead_letter_kind: str | None


class KindOptions(CommonOptions, total=False):
    """Options of `put_kind`.

    Attributes:
        retry_preset: ``standard``, ``decorrelated``, ``powers_of_two`` or ``delivery``.
        payload_schema: a JSON Schema, checked at enqueue.
        run: a database function for `work`, such as ``analytics.refresh_sales``, with a jsonb
            argument, or jsonb[] for many jobs at a time.
        retry_on: errors of ``run`` after which a job is retried: SQLSTATEs, or classes of two
            characters; ``08``, ``40``, ``53``, ``55`` and ``57`` by default.
        on_dead: ``continue``, or ``hold`` (a dead job of an ordered kind holds its key).
        version: increasing version of the declaring program. If this or a newer version has
            declared the kind, nothing changes. None always replaces the declaration.
    """

    retry_preset: str | None
    payload_schema: Mapping[str, Json] | None
    run: str | None
    retry_on: Sequence[str] | None
    on_dead: OnDead | None
    version: int | None


class QueueOptions(LimitOptions, total=False):
    """Options of `put_queue`; None means the default.

    Attributes:
        priority: priority of its jobs; higher values run first.
        max_attempts: maximum number of failed attempts.
        timeout: timeout of each attempt.
        lease: how long a claim is valid without a heartbeat.
        retry_preset: ``standard``, ``decorrelated``, ``powers_of_two`` or ``delivery``.
        max_depth: maximum number of live jobs; above it, enqueueing is refused.
        on_dead: ``continue``, or ``hold`` (a dead job of an ordered queue holds its key).
    """

    priority: int | None
    max_attempts: int | None
    timeout: Span | None
    lease: Span | None
    retry_preset: str | None
    max_depth: int | None
    on_dead: OnDead | None


class EnqueueOptions(TypedDict, total=False):
    """Options of `enqueue`.

    Attributes:
        queue: queue of the job; the kind's queue by default.
        run_at: earliest start; now by default.
        priority: higher values run first, from -32768 to 32767.
        max_attempts: maximum number of failed attempts.
        timeout: timeout of each attempt.
        idempotency_key: if a job of the kind has this key, finished or not, it is returned.
        dedup_key: key to find duplicates among live jobs of the kind; see ``dedup``.
        dedup: what to do with a duplicate: ``skip`` (return the live job), ``enqueue`` (add
            the job), ``replace`` (cancel the waiting one), ``debounce`` (give it this payload
            and delay it) or ``throttle`` (one job per ``dedup_period`` of the kind).
        concurrency_key: customer or account of the job, at most 1024 bytes; the kind's path by
            default. Keys of a queue take turns and have limits.
        expires_at: no attempt starts after this time; the job is then dead with EXPIRED. Must be
            after run_at.
        metadata: a JSON object, available to handlers.
        after: jobs to wait for, live or ended; until then the job is ``blocked``.
        after_failure: what to do if one of them is dead or cancelled: ``cancel`` (the default),
            ``wait`` (until it is redriven and succeeds) or ``run`` (when all have ended).
        batch_id: batch of the job.
        cost: amount taken from rates and budgets, from 0 to 10^12; by default from the kind's path
            in the payload, else 1.
    """

    queue: str | None
    run_at: datetime | None
    priority: int | None
    max_attempts: int | None
    timeout: Span | None
    idempotency_key: str | None
    dedup_key: str | None
    dedup: Dedup | None
    concurrency_key: str | None
    expires_at: datetime | None
    metadata: Mapping[str, Json] | None
    after: Iterable[UUID | str] | None
    after_failure: AfterFailure | None
    batch_id: UUID | str | None
    cost: float | Decimal | None


class ScheduleOptions(TypedDict, total=False):
    """Options of `create_schedule`.

    Attributes:
        time_zone: IANA name of the time zone of ``cron``; UTC by default.
        payload: payload of the jobs.
        queue: queue of the jobs; the kind's queue by default.
        from_completion: measure ``every`` from the end of the previous job.
        gap: for local times that do not exist: ``run``, ``skip`` or ``auto``.
        fold: for local times that occur twice: ``once``, ``both`` or ``auto``.
        missed: which missed slots fire: ``all`` (default for cron), ``latest`` (default for
            intervals) or ``none``.
        catch_up: maximum age of a missed slot.
        dedup: what to do while a job with the same key is live: ``enqueue`` (default for cron),
            ``skip`` (default for intervals) or ``replace``.
        dedup_key: dedup key of the jobs; the schedule's name by default.
        jitter: maximum random delay of each job after its slot.
        starts_at: no slot before this time.
        ends_at: no slot at or after this time.
        priority: priority of the jobs.
        max_attempts: maximum number of failed attempts of each job.
        timeout: timeout of each attempt.
        metadata: metadata of the jobs.
        concurrency_key: customer or account of the jobs; the kind's path by default.
        graph: jobs to run after each job: a `Graph`, or the document of ``enqueue_graph``.
    """

    time_zone: str | None
    payload: Json
    queue: str | None
    from_completion: bool | None
    gap: Gap | None
    fold: Fold | None
    missed: Missed | None
    catch_up: Span | None
    dedup: ScheduleDedup | None
    dedup_key: str | None
    jitter: Span | None
    starts_at: datetime | None
    ends_at: datetime | None
    priority: int | None
    max_attempts: int | None
    timeout: Span | None
    metadata: Mapping[str, Json] | None
    concurrency_key: str | None
    graph: Graph | Mapping[str, Json] | None


SPANS: Final = frozenset(
    name
    for options in (EnqueueOptions, KindOptions, QueueOptions, ScheduleOptions)
    for name, kind in options.__annotations__.items()
    if "Span" in str(kind)
)
"""The options that are durations."""


def in_time(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with durations in seconds converted to timedeltas."""
    return {n: as_timedelta(v) if n in SPANS else v for n, v in options.items()}
