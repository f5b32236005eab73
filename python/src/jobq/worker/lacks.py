"""What a worker cannot do jobs for: a key, a driver, a handler; and for jobs of which kinds."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Lacks"]

# Kinds that are kept for one code, since whoever enqueues may name them as they like.
MOST: Final = 1000
# Kinds that are named for one code.
NAMED: Final = 20


class Lacks:
    """The kinds that a worker cannot do, by a code and a text that say what it lacks."""

    def __init__(self) -> None:
        self._met: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._told: dict[str, dict[str, str]] = {}

    def met(self, kind: str, code: str, text: str) -> None:
        """Note what was lacking for a job that had come."""
        kinds = self._met[code]
        if kind in kinds or len(kinds) < MOST:
            kinds[kind] = text

    def told(self, kinds: Mapping[str, tuple[str, str]]) -> None:
        """Note all that is known beforehand, instead of that of the last time."""
        told: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for kind, (code, text) in kinds.items():
            told[code][kind] = text
        self._told = dict(told)

    @property
    def left(self) -> dict[str, int]:
        """How many kinds are left to others, by the code, as was known beforehand."""
        return {code: len(kinds) for code, kinds in self._told.items()}

    def texts(self, *, is_told: bool = False) -> dict[str, str]:
        """Return in words, by the code, which kinds, and what is lacking for them.

        Args:
            is_told: whether to tell only of what was known beforehand.
        """
        codes = self._told if is_told else {**self._met, **self._told}
        met = {} if is_told else self._met
        return {code: words({**met.get(code, {}), **self._told.get(code, {})}) for code in codes}


def words(kinds: Mapping[str, str]) -> str:
    """Return which kinds lack what, those of the same together, at most NAMED of them."""
    named = sorted(kinds)[:NAMED]
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for kind in named:
        groups[kinds[kind]].append(kind)
    said = [f"{', '.join(group)}: {text}" for text, group in groups.items()]
    if len(kinds) > NAMED:
        said.append(f"and {len(kinds) - NAMED} more")
    return "; ".join(said)
