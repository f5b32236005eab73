"""The options of jobs, kinds, queues and schedules, made of the functions that take them.

`Client` takes them as keyword arguments, and the command line has an option for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jobq.calls.arguments import as_timedelta
from jobq.calls.generated import (
    CommonOptions,
    EnqueueOptions,
    KindOptions,
    LimitOptions,
    QueueOptions,
    ScheduleOptions,
)

__all__ = [
    "SPANS",
    "CommonOptions",
    "EnqueueOptions",
    "KindOptions",
    "LimitOptions",
    "QueueOptions",
    "ScheduleOptions",
    "in_time",
]

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
