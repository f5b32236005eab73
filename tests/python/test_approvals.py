"""Questions of jobs to people: asked by handlers, answered by every door, and only once."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64encode
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from http_api import opened
from waiting import until, until_async

from jobq import Answer, AsyncClient, Client, EventTimeout, JobContext, Registry, Worker
from jobq.errors import IllegalState, InvalidArgument, PayloadInvalid, StepInvalid
from jobq_delivery import Keyring, LinkInvalid, approval_link
from jobq_delivery.links import read
from jobq_testing import run_due

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from http_api import Api

    from jobq import Job

FORM = {
    "type": "object",
    "required": ["cents"],
    "properties": {"cents": {"type": "integer", "maximum": 500}, "note": {"type": "string"}},
}
RING = Keyring([bytes(32)])
DAY = timedelta(days=1)


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(database) as client:
        yield client


@pytest.fixture
async def api(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """The HTTP API with a key for links."""
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    async with opened(database) as api:
        yield api


def asking(**options: Any) -> Registry:
    registry = Registry()

    @registry.handler("refund")
    async def refund(cents: int, context: JobContext) -> list[Any]:
        answer = await context.approve("refund", f"Refund {cents} cents?", **options)
        return [answer.is_approved, answer.data, answer.reason, answer.by]

    return registry


def asked(connection: psycopg.Connection[Any], form: object = None) -> UUID:
    """Return a job that asks."""
    [(job_id,)] = connection.execute("select jobq.enqueue('refund')").fetchall()
    connection.execute("select jobq.claim_job(%s, 'w')", [job_id])
    connection.execute(
        "select jobq.ask(%s, 1, 'refund', 'Refund 5 cents?', %s)",
        [job_id, form and json.dumps(form)],
    )
    return job_id  # type: ignore[no-any-return]


@pytest.fixture
def job_id(database: str) -> UUID:
    with psycopg.connect(database, autocommit=True) as connection:
        return asked(connection, FORM)


# ---- handlers and clients


async def ended(client: AsyncClient, job_id: UUID) -> Job:
    async def look() -> Job | None:
        job = await client.get(job_id)
        return job if job.finished_at else None

    job = await until_async(look, "for the end")
    assert job is not None
    return job


async def test_a_handler_asks_and_gets_the_answer(database: str, client: AsyncClient) -> None:
    job_id = (await client.enqueue("refund", 5)).job_id
    async with Worker(database, asking(form=FORM, timeout=DAY)):
        [question] = await until_async(client.list_waits, "for a question")
        assert (question.job_id, question.name, question.form) == (job_id, "refund", FORM)
        assert (question.kind, question.question) == ("refund", "Refund 5 cents?")
        assert question.expires_at is not None
        assert question.expires_at - question.since > timedelta(hours=23)
        with pytest.raises(PayloadInvalid):
            await client.answer(job_id, "refund", is_approved=True, data={"cents": 900})
        data = {"cents": 5}
        await client.answer(
            job_id, "refund", is_approved=True, data=data, reason="fine", answered_by="ada"
        )
        assert (await ended(client, job_id)).result == [True, {"cents": 5}, "fine", "ada"]
    with pytest.raises(IllegalState):
        await client.answer(job_id, "refund", is_approved=False)
    assert await client.list_waits() == []


async def test_a_transactional_handler_asks_too(database: str, client: AsyncClient) -> None:
    registry = Registry()

    @registry.handler("refund", transactional=True)
    def refund(_payload: Any, connection: psycopg.Connection[Any], context: JobContext) -> Any:
        answer = context.approve("sure", "Are you sure?")
        assert isinstance(answer, Answer)
        return answer.is_approved

    job_id = (await client.enqueue("refund")).job_id
    async with Worker(database, registry):
        await until_async(client.list_waits, "for a question")
        await client.answer(job_id, "sure", is_approved=False)
        job = await ended(client, job_id)
        assert (job.state, job.result) == ("succeeded", False)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("", {}),
        ("x" * 250, {}),
        ("a", {"timeout": -1}),
        ("a", {"form": {"oneOf": []}}),
        ("a", {"form": {"type": object}}),
    ],
)
def test_what_cannot_be_asked_is_dead_at_once(
    database: str, name: str, options: dict[str, Any]
) -> None:
    registry = Registry()

    @registry.handler("refund")
    def refund(_payload: Any, context: JobContext) -> None:
        context.approve(name, "Refund?", **options)

    with psycopg.connect(database) as connection:
        client = Client(connection)
        client.enqueue("refund")
        [job] = run_due(connection, registry)
        assert job.state == "dead" and isinstance(job.error, StepInvalid)


def test_nobody_answers_in_time(database: str) -> None:
    registry = Registry()

    @registry.handler("refund")
    def refund(_payload: Any, context: JobContext) -> str:
        try:
            context.approve("refund", "Refund?", timeout=0)
        except EventTimeout:
            return "nobody"
        return "somebody"

    with psycopg.connect(database) as connection:
        client = Client(connection)
        job_id = client.enqueue("refund").job_id
        run_due(connection, registry)
        run_due(connection, registry)
        assert client.get(job_id).result == "nobody"
        with pytest.raises(IllegalState):
            client.answer(job_id, "refund", is_approved=True)


def test_of_two_answers_at_once_one_counts(database: str, job_id: UUID) -> None:
    with psycopg.connect(database) as one, psycopg.connect(database) as two:
        one.execute("select jobq.answer(%s, 'refund', false)", [job_id])
        refused: list[BaseException] = []

        def second() -> None:
            try:
                two.execute("select jobq.answer(%s, 'refund', true, '{\"cents\": 1}')", [job_id])
            except psycopg.Error as error:
                refused.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        with psycopg.connect(database, autocommit=True) as observer:
            until(
                lambda: (
                    observer.execute(
                        "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'",
                        [two.info.backend_pid],
                    ).fetchone()
                    is not None
                ),
                "the second answer to wait for the first",
            )
        one.commit()
        thread.join()
        assert [error.sqlstate for error in refused] == ["JQ002"]  # type: ignore[attr-defined]


def test_the_end_of_the_time_does_not_overtake_an_answer(database: str) -> None:
    """While an answer is not committed, its job is not claimed, though its time is over."""
    with psycopg.connect(database, autocommit=True) as observer:
        [(job_id,)] = observer.execute("select jobq.enqueue('refund')").fetchall()
        observer.execute("select jobq.claim_job(%s, 'w')", [job_id])
        observer.execute("select jobq.ask(%s, 1, 'a', 'b', timeout => '1 s')", [job_id])
        with psycopg.connect(database) as answering:
            answering.execute("select jobq.answer(%s, 'a', true)", [job_id])
            time.sleep(1.1)
            claim = "select job_id, attempt from jobq.claim('{default}', 'w')"
            assert observer.execute(claim).fetchall() == []
        [(claimed, attempt)] = observer.execute(claim).fetchall()
        assert claimed == job_id
        [(outcome,)] = observer.execute(
            "select outcome from jobq.ask(%s, %s, 'a', 'b')", [job_id, attempt]
        ).fetchall()
        assert outcome == "arrived"


# ---- links


def test_a_link_is_valid_for_its_person_time_and_key(job_id: UUID) -> None:
    site = "https://a.example/"
    url = approval_link(site, job_id, "refund", to="ada", valid_for=DAY, keyring=RING)
    assert url.startswith(f"{site}console/approval?link=")
    token = url.partition("=")[2]
    link = read(token, RING)
    assert (link.job_id, link.name, link.to) == (job_id, "refund", "ada")
    assert read(token, Keyring([b"x" * 32, bytes(32)])) == link
    wrong = [f"{token[:-2]}AA", token.replace(".", ""), "", ".", "é.é", f"A{token}", token[4:]]
    for each in wrong:
        with pytest.raises(LinkInvalid):
            read(each, RING)
    with pytest.raises(LinkInvalid):
        read(token, Keyring([b"x" * 32]))
    with pytest.raises(LinkInvalid):
        read(token, Keyring())
    old = approval_link("", job_id, "refund", to="ada", valid_for=-DAY, keyring=RING)
    with pytest.raises(LinkInvalid, match="expired"):
        read(old.partition("=")[2], RING)
    for to, name in (("", "refund"), ("x" * 241, "refund"), ("ada", ""), ("ada", "x" * 250)):
        with pytest.raises(InvalidArgument):
            approval_link("", job_id, name, to=to, valid_for=DAY, keyring=RING)
    with pytest.raises(InvalidArgument):
        approval_link("", "no id", "refund", to="ada", valid_for=DAY, keyring=RING)


async def test_a_link_answers_once_without_a_key(api: Api, job_id: UUID) -> None:
    made = await api.ask(
        "POST", f"/jobs/{job_id}/links",
        json={"name": "refund", "to": "ada@example.org", "valid_for_ms": 60_000},
    )  # fmt: skip
    assert made.status_code == 201, made.text
    token = made.json()["link"]
    assert made.json()["page"] == f"/console/approval?link={token}"
    nobody = {"authorization": ""}
    shown = await api.ask("GET", "/approval", params={"link": token}, headers=nobody)
    assert shown.status_code == 200, shown.text
    assert (shown.json()["question"], shown.json()["form"]) == ("Refund 5 cents?", FORM)
    assert shown.json()["expires_at"] is None
    answer = {"link": token, "is_approved": True, "data": {"cents": 900}}
    unfit = await api.ask("POST", "/approval", json=answer, headers=nobody)
    assert (unfit.status_code, code_of(unfit)) == (422, "INPUT_VALIDATION_FAILED")
    answer["data"] = {"cents": 5}
    taken = await api.ask("POST", "/approval", json=answer, headers=nobody)
    assert taken.status_code == 204, taken.text
    again = await api.ask("POST", "/approval", json=answer, headers=nobody)
    assert (again.status_code, code_of(again)) == (409, "QUESTION_CLOSED")
    shown = await api.ask("GET", "/approval", params={"link": token}, headers=nobody)
    assert (shown.status_code, code_of(shown)) == (409, "QUESTION_CLOSED")
    [(action, who)] = api.run(
        "select action, acting_for from jobq.audit where subject = %s", str(job_id)
    )
    assert action == "approve"
    assert who.startswith("link to ada@example.org by API key "), who


async def test_a_link_opens_only_its_own_question(api: Api, job_id: UUID) -> None:
    other = approval_link("", job_id, "other", to="ada", valid_for=DAY).partition("=")[2]
    answer = {"link": other, "is_approved": True}
    refused = await api.ask("POST", "/approval", json=answer)
    assert (refused.status_code, code_of(refused)) == (404, "QUESTION_NOT_FOUND")
    for link in ("x", "x.y", other[:-1]):
        refused = await api.ask("POST", "/approval", json={**answer, "link": link})
        assert (refused.status_code, code_of(refused)) == (403, "LINK_INVALID")
        refused = await api.ask("GET", "/approval", params={"link": link})
        assert (refused.status_code, code_of(refused)) == (403, "LINK_INVALID")
    assert (await api.ask("GET", "/approval")).status_code == 400
    assert (await api.ask("POST", "/approval", json={"is_approved": True})).status_code == 400


async def test_without_keys_there_are_no_links(
    api: Api, job_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"name": "refund", "to": "ada", "valid_for_ms": 60_000}
    monkeypatch.delenv("JOBQ_SECRET_KEYS")
    refused = await api.ask("POST", f"/jobs/{job_id}/links", json=body)
    assert (refused.status_code, code_of(refused)) == (503, "SECRET_KEY_MISSING")
    unknown = "/jobs/00000000-0000-7000-8000-000000000000/links"
    assert (await api.ask("POST", unknown, json=body)).status_code == 404


# ---- HTTP with a key


async def test_questions_are_listed_and_answered_over_http(api: Api) -> None:
    job = await api.job(kind="refund")
    claimed = await api.claim()
    path = f"/jobs/{job['job_id']}/attempts/{claimed['attempt']}/ask"
    question = {"name": "refund", "question": "Refund?", "form": FORM, "timeout_ms": 60_000}
    asked = await api.ask("POST", path, json=question)
    assert (asked.status_code, asked.json()["outcome"]) == (200, "waiting")
    refused = await api.ask("POST", path, json={**question, "form": {"oneOf": []}})
    assert refused.status_code in {409, 422}
    listed = (await api.ask("GET", "/waits")).json()
    [item] = listed["items"]
    assert (item["job_id"], item["name"], item["form"]) == (job["job_id"], "refund", FORM)
    assert (await api.ask("GET", "/waits?queue=other")).json()["items"] == []
    answers = f"/jobs/{job['job_id']}/answers"
    unfit = await api.ask("POST", answers, json={"name": "refund", "is_approved": True, "data": 1})
    assert (unfit.status_code, code_of(unfit)) == (422, "INPUT_VALIDATION_FAILED")
    body = {"name": "refund", "is_approved": False, "reason": "no", "answered_by": "ada"}
    assert (await api.ask("POST", answers, json=body)).status_code == 204
    again = await api.ask("POST", answers, json=body)
    assert (again.status_code, code_of(again)) == (409, "QUESTION_CLOSED")
    nothing = await api.ask("POST", answers, json={**body, "name": "other"})
    assert (nothing.status_code, code_of(nothing)) == (404, "QUESTION_NOT_FOUND")
    [(acting_for,)] = api.run("select acting_for from jobq.audit where action = 'reject'")
    assert acting_for.startswith("API key test-") and acting_for.endswith(" for ada")
    claimed = await api.claim()
    path = f"/jobs/{job['job_id']}/attempts/{claimed['attempt']}/ask"
    told = (await api.ask("POST", path, json=question)).json()
    assert (told["outcome"], told["payload"]["is_approved"]) == ("arrived", False)


async def test_all_open_questions_are_listed_over_http(api: Api) -> None:
    api.run("""
        select c.attempt from jobq.enqueue_many((
            select jsonb_agg(jsonb '{"kind": "refund"}') from generate_series(1, 1100))) as e
        cross join lateral jobq.claim_job(e.job_id, 'somebody') as c
        cross join lateral jobq.ask(e.job_id, c.attempt, 'refund', 'Refund?') as a
    """)
    api.run("""
        update jobq_private.waiter set since = since + interval '1 s'
        where job_id in (select job_id from jobq_private.waiter order by job_id limit 50)
        returning job_id
    """)
    ids: list[str] = []
    place = ""
    for _ in range(6):
        page = (await api.ask("GET", f"/waits?limit=200{place}")).json()
        ids += [item["job_id"] for item in page["items"]]
        place = f"&cursor={page['cursor']}"
    assert page["cursor"] is None
    assert len(ids) == len(set(ids)) == 1100


def code_of(response: Any) -> str:
    return str(response.json()["error"]["code"])


# ---- the console


FIELDS = {"data.cents": "5", "data.note": ""}


async def test_the_consoles_page_of_a_link(api: Api, job_id: UUID) -> None:
    page = approval_link("", job_id, "refund", to="ada", valid_for=DAY)
    del api.client.headers["authorization"]
    shown = await api.ask("GET", page)
    assert shown.status_code == 200 and "Refund 5 cents?" in shown.text
    assert 'name="data.cents"' in shown.text and "Sign out" not in shown.text
    form = {"link": page.partition("=")[2], "answer": "approve", "reason": "ok", **FIELDS}
    elsewhere = {"origin": "https://evil.example"}
    refused = await api.ask("POST", "/console/approval", data=form, headers=elsewhere)
    assert refused.status_code == 403
    here = {"origin": "http://jobq"}
    unfit = {**form, "data.cents": "many"}
    assert (await api.ask("POST", "/console/approval", data=unfit, headers=here)).status_code == 400
    unfit = {**form, "data.cents": "501"}
    assert (await api.ask("POST", "/console/approval", data=unfit, headers=here)).status_code == 422
    taken = await api.ask("POST", "/console/approval", data=form, headers=here)
    assert taken.status_code == 200 and "You have approved it." in taken.text
    again = await api.ask("POST", "/console/approval", data=form, headers=here)
    assert again.status_code == 409
    assert (await api.ask("GET", page)).status_code == 409
    assert (await api.ask("GET", f"{page}x")).status_code == 403
    [(payload,)] = api.run("select payload from jobq_private.event")
    assert payload == {
        "is_approved": True, "data": {"cents": 5}, "reason": "ok", "by": "link to ada",
    }  # fmt: skip
