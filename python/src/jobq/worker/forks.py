"""What a handler leaves behind when it forks: a copy of the worker, which must not work.

The copy has the worker's sockets. Were it to go on where the handler ends, it would speak on
them beside the worker.
"""

from __future__ import annotations

import os
import weakref
from asyncio import get_running_loop
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from jobq.worker.links import Links

__all__ = ["generation", "guard", "leave_if_forked"]

# How many forks lie between the first process and this one.
_generation = 0
_guarded: weakref.WeakKeyDictionary[Links, AbstractEventLoop] = weakref.WeakKeyDictionary()


def generation() -> int:
    """Return what a copy of this process has another of, without a call of the system."""
    return _generation


def leave_if_forked(generation: int) -> None:
    """End this process if it is not of this generation but a copy of one that is."""
    if generation != _generation:
        os._exit(0)


def guard(links: Links) -> None:
    """Take these connections, and the running loop, out of every copy of this process."""
    _guarded[links] = get_running_loop()


def _disarm() -> None:
    """Put nothing in the place of each socket, and end when the loop next turns."""
    global _generation  # noqa: PLW0603 - of the process
    _generation += 1
    nothing = os.open(os.devnull, os.O_RDWR)
    for links, loop in list(_guarded.items()):
        for descriptor in links.sockets:
            os.dup2(nothing, descriptor)
        loop.call_soon(os._exit, 0)
    os.close(nothing)


os.register_at_fork(after_in_child=_disarm)
