"""The specification of the HTTP API, OpenAPI 3.1, made from its operations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from types import UnionType
from typing import Any, Final, get_args

import msgspec
from starlette.responses import Response

from jobq_http.call import Call, json
from jobq_http.errors import ENQUEUES, MISSING, Error, documented
from jobq_http.examples import ID, MOMENT
from jobq_http.operation import Answer, Operation, section
from jobq_http.routing import LAG

REFERENCE: Final = "#/components/schemas/{name}"
PARAMETER: Final = re.compile(r"{(\w+)}")

DESCRIPTION: Final = """\
A job queue and scheduler that lives in PostgreSQL. Every path calls one function of the
database, as the role that the key's scope allows.

A job is made of a `kind` and a `payload`, or of an `endpoint`, a `trigger` and an `input`:
the two vocabularies are equivalent. Its execution has the same id.

Lists take `limit` and `cursor`, and return `{"items": [...], "cursor": ...}`; repeat the call
with the cursor until it is null. Errors are `{"error": {"code", "message", "request_id"}}`,
with `detail` and `hint` if available; match the code.

A cursor is valid only for the same list and filters. Texts and JSON must not contain the
character NUL, which PostgreSQL cannot store.
"""

TAGS: Final = {
    "jobs": "Create and follow jobs.",
    "recurring jobs": "Recurring jobs, by cron or at an interval.",
    "definitions": "Definitions for deliveries.",
    "executions": "Executions, attempts and logs of jobs.",
    "queues": "Queues, their figures, pause and resume.",
    "glances": "Data of the console: bounded counts, history, groups, the audit.",
    "operators": "Dead jobs, and jobs that do not run.",
    "workers": "Workers without a PostgreSQL driver.",
    "workflows": "Steps, events and signals.",
    "approvals": "Questions of jobs to people, and answers.",
    "health": "The server itself. No key is needed.",
}

PATH_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "job_id": {"type": "string", "format": "uuid"},
    "batch_id": {"type": "string", "format": "uuid"},
    "execution_id": {"type": "string", "format": "uuid"},
    "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,127}$"},
    "attempt": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
    "queue": {"type": "string", "minLength": 1, "maxLength": 128},
    "kind": {"type": "string", "minLength": 1, "maxLength": 128},
    "stream": {"type": "string", "minLength": 1, "maxLength": 256},
    "worker": {"type": "string", "minLength": 1, "maxLength": 256},
}

LAG_MEANING: Final = "If a standby has answered: its maximum lag in seconds."

# Errors that every operation with a key can have, and every one with a body.
KEYED: Final = (
    "INVALID_REQUEST", "UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED",
    "INTERNAL_ERROR", "REPO_UNAVAILABLE", "TIMEOUT",
)  # fmt: skip
WITH_BODY: Final = ("MESSAGE_TOO_LARGE", "ENCODING_UNSUPPORTED", "INVALID_MESSAGE")


# Examples, by the names of members, and else by their formats and types.
SAMPLES: Final = {
    "counts": [[0, "mail", 12, 10, 1, 0, 1]], "latency": [[0, 40, 250]],
    "endpoint": "send-welcome-email", "event": "payment:42", "kind": "send_email",
    "kinds": {"send_email": 12}, "queue": "mail", "success_rate": 0.98,
    "worker": "mail-1", "worker_id": "mail-1",
}  # fmt: skip
SAMPLE_OF: Final = {
    "boolean": False, "date-time": MOMENT, "integer": 1, "number": 1.0, "string": "text",
    "uuid": ID,
}  # fmt: skip
GIVEN: Final = {"not": {"type": "null"}}
CRON_OR_EVERY: Final[dict[str, Any]] = {
    "oneOf": [{"properties": {name: GIVEN}, "required": [name]} for name in ("cron", "every_ms")]
}
# Which members of a request go together.
RULES: Final[dict[str, dict[str, Any]]] = {
    "Invocation": {
        "oneOf": [
            {"properties": {"trigger": {"const": "IMMEDIATE"}, "run_at": {"type": "null"}}},
            {
                "properties": {"trigger": {"const": "DELAYED"}, "run_at": GIVEN},
                "required": ["run_at"],
            },
        ]
    },
    "Recurrence": CRON_OR_EVERY,
    "RecurrenceOfKind": CRON_OR_EVERY,
    "Redrive": {
        "anyOf": [
            *(
                {"properties": {name: GIVEN}, "required": [name]}
                for name in ("queue", "kind", "endpoint", "since", "error_code")
            ),
            {"properties": {"all": {"const": True}}, "required": ["all"]},
        ]
    },
}


def specification(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the specification of operations, in their order."""
    models: list[Any] = [Error]
    for operation in operations:
        answered = [answer.model for answer in operation.answers.values()]
        models += operation.headers.values()
        models += (kind for model in (operation.body, *answered) for kind in alternatives(model))
    _, schemas = msgspec.json.schema_components(models, ref_template=REFERENCE)
    schemas = {name: whole(schema) | RULES.get(name, {}) for name, schema in schemas.items()}
    names = Counter(operation.name for operation in operations)
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        name = operation.name
        if names[name] > 1:
            name += "_of_" + operation.path.split("/")[1].replace("-", "_")
        methods = paths.setdefault(operation.path, {})
        methods[operation.method.lower()] = described(operation, name, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "jobq",
            "version": version("jobq"),
            "description": DESCRIPTION,
            "license": {"name": "PostgreSQL", "identifier": "PostgreSQL"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": n, "description": text} for n, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key created by `jobq keys create`.",
                }
            },
            "headers": {
                "X-Request-Id": {
                    "description": "The request's own id, or the one given.",
                    "schema": {"type": "string"},
                }
            },
            "parameters": {
                "X-Request-Id": {
                    "name": "X-Request-Id",
                    "in": "header",
                    "description": "An id of the caller's, for logs: at most 128 letters, "
                    "digits and -_.:/=+; otherwise it is ignored.",
                    "schema": {"type": "string"},
                }
            },
        },
    }


def whole(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """Return a schema with the type integer instead of number with multipleOf 1."""
    if isinstance(schema, list):
        return [whole(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number" and schema.get("multipleOf") == 1:
        schema = {k: v for k, v in schema.items() if k != "multipleOf"} | {"type": "integer"}
    return {name: whole(part) for name, part in schema.items()}


def alternatives(model: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any type
    """Return the alternative types of a body."""
    if model is None:
        return ()
    return get_args(model) if isinstance(model, UnionType) else (model,)


def schema_of(model: Any) -> dict[str, Any]:  # noqa: ANN401 - any type
    """Return the schema of a type: a reference if it has a name."""
    if isinstance(model, UnionType):
        return {"anyOf": [schema_of(kind) for kind in get_args(model)]}
    (schema,), _ = msgspec.json.schema_components([model], ref_template=REFERENCE)
    return schema


def described(operation: Operation, name: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation for the specification."""
    scopes = operation.scopes
    scoped = f"Scopes: {', '.join(scopes)}."
    texts = [
        "" if isinstance(operation.does, str) else operation.does.__doc__,
        "The header `Idempotency-Key` is refused." if operation.refuses_key else "",
        scoped if scopes else "",
    ]
    described: dict[str, Any] = {
        "operationId": name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": "\n\n".join(text.strip() for text in texts if text),
        "security": [{"key": [scope]} for scope in scopes] or [{}],
        "parameters": list(parameters(operation)),
        "responses": responses(operation, schemas),
    }
    if operation.body is not None:
        described["requestBody"] = request_body(operation)
    return described


def parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    """Yield the parameters of an operation: path, query, headers."""
    for name in PARAMETER.findall(operation.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": PATH_PARAMETERS[name],
        }
    if operation.query is not None:
        model = operation.query
        _, schemas = msgspec.json.schema_components([model], ref_template=REFERENCE)
        for name, schema in schemas[model.__name__]["properties"].items():
            yield {"name": name, "in": "query", "schema": present(schema)}
    for name, model in operation.headers.items():
        yield {"name": name, "in": "header", "schema": schema_of(model)}
    yield {"$ref": "#/components/parameters/X-Request-Id"}


def present(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter without null."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    given = {k: v for k, v in schema.items() if k != "anyOf" and v is not None}
    return {**given, **kinds[0]} if kinds else given


def request_body(operation: Operation) -> dict[str, Any]:
    """Return the request body of an operation."""
    models = alternatives(operation.body)
    kinds = [schema_of(model) for model in models]
    content: dict[str, Any] = {"schema": kinds[0] if len(kinds) == 1 else {"oneOf": kinds}}
    if operation.examples:
        content["examples"] = {name: {"value": value} for name, value in operation.examples.items()}
    is_needed = any(field.required for each in models for field in msgspec.structs.fields(each))
    return {"required": is_needed, "content": {"application/json": content}}


def responses(operation: Operation, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return all answers of an operation, by status."""
    lag = {LAG: LAG_MEANING} if operation.may_lag else {}
    found = {
        str(status): good(answer, lag, schemas) for status, answer in operation.answers.items()
    }
    for status, codes in sorted(errors_of(operation).items()):
        found.setdefault(str(status), bad(codes))
    return found


def errors_of(operation: Operation) -> dict[int, list[str]]:
    """Return the codes of an operation's errors, by status."""
    named = [MISSING[name] for name in PARAMETER.findall(operation.path) if name in MISSING]
    codes = named + operation.errors.split()
    if operation.scopes:
        codes += KEYED
    if operation.reads_body:
        codes += WITH_BODY
    if (operation.method, operation.path) in ENQUEUES:
        codes.append("QUEUE_UNAVAILABLE")
    found: dict[int, list[str]] = {}
    for code in dict.fromkeys(codes):
        found.setdefault(documented(code)[0], []).append(code)
    return found


def good(answer: Answer, headers: Mapping[str, str], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return a successful answer with its headers."""
    described: dict[str, Any] = {
        "description": answer.description,
        "headers": {
            "X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"},
            **{
                name: {"description": meaning, "schema": {"type": "string"}}
                for name, meaning in {**answer.headers, **headers}.items()
            },
        },
    }
    if answer.model is not None:
        content: dict[str, Any] = {"schema": schema_of(answer.model)}
        if answer.media_type == "application/json":
            content["example"] = sample(content["schema"], schemas)
        described["content"] = {answer.media_type: content}
    return described


def sample(schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str = "") -> object:
    """Return an example for a schema; the name of the member may determine it."""
    kinds = schema.get("anyOf", [])
    found: object = SAMPLE_OF.get(schema.get("format") or schema.get("type", ""), {})
    if "$ref" in schema:
        found = sample(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
    elif name in SAMPLES:
        found = SAMPLES[name]
    elif kinds:
        found = None if {"type": "null"} in kinds else sample(kinds[0], schemas, name)
    elif "enum" in schema:
        found = schema["enum"][0]
    elif "properties" in schema:
        members = schema["properties"].items()
        found = {member: sample(part, schemas, member) for member, part in members}
    elif schema.get("type") == "array":
        found = [sample(schema["items"], schemas)] if schema.get("items") else []
    return found


def bad(codes: Sequence[str]) -> dict[str, Any]:
    """Return the errors of a status, with an example for each code."""
    messages = {code: documented(code)[1] for code in codes}
    request_id = "req_9a8b7c6d5e4f3a2b"
    examples = {
        code: {"value": {"error": {"code": code, "message": message, "request_id": request_id}}}
        for code, message in messages.items()
    }
    return {
        "description": "; ".join(f"`{code}`: {message}" for code, message in messages.items()),
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}},
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
                "examples": examples,
            }
        },
    }


async def show_specification(call: Call) -> Response:
    """Return this specification."""
    return json(call.request.app.state.specification)


of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /openapi.json", show_specification, "This specification", "",
       {200: Answer("OpenAPI 3.1.", dict[str, Any])}),
)
# fmt: on
