"""Secrets, encrypted by AES-256-GCM with keys that the database never gets.

The name of a secret is associated data of its ciphertext, so that a ciphertext cannot be used for
another secret. The first key encrypts. The other keys decrypt older ciphertexts until
``jobq secrets rotate``.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobq.calls.call import Call, scalar
from jobq.errors import JobqError
from jobq.models import record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEYS: Final = "JOBQ_SECRET_KEYS"
KEY_FILE: Final = "JOBQ_SECRET_KEY_FILE"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12


class SecretKeyError(JobqError):
    """The key of a secret is missing or wrong; the text contains neither."""

    code = "SECRET_KEY_MISSING"


class Keyring:
    """The keys of secrets, 32 bytes each; the first encrypts."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        given = list(keys)
        self._ciphers = {key_id(key): cipher_of(key) for key in given}
        self._signers = {key_id(key): _signer_of(key) for key in given}
        self._first = key_id(given[0]) if given else None

    def __repr__(self) -> str:
        """Return the ids of the keys."""
        return f"Keyring({', '.join(self._ciphers)})"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Keyring:
        """Read the keys in JOBQ_SECRET_KEYS, or in the file JOBQ_SECRET_KEY_FILE.

        Keys are base64, separated by commas, spaces or new lines. Without both variables there are
        no keys, which is an error only if a secret is needed.

        Raises:
            SecretKeyError: the file cannot be read, or a key is invalid.
        """
        text = environment.get(KEYS, "")
        name = environment.get(KEY_FILE, "")
        if not text and name:
            try:
                text = Path(name).read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise SecretKeyError(
                    "the file of secret keys cannot be read", detail=f"{KEY_FILE} {name}"
                ) from error
        return cls([decoded(key) for key in text.replace(",", " ").split()])

    @property
    def ids(self) -> list[str]:
        """The ids of the keys."""
        return list(self._ciphers)

    @property
    def current(self) -> str:
        """The id of the key that encrypts; a SecretKeyError if there is none."""
        if self._first is None:
            raise SecretKeyError(
                # error_text() hides the first word, which follows the name of this class
                f"the key for secrets is missing; set {KEYS} or {KEY_FILE}",
                hint=f"make one with jobq secrets key, and set {KEYS} or {KEY_FILE}",
            )
        return self._first

    def encrypt(self, name: str, value: str) -> tuple[bytes, str]:
        """Return the ciphertext of a secret, and the id of its key.

        Decryption requires the name too.
        """
        current = self.current
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = self._ciphers[current].encrypt(nonce, value.encode(), name.encode())
        return nonce + sealed, current

    def sign(self, text: bytes) -> bytes:
        """Return the signature of a link by the first key."""
        return hmac.digest(self._signers[self.current], text, "sha256")

    def is_signed(self, text: bytes, signature: bytes) -> bool:
        """Whether one of the keys has signed a link."""
        return any(
            hmac.compare_digest(hmac.digest(signer, text, "sha256"), signature)
            for signer in self._signers.values()
        )

    def decrypt(self, name: str, ciphertext: bytes, key: str) -> str:
        """Return a secret, by the name, ciphertext and key id of `encrypt`."""
        cipher = self._ciphers.get(key)
        if cipher is None:
            raise SecretKeyError(
                "the key of a secret is not there",
                detail=f"secret {name}, key {key}; here: {', '.join(self._ciphers) or 'none'}",
                hint=f"add the key to {KEYS} or {KEY_FILE}",
            )
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - see cipher_of

        try:
            nonce, sealed = ciphertext[:NONCE_BYTES], ciphertext[NONCE_BYTES:]
            return cipher.decrypt(nonce, sealed, name.encode()).decode()
        except InvalidTag:
            raise SecretKeyError(
                "a secret was not encrypted under this name and key",
                code="SECRET_INVALID",
                detail=f"secret {name}, key {key}",
                hint="store the secret again with: jobq secrets put",
            ) from None


class Vault:
    """A cache of decrypted secrets, each for some seconds."""

    def __init__(self, keyring: Keyring, lifetime: float) -> None:
        self._keyring = keyring
        self._lifetime = lifetime
        self._opened: dict[tuple[str, str, str], tuple[float, str]] = {}

    @property
    def key_ids(self) -> list[str]:
        """The ids of the keys."""
        return self._keyring.ids

    def open(self, sealed: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
        """Return secrets by their names, from the ciphertext (base64) and key id of each."""
        return {name: self._open(name, s["key_id"], s["ciphertext"]) for name, s in sealed.items()}

    def _open(self, name: str, key: str, ciphertext: str) -> str:
        now = time.monotonic()
        until, value = self._opened.get((name, key, ciphertext), (now, ""))
        if now < until:
            return value
        value = self._keyring.decrypt(name, b64decode(ciphertext), key)
        self._opened = {k: v for k, v in self._opened.items() if now < v[0]}
        self._opened[name, key, ciphertext] = (now + self._lifetime, value)
        return value


def new_key() -> str:
    """Return a new key, 256 random bits as base64."""
    return b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def decoded(text: str) -> bytes:
    """Return a key from its base64."""
    try:
        key = b64decode(text, validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretKeyError(
            "a key for secrets must be 32 bytes in base64",
            code="SECRET_KEY_INVALID",
            hint="make one with: jobq secrets key",
        )
    return key


def cipher_of(key: bytes) -> AESGCM:
    """Return the cipher of a key; imported here because it takes 7 MB of every worker."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - memory

    return AESGCM(key)


def _signer_of(key: bytes) -> bytes:
    """Return the key that signs links, which differs from the one that encrypts."""
    return hmac.digest(key, b"jobq links", "sha256")


def key_id(key: bytes) -> str:
    """Return the id of a key, which reveals nothing about it."""
    return hashlib.sha256(b"jobq key id" + key).hexdigest()[:16]


# ---- rotation


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """A stored secret."""

    secret: str
    version: int
    key_id: str
    ciphertext: bytes


def list_ciphertexts() -> Call[list[Ciphertext]]:
    """Return all stored secrets."""
    return Call("list_ciphertexts", {}, list, record(Ciphertext))


def rotate_secret(keyring: Keyring, stored: Ciphertext) -> Call[bool]:
    """Encrypt a secret with the first key; returns false if it has changed meanwhile."""
    value = keyring.decrypt(stored.secret, stored.ciphertext, stored.key_id)
    ciphertext, key_id = keyring.encrypt(stored.secret, value)
    arguments = {
        "secret": stored.secret,
        "version": stored.version,
        "ciphertext": ciphertext,
        "key_id": key_id,
    }
    return Call("rotate_secret", arguments, scalar)
