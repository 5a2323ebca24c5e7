"""The structures of a target by its version, while its first statements are still to run."""

from __future__ import annotations

from contextlib import closing
from typing import cast

import anyio

from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.sharding.pessimistic.group import GroupTools, PessimisticGroup
from actors.sharding.pessimistic.target_versions import TargetVersions
from actors.sharding.pessimistic.waiting_parents import WaitingParents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.routing.columns.member_columns import AS_THEY_ARE
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.ddl_effects import Effect, effects_of
from replicator.schema.registry.registry import KnownStructure, Provenance, SchemaRegistry
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
            found.append(await versions.at(lock, 0))

        async def decide() -> None:
            lock.resolve({"a": boundary(1)})
            await versions.end(name, 0, shard)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(decide)
        assert found == [shard]
        assert await versions.at(lock, 0) == shard


class Reading:
    """Learns the structure of a table as its server has it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def learn(self, source: str, effect: Effect, statement: Statement) -> KnownStructure:
        found = await read_table(self._connection, effect.table)
        return KnownStructure(found, Provenance.LEARNED)


async def test_a_shard_with_the_next_structure_waits_for_it_though_the_target_is_not_there_yet(
    target_server: DatabaseServer, database_name: str
) -> None:
    target_server.execute(f"CREATE DATABASE {database_name}")
    created = [
        f"CREATE TABLE {database_name}.t1 (id INT PRIMARY KEY)",
        f"CREATE TABLE {database_name}.t2 (id INT PRIMARY KEY, c INT)",
        f"CREATE TABLE {database_name}.t3 (id INT PRIMARY KEY)",
    ]
    target_server.execute(*created)
    name, registry = TableName(database_name, "t"), SchemaRegistry()
    lock: TargetLock[TableName, ShardStatement] = TargetLock(name, ["a"])
    group = lock.start("a", GroupState(0, ()), boundary(1))
    with closing(Connection(address_of(target_server))) as connection:
        tools = GroupTools(
            registry,
            lambda _: AS_THEY_ARE,
            Mailbox(10),
            Mailbox(10),
            cast(SchemaTracker, Reading(connection)),
            TargetVersions(connection, {}),
        )
        parents = WaitingParents(registry, {})
        actor = PessimisticGroup("a", registry.target(name), group, lock, None, tools, parents)
        for place, sql in enumerate(created, 2):
            [effect] = effects_of(classify(sql, default_schema=""), lambda _: name, [])
            await actor.take(effect, Statement(database_name, sql, place, 0))
    versions = {member.table: state.version for member, state in group.members.items()}
    assert versions == {"t1": 0, "t2": 1, "t3": 0}
