"""One job: its data, its history, why it does not run, and its actions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
from starlette.responses import RedirectResponse, Response

from jobq_console import approvals, graph, words
from jobq_console.visit import Page, Visit
from jobq_console.visitor import Visitor
from jobq_console.words import plural
from jobq_http import operation
from jobq_http.errors import ApiError
from jobq_http.executions import LAST_LINE

MOST_ATTEMPTS: Final = 200
MOST_LINES: Final = 200
MOST_STEPS: Final = 500
MOST_STREAMS: Final = 10
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
    # The other calls refuse the id of a recurring job, so this is checked first.
    [(document,)] = await ask.rows("jobq_http.show_job", job_id=job_id, vocabulary="kind")
    job, texts = read(document)
    if "result" not in texts:
        return RedirectResponse(f"{visit.base}/schedules/{job_id}", 303)
    (attempts, _), (lines, more), reasons, tree, steps, questions, written = await asyncio.gather(
        ask.page("jobq_http.page_attempts", job_id=job_id, max_attempts=MOST_ATTEMPTS),
        ask.page("jobq_http.page_logs", job_id=job_id, max_lines=MOST_LINES, before=before(visit)),
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
    for name, generation, count, *_ in (await ask.rows("list_streams", job_id=job_id))[
        :MOST_STREAMS
    ]:
        [(chunks, cursor, _)] = await ask.rows(
            "read_stream", job_id=job_id, stream=name, after=f"{generation}-0"
        )
        parts = [c["chunk"] for c in msgspec.json.decode(chunks)]
        text = "".join(c if isinstance(c, str) else f"{words.json(c)}\n" for c in parts)
        found.append({
            "name": name, "generation": generation, "count": count, "text": text, "cursor": cursor,
        })  # fmt: skip
    return found


def id_of(visit: Visit) -> UUID:
    """Return the id in the path.

    Raises:
        ApiError: it is not a valid id.
    """
    missing = ApiError("JOB_NOT_FOUND", message="This job does not exist.")
    return operation.id_of(visit.request.path_params["job_id"], missing)


def before(visit: Visit) -> int:
    """Return the line before which the log is shown; None shows its end."""
    text = visit.query("before") or ""
    is_number = text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_number else LAST_LINE


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
    check_shown(visit)
    name = visit.request.path_params["name"]
    if name not in RAW:
        raise ApiError("NOT_FOUND")
    job_id = id_of(visit)
    [(document,)] = await visit.visitor.rows("jobq_http.show_job", job_id=job_id, vocabulary="kind")
    _, texts = read(document)
    return file(texts[name], f"{job_id}-{name}.json")


def check_shown(visit: Visit) -> None:
    """Check that payloads are not hidden.

    Raises:
        ApiError: they are hidden.
    """
    if visit.console.options.hides_payloads:
        raise ApiError("FORBIDDEN", message="Payloads are hidden.")


def file(text: str, name: str) -> Response:
    """Return JSON as a download."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/json", headers=headers)


def acting(
    part: str, function: str, told: Callable[[list[Any]], tuple[str, ...]], **fixed: object
) -> Page:
    """Return the action of a form that calls one function with the job's id.

    Functions that cancel take the form's reason too.
    """

    async def act(visit: Visit) -> Response:
        reason = {"reason": visit.reason} if function.startswith("cancel") else {}
        given = {"job_id": id_of(visit), **reason, **fixed}
        visit.tell(*told(await visit.visitor.act(function, **given)))
        return to_job(visit)

    return Page(f"/jobs/{{job_id}}/{part}", act, "POST")


async def rerun(visit: Visit) -> Response:
    """Create a copy of a finished job, and show it."""
    [(job_id,)] = await visit.visitor.act("rerun", job_id=id_of(visit))
    visit.tell("This job is a copy of the finished one.")
    return visit.back(f"/jobs/{job_id}")


async def run_now(visit: Visit) -> Response:
    """Let a waiting job run now."""
    changes: Mapping[str, object] = {"changes": '{"run_at": "now"}', "job_ids": [id_of(visit)]}
    await visit.visitor.act("change_many", **changes)
    visit.tell("The job may run now.")
    return to_job(visit)


def to_job(visit: Visit) -> Response:
    """Redirect to the job."""
    return visit.back(f"/jobs/{id_of(visit)}")


PAGES = (
    Page("/jobs/{job_id}", show, takes=("before",)),
    Page("/jobs/{job_id}/{name}.json", download),
    acting("cancel", "cancel", lambda rows: OUTCOMES[rows[0][0]]),
    acting("redrive", "redrive", lambda rows: (REDRIVEN[rows[0][0]],)),
    Page("/jobs/{job_id}/rerun", rerun, "POST"),
    Page("/jobs/{job_id}/run", run_now, "POST"),
    acting(
        "tree/cancel", "cancel_tree",
        lambda rows: (f"Cancelled, or cancellation requested: {plural(len(rows), 'job')}.",),
    ),
    acting(
        "tree/redrive", "redrive_tree",
        lambda rows: (f"Redriven: {plural(len(rows), 'job')}.",), scope="failed",
    ),
)  # fmt: skip
