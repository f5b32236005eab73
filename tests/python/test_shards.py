"""Several databases as one: where jobs go, and who finds them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from jobq.shards import choose_shard, shard_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    Connection = psycopg.Connection[tuple[object, ...]]


def test_python_and_sql_choose_the_same_shard(connect: Callable[[], Connection]) -> None:
    lots = random.Random(7)
    keys = ["", "a", "ключ", "🔑", "a:b", *(f"k-{lots.getrandbits(64)}" for _ in range(3000))]
    cases = [(sorted(lots.sample(range(256), lots.randint(1, 9))), key) for key in keys]
    connection = connect()
    with connection.cursor() as cursor:
        rows = cursor.execute(
            """select jobq.choose_shard(c.shards::integer[], c.key), jobq.choose_shard(
                c.shards::integer[], idempotency_key => c.key, dedup_key => 'x')
            from unnest(%s::text[], %s::text[]) as c (shards, key)""",
            (["{" + ",".join(map(str, shards)) + "}" for shards, _ in cases], keys),
        ).fetchall()
    assert rows == [
        (choose_shard(shards, key), choose_shard(shards, None, key, "x")) for shards, key in cases
    ]


def test_the_id_tells_the_shard(connect: Callable[[], Connection]) -> None:
    connection = connect()
    connection.execute("select jobq.put_shard(200, 'postgresql://here/app', true)")
    rows = connection.execute("select id, jobq.shard_of(id) from jobq.enqueue('k') as id")
    for job_id, shard in rows.fetchall():
        assert shard_of(job_id) == shard == 200  # type: ignore[arg-type]
        assert choose_shard([1], "k", after=[job_id]) == 200  # type: ignore[list-item]
        assert choose_shard([1], "k", batch_id=job_id) == 200  # type: ignore[arg-type]
