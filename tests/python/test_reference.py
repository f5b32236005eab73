"""The generated pages agree with the database, and the README's transcript is true."""

from __future__ import annotations

import re
import subprocess
import sys

from contract import Contracts, Header
from servers import ROOT


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


CONTRACTS = Contracts(ROOT)
KNOWN = re.compile(r"_known constant text\[\] := array\[(.*?)\]", re.DOTALL)


def headers() -> dict[str, Header]:
    """The headers of the public functions, by name."""
    public = {"jobq", "jobq_http"}
    return {
        name: promise.header
        for name, promise in CONTRACTS.by_name.items()
        if promise.schema in public and "Example" in promise.header.texts
    }


def test_every_example_of_the_reference_runs(database: str) -> None:
    examples = {name: header.texts["Example"] for name, header in headers().items()}
    assert len(examples) > 90
    setup = (ROOT / "docs/examples.sql").read_text()
    steps = "".join(
        f"savepoint example;\n\\qecho ~~ {name}\n{example}\nrollback to example;\n"
        for name, example in sorted(examples.items())
    )
    run = subprocess.run(
        ["psql", "-X", "-q", "-d", database, "-f", "-"],
        input=f"begin;\n{setup}\n{steps}\nrollback;\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    before, *printed = run.stdout.split("~~ ")
    assert "ERROR" not in before, before
    assert not [text for text in printed if "ERROR" in text]
    assert len(printed) == len(examples)
    assert not [n for n, example in examples.items() if f"{n}(" not in example]


def test_members_of_json_arguments_are_those_that_the_function_knows() -> None:
    checked = set()
    for name, header in headers().items():
        for said in header.named.get("Members", {}).values():
            source, _, without = said.partition(", but not ")
            known = KNOWN.search(CONTRACTS.by_name[name].code)
            if known and f"jobq.{source}" in CONTRACTS.by_name:
                members = set(re.findall(r"'(\w+)'", known[1]))
                assert members == arguments_of(f"jobq.{source}") - {without}, name
                checked.add(name)
    assert {"jobq.enqueue_many", "jobq.fail_many", "jobq.update_schedule"} <= checked


def arguments_of(name: str) -> set[str]:
    signature = re.search(r"\((.*?)\n?\)\s*returns", CONTRACTS.by_name[name].code, re.DOTALL)
    assert signature is not None
    return set(re.findall(r"(?:^|,)\s*(\w+) ", signature[1]))
