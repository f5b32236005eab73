"""Decides how a job is settled, from what its handler returned or raised.

These functions are pure and total: everything that a handler can return or raise has a valid
settlement. Workers and `jobq_testing` share them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec

from jobq.calls.arguments import as_json
from jobq.errors import (
    ChildFailed,
    DatabaseUnavailable,
    EventTimeout,
    JobqError,
    OutcomeInvalid,
    StepInvalid,
)
from jobq.redaction import error_text, traceback_text
from jobq.registry.outcomes import (
    OUTCOMES,
    Cancelled,
    Permanent,
    RateLimited,
    Retry,
    Snooze,
    Unable,
)

logger = logging.getLogger("jobq.worker")

# Characters: the database cuts there.
MAX_CODE: Final = 128
# The maximum delay of a retry in the database.
LONGEST_RETRY: Final = timedelta(days=365)
LONGEST_WAIT: Final = timedelta(days=36500)
# The range of times that both Python and PostgreSQL can represent.
LAST_MOMENT: Final = datetime(9999, 12, 30, tzinfo=UTC)
FIRST_MOMENT: Final = datetime(1, 1, 2, tzinfo=UTC)


# ---- what a handler did


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler returned this value."""

    value: object


NOTHING: Final = Returned(None)


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised this exception."""

    error: BaseException


class Suspended(BaseException):
    """The job was released to wait for an event; the handler must end."""


# ---- how its job is settled


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result`` is JSON text, or None for null."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Hold:
    """All jobs of the concurrency key wait; without a key, those of the kind in the queue."""

    duration: timedelta
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed."""

    code: str
    error: str
    is_retryable: bool = True
    retry_in: timedelta | None = None
    details: msgspec.Raw | None = None  # a JSON object
    hold: Hold | None = None
    traceback: str = ""  # empty for an outcome that the handler chose


@dataclass(frozen=True, slots=True)
class Released:
    """The job returns to its queue, without counting the attempt."""

    until: datetime | timedelta | None = None  # earliest start; None is now
    reason: tuple[str, str] | None = None  # what the worker lacks, as a code and a text
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class CancelConfirmed:
    """The handler stopped because the job is to be cancelled."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is nothing left to settle."""

    outcome: str  # succeeded by the handler's own transaction, released to wait, or lost


Settlement: TypeAlias = Succeeded | Failed | Released | CancelConfirmed | Gone

NO_RESULT: Final = Succeeded(None)


class SettledError(Exception):
    """How the job is settled is known already."""

    def __init__(self, settlement: Settlement) -> None:
        super().__init__(settlement.error if isinstance(settlement, Failed) else settlement)
        self.settlement = settlement


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Which exceptions of a handler are retried, and when; see `HandlerOptions`."""

    retry_on: tuple[type[BaseException], ...] | None = None
    discard_on: tuple[type[BaseException], ...] = ()
    delay: Callable[[Any, int], timedelta | float | None] | None = None

    def apply(self, failed: Failed, error: BaseException, attempt: int) -> Failed:
        """Apply these rules to the failure of an attempt.

        Exceptions that are not of class Exception, such as CancelledError, are retried unless they
        are named in ``discard_on``.
        """
        is_named = self.retry_on is not None and isinstance(error, self.retry_on)
        is_other = self.retry_on is not None and isinstance(error, Exception) and not is_named
        if isinstance(error, self.discard_on) or is_other:
            return replace(failed, is_retryable=False)
        try:
            wait = self.delay(error, attempt) if self.delay is not None else None
            if wait is None:
                return failed
            wait = wait if isinstance(wait, timedelta) else timedelta(seconds=wait)
        except BaseException as broken:
            text = error_text(broken)
            logger.error("retry_delay failed: %s", text)  # noqa: TRY400 - as on_dead
            details = _details({"traceback": failed.traceback, "retry_delay": text})
            return replace(failed, details=details)
        return replace(failed, retry_in=min(max(wait, timedelta(0)), LONGEST_RETRY))


DEFAULT_RULES: Final = RetryRules()


def settlement_of(
    did: Returned | Raised,
    *,
    is_cancel_requested: bool = False,
    rules: RetryRules = DEFAULT_RULES,
    attempt: int = 1,
) -> Settlement:
    """Return how a job is settled."""
    try:
        if isinstance(did, Returned):
            return _of_value(did.value)
        settlement = _of_error(did.error, is_cancel_requested=is_cancel_requested)
        if isinstance(settlement, Failed) and _is_for_rules(did.error):
            settlement = rules.apply(settlement, did.error, attempt)
    except BaseException as error:
        return Failed("ERROR", error_text(error))
    return settlement


def outcomes_of(returned: object, jobs: int) -> list[Returned | Raised]:
    """Return what a batch handler returned for each job.

    Raises:
        TypeError: it did not return a result for each job.
    """
    if returned is None:
        return [NOTHING] * jobs
    if not isinstance(returned, list | tuple) or len(returned) != jobs:
        raise TypeError(
            "a batch handler must return None, or a list with one result per job, in order"
        )
    return [
        Raised(value) if isinstance(value, BaseException) else Returned(value) for value in returned
    ]


def _is_for_rules(error: BaseException) -> bool:
    """Whether it is an exception of the handler: neither an outcome nor the worker's fault."""
    chosen = (*OUTCOMES, OutcomeInvalid, StepInvalid, EventTimeout, ChildFailed)
    return not isinstance(error, (*chosen, SettledError, DatabaseUnavailable))


def _of_value(value: object) -> Settlement:
    if value is None:
        return NO_RESULT
    try:
        return Succeeded(as_json(value))
    except (TypeError, ValueError, RecursionError) as error:
        text = error_text(f"the handler's result is not JSON: {error}")
        return Failed("RESULT_INVALID", text, is_retryable=False)


def _of_error(error: BaseException, *, is_cancel_requested: bool) -> Settlement:  # noqa: C901, PLR0911 - a table
    match error:
        case Retry():
            wait = None if error.in_ is None else min(max(error.in_, timedelta(0)), LONGEST_RETRY)
            text, details = error_text(error.message), _details(error.details)
            hold = Hold(wait, text) if error.holds_key and wait else None
            return Failed(_code(error.code), text, True, wait, details, hold)
        case RateLimited():
            wait = min(max(error.retry_after, timedelta(0)), LONGEST_RETRY)
            return Released(hold=Hold(wait, error_text(error.message)))
        case Permanent():
            details = _details(error.details)
            return Failed(_code(error.code), error_text(error.message), False, None, details)
        case Snooze():
            return Released(_bounded(error.until))
        case Unable():
            return Released(_bounded(error.in_), (_code(error.code), error_text(error.message)))
        case Cancelled() if is_cancel_requested:
            return CancelConfirmed()
        case Cancelled():
            return Failed("CANCELLED", "the handler cancelled itself", is_retryable=False)
        case SettledError():
            return error.settlement
        case Suspended():
            return Gone("released")
        case (
            OutcomeInvalid()
            | StepInvalid()
            | EventTimeout()
            | ChildFailed()
            | JobqError(code="SECRET_KEY_MISSING")
        ):
            return Failed(_code(error.code), error_text(error), is_retryable=False)
        case JobqError() if not isinstance(error, DatabaseUnavailable):
            return _raised(_code(error.code), error)
        case _:
            return _raised("ERROR", error)


def _bounded(until: datetime | timedelta) -> datetime | timedelta:
    """Return a time, or a duration from now, within the range of the database."""
    if isinstance(until, timedelta):
        return min(max(until, timedelta(0)), LONGEST_WAIT)
    return min(max(until, FIRST_MOMENT), LAST_MOMENT)


def _raised(code: str, error: BaseException) -> Failed:
    """Return the failure of an attempt that raised this, with its traceback."""
    trace = traceback_text(error)
    details = _details({"traceback": trace}) if trace else None
    return Failed(code, error_text(error), details=details, traceback=trace)


def _code(code: object) -> str:
    """Return an error code as valid text."""
    return str(code).replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:MAX_CODE]


def _details(given: Mapping[str, Any] | None) -> msgspec.Raw | None:
    """Return details as JSON; None if they cannot be stored."""
    if given is None:
        return None
    try:
        return msgspec.Raw(as_json(dict(given)))
    except Exception as error:
        logger.warning("the details of a failure are left out: %s", error_text(error))
        return None
