"""A client, and optionally a worker, for the lifetime of a Starlette or FastAPI application.

app = FastAPI(lifespan=lifespan_of("postgresql://localhost/app"))

@app.post("/customers")
async def create(client: Annotated[AsyncClient, Depends(client_of)]) -> str:
    return str((await client.enqueue("welcome", {"name": "Ada"})).job_id)
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.requests import HTTPConnection  # noqa: TC002 - FastAPI reads the annotation

from jobq.client import AsyncClient
from jobq.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from jobq.registry import Registry

__all__ = ["client_of", "lifespan_of"]


def lifespan_of(
    database: str,
    registry: Registry | None = None,
    **worker: Any,  # noqa: ANN401 - options of the worker
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return a lifespan that opens a client, and a worker if there are handlers.

    Args:
        database: a libpq URL.
        registry: the handlers to run in this process; None for no worker.
        worker: further options of `jobq.Worker`, such as ``queues`` and ``concurrency``.
    """

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:  # noqa: ANN401 - any application
        async with AsyncExitStack() as stack:
            app.state.jobq = await stack.enter_async_context(
                AsyncClient(database, registry=registry)
            )
            if registry is not None:
                await stack.enter_async_context(Worker(database, registry, **worker))
            yield

    return lifespan


def client_of(request: HTTPConnection) -> AsyncClient:
    """Return the application's client; usable as a dependency of FastAPI."""
    client: AsyncClient = request.app.state.jobq
    return client
