"""Bad limits and keys are refused by SQL, Python, HTTP and the command line; odd ones are kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner

from jobq import Client
from jobq.errors import JobqError
from jobq_cli import main

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from http_api import Api

    Door = Callable[[Api, dict[str, Any]], Awaitable[str]]

pytest_plugins = ["http_fixtures"]

HOSTILE = "a\x01'; drop table jobq_private.job; -- %s {} $1 \\ \U0001f600 <b>"
LONGEST = "é" * 512
BAD = "INVALID_ARGUMENT"
OF_KEYS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing at all": ({}, "ok"),
    "none at once": ({"max_running": 0}, BAD),
    "fewer than none": ({"max_running": -1}, BAD),
    "too many at once": ({"max_running": 32768}, BAD),
    "more than an integer": ({"max_running": 2**31}, BAD),
    "as many as may be": ({"max_running": 32767}, "ok"),
    "a rate of none": ({"rate_limit": 0}, BAD),
    "a rate below none": ({"rate_limit": -1}, BAD),
    "a rate too high": ({"rate_limit": 1_000_000_001}, BAD),
    "no period": ({"rate_limit": 1, "rate_period": "0 s"}, BAD),
    "a period below none": ({"rate_limit": 1, "rate_period": "-1 s"}, BAD),
    "a period too long": ({"rate_limit": 1, "rate_period": "366 days"}, BAD),
    "a period without a rate": ({"max_running": 1, "rate_period": "1 s"}, BAD),
    "no burst": ({"rate_limit": 1, "rate_burst": 0}, BAD),
    "a burst too large": ({"rate_limit": 1, "rate_burst": 1_000_000_001}, BAD),
    "an empty key": ({"concurrency_key": "", "max_running": 1}, BAD),
    "a key too long": ({"concurrency_key": LONGEST + "a", "max_running": 1}, BAD),
    "a key as long as may be": ({"concurrency_key": LONGEST, "max_running": 1}, "ok"),
    "as long as may be in ASCII": ({"concurrency_key": "x" * 1024, "max_running": 1}, "ok"),
    "a hostile key": ({"concurrency_key": HOSTILE, "max_running": 1}, "ok"),
}
MILLISECONDS = {"0 s": 0, "-1 s": -1000, "366 days": 366 * 86_400_000, "1 s": 1000}
OF_JOBS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an empty key": ({}, {"concurrency_key": ""}, BAD),
    "a key too long": ({}, {"concurrency_key": LONGEST + "a"}, BAD),
    "a key as long as may be": ({}, {"concurrency_key": LONGEST}, f"key {LONGEST}"),
    "as long as may be in ASCII": ({}, {"concurrency_key": "x" * 1024}, f"key {'x' * 1024}"),
    "a hostile key": ({}, {"concurrency_key": HOSTILE}, f"key {HOSTILE}"),
    "a path that names nothing": ({"customer": {}}, {}, "no key"),
    "a path through a text": ({"customer": "id"}, {}, "no key"),
    "null at the path": ({"customer": {"id": None}}, {}, "no key"),
    "a number at the path": ({"customer": {"id": 4.50}}, {}, "key 4.5"),
    "a text at the path": ({"customer": {"id": "x'y"}}, {}, "key x'y"),
    "an object at the path": ({"customer": {"id": {}}}, {}, "PAYLOAD_INVALID /customer/id"),
    "an array at the path": ({"customer": {"id": [1]}}, {}, "PAYLOAD_INVALID /customer/id"),
    "an empty text at the path": ({"customer": {"id": ""}}, {}, "PAYLOAD_INVALID /customer/id"),
    "a text too long at the path": (
        {"customer": {"id": LONGEST + "a"}}, {}, "PAYLOAD_INVALID /customer/id",
    ),
}  # fmt: skip
PUTS = [
    f"put_{of}('x', {each}{rule})"
    for of in ("queue", "kind")
    for each in ("", "key_")
    for rule in (
        "max_running => 0", "max_running => -1", "max_running => 32768", "rate_limit => 0",
        "rate_limit => -1", "rate_limit => 1000000001", "rate_period => '1 s'", "rate_burst => 1",
    )
]  # fmt: skip


def said(code: str, detail: str) -> str:
    """Return what an error says, with the path in it, if it names one."""
    return f"{code} /customer/id" if "/customer/id" in detail else code


async def by_sql(api: Api, call: dict[str, Any]) -> str:
    names = ", ".join(f"{name} => %({name})s" for name in call["arguments"])
    values = {
        name: json.dumps(value) if name == "payload" else value
        for name, value in call["arguments"].items()
    }
    with psycopg.connect(api.url, autocommit=True) as connection:
        try:
            connection.execute(f"select jobq.{call['name']}({names})".encode(), values)
        except psycopg.errors.UndefinedFunction:
            return BAD  # PostgreSQL has no such integer
        except psycopg.Error as error:
            return said(error.diag.constraint_name or "", error.diag.message_detail or "")
    return "ok"


async def by_python(api: Api, call: dict[str, Any]) -> str:
    arguments = dict(call["arguments"])
    with Client(api.url) as client:
        try:
            if call["name"] == "put_limit":
                client.put_limit(
                    arguments.pop("queue"), arguments.pop("concurrency_key"), **arguments
                )
            else:
                client.enqueue(arguments.pop("kind"), **arguments)
        except JobqError as error:
            return said(error.code, str(error))
    return "ok"


async def by_http(api: Api, call: dict[str, Any]) -> str:
    arguments = dict(call["arguments"])
    if (period := arguments.pop("rate_period", None)) is not None:
        arguments["rate_period_ms"] = MILLISECONDS[period]
    path = "/limits" if call["name"] == "put_limit" else "/jobs"
    response = await api.ask("POST", path, json=arguments)
    if response.status_code < 300:
        return "ok"
    assert response.status_code < 500, response.text
    codes = {"INVALID_REQUEST": BAD, "INPUT_VALIDATION_FAILED": "PAYLOAD_INVALID"}
    return said(codes[response.json()["error"]["code"]], response.text)


async def by_command(api: Api, call: dict[str, Any]) -> str:
    arguments = dict(call["arguments"])
    if call["name"] == "put_limit":
        words = ["limits", "put", "--"]
        tail = [arguments.pop("queue"), arguments.pop("concurrency_key")]
    else:
        words = ["enqueue", "--"]
        tail = [arguments.pop("kind"), json.dumps(arguments.pop("payload"))]
    options = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
    words = [*words[:-1], *options, "--", *tail]
    done = CliRunner().invoke(main, words, env={"DATABASE_URL": api.url})
    if done.exit_code == 0:
        return "ok"
    assert isinstance(done.exception, SystemExit), done.exception
    return said("PAYLOAD_INVALID" if "payload" in done.output.lower() else BAD, done.output)


DOORS = {"SQL": by_sql, "Python": by_python, "HTTP": by_http, "command line": by_command}


@pytest.mark.parametrize("door", DOORS)
async def test_a_limit_of_a_key_is_refused_or_kept_through_every_door(api: Api, door: str) -> None:
    found, wanted = {}, {}
    for case, (given, outcome) in OF_KEYS.items():
        arguments: dict[str, Any] = {"queue": "q", "concurrency_key": "a", **given}
        found[case] = await DOORS[door](api, {"name": "put_limit", "arguments": arguments})
        wanted[case] = outcome
    assert found == wanted
    kept = api.run("select concurrency_key, max_running from jobq_internal.list_limits('q')")
    assert set(kept) == {("a", 32767), ("x" * 1024, 1), (LONGEST, 1), (HOSTILE, 1)}


@pytest.mark.parametrize("door", DOORS)
async def test_a_job_has_the_key_that_it_should_through_every_door(api: Api, door: str) -> None:
    api.run("select jobq.put_kind('k', concurrency_key => '{customer,id}')")
    found, wanted = {}, {}
    for case, (payload, given, outcome) in OF_JOBS.items():
        arguments = {"kind": "k", "payload": payload, **given}
        found[case] = await DOORS[door](api, {"name": "enqueue", "arguments": arguments})
        if found[case] == "ok":
            [(key,)] = api.run("select concurrency_key from jobq_private.job")
            found[case] = "no key" if key is None else f"key {key}"
            api.run("delete from jobq_private.job")
        wanted[case] = outcome
    assert found == wanted


@pytest.mark.parametrize("door", ["SQL", "Python"])
async def test_queues_and_kinds_refuse_bad_limits(api: Api, door: str) -> None:
    for put in PUTS:
        if door == "SQL":
            with pytest.raises(psycopg.Error) as refused:
                api.run(f"select jobq.{put}")
            assert refused.value.diag.constraint_name == BAD, put
            continue
        name, _, rest = put.partition("('x', ")
        option, _, value = rest.removesuffix(")").partition(" => ")
        with Client(api.url) as client, pytest.raises(JobqError) as error:
            getattr(client, name)("x", **{option: value.strip("'") if "'" in value else int(value)})
        assert error.value.code == BAD, put


async def test_a_held_kind_is_released_through_every_door(api: Api) -> None:
    def command(*arguments: str) -> str:
        words = ["limits", "release", *arguments]
        return CliRunner().invoke(main, words, env={"DATABASE_URL": api.url}).output.strip()

    def hold() -> None:
        api.run("select jobq.enqueue('mail', queue => 'q')")
        api.run(
            "select jobq.rate_limited(c.job_id, c.attempt, '1 h', release => false)"
            " from jobq.claim('{q}', 'w') as c where c.kind = 'mail'"
        )

    kind = {"queue": "q", "kind": "mail"}
    hold()
    with Client(api.url) as client:
        said: list[object] = [client.release_key(**kind), client.release_key(**kind)]
    hold()
    said += [command("q", "--kind", "mail"), command("q", "--kind", "mail")]
    hold()
    for _ in range(2):
        released = (await api.ask("POST", "/limits/release", json=kind)).json()
        assert released == kind | {"concurrency_key": None, "was_held": released["was_held"]}
        said.append(released["was_held"])
    assert said == [True, False, "released", "the key was not held", True, False]


async def test_a_key_is_held_and_released_through_every_door(api: Api) -> None:
    """And each says whether it was held."""
    key = {"queue": "q", "concurrency_key": HOSTILE}
    words = ["--", key["queue"], key["concurrency_key"]]
    held = (
        "select count(*) from jobq_private.limit_hold where held_until > now() + interval '59 min'"
    )
    until = datetime.now(UTC) + timedelta(hours=2)
    said: list[object] = []

    def command(*arguments: str) -> str:
        return CliRunner().invoke(main, arguments, env={"DATABASE_URL": api.url}).output.strip()

    await api.ask("POST", "/limits/hold", json=key | {"until": until.isoformat()})
    with Client(api.url) as client:
        assert api.run(held) == [(1,)]
        said += [client.release_key(**key), client.release_key(**key)]
        client.hold_key(**key, until=until)
        assert api.run(held) == [(1,)]
    with psycopg.connect(api.url) as mine:
        Client(mine).hold_key(**key, until=timedelta(hours=3))
        left = mine.execute(
            "select max(held_until) - now() from jobq_private.limit_hold"
        ).fetchall()
        assert left == [(timedelta(hours=3),)], "it counts by the database's clock"
        mine.rollback()
    said += [command("limits", "release", *words), command("limits", "release", *words)]
    assert command("limits", "hold", "--seconds", "7200", *words) == ""
    assert api.run(held) == [(1,)]
    for _ in range(2):
        said.append((await api.ask("POST", "/limits/release", json=key)).json()["was_held"])
    assert said == [True, False, "released", "the key was not held", True, False]
    for seconds in ("nan", "inf", "1e300", "-1"):
        assert "Invalid value" in command("limits", "hold", "--seconds", seconds, *words)


def test_budgets_are_put_listed_and_deleted_on_the_command_line(api: Api) -> None:
    def command(*arguments: str) -> str:
        return CliRunner().invoke(main, arguments, env={"DATABASE_URL": api.url}).output.strip()

    def listed(*arguments: str) -> list[tuple[object, ...]]:
        rows = map(json.loads, command("budgets", "list", "--json", *arguments).splitlines())
        return [
            (row["scope"], row["concurrency_key"], row["each_key"], row["amount"], row["period"])
            for row in rows
        ]

    command("declare", "summarize")
    assert command("budgets", "put", "queue", "llm", "1000000", "--time-zone", "Asia/Tokyo") == ""
    assert command("budgets", "put", "kind", "summarize", "12.5", "--period", "day") == ""
    assert command("budgets", "put", "queue", "llm", "7", "--each-key") == ""
    assert command("budgets", "put", "queue", "llm", "9", "--key", "customer-42") == ""
    assert listed("kind") == [("summarize", None, False, 12.5, "day")]
    assert listed("queue", "llm") == [
        ("llm", None, False, 1_000_000, "month"),
        ("llm", "customer-42", False, 9, "month"),
        ("llm", None, True, 7, "month"),
    ]
    assert "Asia/Tokyo" in command("budgets", "list")
    assert command("budgets", "delete", "queue", "llm") == ""
    assert command("budgets", "delete", "queue", "llm", "--each-key") == ""
    assert listed("queue") == [("llm", "customer-42", False, 9, "month")]
    for amount in ("-1", "nan", "inf", "1e16", "many"):
        assert "Invalid value" in command("budgets", "put", "queue", "llm", "--", amount)
    assert "INVALID_TIME_ZONE" in command("budgets", "put", "queue", "a", "1", "--time-zone", "x")
