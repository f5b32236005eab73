"""Exceptions, one class for each SQLSTATE that jobq raises.

They keep the texts of the database: ``code`` is the symbolic code (``LEASE_LOST``), ``detail``
the values, ``hint`` the remedy, and ``__cause__`` the driver's exception.
"""
# ruff: noqa: N818 - named as the codes

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import psycopg

from jobq.models import Job

_KINDS: Final[dict[str, type[JobqError]]] = {}


class JobqError(Exception):
    """An error of jobq.

    Attributes:
        message: a fixed text.
        code: the symbolic code, such as ``JOB_NOT_FOUND``; see ``jobq.error``.
        sqlstate: the SQLSTATE; empty if the error is not from the database.
        detail: the values; may be empty.
        hint: the remedy; may be empty.
    """

    code: str = "ERROR"

    def __init_subclass__(cls, code: str = "", sqlstates: str = "") -> None:
        """Register the code of an error, and its SQLSTATEs or classes of them."""
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
        """Support pickle, to pass between processes."""
        return _restored, (type(self), self.args, vars(self))

    def __str__(self) -> str:
        """Return message and detail on one line."""
        return f"{self.message}: {self.detail}" if self.detail else self.message


def _restored(kind: type[JobqError], given: tuple[Any, ...], state: dict[str, Any]) -> JobqError:
    error = kind.__new__(kind, *given)
    vars(error).update(state)
    return error


class JobNotFound(JobqError, code="JOB_NOT_FOUND", sqlstates="JQ001"):
    """JQ001: the job does not exist, or its retention has ended."""


class IllegalState(JobqError, code="ILLEGAL_STATE", sqlstates="JQ002 23503"):
    """JQ002, 23503: the job's current state does not allow this change."""


class LeaseLost(JobqError, code="LEASE_LOST", sqlstates="JQ003"):
    """JQ003: this attempt has lost its lease."""


class Conflict(JobqError, code="CONFLICT", sqlstates="JQ004"):
    """JQ004: the key or name is already in use."""


class PayloadTooLarge(JobqError, code="PAYLOAD_TOO_LARGE", sqlstates="JQ005"):
    """JQ005: a payload, result or progress has too many bytes."""


class PayloadInvalid(JobqError, code="PAYLOAD_INVALID", sqlstates="JQ006"):
    """JQ006: a payload does not match its kind, or a schema is invalid."""


class NotFound(JobqError, code="NOT_FOUND", sqlstates="JQ007"):
    """JQ007: the queue, kind or other definition does not exist."""


class HasDependents(JobqError, code="HAS_DEPENDENTS", sqlstates="JQ008"):
    """JQ008: other objects depend on the one to delete."""


class InvalidSchedule(JobqError, code="INVALID_CRON", sqlstates="JQ009"):
    """JQ009: a cron expression or time zone is invalid."""


class LimitReached(JobqError, code="LIMIT_REACHED", sqlstates="JQ011"):
    """JQ011: the running jobs have reached the limit of their key."""


class QueueFull(JobqError, code="QUEUE_FULL", sqlstates="JQ010"):
    """JQ010: the queue is at its ``max_depth``."""


class InvalidArgument(JobqError, code="INVALID_ARGUMENT", sqlstates="22"):
    """Class 22: an argument is missing or has an invalid value."""


class StepInvalid(InvalidArgument, code="STEP_INVALID"):
    """A step's name, its result, or the timeout of a wait is invalid. The job is dead."""


class OutcomeInvalid(InvalidArgument, code="OUTCOME_INVALID"):
    """A handler raised an invalid outcome, such as one with a bad duration. The job is dead."""


class EventTimeout(JobqError, code="EVENT_TIMEOUT"):
    """An event did not come in time; every later attempt gets this error too."""


class NotPermitted(JobqError, code="NOT_PERMITTED", sqlstates="42501 28000 28P01"):
    """42501, 28000, 28P01: the database user lacks the privilege, or cannot log in."""


class NotDeployed(JobqError, code="NOT_DEPLOYED", sqlstates="42883 3D000 3F000"):
    """42883, 3F000, 3D000: the database, or the schema jobq in it, does not exist."""


class JobFailed(JobqError):
    """The awaited job is dead; ``code`` is that of its last error.

    Attributes:
        job: the job.
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
    """The awaited job was cancelled.

    Attributes:
        job: the job.
    """

    def __init__(self, job: Job) -> None:
        reason = f": {job.cancel_reason}" if job.cancel_reason else ""
        super().__init__("the job was cancelled", detail=f"job_id {job.job_id}{reason}")
        self.job = job


class ChildFailed(JobqError, code="CHILD_FAILED"):
    """A job that the handler has called is dead, cancelled or deleted.

    If it is not caught, the calling job is dead. A redrive waits for the called job again.

    Attributes:
        job_id: the called job.
        state: ``dead``, ``cancelled`` or ``gone``.
        error_code: of its last error; None without one.
    """

    def __init__(self, kind: str, end: Mapping[str, Any]) -> None:
        said = ": ".join(str(end[name]) for name in ("error_code", "error") if end.get(name))
        super().__init__(
            "a called job has not succeeded",
            detail=f"job_id {end['job_id']}, {kind}, is {end['state']}" + (said and f": {said}"),
            hint="redrive it, then the calling job: jobq redrive",
        )
        self.job_id = UUID(end["job_id"])
        self.state = str(end["state"])
        self.error_code: str | None = end.get("error_code")


class DatabaseUnavailable(
    JobqError,
    code="DATABASE_UNAVAILABLE",
    sqlstates="JQ012 25006 25P03 25P04 08 40 53 55 57 58",
):
    """The database does not answer, is starting, stopping, overloaded or read-only.

    It is not known whether a write took effect: repeat it with an idempotency key.
    """


_HINTS: Final[dict[type[JobqError] | str, str]] = {
    "25006": "name the primary, or set default_transaction_read_only = off where it is on",
    "42501": "the login needs the role of jobq that may do this, such as jobq_operator",
    "42883": "see that each argument has its type, or install this schema with: jobq deploy",
    "3F000": "install the schema with: jobq deploy",
    NotDeployed: "create the database, and install the schema with: jobq deploy",
    DatabaseUnavailable: "check that the server runs and that its address is right",
}


def of_database(error: psycopg.Error, given: Iterable[object] = ()) -> JobqError:
    """Convert an exception of psycopg or its pool, raised by a call with the given arguments.

    For an integer out of range, PostgreSQL finds no function.
    """
    state, said = error.sqlstate or "", error.diag
    kind = _KINDS.get(state) or _KINDS.get(state[:2])
    if kind is NotDeployed and any(_is_huge(value) for value in given):
        kind = InvalidArgument
    if kind is None and not state:
        is_transport = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        kind = _of_transport(error) if is_transport else InvalidArgument
    name = said.constraint_name or ""  # a symbolic code; names of tables' constraints are lowercase
    hint = said.message_hint or _hint_of_pooler(error)
    return (kind or JobqError)(
        said.message_primary or (str(error).splitlines() or [type(error).__name__])[0],
        code=name if name.isupper() else None,
        sqlstate=state,
        detail=said.message_detail or "",
        hint=hint or _HINTS.get(state) or _HINTS.get(kind or JobqError, ""),
    )


@contextmanager
def translate(given: Iterable[object] = ()) -> Iterator[None]:
    """Raise exceptions of jobq instead of psycopg's, which become their ``__cause__``.

    ``given`` are the arguments of the call.
    """
    try:
        yield
    except psycopg.Error as error:
        raise of_database(error, given) from error
    except UnicodeEncodeError as error:
        raise InvalidArgument("a text is not Unicode", detail=str(error)) from error


def _is_huge(value: object) -> bool:
    """Whether an integer, or one in a list, is out of the range of PostgreSQL's integer."""
    if isinstance(value, list | tuple):
        return any(_is_huge(element) for element in value)
    return isinstance(value, int) and not -(2**31) <= value < 2**31


def _hint_of_pooler(error: psycopg.Error) -> str:
    """Return the hint for a pooler that refuses the settings of a session."""
    if "unsupported startup parameter" not in str(error):
        return ""
    return (
        "a pooler such as PgBouncer is in front of the database: give a direct URL, or pass"
        " is_pooled=True (workers: --pooled); to be woken, give a direct URL as listen_database too"
    )


def _of_transport(error: psycopg.Error) -> type[JobqError]:
    """Distinguish a refused login, for which libpq has no SQLSTATE, from a lost server.

    Only the server's text says that a password is wrong, or that a database does not exist. If
    it is not English, it counts as a lost server: a worker keeps trying and logs the text.
    """
    if error.pgconn is not None and error.pgconn.needs_password:
        return NotPermitted
    text = str(error)
    if "password" in text or "authentication" in text:
        return NotPermitted
    if 'database "' in text and "does not exist" in text:
        return NotDeployed
    return DatabaseUnavailable
