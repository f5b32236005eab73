"""One coroutine for both clients: of the client that waits, nothing in it suspends."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["awaited", "finished"]

T = TypeVar("T")


async def awaited(answer: Any) -> Any:  # noqa: ANN401 - whatever was called
    """Return what a call has returned, or what it returned to be awaited."""
    return await answer if inspect.isawaitable(answer) else answer


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in which nothing suspends.

    Raises:
        RuntimeError: something did.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("a call that waits has suspended")
