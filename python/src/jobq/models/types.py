"""The types of values of the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

Json: TypeAlias = Any
"""Any JSON value."""

State = Literal["blocked", "queued", "running", "retrying", "succeeded", "dead", "cancelled"]
Privilege = Literal["enqueue", "work"]
ScheduleStatus = Literal["active", "paused", "retired"]
STATES: Final[tuple[State, ...]] = get_args(State)
"""Every state of a job."""

AfterFailure = Literal["cancel", "wait", "run"]
"""What happens to a job if one of its parents is dead or cancelled."""

CancelOutcome = Literal["cancelled", "cancel_requested", "already_finished"]
RedriveOutcome = Literal["queued", "blocked"]


class Ended:
    """What can have ended, and when it did."""

    __slots__ = ()
    finished_at: datetime | None

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.finished_at is not None
