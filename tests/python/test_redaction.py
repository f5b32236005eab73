"""What is struck out of errors, details and log lines, by the database and by the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from psycopg.types.json import Jsonb

from jobq.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

FORMS = {
    "https://u:p@ss@host/x": "https://***@host/x",
    "postgres://u:pa/ss@host:5432/db": "postgres://***@host:5432/db",
    "redis://:hunter2@host, then": "redis://***@host, then",
    "https://host:8080/users/ann@example.org": "https://host:8080/users/ann@example.org",
    "https://example.org/?m=ann@example.org": "https://example.org/?m=ann@example.org",
    "Authorization: ApiKey abc": "Authorization: ***",
    "Proxy-Authorization: Basic abcd": "Proxy-Authorization: ***",
    '{"authorization": "Negotiate YII"}': '{"authorization": ***}',
    "sent Negotiate YIIabcdefgh on": "sent Negotiate *** on",
    "sent ApiKey abcdefgh on": "sent ApiKey *** on",
    "Cookie: a=1; session=2; c=3": "Cookie: ***",
    "GET /x?key=abc&n=1": "GET /x?key=***&n=1",
    "server=a;pwd=abc;n=1": "server=a;pwd=***;n=1",
    "run --password hunter2 now": "run --password *** now",
    "run --db-token 'a b' now": "run --db-token *** now",
    '{"tokens": ["a", "b"], "n": 1}': '{"tokens": ***, "n": 1}',
    '{"api_key": "hunter2", "n": 1}': '{"api_key": ***, "n": 1}',
    "Key (id)=(5) already exists": "Key (id)=(5) already exists",
    "duplicate key value": "duplicate key value",
    "no token at all": "no token at all",
}


def test_the_worker_and_the_database_strike_out_the_same(connect: Callable[[], Connection]) -> None:
    assert {text: redacted(text) for text in FORMS} == FORMS
    rows = connect().execute(
        "select t, jobq_private.redacted_text(t) from unnest(%s::text[]) as t", [list(FORMS)]
    )
    assert dict(rows.fetchall()) == FORMS


def test_details_and_log_lines_have_no_passwords(connect: Callable[[], Connection]) -> None:
    connection = connect()
    [(job_id,)] = connection.execute("select jobq.enqueue('a')").fetchall()
    connection.execute("select from jobq.claim('{default}', 'w')")
    details = {
        "url": "https://u:hunter2@host",
        "list": ["--password hunter2", 1, None],
        "headers": {"Authorization": "hunter2", "n": 5},
        "passwords": ["hunter2"],
        "secrets": {"a": "hunter2"},
        "tokens": 3,
        "plain": "said",
    }
    connection.execute("select jobq.log(%s, 1, 'INFO', 'password=hunter2 n=1')", [job_id])
    connection.execute("select jobq.fail(%s, 1, 'no', details => %s)", [job_id, Jsonb(details)])
    [(kept,)] = connection.execute(
        "select error_details from jobq_internal.list_attempts(%s)", [job_id]
    ).fetchall()
    assert kept == {
        "url": "https://***@host",
        "list": ["--password ***", 1, None],
        "headers": {"Authorization": "***", "n": 5},
        "passwords": "***",
        "secrets": "***",
        "tokens": 3,
        "plain": "said",
    }
    lines = connection.execute("select message from jobq_internal.list_logs(%s)", [job_id])
    assert lines.fetchall() == [("password=*** n=1",)]


@pytest.mark.parametrize("text", ["://" * 3000, "a:" * 4000 + "@", "--key " * 1500, "'" * 8000])
def test_no_text_takes_long(connect: Callable[[], Connection], text: str) -> None:
    """Whoever fails a job chooses the words; no form may need more than the text is long."""
    connection = connect()
    connection.execute("set statement_timeout = '60 s'")
    connection.execute("select jobq_private.redacted(%s)", [text])
    redacted(text)
