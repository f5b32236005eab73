"""Turns on the machine, for tests that run side by side and those that run alone."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def turn(folder: Path, *, is_alone: bool) -> Iterator[None]:
    """Wait for a turn, and hold it.

    Whoever waits keeps the door shut for those that come later, so that one who wants the
    machine alone gets it as soon as those who are at work are done.

    Args:
        folder: where the processes that share the machine meet.
        is_alone: whether nobody else may have a turn meanwhile.
    """
    with (folder / "room").open("w") as room:
        with (folder / "door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        yield
