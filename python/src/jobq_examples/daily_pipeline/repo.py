"""The records of the daily pipeline's jobs, on jobq."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call
from jobq.errors import DatabaseUnavailable, IllegalState, JobqError
from jobq_examples.daily_pipeline.contract import (
    Created,
    ErrorCode,
    JobMessage,
    JobRecord,
    JobStatus,
    RepoError,
    job_type_of,
    problem_of,
)
from jobq_examples.daily_pipeline.ping import ping_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date, datetime
    from uuid import UUID

    from jobq.client import Client
    from jobq.models import Job
    from jobq_examples.daily_pipeline.ping import Ping

__all__ = ["JobRepo"]

_STATUS = {
    "queued": JobStatus.QUEUED,
    "running": JobStatus.RUNNING,
    "succeeded": JobStatus.SUCCEEDED,
    "retrying": JobStatus.FAILED,
    "dead": JobStatus.DEAD_LETTER,
    "cancelled": JobStatus.DEAD_LETTER,
}


class JobRepo:
    """Keeps what becomes of jobs. The database refuses a change that may not be.

    Record and message are one row of jobq's: whoever creates the record has put the job
    into the queue, in the same transaction, and a message enqueued later under its key is
    the same job. The database's clock gives the moments, so those that callers pass are
    not stored; and it makes the ids, so the one that `create_queued` returns counts.

    Args:
        client: of the database.
        worker: under which name jobs are set running.
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
        """Create a queued job, or find the one of this key that is active or has succeeded.

        Raises:
            RepoError: the repo does not answer; INVALID_MESSAGE when the job violates the contract.
        """
        message = JobMessage(idempotency_key, job_type, symbol, asof, requested_by)
        with translated():
            if problem := problem_of(self._client, message):
                raise RepoError(ErrorCode.INVALID_MESSAGE, problem)
            job = self._client.enqueue(job_type, message, idempotency_key=idempotency_key)
        return Created(job.job_id, job.created)

    def set_running(self, job_id: UUID, started_at: datetime) -> None:  # noqa: ARG002
        """Lease a queued job to this repo's worker.

        Raises:
            RepoError: ILLEGAL_STATE when it cannot run now; JOB_NOT_FOUND.
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
        """Finish a job that this repo has set running.

        Raises:
            RepoError: ILLEGAL_STATE or LEASE_LOST when it is not this repo's.
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
        """End an attempt as failed: the job waits for the next, or is a dead letter.

        Raises:
            RepoError: LEASE_LOST when this attempt does not hold the job.
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
        """Make a job a dead letter; one that is one already stays so.

        A job that `set_failed` has put back for another attempt is cancelled, so that none
        begins: it keeps the code of that failure.

        Raises:
            RepoError: LEASE_LOST when this attempt does not hold the job.
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
        """Return what is known of a job.

        Raises:
            RepoError: JOB_NOT_FOUND.
        """
        with translated():
            return _record(self._client.get(job_id))

    def get_by_idempotency(self, idempotency_key: str) -> UUID | None:
        """Return the job of a key, if it is active or has succeeded."""
        with translated():
            job_id = self._client.find(job_type_of(idempotency_key), idempotency_key)
            if job_id is None or self._client.get(job_id).state in ("dead", "cancelled"):
                return None
            return job_id

    def ping(self) -> Ping:
        """Tell whether records can be read and written: ``ok``, or why not."""
        return ping_of(self._client, "repo")

    def _end(self, function: str, job_id: UUID, attempt: int, more: dict[str, Any]) -> None:
        with translated():
            self._client.run(
                Call(function, {"job_id": job_id, "attempt": attempt, **more}, _nothing)
            )


@contextmanager
def translated() -> Iterator[None]:
    """Raise the contract's errors in place of jobq's."""
    try:
        yield
    except DatabaseUnavailable as error:
        raise RepoError(ErrorCode.REPO_UNAVAILABLE, str(error)) from error
    except JobqError as error:
        raise RepoError(error.code, str(error)) from error


def _attempt(rows: list[Any]) -> int | None:
    return rows[0][1] if rows else None


def _nothing(_rows: list[Any]) -> None:
    """Pass over the answer."""


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
