"""The suite: runs every scenario with one program."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from jobq.errors import JobqError
from jobq_conformance.play import KIND, Play
from jobq_conformance.program import Program
from jobq_conformance.stage import LeftOut, NotSeenError, Stage
from jobq_conformance.vocabulary import LEVELS, Scenario, load


@dataclass(frozen=True)
class Outcome:
    """The result of a scenario.

    Attributes:
        scenario: the scenario.
        verdict: ``holds``, ``fails`` or ``left out``.
        reason: the reason, and the end of the program's standard error.
        seconds: its duration.
    """

    scenario: Scenario
    verdict: str
    reason: str
    seconds: float


class Suite:
    """Runs scenarios, each on a cleared stage; several may share a process of the program."""

    def __init__(
        self, stage: Stage, command: Sequence[str], log: Path, patience: float, *, is_traced: bool
    ) -> None:
        self._stage = stage
        self._command = command
        self._log = log
        self._patience = patience
        self._is_traced = is_traced
        self._program: Program | None = None
        self._work: dict[str, object] | None = None

    def play(self, scenario: Scenario) -> Outcome:
        """Run a scenario."""
        began_at = time.monotonic()
        verdict, reason = "fails", ""
        try:
            self._stage.clear()
            self._stage.client.put_kind(KIND, **scenario.kind)
            play = Play(self._stage, self._program_for(scenario), self._patience)
            for step in scenario.steps:
                reason = f"at {step}"
                play.step(step)
            verdict, reason = "holds", ""
        except LeftOut as why:
            verdict, reason = "left out", str(why)
        except (NotSeenError, JobqError, psycopg.Error) as error:
            tail = self._program.tail() if self._program else ""
            reason = f"{reason}: {error}\n{tail}".rstrip()
        self._stage.unhang()
        if verdict != "holds" or self._stage.value("running"):
            self.close()
        return Outcome(scenario, verdict, reason, time.monotonic() - began_at)

    def close(self) -> None:
        """End the program, if one runs."""
        if self._program is not None:
            self._program.kill()
            self._program = None

    def _program_for(self, scenario: Scenario) -> Program:
        """Return a process with the worker options of a scenario."""
        if self._program and self._program.is_running and self._work == scenario.work:
            return self._program
        self.close()
        self._stage.do("forget_workers")
        program = self._program = Program(
            self._command, self._stage.url, self._log, self._patience, is_traced=self._is_traced
        )
        self._work = scenario.work
        if scenario.work is not None:
            told = {"queues": [KIND], "kind": KIND, **scenario.work}
            answer = program.answer(program.tell("work", told))
            if "error" in answer:
                raise NotSeenError(f"it does not work: {answer['error']}")
        return program


def run(
    command: Sequence[str],
    level: str = "full",
    only: str = "",
    patience: float = 20.0,
    report: Callable[[Outcome], None] | None = None,
    *,
    is_traced: bool = False,
) -> list[Outcome]:
    """Test a program on a private server, which is deleted afterwards.

    Args:
        command: the command that starts the program.
        level: ``producer`` or ``worker`` for the scenarios of that level, ``full`` for all.
        only: run only scenarios whose names contain this.
        patience: timeout of each wait, in seconds.
        report: called with each outcome.
        is_traced: whether all messages are copied to standard error.

    Raises:
        ServerError: there is no PostgreSQL on this machine.
    """
    outcomes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="jobq-conformance-")))
        stage = stack.enter_context(Stage(folder, patience))
        log = folder / "program.log"
        suite = Suite(stage, command, log, patience, is_traced=is_traced)
        stack.callback(suite.close)
        for scenario in load():
            if only in scenario.name and (level in ("full", scenario.level)):
                outcomes.append(suite.play(scenario))
                if report is not None:
                    report(outcomes[-1])
    return outcomes


def reached(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the levels that are passed; ``full`` also requires the other two."""
    levels = [
        level
        for level in LEVELS
        if (own := [o for o in outcomes if o.scenario.level == level])
        and all(outcome.verdict != "fails" for outcome in own)
    ]
    return levels if levels == list(LEVELS) else [name for name in levels if name != "full"]
