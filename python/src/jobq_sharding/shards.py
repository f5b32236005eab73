"""The shard of a new job, by the rule that clients and the router share."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from uuid import UUID

# The number of slots of keys, which are distributed over the shards.
SLOTS: Final = 16384


def shard_of(job_id: UUID) -> int:
    """Return the shard of a job: the tenth byte of its id, as in jobq_internal.shard_of()."""
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

    The first of these that is given determines it: batch, first parent, concurrency key,
    idempotency key, dedup key. Without any of them it is random.
    """
    if batch_id is not None:
        return shard_of(batch_id)
    if after:
        return shard_of(after[0])
    for key in (concurrency_key, idempotency_key, dedup_key):
        if key is not None:
            return _of_slot(tuple(shard_ids), int.from_bytes(_md5(key)[:2]) % SLOTS)
    return random.choice(shard_ids)  # noqa: S311 - not a secret


@lru_cache(maxsize=4 * SLOTS)
def _of_slot(shard_ids: tuple[int, ...], slot: int) -> int:
    """Return the shard of a slot, so that slots move only to new shards."""
    return max(shard_ids, key=lambda shard: _md5(f"{shard}:{slot}"))


def _md5(text: str) -> bytes:
    return hashlib.md5(text.encode(errors="surrogatepass"), usedforsecurity=False).digest()
