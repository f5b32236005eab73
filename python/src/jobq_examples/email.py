"""Send an e-mail over SMTP."""

from __future__ import annotations

import os
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage
from typing import TYPE_CHECKING

from jobq.registry import Permanent

if TYPE_CHECKING:
    from jobq.registry import JobContext

TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class SendEmail:
    """A message.

    Args:
        to: the recipient's address.
        subject: one line.
        body: plain text.
    """

    to: str
    subject: str
    body: str


def send_email(payload: SendEmail, context: JobContext) -> dict[str, str]:
    """Hand a message to the server in SMTP_HOST and SMTP_PORT (localhost, 25).

    Message-ID contains the job's id, so that repeats can be detected.

    Raises:
        Permanent: the address or subject is invalid, or the server refused it (5xx).
        OSError: the server cannot be reached or asks to try again; the job is retried.
    """
    message = EmailMessage()
    try:
        message["From"] = os.environ.get("SMTP_FROM", "jobq@localhost")
        message["To"] = payload.to
        message["Subject"] = payload.subject
    except ValueError as error:
        raise Permanent("INVALID_HEADER", str(error)) from error
    message["Message-ID"] = f"<{context.job_id}@jobq>"
    message.set_content(payload.body)

    host = os.environ.get("SMTP_HOST", "localhost")
    port = int(os.environ.get("SMTP_PORT", "25"))
    with smtplib.SMTP(host, port, timeout=TIMEOUT) as server:
        try:
            server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            code, reply = next(iter(error.recipients.values()))
            if code >= 500:
                raise Permanent("RECIPIENT_REFUSED", reply.decode(errors="replace")) from error
            raise
    return {"message_id": str(message["Message-ID"])}
