"""A Kafka cluster for tests: librdkafka's own mock, in this process of its own.

Prints the brokers' addresses, then obeys lines of standard input: ``errors API CODE N``
makes the next N requests of an API fail with a code, ``down`` and ``up`` take every broker
away and bring it back.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import confluent_kafka

BROKERS = 3


def library() -> ctypes.CDLL:
    """The librdkafka that the wheel has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "librdkafka" in line and ".so" in line:
            return ctypes.CDLL(line.split()[-1])
    raise RuntimeError("librdkafka is not loaded")


def main() -> None:
    assert confluent_kafka.version()
    rdkafka = library()
    error = ctypes.create_string_buffer(512)
    rdkafka.rd_kafka_conf_new.restype = ctypes.c_void_p
    rdkafka.rd_kafka_new.restype = ctypes.c_void_p
    rdkafka.rd_kafka_new.argtypes = [
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    client = rdkafka.rd_kafka_new(0, rdkafka.rd_kafka_conf_new(), error, 512)
    rdkafka.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    rdkafka.rd_kafka_mock_cluster_new.argtypes = [ctypes.c_void_p, ctypes.c_int]
    cluster = rdkafka.rd_kafka_mock_cluster_new(client, BROKERS)
    rdkafka.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    rdkafka.rd_kafka_mock_cluster_bootstraps.argtypes = [ctypes.c_void_p]
    print(rdkafka.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        match line.split():
            case ["errors", api, code, count]:
                codes = (ctypes.c_int * int(count))(*[int(code)] * int(count))
                rdkafka.rd_kafka_mock_push_request_errors_array(
                    ctypes.c_void_p(cluster), ctypes.c_int16(int(api)), int(count), codes
                )
            case [state]:
                act = getattr(rdkafka, f"rd_kafka_mock_broker_set_{state}")
                for broker in range(1, BROKERS + 1):
                    act(ctypes.c_void_p(cluster), ctypes.c_int32(broker))
        print("done", flush=True)


if __name__ == "__main__":
    main()
