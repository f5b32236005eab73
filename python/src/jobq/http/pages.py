"""The page that shows the specification, with everything it needs in the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from jobq.http.operation import Answer, Operation

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.http.operation import Call

PAGE: Final = (files("jobq.http") / "pages" / "index.html").read_text()
POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'"
)


async def show_docs(_call: Call) -> Response:
    """Return the page."""
    return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})


def assets() -> Mount:
    """Return the route of the page's scripts and styles."""
    return Mount("/docs", StaticFiles(packages=[("jobq.http", "pages")]))


OPERATIONS = (
    Operation(
        "GET",
        "/docs",
        show_docs,
        "This API as a page to read and try",
        (),
        {200: Answer("The page.", str, "text/html")},
        tag="health",
    ),
)
