"""The contract between the parts of the daily pipeline: messages, results, errors."""
# ruff: noqa: TC003 - the schema of the payload is made from the annotations

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import UUID

from msgspec import Meta

from jobq.calls.definitions import list_undeclared_kinds
from jobq_operations.reachability import ready

if TYPE_CHECKING:
    from jobq import Client

JOB_TYPE = "daily_pipeline"
MAX_ATTEMPTS = 5
VISIBILITY_TIMEOUT = 30.0
"""Seconds: the lease."""


class JobStatus(StrEnum):
    """The status of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD_LETTER = "dead_letter"


class ErrorCode(StrEnum):
    """The reason of an error."""

    QUEUE_UNAVAILABLE = "QUEUE_UNAVAILABLE"
    MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
    INVALID_MESSAGE = "INVALID_MESSAGE"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    UPSTREAM_EMPTY = "UPSTREAM_EMPTY"
    TRANSFORM_INVALID = "TRANSFORM_INVALID"
    QUALITY_FAILED = "QUALITY_FAILED"
    STORAGE_WRITE_FAILED = "STORAGE_WRITE_FAILED"
    REPO_UNAVAILABLE = "REPO_UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class JobMessage:
    """A job: the prices of a symbol on a day. All times are UTC.

    Attributes:
        idempotency_key: the result of `make_idempotency_key`.
        symbol: 1 to 16 capital letters, digits, dots and hyphens.
        asof: the day.
    """

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=512)]
    job_type: str
    symbol: Annotated[str, Meta(pattern=r"^[A-Z0-9][A-Z0-9.-]{0,15}$")]
    asof: Annotated[date, Meta(title="a day")]
    requested_by: Annotated[str, Meta(max_length=128)]


@dataclass(frozen=True, slots=True)
class EnqueueResult:
    """The message is in the queue, and visible from this time on."""

    message_id: str
    visible_at: datetime


@dataclass(frozen=True, slots=True)
class Refusal:
    """The message is not in the queue.

    Attributes:
        error_code: QUEUE_UNAVAILABLE, MESSAGE_TOO_LARGE or INVALID_MESSAGE.
        is_retryable: whether to try again with exponential backoff; else log and alert.
        reason: a text.
    """

    error_code: ErrorCode
    is_retryable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Created:
    """The job of a key, and whether this call created it."""

    job_id: UUID
    created: bool


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job.

    Attributes:
        attempts: number of started attempts.
        last_error: its code and text, at most 512 characters, redacted.
        result_ref: location of the result.
    """

    job_id: UUID
    status: JobStatus
    attempts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    last_error_code: str | None
    last_error: str | None
    result_ref: str | None


class RepoError(Exception):
    """An error of the repo.

    Args:
        code: REPO_UNAVAILABLE, INVALID_MESSAGE, or one of the database, such as ILLEGAL_STATE.
        reason: a text.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


def make_idempotency_key(job_type: str, symbol: str, asof: date) -> str:
    """Return a key that only one active job can have."""
    return f"{job_type}:{symbol}:{asof.isoformat()}"


def job_type_of(idempotency_key: str) -> str:
    """Return the job type in a key of `make_idempotency_key`."""
    return idempotency_key.rsplit(":", 2)[0]


def problem_of(client: Client, message: JobMessage) -> str | None:
    """Return why a message violates the contract, besides the schema of its payload.

    A job type is known if a worker has declared it as a kind.
    """
    if message.idempotency_key != make_idempotency_key(
        message.job_type, message.symbol, message.asof
    ):
        return "idempotency_key is not that of job_type, symbol and asof"
    if client.run(list_undeclared_kinds([message.job_type])):
        return f"job_type {message.job_type} is unknown"
    return None


@dataclass(frozen=True, slots=True)
class Ping:
    """``ok``, or ``error(reason)``."""

    text: str

    @property
    def is_ok(self) -> bool:
        """Whether it is ok."""
        return self.text == "ok"


def ping_of(client: Client, part: Literal["queue", "repo"]) -> Ping:
    """Check whether the queue or the repo can be used."""
    url = client.conninfo
    if url is None:
        raise TypeError("a ping needs a client that was made of a URL")
    queue, repo = ready(url)
    return Ping(queue if part == "queue" else repo)
