"""The table that is made for shards which differ, and what makes an older one as wide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.joined_table import joined_table, widening
from replicator.sharding.optimistic.partitions import begins_alike, partitions
from replicator.sharding.optimistic.shapes import NoJoinError, shape_of

ID = "`id` int NOT NULL AUTO_INCREMENT"


def table(*lines: str, primary: str = "id", name: str = "t1") -> Table:
    """A table as MariaDB shows it: columns as ``name type more``, then indexes."""
    columns, keys = [], []
    for line in lines:
        word, rest = line.split(" ", 1)
        if word.startswith("`"):
            kind = rest.split(" ")[0]
            columns.append(Column(word.strip("`"), kind, nullable="NOT NULL" not in rest))
        elif word == "UNIQUE":
            names = tuple(rest[rest.index("(") + 1 : -1].replace("`", "").split(","))
            keys.append(UniqueKey(rest.split("`")[1], names, nullable=True))
    if primary:
        keys.insert(0, UniqueKey("PRIMARY", tuple(primary.split(","))))
    shown = [*(line for line in lines if line.startswith("`"))]
    if primary:
        shown.append(f"PRIMARY KEY ({','.join(f'`{n}`' for n in primary.split(','))})")
    shown += [line for line in lines if not line.startswith("`")]
    text = (
        f"CREATE TABLE `{name}` (\n  " + ",\n  ".join(shown) + "\n) ENGINE=InnoDB COMMENT='a, (b'"
    )
    return Table("d", name, tuple(columns), tuple(keys), text)


ONE = table(ID, "`a` int(11) DEFAULT 3", "`e` int", "UNIQUE KEY `u` (`a`)", "KEY `k` (`e`)")
TWO = table(
    "`id` bigint NOT NULL",
    "`a` bigint(20) NOT NULL DEFAULT 4",
    "`x` int NOT NULL DEFAULT 7 COMMENT ', ('",
    "`e` int",
    "UNIQUE KEY `w` (`a`,`e`)",
    primary="id,x",
)


def test_the_target_is_the_first_shard_as_wide_as_all_need() -> None:
    made = joined_table([ONE, TWO])
    assert made.create_sql == (
        "CREATE TABLE `t1` (\n"
        "  `id` bigint NOT NULL AUTO_INCREMENT,\n"
        "  `a` bigint(20) NULL DEFAULT 3,\n"
        "  `x` int NOT NULL DEFAULT 7 COMMENT ', (',\n"
        "  `e` int,\n"
        "  PRIMARY KEY (`id`, `x`),\n"
        "  UNIQUE KEY `w` (`a`, `e`)\n"
        ") ENGINE=InnoDB COMMENT='a, (b'"
    )
    assert [column.name for column in made.columns] == ["id", "a", "x", "e"]
    assert [(key.name, key.columns, key.nullable) for key in made.keys] == [
        ("PRIMARY", ("id", "x"), False),
        ("w", ("a", "e"), True),
    ]
    assert shape_of(made).sense == shape_of(joined_table([TWO, ONE])).sense


def test_shards_that_differ_in_what_no_row_can_tell_make_the_first() -> None:
    other = table("`e` int", ID, "`a` int DEFAULT 4", "UNIQUE KEY `v` (`a`)", "KEY `k` (`e`)")
    assert joined_table([ONE, other]) is ONE
    assert widening(ONE, [other, ONE]) == ""


def test_a_target_that_is_too_narrow_is_told_what_it_lacks() -> None:
    target = replace(table(ID, "`a` int", "`own` int", "KEY `mine` (`own`)"), name="t")
    assert widening(target, [ONE, TWO]) == (
        "ALTER TABLE `d`.`t` DROP PRIMARY KEY,"
        " MODIFY COLUMN `id` bigint NOT NULL AUTO_INCREMENT,"
        " MODIFY COLUMN `a` bigint(20) NULL,"
        " ADD COLUMN `e` int NULL,"
        " ADD COLUMN `x` int NOT NULL DEFAULT 7 COMMENT ', (' AFTER `a`,"
        " ADD PRIMARY KEY (`id`, `x`)"
    )
    assert widening(joined_table([ONE, TWO]), [ONE, TWO]) == ""


def test_types_that_have_nothing_in_common() -> None:
    with pytest.raises(NoJoinError):
        joined_table([table(ID, "`a` int"), table(ID, "`a` date")])


@pytest.mark.parametrize(
    "tail",
    [
        "PARTITION BY RANGE (`id`)\n(PARTITION `p0` VALUES LESS THAN (10) ENGINE = InnoDB,\n"
        " PARTITION `p1` VALUES LESS THAN MAXVALUE ENGINE = InnoDB)",
        "/*!50100 PARTITION BY RANGE (id)\n(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,\n"
        " PARTITION p1 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */",
    ],
)
def test_partitions_as_all_servers_write_them(tail: str) -> None:
    found = partitions(replace(ONE, create_sql=f"{ONE.create_sql}\n{tail}"))
    assert [" ".join(words) for words in found] == [
        "partition by range ( id )",
        "partition p0 values less than ( 10 )",
        "partition p1 values less than maxvalue",
    ]
    assert partitions(ONE) == ()
    assert begins_alike(found, found[:2])
    assert not begins_alike(found, (found[0], found[2]))
