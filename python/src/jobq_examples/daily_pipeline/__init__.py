"""A job repo and a queue by contract, on jobq: the lifecycle of a daily pipeline's jobs.

jobq worker jobq_examples.daily_pipeline:registry
"""

from jobq_examples.daily_pipeline.contract import (
    JOB_TYPE,
    EnqueueResult,
    ErrorCode,
    JobMessage,
    JobRecord,
    JobStatus,
    Refusal,
    RepoError,
    make_idempotency_key,
)
from jobq_examples.daily_pipeline.pipeline import CONTRACT, registry
from jobq_examples.daily_pipeline.queue import QueueContract
from jobq_examples.daily_pipeline.repo import JobRepo
from jobq_examples.daily_pipeline.submit import Submitted, ready, submit

__all__ = [
    "CONTRACT",
    "JOB_TYPE",
    "EnqueueResult",
    "ErrorCode",
    "JobMessage",
    "JobRecord",
    "JobRepo",
    "JobStatus",
    "QueueContract",
    "Refusal",
    "RepoError",
    "Submitted",
    "make_idempotency_key",
    "ready",
    "registry",
    "submit",
]
