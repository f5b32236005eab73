"""What `jobq worker jobs:registry` imports."""

from __future__ import annotations

import tasks  # noqa: F401 - its tasks

from jobq_contrib.celery import registry

__all__ = ["registry"]
