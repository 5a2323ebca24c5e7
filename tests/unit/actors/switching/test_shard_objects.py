"""What shards have and their target lacks: the statements that create it."""

from __future__ import annotations

from dataclasses import replace

from actors.switching.shard_objects import ServerObjects, Trigger, lacking_objects
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Column, Table, UniqueKey

PARENT, CHILD = TableName("shop", "orders"), TableName("shop", "lines")
SHARDS = {name: Member("a", TableName("s", f"{name.table}_1")) for name in (PARENT, CHILD)}


def table(name: TableName, *keys: str) -> Table:
    columns = (Column("id", "int(11)", "", "", nullable=False),)
    text = ",\n  ".join(["`id` int(11) NOT NULL", *keys])
    unique = (UniqueKey("PRIMARY", ("id",)),)
    return Table(name.schema, name.table, columns, unique, f"CREATE TABLE `t` (\n  {text}\n)")


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


def keyed(name: TableName, *keys: str) -> Table:
    """A target with an extracted column in its key."""
    made = table(name, *keys)
    columns = (*made.columns, Column("shop", "varchar(9)"))
    return replace(made, columns=columns, keys=(UniqueKey("PRIMARY", ("id", "shop")),))


def test_a_foreign_key_gets_the_extracted_columns_of_its_parent() -> None:
    members = {name: {SHARDS[name]: table(SHARDS[name].name)} for name in (PARENT, CHILD)}
    members[CHILD] = {SHARDS[CHILD]: table(SHARDS[CHILD].name, KEY)}
    nothing = ServerObjects()
    wide = "FOREIGN KEY (`id`, `shop`) REFERENCES {} (`id`, `shop`) ON DELETE CASCADE"

    def found(*keys: str) -> list[tuple[str, tuple[str, ...]]]:
        tables = {PARENT: keyed(PARENT), CHILD: keyed(CHILD, *keys)}
        results = lacking_objects({"a": nothing}, nothing, members, tables)
        return [(result.finding, result.remedies) for result in results]

    statement = f"ADD CONSTRAINT `f` {wide.format('`shop`.`orders`')}"
    [(finding, (remedy,))] = found()
    assert finding.startswith("shop.lines lacks the foreign key f")
    assert remedy == f"`ALTER TABLE `shop`.`lines` {statement}`"
    assert found(f"CONSTRAINT `f` {wide.format('`orders`')}") == []
    # A key without them reaches rows of other shards.
    [(finding, (remedy,))] = found(KEY.replace("orders_1", "orders"))
    assert "also those of other shards" in finding
    assert remedy == (
        "ALTER TABLE `shop`.`lines` DROP FOREIGN KEY `f`;"
        f" ALTER TABLE `shop`.`lines` ADD {wide.format('`shop`.`orders`')};"
    )


def test_a_trigger_is_created_on_the_target() -> None:
    source = ServerObjects([Trigger(SHARDS[CHILD].name, "g", "BEFORE", "INSERT", "SET NEW.id = 1")])
    members = {CHILD: {SHARDS[CHILD]: table(SHARDS[CHILD].name)}}
    [found] = lacking_objects({"a": source}, ServerObjects(), members, {CHILD: table(CHILD)})
    assert found.remedies == (
        "`CREATE TRIGGER `g` BEFORE INSERT ON `shop`.`lines` FOR EACH ROW SET NEW.id = 1`",
    )
