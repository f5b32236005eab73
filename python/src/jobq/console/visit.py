"""One request of somebody who is in: pages that show, actions that do and lead back."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Route

from jobq.console.guard import check_origin, form
from jobq.console.rendering import TEMPLATES
from jobq.console.sessions import PATH, cookie_of
from jobq.console.sheet import ANYBODY, Sheet
from jobq.http.errors import ApiError, translate
from jobq.http.limits import check_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from jobq.console.app import Console
    from jobq.console.sessions import Session
    from jobq.console.visitor import Visitor

logger = logging.getLogger("jobq.console")

T = TypeVar("T")

ENTRANCE: Final = f"{PATH}/enter"
# Forms of a session that are known to have been sent.
KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class Page:
    """What a path does for a method.

    Attributes:
        path: below the console's.
        handler: makes the answer; an action's is given the form too.
        method: GET to show, POST to act.
        is_open: whether it is there for who is not in.
        takes: the parameters that its address may have.
    """

    path: str
    handler: Callable[..., Coroutine[Any, Any, Response]]
    method: str = "GET"
    is_open: bool = False
    takes: tuple[str, ...] = ()


class Visit:
    """One request.

    Attributes:
        request: as Starlette has it.
        console: what all requests share.
        session: whose it is; None at the entrance.
        form: the fields of an action's form.
    """

    def __init__(self, request: Request, fields: dict[str, str] | None = None) -> None:
        self.request = request
        self.console: Console = request.app.state.console
        self.session: Session | None = request.scope.get("jobq.session")
        self.form = fields or {}

    @property
    def visitor(self) -> Visitor:
        """Who asks."""
        assert self.session is not None  # noqa: S101 - by answer()
        return self.session.visitor

    @property
    def cookie(self) -> str:
        """The value of the session's cookie."""
        return self.request.cookies.get(cookie_of(self.request), "")

    def query(self, name: str) -> str | None:
        """Return a parameter of the address as it is, or None where it is empty."""
        return self.request.query_params.get(name) or None

    def show(self, template: str, status: int = 200, **context: object) -> Response:
        """Render a page."""
        text = TEMPLATES.get_template(template).render(
            visit=self,
            session=self.session and ANYBODY,
            may_operate=bool(self.session and self.session.visitor.may_operate),
            lag=self.session and self.session.visitor.lag,
            hides_payloads=self.console.options.hides_payloads,
            path=self.request.url.path.removeprefix(PATH).rstrip("/") or "/",
            address=self.address,
            **context,
        )
        return Sheet(text, status)

    @property
    def address(self) -> str:
        """The path and query of this page."""
        url = self.request.url
        return url.path + (f"?{url.query}" if url.query else "")

    def tell(self, words: str, mood: str = "good") -> None:
        """Say something on the next page."""
        if self.session is not None and (mood, words) not in self.session.said:
            self.session.said.append((mood, words))

    async def once(self, act: Callable[[], Coroutine[Any, Any, T]], again: str) -> T:
        """Do what a form asks for; whoever sends the same form again is given the first's outcome.

        A page that is shown anew has other forms.

        Args:
            act: does it.
            again: what is told of a form that was sent before.

        Raises:
            Exception: as the action; then the form may be sent again.
        """
        assert self.session is not None  # noqa: S101 - by answer()
        done = self.session.done
        key = (self.request.url.path, self.form.get("once", ""))
        if not key[1]:
            return await act()
        if key in done:
            self.tell(again)
        else:
            while len(done) >= KEPT:
                del done[next(iter(done))]
            done[key] = asyncio.create_task(act())
        try:
            outcome: T = await asyncio.shield(done[key])
        except Exception:
            done.pop(key, None)
            raise
        return outcome

    def back(self, otherwise: str) -> Response:
        """Lead to where the form said, if that is a page of the console."""
        return RedirectResponse(inside(self.form.get("back"), otherwise), 303)


# What browsers read as another address than it seems: steps up, also encoded, and backslashes.
DEVIOUS: Final = re.compile(r"[^!-~]|\\|/(?:\.|%2e){1,2}(?:/|$)|//|%2f|%5c", re.IGNORECASE)


def inside(address: str | None, otherwise: str) -> str:
    """Return an address if it is a page of the console, else another path of the console's."""
    path = (address or "").partition("?")[0]
    is_inside = path.startswith(f"{PATH}/") and not DEVIOUS.search(path)
    return address if address and is_inside and address.isprintable() else f"{PATH}{otherwise}"


def routes(pages: Iterable[Page]) -> list[Route]:
    """Return one route for each page."""
    return [Route(page.path, _endpoint(page), methods=[page.method]) for page in pages]


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            check_address(request.scope)
            return own(request, await _answer(page, request))
        except Exception as error:
            return await refuse(request, error)

    return answer


async def _answer(page: Page, request: Request) -> Response:
    fields = None
    if page.method == "POST":
        fields = await form(request)
        check_origin(request)
    visit = Visit(request, fields)
    if page.is_open:
        return await page.handler(visit)
    if visit.session is None:
        if fields is not None:
            raise ApiError("UNAUTHORIZED", message="You have been signed out.")
        return _ask_who(request, visit)
    if fields is not None:
        if not visit.session.owns(fields.get("token", "")):
            raise ApiError("FORBIDDEN", message="This form is not from your session.")
        if not visit.visitor.may_operate:
            raise ApiError("FORBIDDEN", message="You may look, but not act: this needs operate.")
    elif not visit.visitor.scopes & {"read", "operate"}:
        raise ApiError("FORBIDDEN", message="This needs one of the scopes read and operate.")
    else:
        check_parameters(page, request)
        key = (visit.visitor.eyes, str(request.url))
        return await visit.console.memory.get(key, lambda: page.handler(visit))
    return await page.handler(visit)


def check_parameters(page: Page, request: Request) -> None:
    """Refuse an address with a parameter that the page does not take.

    Raises:
        ApiError: INVALID_REQUEST: a filter that is misspelt would else show, and act on, more.
    """
    for name in request.query_params:
        if name not in page.takes:
            known = ", ".join(page.takes) or "none"
            raise ApiError("INVALID_REQUEST", f"{name}: no parameter of this page; it has {known}")


def own(request: Request, answer: Response) -> Response:
    """Return an answer with what is its reader's own on it."""
    session: Session | None = request.scope.get("jobq.session")
    if session is None or not isinstance(answer, Sheet):
        return answer
    return answer.of(session, is_look="hx-request" in request.headers)


def _ask_who(request: Request, visit: Visit) -> Response:
    """Lead to the entrance; from another site's link first to this page itself.

    A browser does not send a strict cookie when it follows a link from elsewhere, but
    does when this site's own page asks it to load once more.
    """
    if request.headers.get("sec-fetch-site") == "cross-site":
        return visit.show("again.html")
    return RedirectResponse(f"{ENTRANCE}?{urlencode({'next': visit.address})}", 303)


def origin_of(request: Request) -> str | None:
    """Return the page of the console that led here, or None."""
    given = urlsplit(request.headers.get("referer", ""))
    if given.netloc != request.headers.get("host"):
        return None
    address = given.path + (f"?{given.query}" if given.query else "")
    is_here = given.path == request.url.path and given.query == request.url.query
    return None if is_here or inside(address, "") != address else address


async def refuse(request: Request, error: Exception) -> Response:
    """Show what went wrong."""
    answer = translate(error)
    if answer.code == "TIMEOUT":
        answer.hint = answer.hint or "Choose less: a shorter time, a queue, a state."
    if answer.status >= 500 and not isinstance(error, HTTPException):
        logger.error(
            "%s %s: %s, request %s", request.method, request.url.path, answer.code,
            request.scope.get("jobq.request_id"), exc_info=error,
        )  # fmt: skip
    if answer.code == "UNAUTHORIZED" and not isinstance(error, HTTPException):
        answer.hint = answer.hint or "Sign in again."
    shown: dict[str, Any] = {
        "error": answer, "request_id": request.scope.get("jobq.request_id"),
        "origin": origin_of(request),
    }  # fmt: skip
    return own(request, Visit(request).show("error.html", answer.status, **shown))
