"""Secrets: encryption, rotation, and that none of them shows up anywhere."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from typing import TYPE_CHECKING

import psycopg
import pytest
from click.testing import CliRunner
from delivery_sink import KEY, posting
from http_api import opened
from psycopg import sql

from jobq import Client
from jobq_cli import main
from jobq_delivery import Keyring, SecretKeyError
from jobq_delivery.keyring import list_ciphertexts

if TYPE_CHECKING:
    from pathlib import Path

    from servers import Cluster

CANARY = 'canary-7f3a9c-"quoted"-ünïcode'
OTHER = b"o" * 32


def test_a_secret_is_bound_to_its_name_and_key() -> None:
    ciphertext, key = Keyring([KEY]).encrypt("mail", CANARY)
    assert CANARY.encode() not in ciphertext
    assert Keyring([OTHER, KEY]).decrypt("mail", ciphertext, key) == CANARY
    with pytest.raises(SecretKeyError) as refused:
        Keyring([KEY]).decrypt("sms", ciphertext, key)
    assert refused.value.code == "SECRET_INVALID"
    with pytest.raises(SecretKeyError, match="key of a secret is not there"):
        Keyring([OTHER]).decrypt("mail", ciphertext, key)
    with pytest.raises(SecretKeyError):
        Keyring([KEY]).decrypt("mail", ciphertext[:-1] + b"\0", key)


def test_the_same_secret_never_looks_the_same() -> None:
    keyring = Keyring([KEY])
    assert keyring.encrypt("mail", "x") != keyring.encrypt("mail", "x")


@pytest.mark.parametrize("text", ["short", "*" * 44, b64encode(b"k" * 31).decode()])
def test_a_bad_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(SecretKeyError) as refused:
        Keyring.from_environment({"JOBQ_SECRET_KEYS": text})
    assert text not in str(refused.value)


def test_keys_come_from_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{b64encode(OTHER).decode()}\n{b64encode(KEY).decode()}\n")
    keyring = Keyring.from_environment({"JOBQ_SECRET_KEY_FILE": str(file)})
    ciphertext, key = Keyring([KEY]).encrypt("mail", "x")
    assert keyring.decrypt("mail", ciphertext, key) == "x"
    assert keyring.current == Keyring([OTHER]).current
    with pytest.raises(SecretKeyError):
        Keyring.from_environment({"JOBQ_SECRET_KEY_FILE": str(tmp_path / "nobody")})
    with pytest.raises(SecretKeyError):
        _ = Keyring.from_environment({}).current


def test_the_command_line_stores_and_rotates(database: str) -> None:
    old, new = b64encode(KEY).decode(), b64encode(OTHER).decode()
    run = CliRunner(env={"DATABASE_URL": database, "JOBQ_SECRET_KEYS": old}).invoke
    assert run(main, ["secrets", "put", "mail"], input=f"{CANARY}\n").exit_code == 0
    odd = run(main, ["secrets", "put", "odd"], input=b"\xff\xfe")
    assert (odd.exit_code, "must be text in UTF-8" in odd.output) == (1, True)
    rotated = run(main, ["secrets", "rotate"], env={"JOBQ_SECRET_KEYS": f"{new},{old}"})
    assert "1 secrets encrypted with key" in rotated.output
    with Client(database) as client:
        [stored] = client.run(list_ciphertexts())
    assert Keyring([OTHER]).decrypt("mail", stored.ciphertext, stored.key_id) == CANARY
    assert stored.version == 1
    wrong = run(main, ["secrets", "rotate"], env={"JOBQ_SECRET_KEYS": old})
    assert wrong.exit_code == 1
    assert "SECRET_KEY_MISSING" in wrong.output
    assert run(main, ["secrets", "put", "x"], input="y", env={"JOBQ_SECRET_KEYS": ""}).exit_code


async def test_a_secret_is_found_nowhere(
    database: str, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in a log, though the server logs every statement, nor stored, nor in an answer."""
    caplog.set_level(logging.DEBUG)
    with psycopg.connect(database, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("alter database {} set log_statement = 'all'").format(name))
    jobs = []
    async with posting(database) as post:
        await post.client.put_secret("canary", "canary-7f3a9c", keyring=Keyring([KEY]))
        headers = {"authorization": "Bearer {{secret.canary}}"}
        for path in ("echo", "status/500", "reset"):
            spec = {"url": f"{post.sink.url}/{path}", "headers": headers}
            spec["body_template"] = {"key": "{{secret.canary}}"}
            await post.endpoint(f"canary-{path[:4].strip('/')}", spec)
            job = await post.deliver(f"canary-{path[:4].strip('/')}")
            assert "7f3a9c" not in str(job)
            jobs.append(job.job_id)
            if path == "echo":
                assert job.result["body"] == "Bearer ***"
        await post.endpoint("canary-url", {"url": "http://{{secret.canary}}/"})
        assert (await post.deliver("canary-url")).state == "dead"
    assert {r.headers["authorization"] for r in post.sink.received} == {"Bearer canary-7f3a9c"}
    async with opened(database) as api:
        paths = ["/secrets", "/secrets/canary", "/endpoints", "/endpoints/canary-echo", "/jobs"]
        for kept in jobs:
            paths += [f"/jobs/{kept}", f"/executions/{kept}", f"/executions/{kept}/attempts"]
            paths += [f"/executions/{kept}/logs"]
        for path in paths:
            answer = await api.ask("GET", path)
            assert answer.status_code == 200, answer.text
            assert "7f3a9c" not in answer.text
    server_log = (cluster.server.data_dir / "server.log").read_text()
    assert '"put_secret"' in server_log
    assert "7f3a9c" not in server_log
    dump = await asyncio.create_subprocess_exec(
        cluster.server.programs / "pg_dump", database, stdout=asyncio.subprocess.PIPE
    )
    text, _ = await dump.communicate()
    assert b"canary-echo" in text
    assert b"7f3a9c" not in text
    assert "7f3a9c" not in caplog.text
