"""The package is thin: the only SQL in it is calls of jobq's functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobq
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(jobq.__file__).parent
ARGUMENTS = r"\((?:[%\w, :=>{}]|%\(\w+\)s)*\)"
CALL = re.compile(
    rf"select (?:\*|[\w, :{{}}]+) from jobq\.[\w{{}}]+{ARGUMENTS}|select jobq\.\w+{ARGUMENTS}"
)
LISTEN = re.compile(r"(?:un)?listen \w+")
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
    return bool(CALL.fullmatch(line) or LISTEN.fullmatch(line))


def test_the_only_sql_is_calls_of_jobqs_functions() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
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


def test_every_function_that_is_called_exists() -> None:
    defined = {path.stem for path in (ROOT / "sql" / "api").glob("*.sql")}
    called = {
        name
        for path in SOURCE.rglob("*.py")
        for _, text in texts(path)
        for name in re.findall(r"\bjobq\.(\w+)\(", text)
    }
    called |= set(re.findall(r'Call\(\s*"(\w+)"', (SOURCE / "calls.py").read_text()))
    assert len(called) > 20
    assert called - defined - {"main"} == set()
