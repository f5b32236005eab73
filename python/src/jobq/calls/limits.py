"""Limits: how many jobs of single concurrency keys run at once and start, and holds."""

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
    """Say what holds for one key in a queue, in place of what the queue says for each.

    Args:
        queue: its name.
        concurrency_key: the key.
        max_running: how many of its jobs run at once; None means what the queue says.
        rate_limit: how many of them start in each ``rate_period``; None as well.
        rate_period: a second by default.
        rate_burst: how many of them may start together; 1 by default.

    Raises:
        InvalidArgument: a value is out of range, none is given, or the key has not 1 to 1024
            bytes.
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
    """Say how much jobs may cost in each period of the calendar, or take the budget away.

    Args:
        scope_type: ``queue`` or ``kind``.
        scope: its name; a kind must be declared.
        amount: what may be spent in a period; None for no budget.
        period: ``day``, ``week`` (from Monday) or ``month``.
        time_zone: in which a period begins at midnight.
        concurrency_key: the budget is that of one key of the queue, in place of that of each.
        each_key: whether the budget is that of each key.

    Raises:
        InvalidArgument: a value makes no sense.
        NotFound: the kind is not declared.
        InvalidSchedule: there is no such time zone.
    """
    given = {**locals(), "amount": None if amount is None else as_text(amount)}
    return Call("put_budget", given, nothing)


def list_budgets(
    scope_type: str | None = None, scope: str | None = None, *, max_keys: int = 100
) -> Call[list[Budget]]:
    """Return the budgets, and what is spent of each.

    Args:
        scope_type: ``queue`` or ``kind``; None means both.
        scope: of this queue or kind alone.
        max_keys: of a budget of each key, at most so many keys, those that have spent most.
    """
    return Call("list_budgets", locals(), list, record(Budget))


def hold_key(
    queue: str, concurrency_key: str, until: datetime | timedelta, reason: str | None = None
) -> Call[None]:
    """Hold one key until a time; what runs goes on.

    Args:
        queue: its name.
        concurrency_key: the key.
        until: when it may start jobs again; a timedelta counts from now by the database's clock.
        reason: why, for explain.

    Raises:
        InvalidArgument: the key has not 1 to 1024 bytes.
    """
    return Call(
        "hold_key", locals(), nothing, from_now="until" if isinstance(until, timedelta) else None
    )


def release_key(queue: str, concurrency_key: str) -> Call[bool]:
    """Release a held key; return whether it was held."""
    return Call("release_key", locals(), scalar)


def list_limits(queue: str | None = None) -> Call[list[Limit]]:
    """Return the limits of single keys, of one queue or of all."""
    return Call("list_limits", locals(), list, record(Limit))


def delete_limit(queue: str, concurrency_key: str) -> Call[None]:
    """Have one key follow again what its queue says for each.

    Raises:
        NotFound: the key has no limit of its own.
    """
    return Call("delete_limit", locals(), nothing)
