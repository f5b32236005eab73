"""One request of a signed-in user: pages, and actions that redirect to a page."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from jobq_console.console import Console
from jobq_console.filters import Filter
from jobq_console.guard import check_origin, form
from jobq_console.options import PATH
from jobq_console.rendering import TEMPLATES
from jobq_console.sessions import Session, cookie_of
from jobq_console.visitor import Visitor
from jobq_http.errors import ApiError, translate
from jobq_http.limits import check_address

logger = logging.getLogger("jobq.console")


@dataclass(frozen=True, slots=True)
class Page:
    """A route of the console.

    Attributes:
        path: below the console's.
        handler: creates the response; for an action it receives the form.
        method: GET to show, POST to act.
        is_open: whether it works without a session.
        takes: the allowed query parameters.
    """

    path: str
    handler: Callable[..., Coroutine[Any, Any, Response]]
    method: str = "GET"
    is_open: bool = False
    takes: tuple[str, ...] = ()


class Visit:
    """One request.

    Attributes:
        request: Starlette's request.
        console: the shared state.
        session: its session; None on the sign-in page.
        form: the fields of an action's form.
    """

    def __init__(self, request: Request, fields: dict[str, str] | None = None) -> None:
        self.request = request
        self.console: Console = request.app.state.console
        self.session: Session | None = request.scope.get("jobq.session")
        self.form = fields or {}

    @property
    def visitor(self) -> Visitor:
        """The user."""
        assert self.session is not None  # noqa: S101 - by answer()
        return self.session.visitor

    @property
    def filter(self) -> Filter:
        """The filter of this address."""
        hides_payloads = self.console.options.hides_payloads
        return Filter.asked(self.request.query_params, hides_payloads=hides_payloads)

    @property
    def cookie(self) -> str:
        """The value of the session's cookie."""
        return self.request.cookies.get(cookie_of(self.request), "")

    @property
    def reason(self) -> str | None:
        """The reason that an action's form gives."""
        return self.form.get("reason", "").strip() or None

    def check_shown(self, what: str = "Payloads") -> None:
        """Refuse what the console hides."""
        if self.console.options.hides_payloads:
            raise ApiError("FORBIDDEN", message=f"{what} are hidden.")

    def query(self, name: str) -> str | None:
        """Return a query parameter unchanged, or None if it is empty."""
        return self.request.query_params.get(name) or None

    def show(self, template: str, status: int = 200, **context: object) -> Response:
        """Render a page."""
        said: list[tuple[str, str]] = []
        # Live updates of an open page show no messages.
        if self.session is not None and "hx-request" not in self.request.headers:
            said, self.session.said = self.session.said, []
        text = TEMPLATES.get_template(template).render(
            visit=self,
            session=self.session,
            said=said,
            may_operate=bool(self.session and self.session.visitor.may_operate),
            lag=self.session and self.session.visitor.lag,
            hides_payloads=self.console.options.hides_payloads,
            path=self.request.url.path.removeprefix(PATH).rstrip("/") or "/",
            address=self.address,
            base=self.base,
            **context,
        )
        return HTMLResponse(text, status)

    @property
    def address(self) -> str:
        """The path and query of this page."""
        url = self.request.url
        prefix = self.console.options.prefix
        return prefix + url.path + (f"?{url.query}" if url.query else "")

    @property
    def base(self) -> str:
        """The console's path in browsers, including the prefix."""
        return self.console.options.base

    def inside(self, address: str | None, otherwise: str) -> str:
        """Return an address if it is a page of the console, else a default path."""
        path = (address or "").partition("?")[0]
        is_inside = path.startswith(f"{self.base}/") and not DEVIOUS.search(path)
        if address and is_inside and address.isprintable():
            return address
        return self.base + otherwise

    def tell(self, words: str, mood: str = "good") -> None:
        """Show a message on the next page."""
        if self.session is not None and (mood, words) not in self.session.said:
            self.session.said.append((mood, words))

    def back(self, otherwise: str) -> Response:
        """Redirect to the target of the form, if it is a page of the console."""
        return RedirectResponse(self.inside(self.form.get("back"), otherwise), 303)


# Paths that browsers normalize: steps up, also encoded, and backslashes.
DEVIOUS: Final = re.compile(r"[^!-~]|\\|/(?:\.|%2e){1,2}(?:/|$)|//|%2f|%5c", re.IGNORECASE)


def acting(
    path: str,
    function: str,
    given: Callable[[Visit], dict[str, Any]],
    told: str | Callable[[list[Any]], tuple[str, ...]],
) -> Page:
    """Return the action of a form that calls one function, and shows the page above.

    Functions that pause or cancel take the form's reason too.

    Args:
        path: its path.
        function: the function.
        given: returns its arguments.
        told: the message, which may name arguments; or returns it and its mood for the rows.
    """
    above = path[: path.rfind("}") + 1] or path.rpartition("/")[0]

    async def act(visit: Visit) -> Response:
        arguments = given(visit)
        reason = {"reason": visit.reason} if function.startswith(("pause", "cancel")) else {}
        rows = await visit.visitor.act(function, **arguments, **reason)
        visit.tell(*([told.format(**arguments)] if isinstance(told, str) else told(rows)))
        return visit.back(above.format(**visit.request.path_params))

    return Page(path, act, "POST")


def in_form(*names: str) -> Callable[[Visit], dict[str, Any]]:
    """Return a function that takes arguments from a form."""
    return lambda visit: {name: visit.form.get(name, "") for name in names}


def routes(pages: Iterable[Page]) -> list[Route]:
    """Return one route for each page."""
    return [Route(page.path, _endpoint(page), methods=[page.method]) for page in pages]


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            check_address(request.scope)
            return await _answer(page, request)
        except Exception as error:
            return await refuse(request, error)

    return answer


async def _answer(page: Page, request: Request) -> Response:
    # Also if it is refused: otherwise the connection is closed during the upload, and nobody sees
    # the response.
    fields = await form(request) if page.method == "POST" else None
    if problem := request.scope["jobq.problem"]:
        raise problem
    if fields is not None:
        check_origin(request)
    visit = Visit(request, fields)
    if not page.is_open:
        if visit.session is None and fields is None:
            return _ask_who(request, visit)
        admit(page, visit)
    return await page.handler(visit)


def admit(page: Page, visit: Visit) -> None:
    """Refuse a request that the user may not make."""
    if page.method == "GET":
        if not visit.visitor.scopes & {"read", "operate"}:
            message = "This requires one of the scopes read and operate."
            raise ApiError("FORBIDDEN", message=message)
        check_parameters(page, visit.request)
        return
    if visit.session is None:
        raise ApiError("UNAUTHORIZED", message="Your session has ended.")
    if not visit.session.owns(visit.form.get("token", "")):
        raise ApiError("FORBIDDEN", message="This form belongs to another session.")
    if not visit.visitor.may_operate:
        raise ApiError("FORBIDDEN", message="This requires the scope operate.")


def check_parameters(page: Page, request: Request) -> None:
    """Refuse unknown query parameters: a misspelt filter would otherwise match more jobs."""
    for name in request.query_params:
        if name not in page.takes:
            known = ", ".join(page.takes) or "none"
            raise ApiError("INVALID_REQUEST", f"{name}: unknown parameter; this page has {known}")


def _ask_who(request: Request, visit: Visit) -> Response:
    """Redirect to the sign-in page; from another site's link first to this page itself.

    A browser does not send a strict cookie when it follows a link from another site, but does
    when a page of this site reloads.
    """
    if request.headers.get("sec-fetch-site") == "cross-site":
        return visit.show("again.html")
    return RedirectResponse(f"{visit.base}/enter?{urlencode({'next': visit.address})}", 303)


def origin_of(visit: Visit) -> str | None:
    """Return the referring page of the console, or None."""
    request = visit.request
    given = urlsplit(request.headers.get("referer", ""))
    if given.netloc != request.headers.get("host"):
        return None
    address = given.path + (f"?{given.query}" if given.query else "")
    return None if address == visit.address or visit.inside(address, "") != address else address


async def refuse(request: Request, error: Exception) -> Response:
    """Show an error."""
    answer = translate(error)
    if answer.code == "TIMEOUT":
        answer.hint = answer.hint or "Narrow the search: a shorter time, a queue, a state."
    if answer.status >= 500 and not isinstance(error, HTTPException):
        logger.error(
            "%s %s: %s, request %s", request.method, request.url.path, answer.code,
            request.scope.get("jobq.request_id"), exc_info=error,
        )  # fmt: skip
    if answer.code == "UNAUTHORIZED" and not isinstance(error, HTTPException):
        answer.hint = answer.hint or "Sign in again."
    visit = Visit(request)
    shown: dict[str, Any] = {
        "error": answer, "request_id": request.scope.get("jobq.request_id"),
        "origin": origin_of(visit),
    }  # fmt: skip
    return visit.show("error.html", answer.status, **shown)
