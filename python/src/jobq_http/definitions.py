"""Definitions: payload specs, configs and secrets, and what endpoints have in common with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, defstruct

from jobq.models import Version
from jobq_http import examples
from jobq_http.errors import ApiError
from jobq_http.operation import Answer, Operation, section
from jobq_http.page import Paging
from jobq_http.values import (
    JsonMembers,
    JsonObject,
    Moment,
    Request,
    answer,
    answer_of,
    page_of,
)

IfMatch = Annotated[
    str, Meta(description="The ETag of the version to change; 412 if the version is another.")
]
IfNoneMatch = Annotated[str, Meta(description="The ETag of the cached version.")]
DefinitionName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]{0,127}$")]


ETAG: Final = {"ETag": "The version, in quotes; send it as If-Match to change only this one."}
IF_MATCH: Final = {"If-Match": IfMatch}


SHOWN: Final = Meta(
    description="As returned by GET; ignored.", extra_json_schema={"readOnly": True}
)
IGNORED: Final = frozenset({"version", "created_at", "updated_at", "paused_at", "pause_reason"})


Definition = answer(
    "Definition", "What every definition has.", "name version created_at updated_at"
)
PastVersion = answer_of(Version, "PastVersion")
Versions = page_of(
    "Versions", "A page of the versions of a definition, the newest first.", PastVersion
)


class Named(Request, kw_only=True):
    """A definition as a request has it; its name is in the path, or here.

    The members that only GET shows are ignored, so that a PUT takes what GET gave.
    """

    name: DefinitionName | None = None
    version: Annotated[Annotated[float, Meta(ge=1, multiple_of=1)] | None, SHOWN] = None
    created_at: Annotated[Moment | None, SHOWN] = None
    updated_at: Annotated[Moment | None, SHOWN] = None

    def arguments(self) -> dict[str, Any]:
        """Return what it declares as arguments of the function that stores it."""
        return {n: v for n, v in super().arguments().items() if n not in IGNORED}


def definition(  # noqa: PLR0917 - a table of them
    path: str,
    table: str,
    noun: str,
    change: type[Named],
    document: type[msgspec.Struct],
    example: Mapping[str, Any],
    errors: str = "",
    **names: str,
) -> tuple[Operation, ...]:
    """Return the operations of a sort of definitions.

    Args:
        path: where they are.
        table: what the database calls one.
        noun: what people call one.
        change: the type of a request that replaces one.
        document: the type of the answer.
        example: a request.
        errors: the errors that only storing one can have.
        names: what the database's function calls members that have another name there.
    """
    title = document.__name__
    missing = f"{table.upper()}_NOT_FOUND"
    many = f"{noun.split(' ', 1)[1]}s"
    new: Any = defstruct(
        f"New{title}",
        [("name", DefinitionName)],
        bases=(change,),
        kw_only=True,
        namespace={"__doc__": change.__doc__},
    )
    one = f"{path}/{{name}}"
    shown = Answer("It.", document, headers=ETAG)
    of = partial(section("definitions"), headers={})
    put = partial(of, scope="operate", is_versioned=True, in_thread=True,
                  names={"name": table, **names}, examples={"one": example})  # fmt: skip
    type_of = {"type": table}
    # fmt: off
    return (
        put(f"POST {path}", f"put_{table}", f"Create {noun}", answer={201: shown},
            status=201, body=new, name="create_definition", fixed={"mode": "create"},
            errors=f"DEFINITION_EXISTS {errors}"),
        of(f"GET {path}", "page_definitions", f"List {many}, by name", "read operate",
           page_of(f"{title}Page", f"A page of {many}, by name.", document), query=Paging,
           place=("after", DefinitionName, "max_definitions"), may_lag=True, fixed=type_of),
        of(f"GET {one}", "show_definition", f"Get {noun}", "read operate",
           {200: shown, 304: Answer("The version is that of If-None-Match.")},
           headers={"If-None-Match": IfNoneMatch}, errors=missing, is_versioned=True,
           name="get_definition", fixed=type_of),
        put(f"PUT {one}", f"put_{table}", f"Replace {noun}; existing jobs keep their version",
            answer={200: shown}, headers=IF_MATCH, body=change, name="update_definition",
            fixed={"mode": "update"}, guards=table,
            errors=f"{missing} PRECONDITION_FAILED {errors.replace('KIND_EXISTS', '')}"),
        of(f"DELETE {one}", "delete_definition", f"Delete {noun} that nothing depends on",
           "operate", headers=IF_MATCH, fixed=type_of, guards=table,
           errors=f"{missing} CONFLICT PRECONDITION_FAILED"),
        of(f"GET {one}/versions", "list_versions", f"List the versions of {noun}", "read operate",
           Versions, query=Paging, fixed=type_of, order=lambda row: -row["version"],
           errors=missing),
    )
    # fmt: on


class ConfigChange(Named, kw_only=True):
    """Values for the templates of endpoints."""

    values: JsonMembers


class PayloadSpecChange(Named, kw_only=True):
    """The JSON Schema for the input of an endpoint."""

    schema: JsonMembers

    def arguments(self) -> dict[str, Any]:
        """Return what it declares; refuse what is no JSON Schema."""
        given = super().arguments()
        from jobq_delivery.json_schema.input import schema_problem  # noqa: PLC0415 - an extra

        if problem := schema_problem(msgspec.json.decode(given["schema"])):
            raise ApiError("INVALID_SCHEMA", problem)
        return given


class SecretChange(Named, kw_only=True):
    """A secret; the server encrypts its value and never shows it."""

    value: Annotated[str, Meta(max_length=65_536)]

    def arguments(self) -> dict[str, Any]:
        """Return the name and the encrypted value."""
        from jobq_delivery.keyring import Keyring  # noqa: PLC0415 - an extra

        ciphertext, key_id = Keyring.from_environment().encrypt(str(self.name), self.value)
        return {"name": self.name, "ciphertext": ciphertext, "key_id": key_id}


Config = answer(
    "Config", "Values for the templates of endpoints.", "values", Definition, values=JsonObject
)
PayloadSpec = answer(
    "PayloadSpec", "The JSON Schema for the input of endpoints.", "schema", Definition,
    schema=JsonObject,
)  # fmt: skip
Secret = answer("Secret", "A secret, without its value.", "", Definition)
DELIVERY = "SECRET_KEY_MISSING DELIVERY_MISSING"
# fmt: off
OPERATIONS = (
    *definition("/payload-specs", "payload_spec", "a payload spec", PayloadSpecChange, PayloadSpec,
                examples.PAYLOAD_SPEC, f"INVALID_SCHEMA {DELIVERY}"),
    *definition("/configs", "config", "a config", ConfigChange, Config, examples.CONFIG,
                "TEMPLATE_RESOLUTION_FAILED", values="entries"),
    *definition("/secrets", "secret", "a secret", SecretChange, Secret, examples.SECRET, DELIVERY),
)
# fmt: on
