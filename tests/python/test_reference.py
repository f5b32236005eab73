"""The generated pages agree with the database, and the README's transcript is true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def transcript() -> list[tuple[str, str]]:
    """The statements of the README's first psql block, each with what it prints."""
    block = re.search(r"```psql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    steps = re.split(r"^=> ", block[1], flags=re.MULTILINE)[1:]
    return [(head, tail) for head, _, tail in (step.partition("\n") for step in steps)]


def squeeze(text: str) -> list[str]:
    """The lines that are not empty, without psql's padding and without rulers."""
    lines = (re.sub(r"\s*\|\s*", "|", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not set(line) <= set("-+")]


def test_readme_transcript_is_true(database: str) -> None:
    steps = transcript()
    script = "\n".join(f"\\qecho ~~\n{statement}" for statement, _ in steps)
    run = subprocess.run(
        ["psql", "-X", "-q", "-d", database, "-f", "-"],
        input="\\pset footer on\n\\set VERBOSITY terse\n" + script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    printed = re.sub(r"^psql:.*?ERROR:", "ERROR:", run.stdout, flags=re.MULTILINE)
    for (statement, expected), actual in zip(steps, printed.split("~~\n")[1:], strict=True):
        assert squeeze(actual) == squeeze(expected), statement


def test_reference_is_up_to_date(database: str) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "docs/reference.py"), database, "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
