"""What SHOW CREATE TABLE tells of the columns that a MariaDB hides."""

from __future__ import annotations

import pytest

from replicator.schema.structure.hidden_columns import (
    Period,
    hidden_columns,
    system_period,
    with_hidden,
    without_period,
)
from replicator.schema.structure.structure import Column, Table, UniqueKey

VERSIONED = "CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING"
PERIOD = """CREATE TABLE `t` (
  `a` int(11) NOT NULL,
  `s` timestamp(6) GENERATED ALWAYS AS ROW START,
  `e` timestamp(6) GENERATED ALWAYS AS ROW END,
  PRIMARY KEY (`a`,`e`),
  UNIQUE KEY `b` (`b`) USING HASH,
  PERIOD FOR SYSTEM_TIME (`s`, `e`)
) ENGINE=InnoDB WITH SYSTEM VERSIONING
 PARTITION BY SYSTEM_TIME"""


def table(create_sql: str, *names: str) -> Table:
    columns = tuple(Column(name, "int(11)") for name in names)
    return Table("s", "t", columns, (UniqueKey("PRIMARY", ("a", "E")),), create_sql)


def hidden(create_sql: str, *names: str) -> list[str]:
    return [column.name for column in hidden_columns(table(create_sql, *names))]


def test_times_come_before_hashes() -> None:
    keys = ["UNIQUE KEY `x` (`a`)", "KEY `z` (`a`)", "UNIQUE KEY `y` (`b`,`c`)"]
    items = ",\n  ".join(["`a` text", *(f"{key} USING HASH" for key in keys)])
    sql = f"CREATE TABLE `t` (\n  {items}\n) ENGINE=InnoDB WITH SYSTEM VERSIONING"
    assert hidden(sql, "a") == ["row_start", "row_end", "DB_ROW_HASH_1", "DB_ROW_HASH_2"]


def test_a_period_of_its_own_is_not_hidden() -> None:
    assert system_period(PERIOD) == Period("s", "e")
    assert hidden(PERIOD, "a", "s", "e") == ["DB_ROW_HASH_1"]
    assert without_period(table(PERIOD, "a", "s", "e")).keys == (UniqueKey("PRIMARY", ("a",)),)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE `t` (\n  `a` int,\n  UNIQUE KEY `a` (`a`) USING HASH\n) ENGINE=MEMORY",
        "CREATE TABLE `t` (\n  `a` int COMMENT 'UNIQUE KEY (b) USING HASH',\n"
        "  UNIQUE KEY `USING HASH` (`a`) USING BTREE\n) ENGINE=InnoDB"
        " COMMENT=') WITH SYSTEM VERSIONING'",
        "CREATE TABLE `t` (\n  `a` date, `b` date,\n  PERIOD FOR `p` (`a`, `b`),\n"
        "  UNIQUE KEY `r` (`p` WITHOUT OVERLAPS)\n) ENGINE=InnoDB",
        "",
    ],
)
def test_tables_that_hide_nothing(sql: str) -> None:
    assert hidden(sql, "a") == []
    assert system_period(sql) is None


def test_the_number_of_columns_tells_whether_events_have_them() -> None:
    known = table(VERSIONED, "a")
    assert [c.name for c in with_hidden(known, 3).columns] == ["a", "row_start", "row_end"]
    assert with_hidden(known, 1) == known
    assert with_hidden(known, 2) == known
