"""Whoever answers in a server's place gets no password that it can read.

The hostile server listens on loopback, whose servers are believed: what counts as that is patched.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio.lowlevel
import pymysql.err
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.checks.connecting import check_login
from replicator.checks.result import CheckedPart
from replicator.mysql.connection import auth_plugins
from replicator.mysql.connection.address import DatabaseAddress, ServerKey
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.auth_plugins import CACHING_SHA2, CLEAR, SHA256
from replicator.mysql.connection.tls import Pem
from replicator.mysql.errors import DatabaseUnavailableError
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.certificates import make_authority
from tests.support.servers.connection_kinds import KINDS, LOGINS
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.password_thief import (
    HostileServer,
    Line,
    goes_on,
    sends_key_unasked,
    switches_to,
)

PASSWORD = "hidden wörd"
REFUSED = (pymysql.err.MySQLError, BinlogError, StreamLostError, DatabaseUnavailableError)
NATIVE = "mysql_native_password"

Ask = Callable[[HostileServer, Line], None]

ATTACKS: list[tuple[str, Ask]] = [
    *((offered, goes_on) for offered in (CACHING_SHA2, SHA256, CLEAR, NATIVE, "dialog", "")),
    *(
        (offered, switches_to(plugin))
        for offered in (NATIVE, CACHING_SHA2)
        for plugin in (CACHING_SHA2, SHA256, CLEAR, "dialog", "mysql_old_password", "other")
    ),
    (SHA256, switches_to(SHA256)),
    (CACHING_SHA2, sends_key_unasked),
    (SHA256, sends_key_unasked),
]


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is on this host."""
    monkeypatch.setattr(auth_plugins, "is_local", lambda peer: False)


@pytest.fixture(scope="module")
def own_certificate() -> ssl.SSLContext:
    """TLS with a certificate that nobody vouches for."""
    pair = make_authority("nobody").sign("server", addresses=("127.0.0.1",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_text(pair.key + pair.certificate)
        context.load_cert_chain(file)
    return context


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("number", range(len(ATTACKS)))
async def test_a_hostile_server_reads_no_password(
    own_certificate: ssl.SSLContext, number: int, encrypted: bool
) -> None:
    offered, ask = ATTACKS[number]
    for log_in in LOGINS:
        server = HostileServer(offered, ask, context=own_certificate if encrypted else None)
        with server.listening() as port, pytest.raises(REFUSED):
            await log_in(DatabaseAddress("127.0.0.1", port, "u", PASSWORD))
        assert server.logins
        assert not server.reads(PASSWORD)


@pytest.mark.usefixtures("far")
async def test_what_was_not_sent_is_told_with_remedies() -> None:
    for offered, ask in ((CACHING_SHA2, goes_on), (NATIVE, switches_to(SHA256))):
        server = HostileServer(offered, ask)
        with server.listening() as port:
            address = DatabaseAddress("127.0.0.1", port, "somebody", PASSWORD)
            connection = Connection(address)
            result = await check_login(CheckedPart("a"), connection)
            connection.close()
            assert result.state == "failed"
            assert f"127.0.0.1:{port} asks for the password of somebody" in result.finding
            assert "the password was not sent" in result.finding
            for key in ("ssl-ca", "server-public-key-path", "get-server-public-key"):
                assert f"security.{key}" in result.remedies[0]
            # The server takes one connection after another: the loop closes the first one here.
            await anyio.lowlevel.checkpoint()
            with pytest.raises(BinlogError, match="server-public-key-path"):
                await LOGINS[2](address)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("pinned", [False, True])
@pytest.mark.parametrize(
    ("offered", "ask"), [(CACHING_SHA2, goes_on), (NATIVE, switches_to(SHA256))]
)
async def test_the_task_file_can_allow_it(offered: str, ask: Ask, pinned: bool) -> None:
    for log_in in LOGINS:
        server = HostileServer(offered, ask)
        key = ServerKey(Pem(text=server.public_key.decode())) if pinned else ServerKey(any_key=True)
        with server.listening() as port, pytest.raises(REFUSED):
            await log_in(DatabaseAddress("127.0.0.1", port, "u", PASSWORD, server_key=key))
        assert server.reads(PASSWORD)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
async def test_only_the_owner_of_the_pinned_key_reads_it(
    own_certificate: ssl.SSLContext, encrypted: bool
) -> None:
    owner = HostileServer(CACHING_SHA2, goes_on, key=rsa.generate_private_key(65537, 2048))
    for any_key in (False, True):
        key = ServerKey(Pem(text=owner.public_key.decode()), any_key=any_key)
        for log_in in LOGINS:
            context = own_certificate if encrypted else None
            server = HostileServer(CACHING_SHA2, goes_on, context=context)
            with server.listening() as port, pytest.raises(REFUSED):
                await log_in(DatabaseAddress("127.0.0.1", port, "u", PASSWORD, server_key=key))
            assert not server.reads(PASSWORD)


@pytest.mark.usefixtures("far")
async def test_a_pinned_key_that_is_none_is_told(tmp_path: Path) -> None:
    certificate = tmp_path / "key.pem"
    certificate.write_text(make_authority().certificate)
    for path in (certificate, tmp_path / "missing.pem"):
        server = HostileServer(CACHING_SHA2, goes_on)
        with server.listening() as port:
            key = ServerKey(Pem(str(path)))
            address = DatabaseAddress("127.0.0.1", port, "u", PASSWORD, server_key=key)
            connection = Connection(address)
            result = await check_login(CheckedPart("a"), connection)
            connection.close()
            assert result.state == "failed"
            assert str(path) in result.finding
            assert not server.reads(PASSWORD)


def test_an_address_that_is_not_of_loopback_is_not_believed() -> None:
    """Nothing is patched: the server has another address, in a network of its own."""
    inside = ["unshare", "--net", sys.executable, "-m", "tests.support.servers.other_network"]
    if subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this user may make no network")
    done = subprocess.run(inside, check=True, capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert [reads for reads, _ in found] == [False] * len(LOGINS)
    assert all("the password was not sent" in said for _, said in found)


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("version", ["", "TLSv1.2,TLSv1.3"], ids=["plain", "tls"])
async def test_a_server_that_must_be_shown_the_password(
    start_server: StartServer, version: str
) -> None:
    """MySQL 9 with its default plugin, at an address where anyone could answer."""
    server = start_server(MySQLServer, {"tls_version": version})
    ((_, key),) = server.execute("SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'")
    allowed = (ServerKey(Pem(text=key)), ServerKey(any_key=True))
    for number, (how, kind) in enumerate((how, kind) for how in allowed for kind in KINDS):
        # The server remembers an account that has proved its password once.
        account = f"far{number}"
        server.execute(
            f"CREATE USER {account} IDENTIFIED BY 'pä'", f"GRANT ALL ON *.* TO {account}"
        )
        withheld = DatabaseAddress(server.host, server.port, account, "pä")
        with pytest.raises((pymysql.err.OperationalError, BinlogError), match="was not sent"):
            await kind(withheld, server)
        tls = await kind(replace(withheld, server_key=how), server)
        assert tls.startswith("TLSv1." if version else "")
        # A scramble is enough from now on.
        assert await kind(withheld, server) == tls


@pytest.mark.usefixtures("far")
async def test_a_pinned_key_helps_where_the_server_remembers_the_password(
    mysql_source: DatabaseServer, database_name: str
) -> None:
    """It takes no key over TLS, but it takes a scramble of a password that it has seen."""
    ((_, key),) = mysql_source.execute("SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'")
    accounts = {"s": (CACHING_SHA2, "REQUIRE SSL"), "n": (SHA256, "")}
    for name, (plugin, asks) in accounts.items():
        account = f"{database_name}_{name}"
        mysql_source.execute(
            f"CREATE USER {account} IDENTIFIED WITH {plugin} BY 'pa' {asks}",
            f"GRANT ALL ON *.* TO {account}",
        )
        address = DatabaseAddress(
            mysql_source.host,
            mysql_source.port,
            account,
            "pa",
            server_key=ServerKey(Pem(text=key)),
        )
        for kind in KINDS:
            if plugin == CACHING_SHA2:
                assert (await kind(address, mysql_source)).startswith("TLSv1.")
                continue
            with pytest.raises((pymysql.err.OperationalError, BinlogError), match="was not sent"):
                await kind(address, mysql_source)
