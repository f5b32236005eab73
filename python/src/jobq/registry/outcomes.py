"""Exceptions that a handler raises to choose the outcome of its job.

After any other exception, the job is retried until its attempts are spent. If an outcome has an
invalid duration or time, the job is dead (`OutcomeInvalid`).
"""
# ruff: noqa: N818 - not all outcomes are errors

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from jobq.errors import InvalidArgument, OutcomeInvalid
from jobq.models import Json

__all__ = ["OUTCOMES", "Cancelled", "Permanent", "RateLimited", "Retry", "Snooze", "Unable"]


class Retry(Exception):
    """Retry the job; this attempt counts as failed.

    Args:
        message: the job's last error.
        in_: how long to wait, a timedelta or seconds; None is the kind's backoff.
        code: the error code.
        details: more information for programs, stored with the attempt.
        holds_key: whether the other jobs of its concurrency key wait as long; without a key,
            those of its kind in its queue.
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
        self.in_ = None if in_ is None else span_of("in_", in_)
        self.code = code
        self.details = details
        self.holds_key = holds_key


class RateLimited(Exception):
    """A called service asked to wait. The attempt is not counted, and other jobs wait too.

    These are the jobs of the same concurrency key; without a key, those of the kind in the queue.

    Args:
        retry_after: how long, a timedelta or seconds.
        message: shown by `explain`.
    """

    def __init__(
        self, retry_after: timedelta | float, message: str = "asked to wait by whom it calls"
    ) -> None:
        super().__init__(message)
        self.retry_after = span_of("retry_after", retry_after)
        self.message = message
        if self.retry_after < timedelta(0):
            raise OutcomeInvalid("retry_after cannot be negative", detail=str(retry_after))


class Permanent(Exception):
    """Do not retry: the job is dead.

    Args:
        code: an error code for programs, such as ``RECIPIENT_REFUSED``.
        message: a text for people.
        details: more information for programs, stored with the attempt.
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
    """Run the job again later, without counting this attempt.

    Args:
        until: a time with a time zone; or a duration from now, as a timedelta or in seconds.
    """

    def __init__(self, until: datetime | timedelta | float) -> None:
        super().__init__(until)
        if not isinstance(until, datetime):
            until = span_of("until", until)
            if until < timedelta(0):
                raise OutcomeInvalid("until cannot be negative", detail=str(until))
        elif until.tzinfo is None:
            raise OutcomeInvalid("the moment to snooze until needs a time zone")
        self.until = until


class Unable(Exception):
    """This worker cannot run the job, but another may. The attempt is not counted.

    Use it if the worker lacks something, such as a key or a driver. The worker reports it in its
    log, its metrics and its health.

    Args:
        code: an error code for programs, such as ``NO_DRIVER``.
        message: what is missing, for people.
        in_: how long the job waits, a timedelta or seconds.
    """

    def __init__(self, code: str, message: str, *, in_: timedelta | float = 30.0) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.in_ = span_of("in_", in_)

    def __str__(self) -> str:
        """Return the message."""
        return self.message


class Cancelled(Exception):
    """The handler stopped because the job is to be cancelled; see `JobContext.check_cancelled`."""


def span_of(
    name: str, given: timedelta | float, refused: type[InvalidArgument] = OutcomeInvalid
) -> timedelta:
    """Return a duration that is given as a timedelta or in seconds.

    Raises:
        InvalidArgument: of the class ``refused``: it is neither, or too long.
    """
    if isinstance(given, timedelta):
        return given
    with suppress(OverflowError, ValueError, TypeError):
        return timedelta(seconds=given)
    raise refused(f"{name} must be a timedelta, or a number of seconds", detail=f"{given!r:.80}")


OUTCOMES: Final = (Cancelled, Permanent, RateLimited, Retry, Snooze, Unable)
