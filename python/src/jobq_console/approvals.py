"""Questions of jobs to people: a list, the buttons, and pages of links for one person."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from jobq_console.filters import identity
from jobq_console.forms import data_of, fields_of
from jobq_console.visit import Page, Visit
from jobq_console.visitor import Visitor
from jobq_http.approvals import links
from jobq_http.errors import ApiError

# Open questions that a page shows.
MOST: Final = 200
COLUMNS: Final = (
    "job_id", "name", "kind", "queue", "question", "form", "asked_by", "since", "expires_at",
)  # fmt: skip


async def questions(visitor: Visitor, **chosen: object) -> list[dict[str, Any]]:
    """Return open questions, with the fields of their forms."""
    rows = await visitor.rows("list_waits", **chosen)
    found = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for each in found:
        each["form"] = each["form"] and msgspec.json.decode(each["form"])
        each["fields"] = fields_of(each["form"])
    return found


async def find(visitor: Visitor, job_id: object, name: str) -> dict[str, Any]:
    """Return an open question; QUESTION_CLOSED if there is none."""
    for each in await questions(visitor, job_id=job_id, max_rows=1000):
        if each["name"] == name:
            return each
    raise ApiError("QUESTION_CLOSED", message="This question was answered, or its time is over.")


async def show(visit: Visit) -> Response:
    """Show the open questions."""
    found = await questions(visit.visitor, max_rows=MOST)
    return visit.show("approvals.html", questions=found, most=MOST)


async def answer(visit: Visit) -> Response:
    """Answer a question by its form."""
    visit.check_shown("Questions")
    job_id, name = identity("job", visit.form.get("job_id", "")), visit.form.get("name", "")
    is_approved = await send(visit, visit.visitor, job_id, name)
    visit.tell("It is approved." if is_approved else "It is rejected.")
    return visit.back(f"/jobs/{job_id}")


async def send(visit: Visit, visitor: Visitor, job_id: object, name: str) -> bool:
    """Send the answer in a form, and return whether it approves."""
    is_approved = visit.form.get("answer") == "approve"
    data = "null"
    if is_approved:
        question = await find(visitor, job_id, name)
        data = data_of(question["form"], visit.form)
    await visitor.act(
        "answer", job_id=job_id, name=name, is_approved=is_approved, data=data, reason=visit.reason
    )
    return is_approved


async def show_linked(visit: Visit) -> Response:
    """Show the question of a link, without sign-in."""
    token = visit.query("link") or ""
    visitor, job_id, name = linked(visit, token)
    question = await find(visitor, job_id, name)
    return visit.show("approval.html", question=question, link=token, is_approved=None)


async def answer_linked(visit: Visit) -> Response:
    """Answer the question of a link."""
    visitor, job_id, name = linked(visit, visit.form.get("link", ""))
    is_approved = await send(visit, visitor, job_id, name)
    return visit.show("approval.html", question=None, link="", is_approved=is_approved)


def linked(visit: Visit, token: str) -> tuple[Visitor, object, str]:
    """Return who answers by a link, and the question's job and name."""
    if visit.console.keys is None:  # of one login, on its own computer
        raise ApiError("NOT_FOUND")
    link = links().read(token)
    visitor = visit.console.visitor(link.answered_by, frozenset({"operate"}))
    return visitor, link.job_id, link.name


PAGES = (
    Page("/approvals", show),
    Page("/approvals", answer, "POST"),
    Page("/approval", show_linked, is_open=True),
    Page("/approval", answer_linked, "POST", is_open=True),
)
