"""Delivery to Kafka topics: idempotent producers, each message awaited until it is stored."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from typing import Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as KafkaMessage

from jobq.models import Json
from jobq.registry.outcomes import Permanent, Retry
from jobq_delivery.address import AddressRefused, Guard
from jobq_delivery.message import Message
from jobq_delivery.template import as_json, as_text

TIMEOUT_MS: Final = 10_000
MARGIN: Final = 1.0
MOST_PRODUCERS: Final = 32
FLUSH_SECONDS: Final = 5.0
LONGEST_PORT: Final = 5

TIMEOUTS: Final = frozenset({KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT})  # noqa: SLF001
PERMANENT: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.TOPIC_EXCEPTION,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError._INVALID_ARG,  # noqa: SLF001
    }
)


class KafkaSender:
    """Sends messages to Kafka, with one producer per cluster and settings.

    Checks the addresses of an endpoint's servers and, before anything is sent, those of the
    brokers that the cluster names. librdkafka resolves names itself, and follows brokers that
    the cluster names later.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._producers: OrderedDict[str, _Outlet] = OrderedDict()

    async def close(self) -> None:
        """Close every producer."""
        outlets = list(self._producers.values())
        self._producers.clear()
        await asyncio.gather(*(asyncio.to_thread(outlet.close) for outlet in outlets))

    async def send(self, message: Message) -> dict[str, Json]:
        """Produce a message, wait until it is stored, return ``partition`` and ``offset``.

        Raises:
            Retry: TIMEOUT, or a temporary BROKER_ERROR.
            Permanent: REQUEST_INVALID, ADDRESS_REFUSED, or a permanent BROKER_ERROR.
        """
        spec, seconds = message.spec, message.seconds(TIMEOUT_MS)
        settings = settings_of(spec, seconds)
        outlet = self._outlet(settings)
        try:
            async with asyncio.timeout(seconds + MARGIN):
                stored = await outlet.produce(self._guard, **record_of(message))
        except TimeoutError:
            raise Retry(f"not stored within {seconds:g} s", code="TIMEOUT") from None
        except AddressRefused as refusal:
            self._drop(outlet)
            raise Permanent("ADDRESS_REFUSED", str(refusal)) from None
        except OSError:
            raise Retry("a host cannot be resolved", code="BROKER_ERROR") from None
        except BufferError:
            raise Retry("too many messages wait for the brokers", code="BROKER_ERROR") from None
        except KafkaException as failure:
            error = failure.args[0]
            if error.fatal():
                self._drop(outlet)
            raise of_kafka(error, seconds) from None
        return {"partition": stored.partition(), "offset": stored.offset()}

    def _outlet(self, settings: dict[str, Any]) -> _Outlet:
        """Return the producer with these settings; the oldest is evicted."""
        key = msgspec.json.encode(settings, order="sorted").decode()
        if key in self._producers:
            self._producers.move_to_end(key)
            return self._producers[key]
        outlet = self._producers[key] = _Outlet(settings)
        if len(self._producers) > MOST_PRODUCERS:
            self._drop(next(iter(self._producers.values())))
        return outlet

    def _drop(self, outlet: _Outlet) -> None:
        """Close a producer after it has sent its messages, without waiting for that."""
        for key, known in list(self._producers.items()):
            if known is outlet:
                del self._producers[key]
                threading.Thread(target=outlet.close, daemon=True).start()


class _Outlet:
    """A producer, which connects after the checks, and the thread for its delivery reports."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._opening = asyncio.Lock()
        self._is_open = True

    async def open(self, guard: Guard) -> Producer:
        """Return the producer; connect if every server and broker is allowed."""
        async with self._opening:
            if self._producer is not None:
                return self._producer
            for server in self._settings["bootstrap.servers"].split(","):
                await guard.addresses(*host_and_port(server))
            try:
                producer = Producer(self._settings)
            except KafkaException:
                raise Permanent("REQUEST_INVALID", "an option of Kafka's is not valid") from None
            seconds = self._settings["message.timeout.ms"] / 1000
            cluster = await asyncio.to_thread(producer.list_topics, timeout=seconds)
            for broker in cluster.brokers.values():
                await guard.addresses(broker.host, broker.port)
            self._thread = threading.Thread(
                target=self._poll, args=[producer], name="jobq kafka", daemon=True
            )
            self._thread.start()
            self._producer = producer
            return producer

    async def produce(self, guard: Guard, **record: Any) -> KafkaMessage:  # noqa: ANN401 - of produce()
        """Produce a message and return it as it is stored."""
        producer = await self.open(guard)
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[KafkaMessage] = loop.create_future()

        def settle(error: KafkaError | None, message: KafkaMessage) -> None:
            if stored.done():
                return
            if error is None:
                stored.set_result(message)
            else:
                stored.set_exception(KafkaException(error))

        def told(error: KafkaError | None, message: KafkaMessage) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, error, message)

        producer.produce(**record, on_delivery=told)
        return await stored

    def close(self) -> None:
        """Send the remaining messages, for at most some seconds, and stop."""
        if self._producer is not None:
            self._producer.flush(FLUSH_SECONDS)
        self._is_open = False
        if self._thread is not None:
            self._thread.join()

    def _poll(self, producer: Producer) -> None:
        while self._is_open:
            producer.poll(0.2)


def host_and_port(server: str) -> tuple[str, int]:
    """Return the parts of a server's address, such as ``kafka-1:9092`` or ``SSL://[::1]``."""
    place = server.strip().rpartition("//")[2]
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or len(port) > LONGEST_PORT:
        host, port = place, "9092"
    return host.strip("[]"), int(port)


def settings_of(spec: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return a producer's settings; the database has checked which options there are."""
    options = {name: as_text(value) for name, value in spec.get("options", {}).items()}
    acks = spec.get("acks", "all")
    return {
        "linger.ms": "1",
        **options,
        "bootstrap.servers": as_text(spec["bootstrap_servers"]),
        "acks": acks,
        "enable.idempotence": acks == "all",
        "message.timeout.ms": int(seconds * 1000),
        "log_level": 2,
    }


def record_of(message: Message) -> dict[str, Any]:
    """Return the arguments of produce(): topic, key, value, headers.

    Adds the headers ``idempotency-key``, the job's id, and ``jobq-attempt``, unless the endpoint
    sets them.
    """
    spec = message.spec
    headers = {"idempotency-key": str(message.job_id), "jobq-attempt": str(message.attempt)}
    headers |= {name: as_text(value) for name, value in spec.get("headers", {}).items()}
    record: dict[str, Any] = {
        "topic": as_text(spec["topic"]),
        "headers": [(name, value.encode()) for name, value in headers.items()],
    }
    if "key_template" in spec:
        record["key"] = as_text(spec["key_template"]).encode()
    if spec.get("value_template") is not None:
        record["value"] = as_json(spec["value_template"])
    return record


def of_kafka(error: KafkaError, seconds: float) -> Exception:
    """Return the text of a Kafka error, without addresses."""
    if error.code() in TIMEOUTS:
        return Retry(f"not stored within {seconds:g} s", code="TIMEOUT")
    if error.code() in PERMANENT:
        return Permanent("BROKER_ERROR", error.name())
    return Retry(error.name(), code="BROKER_ERROR")
