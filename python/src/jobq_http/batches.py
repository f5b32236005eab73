"""Batches: jobs that belong together, and what runs when they have ended; inputs of jobs."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta

from jobq import models
from jobq_http.declared import section
from jobq_http.values import JobOfKind, Moment, Request, answer_of, inputs_of, list_of, request


class Callback(JobOfKind, kw_only=True):
    """A job that is blocked until then; it has no idempotency key or dedup key."""

    run_at: Moment | None = None
    batch_id: UUID | None = None


class NewBatch(Request, kw_only=True):
    """The jobs that run when a batch ends."""

    on_success: Callback | None = None
    on_end: Callback | None = None
    on_first_death: Callback | None = None

    def inputs(self, _kind: str | None) -> list[tuple[str, Any]]:
        """Return the kinds and payloads of its jobs."""
        return inputs_of(job.declared() for job in self.given().values())


BatchCancellation = request(
    "BatchCancellation",
    "Why a batch is cancelled, and how many waiting members by this request.",
    "reason? max_jobs?",
    max_jobs=Annotated[float, Meta(ge=1, le=100_000, multiple_of=1)],
)
BatchStatus = answer_of(models.Batch, "BatchStatus", batch_id=UUID)
CancelledBatch = answer_of(models.CancelledBatch, "CancelledBatch")
Input = answer_of(models.Input, "Input")
Inputs = list_of("Inputs", "The parents of a job.", Input)
SHOWN = ("batch_status", "batch_id")
of = section("workflows")
# fmt: off
OPERATIONS = (
    of("POST /batches", "open_batch", "Create a batch, with the jobs that run when it ends",
       "produce", BatchStatus, status=201, body=NewBatch, then=SHOWN,
       errors="BATCH_NOT_FOUND JOB_NOT_FOUND BATCH_ENDED INPUT_VALIDATION_FAILED QUEUE_FULL",
       examples={"a report": {
           "on_success": {"kind": "report"}, "on_first_death": {"kind": "alert"},
       }}),
    of("GET /batches/{batch_id}", "batch_status", "Show the progress of a batch",
       "produce read work operate", BatchStatus, errors="BATCH_NOT_FOUND"),
    of("POST /batches/{batch_id}/seal", "seal_batch",
       "Seal a batch, which then has all its members",
       "produce work operate", BatchStatus, then=SHOWN, errors="BATCH_NOT_FOUND"),
    of("POST /batches/{batch_id}/cancel", "cancel_batch",
       "Cancel the members of a batch, and seal it; repeat while some remain",
       "produce operate", CancelledBatch, body=BatchCancellation, errors="BATCH_NOT_FOUND",
       examples={"a wrong list": {"reason": "wrong list"}}),
    of("GET /jobs/{job_id}/inputs", "list_inputs",
       "List the states and results of the jobs that a job waits or waited for",
       "produce read work operate", Inputs, errors="JOB_NOT_FOUND",
       columns={"parent_id": "job_id"}),
)
# fmt: on
