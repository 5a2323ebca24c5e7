"""Members that keep their former rows are told, and those refused whose rows no binlog has."""

from __future__ import annotations

from replicator.checks.schema.agreement import Shard
from replicator.checks.schema.structures import check_versioning
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.structure import Column, Table

NAME = TableName("merged", "t")
PERIOD = (
    "CREATE TABLE `t` (\n  `a` int(11),\n  `s` {kind} GENERATED ALWAYS AS ROW START,\n"
    "  `e` {kind} GENERATED ALWAYS AS ROW END,\n  PERIOD FOR SYSTEM_TIME (`s`, `e`)\n"
    ") ENGINE=InnoDB WITH SYSTEM VERSIONING"
)


def shard(create_sql: str, kind: str = "") -> Shard:
    names = ("s", "e") if kind else ("a",)
    columns = tuple(Column(name, kind or "int(11)", generated=True) for name in names)
    member = Member("A", TableName("s", "t"))
    return Shard(member, Table("s", "t", columns, (), create_sql), later_ddl=False)


def states(*shards: Shard) -> list[str]:
    return [result.state for result in check_versioning(shards, NAME)]


def test_tables_without_versioning_are_not_mentioned() -> None:
    assert states(shard("CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=InnoDB")) == []


def test_versioned_tables_are_told() -> None:
    implicit = "CREATE TABLE `t` (\n  `a` int(11)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING"
    assert states(shard(implicit)) == ["warning"]
    kind = "timestamp(6)"
    assert states(shard(PERIOD.format(kind=kind), kind)) == ["warning"]


def test_those_by_transactions_are_refused() -> None:
    kind = "bigint(20) unsigned"
    assert states(shard(PERIOD.format(kind=kind), kind)) == ["failed"]
