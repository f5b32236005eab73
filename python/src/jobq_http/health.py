"""Whether the server runs, and whether it can do its work."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from jobq import __version__
from jobq_http.declared import section
from jobq_http.operation import Answer, encoded
from jobq_http.values import answer

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq_http.operation import Call


Readiness = answer(
    "Readiness",
    "Whether jobs can be accepted and read: ok, or error(reason).",
    "queue repo timestamp",
)
Health = answer(
    "Health",
    "That the server runs, and its version.",
    "status version",
    status=Literal["ok"],
    version=str,
)


async def healthz(_call: Call) -> Response:
    """Return that the server runs, and its version."""
    return encoded({"status": "ok", "version": __version__})


async def ready(call: Call) -> Response:
    """Return whether jobs can be accepted (queue) and read (repo)."""
    queue, repo = await call.ready()
    is_ready = queue == repo == "ok"
    body = {"queue": queue, "repo": repo, "timestamp": datetime.now(UTC)}
    return encoded(body, 200 if is_ready else 503)


of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /healthz", healthz, "Whether the server runs", "", Health),
    of("GET /ready", ready, "Whether jobs can be accepted (queue) and read (repo)", "",
       {200: Answer("Both.", Readiness), 503: Answer("If not both: error(reason).", Readiness)}),
)
# fmt: on
