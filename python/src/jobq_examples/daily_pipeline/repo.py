"""The records of the daily pipeline's jobs, on jobq."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, nothing
from jobq.errors import DatabaseUnavailable, IllegalState, JobqError
from jobq_examples.daily_pipeline.contract import (
    Created,
    ErrorCode,
    JobMessage,
    JobRecord,
    JobStatus,
    RepoError,
    job_type_of,
    ping_of,
    problem_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime
    from uuid import UUID

    from jobq.client import Client
    from jobq.models import Job
    from jobq_examples.daily_pipeline.contract import Ping

_STATUS = {
    "queued": JobStatus.QUEUED,
    "running": JobStatus.RUNNING,
    "succeeded": JobStatus.SUCCEEDED,
    "retrying": JobStatus.FAILED,
    "dead": JobStatus.DEAD_LETTER,
    "cancelled": JobStatus.DEAD_LETTER,
}


class JobRepo:
    """The records of jobs. The database refuses illegal changes of their state.

    Record and message are one row of jobq: creating the record enqueues the job in the same
    transaction, and a message that is enqueued later with its key is the same job. The database
    sets times and ids, so those of callers are ignored; `create_queued` returns the id.

    Args:
        client: client of the database.
        worker: name of the worker of running jobs.
    """

    def __init__(self, client: Client, worker: str = "daily_pipeline") -> None:
        self._client = client
        self._worker = worker
        self._attempts: dict[UUID, int] = {}

    def create_queued(  # noqa: PLR0917 - the contract's parameters
        self,
        job_id: UUID,  # noqa: ARG002
        idempotency_key: str,
        job_type: str,
        symbol: str,
        asof: date,
        requested_by: str,
        created_at: datetime,  # noqa: ARG002
    ) -> Created:
        """Create a queued job, or return the active or succeeded job of this key.

        Raises:
            RepoError: the repo does not respond; INVALID_MESSAGE if the job violates the contract.
        """
        message = JobMessage(idempotency_key, job_type, symbol, asof, requested_by)
        with translated():
            if problem := problem_of(self._client, message):
                raise RepoError(ErrorCode.INVALID_MESSAGE, problem)
            job = self._client.enqueue(job_type, message, idempotency_key=idempotency_key)
        return Created(job.job_id, job.created)

    def set_running(self, job_id: UUID, started_at: datetime) -> None:  # noqa: ARG002
        """Lease a queued job to the worker of this repo.

        Raises:
            RepoError: ILLEGAL_STATE if it cannot run now; JOB_NOT_FOUND.
        """
        arguments = {"job_id": job_id, "worker": self._worker}
        with translated():
            claimed = self._client.run(Call("claim_job", arguments, _attempt))
            if claimed is None:
                job = self._client.get(job_id)
                raise IllegalState(f"a job that is {job.state} cannot be set running")
        self._attempts[job_id] = claimed

    def set_succeeded(
        self,
        job_id: UUID,
        finished_at: datetime,  # noqa: ARG002
        result_ref: str | None = None,
    ) -> None:
        """Finish a running job of this repo.

        Raises:
            RepoError: ILLEGAL_STATE or LEASE_LOST: it is not a running job of this repo.
        """
        result = as_jsonb({"result_ref": result_ref})
        self._end("complete", job_id, self._attempts.pop(job_id, 0), {"result": result})

    def set_failed(
        self,
        job_id: UUID,
        finished_at: datetime,  # noqa: ARG002
        error_code: str,
        error_message: str,
        attempt: int,
    ) -> None:
        """End an attempt as failed: the job is retried, or is a dead letter.

        Raises:
            RepoError: LEASE_LOST: this attempt does not hold the job.
        """
        failure = {"error": error_message, "error_code": error_code}
        self._end("fail", job_id, attempt, failure)

    def set_dead_letter(
        self,
        job_id: UUID,
        finished_at: datetime,  # noqa: ARG002
        error_code: str,
        error_message: str,
        attempt: int,
    ) -> None:
        """Make a job a dead letter, unless it is one.

        A job that is retried after `set_failed` is cancelled, and keeps the code of that failure.

        Raises:
            RepoError: LEASE_LOST: this attempt does not hold the job.
        """
        with translated():
            job = self._client.get(job_id)
            if job.state == "dead":
                return
            if job.state == "retrying" and job.attempts == attempt:
                self._client.cancel(job_id, f"{error_code}: {error_message}"[:512])
                return
        failure = {"error": error_message, "error_code": error_code, "retryable": False}
        self._end("fail", job_id, attempt, failure)

    def get_by_id(self, job_id: UUID) -> JobRecord:
        """Return the record of a job.

        Raises:
            RepoError: JOB_NOT_FOUND.
        """
        with translated():
            return _record(self._client.get(job_id))

    def get_by_idempotency(self, idempotency_key: str) -> UUID | None:
        """Return the active or succeeded job of a key, or None."""
        with translated():
            job_id = self._client.find(job_type_of(idempotency_key), idempotency_key)
            if job_id is None or self._client.get(job_id).state in ("dead", "cancelled"):
                return None
            return job_id

    def ping(self) -> Ping:
        """Return whether records can be read and written: ``ok``, or why not."""
        return ping_of(self._client, "repo")

    def _end(self, function: str, job_id: UUID, attempt: int, more: dict[str, Any]) -> None:
        with translated():
            self._client.run(
                Call(function, {"job_id": job_id, "attempt": attempt, **more}, nothing)
            )


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the contract instead of those of jobq."""
    try:
        yield
    except DatabaseUnavailable as error:
        raise RepoError(ErrorCode.REPO_UNAVAILABLE, str(error)) from error
    except JobqError as error:
        raise RepoError(error.code, str(error)) from error


def _attempt(rows: list[Any]) -> int | None:
    return rows[0][1] if rows else None


def _record(job: Job) -> JobRecord:
    return JobRecord(
        job_id=job.job_id,
        status=_STATUS[job.state],
        attempts=job.attempts,
        created_at=job.created_at,
        started_at=job.claimed_at,
        finished_at=job.finished_at,
        last_error_code=job.last_error_code,
        last_error=job.last_error,
        result_ref=job.result.get("result_ref") if isinstance(job.result, dict) else None,
    )
