"""The values that requests and answers are made of, with their limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw

Name = Annotated[str, Meta(min_length=1, max_length=128)]
KeyText = Annotated[str, Meta(min_length=1, max_length=512)]
Reason = Annotated[str, Meta(max_length=512)]
Priority = Annotated[int, Meta(ge=-32768, le=32767)]
Attempts = Annotated[int, Meta(ge=1, le=10000)]
Milliseconds = Annotated[int, Meta(ge=1, le=31_536_000_000)]
Json = Annotated[Raw, Meta(description="Any JSON, kept to the last digit.")]
JsonMembers = dict[str, Raw]
Dedup = Literal["skip", "enqueue", "replace"]

State = Literal["queued", "running", "retrying", "succeeded", "dead", "cancelled"]
Status = Literal["PENDING", "QUEUED", "RUNNING", "RETRYING", "SUCCESS", "FAILED", "CANCELLED"]
Trigger = Literal["IMMEDIATE", "DELAYED", "CRON"]
EndpointType = Literal["HTTP", "KAFKA", "REDIS_STREAM"]
Level = Literal["DEBUG", "INFO", "WARN", "ERROR"]
Moment = Annotated[datetime, Meta(tz=True)]
AnyJson = Annotated[Any, Meta(description="Any JSON.")]
JsonObject = Annotated[dict[str, Any], Meta(description="A JSON object.")]
