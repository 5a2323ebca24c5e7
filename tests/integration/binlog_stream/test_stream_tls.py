"""Streams over TLS: the server's certificate must be vouched for."""

from __future__ import annotations

import datetime
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.errors import BinlogError
from replicator.binlog.segments.segment import RouteSlot
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.tls import Pem, Tls
from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import StartServer
from tests.support.streams.binlog_streams import EVERY_ROW, here, read_to, row_events


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "source")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "cert.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return files


def test_only_a_server_that_the_given_authority_vouches_for_is_followed(
    start_server: StartServer,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server runs as another user
        certificate, key = write_certificate(folder)
        server = start_server(MariaDBServer, {"ssl_cert": str(certificate), "ssl_key": str(key)})
        other = folder / "other"
        other.mkdir()
        stranger, _ = write_certificate(other)
        server.execute(
            "CREATE DATABASE s",
            "CREATE TABLE s.t (id INT PRIMARY KEY, a MEDIUMTEXT)",
            "CREATE USER tls@'127.0.0.1' REQUIRE SSL",
            "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO tls@'127.0.0.1'",
        )
        start = here(server)
        for number in range(20):
            server.execute(f"INSERT INTO s.t VALUES ({number}, REPEAT('x', {number * 10_000}))")
        end = here(server)
        address = DatabaseAddress(
            server.host, server.port, "tls", tls=Tls(Pem(str(certificate)), names=("source",))
        )
        stream = BinlogStream(
            BinlogSource(address, server_id=9),
            start,
            route=lambda *_: RouteSlot(1, 1),
            limits=EVERY_ROW,
        )
        stream.open()
        assert len(row_events(read_to(stream, end))) == 20
        stream.close()
        for wrong in (stranger, folder / "missing.pem", key):
            stream = BinlogStream(
                BinlogSource(
                    replace(address, tls=Tls(Pem(str(wrong)), names=("source",))), server_id=9
                ),
                start,
                route=lambda *_: None,
                limits=EVERY_ROW,
            )
            with pytest.raises(BinlogError, match="security"):
                stream.open()
            stream.close()
