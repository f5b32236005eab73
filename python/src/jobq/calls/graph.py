"""Graphs of jobs that wait for each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from jobq.calls.arguments import JOB_TEXTS, as_object, as_text, refuse_lists
from jobq.errors import InvalidArgument
from jobq.models import AfterFailure, Json


@dataclass(frozen=True, slots=True)
class Node:
    """A job of a graph, by its name there. Only jobs of the same graph can wait for it."""

    name: str
    graph: Graph | None = field(default=None, repr=False, compare=False)


class Graph:
    """Jobs that are enqueued together, by `Client.enqueue_graph`.

    flow = Graph()
    a = flow.add("fetch", url)
    b = [flow.add("resize", width, after=[a]) for width in (100, 200)]
    flow.add("report", after=b)
    """

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, Json]] = {}
        self._counts: dict[str, int] = {}

    def add(
        self,
        kind: str,
        payload: Json = None,
        *,
        name: str | None = None,
        after: Iterable[Node | UUID | str] = (),
        before: Iterable[Node | UUID | str] = (),
        after_failure: AfterFailure | None = None,
        **options: Json,
    ) -> Node:
        """Add a job.

        Args:
            kind: names the handler.
            payload: as for ``enqueue``.
            name: in the graph, 1 to 256 characters; by default the kind, then ``kind#2``.
            after: the jobs to wait for: nodes of this graph, ids of other jobs, or names in the
                graph that this one joins.
            before: blocked jobs of the graph that this one joins, which then wait for this job.
            after_failure: ``cancel``, ``wait`` or ``run``, as for ``enqueue``.
            **options: of ``enqueue``, except keys; in a schedule's graph also no ``expires_at``.

        Raises:
            InvalidArgument: the name is used twice, a node belongs to another graph, or a list is
                given for a text.
        """
        refuse_lists({"kind": kind, "name": name, **options}, JOB_TEXTS)
        name = self._free_name(kind) if name is None else name
        if name in self._jobs:
            raise InvalidArgument("a name of a graph is given twice", detail=name)
        job = {
            "kind": kind,
            "payload": payload,
            "after": self._names("after", after) or None,
            "before": self._names("before", before) or None,
            "after_failure": after_failure,
            **options,
        }
        given = {member: value for member, value in job.items() if value is not None}
        self._jobs[name] = {"name": name, **given}
        return Node(name, self)

    @property
    def jobs(self) -> list[Mapping[str, Any]]:
        """The jobs, as ``enqueue_graph`` of the database takes them."""
        return list(self._jobs.values())

    def _names(self, argument: str, jobs: Iterable[Node | UUID | str]) -> list[str]:
        if isinstance(jobs, str | Node):
            raise InvalidArgument(
                "jobs of a graph are given as a list", detail=f"{argument}: {jobs}"
            )
        return [self._name_of(job) for job in jobs]

    def _name_of(self, job: Node | UUID | str) -> str:
        if not isinstance(job, Node):
            return as_text(job)
        if job.graph not in (None, self):
            raise InvalidArgument(
                "a job of another graph is given by its name there, or by its id", detail=job.name
            )
        return job.name

    def _free_name(self, kind: str) -> str:
        while True:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            name = kind if count == 1 else f"{kind}#{count}"
            if name not in self._jobs:
                return name


def as_document(graph: Graph | Mapping[str, Json]) -> dict[str, Any]:
    """Return a graph as the database takes it."""
    return {"jobs": graph.jobs} if isinstance(graph, Graph) else as_object("graph", graph)


def payloads_of(document: Mapping[str, Any]) -> Sequence[tuple[str, Json]]:
    """Return the kinds and payloads of the jobs of a graph.

    Raises:
        InvalidArgument: a list is given for a text of a job.
    """
    jobs = _jobs_of(document)
    for job in jobs:
        refuse_lists(job, JOB_TEXTS)
    return [(str(job.get("kind")), job.get("payload")) for job in jobs]


def others_of(document: Mapping[str, Any]) -> list[str]:
    """Return the jobs outside a graph that `after` and `before` in it name."""
    jobs = _jobs_of(document)
    names = {str(job.get("name")) for job in jobs}
    lists = [job.get(option) for job in jobs for option in ("after", "before")]
    found = [str(other) for given in lists if isinstance(given, list | tuple) for other in given]
    return [other for other in found if other not in names]


def _jobs_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    jobs = document.get("jobs")
    return [j for j in (jobs if isinstance(jobs, list | tuple) else ()) if isinstance(j, Mapping)]
