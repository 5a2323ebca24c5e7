"""What was done to a table, told from what it was and what it is."""

from __future__ import annotations

import pytest

from replicator.mysql.names import TableName
from replicator.schema.effects.derived_change import NotDerivableError, derived_alter, rebuilding
from replicator.schema.structure.structure import Table

BODY = ["`id` int(11) NOT NULL", "`a` int(11) DEFAULT NULL", "`v` varchar(9) DEFAULT 'x,y'"]
KEYS = ["PRIMARY KEY (`id`)", "KEY `i` (`a`)"]
OPTIONS = "ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=latin1 COLLATE=latin1_bin COMMENT='c)'"


def table(body: list[str], options: str = OPTIONS, name: str = "t") -> Table:
    sql = f"CREATE TABLE `{name}` (\n  " + ",\n  ".join(body) + f"\n) {options}"
    return Table("d", name, (), (), sql)


def derived(body: list[str], options: str = OPTIONS) -> str:
    text = derived_alter(
        table([*BODY, *KEYS]), table(body, options, "_t_gho"), TableName("d", "_t_gho")
    )
    return text.removeprefix("ALTER TABLE `d`.`_t_gho` ")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([*BODY, *KEYS], ""),
        ([*BODY, "`c` int(11) DEFAULT 7", *KEYS], "ADD COLUMN `c` int(11) DEFAULT 7"),
        (
            [BODY[0], "`c` int(11)", "`d` enum('a,b',')')", *BODY[1:], *KEYS],
            "ADD COLUMN `c` int(11) AFTER `id`, ADD COLUMN `d` enum('a,b',')') AFTER `c`",
        ),
        (["`c` int(11)", *BODY, *KEYS], "ADD COLUMN `c` int(11) FIRST"),
        ([*BODY[:2], *KEYS], "DROP COLUMN `v`"),
        (
            [BODY[0], "`A` bigint(20) NOT NULL", BODY[2], *KEYS],
            "MODIFY COLUMN `A` bigint(20) NOT NULL",
        ),
        ([*BODY, KEYS[0]], "DROP INDEX `i`"),
        ([*BODY, *KEYS, "UNIQUE KEY `u` (`v`(3))"], "ADD UNIQUE KEY `u` (`v`(3))"),
        (
            [*BODY, "PRIMARY KEY (`id`,`a`)", "KEY `i` (`v`)"],
            "DROP PRIMARY KEY, DROP INDEX `i`, ADD PRIMARY KEY (`id`,`a`), ADD KEY `i` (`v`)",
        ),
        (
            [*BODY, "`h` int /*!80023 INVISIBLE */", *KEYS],
            "ADD COLUMN `h` int /*!80023 INVISIBLE */",
        ),
    ],
)
def test_columns_and_keys(body: list[str], expected: str) -> None:
    assert derived(body) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (OPTIONS.replace("=5", "=77"), ""),
        (OPTIONS.replace("'c)'", "'new'"), "COMMENT='new'"),
        (OPTIONS.replace(" COMMENT='c)'", ""), "COMMENT=''"),
        (OPTIONS + " ROW_FORMAT=COMPRESSED", "ROW_FORMAT=COMPRESSED"),
        (
            OPTIONS.replace("latin1", "utf8mb4"),
            "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        ),
    ],
)
def test_options(options: str, expected: str) -> None:
    assert derived([*BODY, *KEYS], options) == expected


@pytest.mark.parametrize(
    ("body", "options"),
    [
        ([BODY[0], "`b` int(11) DEFAULT NULL", BODY[2], KEYS[0]], OPTIONS),
        ([BODY[0], BODY[2], BODY[1], *KEYS], OPTIONS),
        ([*BODY, *KEYS, "CONSTRAINT `x` CHECK (`a` > 0)"], OPTIONS),
        ([*BODY, *KEYS], OPTIONS + "\n PARTITION BY HASH (`id`)"),
        (
            [*BODY[:2], "`v` varchar(9) CHARACTER SET latin1 DEFAULT 'x,y'", *KEYS],
            OPTIONS.replace("latin1", "utf8mb4"),
        ),
    ],
    ids=["another name", "another order", "constraints", "partitions", "charset"],
)
def test_what_can_not_be_told(body: list[str], options: str) -> None:
    with pytest.raises(NotDerivableError):
        derived(body, options)


def test_names_of_constraints_do_not_matter() -> None:
    one, other = (
        table([*BODY, *KEYS, f"CONSTRAINT `{name}` CHECK (`a` > 0)"]) for name in ("c1", "_c1")
    )
    assert derived_alter(one, other, TableName("d", "x")) == ""
    assert rebuilding(one, TableName("d", "x")) == "ALTER TABLE `d`.`x` ENGINE=InnoDB"


def test_an_option_that_is_lost_can_not_be_told() -> None:
    with pytest.raises(NotDerivableError):
        derived_alter(
            table([*BODY, *KEYS], OPTIONS + " ROW_FORMAT=COMPRESSED"),
            table([*BODY, *KEYS]),
            TableName("d", "x"),
        )
