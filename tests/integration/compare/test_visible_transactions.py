"""Whether a server shows all transactions that its binlog has."""

from __future__ import annotations

from contextlib import closing

import pytest

from replicator.pipeline.compare.visible_transactions import hidden_sources, shows_binlog
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.sandbox.server import DatabaseServer
from tests.support.streams.applying import address_of

GTID = "0a0b0c0d-0000-4000-8000-000000000001:7"


@pytest.mark.parametrize("kind", ["mysql_source", "mysql56_source"])
def test_a_transaction_with_a_gtid_has_not_ended(request: pytest.FixtureRequest, kind: str) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    address = address_of(server)
    with closing(SourceStream(address)) as stream:
        assert shows_binlog(stream, 0.0)
        with closing(server.connect()) as other, other.cursor() as cursor:
            cursor.execute(f"SET gtid_next = '{GTID}'")
            cursor.execute("BEGIN")
            assert not shows_binlog(stream, 0.1)
            assert hidden_sources([("a", address)]) == {"a"}
            cursor.execute("ROLLBACK")
            cursor.execute("SET gtid_next = 'AUTOMATIC'")
        assert shows_binlog(stream, 0.0)


def test_mariadb_shows_its_binlog(mariadb_source: DatabaseServer) -> None:
    with closing(SourceStream(address_of(mariadb_source))) as stream:
        mariadb_source.execute("CREATE DATABASE IF NOT EXISTS shown", "DROP DATABASE shown")
        assert shows_binlog(stream, 1.0)
