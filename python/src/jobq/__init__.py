"""jobq: a job queue and scheduler that lives in PostgreSQL."""

from jobq.calls.events import Event, EventPage
from jobq.calls.graph import Graph
from jobq.calls.streams import Chunk, StreamPage
from jobq.client import AsyncClient, Client
from jobq.errors import ChildFailed, EventTimeout, JobqError
from jobq.models import (
    Answer,
    Attempt,
    Batch,
    ClaimedJob,
    Enqueued,
    Explanation,
    Input,
    Job,
    JobPage,
    LogLine,
    Question,
    QueueGrant,
    QueueStats,
    Schedule,
    Slot,
    Steered,
    Step,
    StreamInfo,
    Worked,
)
from jobq.registry import (
    Cancelled,
    JobContext,
    Permanent,
    RateLimited,
    Registry,
    Retry,
    Snooze,
    Unable,
)
from jobq.registry.children import Arrived, Child
from jobq.version import __version__
from jobq.worker import Worker

__all__ = [
    "Answer",
    "Arrived",
    "AsyncClient",
    "Attempt",
    "Batch",
    "Cancelled",
    "Child",
    "ChildFailed",
    "Chunk",
    "ClaimedJob",
    "Client",
    "Enqueued",
    "Event",
    "EventPage",
    "EventTimeout",
    "Explanation",
    "Graph",
    "Input",
    "Job",
    "JobContext",
    "JobPage",
    "JobqError",
    "LogLine",
    "Permanent",
    "Question",
    "QueueGrant",
    "QueueStats",
    "RateLimited",
    "Registry",
    "Retry",
    "Schedule",
    "Slot",
    "Snooze",
    "Steered",
    "Step",
    "StreamInfo",
    "StreamPage",
    "Unable",
    "Worked",
    "Worker",
    "__version__",
]
