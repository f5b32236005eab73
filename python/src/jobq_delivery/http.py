"""Delivery over HTTP: from a message to a request, and from a response to its stored part."""

from __future__ import annotations

import asyncio
import re
import ssl
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final

import httpcore
import httpx

from jobq.models import Json
from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.address import AddressRefused, Guard
from jobq_delivery.connections import Connections
from jobq_delivery.mask import Mask
from jobq_delivery.message import Message
from jobq_delivery.signature import signed
from jobq_delivery.template import as_json, as_text

EXPECTED: Final = (200, 201, 202, 204)
# With Retry-After, these statuses apply to other requests too.
HOLDING: Final = (429, 503)
SENDABLE: Final = re.compile(r"[\t\x20-\x7e]*")
TIMEOUT_MS: Final = 10_000
MAX_BODY: Final = 65_536
MAX_EXCERPT: Final = 200
MAX_RETRY_AFTER: Final = 86_400.0


class HttpSender:
    """Sends messages to HTTP targets."""

    def __init__(self, guard: Guard, trust: ssl.SSLContext) -> None:
        self._connections = Connections(guard, trust)

    async def close(self) -> None:
        """Close every connection."""
        await self._connections.close()

    async def send(self, message: Message) -> dict[str, Json]:
        """Send a message and return the stored part of the response.

        Raises:
            Retry: TIMEOUT, CONNECTION_ERROR, CERTIFICATE_REFUSED, or HTTP_ERROR for a status
                that is not expected.
            Permanent: REQUEST_INVALID or ADDRESS_REFUSED.
        """
        url, host = target_of(as_text(message.spec["url"]))
        headers, content = head_of(message)
        fields = [(n.encode(), value.encode()) for n, value in {"host": host, **headers}.items()]
        method, seconds = message.spec.get("method", "POST"), message.seconds(TIMEOUT_MS)
        request = httpcore.Request(method, url, headers=fields, content=content)
        try:
            async with asyncio.timeout(seconds):
                async with self._connections.request(request) as response:
                    status = response.status
                    asked = header(response, b"retry-after")
                    body = await kept(response, message.mask)
        except TimeoutError:
            raise Retry(f"no answer within {seconds:g} s", code="TIMEOUT") from None
        except AddressRefused as error:
            raise Permanent("ADDRESS_REFUSED", str(error)) from None
        except httpcore.LocalProtocolError:
            raise Permanent("REQUEST_INVALID", "a header is not valid HTTP") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise _failure(error) from None
        output = {"status_code": status, **body}
        if status not in message.spec.get("expected_status_codes", EXPECTED):
            excerpt = body["body"][:MAX_EXCERPT]
            raise HttpError(
                f"status {status}: {excerpt}".rstrip(": "),
                code="HTTP_ERROR",
                in_=retry_after(asked),
                details={"status_code": status},
                answer=body["body"],
                holds_key=status in HOLDING and asked is not None,
            )
        return output


class HttpError(Retry):
    """The target answered with an unexpected status."""

    def __init__(self, message: str, *, answer: str, **outcome: Any) -> None:  # noqa: ANN401
        super().__init__(message, **outcome)
        self.answer = answer


def head_of(message: Message) -> tuple[dict[str, str], bytes]:
    """Return the headers (without Host) and the body of a message's request."""
    spec, webhook_id = message.spec, str(message.job_id)
    headers = {"idempotency-key": webhook_id, "webhook-id": webhook_id}
    headers |= {"accept": "*/*", "accept-encoding": "identity", "user-agent": "jobq"}
    headers["jobq-attempt"] = str(message.attempt)
    content = b""
    if spec.get("body_template") is not None:
        content = as_json(spec["body_template"])
        headers["content-type"] = "application/json"
    headers |= {
        name.lower(): as_text(v).strip(" \t") for name, v in spec.get("headers", {}).items()
    }
    if "sign_with" in spec:
        headers |= signed(webhook_id, content, message.secrets[spec["sign_with"]])
    if content or spec.get("method") != "GET":
        headers["content-length"] = str(len(content))
    if not all(map(SENDABLE.fullmatch, headers.values())):
        raise Permanent("REQUEST_INVALID", "a header is not ASCII, or has a line break")
    return headers, content


@lru_cache(maxsize=256)
def target_of(text: str) -> tuple[httpcore.URL, str]:
    """Return a URL, and its Host header."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise Permanent("REQUEST_INVALID", "the URL is not valid") from None
    if url.scheme not in ("http", "https") or not url.raw_host:
        raise Permanent("REQUEST_INVALID", "the URL must be http:// or https:// and a host")
    if url.userinfo:
        raise Permanent("REQUEST_INVALID", "the URL must not hold a user or a password")
    place = httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )
    return place, url.netloc.decode()


async def kept(response: httpcore.Response, mask: Mask) -> dict[str, Any]:
    """Return the masked beginning of a response's body, and whether there was more."""
    body = b""
    # Reads further, to find a secret that crosses the end.
    most = MAX_BODY + mask.longest
    async for chunk in response.aiter_stream():
        body += chunk
        if len(body) > most:
            break
    text = body[:most].decode("utf-8", "replace").replace("\0", "\ufffd")
    length = len(body[:MAX_BODY].decode("utf-8", "replace"))
    found: dict[str, Any] = {"body": mask.text(text, length)}
    if len(body) > MAX_BODY:
        found["body_truncated"] = True
    return found


def header(response: httpcore.Response, name: bytes) -> str | None:
    """Return a header of an answer, or None."""
    found = [value for key, value in response.headers if key.lower() == name]
    return found[0].decode("latin-1") if found else None


def retry_after(value: str | None) -> timedelta | None:
    """Return the wait in a Retry-After header, in seconds or as a date.

    At most a day; None if it is missing, zero or invalid.
    """
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    if not 0 < seconds < float("inf"):
        return None
    return timedelta(seconds=min(seconds, MAX_RETRY_AFTER))


def _failure(error: Exception) -> Retry:
    """Return the text of a connection error without its address."""
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        reason = error.__cause__.verify_message
        return Retry(f"the target's certificate is refused: {reason}", code="CERTIFICATE_REFUSED")
    names: dict[type[Exception], str] = {
        httpcore.ConnectError: "cannot connect",
        httpcore.ReadError: "the connection was lost",
        httpcore.WriteError: "the connection was lost",
        httpcore.RemoteProtocolError: "the target does not speak HTTP, or hung up",
    }
    return Retry(names.get(type(error), type(error).__name__), code="CONNECTION_ERROR")
