"""Input of endpoints against payload specs: refused when it is enqueued, or never sent."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest
from delivery_sink import posting
from http_api import opened
from psycopg.types.json import Jsonb

from jobq import AsyncClient, Client
from jobq.errors import HasDependents, NotFound, PayloadInvalid
from jobq_delivery.json_schema.input import InputSchema, schema_problem
from jobq_delivery.json_schema.keywords import SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

EITHER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "oneOf": [{"required": ["to"]}, {"required": ["cc"]}],
    "properties": {"to": {"$ref": "#/$defs/address"}},
    "$defs": {"address": {"type": "string", "pattern": "@"}},
}


@pytest.fixture
def client(database: str) -> Iterator[Client]:
    """A client of a database with an endpoint whose spec only a full validator knows."""
    with Client(database) as client:
        client.put_payload_spec("either", EITHER)
        client.put_endpoint("mail", "HTTP", {"url": "http://a.example/"}, payload_spec="either")
        yield client


BAD: list[Any] = [{}, {"to": "a@b", "cc": "c@d"}, {"to": "nobody"}, "text", [1]]


@pytest.mark.parametrize("payload", BAD)
async def test_clients_refuse_input_that_does_not_fit(
    client: Client, database: str, payload: Any
) -> None:
    with pytest.raises(PayloadInvalid) as refused:
        client.enqueue("mail", payload)
    assert (refused.value.code, refused.value.sqlstate) == ("PAYLOAD_INVALID", "JQ006")
    with pytest.raises(PayloadInvalid, match="job 2"):
        client.enqueue_many([{"kind": "mail", "payload": p} for p in ({"cc": 1}, payload)])
    with pytest.raises(PayloadInvalid):
        client.create_schedule("daily", "mail", "0 9 * * *", payload=payload)
    async with AsyncClient(database) as other:
        with pytest.raises(PayloadInvalid):
            await other.enqueue("mail", payload)
    assert client.list_jobs() == []


async def test_what_fits_passes(client: Client, database: str) -> None:
    assert client.enqueue("mail", {"to": "a@b"}).created
    assert client.enqueue("other", "anything").created
    async with AsyncClient(database) as other:
        assert (await other.enqueue("mail", {"cc": 1})).created


def test_without_the_extra_it_is_left_to_the_delivery(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jobq_delivery.json_schema.input", None)
    assert client.enqueue("mail", {}).created


def test_no_payload_is_an_empty_one(client: Client) -> None:
    with pytest.raises(PayloadInvalid):
        client.enqueue("mail")


async def test_no_input_is_refused_by_a_schema_that_was_replaced(
    client: Client, database: str
) -> None:
    """Nor by that of a spec that the endpoint has no more."""
    async with opened(database) as api:

        async def refusals(*inputs: int) -> list[int]:
            found = []
            for given in inputs:
                job = {"endpoint": "mail", "trigger": "IMMEDIATE", "idempotency_key": str(uuid4())}
                single = await api.ask("POST", "/jobs", json={**job, "input": given})
                many = await api.ask(
                    "POST", "/jobs:batch", json={"jobs": [{**job, "input": given}]}
                )
                assert single.status_code in (200, 201, 422), single.text
                assert (single.status_code == 422) == (many.status_code == 422)
                found += [given] if single.status_code == 422 else []
                try:
                    client.enqueue("mail", given)
                except PayloadInvalid:
                    assert given in found
                else:
                    assert given not in found
            return found

        client.put_payload_spec("fives", {"multipleOf": 5})
        client.put_endpoint("mail", "HTTP", {"url": "http://a.example/"}, payload_spec="fives")
        assert await refusals(10, 14) == [14]
        client.put_payload_spec("fives", {"multipleOf": 7})
        assert await refusals(14, 10) == [10]
        client.put_payload_spec("nines", {"multipleOf": 9})
        client.put_endpoint("mail", "HTTP", {"url": "http://a.example/"}, payload_spec="nines")
        assert await refusals(18, 14) == [14]
        client.put_endpoint("mail", "HTTP", {"url": "http://a.example/"})
        assert await refusals(23) == []


def test_kinds_are_asked_for_once_in_a_while(client: Client, monkeypatch: Any) -> None:
    asked = []
    run = Client.run

    def counting(self: Client, call: Any) -> Any:
        asked.append(call.function)
        return run(self, call)

    monkeypatch.setattr(Client, "run", counting)
    for _ in range(3):
        client.enqueue("work")
        client.enqueue("mail", {"cc": 1})
    assert asked.count("list_payload_schemas") == 1 + 3
    assert asked.count("enqueue") == 6


@pytest.mark.parametrize("payload", BAD)
async def test_the_http_api_refuses_input_that_does_not_fit(
    client: Client, database: str, payload: Any
) -> None:
    job = {"endpoint": "mail", "idempotency_key": "k", "input": payload}
    cron = {
        "endpoint": "mail",
        "trigger": "CRON",
        "cron": "0 9 * * *",
        "timezone": "UTC",
    }
    async with opened(database) as api:
        for path, body in [
            ("/jobs", {**job, "trigger": "IMMEDIATE"}),
            ("/jobs", {"kind": "mail", "payload": payload}),
            ("/jobs", {**cron, "input": payload}),
            ("/jobs:batch", {"jobs": [{"kind": "mail", "payload": payload}]}),
        ]:
            answer = await api.ask("POST", path, json=body)
            assert answer.status_code == 422, answer.text
            assert answer.json()["error"]["code"] == "INPUT_VALIDATION_FAILED"
        fine = await api.ask("POST", "/jobs", json={"kind": "mail", "payload": {"cc": 1}})
        assert fine.status_code == 201
    assert len(client.list_jobs()) == 1


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (EITHER, {}),
        ({"required": ["to"], "allOf": [{}]}, {}),
        ({"properties": {"to": {"oneOf": [{"const": 1}, {"const": 2}]}}}, {"to": 3}),
        ({"$ref": "#"}, {}),
    ],
)
async def test_bad_input_from_plain_sql_is_never_sent(
    database: str, schema: Any, payload: Any
) -> None:
    async with posting(database) as post:
        with psycopg.connect(database, autocommit=True) as connection:
            put = "select jobq.put_payload_spec('strict-input', %s)"
            connection.execute(put, [Jsonb(schema)])
            await post.endpoint("strict", {"url": post.sink.url}, payload_spec="strict-input")
            enqueue = "select jobq.enqueue('strict', %s)"
            [(job_id,)] = connection.execute(enqueue, [Jsonb(payload)])
        job = await post.ended(job_id)
        assert (job.state, job.last_error_code) == ("dead", "INPUT_VALIDATION_FAILED")
        assert (job.attempts, post.sink.received) == (1, [])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"required": "to"},
        {"$ref": "http://a.example/x"},
        {"$ref": "#/$defs/no"},
        {"not": {"pattern": "(?=a)"}},
        {"patternProperties": {r"(a)\1": True}},
        [],
        {"minimum": "1"},
    ],
)
def test_what_is_no_json_schema_is_refused_when_it_is_put(database: str, schema: Any) -> None:
    with Client(database) as client, pytest.raises(PayloadInvalid) as refused:
        client.put_payload_spec("bad", schema)
    assert refused.value.code == "SCHEMA_INVALID"
    with psycopg.connect(database) as connection, pytest.raises(psycopg.DatabaseError) as said:
        connection.execute("select jobq.put_payload_spec('bad', %s)", [Jsonb(schema)])
    assert (said.value.sqlstate, said.value.diag.constraint_name) == ("JQ006", "SCHEMA_INVALID")
    with Client(database) as client:
        assert client.list_definitions("payload_spec") == []


def test_a_schema_may_be_any_of_the_draft() -> None:
    schema = {
        "$dynamicAnchor": "node",
        "properties": {
            "next": {"$dynamicRef": "#node"},
            "tags": {"prefixItems": [{"const": 1}]},
        },
        "dependentRequired": {"next": ["tags"]},
        "unevaluatedProperties": False,
        "if": {"required": ["tags"]},
        "then": {"minProperties": 2},
    }
    assert schema_problem(schema) is None
    checks = InputSchema(schema)
    assert checks.violation({"next": {}, "tags": [1]}) is None
    assert checks.violation({"tags": [1]}) is not None
    assert checks.violation({"next": {"tags": [2], "next": {}}, "tags": [1]}) is not None
    assert checks.violation({"other": 1}) is not None


async def test_definitions_are_put_looked_at_and_deleted(database: str) -> None:
    """The same by the client that waits and the one that is awaited."""
    with Client(database) as client:
        client.put_config("c", {"url": "http://a.example/"})
        client.put_payload_spec("p", {"type": "object"})
        client.put_config("c", {"url": "http://b.example/"})
        client.put_endpoint("e", "HTTP", {"url": "{{config.url}}"}, config="c", payload_spec="p")
        found = {sort: client.list_definitions(sort) for sort in ("config", "endpoint")}
        assert [item["name"] for items in found.values() for item in items] == [
            "c",
            "e",
        ]
        assert client.get_definition("config", "c")["values"] == {"url": "http://b.example/"}
        assert [v.version for v in client.list_versions("config", "c")] == [2, 1]
        assert client.list_versions("config", "c")[1].document == {
            "values": {"url": "http://a.example/"}
        }
    async with AsyncClient(database) as other:
        for refused in (
            other.delete_definition("config", "c"),
            other.delete_definition("payload_spec", "p"),
        ):
            with pytest.raises(HasDependents) as said:
                await refused
            assert said.value.sqlstate == "JQ008"
        assert (await other.get_definition("endpoint", "e"))["version"] == 1
        await other.delete_definition("endpoint", "e")
        await other.delete_definition("config", "c")
        await other.delete_definition("payload_spec", "p")
        for sort in ("payload_spec", "config", "secret", "endpoint"):
            assert await other.list_definitions(sort) == []
        with pytest.raises(NotFound):
            await other.get_definition("config", "c")


BUSY = {"not": {"properties": {"to": {"pattern": "^(a+)+$"}}}, "maxProperties": 9}


async def test_no_text_keeps_a_pattern_busy(database: str) -> None:
    """Python's own expressions take minutes for this, and double with each letter."""
    schema = InputSchema(BUSY)
    started = time.thread_time()
    assert schema.violation({"to": "a" * 100_000}) is not None
    assert schema.violation({"to": "a" * 100_000 + "!"}) is None
    assert schema.violation({"to": 1}) is not None
    assert time.thread_time() - started < SECONDS
    async with opened(database) as api:
        made = await api.ask("POST", "/payload-specs", json={"name": "busy", "schema": BUSY})
        assert made.status_code == 201, made.text
        spec = {"url": "http://a.example/", "method": "POST"}
        endpoint = {"name": "e", "type": "HTTP", "spec": spec, "payload_spec": "busy"}
        assert (await api.ask("POST", "/endpoints", json=endpoint)).status_code == 201
        job = {"endpoint": "e", "trigger": "IMMEDIATE", "idempotency_key": "k"}
        async with asyncio.timeout(20):
            taken = await api.ask("POST", "/jobs", json={**job, "input": {"to": "a" * 27 + "!"}})
        assert taken.status_code == 201


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "(?=a)b"}}},
        {"allOf": [{"pattern": r"(a)\1"}]},
        {"patternProperties": {"(?!x)": True}},
        {"pattern": "(a{1000}){1000}"},
        {"properties": {"default": {"pattern": "(?=a)"}}},
        {"$ref": "#/default", "default": {"pattern": "(?=a)"}},
        {"$ref": "#/%64efault", "default": {"pattern": "(?=a)"}},
    ],
)
async def test_a_pattern_that_is_not_linear_is_refused_when_it_is_put(
    database: str, schema: dict[str, Any]
) -> None:
    async with opened(database) as api:
        refused = await api.ask("POST", "/payload-specs", json={"name": "s", "schema": schema})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (422, "INVALID_SCHEMA")
    assert "linear time" in error["detail"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/default", "default": {"patternProperties": {"^(a+)+$": True}}},
        {"$ref": "#/%64efault", "default": {"patternProperties": {"^(a+)+$": True}}},
        {"patternProperties": {"^(a+)+$": True}},
        {"allOf": [{"patternProperties": {"^(a+)+$": True}}]},
    ],
)
def test_names_of_members_that_no_keyword_looks_at_keep_no_pattern_busy(
    schema: dict[str, Any],
) -> None:
    """Python's own expressions take minutes for this, and hold up all of the process."""
    checked = InputSchema({**schema, "unevaluatedProperties": False})
    started = time.thread_time()
    assert checked.violation({"a" * 50: 1}) is None
    assert "does not allow 1" in str(checked.violation({"a" * 50 + "!": 1}))
    assert time.thread_time() - started < SECONDS


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#/properties", "properties": {"minLength": {}}}, "text"),
        ({"$ref": "#/properties", "properties": {"pattern": {}}}, "text"),
        ({"multipleOf": 0.1}, 10**400),
        ({"properties": {"a": {"$id": "b", "$ref": "#/nowhere"}}}, {"a": 1}),
    ],
)
def test_a_schema_that_cannot_be_used_says_so(schema: dict[str, Any], value: Any) -> None:
    assert InputSchema(schema).violation(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a"},
        {"not": {"$ref": "#here"}},
        {"$ref": "#"},
        {"anyOf": [{"allOf": [{"$ref": "#"}]}, True]},
        {"items": {"$ref": "#/items"}},
    ],
)
def test_a_schema_that_leads_nowhere_is_refused_when_it_is_put(schema: dict[str, Any]) -> None:
    assert "leads" in str(schema_problem(schema))


def test_a_schema_may_lead_back_to_itself() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert schema_problem(tree) is None
    assert InputSchema(tree).violation({"left": {"right": {}}}) is None


def test_what_is_told_of_a_long_schema_and_input_is_short() -> None:
    many = [str(number) for number in range(10_000)]
    assert len(str(InputSchema({"enum": many}).violation(many))) < 2000


def test_what_only_looks_like_a_pattern_is_left_alone() -> None:
    assert schema_problem({"const": {"pattern": "(?=a)"}, "properties": {"pattern": {}}}) is None


@pytest.mark.parametrize(
    ("schema", "fits", "fails"),
    [
        ({"pattern": "^a.c$"}, ["abc", 1], ["abd"]),
        (
            {"patternProperties": {"^n_": {"type": "number"}}},
            [{"n_a": 1, "x": "y"}],
            [{"n_a": "x"}],
        ),
        (
            {
                "properties": {"a": {}},
                "patternProperties": {"^b": {}},
                "additionalProperties": False,
            },
            [{"a": 1, "bc": 2}, []],
            [{"c": 1}],
        ),
        ({"additionalProperties": {"type": "string"}}, [{"a": "b"}], [{"a": 1}]),
        (
            {"uniqueItems": True},
            [[1, True, "1", [1]], "aa"],
            [[1, 1.0], [{"a": 1}, {"a": 1}]],
        ),
        ({"uniqueItems": False}, [[1, 1]], []),
        (
            {"patternProperties": {"^a": {}}, "unevaluatedProperties": False},
            [{"ab": 1}, {}, 1],
            [{"ab": 1, "ba": 1}],
        ),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"properties": {"a": {}}}},
                "anyOf": [{"required": ["b"], "properties": {"b": {}}}, True],
                "dependentSchemas": {"c": {"properties": {"c": {}, "d": {}}}},
                "unevaluatedProperties": {"type": "null"},
            },
            [{"a": 1, "b": 2}, {"c": 1, "d": 2}, {"x": None}],
            [{"d": 2}, {"a": 1, "x": 3}],
        ),
        (
            {
                "if": {"required": ["a"]},
                "then": {"properties": {"a": {}}},
                "else": {"properties": {"b": {}}},
                "unevaluatedProperties": False,
            },
            [{"a": 1}, {"b": 1}],
            [{"a": 1, "b": 1}, {"c": 1}],
        ),
        (
            {
                "allOf": [{"additionalProperties": {"type": "integer"}}],
                "unevaluatedProperties": False,
            },
            [{"a": 1}],
            [{"a": "b"}],
        ),
        (
            {
                "prefixItems": [{}, {}],
                "contains": {"type": "null"},
                "unevaluatedItems": False,
            },
            [[1, None], [1, 2, None], 1],
            [[1, None, 3]],
        ),
        ({"anyOf": [{"items": {}}], "unevaluatedItems": False}, [[1, 2]], []),
    ],
)
def test_the_bounded_keywords_mean_what_the_standard_says(
    schema: dict[str, Any], fits: list[Any], fails: list[Any]
) -> None:
    checked = InputSchema(schema)
    assert [value for value in fits if checked.violation(value) is not None] == []
    assert [value for value in fails if checked.violation(value) is None] == []


def test_a_check_that_takes_too_long_is_given_up() -> None:
    """Each level doubles the work."""
    schema: dict[str, Any] = {"$defs": {"0": {"type": "string"}}, "$ref": "#/$defs/30"}
    for level in range(1, 31):
        below = {"$ref": f"#/$defs/{level - 1}"}
        schema["$defs"][str(level)] = {"anyOf": [below, below]}
    started = time.thread_time()
    assert "more than 2 s" in str(InputSchema(schema).violation(1))
    assert time.thread_time() - started < 5 * SECONDS


async def test_a_recurring_job_is_changed_only_to_what_fits(database: str) -> None:
    """By the full schema, as it is when the job is made."""
    async with opened(database) as api:
        spec = {"name": "fives", "schema": {"properties": {"n": {"multipleOf": 5}}}}
        assert (await api.ask("POST", "/payload-specs", json=spec)).status_code == 201
        url = {"url": "http://a.example/", "method": "POST"}
        endpoint = {"name": "e", "type": "HTTP", "spec": url, "payload_spec": "fives"}
        assert (await api.ask("POST", "/endpoints", json=endpoint)).status_code == 201
        cron = {
            "endpoint": "e",
            "trigger": "CRON",
            "cron": "0 9 * * *",
            "timezone": "UTC",
        }
        made = await api.ask("POST", "/jobs", json={**cron, "input": {"n": 5}})
        assert made.status_code == 201, made.text
        path = f"/jobs/{made.json()['job_id']}"
        refused = await api.ask("PUT", path, json={"input": {"n": 7}})
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            422,
            "INPUT_VALIDATION_FAILED",
        )
        assert (await api.ask("GET", path)).json()["version"] == 1
        assert (await api.ask("PUT", path, json={"input": {"n": 10}})).status_code == 200
