"""The worker: claims jobs, runs their handlers, settles them."""

from jobq.worker.logs import configure_logging
from jobq.worker.loops import loop_factory
from jobq.worker.shards import ShardedWorker
from jobq.worker.worker import EXIT_FAILED, EXIT_OK, EXIT_RECYCLE, Worker

__all__ = [
    "EXIT_FAILED",
    "EXIT_OK",
    "EXIT_RECYCLE",
    "ShardedWorker",
    "Worker",
    "configure_logging",
    "loop_factory",
]
