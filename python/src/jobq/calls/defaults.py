"""Calls that show the settings of jobs and change the global defaults."""

from __future__ import annotations

from datetime import timedelta

from jobq.calls.call import Call, nothing, scalar
from jobq.models import Json


def settings(kind: str | None = None, queue: str | None = None) -> Call[dict[str, Json]]:
    """Return the settings of a job of this kind in this queue."""
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
    """Change global defaults. None leaves a default unchanged.

    Args:
        priority: higher values run first.
        max_attempts: maximum number of failed attempts.
        timeout: timeout of each attempt.
        lease: how long a claim is valid without a heartbeat.
        retry_preset: see `put_kind`.
        dedup: see `enqueue`.
        reuse_key_after_failure: see `put_kind`.
        max_expiries: number of expired leases after which a job is dead.
        max_payload_bytes: maximum size of payload and metadata together.
        max_payload_depth: maximum nesting.
        retention: how long finished jobs are kept.
        key_retention: how long idempotency keys are kept.
        redact_emails: whether stored errors are kept free of e-mail addresses.
    """
    return Call("configure", locals(), nothing)
