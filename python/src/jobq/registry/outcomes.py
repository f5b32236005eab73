"""How a handler ends, when not with a result: it raises one of these.

Any other exception counts as transient: the job is tried again after its backoff, until
its attempts are spent. A wait that cannot be makes the job dead instead (`OutcomeInvalid`).
"""
# ruff: noqa: N818 - they are outcomes, and not all of them errors

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from jobq.errors import OutcomeInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobq.models import Json

__all__ = ["OUTCOMES", "Cancelled", "Permanent", "RateLimited", "Retry", "Snooze", "Unable"]


class Retry(Exception):
    """Try again; this attempt counts as failed.

    Args:
        message: why, for the job's last error.
        in_: how long to wait, as a timedelta or in seconds; None is the kind's backoff.
        code: the error code.
        details: what programs may want to know besides, kept with the attempt.
        holds_key: whether the other jobs of its concurrency key wait for as long; without a
            key, those of its kind in its queue.
    """

    def __init__(
        self,
        message: str = "the handler asked to be run again",
        *,
        in_: timedelta | float | None = None,
        code: str = "RETRY",
        details: Mapping[str, Json] | None = None,
        holds_key: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.in_ = None if in_ is None else _length("in_", in_)
        self.code = code
        self.details = details
        self.holds_key = holds_key


class RateLimited(Exception):
    """Whom the handler calls has asked to wait: the attempt is not counted, and all jobs wait.

    Those of the job's concurrency key; without a key, those of its kind in its queue.

    Args:
        retry_after: for how long, as a timedelta or in seconds.
        message: why, for `explain`.
    """

    def __init__(
        self, retry_after: timedelta | float, message: str = "asked to wait by whom it calls"
    ) -> None:
        super().__init__(message)
        self.retry_after = _length("retry_after", retry_after)
        self.message = message
        if self.retry_after < timedelta(0):
            raise OutcomeInvalid("retry_after cannot be negative", detail=str(retry_after))


class Permanent(Exception):
    """Do not try again: the job is dead.

    Args:
        code: a short word that programs can tell, such as ``RECIPIENT_REFUSED``.
        message: why, for people.
        details: what programs may want to know besides, kept with the attempt.
    """

    def __init__(
        self, code: str, message: str = "", *, details: Mapping[str, Json] | None = None
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message or code
        self.details = details

    def __str__(self) -> str:
        """Return the message."""
        return self.message


class Snooze(Exception):
    """Not now: run the job again at another time, without counting this attempt.

    Args:
        until: the moment, with a time zone; or how long from now, as a timedelta or in seconds.
    """

    def __init__(self, until: datetime | timedelta | float) -> None:
        super().__init__(until)
        if not isinstance(until, datetime):
            until = _length("until", until)
            if until < timedelta(0):
                raise OutcomeInvalid("until cannot be negative", detail=str(until))
        elif until.tzinfo is None:
            raise OutcomeInvalid("the moment to snooze until needs a time zone")
        self.until = until


class Unable(Exception):
    """This worker cannot do the job, another could: give it back, the attempt not counted.

    For what is the worker's fault and not the job's: a key, a driver, a route that it lacks.
    The worker says so in its log, its metrics and its health.

    Args:
        code: a short word that programs can tell, such as ``NO_DRIVER``.
        message: what is missing, for people.
        in_: how long to leave the job alone, as a timedelta or in seconds.
    """

    def __init__(self, code: str, message: str, *, in_: timedelta | float = 30.0) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.in_ = _length("in_", in_)

    def __str__(self) -> str:
        """Return the message."""
        return self.message


class Cancelled(Exception):
    """The handler saw that it was asked to stop, and stopped.

    `JobContext.check_cancelled` raises it.
    """


def _length(name: str, given: timedelta | float) -> timedelta:
    """Return a length of time that is given as such or in seconds.

    Raises:
        OutcomeInvalid: it is neither, or more than there can be.
    """
    if isinstance(given, timedelta):
        return given
    with suppress(OverflowError, ValueError, TypeError):
        return timedelta(seconds=given)
    raise OutcomeInvalid(
        f"{name} must be a timedelta, or a number of seconds", detail=f"{given!r:.80}"
    )


OUTCOMES: Final = (Cancelled, Permanent, RateLimited, Retry, Snooze, Unable)
