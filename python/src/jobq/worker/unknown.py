"""The kinds that a worker cannot do, as it was told or has met: their jobs are left to others."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from jobq.settlement import Released

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CODE", "FORGET", "NO_HANDLER", "Unknown"]

CODE: Final = "UNKNOWN_KIND"
NO_HANDLER: Final = "no handler of this kind"
# Seconds after which a kind is tried again, where handlers may come to be: endpoints.
FORGET: Final = 60.0
# For how long a job is left alone that was claimed all the same, by its concurrency key.
PUT_OFF: Final = timedelta(seconds=30)


class Unknown:
    """The kinds that a worker cannot do, each with the reason: a code and a text.

    Args:
        is_lasting: whether what is unknown stays so, as it does where all handlers are
            registered before the start.

    Attributes:
        functions: those of them that are functions of the database.
        on_met: called with the kind of a job that has come, and the reason.
    """

    def __init__(self, *, is_lasting: bool) -> None:
        self._is_lasting = is_lasting
        self._met: dict[str, tuple[float, tuple[str, str]]] = {}
        self._told: Mapping[str, tuple[str, str]] = {}
        self.functions: set[str] = set()
        self.on_met: Callable[[str, str, str], None] = lambda _kind, _code, _text: None

    def kinds(self) -> list[str] | None:
        """Return the kinds that the worker leaves to others; None when there are none."""
        if not self._met and not self._told:
            return None
        if not self._is_lasting:
            oldest = time.monotonic() - FORGET
            self._met = {
                kind: (since, reason)
                for kind, (since, reason) in self._met.items()
                if since > oldest or kind in self.functions
            }
        return list({**self._met, **self._told}) or None

    def met(self, kind: str, text: str, code: str = CODE) -> Released:
        """Note a kind, and return how its job is given back."""
        self._met.setdefault(kind, (time.monotonic(), (code, text)))
        self.on_met(kind, code, text)
        return Released()

    def told(self, kinds: Mapping[str, tuple[str, str]]) -> None:
        """Note all kinds that are known beforehand, instead of those of the last time."""
        self._told = kinds

    def put_off(self, kind: str) -> Released:
        """Return how a job is given back that came though its kind was to be left to others."""
        if kind in self.functions:
            return Released(PUT_OFF)
        _, reason = self._met.get(kind, (0.0, (CODE, NO_HANDLER)))
        return Released(PUT_OFF, self._told.get(kind, reason))
