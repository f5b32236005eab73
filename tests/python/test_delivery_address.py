"""What deliveries may connect to."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import socket
import subprocess
import sys
import threading
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from delivery_sink import posting

from jobq.errors import InvalidArgument
from jobq_delivery.address import AddressRefused, Guard, is_public


@pytest.mark.parametrize(
    "address",
    """127.0.0.1 127.9.9.9 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 0.0.0.0
    255.255.255.255 224.0.0.1 240.0.0.1 192.0.2.1 198.18.0.1 ::1 :: fe80::1 fc00::1 fd00:ec2::254
    ff02::1 2001:db8::1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::7f00:1
    64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2001:0:1::1 fec0::1""".split(),
)
def test_these_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    "1.1.1.1 93.184.215.14 2606:4700::1111 ::ffff:1.1.1.1 64:ff9b::101:101 2002:101:101::1".split(),
)
def test_these_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "2130706433", "0177.0.0.1", "0x7f.1", "127.1", "0", "::1",
     "::ffff:169.254.169.254"],
)  # fmt: skip
async def test_every_notation_of_loopback_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused):
        await Guard().addresses(host, 80)


async def test_one_private_address_among_public_ones_is_enough() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["1.1.1.1", "10.0.0.1"]

    with pytest.raises(AddressRefused):
        await Guard(resolve=resolve).addresses("mixed.example", 443)


async def test_names_that_are_not_resolved_hold_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The event loop has few threads for such calls, and cannot stop one."""
    answered = threading.Event()
    resolve = socket.getaddrinfo

    def slow(host: str, *given: Any, **options: Any) -> Any:
        if host.endswith("slow.example"):
            answered.wait(60)
            host = "1.1.1.1"
        return resolve(host, *given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    guard = Guard()
    names = [f"{n % 40}.slow.example" for n in range(200)]
    slow_ones = [asyncio.create_task(guard.addresses(name, 443)) for name in names]
    await asyncio.sleep(0)
    slow_ones.pop().cancel()
    try:
        async with asyncio.timeout(30):
            assert await guard.addresses("1.0.0.1", 443) == ["1.0.0.1"]
    finally:
        answered.set()
    assert await asyncio.gather(*slow_ones) == [["1.1.1.1"]] * 199


async def test_a_lookup_that_fails_after_all_have_given_up_is_not_reported() -> None:
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: reported.append(what))
    answered = asyncio.Event()

    async def resolve(_host: str, _port: int) -> list[str]:
        await answered.wait()
        raise OSError("no answer")

    waiting = asyncio.create_task(Guard(resolve=resolve).addresses("slow.example", 443))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    answered.set()
    for _ in range(3):
        await asyncio.sleep(0)
    del waiting
    gc.collect()
    assert reported == []


@pytest.mark.parametrize("host", ["büro.example", "XN--BRO-HOA.example."])
@pytest.mark.parametrize("allowed", ["BÜRO.example", "xn--bro-hoa.example.:80"])
async def test_a_name_that_is_not_ascii_is_allowed_in_both_forms(allowed: str, host: str) -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    guard = Guard(hosts=Guard.allowing(allowed).hosts, resolve=resolve)
    assert await guard.addresses(host, 80) == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("allowed", "host", "port", "is_allowed"),
    [
        ("127.0.0.0/8", "127.0.0.1", 80, True),
        ("10.0.0.0/8", "127.0.0.1", 80, False),
        ("localhost", "localhost", 80, True),
        ("localhost", "LOCALHOST", 80, True),
        ("localhost:8080", "localhost", 8080, True),
        ("LocalHost.", "localhost", 80, True),
        ("localhost.:8080", "localhost", 8080, True),
        ("localhost:8080", "localhost", 8081, False),
        ("other.example, 127.0.0.1", "127.0.0.1", 80, True),
    ],
)
async def test_an_operator_can_allow_targets(
    allowed: str, host: str, port: int, is_allowed: bool
) -> None:
    guard = Guard.allowing(allowed)
    try:
        assert await guard.addresses(host, port)
        assert is_allowed
    except AddressRefused:
        assert not is_allowed


@pytest.mark.parametrize(
    "entry", ["10.0.0.0/33", "*.internal", "10.1.0.0/16;hooks:99999", "a:65536", "[::1]:80"]
)
def test_what_would_allow_nothing_is_refused(entry: str) -> None:
    with pytest.raises(InvalidArgument, match="networks, hosts") as refused:
        Guard.allowing(f"127.0.0.1, {entry}")
    assert entry in str(refused.value.detail)


async def test_a_name_is_resolved_once_for_a_connection(database: str) -> None:
    """A rebinding name says 127.0.0.1 first, which is allowed, and metadata afterwards."""
    answers = ["127.0.0.1", "169.254.169.254"]
    asked = []

    async def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return [answers.pop(0)]

    allowed = Guard.allowing("127.0.0.0/8")
    guard = Guard(allowed.networks, allowed.hosts, resolve)
    async with posting(database, guard) as post:
        await post.endpoint("rebind", {"url": f"http://rebind.example:{post.sink.port}/a"})
        first = await post.deliver("rebind")
        assert first.state == "succeeded"
        assert asked == ["rebind.example"]
        assert post.sink.received[0].headers["host"] == f"rebind.example:{post.sink.port}"
        await post.endpoint("again", {"url": f"http://rebind.example:{post.sink.port}/reset"})
        await post.deliver("again")
        second = await post.deliver("again")
    assert (second.state, second.last_error_code) == ("dead", "ADDRESS_REFUSED")


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:{port}/", "http://2130706433:{port}/",
     "http://[::ffff:127.0.0.1]:{port}/", "http://localhost:{port}/"],
)  # fmt: skip
async def test_internal_targets_are_never_reached(database: str, url: str) -> None:
    async with posting(database, Guard()) as post:
        await post.endpoint("inside", {"url": url.format(port=post.sink.port)}, max_attempts=3)
        job = await post.deliver("inside")
    assert job.last_error_code in ("ADDRESS_REFUSED", "REQUEST_INVALID")
    assert (job.state, job.attempts) == ("dead", 1)
    assert post.sink.connections == 0


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example/", "file:///etc/passwd", "http://user:pass@a.example/", "//a", "http:///x",
     "not a url", "http://a.example:port/", "http://0177.0.0.1/", "http://256.1.1.1:80/"],
)  # fmt: skip
async def test_other_urls_are_refused(database: str, url: str) -> None:
    async with posting(database) as post:
        with pytest.raises(InvalidArgument, match=r"spec\.url"):
            await post.endpoint("odd", {"url": url})
        await post.client.put_config("odd", {"url": url})
        await post.endpoint("odd", {"url": "{{config.url}}"}, config="odd", max_attempts=3)
        job = await post.deliver("odd")
    assert (job.state, job.last_error_code, job.attempts) == ("dead", "REQUEST_INVALID", 1)


# Every entry of IANA's registries of special-purpose addresses, by its first and last address.
REGISTRIES = """0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16
    172.16.0.0/12 192.0.0.0/24 192.0.0.0/29 192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32
    192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.88.99.2/32
    192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
    255.255.255.255/32 224.0.0.0/4
    ::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128
    2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28
    2001:30::/28 2001:db8::/32 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 ff00::/8
    4000::/3 200::/7""".split()


@pytest.mark.parametrize("network", REGISTRIES)
def test_no_special_purpose_address_is_public(network: str) -> None:
    whole = ip_network(network)
    assert not is_public(whole[0])
    assert not is_public(whole[-1])


@pytest.mark.parametrize(
    "address",
    "1.0.0.1 11.0.0.1 172.32.0.1 192.1.0.1 192.88.98.255 192.88.100.0 223.255.255.255 2001:200::1"
    " 2001:db7::1 2001:db9::1 3ffe::1 2620:4f:7fff::1".split(),
)
def test_their_neighbours_are_public(address: str) -> None:
    assert is_public(ip_address(address))


HOSTS = [
    "10.0.0.1", "127.0.0.1", "169.254.169.254", "192.88.99.1", "0xA000001", "2130706433",
    "[::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[3fff::1]", "[2002:a00:1::]",
]  # fmt: skip


def can_isolate() -> bool:
    command = ["unshare", "-rn", "true"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


@pytest.mark.skipif(not can_isolate(), reason="no network namespace can be made here")
def test_every_type_of_target_is_refused_where_a_hole_would_send_nothing() -> None:
    script = Path(__file__).with_name("refused_targets.py")
    said = subprocess.run(
        ["unshare", "-rn", sys.executable, script, *HOSTS],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    outcomes = json.loads(said.stdout)
    assert len(outcomes) == 3 * len(HOSTS)
    assert set(outcomes.values()) == {"ADDRESS_REFUSED"}


async def test_a_star_allows_everything_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard.allowing("*")
    assert await guard.addresses("127.0.0.1", 80) == ["127.0.0.1"]
    assert await guard.addresses("::1", 80) == ["::1"]
    guard.check_socket("/run/any.sock")
    assert "every address" in caplog.text


def test_sockets_are_allowed_by_their_path() -> None:
    Guard.allowing("unix:/run/redis.sock").check_socket("/run/redis.sock")
    Guard.allowing("unix:").check_socket("/run/other.sock")
    for allowed in ("", "127.0.0.1", "unix:/run/redis.sock"):
        for path in (
            "/run/other.sock",
            "/run/redis.sock2",
            "/run/redis.sock/../other.sock",
            "run/redis.sock",
            "",
        ):
            with pytest.raises(AddressRefused):
                Guard.allowing(allowed).check_socket(path)
    for entry in ("unix:/run/redis/", "unix:redis.sock", "unix:/run/../redis.sock"):
        with pytest.raises(InvalidArgument, match="whole path"):
            Guard.allowing(entry)
