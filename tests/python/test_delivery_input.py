"""Input of endpoints against payload specs: refused when it is enqueued, or never sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from delivery_sink import posting
from http_api import opened
from psycopg.types.json import Jsonb

from jobq import AsyncClient, Client
from jobq.delivery.input import InputSchema, schema_problem
from jobq.errors import HasDependents, NotFound, PayloadInvalid

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
    monkeypatch.setitem(sys.modules, "jobq.delivery.input", None)
    assert client.enqueue("mail", {}).created


def test_no_payload_is_an_empty_one(client: Client) -> None:
    with pytest.raises(PayloadInvalid):
        client.enqueue("mail")


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
    assert asked.count("list_payload_schemas") == 2
    assert asked.count("enqueue") == 6


@pytest.mark.parametrize("payload", BAD)
async def test_the_http_api_refuses_input_that_does_not_fit(
    client: Client, database: str, payload: Any
) -> None:
    job = {"endpoint": "mail", "idempotency_key": "k", "input": payload}
    cron = {"endpoint": "mail", "trigger": "CRON", "cron": "0 9 * * *", "timezone": "UTC"}
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
        ({"$ref": "#/$defs/no"}, {}),
        ({"$ref": "#"}, {}),
        ({"$ref": "http://127.0.0.1:1/schema"}, {}),
        ({"type": "strin", "not": {}}, {}),
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
    [{"type": "strin"}, {"required": "to"}, {"$ref": "http://a.example/x"}, [], {"minimum": "1"}],
)
def test_what_is_no_json_schema_is_refused_when_it_is_put(database: str, schema: Any) -> None:
    with Client(database) as client, pytest.raises(PayloadInvalid) as refused:
        client.put_payload_spec("bad", schema)
    assert refused.value.code == "SCHEMA_INVALID"
    with Client(database) as client:
        assert client.list_definitions("payload_spec") == []


def test_a_schema_may_be_any_of_the_draft() -> None:
    schema = {
        "$dynamicAnchor": "node",
        "properties": {"next": {"$dynamicRef": "#node"}, "tags": {"prefixItems": [{"const": 1}]}},
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
        assert [item["name"] for items in found.values() for item in items] == ["c", "e"]
        assert client.get_definition("config", "c")["values"] == {"url": "http://b.example/"}
        assert [v.version for v in client.list_versions("config", "c")] == [2, 1]
        assert client.list_versions("config", "c")[1].document == {
            "values": {"url": "http://a.example/"}
        }
    async with AsyncClient(database) as other:
        for refused in (other.delete_config("c"), other.delete_payload_spec("p")):
            with pytest.raises(HasDependents) as said:
                await refused
            assert said.value.sqlstate == "JQ008"
        assert (await other.get_definition("endpoint", "e"))["version"] == 1
        await other.delete_endpoint("e")
        await other.delete_config("c")
        await other.delete_payload_spec("p")
        for sort in ("payload_spec", "config", "secret", "endpoint"):
            assert await other.list_definitions(sort) == []
        with pytest.raises(NotFound):
            await other.get_definition("config", "c")
