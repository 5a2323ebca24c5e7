"""TLS to servers: whoever has another certificate than the task file asks for is not talked to.

On each of the three kinds of connections: the look-ups, the sessions of executors, the binlog.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pymysql.err
import pytest

from replicator.binlog.errors import BinlogError
from replicator.checks.connecting import check_login
from replicator.checks.result import CheckedPart
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    is_unavailable,
)
from replicator.mysql.connection.tls import Pem, Tls, TlsError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, give_to_server
from tests.conftest import StartServer
from tests.support.servers.certificates import Authority, Pair, make_authority, make_old_pair
from tests.support.servers.connection_kinds import KINDS, look_up, write
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import MySQL56Server

ACCOUNT = "CREATE USER tls@'127.0.0.1' IDENTIFIED BY 'pa' REQUIRE SSL"
RIGHTS = "GRANT ALL ON *.* TO tls@'127.0.0.1'"


@dataclass
class TlsServer:
    """A server whose certificate can be exchanged."""

    server: DatabaseServer
    authority: Authority
    folder: Path

    def shows(self, pair: Pair) -> None:
        """Let it show another certificate from now on."""
        write_pair(self.folder, pair)
        new = isinstance(self.server, MySQLServer)
        self.server.execute("ALTER INSTANCE RELOAD TLS" if new else "FLUSH SSL")

    def address(self, tls: Tls | None) -> DatabaseAddress:
        return DatabaseAddress(self.server.host, self.server.port, "tls", "pa", tls)

    def fit(self) -> Pair:
        return self.authority.sign("server", addresses=("127.0.0.1",))

    def vouched(self) -> Tls:
        return Tls(Pem(text=self.authority.certificate))


def write_pair(folder: Path, pair: Pair) -> None:
    (folder / "cert.pem").write_text(pair.certificate)
    (folder / "key.pem").write_text(pair.key)


@pytest.fixture(params=[MariaDBServer, MySQLServer, MariaDB11Server])
def encrypted(request: pytest.FixtureRequest, start_server: StartServer) -> Iterator[TlsServer]:
    """One of each kind that takes no connection over TCP without TLS."""
    with tempfile.TemporaryDirectory() as name:
        folder, authority = Path(name), make_authority()
        write_pair(folder, authority.sign("server", addresses=("127.0.0.1",)))
        (folder / "ca.pem").write_text(authority.certificate)
        give_to_server(folder)
        files = {f"ssl_{kind}": str(folder / f"{kind}.pem") for kind in ("ca", "cert", "key")}
        server = start_server(request.param, {**files, "require_secure_transport": "ON"})
        server.execute(ACCOUNT, RIGHTS)
        yield TlsServer(server, authority, folder)


async def refusals(address: DatabaseAddress, server: DatabaseServer) -> list[str]:
    """What each kind of connection says instead of being there; the check says it, too."""
    texts = []
    for kind in KINDS:
        with pytest.raises((TlsError, BinlogError)) as caught:
            await kind(address, server)
        error = caught.value
        assert not is_unavailable(error)
        texts.append(f"{error} {error.way_out}" if isinstance(error, TlsError) else str(error))
    connection = Connection(address)
    result = await check_login(CheckedPart("a"), connection)
    connection.close()
    assert result.state == "failed"
    return [*texts, f"{result.finding} {result.remedies[0]}"]


async def test_all_connections_are_encrypted_and_look_at_the_server(encrypted: TlsServer) -> None:
    server, authority = encrypted.server, encrypted.authority
    pair = authority.sign("client")
    good = encrypted.vouched()
    shown = replace(good, cert=Pem(text=pair.certificate), key=Pem(text=pair.key))
    for tls in (
        None,
        good,
        shown,
        replace(good, names=("server",)),
        replace(good, names=("db1", "127.0.0.1")),
        Tls(cert=shown.cert, key=shown.key),
    ):
        for kind in KINDS:
            assert (await kind(encrypted.address(tls), server)).startswith("TLSv1.")

    faults: list[tuple[Pair, Tls, str]] = [
        (encrypted.fit(), Tls(Pem(text=make_authority("other").certificate)), "was not signed by"),
        (authority.sign("server", hosts=("db.example",)), good, "is for another host"),
        (authority.sign("server", addresses=("10.0.0.1",)), good, "is for another host"),
        (authority.sign("127.0.0.1"), good, "is for another host"),
        (encrypted.fit(), replace(good, names=("db1", "db2")), "allows db1, db2"),
        # An authority that was made anew has the name of the one before.
        (make_authority().sign("s", addresses=("127.0.0.1",)), good, "was not signed by"),
        (authority.sign("s", addresses=("127.0.0.1",), early=True), good, "is not valid yet"),
        (authority.sign("s", addresses=("127.0.0.1",), expired=True), good, "has expired"),
    ]
    if isinstance(server, MySQLServer):
        del faults[-3:]  # It refuses to show one that is not valid.
    for certificate, tls, says in faults:
        encrypted.shows(certificate)
        for text in await refusals(encrypted.address(tls), server):
            assert says in text
            assert f"127.0.0.1:{server.port}" in text
            assert "openssl" in text


async def test_a_client_must_have_the_certificate_that_its_account_asks_for(
    encrypted: TlsServer,
) -> None:
    server, authority = encrypted.server, encrypted.authority
    server.execute("ALTER USER tls@'127.0.0.1' REQUIRE SUBJECT '/CN=client'")
    ca = encrypted.vouched().ca
    for name, signer, says in (
        ("client", authority, ""),
        ("another", authority, "Access denied"),
        ("client", make_authority("other"), "security.ssl-cert"),
    ):
        pair = signer.sign(name)
        address = encrypted.address(Tls(ca, Pem(text=pair.certificate), Pem(text=pair.key)))
        for kind in KINDS:
            if not says:
                await kind(address, server)
                continue
            with pytest.raises((pymysql.err.OperationalError, BinlogError)) as caught:
                await kind(address, server)
            assert not is_unavailable(caught.value)
            assert says in f"{caught.value} {getattr(caught.value, 'way_out', '')}"


async def test_an_authority_may_have_others_between_it_and_the_server(
    encrypted: TlsServer,
) -> None:
    server, authority = encrypted.server, encrypted.authority
    deputy = authority.deputy("deputy")
    own = deputy.sign("server", addresses=("127.0.0.1",))
    alone, chain = own, Pair(own.certificate + deputy.certificate, own.key)
    both = f"# Autorité\n{authority.certificate}\n# tanúsítvány\n{deputy.certificate}"
    cases: list[tuple[Pair, tuple[str, ...], tuple[str, ...]]] = [
        (chain, (authority.certificate, deputy.certificate, both), ()),
        (alone, (deputy.certificate, both), (authority.certificate,)),
    ]
    if isinstance(server, MySQLServer):
        # It refuses to show one that it does not trust itself, and else adds the deputy.
        (encrypted.folder / "ca.pem").write_text(authority.certificate + deputy.certificate)
        cases.pop()
    for shown, taken, refused in cases:
        encrypted.shows(shown)
        for text in taken:
            file = encrypted.folder / "taken.pem"
            file.write_text(f"\ufeff{text}")
            for ca in (Pem(text=text), Pem(str(file))):
                for kind in KINDS:
                    assert await kind(encrypted.address(Tls(ca)), server)
        for text in refused:
            for said in await refusals(encrypted.address(Tls(Pem(text=text))), server):
                assert "those between it and the server's" in said


async def test_a_server_without_tls_is_not_talked_to_in_the_clear(
    start_server: StartServer,
) -> None:
    server = start_server(MariaDBServer)
    server.execute("CREATE USER tls@'127.0.0.1' IDENTIFIED BY 'pa'", RIGHTS)
    authority = make_authority()
    pair = authority.sign("client")
    for tls in (
        Tls(Pem(text=authority.certificate)),
        Tls(cert=Pem(text=pair.certificate), key=Pem(text=pair.key)),
    ):
        plain = DatabaseAddress(server.host, server.port, "tls", "pa", tls)
        for text in await refusals(plain, server):
            assert "does not offer TLS" in text
    for kind in (look_up, write):
        assert await kind(replace(plain, tls=None), server) == ""


def of_a_file(change: Callable[[Path, Authority], object], folder: Path) -> Tls:
    """What a task file names, after something has happened to the files."""
    authority = make_authority()
    pair = authority.sign("client")
    (folder / "ca.pem").write_text(authority.certificate)
    write_pair(folder, pair)
    change(folder, authority)
    ca, cert, key = (Pem(str(folder / name)) for name in ("ca.pem", "cert.pem", "key.pem"))
    return Tls(ca, cert, key)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder, _: (folder / "ca.pem").unlink(), "cannot be read"),
        (lambda folder, _: (folder / "key.pem").unlink(), "cannot be read"),
        (lambda folder, _: (folder / "ca.pem").write_text("nothing"), "holds no certificate"),
        (lambda folder, _: cut_short(folder / "ca.pem"), "holds no certificate"),
        (lambda folder, _: (folder / "ca.pem").write_bytes(b"\xff\x00"), "not in PEM format"),
        (
            lambda folder, other: (folder / "key.pem").write_text(other.sign("x").key),
            "are not a certificate and its key",
        ),
        (lambda folder, _: encrypt_key(folder / "key.pem"), "openssl pkey"),
    ],
    ids=["no-ca", "no-key", "empty-ca", "short-ca", "der", "other-key", "encrypted-key"],
)
async def test_files_that_are_of_no_use_are_named(
    mariadb_target: DatabaseServer,
    tmp_path: Path,
    change: Callable[[Path, Authority], object],
    says: str,
) -> None:
    tls = of_a_file(change, tmp_path)
    server = mariadb_target
    for text in await refusals(DatabaseAddress(server.host, server.port, "root", "", tls), server):
        assert says in text
        assert str(tmp_path) in text


@pytest.mark.parametrize("name", ["./gone.pem", "gone//ca.pem", "."])
async def test_files_are_named_as_the_task_file_has_them(
    mariadb_target: DatabaseServer, name: str
) -> None:
    server = mariadb_target
    for tls in (Tls(Pem(name)), Tls(cert=Pem(name), key=Pem(name))):
        address = DatabaseAddress(server.host, server.port, "root", "", tls)
        for text in await refusals(address, server):
            assert f"{name} cannot be read" in text


async def test_a_certificate_of_ours_that_has_expired_is_told(encrypted: TlsServer) -> None:
    pair = encrypted.authority.sign("client", expired=True)
    tls = Tls(encrypted.vouched().ca, Pem(text=pair.certificate), Pem(text=pair.key))
    for text in await refusals(encrypted.address(tls), encrypted.server):
        assert "Renew security.ssl-cert" in text


async def test_a_server_that_knows_old_versions_of_tls_alone_is_told(
    start_server: StartServer,
) -> None:
    authority, client = make_authority(), make_authority().sign("client")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pair(folder, make_old_pair("server"))
        give_to_server(folder)
        files = {f"ssl_{kind}": str(folder / f"{kind}.pem") for kind in ("cert", "key")}
        server = start_server(MySQL56Server, {**files, "ssl_ca": files["ssl_cert"]})
        ca = Pem(text=authority.certificate)
        for tls in (
            None,
            Tls(ca),
            Tls(ca, Pem(text=client.certificate), Pem(text=client.key)),
        ):
            address = DatabaseAddress(server.host, server.port, "root", "", tls)
            for text in await refusals(address, server):
                assert "TLS 1.2" in text


def cut_short(path: Path) -> None:
    path.write_text(f"{path.read_text()}-----BEGIN CERTIFICATE-----\nMIIB\n")


def encrypt_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(path.read_bytes(), None)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"phrase"),
        )
    )


def test_executors_get_the_files_with_the_address_and_nothing_shows_a_key(tmp_path: Path) -> None:
    tls = of_a_file(lambda *_: None, tmp_path)
    address = DatabaseAddress("h", 1, "u", "hidden-word", tls)
    sent = pickle.dumps(address)
    key = (tmp_path / "key.pem").read_text()
    for file in tmp_path.iterdir():
        file.unlink()
    arrived = pickle.loads(sent)
    assert arrived.tls.key.read() == key
    assert key not in repr(arrived)
    assert "hidden-word" not in repr(arrived)
