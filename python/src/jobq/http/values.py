"""The values that requests are made of, with their limits."""

from __future__ import annotations

from typing import Annotated, Literal

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
