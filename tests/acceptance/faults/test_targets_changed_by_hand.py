"""Somebody changes columns of targets while the task writes: no value is spoiled in silence."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pymysql
import pytest

from replicator.sandbox.server import DatabaseServer
from replicator.status import BlockedPart
from tests.support.tasks.many_targets import ManyTargets
from tests.support.tasks.processes import TaskProcess, task_process

pytestmark = pytest.mark.slow
UTF8 = "CHARACTER SET utf8mb4"


@dataclass(frozen=True)
class Case:
    """A column v with a type, what is done to the target, and two values: the second comes after.

    ``harmless``: the target still takes every value of the shard.
    """

    type: str
    change: str
    before: str
    after: str
    harmless: bool = False


def modify(old: str, new: str, before: str, after: str, *, harmless: bool = False) -> Case:
    return Case(old, f"MODIFY v {new}", before, after, harmless)


CASES: Mapping[str, Case] = {
    "charset": modify(
        f"VARCHAR(20) {UTF8}", "VARCHAR(20) CHARACTER SET latin1", "'a'", "'\u00e9\u4e2d'"
    ),
    "of_table": Case(
        f"VARCHAR(20) {UTF8}", "CONVERT TO CHARACTER SET latin1", "'a'", "'\u00e9\u4e2d'"
    ),
    "moment": modify("DATETIME(6)", "DATETIME", "'2024-01-01'", "'2024-01-01 00:00:00.9'"),
    "stamp": modify(
        "TIMESTAMP(6) NULL", "TIMESTAMP NULL", "'2024-01-01'", "'2024-01-01 00:00:00.9'"
    ),
    "clock": modify("TIME(3)", "TIME", "'10:00:00'", "'10:00:00.900'"),
    "day": modify("DATETIME", "DATE", "'2024-01-01'", "'2024-01-01 20:00:00'"),
    "shorter": modify(f"VARCHAR(20) {UTF8}", f"VARCHAR(3) {UTF8}", "'a'", "'abcdef'"),
    "blanks": modify(f"VARCHAR(20) {UTF8}", f"CHAR(20) {UTF8}", "'a'", "'a  '"),
    "padded": modify("VARBINARY(8)", "BINARY(8)", "x'6162636465666768'", "x'61'"),
    "scale": modify("DECIMAL(10,4)", "DECIMAL(10,1)", "1", "1.2345"),
    "smaller": modify("INT", "SMALLINT", "1", "100000"),
    "sign": modify("INT", "INT UNSIGNED", "1", "-1"),
    "inexact": modify("BIGINT", "DOUBLE", "1", "9007199254740993"),
    "single": modify("DOUBLE", "FLOAT", "1", "0.1"),
    "fewer": modify("ENUM('a','b','c')", "ENUM('a','b')", "'a'", "'c'"),
    "relabelled": modify("ENUM('a','b','c')", "ENUM('c','b','a')", "'a'", "'c'", harmless=True),
    "filled": modify("INT", "INT NOT NULL DEFAULT 7", "1", "NULL"),
    "wider": modify("INT", "BIGINT", "1", "2", harmless=True),
    "computed": Case("INT", "DROP v, ADD v INT AS (id * 10) STORED", "10", "99"),
    "more": Case("INT", "ADD g INT AS (v * 2) VIRTUAL", "1", "2", harmless=True),
    "own": Case("INT", "ADD own INT DEFAULT 5", "1", "2", harmless=True),
    "numbered": Case("INT", "MODIFY v INT NOT NULL AUTO_INCREMENT, ADD KEY (v)", "1", "NULL"),
}


@pytest.fixture(params=["mariadb_target", "mysql_target", "tidb_target"])
def target(request: pytest.FixtureRequest) -> DatabaseServer:
    found: DatabaseServer = request.getfixturevalue(request.param)
    return found


def blocked(task: TaskProcess, many: ManyTargets) -> dict[str, BlockedPart]:
    status = task.status(many.name)
    return {p.name.partition(".")[2]: p for p in status.blocked if p.error} if status else {}


def values(server: DatabaseServer, many: ManyTargets, table: str) -> list[tuple[str, ...]]:
    rows = server.execute(f"SELECT id, v FROM {many.full(table)} ORDER BY id")
    return [tuple(map(str, row)) for row in rows]


def change(many: ManyTargets, statements: Mapping[str, str]) -> list[str]:
    """Change the targets; returns those that the server lets be changed so."""
    done = []
    for table, statement in statements.items():
        # TiDB refuses some of them.
        with suppress(pymysql.MySQLError):
            many.at_target("SET sql_mode=''", f"ALTER TABLE {table} {statement}")
            done.append(table)
    assert len(done) > len(statements) - 5
    return done


def test_columns_that_are_changed(
    mariadb_source: DatabaseServer, target: DatabaseServer, database_name: str, tmp_path: Path
) -> None:
    many = ManyTargets(
        {"a": mariadb_source},
        target,
        database_name,
        tmp_path,
        tables=CASES,
        mode="",
        columns={n: f"(id INT PRIMARY KEY, v {c.type}) {UTF8}" for n, c in CASES.items()},
    )
    with task_process(many.file, tmp_path) as task:
        task.until_state(many.name, "running")
        many.do("a", *(f"INSERT INTO {n} VALUES (1, {c.before})" for n, c in CASES.items()))
        many.until_equal(task)
        changed = change(many, {name: case.change for name, case in CASES.items()})
        more = [f"INSERT INTO {name} VALUES (2, {CASES[name].after})" for name in changed]
        many.do("a", "SET NAMES utf8mb4", *more)
        left = set(changed)

        def settled() -> bool:
            left.difference_update(blocked(task, many))
            for name in tuple(left):
                if len(values(target, many, name)) > 1:
                    left.discard(name)
            return not left

        task.until(settled, "rows or a fault of each target")
        found = blocked(task, many)
        unlike = {
            name: (values(target, many, name), values(mariadb_source, many, name))
            for name in changed
            if name not in found
            and values(target, many, name) != values(mariadb_source, many, name)
        }
        assert not unlike
        assert not [name for name in found if CASES[name].harmless]
        assert all("v" in part.error.message for part in found.values() if part.error)
