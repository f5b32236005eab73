"""A tree of jobs in the terminal: parents above the jobs that wait for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from jobq.models import Json


def drawn(graph: dict[str, Json]) -> Iterator[str]:
    """Yield a line for each job and each dependency.

    The jobs below a job are drawn only the first time. A star marks the requested job. Deleted
    and hidden jobs are not drawn.

    Args:
        graph: as ``show_graph`` of the database returns it.
    """
    nodes = {node["job_id"]: node for node in graph["nodes"]}
    edges = [e for e in graph["edges"] if e["parent_id"] in nodes and e["child_id"] in nodes]
    children: dict[str, list[str]] = defaultdict(list)
    waiting = {edge["child_id"] for edge in edges}
    for edge in edges:
        children[edge["parent_id"]].append(edge["child_id"])
    seen: set[str] = set()
    branches = [(job_id, 0) for job_id in reversed(nodes) if job_id not in waiting]
    while branches:
        job_id, depth = branches.pop()
        is_known = job_id in seen
        yield _line(nodes[job_id], depth, is_asked=job_id == graph["job_id"], is_known=is_known)
        if not is_known:
            seen.add(job_id)
            branches += [(child, depth + 1) for child in reversed(children[job_id])]
    if not graph["is_whole"]:
        yield "and more"
    elif len(edges) < len(graph["edges"]):
        yield "and deleted or hidden jobs"


def _line(node: dict[str, Any], depth: int, *, is_asked: bool, is_known: bool) -> str:
    name = node["name"] or node["kind"]
    star = " *" if is_asked else ""
    if is_known:
        return f"{'  ' * depth}{name}{star} (above)"
    state = node["state"]
    if node["waits_for"]:
        state = f"{state}, waits for {node['waits_for']}"
    elif node["error_code"] and state in ("dead", "cancelled", "retrying"):
        state = f"{state}, {node['error_code']}"
    return f"{'  ' * depth}{name}{star}  {state}  {node['job_id']}"
