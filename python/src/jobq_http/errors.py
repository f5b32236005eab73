"""What goes wrong, as the HTTP API says it: one envelope, one handler, one table."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import psycopg
from msgspec import Meta, Struct
from starlette.exceptions import HTTPException
from starlette.responses import Response

from jobq.errors import ERROR_TABLE, JobqError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg.errors import Diagnostic
    from starlette.requests import Request

logger = logging.getLogger("jobq.http")

# The errors that the HTTP API finds by itself: code, status and message.
ERRORS: Final = {
    "INVALID_REQUEST": (400, "The request is malformed."),
    "UNAUTHORIZED": (401, "The API key is missing or not valid."),
    "FORBIDDEN": (403, "The API key does not have the scope that this needs."),
    "NOT_FOUND": (404, "There is nothing at this path."),
    "JOB_NOT_FOUND": (404, "Job with ID '{id}' does not exist."),
    "BATCH_NOT_FOUND": (404, "There is no such batch."),
    "EXECUTION_NOT_FOUND": (404, "Execution with ID '{id}' does not exist."),
    "METHOD_NOT_ALLOWED": (405, "This path does not take this method."),
    "INVALID_SCHEMA": (422, "The schema is not usable."),
    "EXECUTION_NOT_CANCELLABLE": (409, "The execution no longer waits."),
    "JOB_NOT_UPDATABLE": (409, "One-shot jobs cannot be updated."),
    "REQUEST_INVALID": (422, "No message can be made of it."),
    "PRECONDITION_FAILED": (412, "This is another version than the one that If-Match names."),
    "MESSAGE_TOO_LARGE": (413, "The body is too large."),
    "INVALID_MESSAGE": (422, "The message is nested too deeply."),
    "RATE_LIMITED": (429, "Too many requests."),
    "INTERNAL_ERROR": (500, "Something went wrong here; the log has the request id."),
    "QUEUE_UNAVAILABLE": (503, "The queue cannot take jobs now."),
    "REPO_UNAVAILABLE": (503, "The database does not answer now."),
    "SECRET_KEY_MISSING": (503, "This server has no key to encrypt secrets with."),
    "DELIVERY_MISSING": (503, "This server cannot do this: install jobq[delivery]."),
    "TIMEOUT": (504, "The answer took too long."),
}

# The database's symbolic codes that have another name in the HTTP API; statuses and messages
# are the database's own, but for those names that ERRORS has.
RENAMED: Final = {
    "PAYLOAD_TOO_LARGE": "MESSAGE_TOO_LARGE",
    "PAYLOAD_TOO_DEEP": "INVALID_MESSAGE",
    "PAYLOAD_INVALID": "INPUT_VALIDATION_FAILED",
    "SCHEMA_INVALID": "INVALID_SCHEMA",
    "HAS_DEPENDENTS": "CONFLICT",
    "NULL_ARGUMENT": "INVALID_REQUEST",
    "INVALID_ARGUMENT": "INVALID_REQUEST",
}

# What a client of the HTTP API can do, where the database's own hint names SQL or a command.
HINTS: Final = {
    "JOB_IS_RECURRING": "take one of its runs: GET /jobs/{job_id}/executions lists them",
    "ILLEGAL_STATE": "look the job up with GET /jobs/{job_id}",
    "QUEUE_NOT_FOUND": "of this queue nothing is declared, so it is not paused either",
    "KIND_NOT_FOUND": "list the kinds with GET /kinds",
    "API_KEY_NOT_FOUND": "an operator lists the keys",
    "SCHEDULE_NOT_FOUND": "list the recurring jobs with GET /jobs?trigger=CRON",
    "SCHEDULE_RETIRED": "take the version after it, replaced_by_id of GET /jobs/{job_id}; where"
    " that is null, create the recurring job anew with POST /jobs",
    "SCHEDULE_IMMUTABLE": "make a new version with PUT /jobs/{job_id}",
    "PAYLOAD_SPEC_NOT_FOUND": "declare it with POST /payload-specs",
    "CONFIG_NOT_FOUND": "declare it with POST /configs",
    "SECRET_NOT_FOUND": "store it with POST /secrets",
    "ENDPOINT_NOT_FOUND": "declare it with POST /endpoints",
    "IS_ENDPOINT": "use PUT /endpoints/{name} or DELETE, or give the kind another name",
    "KIND_EXISTS": "give the endpoint another name, or forget the kind: DELETE /kinds/{kind}",
    "INVALID_PAYLOAD_SPEC_REF": "declare the payload spec first, with POST /payload-specs",
    "INVALID_CONFIG_REF": "declare the config first, with POST /configs",
    "INVALID_TIME_ZONE": "name a place, such as Europe/Berlin",
    "LIMIT_NOT_FOUND": "list the limits with GET /limits",
    "ONE_DATABASE": "ask the server of the shard",
    "ALL_QUEUES_NEEDED": "use a key of all queues; or tell one job with a signal",
}

# Parameters of paths that hold the id of a job.
ID_PARAMETERS: Final = {
    "job_id": "JOB_NOT_FOUND",
    "execution_id": "EXECUTION_NOT_FOUND",
}

# Where an outage means that no jobs are taken in.
ENQUEUES: Final = frozenset({("POST", "/jobs"), ("POST", "/jobs:batch")})

# What the database says without a symbolic code of jobq's.
CODE_OF_SQLSTATE: Final = {
    "23503": "ILLEGAL_STATE",
    "54000": "MESSAGE_TOO_LARGE",
    "57014": "TIMEOUT",
}
# Members of requests that are numbers, but not whole ones.
FRACTIONS: Final = frozenset({"amount", "cost", "jitter", "max_per_second", "retry_jitter"})
# What the database calls lengths of time that are members with the suffix _ms here; those that
# are common words too stand before a comma or "must" where they are meant.
LENGTHS: Final = (
    "dedup_max_wait",
    "dedup_period",
    "keep_cancelled",
    "keep_dead",
    "keep_succeeded",
    "key_rate_period",
    "rate_period",
    "retry_in",
    "retry_initial_delay",
    "retry_max_delay",
)
WORDS: Final = ("every", "lease", "timeout")
IN_SQL: Final = re.compile(rf"\b(?:{'|'.join(LENGTHS)})\b|\b(?:{'|'.join(WORDS)})\b(?=,| must)")
UNAVAILABLE_CLASSES: Final = frozenset({"08", "40", "53", "57"})
# No such database, and none of jobq's schemas in it: it is being made, or was lost.
NOT_DEPLOYED: Final = frozenset({"3D000", "3F000"})


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


class ApiError(Exception):
    """An answer that is an error.

    Args:
        code: a symbolic code, of ERRORS or of the database.
        detail: the values, when they help.
        status: the HTTP status; by default the one that ERRORS has.
        message: a sentence; by default the one that ERRORS has.
        hint: what to do about it.
        headers: headers of the answer.
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
    """Return the answer to an error of any kind.

    Args:
        error: what was raised.
        is_enqueue: whether jobs were to be taken in, for the name of an outage.
    """
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
        case JobqError(code="SECRET_KEY_MISSING"):
            answered = ApiError("SECRET_KEY_MISSING", hint=error.hint)
        case TimeoutError():
            answered = ApiError("TIMEOUT")
        case psycopg.errors.InsufficientPrivilege() if not is_of_table(error):
            message = "The database user of this server may not do this."
            answered = ApiError("FORBIDDEN", message=message)
        case psycopg.Error():
            answered = of_database(error, is_enqueue=is_enqueue)
    return answered


def in_words(problem: str) -> str:
    """Return what is wrong with a request, its numbers called what they must be.

    Whole numbers are read as fractions are, since 5.0 is one too.
    """
    expected, at, place = problem.partition(" - at ")
    if place.rpartition(".")[2].rstrip("`") in FRACTIONS:
        return expected.replace("Expected `float", "Expected `number") + at + place
    expected = expected.removesuffix(" that's a multiple of 1.0")
    expected = expected.replace("Expected `float", "Expected `integer")
    return re.sub(r"(?<== )(-?[0-9]+)[.]0$", r"\1", expected) + at + place


def of_starlette(error: HTTPException) -> ApiError:
    """Return the answer to a request that no route takes."""
    known = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}.get(error.status_code)
    return ApiError(
        known or "INVALID_REQUEST",
        status=error.status_code,
        message=None if known else HTTPStatus(error.status_code).description or None,
        headers=error.headers,
    )


def of_database(error: psycopg.Error, *, is_enqueue: bool) -> ApiError:
    """Return the answer to what the database says, by SQLSTATE and symbolic code."""
    state, said = error.sqlstate or "", error.diag
    code = said.constraint_name or ""
    if code not in ERROR_TABLE:
        code = CODE_OF_SQLSTATE.get(state, "")
    if code in ERROR_TABLE and (state[:2] != "22" or code not in RENAMED):
        return of_table(code, said)
    if code in ERRORS:
        return ApiError(code)
    if state[:2] == "22":
        detail = said.message_detail if code else said.message_primary
        members = detail and IN_SQL.sub(r"\g<0>_ms", detail)
        return ApiError("INVALID_REQUEST", members, hint=said.message_hint)
    if isinstance(error, psycopg.DataError) and not state:
        return ApiError("INVALID_REQUEST", str(error))
    is_missing = state in NOT_DEPLOYED
    if not state or state[:2] in UNAVAILABLE_CLASSES or state == "25006" or is_missing:
        code = "QUEUE_UNAVAILABLE" if is_enqueue else "REPO_UNAVAILABLE"
        hint = "the database has no jobq in it: an operator installs it" if is_missing else None
        return ApiError(code, hint=hint, headers={"retry-after": "1"})
    return ApiError("INTERNAL_ERROR")


def is_of_table(error: psycopg.Error) -> bool:
    """Whether the database's table of errors has what was raised."""
    return error.diag.constraint_name in ERROR_TABLE


def of_table(code: str, said: Diagnostic) -> ApiError:
    """Return the answer to an error of the database's table."""
    status = ERROR_TABLE[code].http_status
    return ApiError(
        RENAMED.get(code, code),
        said.message_detail,
        status=status,
        message=said.message_primary,
        hint=HINTS.get(code, said.message_hint),
        headers={"retry-after": "1"} if status == 429 else None,
    )


def status_of(code: str) -> int:
    """Return the status of a code."""
    if code in ERRORS:
        return ERRORS[code][0]
    rows = ERROR_TABLE.items()
    return next(row.http_status for name, row in rows if RENAMED.get(name, name) == code)


def meaning(code: str) -> str:
    """Return what a code means, in a sentence: the words of ERRORS, or of the database."""
    if code in ERRORS:
        return ERRORS[code][1].format(id="job_xyz")
    known = next(name for name in ERROR_TABLE if RENAMED.get(name, name) == code)
    message = ERROR_TABLE[known].message
    return f"{message[0].upper()}{message[1:]}."


def named(error: ApiError, parameters: Mapping[str, str]) -> ApiError:
    """Return the error of a missing job in the words of the path that named it."""
    if error.code == "SCHEDULE_NOT_FOUND":
        message = f"There is no recurring job with ID '{parameters['job_id']}'."
        return ApiError("JOB_NOT_FOUND", message=message)
    if error.code != "JOB_NOT_FOUND" or not parameters.keys() & ID_PARAMETERS.keys():
        return error
    name = next(name for name in ID_PARAMETERS if name in parameters)
    code = ID_PARAMETERS[name]
    return ApiError(code, hint=error.hint, message=ERRORS[code][1].format(id=parameters[name]))


def envelope(error: ApiError, request_id: str) -> bytes:
    """Return the body of an error."""
    body = {"code": error.code, "message": error.message, "request_id": request_id}
    for name in ("detail", "hint"):
        value = getattr(error, name)
        if value is not None:
            body[name] = value
    return msgspec.json.encode({"error": body})


async def answer(request: Request, error: Exception) -> Response:
    """Answer any error: the one exception handler."""
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
