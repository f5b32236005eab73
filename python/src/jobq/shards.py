"""Where a new job goes in a cluster: the rule that clients share with its router."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

__all__ = ["choose_shard", "shard_of"]


def shard_of(job_id: UUID) -> int:
    """Return the shard that a job is on, as jobq.shard_of() does: the tenth byte of its id."""
    return job_id.bytes[9]


def choose_shard(
    shard_ids: Sequence[int],
    concurrency_key: str | None = None,
    idempotency_key: str | None = None,
    dedup_key: str | None = None,
    *,
    after: Sequence[UUID] | None = None,
    batch_id: UUID | None = None,
) -> int:
    """Return the shard for a new job, as jobq.choose_shard() does.

    Args:
        shard_ids: the shards that get new keys.
        concurrency_key: decides, where it is given.
        idempotency_key: decides next.
        dedup_key: decides next; without any the shard is drawn by lot.
        after: the jobs that it waits for: it goes where the first of them is.
        batch_id: the batch that it becomes a member of: it goes there before all.
    """
    if batch_id is not None:
        return shard_of(batch_id)
    if after:
        return shard_of(after[0])
    for key in (concurrency_key, idempotency_key, dedup_key):
        if key is not None:
            return max(shard_ids, key=lambda shard: _weight(shard, key))
    return random.choice(shard_ids)  # noqa: S311 - no secret


def _weight(shard: int, key: str) -> str:
    return hashlib.md5(f"{shard}:{key}".encode(), usedforsecurity=False).hexdigest()
