"""Deliver a webhook: work that waits for a network, so a coroutine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from jobq.registry import Permanent, Retry

if TYPE_CHECKING:
    from jobq.registry import JobContext

TIMEOUT = 10.0
TRANSIENT = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """What to send, and where.

    Args:
        url: the receiver, http or https.
        body: sent as JSON.
    """

    url: str
    body: dict[str, Any]


async def webhook_delivery(payload: WebhookDelivery, context: JobContext) -> dict[str, int]:
    """POST the body, with the job's id, so that the receiver can detect repeats.

    Raises:
        Permanent: the receiver refused it (4xx except 408, 425 and 429), or the URL is invalid.
        Retry: the receiver asked for a delay.
        httpx.HTTPError: other errors, after which the job is retried.
    """
    headers = {"Idempotency-Key": str(context.job_id)}
    async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
        try:
            response = await client.post(payload.url, json=payload.body, headers=headers)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise Permanent("INVALID_URL", str(error)) from error
    wait = response.headers.get("retry-after", "")
    if response.status_code in TRANSIENT and wait.isdecimal():
        raise Retry(in_=timedelta(seconds=int(wait)))
    if response.is_client_error and response.status_code not in TRANSIENT:
        raise Permanent("REFUSED", f"the receiver answered {response.status_code}")
    response.raise_for_status()
    return {"status_code": response.status_code}
