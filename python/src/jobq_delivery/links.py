"""Links by which one person answers one question of a job without signing in.

A link contains the question, the person and the time until which it is valid, signed by
HMAC-SHA-256 with the first key of secrets. It is used once, because a question has one answer.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from jobq.errors import InvalidArgument, JobqError
from jobq_delivery.keyring import Keyring

PAGE: Final = "/console/approval?link="
MAX_NAME: Final = 249
MAX_TO: Final = 240
MOST_AUDITED: Final = 256


class LinkInvalid(JobqError, code="LINK_INVALID"):  # noqa: N818 - named as its code
    """A link was not signed by a key of this server, or has expired."""


class Link(msgspec.Struct, frozen=True, array_like=True):
    """What a link contains.

    Attributes:
        job_id: the job.
        name: the name of its question.
        to: the person, for the audit.
        expires_at: until when it is valid, in seconds since 1970.
        by: who made it, for the audit; empty if that is the job itself.
    """

    job_id: UUID
    name: str
    to: str
    expires_at: int
    by: str = ""

    @property
    def answered_by(self) -> str:
        """What the audit has about the person, and who made the link."""
        return (f"link to {self.to}" + (f" by {self.by}" if self.by else ""))[:MOST_AUDITED]


def approval_link(
    url: str,
    job_id: UUID | str,
    name: str,
    *,
    to: str,
    valid_for: timedelta,
    by: str = "",
    keyring: Keyring | None = None,
) -> str:
    """Return the address of a page that shows a question and answers it once.

    Who has the link can answer without signing in: send it to this person only.

    Args:
        url: address of the HTTP server, such as ``https://jobs.example.org``.
        job_id: the job.
        name: the name of the question, which the job may ask later.
        to: the person, for the audit; 1 to 240 characters.
        valid_for: how long.
        by: who makes the link, for the audit.
        keyring: its first key signs; by default the environment's.

    Raises:
        SecretKeyError: there is no key.
        InvalidArgument: an argument is invalid.
    """
    return f"{url.rstrip('/')}{PAGE}{signed(job_id, name, to, valid_for, keyring, by=by)}"


def signed(
    job_id: UUID | str,
    name: str,
    to: str,
    valid_for: timedelta,
    keyring: Keyring | None = None,
    *,
    by: str = "",
) -> str:
    """Return the token of a link; arguments and errors are those of `approval_link`."""
    if not (1 <= len(name) <= MAX_NAME and 1 <= len(to) <= MAX_TO):
        raise InvalidArgument(
            f"a link needs a name of 1 to {MAX_NAME} and a person of 1 to {MAX_TO} characters"
        )
    try:
        until = datetime.now(UTC) + valid_for
        job = UUID(str(job_id))
    except (OverflowError, ValueError) as error:
        raise InvalidArgument(
            "a link needs a job id and a valid time", detail=str(error)
        ) from error
    text = msgspec.json.encode(Link(job, name, to, int(until.timestamp()), by))
    ring = Keyring.from_environment() if keyring is None else keyring
    return f"{_written(text)}.{_written(ring.sign(text))}"


def read(token: str, keyring: Keyring | None = None) -> Link:
    """Return what a token contains, or raise LinkInvalid."""
    ring = Keyring.from_environment() if keyring is None else keyring
    text, _, signature = token.partition(".")
    try:
        content = _read(text)
        is_signed = ring.is_signed(content, _read(signature))
    except (ValueError, UnicodeEncodeError):
        is_signed = False
    if not is_signed:
        raise LinkInvalid("the link is invalid")
    link = msgspec.json.decode(content, type=Link)
    if link.expires_at <= datetime.now(UTC).timestamp():
        raise LinkInvalid("the link has expired", detail=link.name)
    return link


def _written(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _read(text: str) -> bytes:
    return urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
