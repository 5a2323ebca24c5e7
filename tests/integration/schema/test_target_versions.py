"""The structures of a target by its version, while its first statements are still to run."""

from __future__ import annotations

from contextlib import closing

import anyio

from actors.lock_state import ShardStatement
from actors.sharding.pessimistic.target_versions import TargetVersions
from replicator.binlog.segments.segment import Statement
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from replicator.sharding.items import GroupState, Item, MemberState
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary
from tests.support.streams.applying import address_of


async def test_a_target_to_be_created_has_the_structure_of_its_shard_when_its_item_is_decided(
    target_server: DatabaseServer, database_name: str
) -> None:
    # A shard that is created at this moment would else be taken for one with the decided item.
    target_server.execute(f"CREATE DATABASE {database_name}")
    target_server.execute(f"CREATE TABLE {database_name}.t1 (id INT PRIMARY KEY, UNIQUE k (id))")
    name, member = TableName(database_name, "t"), TableName(database_name, "t1")
    lock: TargetLock[TableName, ShardStatement] = TargetLock(name, ["a"])
    group = lock.start("a", GroupState(0, ((member, MemberState(0, Place(0, 0))),)), boundary(1))
    event = ShardStatement(Statement(database_name, "", 9, 0))
    group.ddl(Item("alter table <table> drop key k", ("",), member, boundary(2), event))
    found: list[Table | None] = []
    with closing(Connection(address_of(target_server))) as connection:
        shard = await read_table(connection, member)
        versions = TargetVersions(connection, {})

        async def ask() -> None:
            found.append(await versions.at(lock, name, 0))

        async def decide() -> None:
            lock.resolve({"a": boundary(1)})
            await versions.end(name, 0, shard)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(decide)
        assert found == [shard]
        assert await versions.at(lock, name, 0) == shard
