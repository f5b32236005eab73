"""Definitions over HTTP: their versions, and changes that would undo each other."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

import jobq_delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from http_api import Api

pytest_plugins = ["http_fixtures"]


def endpoint(number: int) -> dict[str, Any]:
    spec = {"url": f"http://a.example/{number}", "method": "POST"}
    return {"name": "e", "type": "HTTP", "spec": spec}


DEFINITIONS = [
    ("/payload-specs/s", lambda number: {"name": "s", "schema": {"title": str(number)}}),
    ("/configs/c", lambda number: {"name": "c", "values": {"a": number}}),
    ("/endpoints/e", endpoint),
    ("/endpoints/e", lambda number: {**endpoint(0), "retry_policy": {"max_attempts": number + 1}}),
]


@pytest.mark.parametrize(("one", "body"), DEFINITIONS)
async def test_a_change_of_another_version_is_refused(
    api: Api, one: str, body: Callable[[int], dict[str, Any]]
) -> None:
    made = await api.ask("POST", one[:-2], json=body(0))
    assert made.headers["etag"] == '"1"'
    for number, (tag, status) in enumerate(
        (
            ('"2"', 412),
            ("1", 412),
            ('W/"1"', 412),
            ('"1"', 200),
            ('"1"', 412),
            ('"7", "2"', 200),
            ("*", 200),
        ),
        1,
    ):
        answer = await api.ask("PUT", one, json=body(number), headers={"if-match": tag})
        assert answer.status_code == status, (tag, answer.text)
        if status == 412:
            assert answer.json()["error"]["code"] == "PRECONDITION_FAILED"
        else:
            assert answer.headers["etag"] == f'"{answer.json()["version"]}"'
    shown = await api.ask("GET", one)
    assert shown.headers["etag"] == '"4"'
    assert (await api.ask("PUT", one, json=body(8))).status_code == 200
    late = await api.ask("DELETE", one, headers={"if-match": '"4"'})
    assert late.status_code == 412
    assert (await api.ask("GET", one)).status_code == 200
    gone = await api.ask("DELETE", one, headers={"if-match": '"5"'})
    assert gone.status_code == 204
    for method in ("PUT", "DELETE"):
        given = {"json": body(9)} if method == "PUT" else {}
        none = await api.ask(method, one, headers={"if-match": "*"}, **given)
        assert none.status_code == 404


async def test_of_changes_at_the_same_time_one_wins(api: Api) -> None:
    assert (await api.ask("POST", "/configs", json={"name": "c", "values": {}})).status_code == 201
    for version in range(1, 6):
        headers = {"if-match": f'"{version}"'}
        bodies = [{"values": {"n": [version, number]}} for number in range(4)]
        answers = await asyncio.gather(
            *(api.ask("PUT", "/configs/c", json=body, headers=headers) for body in bodies)
        )
        assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    [(changes,)] = api.run("select max(version) from jobq_internal.list_versions('config', 'c')")
    assert changes == 6


async def test_what_is_changed_under_a_condition_is_audited(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    await api.ask("POST", "/secrets", json={"name": "s", "value": "x"})
    changed = await api.ask("PUT", "/secrets/s", json={"value": "y"}, headers={"if-match": '"1"'})
    assert changed.status_code == 200, changed.text
    noted = api.run("select acting_for from jobq.audit where subject = %s", "s")
    assert noted == [("API key test-0",)] * 2


async def test_the_specification_has_every_field_of_an_endpoint(api: Api) -> None:
    fields = api.run("select type, field, is_needed from jobq_private.spec_field")
    schemas = (await api.ask("GET", "/openapi.json")).json()["components"]["schemas"]
    told = {one["title"]: one for one in schemas["NewEndpoint"]["properties"]["spec"]["anyOf"]}
    assert {kind: set(one["properties"]) for kind, one in told.items()} == {
        kind: {field for type_, field, _ in fields if type_ == kind} for kind in told
    }
    assert {kind: set(one["required"]) for kind, one in told.items()} == {
        kind: {field for type_, field, needed in fields if type_ == kind and needed}
        for kind in told
    }


READ_BACK: list[tuple[str, dict[str, Any]]] = [
    ("/payload-specs/s", {"name": "s", "schema": {"required": ["a"]}}),
    ("/configs/c", {"name": "c", "values": {"a": 0.1}}),
    ("/endpoints/e", {**endpoint(1), "max_per_second": 0.5}),
    (
        "/endpoints/e",
        {
            **endpoint(1),
            "retry_policy": {"max_attempts": 4, "jitter": 0, "backoff": "decorrelated"},
        },
    ),
]


@pytest.mark.parametrize(("one", "body"), READ_BACK)
async def test_a_put_takes_what_a_get_gave(api: Api, one: str, body: dict[str, Any]) -> None:
    assert (await api.ask("POST", one[:-2], json=body)).status_code == 201
    if one.startswith("/endpoints"):
        await api.ask("POST", f"{one}/pause", json={"reason": "it is down"})
    shown = await api.ask("GET", one)
    put = await api.ask("PUT", one, json=shown.json(), headers={"if-match": shown.headers["etag"]})
    assert (put.status_code, put.json()) == (200, shown.json())
    wrong = await api.ask("PUT", one, json={**shown.json(), "versions": 1})
    assert wrong.status_code == 400


async def test_retries_that_the_queue_is_left_to_choose_can_be_put_back(api: Api) -> None:
    api.run(
        """select jobq.put_endpoint('e', 'HTTP', '{"url": "http://a.example"}',
        max_attempts => null, retry_strategy => null, retry_initial_delay => null,
        retry_max_delay => null, retry_jitter => null)"""
    )
    shown = (await api.ask("GET", "/endpoints/e")).json()
    assert set(shown["retry_policy"].values()) == {None}
    assert (await api.ask("PUT", "/endpoints/e", json=shown)).json() == shown


async def test_a_put_without_jitter_gives_the_default_back(api: Api) -> None:
    policy = {"max_attempts": 3, "jitter": 0.5}
    made = await api.ask("POST", "/endpoints", json={**endpoint(1), "retry_policy": policy})
    assert made.json()["retry_policy"]["jitter"] == 0.5
    put = await api.ask("PUT", "/endpoints/e", json=endpoint(1))
    assert put.json()["retry_policy"]["jitter"] == 0.25
    for jitter in (-0.1, 1.1, "0.5"):
        bad = {**endpoint(1), "retry_policy": {"jitter": jitter}}
        assert (await api.ask("PUT", "/endpoints/e", json=bad)).status_code == 400


async def test_a_kind_and_an_endpoint_do_not_take_each_others_place(api: Api) -> None:
    policy = {"max_attempts": 3}
    made = await api.ask("POST", "/endpoints", json={**endpoint(1), "retry_policy": policy})
    refused = await api.ask("POST", "/kinds", json={"kind": "e", "queue": "mail"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IS_ENDPOINT")
    assert "PUT /endpoints" in refused.json()["error"]["hint"]
    assert (await api.ask("GET", "/endpoints/e")).json() == made.json()
    await api.ask("POST", "/kinds", json={"kind": "k", "max_attempts": 2})
    refused = await api.ask("POST", "/endpoints", json={**endpoint(1), "name": "k"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "KIND_EXISTS")
    assert "DELETE /kinds/" in refused.json()["error"]["hint"]
    refused = await api.ask("DELETE", "/kinds/e")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "IS_ENDPOINT")
    assert (await api.ask("DELETE", "/kinds/k")).status_code == 204
    made = await api.ask("POST", "/endpoints", json={**endpoint(1), "name": "k"})
    assert made.status_code == 201


async def test_the_cost_of_a_kind_is_a_path(api: Api) -> None:
    given = {"kind": "k", "cost": ["usage", "tokens"]}
    made = await api.ask("POST", "/kinds", json=given)
    assert (made.status_code, made.json()) == (200, {"kind": "k"})
    [kind] = (await api.ask("GET", "/kinds")).json()["items"]
    assert kind["cost"] == given["cost"]


async def test_a_kind_in_use_is_not_forgotten(api: Api) -> None:
    await api.ask("POST", "/kinds", json={"kind": "a", "max_attempts": 9})
    job = await api.job(kind="a")
    refused = await api.ask("DELETE", "/kinds/a")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "CONFLICT")
    assert refused.json()["error"]["detail"] == "live jobs of kind a"
    await api.ask("POST", f"/jobs/{job['job_id']}/cancel")
    for scope, status in (("produce", 403), ("read", 403), ("operate", 204), ("operate", 404)):
        answer = await api.ask("DELETE", "/kinds/a", headers=api.key([scope]))
        assert answer.status_code == status, (scope, answer.text)
    assert answer.json()["error"]["code"] == "KIND_NOT_FOUND"
    assert (await api.ask("GET", "/kinds")).json()["items"] == []


@pytest.mark.parametrize(
    ("module", "request_"),
    [
        ("keyring", ("POST", "/secrets", {"name": "s", "value": "x"})),
        ("json_schema.input", ("POST", "/payload-specs", {"name": "s", "schema": {}})),
        ("preview", ("POST", "/endpoints/e/preview", {})),
        ("kafka", ("POST", "/endpoints/e/preview", {})),
        ("links", ("POST", "/approval", {"link": "x", "is_approved": False})),
    ],
)
async def test_a_server_without_the_extra_says_so(
    api: Api, monkeypatch: pytest.MonkeyPatch, module: str, request_: tuple[str, str, Any]
) -> None:
    spec = '{"bootstrap_servers": "a.example:9092", "topic": "t"}'
    api.run("select jobq.put_endpoint('e', 'KAFKA', %s)", spec)
    monkeypatch.setitem(sys.modules, f"jobq_delivery.{module}", None)
    monkeypatch.delattr(jobq_delivery, module, raising=False)
    method, path, body = request_
    answer = await api.ask(method, path, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (503, "DELIVERY_MISSING")
    assert error["detail"] == f"jobq_delivery.{module} is not installed"
