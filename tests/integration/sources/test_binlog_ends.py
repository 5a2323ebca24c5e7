"""The end of a binlog that tests compare with places."""

from __future__ import annotations

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of


@pytest.mark.parametrize("kind", ["mariadb_source", "mariadb11_source"])
def test_nothing_comes_by_itself_behind_the_end(
    kind: str, database_name: str, request: pytest.FixtureRequest
) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    server.execute(f"CREATE DATABASE {database_name}", f"CREATE TABLE {database_name}.t (id INT)")
    # The checkpoint of a file waits until the engine has flushed what the file before it holds.
    ((before,),) = server.execute("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")
    server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 0")
    try:
        server.execute(f"INSERT INTO {database_name}.t VALUES (1)", "FLUSH BINARY LOGS")
        end = end_of(server)
        events = server.execute(f"SHOW BINLOG EVENTS IN '{end.file}'")
    finally:
        server.execute(f"SET GLOBAL innodb_flush_log_at_trx_commit = {before}")
    own = [row[4] for row in events if (row[2], row[5]) == ("Binlog_checkpoint", end.file)]
    assert own == [end.offset]
