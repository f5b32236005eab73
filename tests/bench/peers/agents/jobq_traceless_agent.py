"""jobq with jobs that leave no trace when they succeed, as in queues that delete."""

from __future__ import annotations

import sys

import psycopg
from agent import main

from jobq_agent import JobqAgent, work


class TracelessAgent(JobqAgent):
    """jobq with a kind of which nothing is kept."""

    async def install(self, url: str) -> str:
        version = await super().install(url)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute("select jobq.put_kind('noop', keep_succeeded => '0')")
        return version


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2])
    else:
        main(TracelessAgent())
