"""What goes wrong, as exceptions: one class for each SQLSTATE that jobq raises.

The database's own words are kept: ``code`` is its symbolic code (``LEASE_LOST``),
``detail`` the values, ``hint`` the remedy, and ``__cause__`` the driver's exception.
"""
# ruff: noqa: N818 - named for what happened, as the codes are

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import psycopg

from jobq.project import read_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobq.models import Job

__all__ = [
    "Conflict",
    "DatabaseUnavailable",
    "EventTimeout",
    "HasDependents",
    "IllegalState",
    "InvalidArgument",
    "InvalidSchedule",
    "JobCancelled",
    "JobFailed",
    "JobNotFound",
    "JobqError",
    "LeaseLost",
    "LimitReached",
    "NotDeployed",
    "NotFound",
    "NotPermitted",
    "OutcomeInvalid",
    "PayloadInvalid",
    "PayloadTooLarge",
    "QueueFull",
    "StepInvalid",
    "of_database",
    "translate",
]

# What the database raises, by the symbolic code that it names in the error's constraint.
ERROR_TABLE: Final = read_errors()
_KINDS: Final[dict[str, type[JobqError]]] = {}


class JobqError(Exception):
    """Something that jobq refused, or could not do.

    Attributes:
        message: what happened, in fixed words.
        code: the symbolic code, such as ``JOB_NOT_FOUND``; see ``jobq.error``.
        sqlstate: the SQLSTATE; empty when the error is not the database's.
        detail: the values that it is about; may be empty.
        hint: what to do about it; may be empty.
    """

    code: str = "ERROR"

    def __init_subclass__(cls, code: str = "", sqlstates: str = "") -> None:
        """Name the code of a kind of error, and the SQLSTATEs, or classes of them, that mean it."""
        cls.code = code or cls.code
        _KINDS.update(dict.fromkeys(sqlstates.split(), cls))

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        sqlstate: str = "",
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail)
        self.message = message
        self.code = code or type(self).code
        self.sqlstate = sqlstate
        self.detail = detail
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it pass between processes."""
        return _restored, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        """Return message and detail on one line."""
        return f"{self.message}: {self.detail}" if self.detail else self.message


def _restored(kind: type[JobqError], given: tuple[Any, ...], state: dict[str, Any]) -> JobqError:
    """Make an error that another process has sent."""
    error = kind.__new__(kind, *given)
    vars(error).update(state)
    return error


class JobNotFound(JobqError, code="JOB_NOT_FOUND", sqlstates="JQ001"):
    """JQ001: there is no such job, or its retention has ended."""


class IllegalState(JobqError, code="ILLEGAL_STATE", sqlstates="JQ002 23503"):
    """JQ002, 23503: the job's current state does not allow this change."""


class LeaseLost(JobqError, code="LEASE_LOST", sqlstates="JQ003"):
    """JQ003: this attempt has lost its lease."""


class Conflict(JobqError, code="CONFLICT", sqlstates="JQ004"):
    """JQ004: something else holds this key or name."""


class PayloadTooLarge(JobqError, code="PAYLOAD_TOO_LARGE", sqlstates="JQ005"):
    """JQ005: a payload, result or progress has too many bytes."""


class PayloadInvalid(JobqError, code="PAYLOAD_INVALID", sqlstates="JQ006"):
    """JQ006: a payload does not fit its kind, or a schema is not usable."""


class NotFound(JobqError, code="NOT_FOUND", sqlstates="JQ007"):
    """JQ007: there is no such queue, kind or other definition."""


class HasDependents(JobqError, code="HAS_DEPENDENTS", sqlstates="JQ008"):
    """JQ008: something still depends on what was to be deleted."""


class InvalidSchedule(JobqError, code="INVALID_CRON", sqlstates="JQ009"):
    """JQ009: a cron expression or time zone cannot be understood."""


class LimitReached(JobqError, code="LIMIT_REACHED", sqlstates="JQ011"):
    """JQ011: as many jobs run as the limit of their key allows."""


class QueueFull(JobqError, code="QUEUE_FULL", sqlstates="JQ010"):
    """JQ010: the queue has as many jobs as it may have."""


class InvalidArgument(JobqError, code="INVALID_ARGUMENT", sqlstates="22"):
    """Class 22: an argument is missing or has a value that it may not have."""


class StepInvalid(InvalidArgument, code="STEP_INVALID"):
    """A step's name, its result, or the timeout of a wait is not allowed: the job is dead.

    Another attempt would do the same once more.
    """


class OutcomeInvalid(InvalidArgument, code="OUTCOME_INVALID"):
    """A handler asks for what cannot be, such as a wait that is no length of time: the job is dead.

    Another attempt would do the same once more.
    """


class EventTimeout(JobqError, code="EVENT_TIMEOUT"):
    """What a handler waited for did not come in time; every later attempt gets the same."""


class NotPermitted(JobqError, code="NOT_PERMITTED", sqlstates="42501 28000 28P01"):
    """42501, 28000, 28P01: the database user may not do this, or may not log in."""


class NotDeployed(JobqError, code="NOT_DEPLOYED", sqlstates="42883 3D000 3F000"):
    """42883, 3F000, 3D000: the database, or jobq's schema in it, is not there."""


class JobFailed(JobqError):
    """A job that somebody waited for is dead; ``code`` is that of its last error.

    Attributes:
        job: as it ended.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(
            "the job failed",
            code=job.last_error_code or "ERROR",
            detail=f"job_id {job.job_id}: {job.last_error}",
            hint="run it again with: jobq redrive",
        )
        self.job = job


class JobCancelled(JobqError, code="CANCELLED"):
    """A job that somebody waited for was cancelled.

    Attributes:
        job: as it ended.
    """

    def __init__(self, job: Job) -> None:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        super().__init__("the job was cancelled", detail=f"job_id {job.job_id}{reason}")
        self.job = job


class DatabaseUnavailable(
    JobqError,
    code="DATABASE_UNAVAILABLE",
    sqlstates="JQ012 25006 25P03 25P04 08 40 53 55 57 58",
):
    """The database does not answer, is starting, stopping or overloaded, or may only be read.

    Whether the call took effect is not known unless it was a read: repeat it with an
    idempotency key.
    """


_HINTS: Final[dict[type[JobqError] | str, str]] = {
    "25006": "name the primary, or set default_transaction_read_only = off where it is on",
    "42883": "see that each argument has its type, or install this schema with: jobq deploy",
    NotDeployed: "install the schema with: jobq deploy",
    DatabaseUnavailable: "check that the server runs and that its address is right",
}


def of_database(error: psycopg.Error, given: Iterable[object] = ()) -> JobqError:
    """Return the exception of jobq's that a driver's exception means.

    Args:
        error: what psycopg, or its pool, raised.
        given: what the caller has given: for an integer that has no room there is no function.
    """
    state, said = error.sqlstate or "", error.diag
    kind = _KINDS.get(state) or _KINDS.get(state[:2])
    if kind is NotDeployed and any(_is_huge(value) for value in given):
        kind = InvalidArgument
    if kind is None and not state:
        is_transport = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        kind = _of_transport(error) if is_transport else InvalidArgument
    is_own = said.constraint_name in ERROR_TABLE
    hint = said.message_hint or _hint_of_pooler(error)
    return (kind or JobqError)(
        said.message_primary or _first_line(error),
        code=said.constraint_name if is_own else None,
        sqlstate=state,
        detail=said.message_detail or "",
        hint=hint or _HINTS.get(state) or _HINTS.get(kind or JobqError, ""),
    )


@contextmanager
def translate(given: Iterable[object] = ()) -> Iterator[None]:
    """Raise jobq's exceptions in place of psycopg's, which become their ``__cause__``.

    Args:
        given: the arguments of a caller's, as for `of_database`.

    Raises:
        JobqError: of the class that the SQLSTATE names.
    """
    try:
        yield
    except psycopg.Error as error:
        raise of_database(error, given) from error
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text is not Unicode", detail=str(error)) from error


def _is_huge(value: object) -> bool:
    """Tell an integer, or a list with one, that PostgreSQL's integer does not hold."""
    if isinstance(value, list | tuple):
        return any(_is_huge(element) for element in value)
    return isinstance(value, int) and not -(2**31) <= value < 2**31


def _hint_of_pooler(error: psycopg.Error) -> str:
    """Return what to do about a pooler that refuses the settings of a session."""
    if "unsupported startup parameter" not in str(error):
        return ""
    return (
        "a pooler such as PgBouncer is in front of the database: pass is_pooled=True (--pooled),"
        " and listen_database (--listen-database) to be woken"
    )


def _of_transport(error: psycopg.Error) -> type[JobqError]:
    """Tell a refused log-in, for which libpq leaves no SQLSTATE, from a lost server.

    The driver says whether a password is missing. That one is wrong, or that there is no such
    database, stands in the server's words alone: where those are not English, it counts as a lost
    server, so a worker goes on trying, and its log says what the server said.
    """
    if error.pgconn is not None and error.pgconn.needs_password:
        return NotPermitted
    text = str(error)
    if "password" in text or "authentication" in text:
        return NotPermitted
    if 'database "' in text and "does not exist" in text:
        return NotDeployed
    return DatabaseUnavailable


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
