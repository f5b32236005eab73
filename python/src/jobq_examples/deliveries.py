"""Two deliveries without handlers: to an HTTP receiver and to a Redis stream.

This declares a secret, its key, and the endpoints. Redis is used if redis-server is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jobq_delivery.address import ALLOW
from jobq_delivery.keyring import KEY_FILE, KEYS, Keyring, new_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobq.client import Client

SECRET: Final = "example-receiver"  # noqa: S105 - its name
INPUT: Final = {"order_id": "order-1234", "amount": 12.5}


def environment(folder: Path, hook: str, socket: str | None) -> dict[str, str]:
    """Return environment variables for servers and workers: a key, and allowed addresses.

    Args:
        folder: folder of the key; a key in the environment takes precedence.
        hook: URL of the receiver.
        socket: socket of Redis, or None.
    """
    allowed = [os.environ.get(ALLOW, ""), hook.split("/")[2], f"unix:{socket}" if socket else ""]
    settings = {ALLOW: " ".join(filter(None, allowed))}
    if not os.environ.get(KEYS) and not os.environ.get(KEY_FILE):
        file = folder / "secret.key"
        if not file.exists():
            file.touch(mode=0o600)
            file.write_text(new_key())
        settings[KEY_FILE] = str(file)
    return settings


def declare(client: Client, settings: dict[str, str], hook: str, socket: str | None) -> list[str]:
    """Declare the endpoints, and return their names."""
    keyring = Keyring.from_environment({**os.environ, **settings})
    client.put_secret(SECRET, "not very secret", keyring=keyring)
    headers = {"authorization": f"Bearer {{{{secret.{SECRET}}}}}"}
    client.put_endpoint("example-hook", "HTTP", {"url": hook, "headers": headers}, max_attempts=3)
    if socket is None:
        return ["example-hook"]
    spec = {"redis_url": f"unix://{socket}", "stream": "example", "max_len": 1000}
    client.put_endpoint("example-stream", "REDIS_STREAM", spec, max_attempts=3)
    return ["example-hook", "example-stream"]


@contextmanager
def redis() -> Iterator[str | None]:
    """Run a private Redis and yield its socket; None if it is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="jobq-redis-") as folder:
        socket = str(Path(folder) / "redis.sock")
        child = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            yield socket
        finally:
            child.terminate()
            child.wait()
