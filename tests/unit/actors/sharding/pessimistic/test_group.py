"""The coordinated group actor: what others see of it while it is in the middle of a segment."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import anyio

from actors.mailboxes.actor import Mailbox
from actors.mailboxes.messages import TargetSegment, WriterMessage
from actors.saved.lock_state import ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.setup.task_setup import columns_of
from actors.sharding.pessimistic.group import GroupTools, PessimisticGroup
from actors.sharding.pessimistic.lock_messages import LockMessage
from actors.sharding.pessimistic.target_versions import TargetVersions
from actors.sharding.pessimistic.waiting_parents import WaitingParents
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, effects_of
from replicator.schema.registry.registry import UNSEEN, KnownStructure, SchemaRegistry
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock
from replicator.watermark import Place, boundary
from tests.support.streams.row_columns import places, row_events

TARGET = TableName("m", "t")
SHARD = TableName("s", "t1")


class SlowTracker:
    """Learns the structure after a filtered statement when the test lets it."""

    def __init__(self) -> None:
        self.go = anyio.Event()

    async def learn(self, source: str, effect: Effect, statement: Statement) -> KnownStructure:
        if effect.filtered:
            await self.go.wait()
        return UNSEEN


def tools_of(registry: SchemaRegistry, writer: Mailbox[WriterMessage]) -> GroupTools:
    """Those of a group that writes into a mailbox, and has no servers."""
    return GroupTools(
        registry,
        columns_of({}),
        writer,
        Mailbox(1),
        cast(SchemaTracker, SlowTracker()),
        TargetVersions(cast(Connection, None), {}),
    )


async def test_a_cutover_in_the_middle_of_a_segment_stands_behind_the_rows_of_that_segment() -> (
    None
):
    registry = SchemaRegistry()
    number = registry.join(Member("a", SHARD), TARGET)
    writer: Mailbox[WriterMessage] = Mailbox(10)
    coordinator: Mailbox[LockMessage] = Mailbox(1)
    tracker = SlowTracker()
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ((SHARD, MemberState(0, Place(0, 0))),)), boundary(1))
    tools = GroupTools(
        registry,
        columns_of({}),
        writer,
        coordinator,
        cast(SchemaTracker, tracker),
        TargetVersions(cast(Connection, None), {}),
    )
    actor = PessimisticGroup(
        "a", registry.target(TARGET), group, lock, None, tools, WaitingParents(registry, {})
    )
    table_map = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())
    sql = "ALTER TABLE s.t1 ADD c INT"
    [effect] = effects_of(classify(sql, default_schema="s"), lambda _: TARGET, [])
    message = TargetSegment(
        "a",
        0,
        7,
        actor.target,
        row_events([(number, table_map)], [5], [1]),
        (effect, replace(effect, filtered=True)),
        Statement("s", sql, 9, 0),
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(actor.on_message, message)
        await anyio.wait_all_tasks_blocked()
        # The item is recorded, and the lock may already be resolved; the rows are not forwarded.
        lock.resolve({"a": boundary(1)})
        assert lock.may_execute
        assert len(writer) == 0
        assert actor.cutover_segment() == 7
        tracker.go.set()
    part = await writer.get()
    assert isinstance(part, TargetSegment)
    assert (part.segment, part.version, len(part.rows or ())) == (7, 0, 1)


async def test_a_table_nobody_knew_may_first_be_met_in_the_middle_of_a_transaction() -> None:
    registry = SchemaRegistry()
    known = registry.join(Member("a", SHARD), TARGET)
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ((SHARD, MemberState(0, Place(0, 0))),)), boundary(1))
    writer: Mailbox[WriterMessage] = Mailbox(10)
    tools = tools_of(registry, writer)
    actor = PessimisticGroup(
        "a", registry.target(TARGET), group, lock, None, tools, WaitingParents(registry, {})
    )
    table_map = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())
    # The transaction at 5 is cut; the table of its second part was dropped long ago.
    await actor.on_message(
        TargetSegment("a", 0, 0, actor.target, row_events([(known, table_map)], [5], [1]))
    )
    met = registry.join(Member("a", TableName("s", "gone")), TARGET)
    await actor.on_message(
        TargetSegment("a", 0, 1, actor.target, row_events([(met, table_map)], [5], [2]))
    )
    parts = [await writer.get() for _ in range(2)]
    assert [len(part.rows or ()) for part in parts if isinstance(part, TargetSegment)] == [1, 1]


async def test_a_cutover_at_the_last_row_lies_behind_the_rows_of_all_members() -> None:
    registry = SchemaRegistry()
    names = [SHARD, TableName("s", "t2")]
    first, second = (registry.join(Member("a", name), TARGET) for name in names)
    group: Group[TableName, ShardStatement] = Group(
        "a",
        TARGET,
        GroupState(0, tuple((name, MemberState(0, Place(0, 0))) for name in names)),
        boundary(1),
        0,
        [ResolvedItem("", unlocked=True)],
        [Cutover(1, Place(5, 2), forced=True)],
    )
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    writer: Mailbox[WriterMessage] = Mailbox(10)
    tools = tools_of(registry, writer)
    actor = PessimisticGroup(
        "a", registry.target(TARGET), group, lock, None, tools, WaitingParents(registry, {})
    )
    table_map = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())
    kinds = [(first, table_map), (second, table_map)]
    await actor.on_message(
        TargetSegment("a", 0, 0, actor.target, row_events(kinds, [5, 5], [1, 2]))
    )
    await actor.on_message(
        TargetSegment("a", 0, 1, actor.target, row_events(kinds, [8, 8], [1, 2]))
    )
    parts = [await writer.get() for _ in range(2)]
    assert [places(part.rows) for part in parts if isinstance(part, TargetSegment)] == [
        [(5, 1), (5, 2)],
        [],
    ]


async def test_held_rows_are_forwarded_from_memory_and_stay_open_until_they_are_applied() -> None:
    registry = SchemaRegistry()
    number = registry.join(Member("a", SHARD), TARGET)
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ((SHARD, MemberState(0, Place(0, 0))),)), boundary(1))
    writer: Mailbox[WriterMessage] = Mailbox(10)
    tools = tools_of(registry, writer)
    actor = PessimisticGroup(
        "a", registry.target(TARGET), group, lock, None, tools, WaitingParents(registry, {})
    )
    event = ShardStatement(Statement("s", "ALTER TABLE s.t1 ADD c INT", 3, 0))
    group.ddl(Item("add", ("add",), SHARD, Place(3, 0), event))
    table_map = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())
    for segment, (transactions, ordinals) in enumerate([([5, 5], [1, 2]), ([7], [1])]):
        kinds = [(number, table_map)] * len(ordinals)
        rows = row_events(kinds, transactions, ordinals)
        await actor.on_message(TargetSegment("a", 0, segment, actor.target, rows))
    lock.resolve({"a": boundary(1)})
    lock.executed()
    assert not group.can_adopt
    assert actor.held_rows.asked is False
    await actor.on_message(TargetSegment("a", 0, 2, actor.target, None, release=True))
    parts = [part for _ in range(3) if isinstance(part := await writer.get(), TargetSegment)]
    assert [places(part.rows) for part in parts] == [[], [], [(5, 1), (5, 2), (7, 1)]]
    assert [part.version for part in parts] == [0, 0, 1]
    assert (group.known, group.rows_held) == (1, 0)
    # Its place is before the rows; nothing later may be saved.
    assert group.open_items == (Place(3, 0),)
    asked: list[tuple[int, int]] = []

    def passed(epoch: int, segment: int) -> bool:
        asked.append((epoch, segment))
        return len(asked) > 1

    actor.held_rows.settle(passed)
    assert group.open_items == (Place(3, 0),)
    actor.held_rows.settle(passed)
    assert not group.open_items
    assert asked == [(0, 2)] * 2


async def test_nothing_is_released_that_must_be_read_again() -> None:
    """The coordinator is told, and restarts the source."""
    registry = SchemaRegistry()
    number = registry.join(Member("a", SHARD), TARGET)
    lock: TargetLock[TableName, ShardStatement] = TargetLock(TARGET, ["a"])
    group = lock.start("a", GroupState(0, ((SHARD, MemberState(0, Place(0, 0))),)), boundary(1))
    writer: Mailbox[WriterMessage] = Mailbox(10)
    tools = tools_of(registry, writer)
    actor = PessimisticGroup(
        "a", registry.target(TARGET), group, lock, None, tools, WaitingParents(registry, {})
    )
    event = ShardStatement(Statement("s", "ALTER TABLE s.t1 ADD c INT", 3, 0))
    group.ddl(Item("add", ("add",), SHARD, Place(3, 0), event))
    table_map = TableMap("s", "t1", (3,), (0,), (False,), OptionalMetadata())
    rows = row_events([(number, table_map)], [5], [1])
    await actor.on_message(TargetSegment("a", 0, 0, actor.target, rows))
    lock.resolve({"a": boundary(1)})
    lock.executed()
    actor.held_rows.asked = True
    group.rename(SHARD, TableName("s", "t9"), Place(6, 0))
    await actor.on_message(TargetSegment("a", 0, 1, actor.target, None, release=True))
    parts = [part for _ in range(2) if isinstance(part := await writer.get(), TargetSegment)]
    assert [places(part.rows) for part in parts] == [[], []]
    assert (group.known, actor.held_rows.asked) == (0, False)
    assert len(tools.coordinator) == 1
