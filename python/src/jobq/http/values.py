"""The values that requests and answers are made of, with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Raw, Struct

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
Json = Annotated[Raw, Meta(description="Any JSON, kept to the last digit.")]
JsonMembers = dict[str, Raw]
Dedup = Literal["skip", "enqueue", "replace", "debounce", "throttle"]
ScheduleDedup = Literal["skip", "enqueue", "replace"]
AfterFailure = Literal["cancel", "wait", "run"]

State = Literal["blocked", "queued", "running", "retrying", "succeeded", "dead", "cancelled"]
Status = Literal["PENDING", "QUEUED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED"]
Trigger = Literal["IMMEDIATE", "DELAYED", "CRON"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]
Vocabulary = Annotated[
    Literal["kind", "endpoint"] | None,
    Meta(description="What a job is given is its payload (kind) or its input (endpoint)."),
]
Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
Moment = Annotated[datetime, Meta(tz=True)]
AnyJson = Annotated[Any, Meta(description="Any JSON.")]
JsonObject = Annotated[dict[str, Any], Meta(description="A JSON object.")]


class Request(Struct, forbid_unknown_fields=True):
    """The body of a request, or a part of one."""

    def __post_init__(self) -> None:
        """Take 5.0 for 5, where a whole number is meant."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, float) and value.is_integer():
                setattr(self, name, int(value))
