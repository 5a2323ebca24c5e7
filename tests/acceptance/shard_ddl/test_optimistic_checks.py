"""CHECK constraints in the optimistic mode: one binds the target only while every shard has it."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.acceptance.conftest import MARIADB, MakeEstate
from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.open_statements import flows
from tests.support.tasks.shard_ddl import ShardedEstate

TABLE = (
    "(id INT PRIMARY KEY, b INT DEFAULT 1 CHECK (b > 0), s VARCHAR(9) NOT NULL CHECK (s <> 'no'),"
    " CONSTRAINT {} CHECK (b < 100 AND NOT s LIKE 'q%'))"
)


@pytest.fixture
def checking(target_server: DatabaseServer) -> Iterator[DatabaseServer]:
    """The target, which enforces CHECK constraints: TiDB does not unless it is told to."""
    if not isinstance(target_server, TiDBServer):
        yield target_server
        return
    target_server.execute("SET GLOBAL tidb_enable_check_constraint = ON")
    yield target_server
    target_server.execute("SET GLOBAL tidb_enable_check_constraint = OFF")


def made(estate: ShardedEstate) -> ShardedEstate:
    """An estate of two shards with these constraints; MySQL wants a name only once in a schema."""
    estate.mode = "optimistic"
    estate.create("A1", "B1", table="(id INT PRIMARY KEY)")
    estate.target.execute(
        f"DROP TABLE {estate.db}.t", f"CREATE TABLE {estate.db}.t {TABLE.format('few')}"
    )
    for shard in estate.shards:
        estate.run(shard, "DROP TABLE {t}")
        estate.run(shard, f"CREATE TABLE {{t}} {TABLE.format('mine')}")
    estate.task = estate._task()
    return estate


def refuses(estate: ShardedEstate, row: str) -> bool:
    """Whether the target has a CHECK against a row, which is given without its key."""
    inserting = f"INSERT INTO {estate.db}.t VALUES (-1, {row})"
    try:
        estate.target.execute("SET sql_mode = ''", "BEGIN", inserting, "ROLLBACK")
    except pymysql.err.MySQLError as error:
        return bool(error.args[0] in (4025, 3819))
    return False


@pytest.mark.parametrize(
    ("kinds", "target_server"),
    [
        (MARIADB, "mariadb"),
        pytest.param(("mysql_source", "mariadb_source"), "mysql", marks=pytest.mark.slow),
        pytest.param(("mariadb11_source", "mysql_source"), "mariadb", marks=pytest.mark.slow),
        pytest.param(MARIADB, "tidb", marks=pytest.mark.slow),
    ],
    indirect=["target_server"],
)
async def test_a_check_is_on_the_target_while_every_shard_has_it(
    estate_of: MakeEstate, kinds: tuple[str, str], checking: DatabaseServer
) -> None:
    estate = made(estate_of(kinds))
    own = [f"{{}}, {row}" for row in ("1, 'a'", "-1, 'no'", "101, 'q'")]
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, own[0])
        assert refuses(estate, "-1, 'a'")
        assert refuses(estate, "1, 'qq'")
        drop_b = dropped(estate, "A1", "b", "INT DEFAULT 1")
        estate.ddl("A1", drop_b, dropped(estate, "A1", "s", "VARCHAR(9) NOT NULL"))
        await flows(estate, "A1", own[1])
        await flows(estate, "B1", own[0])
        assert refuses(estate, "1, 'qq'")
        estate.ddl("B1", "DROP CONSTRAINT mine", "ADD c INT CHECK (c > 5)")
        await flows(estate, "B1", "{}, 98, 'q', 7")
        await flows(estate, "A1", own[1])
        # All have it again, by another name; and A1 brings its own column.
        estate.run("A1", "DELETE FROM {t} WHERE b < 0")
        estate.ddl("A1", "ADD CONSTRAINT back CHECK ((b > 0)), DROP CONSTRAINT mine")
        estate.ddl("A1", "ADD c INT DEFAULT NULL, ADD CHECK (c > 5)", "DROP COLUMN s")
        await flows(estate, "A1", "{}, 101, 8")
        estate.ddl("B1", "DROP COLUMN s")
        await flows(estate, "B1", "{}, 102, 9")
        assert refuses(estate, "-1, 8")
        # TiDB leaves a CHECK out that stands in ADD COLUMN.
        assert refuses(estate, "1, 4") is not isinstance(estate.target, TiDBServer)
        assert not refuses(estate, "1, 6")
        assert not estate.views()


def dropped(estate: ShardedEstate, shard: str, column: str, kind: str) -> str:
    """The action that drops a CHECK in the definition of a column, as its server has it."""
    create = str(estate.server(shard).execute(f"SHOW CREATE TABLE {estate.name(shard)}")[0][1])
    for line in create.splitlines():
        if "CONSTRAINT `t1_chk_" in line and f"((`{column}` " in line:
            return f"DROP CONSTRAINT {line.split('`')[1]}"
    return f"MODIFY {column} {kind}"
