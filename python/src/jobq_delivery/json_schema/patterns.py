"""What bounds a check against a schema: RE2's patterns, and a clock.

RE2 matches in a time linear in the text, and refuses patterns that cannot be matched so.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import re2

__all__ = ["SECONDS", "TooSlow", "compiled", "deadline", "look_at_the_clock", "pattern_problem"]

SECONDS: Final = 2.0

deadline: ContextVar[float] = ContextVar("jobq_schema_deadline")
"""Where the CPU clock of this thread will be when the check has taken too long."""


class TooSlow(Exception):  # noqa: N818 - what happened
    """A check has used up its time."""


def look_at_the_clock() -> None:
    """End a check that has used up its time.

    Raises:
        TooSlow: it has.
    """
    if time.thread_time() > deadline.get():
        raise TooSlow


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:  # noqa: ANN401 - RE2 has no types
    """Return a pattern of RE2's.

    Raises:
        re2.error: it is none.
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
