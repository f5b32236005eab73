"""Signatures of webhooks by the scheme of standardwebhooks.com."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from typing import Final

from jobq.registry.outcomes import Retry

PREFIX: Final = "whsec_"


def signed(webhook_id: str, body: bytes, secret: str, now: float | None = None) -> dict[str, str]:
    """Return the headers that sign a body.

    Args:
        webhook_id: the same for every attempt.
        body: as it is sent.
        secret: ``whsec_`` and base64, or any text; several, separated by spaces, give a
            signature each, so that a secret can be rotated without a gap.
        now: the time in seconds; by default the clock's.

    Raises:
        Retry: SECRET_INVALID, for a secret that is not a key.
    """
    timestamp = str(int(time.time() if now is None else now))
    message = f"{webhook_id}.{timestamp}.".encode() + body
    signatures = [
        "v1," + b64encode(hmac.digest(key_of(one), message, hashlib.sha256)).decode()
        for one in secret.split() or [""]
    ]
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signatures),
    }


def key_of(secret: str) -> bytes:
    """Return the key of a secret: its base64 after ``whsec_``, else its own bytes.

    SECRET_INVALID if receivers could not check the signature, or anybody could forge it.
    """
    try:
        is_encoded = secret.startswith(PREFIX)
        key = b64decode(secret[len(PREFIX) :], validate=True) if is_encoded else secret.encode()
    except ValueError:
        raise Retry(
            "what the endpoint signs with is not base64 after whsec_", code="SECRET_INVALID"
        ) from None
    if not key:
        raise Retry("what the endpoint signs with is empty", code="SECRET_INVALID")
    return key
