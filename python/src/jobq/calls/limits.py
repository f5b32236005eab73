"""Calls for limits of single concurrency keys, budgets and holds."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from jobq.calls.arguments import as_text
from jobq.calls.call import Call, nothing, scalar
from jobq.models import Budget, Limit, record


def put_limit(
    queue: str,
    concurrency_key: str,
    max_running: int | None = None,
    *,
    rate_limit: int | None = None,
    rate_period: timedelta | str | None = None,
    rate_burst: int | None = None,
) -> Call[None]:
    """Set the limits of one key in a queue, instead of the queue's limits per key.

    Args:
        queue: the queue.
        concurrency_key: the key, 1 to 1024 bytes.
        max_running: maximum number of running jobs; None means the queue's.
        rate_limit: maximum number of starts per ``rate_period``; None means the queue's.
        rate_period: one second by default.
        rate_burst: maximum number of starts at once; 1 by default.

    Raises:
        InvalidArgument: a value is out of range, or no limit is given.
    """
    return Call("put_limit", locals(), nothing)


def put_budget(
    scope_type: str,
    scope: str,
    amount: float | Decimal | None,
    period: str = "month",
    *,
    time_zone: str = "UTC",
    concurrency_key: str | None = None,
    each_key: bool = False,
) -> Call[None]:
    """Set or remove the budget of a queue or kind: the cost of its jobs per calendar period.

    Args:
        scope_type: ``queue`` or ``kind``.
        scope: its name; a kind must be declared.
        amount: maximum cost in a period; None removes the budget.
        period: ``day``, ``week`` (from Monday) or ``month``.
        time_zone: periods begin at midnight in this zone.
        concurrency_key: set the budget of this key only.
        each_key: whether each key has its own budget.

    Raises:
        InvalidSchedule: the time zone does not exist.
    """
    given = {**locals(), "amount": None if amount is None else as_text(amount)}
    return Call("put_budget", given, nothing)


def list_budgets(
    scope_type: str | None = None, scope: str | None = None, *, max_keys: int = 100
) -> Call[list[Budget]]:
    """Return the budgets, and the amount spent of each.

    Args:
        scope_type: ``queue`` or ``kind``; None means both.
        scope: only this queue or kind.
        max_keys: for a budget of each key, maximum number of keys, those that spent most.
    """
    return Call("list_budgets", locals(), list, record(Budget))


def hold_key(
    queue: str, concurrency_key: str, until: datetime | timedelta, reason: str | None = None
) -> Call[None]:
    """Start no more jobs of a key until a time. Running jobs continue.

    Args:
        queue: the queue.
        concurrency_key: the key, 1 to 1024 bytes.
        until: a time, or a duration from now by the database's clock.
        reason: shown by `explain`.
    """
    return Call(
        "hold_key", locals(), nothing, from_now="until" if isinstance(until, timedelta) else None
    )


def release_key(
    queue: str, concurrency_key: str | None = None, kind: str | None = None
) -> Call[bool]:
    """Release a held key, or the jobs without a key of a held kind; return whether it was held.

    Args:
        queue: the queue.
        concurrency_key: the key.
        kind: a kind that `rate_limited` holds in the queue, in place of a key.
    """
    return Call("release_key", locals(), scalar)


def list_limits(queue: str | None = None) -> Call[list[Limit]]:
    """Return the limits of single keys, of one queue or of all."""
    return Call("list_limits", locals(), list, record(Limit))


def delete_limit(queue: str, concurrency_key: str) -> Call[None]:
    """Delete the limits of one key; those of its queue then apply.

    Raises:
        NotFound: the key has no limits of its own.
    """
    return Call("delete_limit", locals(), nothing)
