"""Signatures of webhooks, by the scheme of standardwebhooks.com."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from typing import Final

__all__ = ["signed"]

PREFIX: Final = "whsec_"


def signed(webhook_id: str, body: bytes, secret: str, now: float | None = None) -> dict[str, str]:
    """Return the headers that sign a body.

    Args:
        webhook_id: the same for every attempt.
        body: as it is sent.
        secret: ``whsec_`` and base64, or any text; several, with spaces between them, give
            a signature each, so that a secret can be changed without a gap.
        now: the time in seconds; by default the clock's.
    """
    timestamp = str(int(time.time() if now is None else now))
    message = f"{webhook_id}.{timestamp}.".encode() + body
    signatures = [
        "v1," + b64encode(hmac.digest(key_of(one), message, hashlib.sha256)).decode()
        for one in secret.split()
    ]
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(signatures),
    }


def key_of(secret: str) -> bytes:
    """Return the key of a secret: its base64 after ``whsec_``, else its own bytes."""
    if secret.startswith(PREFIX):
        try:
            return b64decode(secret.removeprefix(PREFIX), validate=True)
        except ValueError:
            pass
    return secret.encode()
