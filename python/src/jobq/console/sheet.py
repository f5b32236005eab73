"""A page as all see it who may see the same, and what on it is each reader's own."""

from __future__ import annotations

import secrets
from html import escape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

from starlette.responses import HTMLResponse

from jobq.console.words import plain

if TYPE_CHECKING:
    from starlette.responses import Response

    from jobq.console.sessions import Session

# In place of what is a reader's own; drawn anew by each server, so that no job can hold one.
TOKEN, NAME, SAID, ONCE = (secrets.token_urlsafe(24) for _ in range(4))
ANYBODY: Final = SimpleNamespace(token=TOKEN, name=NAME, said=SAID, once=ONCE)


class Sheet(HTMLResponse):
    """A page on which stand-ins hold the places of what is a reader's own."""

    def of(self, session: Session, *, is_look: bool) -> Response:
        """Return the page of a session.

        Args:
            session: whose.
            is_look: whether an open page only looks for what is new, and shows no words.
        """
        said = ""
        if not is_look:
            said, session.said = "".join(map(paragraph, session.said)), []
        own = {
            TOKEN: session.token,
            NAME: escape(plain(session.visitor.name, 60)),
            SAID: said,
            ONCE: secrets.token_urlsafe(12),
        }
        body = bytes(self.body)
        for place, words in own.items():
            body = body.replace(place.encode(), words.encode())
        return HTMLResponse(body, self.status_code)


def paragraph(told: tuple[str, str]) -> str:
    """Return what is told of an action."""
    mood, words = told
    return f'<p class="said {mood}" role="status">{escape(plain(words, 2000))}</p>\n'
