"""A producer declares the kinds of its registry before its first job, as a worker does.

So a producer may start before the first worker. A declaration of a newer version of the program
stays, although processes of the older one still run during a deployment.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from jobq.calls.call import Call
from jobq.calls.definitions import list_undeclared_kinds
from jobq.errors import DatabaseUnavailable, JobqError
from jobq.registry import Registry

logger = logging.getLogger("jobq.client")


class Declarations:
    """The declarations that a client must still make. It warns once if it may not."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        self._seen = 0

    @property
    def are_due(self) -> bool:
        """Whether the registry has new handlers."""
        return self._registry is not None and len(self._registry) != self._seen

    async def make(
        self, ask: Callable[[Call[Any]], Awaitable[Any]], *, in_transaction: bool
    ) -> None:
        """Declare the kinds of new handlers by ``ask``. Only DatabaseUnavailable is raised.

        Nothing is declared in an open transaction of the caller's, because all others that declare
        would wait until it ends.
        """
        if self._registry is None:
            return
        seen, calls = len(self._registry), self._registry.kinds()
        refused: dict[str, list[str]] = {}
        kinds: list[str] = []
        try:
            asked = list_undeclared_kinds([*calls], self._registry.version)
            kinds = await ask(asked) if calls else []
        except DatabaseUnavailable:
            raise
        except JobqError as error:
            refused[str(error)] = [*calls]
        if in_transaction and kinds:
            reason = "declare() needs autocommit, and no open transaction, or a client with a URL"
            refused[reason], kinds = kinds, []
        for kind in kinds:
            try:
                await ask(calls[kind])
            except DatabaseUnavailable:
                raise
            except JobqError as error:
                refused.setdefault(str(error), []).append(kind)
        for reason, without in refused.items():
            logger.warning(
                "jobs of %s go by what is declared so far, not by their handlers: %s",
                ", ".join(without),
                reason,
            )
        self._seen = seen
