"""The types of requests and answers: values with their limits, and members by their names.

A member of a name has the same type everywhere: `GIVEN` in requests, `SHOWN` in answers. A request
or an answer is a list of names: ``name?`` may be null, ``name~`` left out, and ``name*`` is a list.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, Raw, Struct, UnsetType, defstruct

from jobq.calls.arguments import Dedup, OnDead, RetryStrategy
from jobq.models import AfterFailure, State, words_of

SPAN: Final = "_ms"
MILLISECOND: Final = timedelta(milliseconds=1)
# Parameters of type numeric, which take no float.
NUMBERS: Final = frozenset({"amount", "cost"})
# Members with the payload of a job.
PAYLOADS: Final = frozenset({"input", "payload"})
# Names of members in the database.
COLUMNS: Final = {"timezone": "time_zone", "input": "payload", "endpoint": "kind"}
# PostgreSQL cannot store a NUL.
TEXT: Final = r"^[^\u0000]*$"

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern=TEXT)]
Text = Annotated[str, Meta(max_length=512, pattern=TEXT)]
ConcurrencyKey = Annotated[str, Meta(min_length=1, max_length=1024, pattern=TEXT)]
KeyText = Annotated[str, Meta(min_length=1, max_length=512, pattern=TEXT)]
Reason = Annotated[str, Meta(max_length=512, pattern=TEXT)]
Priority = Annotated[float, Meta(ge=-32768, le=32767, multiple_of=1)]
Attempts = Annotated[float, Meta(ge=1, le=10000, multiple_of=1)]
Milliseconds = Annotated[float, Meta(ge=1, le=31_536_000_000, multiple_of=1)]
Rate = Annotated[float, Meta(ge=1, le=1_000_000_000, multiple_of=1)]
Json = Annotated[Raw, Meta(description="Any JSON; numbers keep all digits.")]
JsonMembers = dict[str, Raw]
Status = Literal["PENDING", "QUEUED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED"]
Trigger = Literal["IMMEDIATE", "DELAYED", "CRON"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]
Vocabulary = (
    Literal["kind", "endpoint"],
    "Names the job's data payload (kind) or input (endpoint).",
)
Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
Next = Annotated[str | None, Meta(description="Cursor of the next page; null on the last page.")]
Moment = Annotated[datetime, Meta(tz=True)]
AnyJson = Annotated[Any, Meta(description="Any JSON.")]
JsonObject = Annotated[dict[str, Any], Meta(description="A JSON object.")]
Count = Annotated[int, Meta(ge=0)]
Delay = Annotated[float, Meta(ge=0, le=31_536_000_000, multiple_of=1)]
Keep = Annotated[float, Meta(ge=3_600_000, le=31_536_000_000_000, multiple_of=1)]
Places = Annotated[float, Meta(ge=1, le=32767, multiple_of=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
JobIds = Annotated[list[UUID], Meta(max_length=10_000)]
LongName = Annotated[str, Meta(min_length=1, max_length=256, pattern=TEXT)]
Cost = Annotated[float, Meta(ge=0, le=1e12)]


def members(*kinds: tuple[Any, str]) -> dict[str, Any]:
    """Return the types of members, by their names."""
    return {name: kind for kind, names in kinds for name in names.split()}


GIVEN: Final = members(
    (Name, "endpoint kind queue scope time_zone"),
    (LongName, "event name"),
    (Text, "retry_preset run subject worker"),
    (str, "error message"),
    (Reason, "reason"),
    (ConcurrencyKey, "concurrency_key"),
    (KeyText, "dedup_key idempotency_key"),
    (Priority, "priority"),
    (Attempts, "max_attempts"),
    (Places, "key_max_running max_running"),
    (Rate, "key_rate_burst key_rate_limit rate_burst rate_limit"),
    (
        Milliseconds,
        "dedup_max_wait_ms dedup_period_ms every_ms key_rate_period_ms rate_period_ms timeout_ms",
    ),
    (Delay, "retry_in_ms retry_initial_delay_ms retry_max_delay_ms"),
    (Keep, "keep_cancelled_ms keep_dead_ms"),
    (Annotated[float, Meta(ge=0, le=31_536_000_000_000, multiple_of=1)], "keep_succeeded_ms"),
    (Annotated[float, Meta(ge=1000, le=86_400_000, multiple_of=1)], "lease_ms"),
    (Share, "retry_jitter"),
    (Cost, "cost"),
    (Moment, "created_after created_before ends_at expires_at run_at since starts_at until"),
    (UUID, "batch_id graph_of job_id"),
    (JobIds, "job_ids"),
    (Json, "input payload progress result value"),
    (JsonMembers, "metadata payload_schema"),
    (bool, "dry_run is_endpoint ordered retryable reuse_key_after_failure"),
    (AfterFailure, "after_failure"),
    (Dedup, "dedup"),
    (OnDead, "on_dead"),
    (RetryStrategy, "retry_strategy"),
    (Level, "level"),
)
SHOWN: Final = members(
    (
        str,
        "acting_for action actor application attempt_id backoff body bootstrap_servers"
        " cancel_reason concurrency_key config cron dedup dedup_key endpoint error error_code"
        " expression fold gap hold_reason idempotency_key key kind last_error last_error_code"
        " log_id message method name pause_reason payload_spec period queue reason redis_url"
        " region repo scope scope_type subject time_zone timezone topic type url value worker"
        " worker_id",
    ),
    (
        int,
        "attempt attempt_count attempt_number attempts audit_id catch_up_ms duration_ms errors"
        " every_ms initial_delay_ms jitter_ms jobs key_max_running key_rate_burst key_rate_limit"
        " key_rate_period_ms least_attempts max_attempts max_concurrency max_delay_ms max_depth"
        " max_running most_attempts paused pending priority rate_burst rate_limit rate_period_ms"
        " status_code timeout_ms total version waiting waits_for width_ms",
    ),
    (Count, "dead failed looked_at matched queued queues retrying running scheduled succeeded"),
    (float, "amount avg_duration_ms cost jitter max_per_second p99_duration_ms reserved spent"),
    (
        bool,
        "cancel_requested created each_key from_completion is_declared is_endpoint is_held is_open"
        " is_paused is_served is_whole ordered was_held",
    ),
    (UUID, "batch_id child_id execution_id graph_id held_up_by job_id parent_id"),
    (UUID, "previous_version_id replaced_by_id schedule_id"),
    (
        Moment,
        "acted_at completed_at created_at ends_at expires_at finished_at first_at heartbeat_at"
        " held_until last_at last_tick_at lease_expires_at logged_at next_period_at next_run_at"
        " open_at paused_at retired_at run_at since slot_at started_at starts_at timestamp until"
        " updated_at",
    ),
    (AnyJson, "input output payload progress result"),
    (JsonObject, "graph metadata spec"),
    (State, "state"),
    (Status, "status"),
    (Trigger, "trigger"),
    (EndpointType, "endpoint_type"),
    (Level, "level"),
    (AfterFailure, "after_failure"),
    (OnDead, "on_dead"),
    (Next, "cursor"),
)


class RequestPart(Struct, forbid_unknown_fields=True):
    """A query string, a body, or a part of a body."""

    def given(self) -> dict[str, Any]:
        """Return its members that are given and not null, by name."""
        given = msgspec.structs.asdict(self)
        return {k: v for k, v in given.items() if v is not None and v is not UNSET}

    def arguments(self) -> dict[str, Any]:
        """Return its members as arguments of a function of the database."""
        return dict(argument(*item) for item in self.given().items())

    def declared(self) -> dict[str, Any]:
        """Return it as an object for the database; null too, if a member may be left out."""
        given, nulls = msgspec.structs.asdict(self), optional(type(self))
        return dict(
            member(n, v) for n, v in given.items() if v is not (UNSET if n in nulls else None)
        )

    def inputs(self, kind: str | None = None) -> list[tuple[str, Any]]:
        """Return the kinds and payloads of its jobs; the kind may be in the path."""
        given = self.given()
        named = given.get("kind") or given.get("endpoint") or kind
        own = [(named, given.get(n)) for n in PAYLOADS & {*self.__struct_fields__} if named]
        parts = [part for v in given.values() for part in (v if isinstance(v, list) else [v])]
        nested = [part.inputs() for part in parts if isinstance(part, RequestPart)]
        return [*own, *(each for some in nested for each in some)]


class Request(RequestPart):
    """The body of a request, or a part of one."""

    def __post_init__(self) -> None:
        """Convert whole numbers: JSON Schema accepts 5.0 as an integer."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and value.is_integer():
                setattr(self, name, int(value))


def argument(name: str, value: Any) -> tuple[str, Any]:  # noqa: ANN401 - any type
    """Return a member as an argument: a duration without ``_ms``, JSON as text."""
    if name.endswith(SPAN):
        return name.removesuffix(SPAN), None if value is None else value * MILLISECOND
    if name in NUMBERS and not isinstance(value, list):  # the cost of a kind is a path
        return name, Decimal(repr(value))
    if isinstance(value, RequestPart):
        return name, text(value.declared())
    return name, text(value) if isinstance(value, Raw | dict) else value


@cache
def optional(model: Any) -> frozenset[str]:  # noqa: ANN401 - any type
    """Return the names of the members that may be left out, which differs from null."""
    return frozenset(f.name for f in msgspec.structs.fields(model) if f.default is UNSET)


def member(name: str, value: Any) -> tuple[str, Any]:  # noqa: ANN401 - any type
    """Return a member as one of an object for the database: a duration without ``_ms``."""
    name = COLUMNS.get(name, name)
    if name.endswith(SPAN):
        return name.removesuffix(SPAN), None if value is None else f"{value} ms"
    if isinstance(value, list):
        return name, [member("", each)[1] for each in value]
    return name, value.declared() if isinstance(value, RequestPart) else value


def text(value: object) -> str:
    """Return a value as JSON."""
    return msgspec.json.encode(value).decode()


def request(
    title: str,
    meaning: str,
    names: str,
    /,
    *bases: type[Struct],
    defaults: Mapping[str, Any] | None = None,
    **others: Any,  # noqa: ANN401 - any types
) -> Any:  # noqa: ANN401 - a type of requests
    """Return the type of a request or a part of one; members that may be null may be left out.

    Args:
        title: name of the type.
        meaning: its description.
        names: its members.
        bases: types whose members it also has.
        defaults: defaults of members that may be left out.
        others: types or descriptions (or both) of members that differ from `GIVEN`.
    """
    return _struct((title, meaning, names), GIVEN, bases or (Request,), others, defaults or {})


def answer(
    title: str,
    meaning: str,
    names: str,
    /,
    *bases: type[Struct],
    **others: Any,  # noqa: ANN401 - any types
) -> type[Struct]:
    """Return the type of an answer, like request(); members that may be null are present."""
    return _struct((title, meaning, names), SHOWN, bases, others, None)


def _struct(
    told: tuple[str, str, str],
    known: Mapping[str, Any],
    bases: tuple[type[Struct], ...],
    others: Mapping[str, Any],
    defaults: Mapping[str, Any] | None,
) -> type[Struct]:
    title, meaning, names = told
    fields = []
    for word in names.split():
        name = word.rstrip("?~*")
        kind: Any = others.get(name, known.get(name))
        words: str | None = None
        if isinstance(kind, str):
            kind, words = known[name], kind
        elif isinstance(kind, tuple):
            kind, words = kind
        kind = list[kind] if "*" in word else kind
        default: Any = NODEFAULT
        if "?" in word:
            kind = kind | None
            default = NODEFAULT if defaults is None else None
        if words:
            kind = Annotated[kind, Meta(description=words)]
        if "~" in word:
            kind, default = kind | UnsetType, UNSET
        fields.append((name, kind, (defaults or {}).get(name, default)))
    return defstruct(title, fields, bases=bases, kw_only=True, namespace={"__doc__": meaning})


def answer_of(record: type, name: str, **others: Any) -> type[Struct]:  # noqa: ANN401 - any types
    """Return the type of an answer that is a record of the client, with its descriptions.

    Times have an offset, and durations are in milliseconds.

    Args:
        record: a dataclass.
        name: name of the type.
        others: types of members that the record lacks or that differ; None for omitted ones.
    """
    names = {"Decimal": Decimal, "datetime": datetime, "timedelta": timedelta, "UUID": UUID}
    types = get_type_hints(record, localns=names)
    words = words_of(record)
    members = {n: kind for n, kind in others.items() if n not in types}
    for attribute, kind in types.items():
        written = others.get(attribute, as_json(kind))
        if attribute not in others and attribute in words:
            written = Annotated[written, Meta(description=words[attribute].replace("None", "null"))]
        if written is not None:
            members[f"{attribute}_ms" if timedelta in kinds_of(kind) else attribute] = written
    meaning = (inspect.getdoc(record) or "").splitlines()[0]
    return defstruct(name, list(members.items()), namespace={"__doc__": meaning})


def as_json(kind: Any) -> Any:  # noqa: ANN401 - any type
    """Return the type in JSON of a type in Python."""
    known: dict[Any, Any] = {
        Any: AnyJson,
        Decimal: float,
        datetime: Moment,
        dict[str, Any]: JsonObject,
        timedelta: int,
    }
    kinds = [known.get(each, each) for each in kinds_of(kind)]
    return Union[tuple(kinds)]  # noqa: UP007 - of any number


def kinds_of(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any type
    """Return the types of a union, or the single type."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def page_of(name: str, meaning: str, item: Any) -> type[Struct]:  # noqa: ANN401 - any type
    """Return the type of a page of a list."""
    return list_of(name, meaning, item, "items", ("cursor", Next))


def list_of(
    name: str,
    meaning: str,
    item: Any,  # noqa: ANN401 - any type
    member: str = "items",
    *others: tuple[str, Any],
) -> type[Struct]:
    """Return the type of an object with one list."""
    return defstruct(name, [(member, list[item]), *others], namespace={"__doc__": meaning})


JobOptions = request(
    "JobOptions",
    "Options of every job.",
    "queue? priority? max_attempts? timeout_ms? metadata?",
)
JobOfKind = request(
    "JobOfKind", "Options of every job of a kind.", "kind payload~ concurrency_key?", JobOptions
)
