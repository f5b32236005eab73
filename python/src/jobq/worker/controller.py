"""What to claim: how many jobs, in which slots, and which kinds not; and how long to wait."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from jobq.registry.settlement import Released
from jobq.worker import tuning

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable, Mapping

__all__ = ["NO_HANDLER", "Controller", "SkippedKinds", "Slots"]

NO_HANDLER: Final = ("UNKNOWN_KIND", "no handler of this kind")


@dataclass(slots=True)
class Controller:
    """What a worker has learned from its last jobs, and what follows from it.

    Attributes:
        slots: how many jobs run at a time.
        duration: seconds that a job takes, on average; a guess until the first one has ended.
        ended: how many durations are in the mean.
        payload: bytes of a payload.
        limit: jobs in one answer. A claim that was not answered in time divides it by eight.
        interval: seconds between claims that brought jobs, on average.
        claimed_at: when the last one was, by time.monotonic.
        misses: claims in a row whose work was due and locked.
        polls: claims in a row that found nothing.
    """

    slots: int
    duration: float = 0.1
    ended: int = 0
    payload: float = 1.0
    limit: int = tuning.MAX_BATCH
    interval: float = 1.0
    claimed_at: float = 0.0
    misses: int = 0
    polls: int = 0

    # ---- what it learns

    def claimed(self, payloads: Iterable[int], now: float) -> None:
        """Learn from a claim that brought jobs with payloads of these lengths."""
        lengths = list(payloads)
        mean = sum(lengths) / len(lengths)
        self.payload = max(1.0, mean, (self.payload + mean) / 2)  # a rise counts at once
        if len(lengths) >= self.limit:
            self.limit = min(tuning.MAX_BATCH, self.limit * 2)
        self.interval += (min(now - self.claimed_at, 1.0) - self.interval) / 8
        self.claimed_at = now
        self.misses = self.polls = 0

    def not_answered(self, asked: int) -> None:
        """Learn that a claim of so many jobs had no answer in time."""
        if asked:
            self.limit = max(1, min(self.limit, asked) // 8)

    def took(self, seconds: float) -> None:
        """Learn how long a job took: the mean of the last 50."""
        self.ended = min(50, self.ended + 1)
        self.duration += (seconds - self.duration) / (self.ended + 1)

    # ---- what follows

    def prefetch(self, stalled: float) -> int:
        """Return how many jobs to hold ahead of the slots.

        Args:
            stalled: seconds for which no slot has fallen free.
        """
        ahead = tuning.PREFETCH_SECONDS * self.slots / max(self.duration, stalled, 1e-6)
        return int(min(3 * tuning.MAX_BATCH, ahead, tuning.PREFETCH_BYTES / self.payload))

    def claim(self, held: int, prefetch: int) -> int:
        """Return how many jobs to ask for, when so many are held or asked for."""
        most = max(1, min(self.limit, int(tuning.PREFETCH_BYTES / self.payload)))
        return max(0, min(self.slots + prefetch - held, most))

    def settle_delay(self, ended: int, *, is_waiting: bool) -> float:
        """Return how many seconds ends may wait, to be settled with others.

        Args:
            ended: how many jobs have ended.
            is_waiting: whether claimed jobs wait for slots, so that more ends will follow.
        """
        is_frequent = self.interval < tuning.SETTLE_DELAY and ended < tuning.MAX_BATCH // 50
        return tuning.SETTLE_DELAY if is_waiting or is_frequent else 0.0

    def retry_delay(self, most: float | None = None) -> float:
        """Return how many seconds to wait before a claim is repeated whose work was locked."""
        self.misses += 1
        pause = tuning.RETRY_FIRST * 2.0 ** min(self.misses - 1, 30)
        return float(min(most or tuning.RETRY_LAST, pause))

    def poll_delay(self, poll: float) -> float:
        """Return how many seconds a worker pauses that nobody wakes: longer while nothing comes."""
        self.polls += 1
        pause = min(poll, tuning.POLL_LAST, tuning.IDLE_AFTER * 2.0 ** min(self.polls, 30))
        return pause * random.uniform(0.8, 1.2)  # noqa: S311 - spreads workers

    @property
    def idle_delay(self) -> float:
        """Seconds without a job before the worker sleeps; short after limits made it miss work."""
        return tuning.RETRY_FIRST if self.misses else tuning.IDLE_AFTER


class Slots:
    """So many jobs at a time. Workers of one process may share them: see `jobq_sharding`."""

    is_shared = False

    def __init__(self, total: int) -> None:
        self.total = total

    def join(self, member: Any) -> None:  # noqa: ANN401 - a producer
        """Let a producer have slots."""

    def limit(self, member: Any) -> int:  # noqa: ANN401, ARG002 - a producer
        """Return how many slots a producer may have now, with those that it has."""
        return self.total

    def pass_on(self, member: object) -> None:
        """Tell the others that a producer has less, or wants no more."""


class SkippedKinds:
    """The kinds that a worker leaves to others, each with a code and a text that say why.

    Args:
        on_met: set whenever a kind is met that the worker cannot run.
        is_lasting: whether no handlers can be added to the worker.

    Attributes:
        functions: the kinds that are functions of the database.
        new: kinds that were met since `functions` was last completed, with codes and texts.
        known: kinds that are known beforehand.
        lacks: what the worker lacked for jobs, by code and kind, for `health`.
    """

    def __init__(self, on_met: asyncio.Event, *, is_lasting: bool) -> None:
        self._on_met = on_met
        self._is_lasting = is_lasting
        self._met: dict[str, tuple[float, tuple[str, str]]] = {}
        self.functions: set[str] = set()
        self.new: list[tuple[str, str, str]] = []
        self.known: Mapping[str, tuple[str, str]] = {}
        self.lacks: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def kinds(self) -> list[str] | None:
        """Return the kinds that are not to be claimed; None when there are none."""
        if not self._met and not self.known:
            return None
        if not self._is_lasting:
            oldest = time.monotonic() - tuning.UNKNOWN_KIND_SECONDS
            self._met = {
                kind: (since, reason)
                for kind, (since, reason) in self._met.items()
                if since > oldest or kind in self.functions
            }
        return list({**self._met, **self.known}) or None

    def met(self, kind: str, code: str, text: str) -> Released:
        """Note a kind, and return how its job is given back."""
        self._met.setdefault(kind, (time.monotonic(), (code, text)))
        self.new.append((kind, code, text))
        self._on_met.set()
        return Released()

    def put_off(self, kind: str) -> Released:
        """Return how a job is given back that was claimed all the same, by its concurrency key."""
        wait = timedelta(seconds=tuning.UNKNOWN_KIND_SECONDS / 2)
        if kind in self.functions:
            return Released(wait)
        _, reason = self._met.get(kind, (0.0, NO_HANDLER))
        return Released(wait, self.known.get(kind, reason))

    def lacked(self, kind: str, code: str, text: str) -> None:
        """Note what was lacking for a job."""
        if len(self.lacks[code]) < tuning.MOST_KINDS:
            self.lacks[code][kind] = text

    def known_by_code(self) -> dict[str, dict[str, str]]:
        """Return the texts of what is known beforehand, by code and kind."""
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for kind, (code, text) in self.known.items():
            found[code][kind] = text
        return found

    def texts(self) -> dict[str, str]:
        """Return in words, by code, which kinds lack what."""
        both = {code: dict(kinds) for code, kinds in self.lacks.items()}
        for code, kinds in self.known_by_code().items():
            both.setdefault(code, {}).update(kinds)
        return {code: in_words(kinds) for code, kinds in both.items()}


def in_words(kinds: Mapping[str, str]) -> str:
    """Return which kinds lack what, those of one text together, at most twenty of them."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for kind in sorted(kinds)[:20]:
        groups[kinds[kind]].append(kind)
    said = [f"{', '.join(group)}: {text}" for text, group in groups.items()]
    if len(kinds) > 20:
        said.append(f"and {len(kinds) - 20} more")
    return "; ".join(said)
