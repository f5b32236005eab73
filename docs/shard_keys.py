"""Print how full the fullest shard of a cluster gets, by the rule that places jobs.

Tenants are as large as Zipf's law has it: the n-th has n**-s of what the first has. Run
`python docs/shard_keys.py`; its table is in docs/contributing/design.md.
"""

from __future__ import annotations

from jobq_sharding.shards import choose_shard

SHARDS = (2, 4, 16, 64)
TENANTS = (100, 1_000, 10_000)
SKEWS = (0.0, 0.8, 1.2)


def fullest(places: list[int], shards: int, skew: float) -> float:
    """Return the load of the fullest shard, as a multiple of the mean."""
    loads = [0.0] * shards
    for tenant, place in enumerate(places, 1):
        loads[place] += tenant**-skew
    return max(loads) * shards / sum(loads)


def table() -> str:
    """Return the table of all cases, in Markdown."""
    lines = [
        "| tenants, skew | largest tenant | " + " | ".join(f"{n} shards" for n in SHARDS) + " |",
        "| --- | --- |" + " --- |" * len(SHARDS),
    ]
    places = {
        shards: [choose_shard(range(shards), f"tenant-{n + 1}") for n in range(max(TENANTS))]
        for shards in SHARDS
    }
    for tenants in TENANTS:
        for skew in SKEWS:
            share = 1 / sum(tenant**-skew for tenant in range(1, tenants + 1))
            cells = [f"{fullest(places[shards][:tenants], shards, skew):.2f}" for shards in SHARDS]
            lines.append(f"| {tenants:,}, {skew:g} | {share:.1%} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
