"""Settings: the calls that show what holds for a job and change the global defaults."""

from __future__ import annotations

from datetime import timedelta

from jobq.calls.call import Call, nothing, scalar
from jobq.models import Json


def settings(kind: str | None = None, queue: str | None = None) -> Call[dict[str, Json]]:
    """Show what would hold for a job of this kind in this queue."""
    return Call("settings", locals(), scalar)


def configure(
    *,
    priority: int | None = None,
    max_attempts: int | None = None,
    timeout: timedelta | str | None = None,
    lease: timedelta | str | None = None,
    retry_preset: str | None = None,
    dedup: str | None = None,
    reuse_key_after_failure: bool | None = None,
    max_expiries: int | None = None,
    max_payload_bytes: int | None = None,
    max_payload_depth: int | None = None,
    retention: timedelta | str | None = None,
    key_retention: timedelta | str | None = None,
    redact_emails: bool | None = None,
) -> Call[None]:
    """Change global defaults; None leaves a default as it is.

    Args:
        priority: of jobs; higher runs first.
        max_attempts: how many attempts may fail.
        timeout: of each attempt.
        lease: how long a claim holds without a heartbeat.
        retry_preset: how long failed jobs wait.
        dedup: what a dedup key does.
        reuse_key_after_failure: whether a failed job gives its idempotency key back.
        max_expiries: so many expired leases kill a job.
        max_payload_bytes: of payload and metadata together.
        max_payload_depth: levels of nesting.
        retention: how long finished jobs are kept.
        key_retention: how long idempotency keys are kept.
        redact_emails: whether e-mail addresses are kept out of stored errors too.

    Raises:
        InvalidArgument: a value is out of range.
    """
    return Call("configure", locals(), nothing)
