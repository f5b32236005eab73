"""Agents whose workers, server and readers are interrupted: their transcripts stay the same.

The agent is that of `jobq_examples`: it streams, calls two tools, asks a person, and receives a
message. Readers follow every stream and are interrupted, too; each must see every chunk of a
generation exactly once, in order.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import history
import psycopg
from replay import replay
from rig import Outcome, count

from jobq import Client
from jobq.errors import DatabaseUnavailable, IllegalState, JobNotFound
from jobq_examples.agent import model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from rig import Rig

    from jobq import Chunk

PLACES = ("Ulm", "Bonn", "Trier")
CORRECTION = "one day later"
TURNS = 4
WORKERS = 3
# Kills for each second of the duration, seconds between them, and how many hit a worker before
# one hits the server.
KILLS = 10
PAUSES = (0.2, 1.2)
SERVER_EVERY = 10
# How often a reader is interrupted at a chunk.
INTERRUPTIONS = 0.05
# Seconds between two words, and in which agents must finish, undisturbed at the end.
WORD = 0.03
LIMIT = 120.0
RUNNING = "select count(*) from jobq.job where state = 'running'"
TOOLS = "select count(*) from jobq.job where kind like 'look\\_up\\_%'"
MESSAGES = "select count(*) from jobq_private.event where job_id = %s and event like 'message:%%'"


def agents(rig: Rig) -> None:
    """Kill workers, now and then the server, until enough were killed and all have ended."""
    for logger in ("jobq.client", "psycopg.pool"):  # they warn of each lost connection
        logging.getLogger(logger).setLevel(logging.ERROR)
    rig.prepare()
    with rig.connect() as connection:
        connection.execute("select jobq.configure(max_expiries => 1000)")
        connection.execute("select jobq.put_queue('default', lease => '2 s', max_attempts => 1000)")
    for _ in range(WORKERS):
        add_worker(rig)
    talks: list[Conversation] = []
    since = time.monotonic()
    while rig.faults < KILLS * rig.duration:
        talks += converse(rig, len(talks))
    rig.outcome = check(rig, talks, since)


def converse(rig: Rig, number: int) -> list[Conversation]:
    """Start an agent for each place, kill while they run, and wait for their ends."""
    talks = [Conversation(rig, place, number) for place in PLACES]
    for talk in talks:
        talk.start()

    def is_over() -> bool:
        return not any(talk.is_alive() for talk in talks)

    end = time.monotonic() + LIMIT
    while not is_over() and rig.faults < KILLS * rig.duration and time.monotonic() < end:
        time.sleep(rig.random.uniform(*PAUSES))
        with rig.connect() as connection:
            is_running = count(connection, RUNNING) > 0
        if is_running:
            kill(rig)
    try:
        rig.wait(is_over, "agents do not finish", LIMIT)
    except TimeoutError as error:
        error.add_note(rig.words_of_workers())
        raise
    return talks


def kill(rig: Rig) -> None:
    """Kill a worker, or the server, and start another."""
    if rig.faults % SERVER_EVERY == SERVER_EVERY // 2:
        os.kill(rig.postmaster(), signal.SIGKILL)
        time.sleep(0.2)
        rig.start_server()
    else:
        victim = rig.workers.pop(rig.random.randrange(len(rig.workers)))
        victim.kill()
        victim.wait()
        add_worker(rig)
    rig.faults += 1


def add_worker(rig: Rig) -> None:
    """Start a worker that runs agents and their tools."""
    command = ["-m", "jobq_cli", "worker", "jobq_examples.agent:registry", "--no-metrics"]
    with (rig.folder / f"{rig.name}.log").open("ab") as log:
        rig.workers.append(
            subprocess.Popen(
                [sys.executable, *command],
                env={**os.environ, "DATABASE_URL": rig.url},
                stdout=log,
                stderr=log,
            )
        )


def check(rig: Rig, talks: list[Conversation], since: float) -> Outcome:
    """Hold what readers saw, and what the database committed, against the promises."""
    problems = [problem for talk in talks for problem in talk.problems()]
    with rig.connect() as connection:
        if (called := count(connection, TOOLS)) != 2 * len(talks):
            problems.append(f"{called} tools were called by {len(talks)} agents")
    replayed = replay(rig.url) if history.is_recorded(rig.url) else None
    if replayed:
        problems += replayed.rejected[:20]
    return Outcome(
        acknowledged=len(talks),
        lost=sum(talk.result is None for talk in talks),
        repeated=sum(talk.repeats() for talk in talks),
        at_most=rig.faults * len(PLACES),
        stall=0.0,
        finished_in=time.monotonic() - since,
        faults=rig.faults,
        problems=problems,
        steps=replayed.steps.total() if replayed else None,
        rejected=len(replayed.rejected) if replayed else 0,
    )


class Conversation(threading.Thread):
    """Starts one agent, follows its streams, and answers it, whatever happens meanwhile."""

    def __init__(self, rig: Rig, place: str, number: int) -> None:
        super().__init__(daemon=True)
        self.rig, self.place, self.key = rig, place, f"{place} {number}"
        self.job_id: UUID | str = ""
        self.result: Any = None
        self.read: dict[str, list[Chunk]] = defaultdict(list)
        self.stored: dict[str, list[str]] = {}

    def run(self) -> None:
        self.job_id = self.until_done(self.enqueue)
        for turn in range(1, TURNS + 1):
            self.until_done(self.follow, turn)
            if turn == 2:
                self.until_done(self.approve)
            elif turn == 3:
                self.until_done(self.correct)
        self.result = self.until_done(self.wait)
        for name in self.read:
            self.stored[name] = self.until_done(self.cursors, name)

    @staticmethod
    def until_done(act: Callable[..., Any], *given: object) -> Any:
        """Call a function until it returns a true value, also after the server was killed."""
        while True:
            with suppress(psycopg.OperationalError, DatabaseUnavailable):
                if done := act(*given):
                    return done
            time.sleep(0.05)

    # ---- what it does

    def enqueue(self) -> UUID:
        with Client(self.rig.url) as client:
            task = {"request": self.place, "pause": WORD}
            return client.enqueue("agent", task, idempotency_key=self.key).job_id

    def follow(self, turn: int) -> bool:
        """Read the stream of a turn; return whether it has ended."""
        read = self.read[f"turn {turn}"]
        after = read[-1].cursor if read else None
        with Client(self.rig.url, listen_database=self.rig.url) as client:
            # A step that is recorded writes nothing more, and what it wrote is stored.
            name = "model" if turn == 1 else f"model#{turn}"
            is_recorded = any(step.name == name for step in client.list_steps(self.job_id))
            if is_recorded or self.is_whole(turn):
                read += client.read_stream(self.job_id, f"turn {turn}", after).chunks
                return is_recorded
            for chunk in client.stream(self.job_id, f"turn {turn}", after):
                read.append(chunk)
                if self.is_whole(turn) or self.rig.random.random() < INTERRUPTIONS:
                    return False
        return True  # the job has ended

    def approve(self) -> bool:
        with Client(self.rig.url) as client:
            try:
                client.answer(self.job_id, "purchase", is_approved=True, answered_by="ada")
            except JobNotFound:
                return False  # it does not ask yet
            except IllegalState:
                pass  # an earlier call, whose reply was lost, has answered
        return True

    def correct(self) -> bool:
        """Send the message, unless an earlier call, whose reply was lost, has sent it."""
        with Client(self.rig.url) as client, self.rig.connect() as connection:
            sent = connection.execute(MESSAGES, [self.job_id]).fetchone()
            if sent == (0,):
                client.send_message(self.job_id, "chat", CORRECTION)
        return True

    def wait(self) -> Any:
        with (
            Client(self.rig.url, listen_database=self.rig.url) as client,
            suppress(TimeoutError),
        ):
            return client.result(self.job_id, timeout=10)

    def cursors(self, name: str) -> list[str]:
        with Client(self.rig.url) as client:
            return [chunk.cursor for chunk in client.read_stream(self.job_id, name).chunks]

    # ---- what came of it

    def is_whole(self, turn: int) -> bool:
        """Whether the last generation that was read of a turn has all its words."""
        return said(self.read[f"turn {turn}"]) == words_of(self.place)[turn - 1]

    def repeats(self) -> int:
        """Return how many generations there were beyond the first of each stream."""
        return sum(len({chunk.generation for chunk in read}) - 1 for read in self.read.values())

    def problems(self) -> Iterator[str]:
        """Yield what must not be."""
        if self.result != transcript_of(self.place):
            yield f"agent {self.key}: the transcript is {self.result}"
        for turn, words in enumerate(words_of(self.place), 1):
            name, read = f"turn {turn}", self.read[f"turn {turn}"]
            cursors = [chunk.cursor for chunk in read]
            if cursors != self.stored.get(name):
                yield f"agent {self.key}: of {self.stored.get(name)} of {name} it read {cursors}"
            chunks = Counter(chunk.generation for chunk in read)
            if cursors != [f"{g}-{n}" for g in sorted(chunks) for n in range(1, 1 + chunks[g])]:
                yield f"agent {self.key}: {name} was read as {cursors}"
            if said(read) != words:
                yield f"agent {self.key}: {name} says {said(read)!r}"


def said(read: list[Chunk]) -> str:
    """Return what the last generation of a stream says."""
    last = max((chunk.generation for chunk in read), default=0)
    return " ".join(str(chunk.value) for chunk in read if chunk.generation == last)


def transcript_of(place: str) -> list[dict[str, Any]]:
    """Return the transcript of an agent that nothing interrupts."""
    transcript: list[dict[str, Any]] = [{"role": "user", "content": place}]
    replies: list[list[tuple[str, Any]]] = [
        [("tool", "rain" if len(place) % 2 else "sun"), ("tool", 10 * len(place))],
        [("person", {"approved": True})],
        [("user", CORRECTION)],
        [],
    ]
    for reply in replies:
        transcript.append({"role": "assistant", "content": model(transcript).text})
        transcript += [{"role": role, "content": content} for role, content in reply]
    return transcript


def words_of(place: str) -> list[str]:
    """Return what the model says in each turn."""
    return [line["content"] for line in transcript_of(place) if line["role"] == "assistant"]
