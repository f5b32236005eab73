"""Commands for events, signals and graphs."""

from __future__ import annotations

from jobq.calls.arguments import encode
from jobq_cli.declared import calling, group, limited
from jobq_cli.parameters import Json, argument, limit, option, reason

JOB_ID = argument("job_id")
PAYLOAD = argument("payload", default="null", type=Json())


def emitted(is_first: bool) -> list[str]:
    """Return the result of an emit."""
    return ["emitted" if is_first else "already emitted: the first payload is kept"]


# fmt: off
emit = calling(
    "emit", "emit",
    "Emit EVENT with PAYLOAD (JSON, or - for standard input).\n\n"
    "All jobs that wait for it continue. Only the first emit of an event counts.",
    argument("event"), PAYLOAD, lines=emitted)
publish = calling(
    "publish", "publish",
    "Enqueue a job with PAYLOAD for each kind that has subscribed to EVENT. Prints ids and kinds.",
    argument("event"), argument("payload", default="{}", type=Json()),
    option("--idempotency-key", help="Publishing again with this key creates no second job."),
    lines=lambda found: [f"{job_id} {kind}" for kind, job_id in found.items()])
subscriptions = group(
    "subscriptions", "Manage which kinds get a job for which published events.",
    calling("list", "list_subscriptions", "List the subscriptions.",
            rows=("event", "kind", "queue", "created_at")),
    calling("add", "subscribe", "Subscribe KIND to EVENT.", argument("event"), argument("kind"),
            option("--queue", help="Queue of the jobs.  [default: the kind's queue]")),
    calling("remove", "unsubscribe", "End the subscription of KIND to EVENT.",
            argument("event"), argument("kind")),
)
signal = calling(
    "signal", "signal",
    "Send the signal NAME with PAYLOAD (JSON, or - for standard input) to a job.",
    JOB_ID, argument("name"), PAYLOAD,
    lines=lambda is_first: ["sent" if is_first else "already sent: the first payload is kept"])
waits = calling(
    "waits", limited("list_waits", "max_rows", "questions"),
    "List the questions of jobs that wait for a person, the oldest first.",
    option("--queue", help="Only of this queue."), limit(100, name="max_rows", of="questions"),
    rows=("job_id", "name", "question", "since", "expires_at", "asked_by", "form"))
answer = calling(
    "answer", "answer", "Answer the question NAME of a job: approve it, or --reject it.",
    JOB_ID, argument("name"),
    option("--reject", "is_approved", is_flag=True, flag_value=False, default=True,
           show_default=False, help="Reject it."),
    option("--data", default="null", type=Json(), show_default=False,
           help="The data that the form asks for: JSON, or - for standard input."),
    reason("given to the handler and audited"),
    option("--by", "answered_by", help="The person in whose name you answer."),
    lines=lambda _none: ["answered"])
send = calling(
    "send", "send_message",
    "Send a message NAME with PAYLOAD (JSON, or - for standard input) to a job. Prints its number.",
    JOB_ID, argument("name"), PAYLOAD, lines=lambda number: [number])
stream = calling(
    "stream", "stream",
    "Print the chunks of STREAM of a job as JSON lines, also future ones, until the job has ended.",
    JOB_ID, argument("stream"),
    option("--after", help="Continue after this cursor."),
    lines=lambda chunks: (encode(
        {"cursor": c.cursor, "generation": c.generation, "chunk": c.value}
    ) for c in chunks))
streams = calling(
    "streams", "list_streams", "List the streams of a job.", JOB_ID,
    rows=("stream", "generation", "chunks", "cursor", "appended_at"))
fork = calling(
    "fork", "fork",
    "Enqueue a copy of a job that takes over its recorded steps. Prints its id.", JOB_ID,
    option("--from-step", help="The first step that the copy runs again.  [default: none]"),
    lines=lambda job_id: [job_id])
graph = calling(
    "graph", "enqueue_graph",
    "Enqueue GRAPH (JSON, or - for standard input). Prints ids and names.",
    argument("graph", type=Json(is_object=True)),
    lines=lambda found: [f"{job_id} {name}" for name, job_id in found.items()])
cancel_tree = calling(
    "cancel-tree", "cancel_tree", "Cancel JOB_ID and all connected jobs. Prints the jobs.", JOB_ID,
    option("--downstream", "scope", is_flag=True,
           callback=lambda _context, _parameter, is_part: "downstream" if is_part else "all",
           help="Only the job and those that wait for it."),
    reason("stored with the jobs"),
    lines=lambda found: [f"{job.job_id} {job.outcome}" for job in found])
# fmt: on
