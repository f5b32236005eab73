"""Keep secrets out of what is stored and shown about an error."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_ERROR", "error_text", "redacted"]

MAX_ERROR: Final = 512
_LOOKED_AT: Final = 16 * MAX_ERROR

_USERINFO: Final = re.compile(r"(?<=://)[^/\s@'\"]+(?=@)")
_CREDENTIAL: Final = re.compile(r"\b(bearer|basic|digest|token)\s+[-\w.~+/=]{8,}", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"((?:authorization|cookie|pass(?:word|wd|phrase)?|secret|token|api[-_]?key|"
    r"access[-_]?key|private[-_]?key)[\w-]*[\"']?\s*[:=]\s*)"
    r"(?:\"[^\"]*\"|'[^']*'|[^\s,;&)}\]]+)",
    re.IGNORECASE,
)


def redacted(text: str) -> str:
    """Return a text without user names and passwords of URLs, tokens and the like."""
    text = _USERINFO.sub("***", text)
    text = _CREDENTIAL.sub(r"\1 ***", text)
    return _NAMED.sub(r"\1***", text)


def error_text(error: object) -> str:
    """Return what may be stored of an error: its words, redacted, at most 512 characters.

    The database takes neither NUL nor half a surrogate pair.
    """
    if isinstance(error, BaseException):
        words = _words(error)
        text = f"{type(error).__name__}: {words}" if words else type(error).__name__
    else:
        text = _words(error)
    text = text[:_LOOKED_AT].replace("\0", "\ufffd")
    text = text.encode("utf-8", "replace").decode()
    return redacted(text)[:MAX_ERROR]


def _words(said: object) -> str:
    """Return anything as text; what cannot be shown has none."""
    try:
        return str(said)
    except BaseException:
        return ""
