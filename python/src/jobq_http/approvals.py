"""Questions of jobs to people, answers, and links that answer once without a key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw
from starlette.responses import Response

from jobq import models
from jobq_http.call import Call, encoded
from jobq_http.errors import ApiError
from jobq_http.operation import picked, section
from jobq_http.page import Paging, cut
from jobq_http.values import (
    TEXT,
    JsonMembers,
    JsonObject,
    RequestPart,
    answer,
    answer_of,
    page_of,
    request,
)
from jobq_http.workers import ATTEMPT, LOST
from jobq_http.workflows import Waited

# Open questions that a call of the database returns.
MOST: Final = 1000
QuestionName = Annotated[str, Meta(min_length=1, max_length=249, pattern=TEXT)]
Person = Annotated[str, Meta(min_length=1, max_length=240, pattern=TEXT)]
Token = Annotated[str, Meta(min_length=1, max_length=4096, pattern=TEXT)]
IS_APPROVED = (bool, "True approves, false rejects.")
DATA = (
    Annotated[Raw, Meta(description="Any JSON.")],
    "Must match the form of the question if it is approved.",
)

NewQuestion = request(
    "NewQuestion",
    "A question to a person.",
    "name question form? timeout_ms?",
    name=QuestionName,
    question=Annotated[str, Meta(min_length=1, max_length=4096, pattern=TEXT)],
    form=(JsonMembers, "A JSON Schema of the data that an approval must have."),
    timeout_ms=(
        Annotated[float, Meta(ge=0, le=3_153_600_000_000, multiple_of=1)],
        "From the first call; default: 36500 days.",
    ),
)
Question = answer_of(models.Question, "Question", form=JsonObject | None)
Questions = page_of("Questions", "A page of open questions, the oldest first.", Question)
NewAnswer = request(
    "NewAnswer",
    "An answer, and the person in whose name the caller answers.",
    "name is_approved data~ reason? answered_by?",
    name=QuestionName,
    is_approved=IS_APPROVED,
    data=DATA,
    answered_by=Annotated[str, Meta(min_length=1, max_length=256, pattern=TEXT)],
)
LinkedAnswer = request(
    "LinkedAnswer",
    "An answer by a link.",
    "link is_approved data~ reason?",
    link=Token,
    is_approved=IS_APPROVED,
    data=DATA,
)
NewLink = request(
    "NewLink",
    "The question, the person who may answer it, and for how long.",
    "name to valid_for_ms",
    name=QuestionName,
    to=(Person, "For the audit."),
    valid_for_ms=Annotated[float, Meta(ge=1000, le=31_536_000_000, multiple_of=1)],
)
NewLinkAnswer = answer(
    "NewLinkAnswer",
    "A link; who has it can answer the question without a key.",
    "link page expires_at",
    link=(str, "For `GET /approval?link=` and `POST /approval`."),
    page=(str, "The path of the console's page, to append to this server's address."),
)


QuestionPage = request("QuestionPage", "Which questions.", "queue?", Paging)
Linked = request("Linked", "The link of a question.", "link", RequestPart, link=Token)


def links() -> ModuleType:
    """Return the module of links, which belongs to an extra."""
    from jobq_delivery import links  # noqa: PLC0415 - an extra

    return links


async def list_waits(call: Call) -> Response:
    """Return a page of open questions, of which the database returns those since the last one."""
    wanted = call.query(QuestionPage)
    after = wanted.position(call, str)
    since, from_job, _ = msgspec.json.decode(after) if after else (None, None, None)
    rows = await call.fetch(
        "list_waits", queue=wanted.queue, max_rows=MOST, since=since, from_job=from_job
    )
    return cut(call, wanted, [picked(Question, row._asdict()) for row in rows], place_of)


def place_of(row: Mapping[str, Any]) -> list[str]:
    """Return the sort key of a question."""
    return [row["since"].isoformat(), str(row["job_id"]), row["name"]]


async def make_link(call: Call) -> Response:
    """Return a link with which one person can answer one question without a key.

    It needs a key in JOBQ_SECRET_KEYS.
    """
    wanted = await call.body(NewLink)
    job_id = call.job_id()
    await call.fetch("get_job", job_id=job_id)
    call.audit()
    valid_for = timedelta(milliseconds=wanted.valid_for_ms)
    by = call.acting_for or ""
    token = links().signed(job_id, wanted.name, wanted.to, valid_for, by=by)
    expires_at = datetime.fromtimestamp(links().read(token).expires_at, UTC)
    return encoded({"link": token, "page": f"{links().PAGE}{token}", "expires_at": expires_at}, 201)


async def show_approval(call: Call) -> Response:
    """Return the question of a link, if it is open."""
    wanted = call.query(Linked)
    link = links().read(wanted.link)
    rows = await call.fetch("list_waits", job_id=link.job_id, max_rows=MOST)
    for row in rows:
        if row.name == link.name:
            return encoded(picked(Question, row._asdict()))
    raise ApiError(
        "QUESTION_CLOSED", "it was answered, or its time is over, or it is not asked yet"
    )


async def answer_approval(call: Call) -> Response:
    """Answer the question of a link. The answer is audited with the person's name."""
    given = await call.body(LinkedAnswer)
    link = links().read(given.link)
    call.role, call.acting_for = "jobq_operator", link.answered_by
    arguments = {n: v for n, v in given.arguments().items() if n != "link"}
    await call.fetch("answer", job_id=link.job_id, name=link.name, **arguments)
    return Response(status_code=204)


LINKED: Final = (
    "LINK_INVALID QUESTION_NOT_FOUND QUESTION_CLOSED SECRET_KEY_MISSING DELIVERY_MISSING"
    " INVALID_REQUEST INTERNAL_ERROR REPO_UNAVAILABLE TIMEOUT"
)
ANSWERED: Final = "QUESTION_NOT_FOUND QUESTION_CLOSED INPUT_VALIDATION_FAILED"

of = section("approvals")
# fmt: off
OPERATIONS = (
    of(f"{ATTEMPT}/ask", "ask",
       "Ask a person; releases the job until somebody answers",
       "work", Waited, body=NewQuestion, errors=f"{LOST} INVALID_SCHEMA",
       examples={"a refund": {"name": "refund", "question": "Refund 5 euro?",
                              "timeout_ms": 259_200_000}}),
    of("GET /waits", list_waits, "List the questions of jobs that wait for a person",
       "read operate", Questions, query=QuestionPage),
    of("POST /jobs/{job_id}/answers", "answer", "Answer the question of a job",
       "produce operate", body=NewAnswer, errors=ANSWERED,
       examples={"an approval": {"name": "refund", "is_approved": True, "answered_by": "ada"}}),
    of("POST /jobs/{job_id}/links", make_link,
       "Create a link with which one person can answer a question without a key",
       "produce operate", {201: NewLinkAnswer}, body=NewLink,
       errors="SECRET_KEY_MISSING DELIVERY_MISSING",
       examples={"three days": {"name": "refund", "to": "ada@example.org",
                                "valid_for_ms": 259_200_000}}),
    of("GET /approval", show_approval, "Show the question of a link", "", {200: Question},
       query=Linked, errors=LINKED),
    of("POST /approval", answer_approval, "Answer the question of a link, once", "",
       body=LinkedAnswer, errors=f"{LINKED} INPUT_VALIDATION_FAILED JOB_NOT_FOUND"),
)
# fmt: on
