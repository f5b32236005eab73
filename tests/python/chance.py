"""Chance in tests: it falls alike in every run, unless the caller wants another.

JOBQ_SEED=N makes it fall as N says, JOBQ_SEED=random as it never did before; what a failed
run of that kind drew is printed in the end.
"""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, settings

USUAL = 1
NAME = "JOBQ_SEED"


def settle() -> str | None:
    """Decide how chance falls, here and in the processes started later.

    Returns:
        what to set for the same again; None where nothing needs to be set.
    """
    if os.environ.get(NAME) == "random":
        os.environ[NAME] = str(random.randrange(10**9))
    # The machine may be busy: how long something takes is no failure.
    settings.register_profile(
        "jobq",
        derandomize=NAME not in os.environ,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("jobq")
    return f"{NAME}={os.environ[NAME]}" if NAME in os.environ else None


def seed() -> int:
    """Return the number that decides."""
    return int(os.environ.get(NAME, USUAL))
