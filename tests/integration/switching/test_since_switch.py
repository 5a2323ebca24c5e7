"""The way back: after the files are executed, the shards have the target's rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymysql
import pytest

import config
from actors.switching.since_switch import UNPLACED, write_changes
from actors.switching.switching import SwitchError
from replicator.mysql.names import Member, TableName
from replicator.sandbox.server import DatabaseServer
from replicator.switch.certificate import (
    SwitchCertificate,
    SwitchedShard,
    SwitchedTarget,
    TargetPosition,
)
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.task_files import task_dict

TYPES = (
    "i TINYINT, u BIGINT UNSIGNED, m MEDIUMINT, d DECIMAL(30,10), f FLOAT, g DOUBLE, b BIT(9),"
    " y YEAR, dt DATE, tm TIME(3), ts TIMESTAMP(6) NULL, dtm DATETIME(6), c CHAR(5), v VARCHAR(40)"
    " CHARACTER SET utf8mb4, l VARCHAR(20) CHARACTER SET latin1, bi BINARY(4), vb VARBINARY(20),"
    " x TEXT CHARACTER SET utf8mb4, bl BLOB, e ENUM('', 'a', 'b''c'), s SET('p','q'), j JSON,"
    " p POINT, gen INT AS (i + 1)"
)
ROWS = (
    "(1, -128, 18446744073709551615, -8388608, '-12345678901234567890.0123456789', 1.1754944e-38,"
    " 0.1, b'101010101', 2155, '9999-12-31', '-838:59:58.999', '2038-01-19 03:14:07.999999',"
    " '1000-01-01 00:00:00.000001', 'a  ', 'Zoë \\\\ \\'\\n\\t\\0🙂', 'é', x'00ff2700', x'5c275c',"
    " 'a\\rb', x'0a0d1a5c', '', 'p,q', '{\"a\": [1.5, null, \"ü\\\\n\"]}', POINT(1.5, -2))",
    "(2, NULL, 0, NULL, '0.0000000001', 3.4028234e38, -2.2250738585072014e-308, b'0', 0, NULL,"
    " NULL, NULL, NULL, '', '', '', x'', '', '', '', 'b\\'c', '', '[]', NULL)",
    "(3, 127, 5, 7, 1, 16777216, 1e15, NULL, NULL, '2000-02-29', '00:00:00', '1970-01-01"
    " 00:00:01', '2000-01-01 00:00:00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
    " NULL)",
)
NAMES = "id, i, u, m, d, f, g, b, y, dt, tm, ts, dtm, c, v, l, bi, vb, x, bl, e, s, j, p"


class Estate:
    """Two shards and their target, all on one server, with the shard's name in a column."""

    def __init__(self, server: DatabaseServer, db: str, **route: Any) -> None:
        self.server, self.db = server, db
        self.shards = (TableName(f"{db}_1", "t1"), TableName(f"{db}_2", "t2"))
        values = task_dict(db, {"a": server}, server, schema=f"{db}_?", target_schema=db)
        values["routes"]["merge"] |= route
        self.values = values

    @property
    def task(self) -> config.Task:
        return config.Task.model_validate(self.values)

    def do(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        return self.server.execute(
            "SET time_zone = '+00:00'", "SET NAMES utf8mb4", "SET sql_mode = ''", *statements
        )

    def certificate(self) -> SwitchCertificate:
        end = end_of(self.server)
        moment = datetime.now(UTC)
        shards = tuple(SwitchedShard("a", *shard) for shard in self.shards)
        target = SwitchedTarget(self.db, "t", shards, 0, "", "", None, frozen=True)
        place = TargetPosition(end.file, end.offset)
        return SwitchCertificate(self.db, moment, moment, (), place, (target,))

    def execute_all(self, folder: Path) -> None:
        """Execute the files of all shards, with another charset than theirs."""
        for file in sorted(folder.glob("a.*.sql")):
            text = file.read_bytes().decode("ascii")
            with self.server.connect(charset="latin1") as connection:
                for statement in filter(str.strip, text.split(";\n")):
                    connection.cursor().execute(statement)
                connection.commit()

    def rows(self, table: str, columns: str, where: str = "TRUE") -> list[tuple[object, ...]]:
        return sorted(self.do(f"SELECT {columns} FROM {table} WHERE {where}"), key=repr)


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def server(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def estate(server: DatabaseServer, database_name: str) -> Iterator[Estate]:
    db = database_name
    made = Estate(
        server, db, **{"extract-table": {"table-regexp": "(.*)", "target-column": "shard"}}
    )
    names = (db, f"{db}_1", f"{db}_2")
    server.execute(*(f"CREATE DATABASE {name}" for name in names))
    yield made
    server.execute(*(f"DROP DATABASE IF EXISTS {name}" for name in names))


def shown(columns: str) -> str:
    """Columns as bytes, so that nothing is lost by a client."""
    return ", ".join(f"HEX({name})" for name in columns.split(", "))


def conditions_of(folder: Path) -> list[str]:
    """The conditions of all statements in the files of the shards."""
    texts = "".join(path.read_text("ascii") for path in folder.glob("a.*.sql"))
    return [line.partition(" WHERE ")[2] for line in texts.splitlines() if " WHERE " in line]


async def test_values_of_all_types_come_back(estate: Estate, tmp_path: Path) -> None:
    db = estate.db
    estate.do(
        f"CREATE TABLE {db}.t (shard VARCHAR(9), id INT, {TYPES}, PRIMARY KEY (shard, id))",
        *(f"CREATE TABLE {shard} (id INT PRIMARY KEY, {TYPES})" for shard in estate.shards),
        *(f"INSERT INTO {db}_1.t1 ({NAMES}) VALUES {row}" for row in ROWS[1:]),
        f"INSERT INTO {db}.t (shard, {NAMES}) SELECT 't1', {NAMES} FROM {db}_1.t1",
    )
    certificate = estate.certificate()
    estate.do(
        # New rows in both, a changed row, a deleted one, and one that moves.
        *(f"INSERT INTO {db}.t (shard, {NAMES}) VALUES ('t2', {row[1:]}" for row in ROWS),
        f"INSERT INTO {db}.t (shard, {NAMES}) VALUES ('t1', {ROWS[0][1:]}",
        f"UPDATE {db}.t SET f = 0.1, g = 1e-7, j = '{{}}', ts = '2020-01-01 00:00:00.5'"
        " WHERE shard = 't1' AND id = 2",
        f"DELETE FROM {db}.t WHERE shard = 't1' AND id = 3",
        f"UPDATE {db}.t SET id = 9 WHERE shard = 't2' AND id = 3",
        f"UPDATE {db}.t SET shard = 't1', id = 8 WHERE shard = 't2' AND id = 2",
    )
    found = await write_changes(estate.task, certificate, tmp_path)
    assert found.unplaced == 0, (tmp_path / UNPLACED).read_text()
    conditions = conditions_of(tmp_path)
    assert conditions
    assert all(line.count("`id`=") == 1 for line in conditions), conditions
    assert set(found.statements) == {Member("a", shard) for shard in estate.shards}
    estate.execute_all(tmp_path)
    columns = shown(f"{NAMES}, gen")
    for shard in estate.shards:
        wanted = estate.rows(f"{db}.t", columns, f"shard = '{shard.table}'")
        assert estate.rows(str(shard), columns) == wanted
        assert len(wanted) == {"t1": 3, "t2": 2}[shard.table]


async def test_texts_get_the_charset_of_the_shard(estate: Estate, tmp_path: Path) -> None:
    db = estate.db
    columns = "v VARCHAR(20), e ENUM('ä', 'b')"
    estate.do(
        f"CREATE TABLE {db}.t (shard VARCHAR(9), id VARCHAR(9), {columns},"
        " PRIMARY KEY (shard, id)) CHARACTER SET utf8mb4",
        *(
            f"CREATE TABLE {shard} (id VARCHAR(9) PRIMARY KEY, {columns}) CHARACTER SET {charset}"
            for shard, charset in zip(estate.shards, ("latin1", "ucs2"), strict=True)
        ),
        *(
            f"INSERT INTO {shard} VALUES ('ü', 'é', 'b'), ('x', 'y', 'ä'), ('ö', '', 'ä')"
            for shard in estate.shards
        ),
        *(
            f"INSERT INTO {db}.t SELECT '{shard.table}', s.* FROM {shard} s"
            for shard in estate.shards
        ),
    )
    certificate = estate.certificate()
    estate.do(
        f"UPDATE {db}.t SET v = 'ñ €', e = 'ä' WHERE id = 'ü'",
        f"DELETE FROM {db}.t WHERE id = 'ö'",
        *(f"INSERT INTO {db}.t VALUES ('{shard.table}', 'ß', 'n', 'b')" for shard in estate.shards),
    )
    assert (await write_changes(estate.task, certificate, tmp_path)).unplaced == 0
    estate.execute_all(tmp_path)
    for shard in estate.shards:
        wanted = estate.rows(f"{db}.t", "id, v, e", f"shard = '{shard.table}'")
        assert estate.rows(str(shard), "id, v, e") == wanted
        assert len(wanted) == 3


async def test_changes_that_foreign_keys_make_are_named(
    server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    db = database_name
    estate = Estate(server, db)
    estate.values["routes"] = {
        "all": {"schema-pattern": f"{db}_?", "target-schema": db},
    }
    estate.values["mysql-instances"][0]["route-rules"] = ["all"]
    names = (db, f"{db}_1")
    server.execute(*(f"CREATE DATABASE {name}" for name in names))
    child = "(id INT PRIMARY KEY, up INT, FOREIGN KEY f (up) REFERENCES p (id) ON DELETE CASCADE)"
    try:
        for name in names:
            estate.do(
                f"USE {name}",
                "CREATE TABLE p (id INT PRIMARY KEY, v INT)",
                f"CREATE TABLE c {child}",
                f"CREATE TABLE g {child.replace('f (up) REFERENCES p', 'h (up) REFERENCES c')}",
                "INSERT INTO p VALUES (1, 1), (2, 1)",
                "INSERT INTO c VALUES (1, 1), (2, 2)",
                "INSERT INTO g VALUES (1, 1), (2, 2)",
            )
        found = estate.certificate()
        targets = tuple(
            SwitchedTarget(
                db, table, (SwitchedShard("a", f"{db}_1", table),), 0, "", "", None, frozen=True
            )
            for table in ("c", "g", "p")
        )
        certificate = replace(found, targets=targets)
        estate.do(f"UPDATE {db}.p SET v = 2 WHERE id = 1", f"DELETE FROM {db}.p WHERE id = 2")
        written = await write_changes(estate.task, certificate, tmp_path)
        parent = Member("a", TableName(f"{db}_1", "p"))
        assert written.statements[parent] == 2
        if server.execute("SHOW VARIABLES LIKE 'innodb_native_foreign_keys'"):
            assert written.unplaced == 0  # The server logs the changes.
            for table in ("c", "g"):
                assert written.statements[Member("a", TableName(f"{db}_1", table))] == 1
            return
        assert written.unplaced == 1
        left = (tmp_path / UNPLACED).read_text()
        assert f"of {db}.c (ON DELETE CASCADE)" in left
        assert f"and with these maybe rows of {db}.g, and" in left
        assert f"DELETE FROM `{db}_1`.`p`" in left
        # A parent that is no target.
        certificate = replace(certificate, targets=targets[:2])
        written = await write_changes(estate.task, certificate, tmp_path)
        assert (written.statements.total(), written.unplaced) == (0, 1)
        left = (tmp_path / UNPLACED).read_text()
        assert f"of {db}.c (ON DELETE CASCADE)" in left
        assert f"DELETE FROM `{db}`.`p`" in left
    finally:
        server.execute(*(f"DROP DATABASE {name}" for name in names))


async def test_mapped_keys_are_those_of_the_shard_again(
    server: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    db = database_name
    estate = Estate(server, db)
    estate.values["column-mappings"] = {
        "ids": {
            "schema-pattern": f"{db}_?",
            "table-pattern": "t*",
            "expression": "partition id",
            "source-column": "id",
            "target-column": "id",
            "arguments": ["", "", "t", ""],
        }
    }
    estate.values["mysql-instances"][0]["column-mapping-rules"] = ["ids"]
    names = (db, f"{db}_1", f"{db}_2")
    server.execute(*(f"CREATE DATABASE {name}" for name in names))
    try:
        first, second = (number << 55 for number in (1, 2))
        table = "(id BIGINT PRIMARY KEY, v INT)"
        estate.do(
            f"CREATE TABLE {db}.t {table}",
            *(f"CREATE TABLE {shard} {table}" for shard in estate.shards),
            f"INSERT INTO {db}_1.t1 VALUES (5, 1)",
            f"INSERT INTO {db}.t VALUES ({first | 5}, 1)",
        )
        certificate = estate.certificate()
        estate.do(
            f"UPDATE {db}.t SET v = 2 WHERE id = {first | 5}",
            f"INSERT INTO {db}.t VALUES ({second | 5}, 3)",
            f"INSERT INTO {db}.t VALUES (7, 4)",
        )
        found = await write_changes(estate.task, certificate, tmp_path)
        assert found.unplaced == 1
        left = (tmp_path / UNPLACED).read_text()
        assert "no shard has the row's values" in left
        assert "(7" in left or "'7'" in left
        estate.execute_all(tmp_path)
        assert estate.rows(f"{db}_1.t1", "*") == [(5, 2)]
        assert estate.rows(f"{db}_2.t2", "*") == [(5, 3)]
    finally:
        server.execute(*(f"DROP DATABASE {name}" for name in names))


async def test_what_no_rule_gives_to_a_shard_is_left_out(estate: Estate, tmp_path: Path) -> None:
    db = estate.db
    estate.do(
        f"CREATE TABLE {db}.t (shard VARCHAR(9), id INT, v INT, PRIMARY KEY (shard, id))",
        *(f"CREATE TABLE {shard} (id INT PRIMARY KEY, v INT)" for shard in estate.shards),
    )
    certificate = estate.certificate()
    estate.do(
        f"INSERT INTO {db}.t VALUES ('t1', 1, 1), ('t3', 1, 1)",
        f"TRUNCATE TABLE {db}.t",
        f"INSERT INTO {db}.t VALUES ('t1', 2, 2)",
    )
    found = await write_changes(estate.task, certificate, tmp_path)
    assert found.unplaced == 3
    left = (tmp_path / UNPLACED).read_text()
    assert "TRUNCATE TABLE" in left
    assert "a statement changed" in left
    assert all(line.startswith("-- ") for line in left.splitlines())
    assert found.statements == {Member("a", estate.shards[0]): 1}


async def test_a_target_without_a_binlog_has_no_changes(estate: Estate, tmp_path: Path) -> None:
    certificate = estate.certificate()
    without = SwitchCertificate(
        certificate.task,
        certificate.switched_at,
        certificate.frozen_at,
        (),
        TargetPosition(remark="TiDB has no binlog"),
        (),
    )
    with pytest.raises(SwitchError, match="TiDB has no binlog") as raised:
        await write_changes(estate.task, without, tmp_path)
    assert "export the rows of each shard" in raised.value.remedies[0]
    assert not isinstance(raised.value, pymysql.err.MySQLError)
