"""Sign-in by API key, database login or ticket, and sign-out."""

from __future__ import annotations

import msgspec
import psycopg
from psycopg.conninfo import make_conninfo
from starlette.responses import RedirectResponse, Response

from jobq_console.console import Console
from jobq_console.options import PATIENCE
from jobq_console.sessions import Session, cookie_of
from jobq_console.visit import Page, Visit
from jobq_console.visitor import Visitor
from jobq_http.auth import hashed
from jobq_http.database import LOG_IN, Database
from jobq_http.errors import ApiError

REFUSED = {
    "key": "The key is invalid or was revoked.",
    "log_in": "The database does not accept this login.",
    "scope": "This requires one of the scopes read and operate.",
    "rate": "Too many attempts from your address. Try again in a second.",
    "ticket": "This address has been used. Start the console again for a new one.",
}


async def show(visit: Visit) -> Response:
    """Show the sign-in page; a ticket in the address signs in."""
    ticket = visit.query("ticket")
    if ticket is not None:
        if not visit.console.takes(ticket):
            return _again(visit, "ticket", 403)
        return await _let_in(visit, await of_log_in(visit.console, visit.console.url))
    if visit.session is not None:
        return RedirectResponse(visit.inside(visit.query("next"), "/"), 303)
    return visit.show("enter.html", next=visit.inside(visit.query("next"), "/"), problem=None)


async def enter(visit: Visit) -> Response:
    """Sign in by a key, or by a database login."""
    address = visit.request.client.host if visit.request.client else ""
    key, user = visit.form.get("key", "").strip(), visit.form.get("user", "").strip()
    if key and visit.console.keys is not None:
        try:
            holder = await visit.console.keys.holder(hashed(key), address)
        except ApiError as error:
            return _again(visit, "key" if error.code == "UNAUTHORIZED" else "rate", error.status)
        visitor = visit.console.visitor(f"API key {holder.name}", holder.scopes)
        return await _let_in(visit, Session(visitor, key_hash=hashed(key)))
    if not user:
        return _again(visit, "key", 401)
    try:
        visit.console.guesses.spend(address)
    except ApiError as error:
        return _again(visit, "rate", error.status)
    url = await proven(visit.console.url, user, visit.form.get("password", ""))
    if url is None:
        # An outage must not look like a wrong password: this raises while there is one.
        await visit.console.look()
        return _again(visit, "log_in", 401)
    return await _let_in(visit, await of_log_in(visit.console, url))


async def proven(url: str, user: str, password: str) -> str | None:
    """Return the URL of a login whose password the database has required and accepted.

    This process connects. If the database accepts it without a password (trust, peer, ident,
    a certificate), that does not identify the person who has filled in the form.
    """
    if not password:  # or the process's own would be tried: PGPASSWORD, a passfile, a service
        return None
    try:
        given = make_conninfo(url, user=user, password=password, passfile="")
        connection = await psycopg.AsyncConnection.connect(given)
    except (psycopg.OperationalError, psycopg.ProgrammingError):
        return None
    try:
        return given if connection.pgconn.used_password else None
    finally:
        await connection.close()


async def of_log_in(console: Console, url: str) -> Session:
    """Return a session of a database login, with its own connections."""
    database = Database(url, 2, PATIENCE, (LOG_IN,))
    await database.open()
    try:
        [(document,)] = await database.fetch(LOG_IN, "jobq_http.show_login")
    except psycopg.Error:
        await database.close()
        raise
    login = msgspec.json.decode(document)
    name, scopes = login["login"], frozenset(login["scopes"])
    return Session(Visitor(name, scopes, database, console.memory, is_log_in=True))


async def _let_in(visit: Visit, session: Session) -> Response:
    if not session.visitor.scopes & {"read", "operate"}:
        await session.visitor.close()
        return _again(visit, "scope", 403)
    await visit.console.sessions.leave(visit.cookie)
    cookie = await visit.console.sessions.begin(session)
    response = RedirectResponse(visit.inside(visit.form.get("next"), "/"), 303)
    visit.console.sessions.keep(visit.request, response, cookie)
    return response


def _again(visit: Visit, problem: str, status: int) -> Response:
    shown = visit.inside(visit.form.get("next"), "/")
    return visit.show("enter.html", status, next=shown, problem=REFUSED[problem])


async def leave(visit: Visit) -> Response:
    """End the session."""
    if visit.session is not None and visit.session.owns(visit.form.get("token", "")):
        await visit.console.sessions.leave(visit.cookie)
    response = RedirectResponse(visit.inside(None, "/enter"), 303)
    response.delete_cookie(cookie_of(visit.request), path=visit.base)
    return response


PAGES = (
    Page("/enter", show, is_open=True),
    Page("/enter", enter, "POST", is_open=True),
    Page("/leave", leave, "POST", is_open=True),
)
