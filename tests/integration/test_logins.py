"""Logging in with every way of proving a password, and every password, on all connections."""

from __future__ import annotations

import pymysql.err
import pytest

from replicator.binlog.errors import BinlogError
from replicator.checks.connecting import check_login
from replicator.checks.result import Place
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.mysql import MySQLServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.connection_kinds import KINDS

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
    result = await check_login(Place("a"), connection)
    connection.close()
    assert "ALTER USER 'new'@'%' IDENTIFIED VIA mysql_native_password" in result.ways_out[0]


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
