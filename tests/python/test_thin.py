"""The package is thin: the only SQL in it is calls of jobq's functions."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = ROOT / "python" / "src"
# A moment that is so long from now is the database's to reckon.
ARGUMENTS = r"\((?:[%\w, :=>{}]|%\(\w+\)s|now\(\) \+ %s)*\)"
# The database says durations in seconds, whatever style its intervals are written in.
SECONDS = rf"extract\(epoch from (?:\w+|jobq\.\w+{ARGUMENTS})\)::float8"
CALL = re.compile(
    rf"select {SECONDS}(?:, {SECONDS})*"
    rf"|select (?:\*|(?:[\w, :{{}}]|{SECONDS})+)"
    rf" from (?:jobq(?:_http|_internal)?\.[\w{{}}]+|{{}}){ARGUMENTS}"
    rf"|select (?:jobq(?:_http|_internal)?\.\w+|{{}}){ARGUMENTS}(?: from jobq\.\w+{ARGUMENTS})?"
)
# They compare a database with the release, which functions of either cannot answer; ask a server
# that has no jobq yet; and print scripts for other tools.
OPERATIONS = ("certify", "deploy", "migration", "project", "schema")
DEPLOY = {SOURCE / "jobq_operations" / f"{name}.py" for name in OPERATIONS}
# Whether there is a jobq at all cannot be asked of jobq.
LOOK = "select to_regclass('jobq.job') is not null, to_regclass('sqitch.changes') is not null"
# A worker limits the time of a call that keeps what it has done by then.
LIMIT_TIME = "set local statement_timeout = '{}s'"
LISTEN = re.compile(r"(?:un)?listen \w+")
ROLES = {"jobq_producer", "jobq_worker", "jobq_operator", "jobq_reader"}
# What calls a function of the database by its name.
CALLERS = {"Call", "_do", "acting", "fetch", "of", "put"}
STATEMENT = re.compile(
    r"\s*(?:select|insert into|update [\w.]+ set|delete from|with \w+ as"
    r"|(?:create|drop|alter) (?:or replace|temp|table|role|index|function|schema|view|type)"
    r"|truncate|grant \w|revoke \w|do \$|call \w|copy \w|lock table|listen|unlisten|notify"
    r"|begin;|commit;|set (?:local|role|session)|values \()\b",
)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The string literals of a module, those of f-strings with {} for what is filled in."""
    tree = ast.parse(path.read_text())
    docs = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            yield (
                node.lineno,
                "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in parts or node in docs:
                continue
            yield node.lineno, node.value


def is_a_call(text: str) -> bool:
    line = " ".join(text.split())
    return bool(CALL.fullmatch(line) or LISTEN.fullmatch(line)) or line in {LOOK, LIMIT_TIME}


def test_the_only_sql_is_calls_of_jobqs_functions() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted({*SOURCE.rglob("*.py")} - DEPLOY)
        for line, text in texts(path)
        if STATEMENT.match(text.lower()) and not is_a_call(text)
    ]
    assert found == []


def test_there_is_something_to_look_at() -> None:
    calls = [
        text
        for path in SOURCE.rglob("*.py")
        for _, text in texts(path)
        if STATEMENT.match(text.lower())
    ]
    assert len(calls) > 10


@pytest.mark.parametrize(
    "text",
    [
        "select * from jobq_private.job",
        "select 1",
        "update jobq.job set state = 'dead'",
        "delete from t",
        "select jobq.log(1); drop table t",
        "select * from jobq.claim('{a}', 'b') where priority > 1",
    ],
)
def test_other_sql_would_be_found(text: str) -> None:
    assert STATEMENT.match(text) and not is_a_call(text)


def called_by(path: Path) -> Iterator[str]:
    """The functions of the database that a module calls, {} for what is filled in."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in CALLERS:
            for argument in node.args[:2]:  # a role may come first, or a route
                name = re.sub(r"\{.*?\}", "{}", ast.unparse(argument)).lstrip("f").strip("'")
                if " " in name or "/" in name:
                    continue
                if isinstance(argument, ast.Constant | ast.JoinedStr) and name not in ROLES:
                    yield re.sub(r"^jobq_(http|internal)\.", "", name)
    for _, text in texts(path):
        yield from re.findall(r"\bjobq(?:_http|_internal)?\.(\w+)\(", text)


def test_every_function_that_is_called_exists() -> None:
    defined = {
        name
        for path in (ROOT / "router.sql", *(ROOT / "sql").rglob("*.sql"))
        for name in re.findall(
            r"function (?:jobq(?:_http|_internal)?\.)?([\w.]+)\(", path.read_text()
        )
    }
    assert len(defined) > 50
    called = {name for path in SOURCE.rglob("*.py") for name in called_by(path)}
    assert len(called) > 80
    missing = {
        name
        for name in called - {"main"}
        if not any(re.fullmatch(name.replace("{}", r"\w+"), known) for known in defined)
    }
    assert missing == set()
