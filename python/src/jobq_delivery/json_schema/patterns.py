"""Bounds of a validation: patterns of RE2, and a time limit.

RE2 matches in linear time, and refuses patterns for which it cannot.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import re2

SECONDS: Final = 2.0

deadline: ContextVar[float] = ContextVar("jobq_schema_deadline")
"""The CPU time of this thread at which the validation is ended."""


class TooSlow(Exception):  # noqa: N818 - as it reads
    """A validation has exceeded its time limit."""


def check_time() -> None:
    """End a validation that has exceeded its time limit.

    Raises:
        TooSlow: it has.
    """
    if time.thread_time() > deadline.get():
        raise TooSlow


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - RE2 has no types
    """Return a compiled pattern of RE2.

    Raises:
        re2.error: it is invalid.
    """
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def pattern_problem(pattern: str) -> str | None:
    """Return why a pattern cannot be used, or None."""
    try:
        compiled(pattern)
    except re2.error as error:
        said = error.args[0] if error.args else error
        why = said.decode() if isinstance(said, bytes) else str(said)
        return f"pattern {pattern!r} cannot be checked in linear time: {why}"
    return None
