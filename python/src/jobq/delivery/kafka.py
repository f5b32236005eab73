"""Delivery to Kafka topics: idempotent producers, each message awaited until it is stored."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from jobq.delivery.template import as_text
from jobq.outcomes import Permanent, Retry

if TYPE_CHECKING:
    from confluent_kafka import Message as KafkaMessage

    from jobq.delivery.message import Message
    from jobq.models import Json

__all__ = ["KafkaSender"]

TIMEOUT_MS: Final = 10_000
MARGIN: Final = 1.0
MOST_PRODUCERS: Final = 32
FLUSH_SECONDS: Final = 5.0

# What an endpoint's options may set; all else is jobq's.
OPTIONS: Final = frozenset(
    """security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password
    ssl.ca.pem ssl.certificate.pem ssl.key.pem ssl.key.password client.id
    compression.type linger.ms""".split()
)

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
    """Sends messages to Kafka, by one producer for each cluster and way to write there."""

    def __init__(self) -> None:
        self._producers: OrderedDict[str, _Outlet] = OrderedDict()

    async def close(self) -> None:
        """Close every producer."""
        outlets = list(self._producers.values())
        self._producers.clear()
        await asyncio.gather(*(asyncio.to_thread(outlet.close) for outlet in outlets))

    async def send(self, message: Message) -> dict[str, Json]:
        """Produce a message, wait until it is stored, return ``partition`` and ``offset``.

        Raises:
            Retry: TIMEOUT, or a BROKER_ERROR that may pass.
            Permanent: REQUEST_INVALID, or a BROKER_ERROR that stays.
        """
        spec, seconds = message.spec, message.seconds(TIMEOUT_MS)
        settings = settings_of(spec, seconds)
        outlet = self._outlet(settings)
        try:
            async with asyncio.timeout(seconds + MARGIN):
                stored = await outlet.produce(**record_of(message))
        except TimeoutError:
            raise Retry(f"not stored within {seconds:g} s", code="TIMEOUT") from None
        except BufferError:
            raise Retry("too many messages wait for the brokers", code="BROKER_ERROR") from None
        except KafkaException as failure:
            error = failure.args[0]
            if error.fatal():
                self._drop(outlet)
            raise of_kafka(error, seconds) from None
        return {"partition": stored.partition(), "offset": stored.offset()}

    def _outlet(self, settings: dict[str, Any]) -> _Outlet:
        """Return the producer with these settings; the oldest makes room.

        Raises:
            Permanent: a setting is not one.
        """
        key = msgspec.json.encode(settings, order="sorted").decode()
        if key in self._producers:
            self._producers.move_to_end(key)
            return self._producers[key]
        try:
            outlet = self._producers[key] = _Outlet(Producer(settings))
        except KafkaException:
            raise Permanent("REQUEST_INVALID", "an option of Kafka's is not valid") from None
        if len(self._producers) > MOST_PRODUCERS:
            self._drop(next(iter(self._producers.values())))
        return outlet

    def _drop(self, outlet: _Outlet) -> None:
        """Close a producer, once what it holds is sent, without waiting for that."""
        for key, known in list(self._producers.items()):
            if known is outlet:
                del self._producers[key]
                threading.Thread(target=outlet.close, daemon=True).start()


class _Outlet:
    """A producer, and the thread that tells what has become of its messages."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._is_open = True
        self._thread = threading.Thread(target=self._poll, name="jobq kafka", daemon=True)
        self._thread.start()

    async def produce(self, **record: Any) -> KafkaMessage:  # noqa: ANN401 - of produce()
        """Produce a message and return it as it is stored.

        Raises:
            KafkaException: it is not stored.
            BufferError: too many are under way.
        """
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

        self._producer.produce(**record, on_delivery=told)
        return await stored

    def close(self) -> None:
        """Send what is left, for some seconds, and stop."""
        self._producer.flush(FLUSH_SECONDS)
        self._is_open = False
        self._thread.join()

    def _poll(self) -> None:
        while self._is_open:
            self._producer.poll(0.2)


def settings_of(spec: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return a producer's settings.

    Raises:
        Permanent: an option may not be set.
    """
    options = {name: as_text(value) for name, value in spec.get("options", {}).items()}
    unknown = options.keys() - OPTIONS
    if unknown:
        raise Permanent("REQUEST_INVALID", f"options may not set {', '.join(sorted(unknown))}")
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

    The header ``idempotency-key`` is the job's id, unless the endpoint sets it.
    """
    spec = message.spec
    headers = {"idempotency-key": str(message.job_id)}
    headers |= {name: as_text(value) for name, value in spec.get("headers", {}).items()}
    record: dict[str, Any] = {
        "topic": as_text(spec["topic"]),
        "headers": [(name, value.encode()) for name, value in headers.items()],
    }
    if "key_template" in spec:
        record["key"] = as_text(spec["key_template"]).encode()
    if "value_template" in spec:
        record["value"] = msgspec.json.encode(spec["value_template"])
    return record


def of_kafka(error: KafkaError, seconds: float) -> Exception:
    """Return what an error of Kafka's means, without addresses."""
    if error.code() in TIMEOUTS:
        return Retry(f"not stored within {seconds:g} s", code="TIMEOUT")
    if error.code() in PERMANENT:
        return Permanent("BROKER_ERROR", error.name())
    return Retry(error.name(), code="BROKER_ERROR")
