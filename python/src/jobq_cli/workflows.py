"""Commands for events, signals and graphs."""

from __future__ import annotations

from jobq_cli.declared import calling
from jobq_cli.parameters import Json, argument, option, reason

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
signal = calling(
    "signal", "signal",
    "Send the signal NAME with PAYLOAD (JSON, or - for standard input) to a job.",
    JOB_ID, argument("name"), PAYLOAD, lines=emitted)
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
