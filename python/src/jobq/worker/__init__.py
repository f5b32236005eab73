"""The worker: claims jobs, runs their handlers, settles them."""

from jobq.worker.signals import EXIT_FAILED, EXIT_OK, EXIT_RECYCLE
from jobq.worker.worker import Shared, Worker, loop_factory

__all__ = ["EXIT_FAILED", "EXIT_OK", "EXIT_RECYCLE", "Shared", "Worker", "loop_factory"]
