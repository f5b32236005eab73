"""Where a new job goes in a cluster: the rule that clients share with its router."""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

__all__ = ["choose_shard", "shard_of"]

# Keys are spread over so many slots, and those over the shards.
SLOTS: Final = 16384


def shard_of(job_id: UUID) -> int:
    """Return the shard of a job, as jobq_internal.shard_of() does: the tenth byte of its id."""
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
            return _of_slot(tuple(shard_ids), int.from_bytes(_md5(key)[:2]) % SLOTS)
    return random.choice(shard_ids)  # noqa: S311 - no secret


@lru_cache(maxsize=4 * SLOTS)
def _of_slot(shard_ids: tuple[int, ...], slot: int) -> int:
    """Return the shard of the keys of a slot, by which no slot moves but to a shard that is new."""
    return max(shard_ids, key=lambda shard: _md5(f"{shard}:{slot}"))


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()
