"""Deliveries to Redis Streams, on Debian's Redis."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from delivery_sink import KEY, LOCAL, posting
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from waiting import until_async

from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery import Guard, Keyring
from jobq_delivery.mask import Mask
from jobq_delivery.message import Message
from jobq_delivery.redis_stream import RedisStreamSender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from delivery_sink import Post

FIELDS = {"user_id": "{{input.user_id}}", "title": "{{input.title}}", "n": "{{input.n}}"}
INPUT = {"user_id": "u_abc", "title": "Weekly", "n": [1, None]}


@asynccontextmanager
async def serving(folder: Path, *options: str) -> AsyncIterator[str]:
    """Run a Redis on a socket of its own, and give its URL."""
    server = shutil.which("redis-server")
    assert server is not None, "redis-server is missing: install it with .ci/packages test"
    socket = folder / "redis.sock"
    process = await asyncio.create_subprocess_exec(
        server, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder, *options,
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip

    async def is_up() -> bool:
        try:
            async with Redis.from_url(f"unix://{socket}") as redis:
                return bool(await redis.ping())
        except RedisConnectionError:
            return False

    try:
        await until_async(is_up, "for Redis")
        yield f"unix://{socket}"
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
async def redis_url(tmp_path: Path) -> AsyncIterator[str]:
    async with serving(tmp_path) as url:
        yield url


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        yield redis


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


def spec_for(url: str, **more: Any) -> dict[str, Any]:
    return {"redis_url": url, "stream": "notifications:outbound", "fields_template": FIELDS, **more}


async def test_the_example_of_the_documents_is_delivered(
    post: Post, redis: Redis, redis_url: str
) -> None:
    values = {
        "redis_url": redis_url,
        "stream_name": "notifications:outbound",
        "max_stream_length": 100000,
    }
    await post.client.put_config("notification-stream", values)
    spec = {
        "redis_url": "{{config.redis_url}}",
        "stream": "{{config.stream_name}}",
        "fields_template": FIELDS,
        "max_len": "{{config.max_stream_length}}",
        "approximate_trimming": True,
        "timeout_ms": 3000,
    }
    await post.endpoint("push", spec, type="REDIS_STREAM", config="notification-stream")
    job = await post.deliver("push", INPUT)
    [(message_id, fields)] = await redis.xrange("notifications:outbound") or []
    assert job.result == {
        "message_id": message_id,
        "stream": "notifications:outbound",
        "endpoint_version": 1,
        "config_version": 1,
    }
    identity = {"jobq_id": str(job.job_id), "jobq_attempt": "1"}
    assert fields == {"user_id": "u_abc", "title": "Weekly", "n": "[1,null]", **identity}


async def test_a_stream_is_trimmed(post: Post, redis: Redis, redis_url: str) -> None:
    spec = spec_for(redis_url, max_len=3, approximate_trimming=False)
    await post.endpoint("trim", spec, type="REDIS_STREAM")
    for _ in range(5):
        await post.deliver("trim", INPUT)
    assert await redis.xlen("notifications:outbound") == 3


async def test_a_job_is_added_once_where_that_is_asked_for(
    post: Post, redis: Redis, redis_url: str
) -> None:
    await post.endpoint("once", spec_for(redis_url, deliver_once=True), type="REDIS_STREAM")
    await post.endpoint("twice", spec_for(redis_url), type="REDIS_STREAM")
    first = await post.deliver("once", INPUT)
    # An attempt whose outcome was not recorded: the same job is delivered again.
    marker = f"jobq:{{notifications:outbound}}:{first.job_id}"
    assert await redis.get(marker) == first.result["message_id"]
    assert 0 < await redis.ttl(marker) <= 7 * 24 * 3600
    job = await post.client.enqueue("once", INPUT, queue="later")
    await redis.set(f"jobq:{{notifications:outbound}}:{job.job_id}", "1-1")
    sender = RedisStreamSender(LOCAL)
    spec = spec_for(redis_url, deliver_once=True)
    for expected in (True, True):
        output = await sender.send(Message(job.job_id, 1, spec, {}, Mask([])))
        assert output == {
            "message_id": "1-1",
            "stream": "notifications:outbound",
            "is_duplicate": expected,
        }
    await sender.close()
    assert await redis.xlen("notifications:outbound") == 1


async def test_two_attempts_at_a_time_add_once(redis: Redis, redis_url: str) -> None:
    """As when a worker that was thought dead goes on beside the next attempt."""
    spec = spec_for(redis_url, deliver_once=True)
    message = Message(uuid4(), 1, spec, {}, Mask([]))
    senders = [RedisStreamSender(LOCAL) for _ in range(4)]
    outputs = await asyncio.gather(*(sender.send(message) for sender in senders * 5))
    assert len({output["message_id"] for output in outputs}) == 1
    assert sum("is_duplicate" not in output for output in outputs) == 1
    assert await redis.xlen("notifications:outbound") == 1
    await asyncio.gather(*(sender.close() for sender in senders))


async def test_a_key_that_is_no_stream_is_permanent(
    post: Post, redis: Redis, redis_url: str
) -> None:
    await redis.set("notifications:outbound", "text")
    await post.endpoint("wrong", spec_for(redis_url), type="REDIS_STREAM", max_attempts=3)
    job = await post.deliver("wrong", INPUT)
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "STREAM_ERROR", 1)
    assert "WRONGTYPE" in str(job.last_error)


async def test_a_full_server_is_tried_again(post: Post, redis: Redis, redis_url: str) -> None:
    await redis.config_set("maxmemory", "1")
    await post.endpoint("full", spec_for(redis_url), type="REDIS_STREAM", max_attempts=2)
    job = await post.deliver("full", INPUT)
    assert (job.last_error_code, job.attempts) == ("STREAM_ERROR", 2)


@pytest.mark.parametrize("once", [False, True])
async def test_a_server_without_its_replicas_is_tried_again(
    post: Post, redis: Redis, redis_url: str, once: bool
) -> None:
    await redis.config_set("min-replicas-to-write", "1")
    spec = spec_for(redis_url, deliver_once=once)
    await post.endpoint("alone", spec, type="REDIS_STREAM", max_attempts=2)
    job = await post.deliver("alone", INPUT)
    assert (job.last_error_code, job.attempts) == ("STREAM_ERROR", 2)
    assert "NOREPLICAS" in str(job.last_error)


@pytest.mark.parametrize(
    "reply",
    [b"MISCONF Redis is configured to save RDB snapshots, but it\'s unable to persist to disk.",
     b"BUSY Redis is busy running a script.", b"CLUSTERDOWN The cluster is down",
     b"TRYAGAIN Multiple keys request during rehashing of slot",
     b"MASTERDOWN Link with MASTER is down", b"MOVED 3999 192.0.2.1:6381"],
)  # fmt: skip
async def test_a_server_that_is_not_ready_is_tried_again(reply: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            is_entry = b"XADD" in data
            writer.write(b"-%s\r\n" % reply if is_entry else b"+OK\r\n" * data.count(b"*"))
        writer.close()

    sender = RedisStreamSender(LOCAL)
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        message = Message(uuid4(), 1, spec_for(f"redis://127.0.0.1:{port}"), {}, Mask([]))
        with pytest.raises(Retry, check=lambda error: error.code == "STREAM_ERROR") as failure:
            await sender.send(message)
        await sender.close()
    assert "192.0.2.1" not in str(failure.value)


@pytest.mark.parametrize(
    "reply",
    [b"$500000000\r\n" + b"x" * 4_000_000, b"+" + b"x" * 4_000_000,
     b"*400000\r\n" + b":1\r\n" * 400_000, b"*1\r\n" * 200_000, b"$-5\r\n", b"$many\r\n",
     b"*0\r\n", b":5\r\n", b"$-1\r\n", b"%1\r\n+a\r\n+b\r\n", b"+\xff\xfe\r\n", b"-MOVED\r\n",
     b"$3\r\n1-1\r\n$6\r\nFORGED\r\n"],
)  # fmt: skip
async def test_a_server_that_answers_nonsense_is_a_stream_error(reply: bytes) -> None:
    """It is read no further than an answer of Redis would go."""
    taken = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        try:
            while data := await reader.read(65536):
                answer = reply if b"XADD" in data else b"+OK\r\n" * data.count(b"*")
                for start in range(0, len(answer), 65536):
                    writer.write(answer[start : start + 65536])
                    await writer.drain()
                    taken += 65536
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sender = RedisStreamSender(LOCAL)
    message = Message(
        uuid4(), 1, spec_for(f"redis://127.0.0.1:{port}", timeout_ms=60_000), {}, Mask([])
    )
    async with server:
        if reply.endswith(b"FORGED\r\n"):
            outputs = [await sender.send(message) for _ in range(2)]
            assert [output["message_id"] for output in outputs] == ["1-1", "1-1"]
        else:
            with pytest.raises((Retry, Permanent)) as failure:
                await sender.send(message)
            assert getattr(failure.value, "code", None) == "STREAM_ERROR"
        await sender.close()
    assert taken < 20_000_000


async def test_nobody_listening_is_a_connection_error(post: Post, tmp_path: Path) -> None:
    spec = spec_for(f"unix://user:hunter2@{tmp_path}/nobody.sock")
    await post.endpoint("gone", spec, type="REDIS_STREAM", max_attempts=2)
    job = await post.deliver("gone", INPUT)
    assert (job.last_error_code, job.attempts) == ("CONNECTION_ERROR", 2)
    assert "hunter2" not in str(job.last_error)


async def test_a_server_that_hangs_times_out(post: Post, redis: Redis, redis_url: str) -> None:
    await post.endpoint("hang", spec_for(redis_url, timeout_ms=200), type="REDIS_STREAM")
    assert (await post.deliver("hang", INPUT)).state == "succeeded"
    process = (await redis.info())["process_id"]
    os.kill(process, signal.SIGSTOP)
    try:
        job = await post.deliver("hang", INPUT)
    finally:
        os.kill(process, signal.SIGCONT)
    assert job.last_error_code == "TIMEOUT"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"redis_url": "{{config.web}}"}, "REQUEST_INVALID"),
        ({"redis_url": "{{config.odd}}"}, "REQUEST_INVALID"),
        ({"max_len": "{{config.length}}"}, "REQUEST_INVALID"),
        ({"max_len": "{{config.none}}"}, "REQUEST_INVALID"),
        ({"fields_template": "{{input.n}}"}, "REQUEST_INVALID"),
    ],
)
async def test_what_cannot_be_sent_is_permanent(
    post: Post, redis_url: str, changes: dict[str, Any], code: str
) -> None:
    web, odd = "http://a.example", "redis://127.0.0.1:1?max_connections=1"
    await post.client.put_config("odd", {"length": "many", "none": 0, "web": web, "odd": odd})
    spec = {**spec_for(redis_url), **changes}
    await post.endpoint("odd", spec, type="REDIS_STREAM", config="odd", max_attempts=3)
    job = await post.deliver("odd", INPUT)
    assert (job.state, job.last_error_code, job.attempts) == ("dead", code, 1)


async def test_the_input_is_the_entry_where_no_other_is_given(
    post: Post, redis: Redis, redis_url: str
) -> None:
    spec = {"redis_url": redis_url, "stream": "plain"}
    await post.endpoint("plain", spec, type="REDIS_STREAM", max_attempts=2)
    job = await post.deliver("plain", {"a": 0.1, "jobq_id": "mine"})
    [(_, fields)] = await redis.xrange("plain") or []
    assert fields == {"a": "0.1", "jobq_id": "mine", "jobq_attempt": "1"}
    assert job.state == "succeeded"


async def test_servers_and_sockets_that_are_not_public_are_never_reached(
    database: str, redis_url: str
) -> None:
    """The one that is refused is a listener of this test; so a hole would send nothing away."""
    accepted = []

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(1)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    urls = [f"redis://127.0.0.1:{port}/0", f"redis://localhost:{port}", f"rediss://[::ffff:127.0.0.1]:{port}",
            redis_url]  # fmt: skip
    async with server, posting(database, Guard()) as post:
        for number, url in enumerate(urls):
            spec = {"redis_url": url, "stream": "s"}
            await post.endpoint(f"e{number}", spec, type="REDIS_STREAM", max_attempts=3)
            job = await post.deliver(f"e{number}", INPUT)
            assert (job.state, job.last_error_code, job.attempts) == ("dead", "ADDRESS_REFUSED", 1)
    assert accepted == []


async def test_a_server_that_echoes_tells_no_secret(
    post: Post, redis_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Redis names the arguments of a command that it does not know, and cuts them."""
    del redis_url
    folder = tmp_path / "renamed"
    folder.mkdir()
    async with serving(folder, "--rename-command", "XADD", "") as url:
        await post.client.put_secret("pin", "hunter2-7f3a9c" * 5, keyring=Keyring([KEY]))
        fields = {"a": "p" * 60, "b": "{{secret.pin}}"}
        spec = {"redis_url": url, "stream": "s", "fields_template": fields}
        await post.endpoint("echo", spec, type="REDIS_STREAM", max_attempts=1)
        job = await post.deliver("echo", INPUT)
        named = {"redis_url": url + "?{{secret.pin}}=1", "stream": "s"}
        await post.client.put_config("named", {"url": url})
        named["redis_url"] = "{{config.url}}?{{secret.pin}}=1"
        await post.endpoint("named", named, type="REDIS_STREAM", config="named")
        second = await post.deliver("named", INPUT)
    assert (job.last_error_code, second.state) == ("STREAM_ERROR", "dead")
    logs = [await post.client.logs(j.job_id) for j in (job, second)]
    attempts = [await post.client.attempts(j.job_id) for j in (job, second)]
    assert "hunter2" not in f"{job} {second} {logs} {attempts} {caplog.text}"
