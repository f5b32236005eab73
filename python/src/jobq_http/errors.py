"""Errors of the HTTP API: one envelope, one handler, one table."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
import psycopg
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jobq.errors import (
    DatabaseUnavailable,
    InvalidArgument,
    JobqError,
    NotDeployed,
    NotPermitted,
    of_database,
)
from jobq_http.values import GIVEN, SPAN
from jobq_operations.project import read_errors

logger = logging.getLogger("jobq.http")

# The errors of the database, by their symbolic codes.
ERROR_TABLE: Final = read_errors()

# Errors that the HTTP server raises itself: code, status and message.
ERRORS: Final = {
    "INVALID_REQUEST": (400, "The request is malformed."),
    "UNAUTHORIZED": (401, "The API key is missing or invalid."),
    "FORBIDDEN": (403, "The API key lacks the required scope."),
    "NOT_FOUND": (404, "The path does not exist."),
    "JOB_NOT_FOUND": (404, "Job with ID '{id}' does not exist."),
    "BATCH_NOT_FOUND": (404, "The batch does not exist."),
    "EXECUTION_NOT_FOUND": (404, "Execution with ID '{id}' does not exist."),
    "LINK_INVALID": (403, "The link is invalid or has expired."),
    "QUESTION_CLOSED": (409, "The question is closed."),
    "METHOD_NOT_ALLOWED": (405, "The path does not support this method."),
    "INVALID_SCHEMA": (422, "The schema is invalid."),
    "EXECUTION_NOT_CANCELLABLE": (409, "The execution has started or ended."),
    "JOB_NOT_UPDATABLE": (409, "One-shot jobs cannot be updated."),
    "REQUEST_INVALID": (422, "The request does not yield a valid message."),
    "PRECONDITION_FAILED": (412, "If-Match names another version."),
    "MESSAGE_TOO_LARGE": (413, "The body is too large."),
    "ENCODING_UNSUPPORTED": (415, "The body is compressed."),
    "INVALID_MESSAGE": (422, "The message is nested too deeply."),
    "RATE_LIMITED": (429, "Too many requests."),
    "INTERNAL_ERROR": (500, "Internal error; the server's log has the request id."),
    "QUEUE_UNAVAILABLE": (503, "The queue cannot accept jobs now."),
    "REPO_UNAVAILABLE": (503, "The database does not answer."),
    "SECRET_KEY_MISSING": (503, "This server has no key to encrypt secrets."),
    "DELIVERY_MISSING": (503, "This server requires jobq[delivery] for this."),
    "TIMEOUT": (504, "The request took too long."),
}

# Symbolic codes of the database that have another name in the HTTP API. Statuses and messages
# are the database's, unless ERRORS has the name.
RENAMED: Final = {
    "PAYLOAD_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "PAYLOAD_TOO_DEEP": "INVALID_MESSAGE",
    "PAYLOAD_INVALID": "INPUT_VALIDATION_FAILED",
    "SCHEMA_INVALID": "INVALID_SCHEMA",
    "HAS_DEPENDENTS": "CONFLICT",
    "NULL_ARGUMENT": "INVALID_REQUEST",
    "INVALID_ARGUMENT": "INVALID_REQUEST",
}

# Remedies for clients of the HTTP API, where the database's hint is SQL or a command.
HINTS: Final = {
    "JOB_IS_RECURRING": "use the id of one of its runs: GET /jobs/{job_id}/executions",
    "ILLEGAL_STATE": "check the state: GET /jobs/{job_id}",
    "QUESTION_NOT_FOUND": "list the questions: GET /waits",
    "QUESTION_CLOSED": "only the first answer counts; list the open questions: GET /waits",
    "QUEUE_NOT_FOUND": "an undeclared queue is not paused; declare it, or check the name",
    "KIND_NOT_FOUND": "list the kinds: GET /kinds",
    "API_KEY_NOT_FOUND": "an operator can list the keys",
    "SCHEDULE_NOT_FOUND": "list the recurring jobs: GET /jobs?trigger=CRON",
    "SCHEDULE_RETIRED": "use the next version, replaced_by_id of GET /jobs/{job_id}; if it is"
    " null, create the recurring job again: POST /jobs",
    "SCHEDULE_IMMUTABLE": "create a new version: PUT /jobs/{job_id}",
    "PAYLOAD_SPEC_NOT_FOUND": "create it: POST /payload-specs",
    "CONFIG_NOT_FOUND": "create it: POST /configs",
    "SECRET_NOT_FOUND": "create it: POST /secrets",
    "ENDPOINT_NOT_FOUND": "create it: POST /endpoints",
    "IS_ENDPOINT": "change it with PUT /endpoints/{name}, or choose another name for the kind",
    "KIND_EXISTS": "choose another name for the endpoint, or delete the kind: DELETE /kinds/{kind}",
    "INVALID_PAYLOAD_SPEC_REF": "create the payload spec first: POST /payload-specs",
    "INVALID_CONFIG_REF": "create the config first: POST /configs",
    "INVALID_TIME_ZONE": "use a place, such as Europe/Berlin",
    "ONE_DATABASE": "use the HTTP server of the shard",
    "ALL_QUEUES_NEEDED": "use a server whose login has all queues, or send a signal to one job",
}

# The errors of ids in paths that nothing has.
MISSING: Final = {
    "job_id": "JOB_NOT_FOUND",
    "execution_id": "EXECUTION_NOT_FOUND",
    "batch_id": "BATCH_NOT_FOUND",
}

# Requests for which an outage means that no jobs are accepted.
ENQUEUES: Final = frozenset({("POST", "/jobs"), ("POST", "/jobs:batch")})

# SQLSTATEs without a symbolic code that mean another error here than for the client.
CODE_OF_SQLSTATE: Final = {
    "42883": "INTERNAL_ERROR",
    "54000": "MESSAGE_TOO_LARGE",
    "57014": "TIMEOUT",
}
# Members of requests that accept fractions.
FRACTIONS: Final = frozenset({"amount", "cost", "jitter", "max_per_second", "retry_jitter"})
# Names of durations in the database; here the members end with _ms. Single words are also common
# ones, so they are replaced only before a comma or "must".
DURATIONS: Final = [name.removesuffix(SPAN) for name in GIVEN if name.endswith(SPAN)]
IN_SQL: Final = re.compile(
    "|".join(rf"\b{name}\b{'' if '_' in name else '(?=,| must)'}" for name in DURATIONS)
)


class ErrorBody(Struct, omit_defaults=True):
    """An error."""

    code: Annotated[str, Meta(description="Symbolic and stable; match this.")]
    message: str
    request_id: str
    detail: Annotated[str, Meta(description="The values.")] = ""
    hint: Annotated[str, Meta(description="The remedy.")] = ""


class Error(Struct):
    """The body of every error."""

    error: ErrorBody


class ApiError(Exception):
    """An error response.

    Args:
        code: a symbolic code of ERRORS, which has its status and message, or of the database.
        detail: the values, if they help.
        status: the HTTP status, if it differs.
        message: a sentence, if it differs.
        hint: the remedy.
        headers: headers of the response.
    """

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        status: int | None = None,
        message: str | None = None,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, detail)
        known = ERRORS.get(code, (500, code))
        self.code = code
        self.status = status or known[0]
        self.message = message or known[1]
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


def translate(error: Exception, *, is_enqueue: bool = False) -> ApiError:
    """Return the error response for any exception; creating jobs has its own code in an outage."""
    answered = ApiError("INTERNAL_ERROR")
    match error:
        case ApiError():
            answered = error
        case HTTPException():
            answered = of_starlette(error)
        case msgspec.ValidationError():
            answered = ApiError("INVALID_REQUEST", in_words(str(error)))
        case RecursionError():
            answered = ApiError("INVALID_MESSAGE")
        case msgspec.MsgspecError() | UnicodeDecodeError():
            answered = ApiError("INVALID_REQUEST", str(error))
        case JobqError():
            answered = of_jobq(error, is_enqueue=is_enqueue)
        case psycopg.Error():
            answered = of_jobq(of_database(error), is_enqueue=is_enqueue)
        case ModuleNotFoundError(name=name):  # of an extra, which is imported when it is needed
            answered = ApiError("DELIVERY_MISSING", f"{name} is not installed")
        case TimeoutError():
            answered = ApiError("TIMEOUT")
    return answered


def in_words(problem: str) -> str:
    """Return a validation error, with the right name for the expected number.

    Integers are decoded as floats, because 5.0 is valid too.
    """
    expected, at, place = problem.partition(" - at ")
    if place.rpartition(".")[2].rstrip("`") in FRACTIONS:
        return expected.replace("Expected `float", "Expected `number") + at + place
    expected = expected.removesuffix(" that's a multiple of 1.0")
    expected = expected.replace("Expected `float", "Expected `integer")
    return re.sub(r"(?<== )(-?[0-9]+)[.]0$", r"\1", expected) + at + place


def of_starlette(error: HTTPException) -> ApiError:
    """Return the error response for a request without a route."""
    known = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code)
    return ApiError(
        known or "INVALID_REQUEST",
        status=error.status_code,
        message=None if known else HTTPStatus(error.status_code).description or None,
        headers=error.headers,
    )


def of_jobq(error: JobqError, *, is_enqueue: bool) -> ApiError:
    """Return the error response for an error of the database, or of the package itself."""
    code, known = error.code, ERROR_TABLE.get(error.code)
    detail, hint = error.detail or None, error.hint or None
    if code == "ERROR" or error.sqlstate in CODE_OF_SQLSTATE:
        return ApiError(CODE_OF_SQLSTATE.get(error.sqlstate, "INTERNAL_ERROR"))
    match error:
        case JobqError(code="SECRET_KEY_MISSING"):
            return ApiError(code, hint=hint)
        case InvalidArgument() if code in RENAMED:
            if known and error.message != known.message:  # PostgreSQL's own, or the package's
                detail = error.message if error.sqlstate else str(error)
            members = detail and IN_SQL.sub(r"\g<0>_ms", detail)
            return ApiError("INVALID_REQUEST", members, hint=hint)
        case NotPermitted(sqlstate="42501") if not known:
            message = "The database login of this server lacks the privilege."
            return ApiError("FORBIDDEN", message=message)
        case NotPermitted() | NotDeployed() | DatabaseUnavailable() if not known:
            is_missing = isinstance(error, NotDeployed)
            hint = "an operator installs jobq in the database: jobq deploy" if is_missing else None
            code = "QUEUE_UNAVAILABLE" if is_enqueue else "REPO_UNAVAILABLE"
            return ApiError(code, hint=hint, headers={"retry-after": "1"})
    status = known.http_status if known else ERRORS.get(code, (422,))[0]
    return ApiError(
        RENAMED.get(code, code),
        detail,
        status=status,
        message=error.message,
        hint=HINTS.get(code, hint) if known else None,
        headers={"retry-after": "1"} if status == 429 else None,
    )


def documented(code: str) -> tuple[int, str]:
    """Return the status and the message of a code, of ERRORS or of the database."""
    if code in ERRORS:
        status, message = ERRORS[code]
        return status, message.format(id="job_xyz")
    row = next(row for name, row in ERROR_TABLE.items() if RENAMED.get(name, name) == code)
    return row.http_status, f"{row.message[0].upper()}{row.message[1:]}."


def named(error: ApiError, parameters: Mapping[str, str]) -> ApiError:
    """Return the error for a missing job with the name that the path uses."""
    if error.code == "SCHEDULE_NOT_FOUND":
        message = f"Recurring job with ID '{parameters['job_id']}' does not exist."
        return ApiError("JOB_NOT_FOUND", message=message)
    for name, code in MISSING.items():
        if error.code == "JOB_NOT_FOUND" and name in parameters:
            message = ERRORS[code][1].format(id=parameters[name])
            return ApiError(code, hint=error.hint, message=message)
    return error


def envelope(error: ApiError, request_id: str) -> bytes:
    """Return the body of an error."""
    body = ErrorBody(error.code, error.message, request_id, error.detail or "", error.hint or "")
    return msgspec.json.encode(Error(body))


async def answer(request: Request, error: Exception) -> Response:
    """Respond to any exception: the only exception handler."""
    request_id = request.scope["jobq.request_id"]
    is_enqueue = (request.method, request.scope["path"]) in ENQUEUES
    answered = named(translate(error, is_enqueue=is_enqueue), request.scope.get("path_params", {}))
    if answered.status >= 500:
        logger.error(
            "%s %s: %s, request %s",
            request.method,
            request.url.path,
            answered.code,
            request_id,
            exc_info=error if answered.code == "INTERNAL_ERROR" else None,
        )
    return Response(
        envelope(answered, request_id),
        answered.status,
        answered.headers,
        "application/json",
    )
