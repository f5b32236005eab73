"""`jobq conformance`: test a client in any language against the protocol."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from jobq_cli.parameters import Seconds, argument, option
from jobq_cli.terminal import plainly, say

if TYPE_CHECKING:
    from jobq_conformance.suite import Outcome


@click.command(
    context_settings={"ignore_unknown_options": True},
    params=[
        argument("command", nargs=-1, required=True, type=click.UNPROCESSED),
        option("--level", default="full", type=click.Choice(["producer", "worker", "full"]),
               help="Level to test."),
        option("--only", default="", help="Run only scenarios whose names contain this text."),
        option("--patience", default=20.0, type=Seconds(1), help="Seconds to wait for each step."),
        option("--trace", "is_traced", is_flag=True, help="Show the messages in both directions."),
    ],
)  # fmt: skip
def conformance(
    *, command: tuple[str, ...], level: str, only: str, patience: float, is_traced: bool
) -> None:
    """Test COMMAND, a client in any language, against a private server.

    COMMAND reads and writes JSON lines: see docs/contributing/conformance.md.
    Exit status: 0 if all scenarios of the level pass, else 1.
    """
    from jobq_conformance import suite  # noqa: PLC0415 - only here

    if shutil.which(command[0]) is None:
        raise click.BadParameter(f"{command[0]} is no program", param_hint="COMMAND")
    shown: set[str] = set()

    def report(outcome: Outcome) -> None:
        if outcome.scenario.level not in shown:
            shown.add(outcome.scenario.level)
            say(outcome.scenario.level)
        verdict = {"holds": "ok"}.get(outcome.verdict, outcome.verdict.upper())
        say(f"  {verdict:<8}  {outcome.seconds:5.1f} s  {outcome.scenario.name}")
        for line in outcome.reason.splitlines():
            say(f"            {line}")

    with plainly():
        outcomes = suite.run(command, level, only, patience, report, is_traced=is_traced)
    verdicts = [outcome.verdict for outcome in outcomes]
    levels = suite.reached(outcomes)
    counts = ", ".join(
        f"{verdicts.count(verdict)} {word}"
        for verdict, word in (("holds", "hold"), ("fails", "fail"), ("left out", "left out"))
    )
    say(counts if only else f"{counts}; levels: {' '.join(levels) or 'none'}")
    sys.exit(0 if verdicts and "fails" not in verdicts else 1)
