"""Deliveries over HTTPS, by certificates of an authority that is made for the test."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from delivery_sink import LOCAL, Sink, posting
from waiting import until_async

from jobq.errors import InvalidArgument
from jobq_delivery.address import Guard
from jobq_delivery.trust import trusting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DAY = timedelta(days=1)


class Authority:
    """A certificate authority.

    Attributes:
        file: its certificate.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
            key_encipherment=False, data_encipherment=False, key_agreement=False,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip
        certificate = (
            self.build(self.name, self.key, DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def build(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, lasts: timedelta
    ) -> x509.CertificateBuilder:
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - 2 * DAY)
            .not_valid_after(datetime.now(UTC) + lasts)
            .add_extension(identifier, critical=False)
            .add_extension(issuer, critical=False)
        )

    def server(self, host: str, lasts: timedelta = DAY) -> ssl.SSLContext:
        """Return the context of a server with a certificate for a host."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sink")])
        local = x509.IPAddress(IPv4Address(host)) if host[0].isdigit() else x509.DNSName(host)
        certificate = (
            self.build(subject, key, lasts)
            .add_extension(x509.SubjectAlternativeName([local]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file = self.folder / "server.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


@asynccontextmanager
async def secure(sink: Sink, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Serve a sink over TLS, too, and give the port."""
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority that deliveries trust."""
    authority = Authority(tmp_path, "trusted")
    monkeypatch.setenv("JOBQ_DELIVERY_CA_FILE", str(authority.file))
    return authority


async def loopback(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_a_target_with_a_good_certificate_is_delivered_to(
    database: str, authority: Authority
) -> None:
    """The certificate is that of the name, the connection that to the checked address."""
    guard = Guard(LOCAL.networks, LOCAL.hosts, loopback)
    async with (
        posting(database, guard) as post,
        secure(post.sink, authority.server("hooks.example")) as port,
    ):
        await post.endpoint("good", {"url": f"https://hooks.example:{port}/ok", "body_template": 1})
        for _ in range(2):
            job = await post.deliver("good")
            assert (job.state, job.result["body"]) == ("succeeded", "OK")
        assert [r.body for r in post.sink.received] == [b"1", b"1"]
        assert post.sink.connections == 1


@pytest.mark.parametrize("way", ["at-once", "later"])
async def test_an_answer_that_nobody_asked_for_is_no_other_jobs(
    database: str, authority: Authority, way: str
) -> None:
    """As another record of TLS: in the same packet, or after the answer was read."""
    async with (
        posting(database) as post,
        secure(post.sink, authority.server("127.0.0.1")) as port,
    ):
        for path in (f"twice-{way}", "keep"):
            await post.endpoint(path, {"url": f"https://127.0.0.1:{port}/{path}"})
        first = await post.deliver(f"twice-{way}")
        if way == "later":
            post.sink.hold.set()
            await until_async(post.sink.has_said_more, "for another answer")
        second = await post.deliver("keep")
    assert first.result["body"] in ("on", "once")
    assert second.result["body"] == "OK"
    assert [request.path for request in post.sink.received] == [f"/twice-{way}", "/keep"]


@pytest.mark.parametrize("fault", ["stranger", "expired", "other name"])
async def test_a_bad_certificate_is_refused(
    database: str, tmp_path: Path, authority: Authority, fault: str
) -> None:
    signer = Authority(tmp_path, "stranger") if fault == "stranger" else authority
    host = "127.0.0.2" if fault == "other name" else "127.0.0.1"
    context = signer.server(host, -DAY if fault == "expired" else DAY)
    async with posting(database) as post, secure(post.sink, context) as port:
        await post.endpoint("bad", {"url": f"https://127.0.0.1:{port}/ok"}, max_attempts=2)
        job = await post.deliver("bad")
        assert (job.state, job.last_error_code) == ("dead", "CERTIFICATE_REFUSED")
        assert str(job.last_error).startswith("the target's certificate is refused: ")
        assert (job.attempts, post.sink.received) == (2, [])


async def test_a_target_without_tls_is_a_connection_error(database: str) -> None:
    async with posting(database) as post:
        await post.endpoint("plain", {"url": f"https://127.0.0.1:{post.sink.port}/ok"})
        job = await post.deliver("plain")
        assert (job.state, job.last_error_code) == ("dead", "CONNECTION_ERROR")
        assert post.sink.received == []


@pytest.mark.parametrize("text", [None, "no certificates"])
def test_a_bad_file_of_authorities_is_a_clear_error(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidArgument, match="the file of authorities cannot be read"):
        trusting({"JOBQ_DELIVERY_CA_FILE": str(file)})
