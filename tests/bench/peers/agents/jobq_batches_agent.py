"""jobq with a handler that gets many jobs in one call, as pg-boss's does."""

from __future__ import annotations

import sys

from agent import main

from jobq_agent import JobqAgent, work

if __name__ == "__main__":
    if sys.argv[1] == "work":
        work(sys.argv[2], "jobq_batch_handlers:registry", "--concurrency", "500")
    else:
        main(JobqAgent())
