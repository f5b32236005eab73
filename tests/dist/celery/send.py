"""Send a chain, and print what it has come to."""

from __future__ import annotations

from tasks import add

from jobq_contrib.celery import chain

print(add.delay(2, 3).get(timeout=60), chain(add.s(1, 2), add.s(10)).apply_async().get(timeout=60))
