"""A server may ask for any file in place of an answer: it gets none but the rows of a load."""

from __future__ import annotations

from pathlib import Path

import pymysql.err
import pytest

from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    is_unavailable,
)
from replicator.sandbox.server import DatabaseServer


async def test_no_server_gets_a_file_of_this_host(
    mariadb_target: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    server, name = mariadb_target, database_name
    server.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a VARCHAR(20))")
    (tmp_path / "key").write_text("hidden\n")
    asks = f"LOAD DATA LOCAL INFILE '{tmp_path}/key' INTO TABLE {name}.t"
    address = DatabaseAddress(server.host, server.port, server.user, server.password)

    session = Session(address)
    assert session.load(asks.encode(), [b"row\n"]).affected == 1
    for ask in (Session.run, Session.rows):
        with pytest.raises(pymysql.err.OperationalError, match="asks for a file") as caught:
            ask(session, asks.encode())
        assert not is_unavailable(caught.value)
        session = Session(address)
    session.close()

    connection = Connection(address)
    # This one does not even tell the server that there may be files.
    with pytest.raises(pymysql.err.MySQLError):
        await connection.fetch(asks)
    connection.close()
    assert server.execute(f"SELECT a FROM {name}.t") == (("row",),)
