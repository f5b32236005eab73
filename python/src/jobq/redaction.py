"""Removes secrets from errors that are stored or shown."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Final

MAX_ERROR: Final = 512
# Characters. The end of a traceback is kept, which contains the exception.
MAX_TRACEBACK: Final = 4096
_WORKER: Final = str(Path(__file__).parent / "worker")
_LOOKED_AT: Final = 16 * MAX_ERROR

_VALUE: Final = r"(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s,;&)}\]]+)"
_NAMES: Final = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|credential|"
    r"api[-_]?key|access[-_]?key|private[-_]?key)"
)
# The part after the scheme of a URL, up to the next URL: nothing is searched twice.
_URL: Final = re.compile(r"(?<=://)(?:(?!://)[^\s'\"])+")
_USERINFO: Final = re.compile(r"\A(?:[^/@:]*:(?!\d+(?:[/?#]|$)).*|[^/]+)(?=@)", re.DOTALL)
# Patterns and their replacements.
_FORMS: Final = [
    (re.compile(form, re.IGNORECASE), shown)
    for form, shown in (
        (r"(cookie[\"']?\s*[:=]\s*)(?:\"[^\"]*\"|'[^']*'|[^\r\n\"']+)", r"\1***"),
        (
            r"(authorization[\"']?\s*[:=]\s*)"
            r"(?:\"[^\"]*\"|'[^']*'|(?:[a-z][\w-]*\s+)?[^\s,;&)}\]]+)",
            r"\1***",
        ),
        (
            r"\b(bearer|basic|digest|token|apikey|negotiate|ntlm|hawk)\s+[-\w.~+/=]{8,}",
            r"\1 ***",
        ),
        (_NAMES.join(("(", r"[\w-]{0,64}[\"']?\s*[:=]\s*)")) + _VALUE, r"\1***"),
        (r"(\b(?:key|sig|signature)=)" + _VALUE, r"\1***"),
        (
            r"((?<![\w-])--[\w-]{0,64}(?:pass(?:word|wd|phrase)?|pwd|secret|token|key)\s+)"
            r"(?:\"[^\"]*\"|'[^']*'|\S+)",
            r"\1***",
        ),
    )
]


def redacted(text: str) -> str:
    """Return a text without tokens, and without user names and passwords of URLs.

    jobq_private.redacted_text() in the database does the same.
    """
    if "@" in text:
        text = _URL.sub(lambda url: _USERINFO.sub("***", url[0], count=1), text)
    for form, shown in _FORMS:
        text = form.sub(shown, text)
    return text


def error_text(error: object) -> str:
    """Return the text of an error to store: redacted, at most 512 characters.

    The database accepts neither NUL nor half a surrogate pair.
    """
    if isinstance(error, BaseException):
        words = _words(error)
        text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    else:
        text = _words(error)
    text = text[:_LOOKED_AT].replace("\0", "\ufffd")
    text = text.encode("utf-8", "replace").decode()
    return redacted(text)[:MAX_ERROR]


def traceback_text(error: BaseException) -> str:
    """Return the traceback of an error and its causes, redacted, at most 4,096 characters.

    It begins with the handler, without the worker's frames.
    """
    try:
        told = traceback.TracebackException.from_exception(error, compact=True)
        while told.stack and told.stack[0].filename.startswith(_WORKER):
            del told.stack[0]
        text = "".join(told.format()).rstrip()
    except BaseException:  # it cannot be shown: its text, its cause or its notes fail
        return ""
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if len(text) > 4 * MAX_TRACEBACK:
        text = text[-4 * MAX_TRACEBACK :]
    text = redacted(text)
    return text if len(text) <= MAX_TRACEBACK else "…" + text[1 - MAX_TRACEBACK :]


def _words(said: object) -> str:
    """Return an object as text; empty if its conversion fails."""
    try:
        return str(said)
    except BaseException:
        return ""
