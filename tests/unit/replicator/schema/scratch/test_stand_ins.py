"""Which statements take a structure from another table; what scratch tables are made with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.schema.scratch.scratch_table import is_like
from replicator.schema.scratch.stand_ins import stand_in, taken_over
from replicator.schema.structure.structure import Column, Table


@pytest.mark.parametrize(
    ("sql", "like"),
    [
        ("CREATE TABLE t1 LIKE p", True),
        ("CREATE TABLE t1 (LIKE p)", True),
        ("CREATE TABLE t1 (id INT, FOREIGN KEY (id) REFERENCES p (id))", False),
        ("CREATE TABLE t1 (id INT REFERENCES p (id))", False),
        ("CREATE TABLE t1 (id INT)", False),
    ],
)
def test_a_parent_is_no_pattern(sql: str, like: bool) -> None:
    assert is_like(classify(sql, default_schema="s")) is like


PARTED = {
    "MariaDB": "\n PARTITION BY RANGE (`id`)\n(PARTITION `p0` VALUES LESS THAN (10) ENGINE = Aria)",
    "MySQL": "\n/*!50100 PARTITION BY HASH (`id`)\nPARTITIONS 3 */",
    "none": "",
}


@pytest.mark.parametrize("server", PARTED)
def test_a_stand_in_has_the_partitions_of_the_table(server: str) -> None:
    """The collation is unknown where a statement is tried; its partitions are not."""
    create = "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `s` varchar(9),\n  PRIMARY KEY (`id`)\n)"
    default = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_uca1400_ai_ci"
    key = Column("id", "int", nullable=False)
    text = Column("s", "varchar(9)", "utf8mb4", "utf8mb4_uca1400_ai_ci")
    before = Table("d", "t", (key, text), (), f"{create}{default} COMMENT=' PARTITION BY x'")
    parted = replace(before, create_sql=before.create_sql + PARTED[server])
    shard_state = stand_in(parted, "ALTER TABLE t ADD c INT")
    assert shard_state.create_sql.endswith(f"COLLATE=utf8mb4_unicode_ci{PARTED[server]}")
    plain = stand_in(parted, "ALTER TABLE t ADD c INT", checks=False)
    assert plain.create_sql.endswith("COLLATE=utf8mb4_unicode_ci")
    after = replace(parted, create_sql=shard_state.create_sql)
    found = taken_over(before, before, after, (), shard_state)
    assert found.create_sql.endswith(f"COLLATE=utf8mb4_uca1400_ai_ci{PARTED[server]}")
