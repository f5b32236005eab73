"""Definitions: payload specs, configs, secrets and endpoints."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from jobq.http import documents, examples
from jobq.http.errors import ApiError
from jobq.http.operation import Answer, Operation, json, text
from jobq.http.page import Paging, page
from jobq.http.values import Attempts, JsonMembers, Name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jobq.http.operation import Call

DefinitionName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,127}$")]
Delay = Annotated[int, Meta(ge=0, le=31_536_000_000)]


class Named(Struct, forbid_unknown_fields=True, kw_only=True):
    """A definition as a request has it; its name is in the path, or here."""

    name: DefinitionName | None = None


class PayloadSpecChange(Named, kw_only=True):
    """The JSON Schema of what an endpoint takes."""

    schema: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_payload_spec() takes.

        Raises:
            ApiError: it is no JSON Schema; delivery could not use it.
        """
        schema = text(self.schema)
        with delivery():
            from jobq.delivery.input import schema_problem  # noqa: PLC0415 - an extra

            problem = schema_problem(msgspec.json.decode(schema))
        if problem:
            raise ApiError("INVALID_SCHEMA", problem)
        return {"schema": schema}


class NewPayloadSpec(PayloadSpecChange, kw_only=True):
    """The JSON Schema of what an endpoint takes, with its name."""

    name: DefinitionName


class ConfigChange(Named, kw_only=True):
    """Values that the templates of endpoints refer to."""

    values: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_config() takes."""
        return {"entries": text(self.values)}


class NewConfig(ConfigChange, kw_only=True):
    """Values that the templates of endpoints refer to, with their name."""

    name: DefinitionName


class SecretChange(Named, kw_only=True):
    """A secret; its value is encrypted here, and never shown."""

    value: Annotated[str, Meta(max_length=65_536)]

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_secret() takes.

        Raises:
            SecretKeyError: this server has no key to encrypt it with.
        """
        with delivery():
            from jobq.delivery.secret import Keyring  # noqa: PLC0415 - an extra

        keyring = Keyring.from_environment()
        ciphertext, key_id = keyring.encrypt(str(self.name), self.value)
        return {"ciphertext": ciphertext, "key_id": key_id}


class NewSecret(SecretChange, kw_only=True):
    """A secret with its name; its value is encrypted here, and never shown."""

    name: DefinitionName


class GivenRetryPolicy(Struct, forbid_unknown_fields=True):
    """How often, and how far apart, a delivery is tried."""

    max_attempts: Attempts = 1
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    initial_delay_ms: Delay = 1000
    max_delay_ms: Delay = 60000


class EndpointChange(Named, kw_only=True):
    """Where jobs of a kind are delivered, and in what shape."""

    type: documents.EndpointType
    spec: JsonMembers
    payload_spec: DefinitionName | None = None
    config: DefinitionName | None = None
    retry_policy: GivenRetryPolicy = msgspec.field(default_factory=GivenRetryPolicy)
    queue: Name | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_per_second: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return what jobq.put_endpoint() takes."""
        policy = self.retry_policy
        return {
            "type": self.type,
            "spec": text(self.spec),
            "payload_spec": self.payload_spec,
            "config": self.config,
            "max_attempts": policy.max_attempts,
            "retry_strategy": policy.backoff,
            "retry_initial_delay": timedelta(milliseconds=policy.initial_delay_ms),
            "retry_max_delay": timedelta(milliseconds=policy.max_delay_ms),
            "queue": self.queue,
            "max_concurrency": self.max_concurrency,
            "max_per_second": self.max_per_second,
        }


class NewEndpoint(EndpointChange, kw_only=True):
    """Where jobs of a kind are delivered, and in what shape, with its name."""

    name: DefinitionName


# Each gives what the database's function takes but the name and the mode.
Change: TypeAlias = PayloadSpecChange | ConfigChange | SecretChange | EndpointChange


@contextmanager
def delivery() -> Iterator[None]:
    """Say so when the extra that makes deliveries is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ApiError("DELIVERY_MISSING", f"{error.name} is not installed") from error


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of definitions, and its five operations.

    Attributes:
        path: where they are.
        table: what the database calls one.
        noun: what people call one.
        new: what creates one.
        change: what replaces one.
        document: what one looks like.
        page: what a page of them looks like.
        example: of a request.
        errors: that only putting one can have.
    """

    path: str
    table: str
    noun: str
    new: type[Change]
    change: type[Change]
    document: type[Struct]
    page: type[Struct]
    example: Mapping[str, Any]
    errors: Sequence[str] = ()

    async def create_definition(self, call: Call) -> Response:
        """Declare one that is not there yet."""
        body = await call.body(self.new)
        return json(await self._put(call, body, "create"), 201)

    async def update_definition(self, call: Call) -> Response:
        """Replace one. A job that exists keeps the version that it was made under."""
        body = await call.body(self.change)
        name = call.text("name")
        if body.name not in (None, name):
            raise ApiError("INVALID_REQUEST", "name: not the one in the path")
        body.name = name
        return json(await self._put(call, body, "update"))

    async def _put(self, call: Call, body: Change, mode: str) -> bytes:
        names = {self.table: body.name, "mode": mode}
        [(item,)] = await call.fetch(f"put_{self.table}", **names, **body.arguments())
        return bytes(item)

    async def get_definition(self, call: Call) -> Response:
        """Return one."""
        [(item,)] = await call.fetch("show_definition", type=self.table, name=call.text("name"))
        return json(item)

    async def list_definitions(self, call: Call) -> Response:
        """Return a page of them, by name."""
        wanted = call.query(Paging)
        return page(
            await call.fetch(
                "page_definitions",
                type=self.table,
                after=wanted.position(str),
                max_definitions=wanted.limit,
            )
        )

    async def delete_definition(self, call: Call) -> Response:
        """Delete one that nothing depends on."""
        await call.fetch(f"delete_{self.table}", **{self.table: call.text("name")})
        return Response(status_code=204)

    def operations(self) -> tuple[Operation, ...]:
        """Return the five operations."""
        missing = f"{self.table.upper()}_NOT_FOUND"
        refused = {422: self.errors} if self.errors else {}
        if self.table in ("secret", "payload_spec"):
            refused = {**refused, 503: ["SECRET_KEY_MISSING", "DELIVERY_MISSING"]}
        example = {"one": self.example}
        one = f"{self.path}/{{name}}"
        found = Answer("It.", self.document)
        return (
            Operation(
                "POST",
                self.path,
                self.create_definition,
                f"Create {self.noun}",
                ("operate",),
                {201: Answer("It is created.", self.document)},
                {409: ["DEFINITION_EXISTS"], **refused},
                tag="definitions",
                body=self.new,
                examples=example,
            ),
            Operation(
                "GET",
                self.path,
                self.list_definitions,
                f"List {self.noun.split(' ', 1)[1]}s, by name",
                ("read", "operate"),
                {200: Answer("A page of them.", self.page)},
                tag="definitions",
                query=Paging,
            ),
            Operation(
                "GET",
                one,
                self.get_definition,
                f"Look {self.noun} up",
                ("read", "operate"),
                {200: found},
                {404: [missing]},
                tag="definitions",
            ),
            Operation(
                "PUT",
                one,
                self.update_definition,
                f"Replace {self.noun}",
                ("operate",),
                {200: Answer("It is replaced.", self.document)},
                {404: [missing], **refused},
                tag="definitions",
                body=self.change,
                examples=example,
            ),
            Operation(
                "DELETE",
                one,
                self.delete_definition,
                f"Delete {self.noun}",
                ("operate",),
                {204: Answer("It is deleted.")},
                {404: [missing], 409: ["CONFLICT"]},
                tag="definitions",
            ),
        )


SORTS = (
    Sort(
        "/payload-specs",
        "payload_spec",
        "a payload spec",
        NewPayloadSpec,
        PayloadSpecChange,
        documents.PayloadSpec,
        documents.PayloadSpecPage,
        examples.PAYLOAD_SPEC,
        ["INVALID_SCHEMA"],
    ),
    Sort(
        "/configs",
        "config",
        "a config",
        NewConfig,
        ConfigChange,
        documents.Config,
        documents.ConfigPage,
        examples.CONFIG,
        ["TEMPLATE_RESOLUTION_FAILED"],
    ),
    Sort(
        "/secrets",
        "secret",
        "a secret",
        NewSecret,
        SecretChange,
        documents.Secret,
        documents.SecretPage,
        examples.SECRET,
    ),
    Sort(
        "/endpoints",
        "endpoint",
        "an endpoint",
        NewEndpoint,
        EndpointChange,
        documents.Endpoint,
        documents.EndpointPage,
        examples.ENDPOINT,
        [
            "INVALID_PAYLOAD_SPEC_REF",
            "INVALID_CONFIG_REF",
            "TEMPLATE_RESOLUTION_FAILED",
            "INVALID_SCHEMA",
        ],
    ),
)

OPERATIONS = tuple(operation for sort in SORTS for operation in sort.operations())
