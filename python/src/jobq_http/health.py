"""The server itself: whether it runs and can work, and the page of the specification."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from typing import Final, Literal

from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from jobq import __version__
from jobq_http.call import Call, encoded
from jobq_http.operation import Answer, section
from jobq_http.values import answer

PAGE: Final = (files("jobq_http") / "pages" / "index.html").read_text()
POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'"
)
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
    queue, repo = await call.request.app.state.database.ready()
    is_ready = queue == repo == "ok"
    body = {"queue": queue, "repo": repo, "timestamp": datetime.now(UTC)}
    return encoded(body, 200 if is_ready else 503)


async def show_docs(_call: Call) -> Response:
    """Return the page of the specification."""
    return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})


# The page's scripts and styles.
ASSETS: Final = Mount("/docs", StaticFiles(packages=[("jobq_http", "pages")]))
of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /healthz", healthz, "Whether the server runs", "", Health),
    of("GET /ready", ready, "Whether jobs can be accepted (queue) and read (repo)", "",
       {200: Answer("Both.", Readiness), 503: Answer("If not both: error(reason).", Readiness)}),
    of("GET /docs", show_docs, "This API as a page to read and try", "",
       {200: Answer("The page.", str, "text/html")}),
)
# fmt: on
