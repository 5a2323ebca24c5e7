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
HIDDEN = "`h` int /*!80023 INVISIBLE */"
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


def test_what_only_some_servers_execute_ends_with_its_definition() -> None:
    made = joined_table([table(ID, HIDDEN), table(ID, HIDDEN, "`x` int")]).create_sql
    assert made.splitlines()[2:4] == [f"  {HIDDEN},", "  `x` int NULL,"]
    made = joined_table([table(ID, HIDDEN, primary=""), table(HIDDEN, "`x` int")]).create_sql
    assert made.count("/*") == made.count("*/") == 1


def test_types_that_have_nothing_in_common() -> None:
    with pytest.raises(NoJoinError):
        joined_table([table(ID, "`a` int"), table(ID, "`a` date")])


def test_a_check_binds_the_target_while_all_shards_have_it() -> None:
    few, small = "CONSTRAINT `few` CHECK (`a` < 9)", "CONSTRAINT `small` CHECK ((`e` < 9))"
    one = table(ID, "`a` int NOT NULL CHECK (`a` > 0)", "`e` int DEFAULT 1 CHECK (`e` > 1)", few)
    two = table(ID, "`a` bigint NOT NULL", "`e` int CHECK ((`e` > 1))", few, small)
    made = joined_table([one, two])
    assert made.create_sql.splitlines()[2:-1] == [
        "  `a` bigint NOT NULL,",
        "  `e` int DEFAULT 1 CHECK (`e` > 1),",
        "  PRIMARY KEY (`id`),",
        "  CONSTRAINT `few` CHECK (`a` < 9)",
    ]
    target = replace(table(ID, "`a` int NOT NULL", "`e` int", few, small), name="t")
    assert widening(target, [two]) == ("ALTER TABLE `d`.`t` MODIFY COLUMN `a` bigint NOT NULL")
    assert widening(target, [one]) == "ALTER TABLE `d`.`t` DROP CONSTRAINT `small`"
    assert widening(one, [target]) == (
        "ALTER TABLE `d`.`t1` MODIFY COLUMN `a` int NOT NULL, MODIFY COLUMN `e` int NULL DEFAULT 1"
    )


def test_json_of_mariadb_has_its_check_in_rows_without_the_column_too() -> None:
    json = "`j` longtext {} CHECK (json_valid(`j`))"
    nullable, other = table(ID, json.format("DEFAULT NULL")), table(ID)
    assert joined_table([nullable, other]) is nullable
    assert "CHECK" in joined_table([other, nullable]).create_sql
    assert "CHECK" not in joined_table([other, table(ID, json.format("NOT NULL"))]).create_sql
    assert "CHECK" not in joined_table([nullable, table(ID, "`j` longtext")]).create_sql


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
