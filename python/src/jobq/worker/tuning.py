"""Every tuning constant of the worker, with its unit and its reason."""

from __future__ import annotations

from typing import Final

# ---- claiming and settling

# Jobs in one exchange, and lines or steps in one call. A larger batch saves next to nothing, and
# holds locks for longer.
MAX_BATCH: Final = 500
# Seconds of work that a worker claims ahead of its slots. Other workers need not wait for it.
PREFETCH_SECONDS: Final = 0.05
# Bytes of payloads that a worker holds ahead, so that large ones do not fill its memory.
PREFETCH_BYTES: Final = 16 * 1024 * 1024
# Seconds that a claimed job waits for a slot, a fifth of its lease at most. Then it goes back.
PREFETCH_PATIENCE: Final = 1.0
# Seconds that the end of a job waits for a claim to go with while jobs come more often than
# this. Something that waits for the end is not kept waiting.
SETTLE_DELAY: Final = 0.01
# Seconds without an answer after which a database keeps no slots from the process's other ones.
SLOW_ANSWER: Final = 1.0

# ---- sleeping

# Seconds without a job before a worker asks to be woken: longer than the pauses of a load.
IDLE_AFTER: Final = 0.02
# Seconds before a claim is repeated whose work was due and locked: the first and the last one.
RETRY_FIRST: Final = 0.002
RETRY_LAST: Final = 0.05
# Seconds between claims of a worker that nobody wakes, `poll` at most.
POLL_LAST: Final = 2.0
# Seconds between signs of life. After 60 s without one, a worker does not count any more.
SIGN_OF_LIFE: Final = 45.0
# Seconds between calls of maintain() while there are jobs, give or take a half.
MAINTAIN_EVERY: Final = 3.0
# Seconds between checks of the jobs that a worker holds. The shortest lease is 1 s.
TICK: Final = 0.25
# Seconds after which a kind without a handler is tried again where handlers can be added.
UNKNOWN_KIND_SECONDS: Final = 60.0

# ---- connections

# Seconds that a call may take: a third of the default lease. A dead peer is noticed in this time.
CALL_SECONDS: Final = 10.0
# Seconds before the next try after a failure: the first and the last one, half of it by chance.
BACKOFF_FIRST: Final = 0.1
BACKOFF_LAST: Final = 5.0
# Seconds after which a connection that nobody uses is closed.
SPARE_SECONDS: Final = 5.0

# ---- stopping

# Seconds that interrupted coroutines have to end.
UNWIND: Final = 1.0
# Seconds for the last settlements, for on_dead, and for the process to end.
LAST_CALLS: Final = 5.0
# Seconds beyond the grace period after which a worker has stopped, whatever its parts do.
STOP_WITHIN: Final = 20.0

# ---- handlers that do not behave

# Seconds that a handler may run on after its attempt was settled before its slot counts as
# stuck. When half of the slots are stuck, the worker restarts.
STUCK_SECONDS: Final = 5.0
# Seconds that a coroutine may block the event loop: the heartbeats of other jobs are in time.
BLOCKED_LOOP: Final = 10.0
# Lines that an attempt may log. More is not read by people, and belongs into a file.
MOST_LINES: Final = 10_000
# Kinds that are named in the metrics and in the health: callers choose the names of kinds.
MOST_KINDS: Final = 100
