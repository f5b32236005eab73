"""Handlers: what is made of their signatures, and what the database learns from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from jobq import Client
from jobq.errors import PayloadInvalid
from jobq.registry import JobContext, Registry
from jobq.registry.schema import payload_schema

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Address:
    street: str
    number: int | None = None


@dataclass(frozen=True)
class Order:
    id: Annotated[int, msgspec.Meta(ge=1)]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=8, pattern="^[a-z]+$")]
    kind: Literal["small", "large"]
    home: Address
    others: list[Address] = field(default_factory=list)
    at: datetime | None = None
    ratio: float = 1.0
    extra: dict[str, Any] = field(default_factory=dict)


class Model(pydantic.BaseModel):
    name: str
    count: int = 1
    inner: list[int] | None = None


ORDER: dict[str, Any] = {
    "id": 1,
    "name": "abc",
    "kind": "small",
    "home": {"street": "Main"},
}


def test_a_handler_is_known_by_its_kind() -> None:
    registry = Registry()

    @registry.handler("a")
    async def handler() -> None: ...

    found = registry.get("a")
    assert found is not None
    assert found.function is handler
    assert registry.get("b") is None
    assert [h.kind for h in registry] == ["a"]
    assert len(registry) == 1


def test_a_kind_has_one_handler() -> None:
    registry = Registry()
    registry.handler("a")(lambda: None)
    with pytest.raises(ValueError, match="already has a handler"):
        registry.handler("a")(lambda: None)


def test_the_signature_decides_what_is_passed() -> None:
    registry = Registry()

    @registry.handler("nothing")
    def nothing() -> None: ...

    @registry.handler("payload")
    def payload(payload: Any) -> None: ...

    @registry.handler("context")
    async def context(context: JobContext) -> None: ...

    registry.handler("anything")(takes_anything)

    @registry.handler("all", transactional=True)
    async def everything(payload: Any, connection: Any, context: JobContext) -> None: ...

    def passed(kind: str) -> tuple[Any, ...]:
        handler = registry.get(kind)
        assert handler is not None
        return handler.arguments("p", "ctx", "conn")

    assert passed("nothing") == ()
    assert passed("payload") == ("p",)
    assert passed("context") == ("ctx",)
    assert passed("anything") == ("p",)
    assert passed("all") == ("p", "conn", "ctx")
    assert [h.mode for h in registry] == ["thread", "thread", "coroutine", "thread", "coroutine"]


def test_a_class_is_made_once_and_called() -> None:
    registry = Registry()

    @registry.handler("a")
    class Counter:
        def __init__(self) -> None:
            self.calls = 0

        async def __call__(self, payload: Address) -> int:
            self.calls += payload.number or 1
            return self.calls

        def on_dead(self, context: JobContext, code: str, error: str) -> None:
            raise AssertionError(context, code, error)

    handler = registry.get("a")
    assert handler is not None
    assert handler.mode == "coroutine"
    assert isinstance(handler.function, Counter)
    assert handler.on_dead == handler.function.on_dead
    assert handler.parse({"street": "x"}) == Address("x")


def takes_payload(payload: Any) -> None: ...


def takes_connection(payload: Any, connection: Any) -> None: ...


def takes_other(payload: Any, other: Any) -> None: ...


def takes_by_name(*, payload: Any) -> None: ...


def takes_context_alone(job: JobContext) -> None: ...


def takes_anything(*args: Any, **kwargs: Any) -> None: ...


def takes_any_names(**kwargs: Any) -> None: ...


def takes_more(region: str, payload: Address, context: JobContext, *, level: int) -> None: ...


def test_a_partial_function_takes_what_is_left_open() -> None:
    registry = Registry()
    registry.handler("a")(partial(partial(takes_more, "eu"), level=1))
    handler = registry.get("a")
    assert handler is not None
    assert handler.mode == "thread"
    assert handler.arguments("given", "context", None) == ("given", "context")
    assert handler.parse({"street": "x"}) == Address("x")


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (takes_other, {}, "not other"),
        (takes_context_alone, {}, "must be named 'context'"),
        (takes_by_name, {}, "'payload' must not be keyword-only"),
        (takes_any_names, {}, "'kwargs' must not be keyword-only"),
        (takes_anything, {"transactional": True}, "transactional"),
        (dict, {}, "{} is not callable"),
        (max, {}, "no signature found"),
        (takes_more, {}, "'level' must not be keyword-only"),
        (takes_connection, {}, "transactional"),
        (takes_payload, {"transactional": True}, "transactional"),
        (takes_connection, {"process": True}, "at most 'context'"),
        (takes_payload, {"ordered": True, "on_dead": "hold"}, "hold_on_dead=True"),
    ],
)
def test_a_handler_that_cannot_be_called_is_refused(
    function: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        Registry().handler("a", **options)(function)


def test_a_payload_becomes_its_type() -> None:
    registry = Registry()

    @registry.handler("order")
    def order(payload: Order) -> None: ...

    @registry.handler("model")
    def model(payload: Model) -> None: ...

    @registry.handler("plain")
    def plain(payload: dict[str, Any]) -> None: ...

    def parse(kind: str, payload: Any) -> Any:
        handler = registry.get(kind)
        assert handler is not None
        return handler.parse(payload)

    assert parse("order", ORDER).home == Address("Main")
    assert parse("model", {"name": "x"}) == Model(name="x")
    given = {"any": 1}
    assert parse("plain", given) is given
    for kind in ("order", "model"):
        with pytest.raises(ValueError, match="name"):
            parse(kind, {**ORDER, "name": 1})


def test_a_type_that_is_not_importable_is_told() -> None:
    namespace: dict[str, Any] = {}
    exec(  # a function whose annotation names nothing
        "from __future__ import annotations\ndef handler(payload: Nowhere): ...", namespace
    )
    namespace["handler"].__module__ = __name__
    with pytest.raises(TypeError, match="Nowhere"):
        Registry().handler("a")(namespace["handler"])


def test_a_schema_says_what_the_database_can_enforce() -> None:
    address = {
        "type": "object",
        "required": ["street"],
        "properties": {"street": {"type": "string"}, "number": {"type": ["integer", "null"]}},
    }
    assert payload_schema(Order) == {
        "type": "object",
        "required": ["id", "name", "kind", "home"],
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "name": {"type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[a-z]+$"},
            "kind": {"enum": ["large", "small"]},
            "home": address,
            "others": {"type": "array", "items": address},
            "at": {"type": ["null", "string"]},
            "ratio": {"type": "number"},
            "extra": {"type": "object"},
        },
    }
    assert payload_schema(Model) == {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "count": {"type": "integer"},
            "inner": {"type": ["array", "null"], "items": {"type": "integer"}},
        },
    }
    assert payload_schema(Any) is None


@dataclass
class Tree:
    children: list[Tree]


def test_a_type_that_contains_itself_has_a_schema() -> None:
    schema = payload_schema(Tree)
    assert schema is not None
    assert schema["properties"]["children"]["type"] == "array"


def test_the_database_refuses_what_does_not_fit(database: str) -> None:
    registry = Registry()

    @registry.handler("order", max_attempts=3, timeout=2.5, queue="orders", retry="delivery")
    def order(payload: Order) -> None: ...

    @registry.handler("undeclared")
    def undeclared(payload: Any) -> None: ...

    with Client(database) as client:
        registry.declare(client)
        job = client.get(client.enqueue("order", ORDER).job_id)
        assert (job.queue, job.max_attempts) == ("orders", 3)
        assert job.timeout == timedelta(seconds=2.5)
        bad = [
            {**ORDER, "id": 0},
            {**ORDER, "id": "1"},
            {**ORDER, "name": "ABC"},
            {**ORDER, "kind": "medium"},
            {**ORDER, "home": {"number": 1}},
            {**ORDER, "others": [{"street": 1}]},
            {k: v for k, v in ORDER.items() if k != "home"},
            [],
        ]
        for payload in bad:
            with pytest.raises(PayloadInvalid):
                client.enqueue("order", payload)
        client.enqueue("order", {**ORDER, "at": None, "new_member": 1})
        client.enqueue("undeclared", [1, 2])
        assert client.settings("undeclared")["max_attempts"] == 5


def test_declaring_twice_does_no_harm(database: str) -> None:
    registry = Registry()
    registry.handler("a", max_attempts=2)(lambda: None)
    with Client(database) as client:
        registry.declare(client)
        registry.declare(client)
        assert client.settings("a")["max_attempts"] == 2


def test_a_handler_says_what_holds_for_each_key_of_its_kind(database: str) -> None:
    registry = Registry()

    @registry.handler(
        "order", key_rate_limit=5, key_rate_period=60, key_rate_burst=2, ordered=True,
        hold_on_dead=True,
    )  # fmt: skip
    def order() -> None: ...

    @registry.handler("import", key_max_running=1)
    def load() -> None: ...

    with Client(database) as client:
        registry.declare(client)
        settings = client.settings("order"), client.settings("import")
    of_order, of_import = (dict(s) for s in settings)
    assert of_order["kind_key_rate_limit"] == 5 and of_order["kind_key_rate_burst"] == 2
    assert of_order["kind_ordered"] is True and of_order["kind_on_dead"] == "hold"
    assert of_import["kind_key_max_running"] == 1 and of_import["kind_ordered"] is None
