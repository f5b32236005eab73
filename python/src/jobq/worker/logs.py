"""Log lines as JSON or for people; those about a job say which, wherever they come from."""

from __future__ import annotations

import logging
import sys
import time
from contextlib import suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

import msgspec

from jobq.redaction import redacted
from jobq.unseen import in_line, visible

if TYPE_CHECKING:
    from jobq.worker.held import Held

__all__ = ["Format", "Sparing", "configure_logging", "current_job", "job_fields"]

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
    handler = Lines(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PrettyFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in ("httpx", "httpcore", "mail.log", "asyncio", "psycopg.pool"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


class Lines(logging.StreamHandler[TextIO]):
    """Writes lines; one that cannot be written ends nothing."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Write to standard error again where a handler has closed Python's object for it."""
        with suppress(OSError, ValueError):
            if self.stream.closed:
                # Not by setStream(), which flushes the old one.
                self.stream = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
                self.emit(record)
            else:
                super().handleError(record)


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


# Seconds in which one complaint is logged once: an outage is told, and does not fill the log.
QUIET: Final = 30.0


class Sparing:
    """Logs the same complaint once in a while, and for debugging always.

    Args:
        logger: where to.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def warning(self, message: str, *arguments: object) -> None:
        """Log a warning, unless the same was logged a moment ago."""
        self._log(logging.WARNING, message, arguments)

    def error(self, message: str, *arguments: object) -> None:
        """Log an error, unless the same was logged a moment ago."""
        self._log(logging.ERROR, message, arguments)

    def _log(self, level: int, message: str, arguments: tuple[object, ...]) -> None:
        now = time.monotonic()
        if now - self._told_at.get(message, float("-inf")) < QUIET:
            self._left_out[message] = self._left_out.get(message, 0) + 1
            self._logger.debug(message, *arguments)
            return
        self._told_at[message] = now
        left_out = self._left_out.pop(message, 0)
        again = f" (and {left_out} times since it was last said)" if left_out else ""
        self._logger.log(level, message + "%s", *arguments, again)


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
        text += in_line(redacted(record.getMessage()) + (f"  {rest}" if rest else ""))
        if record.exc_info:
            text += "\n" + visible(redacted(self.formatException(record.exc_info)))
        return text
