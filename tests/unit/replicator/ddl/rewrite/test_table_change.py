"""The ALTER TABLE from one definition of a table to another."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.rewrite.table_change import NoChangeError, altering_actions

OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=latin1"
ID = "`id` int(11) NOT NULL"
TEXT = "`v` varchar(9) DEFAULT NULL"


def actions(one: str, other: str, options: str = OPTIONS) -> list[str]:
    """The actions between tables with these lines; the second one with these options."""
    return altering_actions(
        table_definition(f"CREATE TABLE `t` (\n  {one}\n) {OPTIONS}"),
        table_definition(f"CREATE TABLE `t` (\n  {other}\n) {options}"),
    )


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (ID, ID, []),
        (ID, f"{ID}, {TEXT}", ["ADD COLUMN `v` varchar(9) CHARACTER SET latin1 DEFAULT NULL"]),
        (f"{ID}, {TEXT}", ID, ["DROP COLUMN `v`"]),
        (
            f"{ID}, {TEXT}",
            f"{TEXT}, {ID}",
            ["MODIFY COLUMN `v` varchar(9) CHARACTER SET latin1 DEFAULT NULL FIRST"],
        ),
        (f"{ID}, KEY `k` (`id`)", f"{ID}, KEY `K` (`id`)", []),
        (
            f"{ID}, PRIMARY KEY (`id`), KEY `k` (`id`)",
            f"{ID}, UNIQUE KEY `k` (`id`)",
            ["DROP PRIMARY KEY", "DROP KEY `k`", "ADD UNIQUE KEY `k` (`id`)"],
        ),
        (
            f"{ID}, CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`) ON DELETE NO ACTION",
            f"{ID}, CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`)",
            [],
        ),
        (
            f"{ID}, CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`)",
            f"{ID}, CONSTRAINT `c` CHECK (`id` > 0)",
            ["DROP FOREIGN KEY `f`", "ADD CONSTRAINT `c` CHECK (`id` > 0)"],
        ),
    ],
)
def test_what_differs_is_changed(one: str, other: str, wanted: list[str]) -> None:
    found = actions(one, other)
    assert [action.split(" AFTER ")[0] for action in found] == wanted


def test_a_column_keeps_its_charset_if_the_table_gets_another() -> None:
    found = actions(
        f"{ID}, {TEXT}",
        f"{ID}, `v` varchar(9) CHARACTER SET latin1 DEFAULT NULL",
        "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='c'",
    )
    assert found == ["DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "COMMENT='c'"]


def test_partitions_are_not_changed() -> None:
    with pytest.raises(NoChangeError, match="partitioning"):
        actions(ID, ID, f"{OPTIONS} PARTITION BY HASH (`id`) PARTITIONS 2")
