"""Log lines as JSON or for people; those about a job say which, wherever they come from."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from jobq.redaction import redacted

if TYPE_CHECKING:
    from jobq.worker.held import Held

__all__ = ["Format", "configure_logging", "current_job", "job_fields"]

Format = Literal["json", "pretty"]

current_job: ContextVar[tuple[Held, str] | None] = ContextVar("jobq_current_job", default=None)
"""The job whose handler runs, and the worker's name."""

_STANDARD: Final = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "job_fields")
)


def configure_logging(form: Format, level: int = logging.INFO) -> None:
    """Send the log to standard error in this form.

    Args:
        form: ``json``, an object a line; or ``pretty``, for people.
        level: the least level that is shown.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PrettyFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in ("httpx", "httpcore", "mail.log", "asyncio"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def job_fields(held: Held, worker: str) -> dict[str, Any]:
    """Return what every line about a job says."""
    return {
        "job_id": held.job_id,
        "kind": held.kind,
        "attempt": held.attempt,
        "queue": held.queue,
        "worker": worker,
        "idempotency_key": held.idempotency_key,
    }


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a line says beside its message: of its job, and by ``extra``."""
    fields: dict[str, Any] = {}
    job = getattr(record, "job_fields", None)
    if job is not None:
        fields.update(job)
    elif (current := current_job.get()) is not None:
        fields.update(job_fields(*current))
    return fields | {k: v for k, v in vars(record).items() if k not in _STANDARD}


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **fields_of(record),
        }
        if record.exc_info:
            line["exception"] = redacted(self.formatException(record.exc_info))
        return msgspec.json.encode(line, enc_hook=str).decode()


class PrettyFormatter(logging.Formatter):
    """A line for people: time, level, message, and what is known besides."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        time = datetime.fromtimestamp(record.created, UTC).astimezone()
        known = {k: v for k, v in fields_of(record).items() if v is not None}
        rest = " ".join(f"{name}={value}" for name, value in known.items())
        text = f"{time:%H:%M:%S}.{time.microsecond // 1000:03} {record.levelname:<7} "
        text += redacted(record.getMessage()) + (f"  {rest}" if rest else "")
        if record.exc_info:
            text += "\n" + redacted(self.formatException(record.exc_info))
        return text
