"""The smallest job: report that the worker is alive, once or on a schedule.

client.enqueue("health_check", HealthCheck())  # now
client.create_schedule("health", "health_check", "*/5 * * * *")  # every five minutes
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jobq.registry import JobContext


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """A health check takes no options."""


async def health_check(_payload: HealthCheck, context: JobContext) -> dict[str, str]:
    """Log the time and return it."""
    checked_at = datetime.now(UTC).isoformat()
    await context.log("INFO", f"healthy at {checked_at}")
    return {"checked_at": checked_at}
