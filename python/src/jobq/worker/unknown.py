"""The kinds that a worker has met and has no handler for: their jobs are left to others."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from jobq.settlement import Released

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CODE", "Unknown"]

CODE: Final = "UNKNOWN_KIND"
# Seconds after which a kind is tried again, where handlers may come to be: endpoints.
FORGET: Final = 60.0
# For how long a job is left alone that was claimed all the same, by its concurrency key.
PUT_OFF: Final = timedelta(seconds=30)


class Unknown:
    """The kinds that a worker does not know.

    Args:
        is_lasting: whether what is unknown stays so, as it does where all handlers are
            registered before the start.

    Attributes:
        functions: those of them that are functions of the database.
        on_met: called with the kind of a job that has come, and why it cannot be done here.
    """

    def __init__(self, *, is_lasting: bool) -> None:
        self._is_lasting = is_lasting
        self._since: dict[str, float] = {}
        self.functions: set[str] = set()
        self.on_met: Callable[[str, str], None] = lambda _kind, _text: None

    def kinds(self) -> list[str] | None:
        """Return the kinds that the worker leaves to others; None when there are none."""
        if not self._since:
            return None
        if not self._is_lasting:
            oldest = time.monotonic() - FORGET
            self._since = {
                kind: met
                for kind, met in self._since.items()
                if met > oldest or kind in self.functions
            }
        return list(self._since) or None

    def met(self, kind: str, text: str) -> Released:
        """Note a kind, and return how its job is given back."""
        self._since.setdefault(kind, time.monotonic())
        self.on_met(kind, text)
        return Released()

    def put_off(self, kind: str) -> Released:
        """Return how a job is given back that came though its kind was to be left to others."""
        is_done_here = kind in self.functions
        return Released(PUT_OFF, None if is_done_here else (CODE, f"no handler of kind {kind}"))
