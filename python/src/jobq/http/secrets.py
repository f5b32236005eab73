"""Secrets: encrypted here, and never shown."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from jobq.http import examples
from jobq.http.definitions import DefinitionName, Named, Sort, delivery
from jobq.http.page import Next
from jobq.http.values import Moment


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


class Secret(Struct):
    """A secret, without its value."""

    name: str
    version: int
    created_at: Moment
    updated_at: Moment


class SecretPage(Struct):
    """A page of secrets, by name, without their values."""

    items: list[Secret]
    cursor: Next


OPERATIONS = Sort(
    "/secrets",
    "secret",
    "a secret",
    NewSecret,
    SecretChange,
    Secret,
    SecretPage,
    examples.SECRET,
).operations()
