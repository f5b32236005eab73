"""The errors that the database raises, as `make docs` reads them in jobq.error."""

from typing import Final, NamedTuple

__all__ = ["ERROR_TABLE", "ErrorRow"]


class ErrorRow(NamedTuple):
    """One error of the database: its SQLSTATE, its HTTP status and its fixed message."""

    sqlstate: str
    http_status: int
    message: str


ERROR_TABLE: Final = {
    "NULL_ARGUMENT": ErrorRow(
        "22004",
        400,
        "an argument that is needed is null",
    ),
    "GRAPH_CYCLE": ErrorRow(
        "22023",
        400,
        "the jobs of a graph wait for each other",
    ),
    "INVALID_ARGUMENT": ErrorRow(
        "22023",
        400,
        "an argument has a value that it may not have",
    ),
    "ONE_DATABASE": ErrorRow(
        "22023",
        400,
        "this call is for one database, not for a cluster",
    ),
    "ALL_QUEUES_NEEDED": ErrorRow(
        "42501",
        403,
        "whoever does this must hold all queues while grants by queue are enforced",
    ),
    "ENQUEUE_DENIED": ErrorRow(
        "42501",
        403,
        "who adds jobs must be allowed to, in their queue",
    ),
    "FUNCTION_DENIED": ErrorRow(
        "42501",
        403,
        "who declares a kind must be allowed to execute its function",
    ),
    "QUEUE_DENIED": ErrorRow(
        "42501",
        403,
        "who changes or deletes jobs must be allowed to work their queue",
    ),
    "BATCH_NOT_FOUND": ErrorRow(
        "JQ001",
        404,
        "batch not found",
    ),
    "JOB_IS_RECURRING": ErrorRow(
        "JQ001",
        404,
        "this is a recurring job, which does not run itself",
    ),
    "JOB_NOT_FOUND": ErrorRow(
        "JQ001",
        404,
        "job not found",
    ),
    "BATCH_ENDED": ErrorRow(
        "JQ002",
        409,
        "a batch that has ended takes no more members",
    ),
    "ILLEGAL_STATE": ErrorRow(
        "JQ002",
        409,
        "the job cannot change in this way from its present state",
    ),
    "IMMUTABLE": ErrorRow(
        "JQ002",
        409,
        "this part of a job never changes",
    ),
    "SCHEDULE_IMMUTABLE": ErrorRow(
        "JQ002",
        409,
        "a version of a schedule never changes",
    ),
    "SCHEDULE_RETIRED": ErrorRow(
        "JQ002",
        409,
        "this version of the schedule is retired",
    ),
    "LEASE_LOST": ErrorRow(
        "JQ003",
        409,
        "this attempt no longer holds the job",
    ),
    "API_KEY_EXISTS": ErrorRow(
        "JQ004",
        409,
        "an API key of this name exists",
    ),
    "DEDUP_CONFLICT": ErrorRow(
        "JQ004",
        409,
        "another live job holds this dedup key",
    ),
    "DEFINITION_EXISTS": ErrorRow(
        "JQ004",
        409,
        "a definition of this name exists",
    ),
    "IDEMPOTENCY_CONFLICT": ErrorRow(
        "JQ004",
        409,
        "another job holds this idempotency key",
    ),
    "IS_ENDPOINT": ErrorRow(
        "JQ004",
        409,
        "the kind is an endpoint",
    ),
    "KIND_EXISTS": ErrorRow(
        "JQ004",
        409,
        "a kind of this name was declared that is no endpoint",
    ),
    "PAYLOAD_TOO_LARGE": ErrorRow(
        "JQ005",
        413,
        "the payload is too large",
    ),
    "PAYLOAD_INVALID": ErrorRow(
        "JQ006",
        422,
        "the payload does not fit its kind",
    ),
    "PAYLOAD_TOO_DEEP": ErrorRow(
        "JQ006",
        422,
        "the payload is nested too deeply",
    ),
    "SCHEMA_INVALID": ErrorRow(
        "JQ006",
        422,
        "the payload schema is not usable",
    ),
    "API_KEY_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "API key not found",
    ),
    "CONFIG_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "config not found",
    ),
    "ENDPOINT_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "endpoint not found",
    ),
    "FUNCTION_NOT_FOUND": ErrorRow(
        "JQ007",
        422,
        "the kind names an unknown function",
    ),
    "INVALID_CONFIG_REF": ErrorRow(
        "JQ007",
        422,
        "the endpoint names an unknown config",
    ),
    "INVALID_PAYLOAD_SPEC_REF": ErrorRow(
        "JQ007",
        422,
        "the endpoint names an unknown payload spec",
    ),
    "KIND_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "kind not found",
    ),
    "LIMIT_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "no limit of this key was declared",
    ),
    "PAYLOAD_SPEC_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "payload spec not found",
    ),
    "QUEUE_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "queue not found",
    ),
    "SCHEDULE_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "schedule not found",
    ),
    "SECRET_NOT_FOUND": ErrorRow(
        "JQ007",
        404,
        "secret not found",
    ),
    "TEMPLATE_RESOLUTION_FAILED": ErrorRow(
        "JQ007",
        422,
        "a template refers to something that is not there",
    ),
    "HAS_DEPENDENTS": ErrorRow(
        "JQ008",
        409,
        "something still depends on this",
    ),
    "CRON_NEVER_FIRES": ErrorRow(
        "JQ009",
        422,
        "the cron expression can never fire",
    ),
    "INVALID_CRON": ErrorRow(
        "JQ009",
        422,
        "invalid cron expression",
    ),
    "INVALID_TIME_ZONE": ErrorRow(
        "JQ009",
        422,
        "unknown time zone",
    ),
    "QUEUE_FULL": ErrorRow(
        "JQ010",
        429,
        "the queue is full",
    ),
    "LIMIT_REACHED": ErrorRow(
        "JQ011",
        409,
        "a limit, a rate or a hold does not let the job start now",
    ),
    "SHARD_AWAY": ErrorRow(
        "JQ012",
        503,
        "a shard that is needed does not answer",
    ),
}
"""By symbolic code, as the database names it in the error's constraint."""
