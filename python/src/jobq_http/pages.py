"""The page that shows the specification, with everything it needs in the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from jobq_http.declared import section
from jobq_http.operation import Answer

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq_http.operation import Call

PAGE: Final = (files("jobq_http") / "pages" / "index.html").read_text()
POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
    "frame-ancestors 'none'"
)


async def show_docs(_call: Call) -> Response:
    """Return the page."""
    return HTMLResponse(PAGE, headers={"content-security-policy": POLICY})


def assets() -> Mount:
    """Return the route of the page's scripts and styles."""
    return Mount("/docs", StaticFiles(packages=[("jobq_http", "pages")]))


of = section("health")
# fmt: off
OPERATIONS = (
    of("GET /docs", show_docs, "This API as a page to read and try", "",
       {200: Answer("The page.", str, "text/html")}),
)
# fmt: on
