"""Every tuning constant of the worker, with its unit and its reason."""

from __future__ import annotations

from typing import Final

# ---- claiming and settling

# Jobs in one exchange, and lines or steps in one call. A larger batch saves almost nothing, and
# holds locks for longer.
MAX_BATCH: Final = 500
# Seconds of work that a worker prefetches. Short, so that other workers get jobs too.
PREFETCH_SECONDS: Final = 0.05
# Bytes of prefetched payloads, so that large ones do not fill the memory.
PREFETCH_BYTES: Final = 16 * 1024 * 1024
# Seconds after which others get what this worker does not use: a claimed job that waits for a slot
# (at most a fifth of its lease), and, from a database that does not answer, its share of the slots.
PATIENCE: Final = 1.0
# Seconds that a settlement waits for the next claim, if jobs arrive more often than this. A job
# that something waits for is settled at once.
SETTLE_DELAY: Final = 0.01
# Seconds at most that a job of another release waits; a sixtieth of it for each of its attempts.
RELEASE_WAIT_LAST: Final = 15.0

# ---- sleeping

# Seconds without a job before a worker sleeps: longer than the pauses under load.
IDLE_AFTER: Final = 0.02
# Seconds before a claim is repeated whose jobs were due but locked: the first and the last one.
RETRY_FIRST: Final = 0.002
RETRY_LAST: Final = 0.05
# Seconds between claims of a worker without notifications, at most `poll`.
POLL_LAST: Final = 2.0
# Queues of a pattern of which a worker is notified. The others are found by polling.
MOST_QUEUES: Final = 10_000
# Seconds between heartbeats without jobs. After 60 s without one, a worker counts as gone.
SIGN_OF_LIFE: Final = 45.0
# Seconds between calls of maintain() while there are jobs, plus or minus a half.
MAINTAIN_EVERY: Final = 3.0
# Seconds between checks of the jobs that a worker holds. The shortest lease is 1 s.
TICK: Final = 0.25
# Seconds after which a kind without a handler is tried again where handlers can be added.
UNKNOWN_KIND_SECONDS: Final = 60.0

# ---- connections

# A third of the default lease, in seconds, so that heartbeats are still in time: the deadline of a
# call, which also detects a dead peer; twice the time limit of maintain(); how long a coroutine may
# block the event loop; and after how long a connection that nobody uses is closed.
CALL_SECONDS: Final = 10.0
# Seconds before the next try after a failure: the first and the last one, half of it random.
BACKOFF_FIRST: Final = 0.1
BACKOFF_LAST: Final = 5.0

# ---- stopping

# Seconds for interrupted coroutines to end.
UNWIND: Final = 1.0
# Seconds for the last settlements, for on_dead, and for the process to end.
LAST_CALLS: Final = 5.0
# Seconds after the grace period by which a worker has stopped, whatever its parts do.
STOP_WITHIN: Final = 20.0

# ---- misbehaving handlers

# Seconds after the settlement of an attempt until the slot of its running handler counts as
# stuck. When half of the slots are stuck, the worker restarts.
STUCK_SECONDS: Final = 5.0
# Lines that an attempt may log. People do not read more; use a file.
MOST_LINES: Final = 10_000
# Kinds named in metrics and health. Limited, because callers choose the names of kinds.
MOST_KINDS: Final = 100
