"""Calls about payload specs, configs, secrets and endpoints that are not one function.

Payload specs and secrets need the extra ``delivery``, which checks and encrypts them.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol
from uuid import UUID

from jobq.calls.arguments import as_jsonb
from jobq.calls.call import Call, scalar
from jobq.calls.options import DefinitionType, Mode
from jobq.models import Json


class Cipher(Protocol):
    """What encrypts secrets, such as a `jobq_delivery.Keyring`."""

    def encrypt(self, name: str, value: str) -> tuple[bytes, str]:
        """Return the ciphertext of a secret's value, and the id of its key."""


def of_delivery(module: str) -> Any:  # noqa: ANN401 - a module
    """Return a module of the extra ``delivery``, which is built on jobq and not imported by it.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    return importlib.import_module(f"jobq_delivery.{module}")


def put_secret(
    secret: str, value: str, mode: Mode = "put", *, keyring: Cipher | None = None
) -> Call[dict[str, Any]]:
    """Encrypt a secret and store it.

    Args:
        secret: its name.
        value: leaves this process only encrypted.
        mode: as for `put_payload_spec`.
        keyring: its first key encrypts; by default the environment's.

    Raises:
        SecretKeyError: there is no key.
        Conflict, NotFound: see ``mode``.
    """
    if keyring is None:
        keyring = of_delivery("keyring").Keyring.from_environment()
    ciphertext, key_id = keyring.encrypt(secret, value)
    arguments = {"secret": secret, "ciphertext": ciphertext, "key_id": key_id, "mode": mode}
    return Call("put_secret", arguments, scalar)


def test_endpoint(endpoint: str, payload: Json = None) -> Call[UUID]:  # noqa: PT028 - no test
    """Deliver one test job to an endpoint, even if it is paused, and return the job's id.

    The job's result is the target's answer.

    Args:
        endpoint: its name.
        payload: its input; `{}` by default.

    Raises:
        PayloadInvalid: the payload does not match the payload spec.
    """
    given = {} if payload is None else payload
    arguments = {"endpoint": endpoint, "payload": as_jsonb(given)}
    return Call("test_endpoint", arguments, scalar, inputs=[(endpoint, given)])


def list_definitions(
    type: DefinitionType,  # noqa: A002
    after: str | None = None,
    max_definitions: int = 50,
) -> Call[list[dict[str, Any]]]:
    """Return a page of payload specs, configs, secrets or endpoints, by name.

    Args:
        type: which of them.
        after: the last name of the previous page.
        max_definitions: maximum number.
    """
    return Call("page_definitions", locals(), lambda rows: [item for item, _ in rows], may_lag=True)
