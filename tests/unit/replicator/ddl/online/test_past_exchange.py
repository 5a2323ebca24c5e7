"""Whether an exchange that lies behind was all that happened to its tables."""

from __future__ import annotations

import pytest

from replicator.ddl.online.online_ddl import Beside, exchanged_ghost
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName

T, GHOST, TRASH = TableName("d", "t"), TableName("d", "_t_gho"), TableName("d", "_t_del")
EXCHANGE = "RENAME TABLE t TO _t_del, _t_gho TO t"


def beside(table: TableName) -> Beside | None:
    return {GHOST: Beside(T, trash=False), TRASH: Beside(T, trash=True)}.get(table)


def ghost_of(*statements: str) -> TableName | None:
    behind = [classify(sql, default_schema="d") for sql in statements]
    return exchanged_ghost(T, TRASH, behind, beside)


@pytest.mark.parametrize(
    "statements",
    [
        (EXCHANGE,),
        ("CREATE TABLE _t_del (id INT)", "DROP TABLE _t_del", EXCHANGE, "DROP TABLE _t_ghc"),
        ("ALTER TABLE _t_gho AUTO_INCREMENT=7", "ALTER TABLE u ADD a INT", EXCHANGE),
        (EXCHANGE, "CREATE TABLE _t_gho LIKE t", "ALTER TABLE _t_gho ADD d INT"),
        (EXCHANGE, "DROP TRIGGER pt_osc_d_t_del", "DROP DATABASE e"),
    ],
)
def test_an_exchange_and_nothing_else(statements: tuple[str, ...]) -> None:
    assert ghost_of(*statements) == GHOST


@pytest.mark.parametrize(
    "statements",
    [
        (),
        ("ALTER TABLE t ADD a INT", EXCHANGE),
        ("CREATE INDEX i ON t (a)", EXCHANGE),
        ("ALTER TABLE _t_gho ADD a INT", EXCHANGE),
        ("CREATE TABLE _t_gho LIKE t", EXCHANGE),
        (EXCHANGE, "ALTER TABLE t ADD a INT"),
        (EXCHANGE, "ALTER TABLE _t_del ADD a INT"),
        (EXCHANGE, "DROP TABLE _t_del", "CREATE TABLE IF NOT EXISTS _t_del (id INT)"),
        (EXCHANGE, "RENAME TABLE t TO u, _t_del TO t"),
        (EXCHANGE, "WHAT IS THIS"),
        (EXCHANGE, "DROP DATABASE d"),
        ("RENAME TABLE t TO _t_del, u TO t",),
        ("RENAME TABLE t TO _t_old, _t_gho TO t",),
        ("RENAME TABLE t TO _t_del, _t_gho TO t, u TO _t_gho",),
        ("RENAME TABLE t TO _t_del", "RENAME TABLE _t_gho TO t"),
    ],
)
def test_anything_else(statements: tuple[str, ...]) -> None:
    assert ghost_of(*statements) is None
