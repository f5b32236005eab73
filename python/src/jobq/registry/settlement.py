"""From what a handler did to how its job is settled: the same for workers and for tests.

Everything here is pure, and total: whatever a handler returns or raises has a settlement
that the database takes.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from jobq.calls.arguments import as_json
from jobq.errors import DatabaseUnavailable, EventTimeout, JobqError, OutcomeInvalid, StepInvalid
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "DEFAULT_RULES",
    "FIRST_MOMENT",
    "LAST_MOMENT",
    "NOTHING",
    "NO_RESULT",
    "CancelConfirmed",
    "Failed",
    "Gone",
    "Hold",
    "LostError",
    "ProcessDiedError",
    "Raised",
    "Released",
    "RetryRules",
    "Returned",
    "Settlement",
    "Succeeded",
    "Suspended",
    "moment_of",
    "outcomes_of",
    "settlement_of",
]

logger = logging.getLogger("jobq.worker")

# Characters: the database cuts there.
MAX_CODE: Final = 128
# The database refuses to wait longer for another attempt.
LONGEST_RETRY: Final = timedelta(days=365)
# The database takes a job's times from here to there: what Python and PostgreSQL can both tell.
LAST_MOMENT: Final = datetime(9999, 12, 30, tzinfo=UTC)
FIRST_MOMENT: Final = datetime(1, 1, 2, tzinfo=UTC)


# ---- what a handler did


@dataclass(frozen=True, slots=True)
class Returned:
    """It returned this."""

    value: object


NOTHING: Final = Returned(None)


@dataclass(frozen=True, slots=True)
class Raised:
    """It raised this."""

    error: BaseException


class LostError(Exception):
    """The job was no longer this attempt's to complete."""


class Suspended(BaseException):
    """The job waits: the database has it back, and the handler must end."""


class ProcessDiedError(Exception):
    """The process of the handler ended before the handler did."""


# ---- how its job is settled


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The handler returned; ``result`` is JSON text, or None for null."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class Hold:
    """All jobs of the job's concurrency key wait; without a key, of its kind in its queue."""

    duration: timedelta
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed.

    Attributes:
        details: a JSON object, or None.
        traceback: of what the handler raised; empty for an outcome that it chose.
    """

    code: str
    error: str
    is_retryable: bool = True
    retry_in: timedelta | None = None
    details: msgspec.Raw | None = None
    hold: Hold | None = None
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """The job goes back unfinished, the attempt not counted.

    Attributes:
        until: not before this moment, or this long from now; None is at once.
        reason: what the worker lacked, as a code and as text; None where nothing was amiss.
        hold: for how long the jobs of its key wait with it.
    """

    until: datetime | timedelta | None = None
    reason: tuple[str, str] | None = None
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class CancelConfirmed:
    """The handler saw the request to cancel and stopped."""


@dataclass(frozen=True, slots=True)
class Gone:
    """There is nothing left to settle.

    Attributes:
        outcome: ``succeeded`` when the handler's own transaction has completed the job,
            ``released`` when it waits for something, or ``lost``.
    """

    outcome: str


Settlement: TypeAlias = Succeeded | Failed | Released | CancelConfirmed | Gone

NO_RESULT: Final = Succeeded(None)


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Which exceptions of a handler are retried, and when.

    Attributes:
        retry_on: only these are retried; None stands for all.
        discard_on: these are not.
        delay: returns how long to wait, as a timedelta or in seconds, or None for the kind's
            backoff; called with the exception and the attempt.
    """

    retry_on: tuple[type[BaseException], ...] | None = None
    discard_on: tuple[type[BaseException], ...] = ()
    delay: Callable[[Any, int], timedelta | float | None] | None = None

    def apply(self, failed: Failed, error: BaseException, attempt: int) -> Failed:
        """Return the failure of an attempt that has raised this, by these rules.

        What no handler chooses to raise, such as CancelledError, is retried unless it is named.
        """
        is_named = self.retry_on is not None and isinstance(error, self.retry_on)
        is_other = self.retry_on is not None and isinstance(error, Exception) and not is_named
        if isinstance(error, self.discard_on) or is_other:
            return replace(failed, is_retryable=False)
        wait = self.delay(error, attempt) if self.delay is not None else None
        if wait is None:
            return failed
        wait = wait if isinstance(wait, timedelta) else timedelta(seconds=wait)
        return replace(failed, retry_in=min(max(wait, timedelta(0)), LONGEST_RETRY))


DEFAULT_RULES: Final = RetryRules()


def settlement_of(
    did: Returned | Raised,
    *,
    is_cancel_requested: bool = False,
    rules: RetryRules = DEFAULT_RULES,
    attempt: int = 1,
) -> Settlement:
    """Return how a job is settled.

    Args:
        did: what its handler did.
        is_cancel_requested: whether somebody had asked to cancel the job.
        rules: of the handler.
        attempt: of the job.
    """
    try:
        if isinstance(did, Returned):
            return NO_RESULT if did.value is None else Succeeded(_as_json(did.value))
        settlement = _of_error(did.error, is_cancel_requested=is_cancel_requested)
        if isinstance(settlement, Failed) and _is_for_rules(did.error):
            settlement = rules.apply(settlement, did.error, attempt)
    except ResultError as error:
        return Failed("RESULT_INVALID", error_text(str(error)), is_retryable=False)
    except BaseException as error:
        return Failed("ERROR", error_text(error))
    return settlement


def outcomes_of(returned: object, jobs: int) -> list[Returned | Raised]:
    """Return what came of each job of a batch.

    Raises:
        TypeError: the handler has not said it.
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


def moment_of(until: datetime | timedelta, now: datetime) -> datetime:
    """Return the moment that is meant, within what the database takes."""
    try:
        moment = now + until if isinstance(until, timedelta) else until.astimezone(UTC)
    except OverflowError:
        is_past = until < timedelta(0) if isinstance(until, timedelta) else until.year == 1
        return FIRST_MOMENT if is_past else LAST_MOMENT
    return min(max(moment, FIRST_MOMENT), LAST_MOMENT)


def _is_for_rules(error: BaseException) -> bool:
    """Whether it is an exception of the handler's, neither an outcome nor the worker's trouble."""
    chosen = (*OUTCOMES, OutcomeInvalid, StepInvalid, EventTimeout)
    return not isinstance(error, (*chosen, ProcessDiedError, DatabaseUnavailable))


def _of_error(error: BaseException, *, is_cancel_requested: bool) -> Settlement:  # noqa: C901, PLR0911, PLR0912 - a table
    match error:
        case Retry():
            wait = None if error.in_ is None else min(max(error.in_, timedelta(0)), LONGEST_RETRY)
            hold = Hold(wait, error_text(error.message)) if error.holds_key and wait else None
            return Failed(
                _code(error.code),
                error_text(error.message),
                True,
                wait,
                _details(error.details),
                hold,
            )
        case RateLimited():
            wait = min(max(error.retry_after, timedelta(0)), LONGEST_RETRY)
            return Released(hold=Hold(wait, error_text(error.message)))
        case Permanent():
            return Failed(
                _code(error.code), error_text(error.message), False, None, _details(error.details)
            )
        case Snooze():
            return Released(error.until)
        case Unable():
            return Released(error.in_, (_code(error.code), error_text(error.message)))
        case Cancelled() if is_cancel_requested:
            return CancelConfirmed()
        case Cancelled():
            return Failed("CANCELLED", "the handler cancelled itself", is_retryable=False)
        case ProcessDiedError():
            return Failed("PROCESS_DIED", error_text(str(error)))
        case LostError():
            return Gone("lost")
        case Suspended():
            return Gone("released")
        case OutcomeInvalid() | StepInvalid() | EventTimeout():
            return Failed(_code(error.code), error_text(error), is_retryable=False)
        case JobqError() if not isinstance(error, DatabaseUnavailable):
            return _raised(_code(error.code), error)
        case _:
            return _raised("ERROR", error)


def _raised(code: str, error: BaseException) -> Failed:
    """Return the failure of an attempt that has raised this; its traceback is kept with it."""
    trace = traceback_text(error)
    details = _details({"traceback": trace}) if trace else None
    return Failed(code, error_text(error), details=details, traceback=trace)


class ResultError(ValueError):
    """What a handler returned cannot be stored."""


def _as_json(value: object) -> bytes:
    """Return a result as JSON text.

    Raises:
        ResultError: it is not JSON, or the database could not store it.
    """
    try:
        text = as_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise ResultError(f"the handler's result is not JSON: {error}") from error
    if b"\\u0000" in text:
        raise ResultError("the handler's result contains a NUL character")
    return text


def _code(code: object) -> str:
    """Return an error's code as the database takes it."""
    return str(code).replace("\0", "\ufffd").encode("utf-8", "replace").decode()[:MAX_CODE]


def _details(given: Mapping[str, Any] | None) -> msgspec.Raw | None:
    """Return what an outcome says besides as JSON text; what cannot be stored is left out."""
    if given is None:
        return None
    try:
        return msgspec.Raw(_as_json(dict(given)))
    except Exception as error:
        logger.warning("the details of a failure are left out: %s", error_text(error))
        return None
