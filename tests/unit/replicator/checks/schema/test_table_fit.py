from __future__ import annotations

from replicator.checks.schema.table_fit import colliding_keys, member_differences
from replicator.checks.target.target_tables import key_warnings
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = Column("id", "int(11)", nullable=False, auto_increment=True)
PRIMARY = UniqueKey("PRIMARY", ("id",))


def table(
    *columns: Column,
    keys: tuple[UniqueKey, ...] = (PRIMARY,),
    extra: str = "",
    name: str = "t1",
) -> Table:
    lines = [f"  `{column.name}` {column.type}" for column in columns]
    text = f"CREATE TABLE `{name}` (\n" + ",\n".join(lines) + f"{extra}\n) ENGINE=InnoDB"
    return Table("s", name, columns, keys, text)


def test_the_same_structure_has_no_differences() -> None:
    assert member_differences(table(ID), table(ID)) == []


def test_names_are_compared_without_case() -> None:
    member = table(ID, Column("Name", "int(11)"))
    assert member_differences(member, table(ID, Column("name", "int(11)"))) == []


def test_a_missing_column_comes_with_the_statement_that_adds_it() -> None:
    (found,) = member_differences(table(ID, Column("a", "varchar(9)")), table(ID, name="T"))
    assert found.state == "failed"
    assert found.way_out == "ALTER TABLE `s`.`T` ADD COLUMN `a` varchar(9);"


def test_a_computed_column_may_be_left_out() -> None:
    member = table(ID, Column("ends", "timestamp(6)", generated=True))
    (found,) = member_differences(member, table(ID, name="T"))
    assert found.state == "warning"
    assert "`ends`" in found.text
    (found,) = member_differences(member, table(ID, Column("ends", "datetime(6)"), name="T"))
    assert found.state == "failed"
    assert "ALTER TABLE `s`.`T` DROP COLUMN `ends`;" in found.way_out


def test_a_type_that_only_mariadb_has_comes_with_another_one() -> None:
    for kind, text in (("uuid", 36), ("inet6", 39), ("inet4", 15)):
        member = table(ID, Column("a", kind))
        (found,) = member_differences(member, table(ID, Column("a", "binary(16)")))
        assert found.state == "failed"
        assert f"MODIFY COLUMN `a` varchar({text});" in found.way_out
        assert member_differences(member, table(ID, Column("a", f"varchar({text})"))) == []


def test_null_into_not_null_fails() -> None:
    wanted = table(ID, Column("a", "int(11)", nullable=False))
    (found,) = member_differences(table(ID, Column("a", "int(11)")), wanted)
    assert found.state == "failed"
    assert "NOT NULL" in found.text


def test_a_column_of_the_target_alone_needs_a_default() -> None:
    extra = Column("shard", "varchar(9)", nullable=False)
    member = table(ID)
    (found,) = member_differences(member, table(ID, extra))
    assert "`shard`" in found.text
    with_default = table(ID, extra, extra=" NOT NULL DEFAULT 'x'")
    assert member_differences(member, with_default) == []


def test_a_default_in_a_comment_is_none() -> None:
    extra = Column("shard", "varchar(9)", nullable=False)
    target = table(ID, extra, extra=" NOT NULL COMMENT 'has no DEFAULT'")
    assert len(member_differences(table(ID), target)) == 1


def test_a_key_that_compares_otherwise_is_told() -> None:
    def keyed(collation: str) -> Table:
        column = Column("k", "varchar(9)", "utf8mb4", collation, nullable=False)
        return table(column, keys=(UniqueKey("PRIMARY", ("k",)),))

    (found,) = member_differences(keyed("utf8mb4_bin"), keyed("utf8mb4_general_ci"))
    assert found.state == "warning"


def test_auto_increment_keys_collide_unless_the_target_keeps_them_apart() -> None:
    members = [table(ID), table(ID)]
    assert colliding_keys(members, None) == ("id", [frozenset({"id"})])
    shard = Column("shard", "varchar(9)", nullable=False)
    apart = table(ID, shard, keys=(UniqueKey("PRIMARY", ("id", "shard")),))
    assert colliding_keys(members, apart) == ("id", [])
    assert colliding_keys(members, apart, {"Shard"}) == ("id", [frozenset({"id", "shard"})])
    assert colliding_keys(members, table(ID, keys=())) == ("id", [])


def test_notes_about_keys() -> None:
    unique = UniqueKey("u", ("a",), nullable=True)
    assert [r.state for r in key_warnings(table(ID, keys=()))] == ["warning"]
    assert "may be NULL" in key_warnings(table(ID, keys=(unique,)))[0].finding
    assert "further" in key_warnings(table(ID, keys=(PRIMARY, unique)))[0].finding
    assert key_warnings(table(ID)) == []
