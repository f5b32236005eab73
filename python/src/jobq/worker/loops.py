"""Which event loop a worker process runs on."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["loop_factory"]


def loop_factory() -> Callable[[], AbstractEventLoop] | None:
    """Return uvloop's, where it is installed (the extra ``fast``), else None for asyncio's."""
    try:
        uvloop: Any = importlib.import_module("uvloop")
    except ImportError:
        return None
    factory: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return factory
