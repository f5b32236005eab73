"""Deliveries to Kafka, on librdkafka's mock cluster in another process."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition
from delivery_sink import posting
from waiting import until_async

from jobq.errors import InvalidArgument
from jobq_delivery import Guard
from jobq_delivery.kafka import host_and_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from confluent_kafka import Message
    from delivery_sink import Post

PRODUCE = 0
MESSAGE_TOO_LARGE = 10
REQUEST_TIMED_OUT = 7
NOT_ENOUGH_REPLICAS = 19
TOPIC_AUTHORIZATION_FAILED = 29


@dataclass
class Kafka:
    """A running cluster."""

    servers: str
    process: asyncio.subprocess.Process

    async def tell(self, order: str) -> None:
        """Have it misbehave."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n".encode())
        assert await self.process.stdout.readline() == b"done\n"

    def read(self, topic: str, count: int) -> list[Message]:
        """Return the messages of a topic once there are so many, and any that follow."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test", "log_level": 2})
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Message] = []
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
            elif message is None and len(found) >= count:
                break
        consumer.close()
        return found


@pytest.fixture
async def kafka() -> AsyncIterator[Kafka]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        Path(__file__).with_name("kafka_cluster.py"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    servers = (await process.stdout.readline()).decode().strip()
    yield Kafka(servers, process)
    process.terminate()
    await process.wait()


@pytest.fixture
async def post(database: str) -> AsyncIterator[Post]:
    async with posting(database) as post:
        yield post


async def test_the_example_of_the_documents_is_delivered(post: Post, kafka: Kafka) -> None:
    values = {"bootstrap_servers": kafka.servers, "topic": "order.events.v1"}
    await post.client.put_config("order-events", values)
    spec = {
        "bootstrap_servers": "{{config.bootstrap_servers}}",
        "topic": "{{config.topic}}",
        "key_template": "{{input.order_id}}",
        "value_template": {
            "event_type": "{{input.event_type}}",
            "order_id": "{{input.order_id}}",
            "amount": "{{input.amount}}",
        },
        "headers": {"ce-type": "order.{{input.event_type}}", "ce-source": "task-executor"},
        "acks": "all",
        "timeout_ms": 10000,
    }
    await post.endpoint("publish", spec, type="KAFKA", config="order-events", max_attempts=5)
    payload = {"order_id": "o-1", "event_type": "paid", "amount": 12.5}
    job = await post.deliver("publish", payload)
    assert job.state == "succeeded", job.last_error
    [message] = await asyncio.to_thread(kafka.read, "order.events.v1", 1)
    assert job.result == {
        "partition": message.partition(),
        "offset": message.offset(),
        "endpoint_version": 1,
        "config_version": 1,
    }
    assert message.key() == b"o-1"
    assert msgspec.json.decode(message.value() or b"") == {
        "event_type": "paid",
        "order_id": "o-1",
        "amount": 12.5,
    }
    assert dict(message.headers() or []) == {
        "idempotency-key": str(job.job_id).encode(),
        "jobq-attempt": b"1",
        "ce-type": b"order.paid",
        "ce-source": b"task-executor",
    }


def spec_for(kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.servers,
        "topic": "events",
        "value_template": "{{input.n}}",
        **more,
    }


async def test_transient_errors_are_ridden_out_without_repeats(post: Post, kafka: Kafka) -> None:
    await post.endpoint("events", spec_for(kafka), type="KAFKA")
    assert (await post.deliver("events", {"n": 1})).state == "succeeded"
    await kafka.tell(f"errors {PRODUCE} {NOT_ENOUGH_REPLICAS} 3")
    assert (await post.deliver("events", {"n": 2})).state == "succeeded"
    messages = await asyncio.to_thread(kafka.read, "events", 2)
    assert sorted(message.value() or b"" for message in messages) == [b"1", b"2"]


@pytest.mark.parametrize("code", [MESSAGE_TOO_LARGE, TOPIC_AUTHORIZATION_FAILED])
async def test_permanent_errors_are_not_tried_again(post: Post, kafka: Kafka, code: int) -> None:
    spec = spec_for(kafka, acks="1")
    await post.endpoint("events", spec, type="KAFKA", max_attempts=3)
    await post.deliver("events", {"n": 1})
    await kafka.tell(f"errors {PRODUCE} {code} 1")
    job = await post.deliver("events", {"n": 2})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "BROKER_ERROR", 1)


async def test_a_cluster_that_is_down_times_out_and_is_tried_again(
    post: Post, kafka: Kafka
) -> None:
    spec = spec_for(kafka, timeout_ms=1000)
    await post.endpoint("events", spec, type="KAFKA", max_attempts=2)
    await post.deliver("events", {"n": 1})
    await kafka.tell("down")
    job = await post.deliver("events", {"n": 2})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "TIMEOUT", 2)
    await kafka.tell("up")

    async def is_back() -> bool:
        return (await post.deliver("events", {"n": 3})).state == "succeeded"

    # The longer it was down, the longer librdkafka rests before it connects again.
    await until_async(is_back, "for the cluster to be back")


@pytest.mark.parametrize("acks", ["0", "1", "all"])
async def test_each_way_to_be_acknowledged_delivers(post: Post, kafka: Kafka, acks: str) -> None:
    await post.endpoint("events", spec_for(kafka, acks=acks), type="KAFKA")
    job = await post.deliver("events", {"n": 1})
    assert job.state == "succeeded", job.last_error
    [message] = await asyncio.to_thread(kafka.read, "events", 1)
    place = (message.partition(), None if acks == "0" else message.offset())
    assert (job.result["partition"], job.result["offset"]) == place


async def test_an_answer_that_is_lost_writes_once(post: Post, kafka: Kafka) -> None:
    """The brokers go away while messages are under way; librdkafka repeats what it must."""
    await post.endpoint("events", spec_for(kafka), type="KAFKA", max_attempts=10)
    await post.deliver("events", {"n": 0})
    await post.client.enqueue_many([{"kind": "events", "payload": {"n": n}} for n in range(1, 101)])
    for _ in range(3):
        await kafka.tell(f"errors {PRODUCE} {REQUEST_TIMED_OUT} 2")
        await kafka.tell("down")
        await kafka.tell("up")

    async def is_done() -> bool:
        return all(job.finished_at for job in await post.client.list_jobs(max_jobs=200))

    await until_async(is_done, "for every message", 60)
    jobs = await post.client.list_jobs(max_jobs=200)
    assert {(job.state, job.last_error) for job in jobs if job.state != "succeeded"} == set()
    messages = await asyncio.to_thread(kafka.read, "events", 101)
    found = sorted(msgspec.json.decode(message.value() or b"") for message in messages)
    assert set(found) == set(range(101))
    assert len(found) - 101 <= sum(job.attempts - 1 for job in jobs)


async def test_other_options_are_refused(post: Post, kafka: Kafka) -> None:
    with pytest.raises(InvalidArgument, match="options"):
        await post.endpoint("odd", spec_for(kafka, options={"debug": "all"}), type="KAFKA")
    incomplete = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    junk = {"security.protocol": "SSL", "ssl.ca.pem": "junk"}
    for options in ({"linger.ms": "soon"}, junk, incomplete):
        await post.endpoint("odd", spec_for(kafka, options=options), type="KAFKA", max_attempts=3)
        job = await post.deliver("odd", {"n": 1})
        assert (job.state, job.last_error_code, job.attempts) == ("dead", "REQUEST_INVALID", 1)


async def test_the_input_is_the_value_where_no_other_is_given(post: Post, kafka: Kafka) -> None:
    spec = {"bootstrap_servers": kafka.servers, "topic": "events"}
    await post.endpoint("events", spec, type="KAFKA")
    assert (await post.deliver("events", {"n": 1})).state == "succeeded"
    [message] = await asyncio.to_thread(kafka.read, "events", 1)
    assert message.value() == b'{"n":1}'


async def test_servers_that_are_not_public_are_never_reached(database: str, kafka: Kafka) -> None:
    async with posting(database, Guard()) as post:
        await post.endpoint("inside", spec_for(kafka), type="KAFKA", max_attempts=3)
        job = await post.deliver("inside", {"n": 1})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "ADDRESS_REFUSED", 1)


async def test_brokers_that_a_cluster_names_are_checked_too(database: str, kafka: Kafka) -> None:
    """The servers that the endpoint names are allowed by name, those that it is told are not."""
    servers = kafka.servers.replace("127.0.0.1", "localhost")
    names = Guard.allowing(servers)
    async with posting(database, names) as post:
        spec = {**spec_for(kafka), "bootstrap_servers": servers}
        await post.endpoint("inside", spec, type="KAFKA", max_attempts=3)
        job = await post.deliver("inside", {"n": 1})
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "ADDRESS_REFUSED", 1)


@pytest.mark.parametrize(
    ("server", "place"),
    [("k:9093", ("k", 9093)), (" SASL_SSL://k.example:1 ", ("k.example", 1)), ("k", ("k", 9092)),
     ("[::1]:9093", ("::1", 9093))],
)  # fmt: skip
def test_a_server_is_read(server: str, place: tuple[str, int]) -> None:
    assert host_and_port(server) == place
