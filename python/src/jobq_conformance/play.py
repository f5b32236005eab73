"""Runs one scenario: each kind of step is a method."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from typing import Any, Final

from jobq_conformance.program import Program
from jobq_conformance.stage import NotSeenError, Stage, until

Step = Mapping[str, Any]

KIND: Final = "conformance"
# Prefixes of SQLSTATEs of a lost connection; without an answer there is no SQLSTATE.
AWAY: Final = ("08", "57P", "53300", "25P", "HY")


class Play:
    """Runs the steps of a scenario; each wait takes at most `patience` seconds."""

    def __init__(self, stage: Stage, program: Program, patience: float) -> None:
        self._stage = stage
        self._program = program
        self._patience = patience
        self._jobs: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        self._asked: dict[str, int] = {}

    def step(self, step: Step) -> None:
        """Perform a step, or check its expectation: NotSeenError if it fails."""
        verb = next(iter(step))
        getattr(self, f"_do_{verb}")(step[verb], {k: v for k, v in step.items() if k != verb})

    # ---- actions on jobs

    def _do_job(self, name: str, options: Step) -> None:
        given = {"kind": KIND, "queue": KIND, "payload": {}, **options}
        [job] = self._stage.client.enqueue_many([given])
        self._jobs[name] = str(job.job_id)

    def _do_delayed_job(self, name: str, options: Step) -> None:
        """Enqueue a job that is due in some seconds, by the clock of the database."""
        rows = self._stage.do("delayed_job", kind=KIND, by=options["by"])
        self._jobs[name] = str(rows[0][0])

    def _do_deceased_job(self, name: str, _: Step) -> None:
        """Enqueue a job that is claimed by a worker that does not exist."""
        self._jobs[name] = self._stage.value("deceased_job", kind=KIND)

    def _do_cancel(self, name: str, options: Step) -> None:
        outcome = self._stage.client.cancel(self._jobs[name])
        self._same(outcome, options.get("outcome", "cancel_requested"), f"cancel of {name}")

    def _do_emit(self, event: str, options: Step) -> None:
        self._stage.client.emit(event, options.get("payload"))

    def _do_steal(self, name: str, _: Step) -> None:
        self._stage.do("steal", job_id=self._jobs[name])

    def _do_thief_completes(self, name: str, options: Step) -> None:
        result = json.dumps(options["result"])
        self._stage.do("thief_completes", job_id=self._jobs[name], result=result)

    def _do_hold(self, name: str, _: Step) -> None:
        self._stage.hold(self._jobs[name])

    def _do_let_go(self, *_: object) -> None:
        self._stage.let_go()

    # ---- actions on the server

    def _do_kill(self, what: str, _: Step) -> None:
        assert what == "connections"  # noqa: S101 - an error of the scenario
        self._stage.do("kill")

    def _do_hang(self, *_: object) -> None:
        self._stage.hang()

    def _do_hanging(self, *_: object) -> None:
        self._until(lambda: self._stage.value("is_hanging"), "no commit hangs")

    def _do_unhang(self, *_: object) -> None:
        self._stage.unhang()

    def _do_restart(self, clock: str, _: Step) -> None:
        self._stage.restart(clock)

    # ---- requests to the program

    def _do_ask(self, op: str, options: Step) -> None:
        """Send a request to a producer; ``as`` gives names to the jobs of the answer."""
        own = ("as", "later", "patient", "answer", "cancelled_job")
        members = {k: v for k, v in options.items() if k not in own}
        if op != "cancel":
            for job in members.get("jobs", [members]):
                job.setdefault("kind", KIND)
                job.setdefault("queue", KIND)
        if op == "cancel":
            members["job_id"] = self._jobs[options["cancelled_job"]]
        number = self._program.tell(op, members)
        if options.get("later"):
            self._asked[options["later"]] = number
            return
        answer = self._program.answer(number)
        deadline = time.monotonic() + self._patience
        while options.get("patient") and _is_away(answer) and time.monotonic() < deadline:
            time.sleep(0.2)
            answer = self._program.answer(self._program.tell(op, members))
        self._take(answer, options)

    def _do_answered(self, name: str, options: Step) -> None:
        answer = self._program.answer(self._asked.pop(name))
        if options.get("whatever") and _is_away(answer):
            return
        self._take(answer, options)

    def _take(self, answer: Step, options: Step) -> None:
        wanted = options.get("answer", {})
        for key, value in wanted.items():
            self._same(answer.get(key), value, f"{key} of the answer {json.dumps(answer)}")
        if "error" not in wanted and "error" in answer:
            raise NotSeenError(f"it answers with an error: {answer['error']}")
        names = options.get("as", [])
        found = answer.get("jobs", [answer])
        for name, job in zip([names] if isinstance(names, str) else names, found, strict=False):
            earlier = self._jobs.setdefault(name, job["job_id"])
            self._same(job["job_id"], earlier, f"the id of {name}")

    def _do_handle(self, name: str, options: Step) -> None:
        members = {"job_id": self._jobs[name], "attempt": self._attempts[name], **options}
        self._program.tell("handle", members)

    def _do_signal(self, name: str, _: Step) -> None:
        self._program.signal(signal.Signals[f"SIG{name}"])

    # ---- events of the program

    def _do_started(self, name: str, options: Step) -> None:
        wanted = {"job_id": self._jobs[name]}
        if "attempt" in options:
            wanted["attempt"] = options["attempt"]
        event = self._program.event("started", options.get("within"), **wanted)
        self._attempts[name] = event["attempt"]
        if "payload" in options:
            self._same(event.get("payload"), options["payload"], f"the payload of {name}")

    def _do_said(self, event: str, options: Step) -> None:
        name = options["job"]
        wanted = {"job_id": self._jobs[name], "attempt": self._attempts[name]}
        line = self._program.event(event, options.get("within"), **wanted)
        for key in options.keys() - {"job", "within"}:
            self._same(line.get(key), options[key], f"{key} of {event}")

    def _do_exits(self, status: int, _: Step) -> None:
        self._same(self._program.end(self._patience), status, "the exit status")

    # ---- expectations of the database

    def _do_idle(self, *_: object) -> None:
        self._until(lambda: self._stage.value("is_idle"), "it does not say that it waits")

    def _do_outlives_its_lease(self, name: str, _: Step) -> None:
        self._until(
            lambda: self._stage.value("has_outlived_its_lease", job_id=self._jobs[name]),
            f"{name} does not run for long enough",
        )
        self._stage.do("recover")

    def _do_is(self, name: str, options: Step) -> None:
        found: dict[str, Any] = {}

        def is_so() -> bool:
            found.update(self._stage.value("job", job_id=self._jobs[name]) or {})
            return all(_plain(found.get(k)) == _plain(v) for k, v in options.items())

        try:
            self._until(is_so, "")
        except NotSeenError:
            shown = {key: found.get(key) for key in [*options, "state", "attempt", "last_error"]}
            raise NotSeenError(f"{name} is {json.dumps(shown)}") from None

    def _do_is_due(self, name: str, options: Step) -> None:
        """Check when a job is due, by the clock of the database."""
        due = float(self._stage.value("job", job_id=self._jobs[name])["due_in"])
        if not options["from"] <= due <= options["to"]:
            raise NotSeenError(f"{name} is due in {due} s")

    def _do_history(self, name: str, options: Step) -> None:
        found = self._stage.value("attempts", job_id=self._jobs[name])
        self._same(found, options["codes"], f"how the attempts of {name} ended")

    def _do_count(self, what: str, options: Step) -> None:
        seen: list[Any] = [None]

        def is_so() -> bool:
            seen[0] = self._stage.value(what)
            return _plain(seen[0]) == _plain(options["to_be"])

        try:
            self._until(is_so, "")
        except NotSeenError:
            raise NotSeenError(f"{what}: {seen[0]}, not {options['to_be']}") from None

    def _do_pause(self, seconds: float, _: Step) -> None:
        """Give the program time for forbidden actions."""
        time.sleep(seconds)

    # ---- tools

    def _until(self, look: Any, what: str) -> None:  # noqa: ANN401 - any function
        until(look, self._patience, what)

    def _same(self, found: object, wanted: object, what: str) -> None:
        if _plain(found) != _plain(wanted):
            raise NotSeenError(f"{what}: {json.dumps(found)}, not {json.dumps(wanted)}")


def _is_away(answer: Step) -> bool:
    """Whether an answer reports a lost connection."""
    error = answer.get("error")
    if error is None:
        return False
    state = error.get("sqlstate") or ""
    return not state or state.startswith(AWAY)


def _plain(value: object) -> str:
    """Return a value as text, so that 1 differs from true, and 2.0 equals 2."""
    return json.dumps(_whole(value), sort_keys=True)


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return value
