"""New jobs: one, or many at once."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.datastructures import Headers
from starlette.responses import Response

from jobq_http import examples, metrics
from jobq_http.call import Call, json
from jobq_http.errors import ApiError
from jobq_http.jobs import Job
from jobq_http.operation import Answer, section
from jobq_http.schedules import NewRecurringJob, Recurrence, RecurrenceOfKind
from jobq_http.values import (
    Cost,
    JobIds,
    JobOptions,
    Json,
    KeyText,
    Name,
    Request,
    answer,
    list_of,
    request,
    text,
)

# An item of a batch: without a header, a job of an endpoint has its key in the body.
EITHER: Final = {
    "oneOf": [
        {"$ref": "#/components/schemas/NewJob"},
        {
            "allOf": [{"$ref": "#/components/schemas/Invocation"}],
            "properties": {"idempotency_key": {"not": {"type": "null"}}},
            "required": ["idempotency_key"],
        },
    ]
}


Options: Any = request(
    "Options",
    "Options of a new job.",
    "idempotency_key? run_at? expires_at? after? after_failure? batch_id?",
    JobOptions,
    after=JobIds,
)
NewJob = request(
    "NewJob",
    "A job of a kind.",
    "kind payload~ concurrency_key? dedup_key? dedup? cost?",
    Options,
    cost=Annotated[Cost, Meta(description="Its cost for rates and budgets.")],
)


class Invocation(Options, kw_only=True):  # type: ignore[call-arg,misc]
    """A job of an endpoint, now or later."""

    endpoint: Name
    trigger: Literal["IMMEDIATE", "DELAYED"]
    input: Json | UnsetType = UNSET

    def declared(self) -> dict[str, Any]:
        """Return the object for the database; refuse members that contradict the trigger."""
        if self.idempotency_key is None:
            raise ApiError("INVALID_REQUEST", f"{self.trigger} needs idempotency_key")
        if (self.trigger == "DELAYED") != (self.run_at is not None):
            raise ApiError("INVALID_REQUEST", "run_at: DELAYED needs it, IMMEDIATE not")
        said = bytes((self.metadata or {}).get("trigger", b""))
        if self.trigger == "IMMEDIATE" and said == b'"DELAYED"':
            raise ApiError("INVALID_REQUEST", "metadata: trigger says DELAYED, the job IMMEDIATE")
        given: dict[str, Any] = super().declared()
        if given.pop("trigger") == "DELAYED":
            given["metadata"] = {**(self.metadata or {}), "trigger": "DELAYED"}
        return given


class Batch(Request):
    """Many jobs, each as for POST /jobs, but not recurring; all or none."""

    jobs: Annotated[
        list[Annotated[Raw, Meta(extra_json_schema=EITHER)]], Meta(min_length=1, max_length=10_000)
    ]

    def __post_init__(self) -> None:
        """Read each job by the model of its vocabulary."""
        self.jobs = [one_of_many(*item) for item in enumerate(self.jobs)]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of jobq_http.submit_jobs()."""
        jobs: list[Any] = self.jobs
        endpoints = {job.endpoint for job in jobs if isinstance(job, Invocation)}
        return {"jobs": text([job.declared() for job in jobs]), "endpoints": sorted(endpoints)}


class Vocabulary(Struct):
    """The members that determine the model of a request."""

    endpoint: Raw | UnsetType = UNSET
    trigger: Raw | UnsetType = UNSET

    @property
    def model(self) -> Any:  # noqa: ANN401 - a type
        """The model of the request."""
        is_cron = self.trigger is not UNSET and bytes(self.trigger) == b'"CRON"'
        if self.endpoint is UNSET:
            return RecurrenceOfKind if is_cron else NewJob
        return Recurrence if is_cron else Invocation


NewJobAnswer = answer(
    "NewJobAnswer", "A job, and whether this request has created it.", "created", Job
)
Reference = answer("Reference", "A job of a batch.", "job_id created")
BatchAnswer = list_of("BatchAnswer", "The jobs of a batch, in its order.", Reference)


async def create_job(call: Call) -> Response:
    """Create a job (201), or return the existing job of its key (200)."""
    body = await call.body(Raw)
    model = msgspec.json.decode(body, type=Vocabulary).model
    job = msgspec.json.decode(body, type=model)
    is_endpoint = isinstance(job, Invocation | Recurrence)
    key = job.idempotency_key = one_key(call.request.headers, job.idempotency_key)
    given = {"given": text(job.declared()), "is_endpoint": is_endpoint}
    await call.check(job.inputs())
    if isinstance(job, Recurrence | RecurrenceOfKind):
        call.audit()
        rows = await call.fetch("jobq_http.submit_schedule", **given, idempotency_key=key)
    else:
        rows = await call.fetch("jobq_http.submit_job", **given)
    [(created, item)] = rows
    if not created:
        metrics.CONFLICTS.inc()
    said = b',"created":true}' if created else b',"created":false}'
    return json(item[:-1] + said, 201 if created else 200)


def one_key(headers: Headers, given: str | None) -> str | None:
    """Return the key of the Idempotency-Key header, or else the body's; refuse several."""
    keys = {header.encode("latin-1").decode() for header in headers.getlist("idempotency-key")}
    if not keys:
        return given
    key = keys.pop()
    if keys or given not in (None, key):
        raise ApiError("INVALID_REQUEST", "idempotency_key: there are two that differ")
    return msgspec.convert(key, KeyText)


def one_of_many(number: int, job: Raw) -> Any:  # noqa: ANN401 - a NewJob or an Invocation
    """Return a job of a batch; a ValidationError names its position."""
    try:
        is_endpoint = msgspec.json.decode(job, type=Vocabulary).endpoint is not UNSET
        return msgspec.json.decode(job, type=Invocation if is_endpoint else NewJob)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at `$")
        place = f"`$.jobs[{number}]{place or '`'}"
        raise msgspec.ValidationError(f"{problem} - at {place}") from error


of = section("jobs")
CODES = (
    "ENDPOINT_NOT_FOUND JOB_NOT_FOUND BATCH_NOT_FOUND DEDUP_CONFLICT BATCH_ENDED"
    " INPUT_VALIDATION_FAILED QUEUE_FULL"
)
# fmt: off
OPERATIONS = (
    of("POST /jobs", create_job, "Create a job", "produce", {
           201: Answer("The job is created.", NewJobAnswer | NewRecurringJob),
           200: Answer("The existing job of the idempotency key or dedup key.",
                       NewJobAnswer | NewRecurringJob),
       }, body=NewJob | Invocation | Recurrence | RecurrenceOfKind,
       errors=f"{CODES} GRAPH_CYCLE DEFINITION_EXISTS INVALID_CRON CRON_NEVER_FIRES"
              " INVALID_TIME_ZONE",
       headers={"Idempotency-Key": KeyText}, examples=examples.NEW_JOBS),
    of("POST /jobs:batch", "jobq_http.submit_jobs", "Create many jobs, all or none", "produce", {
           201: Answer("At least one job is created.", BatchAnswer),
           200: Answer("Every key has a job already.", BatchAnswer),
       }, body=Batch, name="create_jobs", errors=CODES, examples={"two jobs": examples.BATCH}),
)
# fmt: on
