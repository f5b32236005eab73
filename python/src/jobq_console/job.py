"""One job: its data, its history, why it does not run, and its actions."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final
from uuid import UUID

import msgspec
from starlette.responses import RedirectResponse, Response

from jobq_console import approvals, graph, words
from jobq_console.filters import BIG_INTEGER
from jobq_console.visit import Page, Visit, acting
from jobq_console.visitor import Visitor
from jobq_console.words import plural
from jobq_http import call
from jobq_http.errors import ApiError
from jobq_http.executions import LAST_LINE
from jobq_http.streams import following

MOST_ATTEMPTS: Final = 200
MOST_LINES: Final = 200
MOST_STEPS: Final = 500
MOST_STREAMS: Final = 10
# Seconds after which a browser asks again, so that an ended session or server is noticed.
LONGEST: Final = 20.0
# Those followed live, because browsers open six connections to a server.
MOST_LIVE: Final = 2
RAW: Final = ("payload", "result", "metadata", "progress")
OUTCOMES: Final = {
    "cancelled": ("The job is cancelled.", "good"),
    "cancel_requested": ("Cancellation was requested from its worker.", "good"),
    "already_finished": ("The job had already ended.", "bad"),
}
REDRIVEN: Final = {
    "queued": "The job is back in its queue.",
    "blocked": "The job is blocked again.",
}


async def show(visit: Visit) -> Response:
    """Show a job with its actions."""
    job_id = id_of(visit)
    ask = visit.visitor
    text = visit.query("before") or ""
    before = int(text) if BIG_INTEGER.fullmatch(text) else LAST_LINE
    # The other calls refuse the id of a recurring job, so this is checked first.
    [(document,)] = await ask.rows("jobq_http.show_job", job_id=job_id, vocabulary="kind")
    job, texts = read(document)
    if "result" not in texts:
        return RedirectResponse(f"{visit.base}/schedules/{job_id}", 303)
    (attempts, _), (lines, more), reasons, tree, steps, questions, written = await asyncio.gather(
        ask.page("jobq_http.page_attempts", job_id=job_id, max_attempts=MOST_ATTEMPTS),
        ask.page("jobq_http.page_logs", job_id=job_id, max_lines=MOST_LINES, before=before),
        ask.rows("explain", job_id=job_id),
        ask.document("show_graph", job_id=job_id, max_nodes=graph.MOST_NODES),
        ask.rows("list_steps", job_id=job_id),
        approvals.questions(ask, job_id=job_id),
        streams(ask, job_id),
    )
    return visit.show(
        "job.html", job=job, texts=texts, attempts=attempts, lines=lines[::-1], more=more,
        reasons=reasons, picture=graph.drawn(tree), steps=steps[-MOST_STEPS:],
        questions=questions, streams=written,
    )  # fmt: skip


async def streams(ask: Visitor, job_id: UUID) -> list[dict[str, Any]]:
    """Return the streams of a job, each with the beginning of what its last attempt wrote."""
    found = []
    rows = (await ask.rows("list_streams", job_id=job_id))[:MOST_STREAMS]
    live = [name for name, *_ in sorted(rows, key=lambda row: row[4])[-MOST_LIVE:]]
    for name, generation, count, *_ in rows:
        [(chunks, cursor, _)] = await ask.rows(
            "read_stream", job_id=job_id, stream=name, after=f"{generation}-0"
        )
        parts = [c["chunk"] for c in msgspec.json.decode(chunks)]
        text = "".join(c if isinstance(c, str) else f"{words.json(c)}\n" for c in parts)
        found.append({
            "name": name, "generation": generation, "count": count, "text": text, "cursor": cursor,
            "is_live": name in live,
        })  # fmt: skip
    return found


def id_of(visit: Visit) -> UUID:
    """Return the id in the path."""
    missing = ApiError("JOB_NOT_FOUND", message="This job does not exist.")
    return call.id_of(visit.request.path_params["job_id"], missing)


def read(document: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a job, and its members with user data as JSON texts.

    The texts keep all digits of numbers.
    """
    members = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    texts: dict[str, str] = {
        name: msgspec.json.format(bytes(members[name])).decode() for name in RAW if name in members
    }
    job = {
        name: msgspec.json.decode(value)
        for name, value in members.items()
        if name not in RAW and name != "input"
    }
    return job, texts


async def download(visit: Visit) -> Response:
    """Download a payload or a result."""
    name, job_id = visit.request.path_params["name"], id_of(visit)
    return await file(visit, name, job_id, "jobq_http.show_job", job_id=job_id)


async def file(visit: Visit, name: str, id_: UUID, function: str, **given: object) -> Response:
    """Return a member of a document with user data as a download."""
    visit.check_shown()
    [(document,)] = await visit.visitor.rows(function, **given, vocabulary="kind")
    _, texts = read(document)
    if name not in texts:
        raise ApiError("NOT_FOUND")
    headers = {"content-disposition": f'attachment; filename="{id_}-{name}.json"'}
    return Response(texts[name], media_type="application/json", headers=headers)


async def rerun(visit: Visit) -> Response:
    """Create a copy of a finished job, and show it."""
    [(job_id,)] = await visit.visitor.act("rerun", job_id=id_of(visit))
    visit.tell("This job is a copy of the finished one.")
    return visit.back(f"/jobs/{job_id}")


async def follow(visit: Visit) -> Response:
    """Send the chunks of a stream after a cursor."""
    visit.check_shown()
    deadline = time.monotonic() + LONGEST
    session = visit.session

    async def stay() -> None:
        if session is None or session.is_ended:
            raise ApiError("UNAUTHORIZED")

    after = visit.request.headers.get("last-event-id") or visit.query("after")
    return await following(
        visit.visitor.fresh, stay, visit.console.appends, lambda: time.monotonic() > deadline,
        job_id=id_of(visit), stream=visit.query("name") or "", after=after,
    )  # fmt: skip


def of_job(visit: Visit) -> dict[str, Any]:
    """Return the job of an action as its argument."""
    return {"job_id": id_of(visit)}


PAGES = (
    Page("/jobs/{job_id}", show, takes=("before",)),
    Page("/jobs/{job_id}/{name}.json", download),
    Page("/jobs/{job_id}/stream", follow, takes=("name", "after")),
    acting("/jobs/{job_id}/cancel", "cancel", of_job, lambda rows: OUTCOMES[rows[0][0]]),
    acting("/jobs/{job_id}/redrive", "redrive", of_job, lambda rows: (REDRIVEN[rows[0][0]],)),
    Page("/jobs/{job_id}/rerun", rerun, "POST"),
    acting("/jobs/{job_id}/run", "change_many",
           lambda visit: {"changes": '{"run_at": "now"}', "job_ids": [id_of(visit)]},
           "The job may run now."),
    acting("/jobs/{job_id}/tree/cancel", "cancel_tree", of_job,
           lambda rows: (f"Cancelled, or cancellation requested: {plural(len(rows), 'job')}.",)),
    acting("/jobs/{job_id}/tree/redrive", "redrive_tree",
           lambda visit: {"scope": "failed", **of_job(visit)},
           lambda rows: (f"Redriven: {plural(len(rows), 'job')}.",)),
)  # fmt: skip
