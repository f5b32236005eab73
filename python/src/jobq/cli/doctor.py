"""`jobq doctor`: what threatens the queue's promise."""

from __future__ import annotations

import sys
from dataclasses import asdict

import click

from jobq.cli.terminal import as_json, asking, database, say, show_json
from jobq.doctor import examine

__all__ = ["doctor"]


@click.command()
@as_json
@database
def doctor(*, is_json: bool, database_url: str) -> None:
    """Say what threatens the queue's promise, with the remedy; exit with 1 if anything does."""
    with asking(database_url) as client:
        findings = examine(client)
    if is_json:
        show_json(asdict(finding) for finding in findings)
    else:
        for finding in findings:
            remedy = f"; {finding.remedy}" if finding.remedy else ""
            mark = "ok " if finding.is_ok else "BAD"
            say(f"{mark}  {finding.subject:<20}  {finding.finding}{remedy}")
    sys.exit(0 if all(finding.is_ok for finding in findings) else 1)
