"""The HTTP API: keys, scopes, roles, limits; and `jobq keys`."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from http_api import SETTINGS, opened
from psycopg.conninfo import make_conninfo

from jobq_cli.keys import keys
from jobq_http import auth, create_key
from jobq_http.app import OPERATIONS
from jobq_http.auth import ROLE_OF_SCOPE, SCOPES
from jobq_http.database import Database

if TYPE_CHECKING:
    from http_api import Api

    from jobq_http.operation import Operation

pytest_plugins = ["http_fixtures"]

OPEN = {"/healthz", "/ready", "/metrics", "/docs", "/openapi.json"}
# Their key is the link that they take.
LINKED = {"/approval"}
LOCKED = [operation for operation in OPERATIONS if operation.scopes]


def name_of(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def path_of(operation: Operation) -> str:
    """Return a path of the operation, with parameters that name nothing."""
    path = re.sub(r"{(job|execution)_id}", str(uuid4()), operation.path)
    return re.sub(r"{attempt}", "1", re.sub(r"{(queue|worker)}", "x", path))


async def test_without_a_key_only_five_paths_answer(api: Api) -> None:
    nobody = {"authorization": ""}
    for path in OPEN:
        response = await api.ask("GET", path, headers=nobody)
        assert response.status_code == 200, path
    assert {op.path for op in OPERATIONS if not op.scopes} == OPEN | LINKED
    for path in ["/jobs", "/queues", "/nothing", f"/jobs/{uuid4()}", "/jobs:batch", "/consoles"]:
        response = await api.ask("GET", path, headers=nobody)
        assert response.status_code == 401, path
        assert response.json()["error"]["code"] == "UNAUTHORIZED"
        assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    ["Bearer jobq_nope", "Bearer", "Bearer ", "Basic YTpi", "jobq_nope", "Bearer \xff"],
)
async def test_a_wrong_key_is_refused(api: Api, header: str) -> None:
    response = await api.ask("GET", "/jobs", headers={b"authorization": header.encode("latin-1")})
    assert response.status_code == 401


async def test_a_key_expires(api: Api) -> None:
    moment = datetime.now(UTC) - timedelta(seconds=1)
    gone = api.key(["read"], expires_at=moment)
    assert (await api.ask("GET", "/jobs", headers=gone)).status_code == 401
    valid = api.key(["read"], expires_at=moment + timedelta(hours=1))
    assert (await api.ask("GET", "/jobs", headers=valid)).status_code == 200


async def test_a_revoked_key_works_as_long_as_it_is_remembered(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert auth.MEMORY <= 5
    monkeypatch.setattr(auth, "MEMORY", 1e6)
    header = api.key(["read"])
    assert (await api.ask("GET", "/jobs", headers=header)).status_code == 200
    monkeypatch.setattr(auth, "MEMORY", 0.2)
    other = api.key(["read"])
    assert (await api.ask("GET", "/jobs", headers=other)).status_code == 200
    api.run("select jobq_http.revoke_api_key(name) from jobq_http.list_api_keys()")
    async with asyncio.timeout(60):
        while (await api.ask("GET", "/jobs", headers=other)).status_code != 401:
            await asyncio.sleep(0.05)
    assert (await api.ask("GET", "/jobs", headers=header)).status_code == 200


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_scope_opens_its_operations_and_no_other(api: Api, scope: str) -> None:
    header = api.key([scope])
    for operation in LOCKED:
        response = await api.ask(operation.method, path_of(operation), json={}, headers=header)
        is_refused = response.status_code == 403
        assert is_refused is (scope not in operation.scopes), name_of(operation)
        if is_refused:
            assert response.json()["error"]["code"] == "FORBIDDEN"


@pytest.mark.parametrize("scope", SCOPES)
async def test_the_role_of_every_scope_may_do_what_the_scope_opens(api: Api, scope: str) -> None:
    """A grant that is missing in the database would be an INTERNAL_ERROR here."""
    header = api.key([scope])
    bodies = [{}, {"kind": "a"}, {"jobs": [{"kind": "a"}]}, {"error": "x"}]
    bodies += [{"progress": 1}, {"message": "x"}]
    for operation in LOCKED:
        if scope not in operation.scopes:
            continue
        for body in bodies:
            response = await api.ask(
                operation.method, path_of(operation), json=body, headers=header
            )
            assert response.status_code < 500, (name_of(operation), response.text)


@pytest.mark.parametrize(
    ("scope", "function", "arguments"),
    [
        ("read", "cancel", {"job_id": uuid4()}),
        ("produce", "claim", {"queues": ["a"], "worker": "w"}),
        ("work", "enqueue", {"kind": "a"}),
        ("operate", "enqueue", {"kind": "a"}),
        ("produce", "create_api_key", {}),
        ("work", "list_api_keys", {}),
    ],
)
async def test_the_database_itself_keeps_a_scope_in_bounds(
    database: str, scope: str, function: str, arguments: dict[str, Any]
) -> None:
    shim = Database(database, 1, 5)
    await shim.open()
    try:
        with pytest.raises(
            (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction)
        ) as caught:
            await shim.fetch(ROLE_OF_SCOPE[scope], function, **arguments)
    finally:
        await shim.close()
    if arguments:
        assert isinstance(caught.value, psycopg.errors.InsufficientPrivilege)


async def test_the_last_use_is_written_once_a_minute(api: Api) -> None:
    header = api.key(["read"])
    await api.ask("GET", "/jobs", headers=header)
    query = "select last_used_at, xmin::text from jobq_private.api_key where api_key = 'test-1'"
    [(used, version)] = api.run(query)
    assert datetime.now(UTC) - used < timedelta(minutes=1)
    hashed = "select key_hash from jobq_private.api_key where api_key = 'test-1'"
    api.run(f"select * from jobq_http.authenticate(({hashed}))")
    assert api.run(query) == [(used, version)]
    api.run("update jobq_private.api_key set last_used_at = now() - interval '2 min'")
    api.run(f"select * from jobq_http.authenticate(({hashed}))")
    [(later, _)] = api.run(query)
    assert later > used


async def test_a_key_is_stored_as_its_hash_alone(api: Api) -> None:
    header = api.key(["read"])
    key = header["authorization"].removeprefix("Bearer ")
    [(rows,)] = api.run("select string_agg(k::text, '') from jobq_private.api_key as k")
    assert key not in rows
    assert key[:12] in rows
    assert len(key) >= 48


async def test_a_key_that_asks_too_often_has_to_wait(database: str) -> None:
    async with opened(database, replace(SETTINGS, requests_per_second=2)) as api:
        header = api.key(["read"])
        answers = await asyncio.gather(
            *(api.ask("GET", "/queues", headers=header) for _ in range(50))
        )
        refused = [x for x in answers if x.status_code != 200]
        assert 4 <= len(answers) - len(refused) < 50
        for answer in refused:
            assert (answer.status_code, answer.json()["error"]["code"]) == (429, "RATE_LIMITED")
            assert int(answer.headers["retry-after"]) >= 1
        other = await api.ask("GET", "/queues", headers=api.key(["read"]))
        assert other.status_code == 200
        own = api.key(["read"], requests_per_second=100)
        answers = [await api.ask("GET", "/queues", headers=own) for _ in range(20)]
        assert {x.status_code for x in answers} == {200}


async def test_guessing_keys_has_to_wait(api: Api) -> None:
    async def guess(n: int) -> int:
        header = {"authorization": f"Bearer jobq_{n}"}
        return (await api.ask("GET", "/jobs", headers=header)).status_code

    assert (await api.ask("GET", "/jobs")).status_code == 200
    statuses = await asyncio.gather(*(guess(n) for n in range(200)))
    assert set(statuses) == {401, 429}
    assert (await api.ask("GET", "/jobs")).status_code == 200


def test_jobq_keys_creates_lists_and_revokes(database: str) -> None:
    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(keys, [*words, "--database", database])
        return result.exit_code, result.output

    status, key = run("create", "ci", "--scope", "produce", "--scope", "read")
    assert status == 0
    assert re.fullmatch(r"jobq_[-_0-9A-Za-z]{43}\n", key)
    status, said = run("create", "ci", "--scope", "read")
    assert status == 1
    assert "name ci" in said
    assert run("create", "short", "--scope", "work", "--days", "3")[0] == 0
    _, listed = run("list")
    assert key.strip() not in listed
    assert key[:12] in listed
    assert "produce,read" in listed
    keys_of = [json.loads(line) for line in run("list", "--json")[1].splitlines()]
    expiring = {key["name"]: key["expires_at"] is not None for key in keys_of}
    assert expiring == {"ci": False, "short": True}
    assert run("revoke", "ci")[0] == 0
    keys_of = [json.loads(line) for line in run("list", "--json")[1].splitlines()]
    assert [key["name"] for key in keys_of if key["revoked_at"]] == ["ci"]
    assert run("revoke", "nobody")[0] == 1
    assert run("create", "none")[0] == 2


async def test_the_audit_names_the_key_that_acted(api: Api) -> None:
    job = await api.job()
    headers = api.key(["operate"])
    [(name,)] = api.run(
        "select name from jobq_http.list_api_keys() order by created_at desc limit 1"
    )
    await api.ask("POST", f"/jobs/{job['job_id']}/cancel", headers=headers, json={"reason": "x"})
    await api.ask("POST", f"/jobs/{job['job_id']}/redrive", headers=headers)
    again = await api.job()
    await api.ask("POST", f"/jobs/{again['job_id']}/cancel")
    noted = api.run(
        """select action, acting_for, actor = session_user from jobq.audit
        where action in ('cancel', 'redrive') order by audit_id"""
    )
    [(own,)] = api.run("select name from jobq_http.list_api_keys() order by created_at limit 1")
    assert noted == [
        ("cancel", f"API key {name}", True),
        ("redrive", f"API key {name}", True),
        ("cancel", f"API key {own}", True),
    ]


async def test_a_queue_that_is_not_granted_to_the_servers_log_in_is_forbidden(
    database: str,
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("""
            do $$ begin
                if not exists (select from pg_roles where rolname = 'shop') then
                    create role shop login password 'shop';
                    grant jobq_producer, jobq_worker, jobq_operator, jobq_reader to shop;
                end if;
            end $$
        """)
        connection.execute("select jobq.grant_queue('shop', 'shop', 'enqueue')")
        connection.execute("select jobq.enforce_queue_grants()")
        stranger = {"authorization": f"Bearer {create_key(connection, 'stranger', ['produce'])}"}
    url = make_conninfo(database, user="shop", password="shop")
    async with opened(url) as api:
        job = {"kind": "k", "queue": "shop"}
        assert (await api.ask("POST", "/jobs", json=job)).status_code == 201
        refused = await api.ask("POST", "/jobs", json={"kind": "k", "queue": "other"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ENQUEUE_DENIED")
        unknown = await api.ask("POST", "/jobs", json=job, headers=stranger)
        assert unknown.status_code == 401, "a key opens the servers of the log-in that made it"
