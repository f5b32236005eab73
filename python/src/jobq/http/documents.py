"""The shapes of answers, as the specification describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

State = Literal["queued", "running", "retrying", "succeeded", "dead", "cancelled"]
Status = Literal["PENDING", "QUEUED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED"]
Trigger = Literal["IMMEDIATE", "DELAYED", "CRON"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]
Json = Annotated[Any, Meta(description="Any JSON.")]
Moment = Annotated[datetime, Meta(tz=True)]
JsonObject = Annotated[dict[str, Any], Meta(description="A JSON object.")]

RecurringStatus = Literal["ACTIVE", "PAUSED", "RETIRED"]
Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
Next = Annotated[str | None, Meta(description="For the next page; null on the last.")]


class ExecutionOfJob(Struct):
    """The execution of a job, in short."""

    execution_id: UUID
    status: Status
    created_at: Moment


class Job(Struct):
    """A job: what was asked for and how it goes.

    endpoint is kind and input is payload, for the clients of both vocabularies.
    """

    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType | None
    trigger: Trigger
    status: Annotated[Literal["ACTIVE", "RETIRED"], Meta(description="RETIRED once it has ended.")]
    version: int
    idempotency_key: str | None
    input: Json
    execution: ExecutionOfJob
    created_at: Moment
    kind: str
    queue: str
    state: State
    payload: Json
    metadata: JsonObject
    dedup_key: str | None
    priority: int
    attempt: Annotated[int, Meta(description="The fencing token: of the present or last attempt.")]
    attempts: Annotated[int, Meta(description="The attempts that count against max_attempts.")]
    max_attempts: int
    timeout_ms: int
    run_at: Moment
    worker: str | None
    started_at: Moment | None
    heartbeat_at: Moment | None
    lease_expires_at: Moment | None
    finished_at: Moment | None
    cancel_requested: bool
    cancel_reason: str | None
    progress: Json
    result: Json
    last_error_code: str | None
    last_error: str | None
    schedule_id: UUID | None
    slot_at: Moment | None
    region: str


class NewJobAnswer(Job):
    """A job, and whether this request has created it."""

    created: bool


class JobPage(Struct):
    """A page of jobs, the newest first."""

    items: list[Job]
    cursor: Next


class RecurringJob(Struct):
    """A job that fires by cron, or every so often: one version of it."""

    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType | None
    trigger: Literal["CRON"]
    status: RecurringStatus
    version: int
    previous_version_id: UUID | None
    replaced_by_id: UUID | None
    name: str
    cron: str | None
    every_ms: int | None
    from_completion: bool | None
    timezone: str | None
    gap: str
    fold: str
    missed: Literal["all", "latest", "none"]
    catch_up_ms: int | None
    dedup: str
    dedup_key: str | None
    jitter_ms: int | None
    starts_at: Moment | None
    ends_at: Moment | None
    next_run_at: Moment | None
    last_tick_at: Moment | None
    input: Json
    kind: str
    queue: str | None
    payload: Json
    metadata: JsonObject
    priority: int | None
    max_attempts: int | None
    timeout_ms: int | None
    paused_at: Moment | None
    pause_reason: str | None
    region: str
    created_at: Moment
    retired_at: Moment | None


class NewRecurringJob(RecurringJob):
    """A recurring job, and whether this request has created it."""

    created: bool


class RecurringJobPage(Struct):
    """A page of recurring jobs or of their versions, the newest first."""

    items: list[RecurringJob]
    cursor: Next


class LastExecution(Struct):
    """The execution that started last."""

    execution_id: UUID
    status: Status
    started_at: Moment | None
    completed_at: Moment | None
    attempt_number: int


class ActiveExecutions(Struct):
    """What is under way."""

    pending: int
    running: int
    total: int


class Ticks(Struct):
    """When a recurring job fires."""

    expression: str | None
    every_ms: int | None
    next_run_at: Moment | None
    last_tick_at: Moment | None


class Statistics(Struct):
    """How executions ended."""

    total: int
    succeeded: int
    failed: int
    avg_duration_ms: float | None
    p99_duration_ms: float | None


class StatisticsOfDay(Struct):
    """How executions ended, by time."""

    last_24h: Statistics


class JobStatus(Struct):
    """How a recurring job does."""

    job_id: UUID
    name: str
    endpoint: str
    endpoint_type: EndpointType | None
    trigger: Literal["CRON"]
    status: RecurringStatus
    health: Literal["HEALTHY", "DEGRADED", "FAILING", "IDLE"]
    version: int
    last_execution: LastExecution | None
    active_executions: ActiveExecutions
    cron: Ticks
    stats: StatisticsOfDay


class Preview(Struct):
    """When a recurring job fires next."""

    slots: list[Moment]


class JobPausing(Struct):
    """Whether a recurring job is paused."""

    job_id: UUID
    is_paused: bool


class PayloadSpec(Struct):
    """The JSON Schema of what endpoints take."""

    name: str
    schema: JsonObject
    version: int
    created_at: Moment
    updated_at: Moment


class PayloadSpecPage(Struct):
    """A page of payload specs, by name."""

    items: list[PayloadSpec]
    cursor: Next


class Config(Struct):
    """Values that the templates of endpoints refer to."""

    name: str
    values: JsonObject
    version: int
    created_at: Moment
    updated_at: Moment


class ConfigPage(Struct):
    """A page of configs, by name."""

    items: list[Config]
    cursor: Next


class Secret(Struct):
    """A secret, without its value."""

    name: str
    version: int
    created_at: Moment
    updated_at: Moment


class SecretPage(Struct):
    """A page of secrets, by name, without their values."""

    items: list[Secret]
    cursor: Next


class RetryPolicy(Struct):
    """How often, and how far apart, a delivery is tried."""

    max_attempts: int | None
    backoff: str | None
    initial_delay_ms: int | None
    max_delay_ms: int | None


class Endpoint(Struct):
    """Where jobs of a kind are delivered, and in what shape."""

    name: str
    type: EndpointType
    payload_spec: str | None
    config: str | None
    spec: JsonObject
    retry_policy: RetryPolicy
    queue: str | None
    max_concurrency: int | None
    max_per_second: float | None
    version: int
    created_at: Moment
    updated_at: Moment


class EndpointPage(Struct):
    """A page of endpoints, by name."""

    items: list[Endpoint]
    cursor: Next


class Reference(Struct):
    """A job of a batch."""

    job_id: UUID
    created: bool


class BatchAnswer(Struct):
    """The jobs of a batch, in its order."""

    items: list[Reference]


class Cancellation(Struct):
    """What a request to cancel has done."""

    job_id: UUID
    outcome: Literal["cancelled", "cancel_requested", "retired"]


class Execution(Struct):
    """An execution of a job."""

    execution_id: UUID
    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType | None
    idempotency_key: str | None
    status: Status
    input: Json
    output: Json
    attempt_count: int
    max_attempts: int
    worker_id: str | None
    run_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    duration_ms: int | None
    created_at: Moment


class ExecutionPage(Struct):
    """A page of executions, the newest first."""

    items: list[Execution]
    cursor: Next


class AttemptError(Struct):
    """Why an attempt failed; the handler may have said more, by other members."""

    type: str | None
    message: str | None
    status_code: int | UnsetType = UNSET


class Attempt(Struct):
    """One try of an execution."""

    attempt_id: str
    execution_id: UUID
    attempt_number: int
    status: Literal["SUCCESS", "FAILED", "RUNNING", "CANCELLED", "RELEASED"]
    worker_id: str | None
    started_at: Moment | None
    completed_at: Moment | None
    duration_ms: int | None
    output: Json
    error: AttemptError | None


class AttemptPage(Struct):
    """A page of attempts, in their order."""

    items: list[Attempt]
    cursor: Next


class LogLine(Struct):
    """A line that a handler has logged."""

    log_id: str
    execution_id: UUID
    attempt_number: int
    level: Level
    message: str
    logged_at: Moment


class LogPage(Struct):
    """A page of log lines, in their order."""

    items: list[LogLine]
    cursor: Next


class Reason(Struct):
    """A reason why a job is not running."""

    reason: str
    explanation: str


class Explanation(Struct):
    """Why a job is not running."""

    reasons: list[Reason]


class Redriven(Struct):
    """A job that will run again."""

    job_id: UUID
    state: Literal["queued"]


class RedrivenMany(Struct):
    """The jobs that will run again."""

    job_ids: list[UUID]


class Queue(Struct):
    """A queue and its jobs."""

    queue: str
    queued: Annotated[int, Meta(description="Jobs that could run now.")]
    scheduled: Annotated[int, Meta(description="Jobs that are not due yet.")]
    running: int
    retrying: int
    dead: int
    oldest_runnable_ms: Annotated[
        int | None, Meta(description="How long the first in line could have run.")
    ]
    finished_last_minute: int
    is_paused: bool


class QueuePage(Struct):
    """A page of queues, by name."""

    items: list[Queue]
    cursor: Next


class Pausing(Struct):
    """Whether a queue is paused."""

    queue: str
    is_paused: bool


class ClaimedJob(Struct):
    """A job as its worker receives it."""

    job_id: UUID
    attempt: Annotated[int, Meta(description="The fencing token of later calls.")]
    kind: str
    payload: Json
    metadata: JsonObject
    queue: str
    max_attempts: int
    timeout_ms: int
    lease_ms: Annotated[int, Meta(description="Send a heartbeat well within this.")]
    lease_expires_at: Moment
    run_at: Moment
    created_at: Moment
    idempotency_key: str | None


class Claimed(Struct):
    """The jobs that a worker may now do."""

    jobs: list[ClaimedJob]


class Beat(Struct):
    """What has become of a job that a worker holds."""

    job_id: UUID
    attempt: int
    outcome: Literal["extended", "cancel_requested", "lost"]


class Beats(Struct):
    """What has become of the jobs that a worker holds."""

    jobs: list[Beat]


class Settled(Struct):
    """A job after its attempt."""

    job_id: UUID
    attempt: int
    state: State


class Logged(Struct):
    """The attempt that a line was logged for."""

    job_id: UUID
    attempt: int


class Readiness(Struct):
    """Whether jobs can be taken in and looked up: ok, or error(reason)."""

    queue: str
    repo: str
    timestamp: Moment


class Health(Struct):
    """That the server runs."""

    status: Literal["ok"]


class ErrorBody(Struct, omit_defaults=True):
    """What went wrong."""

    code: Annotated[str, Meta(description="Symbolic, stable: match this.")]
    message: str
    request_id: str
    detail: Annotated[str, Meta(description="The values.")] = ""
    hint: Annotated[str, Meta(description="The remedy.")] = ""


class Error(Struct):
    """Every error."""

    error: ErrorBody
