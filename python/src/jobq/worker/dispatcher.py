"""The worker's heart: it keeps the slots full, and settles what has ended.

One loop makes one exchange after the other. Meanwhile jobs run as tasks: what ends while an
exchange is under way is settled by the next, so batches grow by themselves with the load.
A job is never settled later than `LINGER` after its end, unless an exchange is under way; at
once, where nothing holds it up but the hope for company, if something may wait for its end.
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
from contextvars import copy_context
from typing import TYPE_CHECKING, Final

from jobq.errors import DatabaseUnavailable
from jobq.settlement import Failed, Gone, Released, Succeeded
from jobq.worker.appetite import BATCH, Appetite
from jobq.worker.company import RIDE, Company
from jobq.worker.forks import generation, leave_if_forked
from jobq.worker.link import Pace
from jobq.worker.logs import Sparing
from jobq.worker.rests import REST, Rests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jobq.settlement import Settlement
    from jobq.worker.attempts import Attempts
    from jobq.worker.exchange import Exchange
    from jobq.worker.held import Held
    from jobq.worker.listener import Listener
    from jobq.worker.protocol import Protocol
    from jobq.worker.queues import Queues
    from jobq.worker.slots import Slots

__all__ = ["Dispatcher"]

logger = logging.getLogger("jobq.worker")

# Seconds that a settlement waits for company while others wait for slots: not noticed by whoever
# waits for the job, and enough to make batches of quick jobs.
LINGER: Final = 0.02
# Seconds until a job that another transaction holds is settled again.
PUT_OFF: Final = 0.5
# Seconds after which a database that has not answered keeps no slots from others.
PROMPT: Final = 1.0
# Jobs in one answer from which on there are probably more: producers need not be told yet.
BURST: Final = 32
# Seconds until it is said again when a producer was in the way, doubled up to the longest.
SHORTEST_REST: Final = 0.002
LONGEST_REST: Final = 0.25
# Seconds between looks of a worker that nobody wakes, at the most.
LONGEST_POLL: Final = 2.0
# Seconds that a claimed job waits for a slot, or a fifth of its lease if that is less; then it
# is given back, so that another worker can take it.
PATIENCE: Final = 1.0
# A job waits for a process for a third of its lease: it has no longer than lease and timeout.
PROCESS_SHARE: Final = 1 / 3
# Seconds for which a handler may run on after its end was settled before it counts as stuck.
STUCK: Final = 5.0


class Dispatcher:
    """Claims, starts and settles jobs.

    Args:
        protocol: what is said to the database.
        exchange: settles and claims.
        listener: what tells of new jobs, or None to poll.
        attempts: runs the jobs.
        queues: where to look.
        slots: in which jobs run; others may have some of them.
        poll: seconds between looks when nothing tells of new jobs.
        on_empty: called when no job is due and none is held.
    """

    def __init__(
        self,
        protocol: Protocol,
        exchange: Exchange,
        listener: Listener | None,
        attempts: Attempts,
        queues: Queues,
        *,
        slots: Slots,
        poll: float,
        on_empty: Callable[[], None] | None = None,
    ) -> None:
        self._protocol = protocol
        self._exchange = exchange
        self._listener = listener
        self._attempts = attempts
        self._queues = queues
        self._slots = slots
        self._poll = poll
        self._on_empty = on_empty
        self._loop = asyncio.get_running_loop()
        self._appetite = Appetite(slots.total)
        self._buffer: deque[Held] = deque()
        self._running: dict[Held, None] = {}
        self._overdue: dict[Held, None] = {}
        self._settled: list[Held] = []
        self._company = Company()
        self._is_urgent = False
        self._put_off: list[Held] = []
        self._unsent: list[Held] = []
        self._sent: list[list[Held]] = []
        self._sent_at = 0.0
        self._asked = 0
        self._trades: set[asyncio.Task[None]] = set()
        self._is_pressed = False
        self._pace = Pace()
        self._complaints = Sparing(logger)
        self._settled_since = 0.0
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._expiry_at = math.inf
        self._is_hungry = True
        self._announce_at = 0.0
        self._rest = SHORTEST_REST
        self._rests = Rests()
        self._is_away = False
        self._is_untidy = False
        self._born = generation()
        self._context = copy_context()
        self.started_at = 0.0
        self.is_claiming = True
        slots.join(self)

    # ---- what others ask and tell

    @property
    def is_idle(self) -> bool:
        """Whether no job is held."""
        held = self._buffer or self._running or self._settled or self._unsent
        return not (held or self._put_off or self._trades)

    @property
    def running(self) -> list[Held]:
        """The jobs that have a slot and are not settled."""
        return list(self._running)

    @property
    def stuck(self) -> int:
        """How many slots are held by handlers that run on long after their jobs were settled."""
        now = time.monotonic()
        return sum(now - held.settled_at > STUCK for held in self._overdue)

    @property
    def overdue(self) -> list[Held]:
        """The jobs that are settled though their handlers run on."""
        return list(self._overdue)

    def held(self) -> Iterator[Held]:
        """Yield the jobs whose leases are to be kept."""
        for jobs in (self._buffer, self._settled, self._put_off, self._unsent, *self._sent):
            yield from jobs
        yield from self._running

    @property
    def taken(self) -> int:
        """How many slots are taken."""
        return len(self._running) + len(self._overdue)

    @property
    def wants(self) -> bool:
        """Whether jobs wait for a slot, or may be there to be claimed."""
        if not self.is_claiming or self._is_away or self._is_unanswered():
            return False
        return self._is_hungry or self._asked > 0 or len(self._buffer) > 0

    def _is_unanswered(self) -> bool:
        """Whether an exchange takes so long that others should not keep slots for its jobs."""
        return bool(self._sent) and time.monotonic() - self._sent_at > PROMPT

    def refill(self) -> None:
        """Start what waits, or look for more: another dispatcher has left a slot."""
        self._fill()
        self._consider()

    def look(self) -> None:
        """There may be jobs: look as soon as there is room."""
        self._is_hungry = True
        self._wake.set()

    def stop_claiming(self) -> None:
        """Take no more jobs, and give back those that have not started."""
        self.is_claiming = False
        waiting = [*self._buffer, *(held for held in self._running if not held.started_at)]
        self._buffer.clear()
        self.give_back(waiting)
        self._slots.pass_on(self)
        self._wake.set()

    def abandon(self) -> None:
        """Give back every job that still runs, and wait for none of their handlers."""
        self.give_back(list(self._running))
        self._wake.set()

    def give_back(self, jobs: Iterable[Held]) -> None:
        """Release jobs, their attempts not counted."""
        for held in jobs:
            self.settle(held, Released())
            if not held.started_at:
                held.interrupt()

    def give_back_late(self) -> None:
        """Release what has waited too long for a slot or a process, for others to take."""
        now = time.monotonic()
        if self._buffer and now - self._buffer[0].held_at > min(
            PATIENCE, self._buffer[0].lease / 5
        ):
            logger.info("giving back %d jobs that wait for a slot", len(self._buffer))
            late = list(self._buffer)
            self._buffer.clear()
            self._look_ahead()  # not to take the same jobs again
            self.give_back(late)
        self.give_back([
            held
            for held in self._running
            if not held.started_at and now - held.slot_at > held.lease * PROCESS_SHARE
        ])  # fmt: skip

    def settle(self, held: Held, settlement: Settlement) -> None:
        """Have a job settled; its task, if it still runs, keeps its slot."""
        if held.settlement is not None:
            return
        if held in self._running:
            del self._running[held]
            self._overdue[held] = None
        self._settle(held, settlement, time.monotonic())
        self._consider()

    def _settle(self, held: Held, settlement: Settlement, now: float) -> None:
        held.settlement = settlement
        held.settled_at = now
        held.stop()
        if isinstance(settlement, Gone):
            self._attempts.ended(held, settlement.outcome)
        else:
            if not self._settled:
                self._settled_since = now
            self._settled.append(held)
            if held.is_awaited or not isinstance(settlement, Succeeded):
                self._is_urgent = True

    # ---- the loop

    async def run(self) -> None:
        """Work until `stop_claiming` was called and nothing is held."""
        try:
            while self.is_claiming or not self.is_idle:
                self._wake.clear()
                try:
                    await self._step()
                except DatabaseUnavailable as error:
                    self._complaints.warning("the database is unavailable: %s", error)
                    self._is_away = self._slots.is_shared
                    self._slots.pass_on(self)
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
            if not trade.cancelled():
                trade.result()
        if done:
            return  # that may have been all
        if self._may_trade():
            trade = self._loop.create_task(self._trade())
            self._trades.add(trade)
            trade.add_done_callback(self._on_trade)
        elif self._trades:
            await self._wake.wait()
        elif self._should_announce():
            await self._announce()
        else:
            self._set_timer()
            await self._sleep()

    def _on_trade(self, _trade: asyncio.Task[None]) -> None:
        self._wake.set()

    async def _trade(self) -> None:
        """Make one exchange."""
        asked = self._room()
        at_once = min(asked, self._free())
        is_repeat = bool(self._unsent)
        now = time.monotonic()
        waited, is_urgent = now - self._settled_since, self._is_urgent
        settled, self._unsent = self._unsent + self._ripe(now), []
        self._is_hungry = self._is_pressed
        self._asked += asked
        self._sent.append(settled)
        self._sent_at = now
        try:
            claimed = await self._exchange.settle_and_claim(
                settled, self._queues.order(), asked, at_once
            )
        except BaseException:
            self._unsent += settled
            self._is_pressed = False
            self._appetite.did_not_come(asked)
            raise
        finally:
            self._asked -= asked
            self._sent.remove(settled)
        self._pace.reset()
        if self._is_away:  # it has answered, and may have jobs
            self._is_away = False
            self._is_hungry = True
        is_full = 0 < asked == len(claimed.jobs)
        self._is_hungry = self._is_hungry or is_full
        self._is_pressed = is_full and asked == BATCH
        if settled and not is_urgent:
            self._company.settled(len(settled), waited, has_come=bool(claimed.jobs))
        self._take(claimed.jobs)
        succeeded = [held for held in settled if claimed.outcomes.get(held) == "succeeded"]
        self._attempts.succeeded(succeeded)
        for held in settled if len(succeeded) < len(settled) else ():
            outcome = claimed.outcomes.get(held, "lost")
            if outcome == "succeeded":
                continue
            if outcome == "held":
                self._settle_later(held)
                continue
            self._attempts.ended(held, "unknown" if is_repeat and outcome == "lost" else outcome)
        self._slots.pass_on(self)
        if is_full or len(claimed.jobs) >= BURST:
            self._announce_at = time.monotonic() + REST
            if self._listener is not None:
                await self._listener.end_wait()

    def _ripe(self, now: float) -> list[Held]:
        """Take what has ended, unless it is to go with a later exchange."""
        if not self._buffer and now - self._settled_since < min(RIDE, self._patience()):
            return []
        settled, self._settled, self._is_urgent = self._settled, [], False
        return settled

    def _settle_later(self, held: Held) -> None:
        """Have a job settled again after a while, since another transaction holds it."""
        if not self._put_off:
            self._loop.call_later(PUT_OFF, self._on_put_off)
        self._put_off.append(held)

    def _on_put_off(self) -> None:
        self._settled += self._put_off
        self._put_off.clear()
        self._wake.set()

    def _take(self, jobs: Sequence[Held]) -> None:
        """Start what was claimed, or keep it until there is a slot."""
        if jobs:
            self._company.came(time.monotonic())
            self._appetite.came([len(held.payload) for held in jobs])
        self._look_ahead()
        if not jobs:
            return
        self._rest = SHORTEST_REST
        self._rests.came()
        if self.is_claiming:
            self._buffer += jobs
            self._fill()
        else:
            self.give_back(jobs)

    def _may_trade(self) -> bool:
        """Whether to begin an exchange: one at a time, or two while jobs press."""
        return len(self._trades) <= self._is_pressed and self._is_due()

    def _is_due(self) -> bool:
        """Whether it is time for an exchange; one that asks for no job shows who is back."""
        if self._unsent or self._is_away:
            return True
        if self._settled and time.monotonic() - self._settled_since >= self._patience():
            return True
        is_low = len(self._buffer) + self._asked <= self._appetite.prefetch // 2
        return self._is_hungry and is_low and self._room() > 0

    def _patience(self) -> float:
        """How many seconds what has ended may wait to be settled."""
        if self._buffer:
            return LINGER
        if self._is_urgent or not self.is_claiming:
            return 0.0
        return self._company.patience(len(self._settled))

    def _room(self) -> int:
        """How many jobs to ask for."""
        if not self.is_claiming or self._is_away:
            return 0
        self._appetite.slots = self._slots.limit(self)
        return self._appetite.room(len(self._buffer) + self.taken + self._asked)

    def _free(self) -> int:
        """How many jobs could start at once: what has limits is not claimed ahead."""
        free = self._slots.limit(self) - self.taken
        return max(0, free - len(self._buffer) - self._asked)

    def _look_ahead(self) -> None:
        is_full = self.taken >= self._slots.limit(self)
        self._appetite.look_ahead(time.monotonic() - self.started_at if is_full else 0.0)

    # ---- the slots

    def _fill(self) -> None:
        """Start waiting jobs while there are free slots."""
        now = time.monotonic()
        while self._buffer and (free := self._slots.limit(self) - self.taken) > 0:
            # Who shares slots asks again for each.
            for _ in range(1 if self._slots.is_shared else min(free, len(self._buffer))):
                self._begin(self._buffer.popleft(), now)

    def _begin(self, held: Held, now: float) -> None:
        """Give a job a slot."""
        if held.settlement is not None:
            self._settle_unread(held)
            return
        held.slot_at = self.started_at = now
        self._running[held] = None
        self._attempts.find_handler(held)
        if self._attempts.is_in_batch(held):
            self._start(held)
            self._attempts.join(held, self._end)
        else:
            held.task = self._loop.create_task(self._execute(held))

    def _settle_unread(self, held: Held) -> None:
        """Have a job settled that came with its settlement, because it could not be read."""
        if not held.settled_at:
            settlement, held.settlement = held.settlement, None
            assert settlement is not None  # noqa: S101 - the caller has looked
            self.settle(held, settlement)

    async def _execute(self, held: Held) -> None:
        """Run one job in its own task."""
        settlement: Settlement
        try:
            if held.needs_process:
                await self._attempts.prepare(held)
            if held.settlement is not None:
                settlement = held.settlement
            elif held.handler is None:
                settlement = self._attempts.leave_to_others(held)
            else:
                self._start(held)
                settlement = await self._attempts.run(held)
        except BaseException as error:
            settlement = self._attempts.settlement_of(held, error)
        leave_if_forked(self._born)
        self._end(held, settlement)

    def _end(self, held: Held, settlement: Settlement) -> None:
        """Have a job settled whose handler has ended, and its slot taken by another."""
        held.task = held.place = None  # which hold the job too
        self._running.pop(held, None)
        if held in self._overdue:
            del self._overdue[held]
            self.look()  # only now is its slot free
        self._attempts.leave(held)
        now = time.monotonic()
        if held.started_at:
            self._appetite.took(now - held.started_at)
        if held.settlement is None:
            self._settle(held, settlement, now)
        if not self._is_untidy:
            self._is_untidy = True
            # Not in the context of a job, whose variables the next ones would have.
            self._loop.call_soon(self._tidy, context=self._context)

    def _tidy(self) -> None:
        """Do once what follows from all the jobs that have ended in this turn of the loop."""
        self._is_untidy = False
        self._fill()
        self._slots.pass_on(self)
        self._consider()

    def _start(self, held: Held) -> None:
        """Note that a handler starts now, and see to it that it does not take too long."""
        held.started_at = time.monotonic()
        if held.expires_at < self._expiry_at:
            self._set_expiry(held.expires_at)
        self._attempts.started(held)

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
            if held.started_at and held.expires_at <= now:
                text = f"the attempt took longer than {held.timeout:g} s"
                self.settle(held, Failed("TIMEOUT", text))
                held.interrupt()
        self._expiry, self._expiry_at = None, math.inf
        ends = [held.expires_at for held in self._running if held.started_at]
        if ends:
            self._set_expiry(min(ends))

    def _consider(self) -> None:
        """Wake the loop when it is time for an exchange, or see to it that it will be."""
        if self._wake.is_set():
            return
        if self._may_trade() or not (self.is_claiming or self._running):
            self._wake.set()
        else:
            self._set_timer()

    def _set_timer(self) -> None:
        """See to it that what has ended is settled in time."""
        if self._settled and self._timer is None:
            pause = max(0.0, self._settled_since + self._patience() - time.monotonic())
            self._timer = self._loop.call_later(pause, self._on_linger)

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
            if not await self._wait(self._poll) and self._slots.is_shared:
                self._is_hungry = True  # for the next slot that another leaves
            return
        listener = self._listener
        is_told = listener is not None and listener.is_waiting
        if listener is not None and listener.is_listening and not is_told:
            await self._wait(max(0.0, self._announce_at - time.monotonic()))
            return
        if await self._wait(self._rests.seconds):
            return
        longest = self._poll if is_told else min(self._poll, self._next_poll())
        pause = longest * random.uniform(0.8, 1.2)  # noqa: S311 - so that workers spread
        due = await self._protocol.due_in()
        if self._on_empty is not None and self.is_idle and (due is None or due > 0):
            self._on_empty()
        # What is due may have limits, and is not claimed while no slot is free.
        if due is None or due > 0 or self._free():
            pause = min(pause, self._rests.before(due))
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
