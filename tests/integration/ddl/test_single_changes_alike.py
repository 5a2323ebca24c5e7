"""What TiDB comes to by single changes, and deaths between, is what MySQL makes of the whole."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from replicator.downstream.ddl import ddl_execution
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.sandbox.server import DatabaseServer

COLUMNS = (
    "(id INT PRIMARY KEY, a INT DEFAULT 1, b INT, gone INT, n INT, g INT AS (n + 1) VIRTUAL,"
    " s VARCHAR(20), KEY i (a), KEY k (b, n))"
)
ROWS = "(id, a, b, gone, n, s) VALUES (1, 10, 100, 7, 5, 'x'), (2, 20, NULL, 8, 6, NULL)"

CASES = [
    "MODIFY a BIGINT, ADD c INT AFTER a, DROP gone",
    "RENAME COLUMN a TO a2, RENAME INDEX i TO j, ADD INDEX i (a2, b)",
    "RENAME COLUMN a TO a2, DROP INDEX i, ADD INDEX i (a2)",
    "DROP INDEX i, ADD UNIQUE INDEX i (b), ALTER a SET DEFAULT 7",
    "ALTER a SET DEFAULT 7, ADD c INT DEFAULT 3, ALTER b SET DEFAULT 2, ADD d INT AFTER c",
    "ALTER a DROP DEFAULT, ADD c INT AFTER a, ADD INDEX ca (c, a)",
    "DROP gone, ADD gone INT DEFAULT 5 FIRST",
    "DROP gone, ADD gone VARCHAR(9) NOT NULL DEFAULT 'n' AFTER id, ADD INDEX ig (gone)",
    "CHANGE a a BIGINT NOT NULL DEFAULT 4, ADD INDEX ka (a, b), DROP INDEX i",
    "ADD c INT AFTER id, MODIFY b BIGINT AFTER c, DROP gone",
    "MODIFY b BIGINT FIRST, MODIFY a BIGINT AFTER b, ADD c INT",
    "ADD c INT AFTER a, ADD d INT AFTER a, ADD e INT AFTER c",
    "ADD c INT FIRST, ADD d INT FIRST, ADD INDEX cd (c, d)",
    "ADD c INT, MODIFY a INT AFTER b, ADD d INT DEFAULT 9 AFTER a",
    "CHANGE b b2 BIGINT AFTER id, ADD b INT DEFAULT 8 AFTER a, RENAME INDEX k TO k2",
    "DROP g, MODIFY n BIGINT, ADD g BIGINT AS (n * 2) VIRTUAL AFTER n, ADD INDEX gi (g)",
    "DROP g, DROP INDEX k, DROP n, ADD n INT DEFAULT 0, ADD INDEX k (n, b)",
    "DROP INDEX i, DROP a, ADD a INT DEFAULT 1 AFTER id, ADD INDEX i (a)",
    "ADD c INT, ADD INDEX ic (c), COMMENT='renewed', ALTER INDEX i INVISIBLE",
    "MODIFY s VARCHAR(40) DEFAULT '', ADD c VARCHAR(5) AS (LEFT(s, 5)) VIRTUAL AFTER s",
    "RENAME COLUMN a TO x, RENAME COLUMN b TO a, ADD b INT DEFAULT 3",
]
"""Each with several changes of one thing, or of things that need one another."""

DEATHS = (
    (Failpoint.DDL_EXECUTED, 1),
    (Failpoint.DDL_RECORDED, 2),
    (Failpoint.DDL_EXECUTED, 2),
    (Failpoint.DDL_RECORDED, 3),
)


@pytest.fixture
async def connection(tidb_target: DatabaseServer, database_name: str) -> AsyncIterator[Connection]:
    server = tidb_target
    server.execute(f"CREATE DATABASE {database_name}")
    made = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    yield made
    made.close()


class Dying:
    """Dies where it is told to, once for each statement."""

    def __init__(self, point: Failpoint, time: int) -> None:
        self.point = point
        self.left = time

    def __call__(self, here: Failpoint) -> None:
        if here is self.point:
            self.left -= 1
            if self.left == 0:
                raise KeyError("died")


def seen(server: DatabaseServer, database: str, table: str) -> dict[str, object]:
    """Columns in their order, keys and rows, as far as both kinds of server say the same."""
    of = f"TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{table}'"
    columns = server.execute(
        "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT FROM"
        f" information_schema.COLUMNS WHERE {of} ORDER BY ORDINAL_POSITION"
    )
    keys = server.execute(
        "SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE FROM"
        f" information_schema.STATISTICS WHERE {of}"
    )
    rows = server.execute(f"SELECT * FROM {database}.{table} ORDER BY id")
    return {
        "columns": [tuple(None if v is None else str(v) for v in row) for row in columns],
        "keys": sorted(tuple(map(str, row)) for row in keys),
        "rows": list(rows),
    }


@pytest.mark.slow
async def test_single_changes_come_to_what_mysql_makes_of_the_whole(
    executor: DdlExecutor,
    mysql_source: DatabaseServer,
    tidb_target: DatabaseServer,
    database_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mysql_source.execute(f"CREATE DATABASE {database_name}")
    different: dict[str, str] = {}
    for number, actions in enumerate(CASES):
        name = TableName(database_name, f"t{number}")
        sql = f"ALTER TABLE {name.quoted} {actions}"
        made = (f"CREATE TABLE {name.quoted} {COLUMNS}", f"INSERT INTO {name.quoted} {ROWS}")
        mysql_source.execute(*made, sql)
        tidb_target.execute(*made)
        ddl = DdlExecution(name, Member("a", TableName("s", name.table)), number, sql, change=None)
        with monkeypatch.context() as patched:
            patched.setattr(ddl_execution, "reach", Dying(*DEATHS[number % len(DEATHS)]))
            try:
                await executor.execute(ddl)
            except KeyError:
                patched.undo()
                await executor.execute(ddl)
        assert not await executor.execute(ddl), "once"
        wanted, found = (seen(s, database_name, name.table) for s in (mysql_source, tidb_target))
        told = [f"{w}: {found[w]} instead of {v}" for w, v in wanted.items() if found[w] != v]
        if told:
            different[actions] = "; ".join(told)
    assert different == {}
