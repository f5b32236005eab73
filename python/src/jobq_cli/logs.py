"""Log lines as JSON or as text; lines about a job contain its id."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import msgspec

from jobq.redaction import redacted
from jobq.worker.metrics import fields_of
from jobq_operations.visible import in_line, visible

Format = Literal["json", "pretty"]

_STANDARD: Final = frozenset(
    (*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "job_fields")
)


def configure_logging(form: Format, level: int = logging.INFO) -> None:
    """Write the log to standard error: one JSON object per line, or text."""
    handler = Lines(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PrettyFormatter())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in ("httpx", "httpcore", "mail.log", "asyncio", "psycopg.pool"):
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


class Lines(logging.StreamHandler[TextIO]):
    """Writes lines; ignores lines that cannot be written."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Open standard error again if a handler has closed Python's object for it."""
        with suppress(OSError, ValueError):
            if self.stream.closed:
                # Not by setStream(), which flushes the old one.
                self.stream = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
                self.emit(record)
            else:
                super().handleError(record)


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a line besides its message: of its job, and of ``extra``."""
    return fields_of(record) | {k: v for k, v in vars(record).items() if k not in _STANDARD}


def trace_of(record: logging.LogRecord) -> str | None:
    """Return the traceback of a line, if it has one."""
    if record.exc_info:
        return logging.Formatter().formatException(record.exc_info)
    return record.exc_text


class JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname,
            "logger": record.name,
            "message": redacted(record.getMessage()),
            **fields(record),
        }
        if trace := trace_of(record):
            line["exception"] = redacted(trace)
        return msgspec.json.encode(line, enc_hook=str).decode()


class PrettyFormatter(logging.Formatter):
    """A line of text: time, level, message, and other fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line."""
        time = datetime.fromtimestamp(record.created, UTC).astimezone()
        known = {k: v for k, v in fields(record).items() if v is not None}
        rest = " ".join(f"{name}={value}" for name, value in known.items())
        text = f"{time:%H:%M:%S}.{time.microsecond // 1000:03} {record.levelname:<7} "
        text += in_line(redacted(record.getMessage()) + (f"  {rest}" if rest else ""))
        if trace := trace_of(record):
            text += "\n" + visible(redacted(trace))
        return text
