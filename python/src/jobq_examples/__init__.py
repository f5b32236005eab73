"""Five example jobs with real work.

Each module contains the payload (a dataclass, from which the schema for checks at enqueue is made)
and the handler. Run them with ``jobq worker jobq_examples:registry``.
"""

from __future__ import annotations

from jobq.registry import Registry
from jobq_examples.email import send_email
from jobq_examples.health import health_check
from jobq_examples.images import resize_image
from jobq_examples.text import summarize_text
from jobq_examples.webhook import webhook_delivery

__all__ = ["registry"]

registry = Registry()
registry.handler("health_check", timeout=10)(health_check)
registry.handler("resize_image", max_attempts=3, timeout=60)(resize_image)
registry.handler("send_email", timeout=30)(send_email)
registry.handler("summarize_text", max_attempts=3, timeout=60)(summarize_text)
registry.handler("webhook_delivery", max_attempts=8, timeout=30)(webhook_delivery)
