"""Logging in with every way of proving a password, and every password, on all connections."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from dataclasses import replace
from pathlib import Path

import pymysql.err
import pytest

from replicator.binlog.errors import BinlogError
from replicator.binlog.errors import StreamLostError as Lost
from replicator.checks.connecting import check_login
from replicator.checks.result import CheckedPart
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    is_unavailable,
    log_in,
)
from replicator.mysql.errors import DatabaseUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.connection_kinds import KINDS
from tests.support.servers.mysql import MySQLServer

ODD = "pä'\"\\ %@:/#?&;$`\t{}日本😀"
PASSWORDS = (ODD, "", "x" * 100)


async def log_in_everywhere(server: DatabaseServer, how: str, name: str) -> set[str]:
    """Log in with each password, also when the server remembers it; the versions of TLS."""
    versions = set()
    for number, password in enumerate(PASSWORDS):
        quoted = password.replace("\\", "\\\\").replace("'", "\\'")
        account = f"'{name}_{number}'@'%'"
        server.execute(f"CREATE USER {account} IDENTIFIED {how} '{quoted}'")
        server.execute(f"GRANT ALL ON *.* TO {account}")
        address = DatabaseAddress(server.host, server.port, f"{name}_{number}", password)
        server.execute("FLUSH PRIVILEGES")  # forgets who has proved a password
        # The last one follows the binlog, and meets a server that remembers.
        for kind in KINDS if password == ODD else KINDS[:2]:
            versions.add(await kind(address, server))
        server.execute(f"DROP USER {account}")
    return versions


@pytest.mark.parametrize("plugin", ["caching_sha2_password", "sha256_password"])
async def test_passwords_over_tls(
    mysql_source: DatabaseServer, database_name: str, plugin: str
) -> None:
    versions = await log_in_everywhere(mysql_source, f"WITH {plugin} BY", database_name)
    assert versions <= {"TLSv1.2", "TLSv1.3"}


async def test_passwords_without_tls_are_encrypted_by_the_servers_key(
    start_server: StartServer,
) -> None:
    server = start_server(MySQLServer, {"tls_version": ""})
    for plugin in ("caching_sha2_password", "sha256_password"):
        assert await log_in_everywhere(server, f"WITH {plugin} BY", plugin) == {""}


@pytest.mark.parametrize("kind", ["mariadb_source", "mysql56_source"])
async def test_native_passwords(
    request: pytest.FixtureRequest, database_name: str, kind: str
) -> None:
    server = request.getfixturevalue(kind)
    assert await log_in_everywhere(server, "BY", database_name[:12]) == {""}


async def test_a_way_to_prove_a_password_that_is_not_known_is_told(
    start_server: StartServer,
) -> None:
    server = start_server(MariaDBServer)
    server.execute(
        "INSTALL SONAME 'auth_ed25519'",
        "CREATE USER new@'127.0.0.1' IDENTIFIED VIA ed25519 USING PASSWORD('pa')",
    )
    address = DatabaseAddress(server.host, server.port, "new", "pa")
    for kind in KINDS:
        with pytest.raises((pymysql.err.OperationalError, BinlogError), match="ed25519"):
            await kind(address, server)
    connection = Connection(address)
    result = await check_login(CheckedPart("a"), connection)
    connection.close()
    assert "ALTER USER 'new'@'%' IDENTIFIED VIA mysql_native_password" in result.remedies[0]


@pytest.mark.parametrize(("clear", "says"), [("ON", "in the clear"), ("OFF", "asks questions")])
async def test_no_server_gets_a_password_in_the_clear_for_the_asking(
    start_server: StartServer, clear: str, says: str
) -> None:
    options = {"plugin_load_add": "auth_pam_v1", "pam_use_cleartext_plugin": clear}
    server = start_server(MariaDBServer, options)
    server.execute("CREATE USER asked@'127.0.0.1' IDENTIFIED VIA pam USING 'mysql'")
    address = DatabaseAddress(server.host, server.port, "asked", "pa")
    for kind in KINDS:
        with pytest.raises((pymysql.err.OperationalError, BinlogError), match=says):
            await kind(address, server)


REFUSALS = (pymysql.err.OperationalError, DatabaseUnavailableError, BinlogError, Lost)
LOCKED, EXPIRED, LIMITED = "ACCOUNT UNLOCK", "IDENTIFIED BY", "MAX_USER_CONNECTIONS"
STATES = [
    ("mysql56_source", "ALTER USER {} PASSWORD EXPIRE", EXPIRED),
    ("mysql56_source", "GRANT USAGE ON *.* TO {} WITH MAX_USER_CONNECTIONS 1", LIMITED),
    ("mysql_source", "ALTER USER {} PASSWORD EXPIRE", EXPIRED),
    ("mysql_source", "ALTER USER {} ACCOUNT LOCK", LOCKED),
    ("mysql_source", "ALTER USER {} FAILED_LOGIN_ATTEMPTS 1 PASSWORD_LOCK_TIME 1", LOCKED),
    ("mysql_source", "ALTER USER {} WITH MAX_USER_CONNECTIONS 1", LIMITED),
    ("mariadb11_source", "ALTER USER {} PASSWORD EXPIRE", EXPIRED),
    ("mariadb11_source", "ALTER USER {} ACCOUNT LOCK", LOCKED),
    ("mariadb11_source", "GRANT USAGE ON *.* TO {} WITH MAX_USER_CONNECTIONS 1", LIMITED),
]


@pytest.mark.parametrize(("kind", "change", "says"), STATES)
async def test_an_account_that_is_locked_expired_or_used_up_is_told_as_that(
    request: pytest.FixtureRequest, database_name: str, kind: str, change: str, says: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    account = f"'{database_name}'@'%'"
    server.execute(
        f"CREATE USER {account} IDENTIFIED BY 'pa'",
        f"GRANT ALL ON *.* TO {account}",
        change.format(account),
    )
    address = DatabaseAddress(server.host, server.port, database_name, "pa")
    if "FAILED" in change:
        with pytest.raises(pymysql.err.OperationalError):
            await KINDS[0](replace(address, password="wrong"), server)
    user, password = (database_name, "pa") if says == LIMITED else (server.user, server.password)
    try:
        with server.connect(user=user, password=password):
            for each in KINDS:
                with pytest.raises(REFUSALS) as caught:
                    await each(address, server)
                # Where one more connection is too much, there will be fewer soon.
                lost = isinstance(caught.value, Lost) or is_unavailable(caught.value)
                assert lost is (says == LIMITED)
                assert "until this is resolved" not in str(caught.value)
            connection = Connection(address)
            result = await check_login(CheckedPart("a"), connection)
            connection.close()
            assert result.state == "failed"
            assert says in result.remedies[0]
            assert account in result.remedies[0]
    finally:
        server.execute(f"DROP USER {account}")


async def test_an_account_that_asks_for_a_certificate_is_told_as_that(
    mysql_source: DatabaseServer, database_name: str
) -> None:
    mysql_source.execute(f"CREATE USER {database_name} IDENTIFIED BY 'pa' REQUIRE X509")
    connection = Connection(
        DatabaseAddress(mysql_source.host, mysql_source.port, database_name, "pa")
    )
    result = await check_login(CheckedPart("a"), connection)
    connection.close()
    assert "security.ssl-cert" in result.remedies[0]


async def test_a_login_that_is_refused_leaves_no_connection_behind(
    mysql_source: DatabaseServer,
) -> None:
    """Over TLS, where closing in order waits for the other side, for longer than a loop may run."""
    where = DatabaseAddress(mysql_source.host, mysql_source.port, "nobody", "wrong")
    gc.collect()  # What other tests have left goes now, not meanwhile.
    before = open_sockets()
    for _ in range(50):
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            await log_in(where)
        await asyncio.sleep(0)
        assert open_sockets() == before


def open_sockets() -> int:
    """How many this process has."""
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += str(entry.readlink()).startswith("socket:")
    return count
