"""What shards have and their target lacks: the statements that create it."""

from __future__ import annotations

from actors.switching.shard_objects import ServerObjects, Trigger, lacking_objects
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Column, Table

PARENT, CHILD = TableName("shop", "orders"), TableName("shop", "lines")
SHARDS = {name: Member("a", TableName("s", f"{name.table}_1")) for name in (PARENT, CHILD)}


def table(name: TableName, *keys: str) -> Table:
    columns = (Column("id", "int(11)", "", "", nullable=False),)
    text = ",\n  ".join(["`id` int(11) NOT NULL", *keys])
    return Table(name.schema, name.table, columns, (), f"CREATE TABLE `t` (\n  {text}\n)")


def findings(
    shards: tuple[TableName, ...], key: str, *, of_target: str = ""
) -> list[tuple[str, ...]]:
    members = {
        name: {SHARDS[name]: table(SHARDS[name].name, *([key] if name == CHILD else []))}
        for name in shards
    }
    tables = {
        name: table(name, *([of_target] if of_target and name == CHILD else [])) for name in shards
    }
    found = lacking_objects({"a": ServerObjects()}, ServerObjects(), members, tables)
    return [(result.finding, *result.remedies) for result in found]


KEY = "CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `orders_1` (`id`) ON DELETE CASCADE"


def test_a_foreign_key_names_the_target_of_its_parent() -> None:
    [(finding, remedy)] = findings((PARENT, CHILD), KEY)
    assert finding == "shop.lines lacks the foreign key f of a: s.lines_1"
    assert remedy == (
        "`ALTER TABLE `shop`.`lines` ADD CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES"
        " `shop`.`orders` (`id`) ON DELETE CASCADE`"
    )


def test_a_parent_that_is_not_merged_is_named() -> None:
    [(finding,)] = findings((CHILD,), KEY)
    assert finding.endswith("of a: s.lines_1; the task does not merge s.orders_1")


def test_a_key_over_the_same_columns_is_there() -> None:
    there = "CONSTRAINT `other` FOREIGN KEY (`ID`) REFERENCES `orders` (`id`)"
    assert not findings((PARENT, CHILD), KEY, of_target=there)


def test_a_trigger_is_created_on_the_target() -> None:
    source = ServerObjects([Trigger(SHARDS[CHILD].name, "g", "BEFORE", "INSERT", "SET NEW.id = 1")])
    members = {CHILD: {SHARDS[CHILD]: table(SHARDS[CHILD].name)}}
    [found] = lacking_objects({"a": source}, ServerObjects(), members, {CHILD: table(CHILD)})
    assert found.remedies == (
        "`CREATE TRIGGER `g` BEFORE INSERT ON `shop`.`lines` FOR EACH ROW SET NEW.id = 1`",
    )
