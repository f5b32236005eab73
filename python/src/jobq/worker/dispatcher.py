"""The worker's heart: it keeps the slots full, and settles what has ended.

One loop makes one exchange after the other. Meanwhile jobs run as tasks: what ends while an
exchange is under way is settled by the next, so batches grow by themselves with the load.
A job is never settled later than `LINGER` after its end, unless an exchange is under way.
While jobs come as fast as one exchange after the other can bring them, two are under way at a
time, so that neither the database nor the worker waits for the other.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from jobq.errors import DatabaseUnavailable
from jobq.worker.held import Failed, Gone, Held, Released, Settlement
from jobq.worker.link import Pace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from jobq.worker.exchange import Exchange
    from jobq.worker.listener import Listener

__all__ = ["Dispatcher"]

logger = logging.getLogger("jobq.worker")

LINGER: Final = 0.02
BATCH: Final = 500
PREFETCH: Final = 3 * BATCH
LOAD: Final = 16 * 1024 * 1024
HORIZON: Final = 0.05
SMOOTHING: Final = 0.01
BURST: Final = 32
REST: Final = 0.02
SHORTEST_REST: Final = 0.002
LONGEST_REST: Final = 0.25
LONGEST_POLL: Final = 2.0


class Dispatcher:
    """Claims, starts and settles jobs.

    Args:
        exchanges: make the calls that settle and claim, each one at a time.
        listener: what tells of new jobs, or None to poll.
        run: runs a job and returns how it is to be settled.
        due_in: tells for how many seconds no job will be due, None for any.
        order: returns the queues in the order in which to look at them.
        slots: how many jobs run at a time.
        poll: seconds between looks when nothing tells of new jobs.
        on_start: called when a job starts.
        on_end: called when a job is settled, with the outcome.
    """

    def __init__(
        self,
        exchanges: Iterable[Exchange],
        listener: Listener | None,
        run: Callable[[Held], Awaitable[Settlement]],
        due_in: Callable[[], Awaitable[float | None]],
        order: Callable[[], Sequence[str]],
        *,
        slots: int,
        poll: float,
        on_start: Callable[[Held], None],
        on_end: Callable[[Held, str], None],
    ) -> None:
        self._exchanges = list(exchanges)
        self._listener = listener
        self._run_job = run
        self._due_in = due_in
        self._order = order
        self._slots = slots
        self._poll = poll
        self._on_start = on_start
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._buffer: deque[Held] = deque()
        self._running: dict[str, Held] = {}
        self._settled: list[Held] = []
        self._unsent: list[Held] = []
        self._sent: list[list[Held]] = []
        self._asked = 0
        self._trades: set[asyncio.Task[None]] = set()
        self._is_pressed = False
        self._pace = Pace()
        self._settled_since = 0.0
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_at = math.inf
        self._is_hungry = True
        self._announce_at = 0.0
        self._rest = SHORTEST_REST
        self._prefetch = 0
        self._mean = 0.1
        self._started_at = 0.0
        self._weight = 1.0
        self.is_claiming = True
        self.answered_at = 0.0

    # ---- what others ask and tell

    @property
    def is_idle(self) -> bool:
        """Whether no job is held."""
        held = self._buffer or self._running or self._settled or self._unsent
        return not (held or self._trades)

    @property
    def running(self) -> list[Held]:
        """The jobs whose handlers run, those among them that are settled already too."""
        return list(self._running.values())

    def held(self) -> Iterator[Held]:
        """Yield the jobs whose leases are to be kept."""
        for jobs in (self._buffer, self._settled, self._unsent, *self._sent):
            yield from jobs
        yield from (held for held in self._running.values() if held.settlement is None)

    def look(self) -> None:
        """There may be jobs: look as soon as there is room."""
        self._is_hungry = True
        self._wake.set()

    def stop_claiming(self) -> None:
        """Take no more jobs, and give back those that have not started."""
        self.is_claiming = False
        waiting = list(self._buffer)
        self._buffer.clear()
        self.give_back(waiting)
        self._wake.set()

    def abandon(self) -> None:
        """Give back every job that still runs, and wait for none of their handlers."""
        self.give_back([h for h in self._running.values() if h.settlement is None])
        self._running = {}
        self._wake.set()

    def give_back(self, jobs: Iterable[Held]) -> None:
        """Release jobs, their attempts not counted."""
        for held in jobs:
            self.settle(held, Released())

    def give_back_late(self, patience: float) -> None:
        """Release what has waited too long for a slot, so that others can take it."""
        now = time.monotonic()
        if self._buffer and now - self._buffer[0].held_at > min(
            patience, self._buffer[0].lease / 5
        ):
            logger.info("giving back %d jobs that wait for a slot", len(self._buffer))
            late = list(self._buffer)
            self._buffer.clear()
            self._prefetch = self._ahead()  # not to take the same jobs again
            self.give_back(late)

    def settle(self, held: Held, settlement: Settlement) -> None:
        """Have a job settled; its task, if it still runs, keeps its slot."""
        if held.settlement is not None:
            return
        held.settlement = settlement
        held.stop()
        if isinstance(settlement, Gone):
            self._on_end(held, settlement.outcome)
        else:
            if not self._settled:
                self._settled_since = time.monotonic()
            self._settled.append(held)
        self._consider()

    # ---- the loop

    async def run(self) -> None:
        """Work until `stop_claiming` was called and nothing is held."""
        try:
            while self.is_claiming or not self.is_idle:
                self._wake.clear()
                try:
                    await self._step()
                except DatabaseUnavailable as error:
                    logger.warning("the database is unavailable: %s", error)
                    await asyncio.sleep(self._pace.next())
                    self._is_hungry = True
        finally:
            for trade in self._trades:
                trade.cancel()
            if self._expiry is not None:
                self._expiry.cancel()

    async def _step(self) -> None:
        """Do what is to be done next, or wait until something is."""
        done = [trade for trade in self._trades if trade.done()]
        for trade in done:
            self._trades.discard(trade)
            trade.result()
        if done:
            return  # that may have been all
        if self._may_trade():
            trade = self._loop.create_task(self._trade(self._exchanges.pop()))
            self._trades.add(trade)
            trade.add_done_callback(lambda _: self._wake.set())
        elif self._trades:
            await self._wake.wait()
        elif self._should_announce():
            await self._announce()
        else:
            await self._sleep()

    async def _trade(self, exchange: Exchange) -> None:
        """Make one exchange."""
        asked = self._room()
        is_repeat = bool(self._unsent)
        settled = self._unsent + self._settled
        self._unsent, self._settled = [], []
        self._is_hungry = self._is_pressed
        self._asked += asked
        self._sent.append(settled)
        try:
            claimed = await exchange.settle_and_claim(settled, self._order(), asked)
        except BaseException:
            self._unsent += settled
            self._is_pressed = False
            raise
        finally:
            self._asked -= asked
            self._sent.remove(settled)
            self._exchanges.append(exchange)
        self._pace.reset()
        self.answered_at = time.monotonic()
        if claimed.jobs:
            self._weigh(claimed.jobs)
        self._prefetch = self._ahead()
        is_full = 0 < asked == len(claimed.jobs)
        self._is_hungry = self._is_hungry or is_full
        self._is_pressed = is_full and asked == BATCH
        if claimed.jobs:
            self._rest = SHORTEST_REST
            if self.is_claiming:
                self._buffer += claimed.jobs
                self._fill()
            else:
                self.give_back(claimed.jobs)
        for held in settled:
            outcome = claimed.outcomes.get(held.job_id, "lost")
            self._on_end(held, "unknown" if is_repeat and outcome == "lost" else outcome)
        if is_full or len(claimed.jobs) >= BURST:
            self._announce_at = self.answered_at + REST
            if self._listener is not None:
                await self._listener.end_wait()

    def _may_trade(self) -> bool:
        """Whether to begin an exchange: one at a time, or two while jobs press."""
        return len(self._trades) <= self._is_pressed and self._is_due()

    def _is_due(self) -> bool:
        """Whether it is time for an exchange."""
        if self._unsent:
            return True
        if self._settled:
            waited = time.monotonic() - self._settled_since
            if not self._buffer or waited >= LINGER:
                return True
        has_room = len(self._buffer) + self._asked <= self._prefetch // 2 and self._room() > 0
        return self._is_hungry and has_room

    def _room(self) -> int:
        """How many jobs to ask for."""
        if not self.is_claiming:
            return 0
        held = len(self._buffer) + len(self._running) + self._asked
        most = max(1, min(BATCH, int(LOAD / self._weight)))
        return max(0, min(self._slots + self._prefetch - held, most))

    def _ahead(self) -> int:
        """Return how many jobs to claim ahead: what starts within `HORIZON`, at most `LOAD`."""
        is_full = len(self._running) >= self._slots
        stalled = time.monotonic() - self._started_at if is_full else 0.0
        soon = HORIZON * self._slots / max(self._mean, stalled, 1e-6)
        return int(min(PREFETCH, soon, LOAD / self._weight))

    def _weigh(self, jobs: Sequence[Held]) -> None:
        """Note how long the payloads of claimed jobs are; a rise counts at once."""
        mean = sum(len(held.payload) for held in jobs) / len(jobs)
        self._weight = max(1.0, mean, (self._weight + mean) / 2)

    def _fill(self) -> None:
        """Start waiting jobs while there are free slots."""
        while self._buffer and len(self._running) < self._slots:
            held = self._buffer.popleft()
            if held.settlement is not None:
                continue
            self._running[held.job_id] = held
            held.started_at = self._started_at = time.monotonic()
            if held.expires_at < self._expiry_at:
                self._set_expiry(held.expires_at)
            self._on_start(held)
            held.task = self._loop.create_task(self._execute(held))

    async def _execute(self, held: Held) -> None:
        """Run one job in its own task."""
        try:
            settlement = await self._run_job(held)
        except asyncio.CancelledError:
            settlement = Released()
        finally:
            held.task = None  # which holds the job too, through its context
            self._running.pop(held.job_id, None)
        self._mean += (time.monotonic() - held.started_at - self._mean) * SMOOTHING
        self._fill()
        if held.settlement is not None:
            # Settled before it ended: only now is its slot free.
            self.look()
        self.settle(held, settlement)

    def _set_expiry(self, moment: float) -> None:
        """Look then, by time.monotonic, for attempts that have taken too long."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry_at = moment
        pause = max(0.001, moment - time.monotonic())
        self._expiry = self._loop.call_later(pause, self._expire)

    def _expire(self) -> None:
        """End attempts that have taken too long; a thread keeps its slot until it ends."""
        now = time.monotonic()
        for held in self.running:
            if held.settlement is None and held.expires_at <= now:
                text = f"the attempt took longer than {held.timeout:g} s"
                self.settle(held, Failed("TIMEOUT", text))
                held.interrupt()
        self._expiry, self._expiry_at = None, math.inf
        ends = [held.expires_at for held in self.running if held.settlement is None]
        if ends:
            self._set_expiry(min(ends))

    def _consider(self) -> None:
        """Wake the loop when it is time for an exchange, or see to it that it will be."""
        if self._wake.is_set():
            return
        if self._may_trade() or not (self.is_claiming or self._running):
            self._wake.set()
        elif self._settled and self._timer is None:
            self._timer = self._loop.call_later(LINGER, self._on_linger)

    def _on_linger(self) -> None:
        self._timer = None
        self._wake.set()

    # ---- rest

    def _should_announce(self) -> bool:
        """Whether to tell producers that this worker is about to sleep."""
        return (
            self._listener is not None
            and self._listener.is_listening
            and not self._listener.is_waiting
            and self.is_claiming
            and self._room() > 0
            and time.monotonic() >= self._announce_at
        )

    async def _announce(self) -> None:
        assert self._listener is not None  # noqa: S101 - there is something to announce to
        if not await self._listener.begin_wait():
            self._announce_at = time.monotonic() + self._rest * random.uniform(0.5, 1)  # noqa: S311
            self._rest = min(self._rest * 2, LONGEST_REST)
        self._is_hungry = True

    async def _sleep(self) -> None:
        """Wait until something happens, a job is due, or it is time to look again."""
        if not self.is_claiming or self._room() == 0:
            await self._wait(self._poll)
            return
        listener = self._listener
        is_told = listener is not None and listener.is_waiting
        if listener is not None and listener.is_listening and not is_told:
            await self._wait(max(0.0, self._announce_at - time.monotonic()))
            return
        if await self._wait(REST):
            return
        longest = self._poll if is_told else min(self._poll, self._next_poll())
        pause = longest * random.uniform(0.8, 1.2)  # noqa: S311 - so that workers spread
        due = await self._due_in()
        if due is not None:
            pause = min(pause, due if due > 0 else REST)
        if not await self._wait(pause):
            self._is_hungry = True

    def _next_poll(self) -> float:
        """Return the pause of a worker that nobody wakes: longer while nothing comes."""
        self._rest = min(max(REST, self._rest) * 2, LONGEST_POLL)
        return self._rest

    async def _wait(self, seconds: float) -> bool:
        """Wait to be woken; false when the time is up first."""
        if seconds <= 0 or self._wake.is_set():
            return self._wake.is_set()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
