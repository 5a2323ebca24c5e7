"""What a logged statement may do besides what it says."""

from __future__ import annotations

import pytest

from replicator.ddl.analysis.side_effects import (
    may_change_side_effects,
    mentioned,
    stored_functions,
)
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.parser.statement_kinds import classify

CHECKSUM = (
    "REPLACE INTO `percona`.`checksums` (db, tbl, chunk, this_cnt, this_crc) SELECT 's', 't1', '1',"
    " COUNT(*) AS cnt, COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`, `v`,"
    " CONCAT(ISNULL(`v`)))) AS UNSIGNED)), 10, 16)), 0) AS crc FROM `s`.`t1` FORCE INDEX(`PRIMARY`)"
    " WHERE ((`id` >= '1')) AND ((`id` <= '9')) /*checksum chunk*/"
)
"""As pt-table-checksum writes it."""


def read(sql: str) -> ParsedStatement:
    return classify(sql, default_schema="x")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        (CHECKSUM, ()),
        ("INSERT INTO u (a, b) VALUES (1, (2)) ON DUPLICATE KEY UPDATE a = VALUES(a)", ()),
        ("UPDATE u SET a = IF(b IN (1, 2), NOW(6), DATE_ADD(b, INTERVAL 1 DAY))", ()),
        ("INSERT INTO u VALUES (f(1))", ("f",)),
        ("INSERT INTO u VALUES (s.lower(1))", ("lower",)),
        ("INSERT INTO u SELECT `count`(1)", ("count",)),
        ("DELETE FROM u WHERE a = g (b) AND h(1)", ("g", "h")),
        ("INSERT INTO u VALUES (NEXTVAL(q))", ("NEXTVAL",)),
    ],
)
def test_calls_of_what_the_server_does_not_have_itself(sql: str, found: tuple[str, ...]) -> None:
    assert stored_functions(read(sql)) == found


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("CREATE TRIGGER a AFTER INSERT ON other FOR EACH ROW SET @a = 1", True),
        ("DROP TRIGGER a", True),
        ("CREATE VIEW v AS SELECT 1", True),
        ("FROBNICATE u", True),
        ("DROP TABLE U", True),
        ("DROP TABLE x.a, x.u", True),
        ("DROP TABLE y.u", False),
        ("DROP TEMPORARY TABLE u", False),
        ("RENAME TABLE a TO u", True),
        ("RENAME TABLE u TO a", True),
        ("RENAME TABLE b TO a", False),
        ("ALTER TABLE u RENAME TO a", True),
        ("ALTER TABLE u ADD b INT", False),
        ("CREATE TABLE IF NOT EXISTS u (a INT)", False),
        ("CREATE OR REPLACE TABLE u (a INT)", True),
        ("DROP DATABASE x", True),
        ("DROP DATABASE y", False),
        ("GRANT SELECT ON u TO v", False),
    ],
)
def test_statements_that_may_give_or_take_triggers(sql: str, changes: bool) -> None:
    assert may_change_side_effects(read(sql), "x", "u") is changes


def test_names_are_mentioned_in_any_case_and_quotes() -> None:
    statement = read("INSERT INTO u SELECT * FROM `V`, w WHERE a = 'z'")
    assert mentioned(statement, {"v", "w", "z", "y"}) == ("v", "w")
