"""An item is executed only when the older rows are applied, also where a source restarts."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import anyio

from actors.counting.task_counts import TaskCounts
from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import LockHistory, ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.sharding.pessimistic.group import PessimisticGroup
from actors.sharding.pessimistic.lock_messages import GroupChanged
from actors.sharding.shard_mode import CoordinationTools
from actors.writing.batched_writer import BatchedWriter
from replicator.binlog.segments.segment import Statement
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionStore
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place

TARGET = TableName("m", "t")
MEMBER = TableName("s", "t1")
RESOLVED = ResolvedItem("alter table t add c int", unlocked=True)
CUTOVER = Cutover(1, Place(5, 2), forced=True)
EVENT = ShardStatement(Statement("s", "ALTER TABLE t1 ADD c INT", 9, 0))
ITEM = Item(RESOLVED.text, ("ALTER TABLE m.t ADD c INT",), MEMBER, Place(9, 0), EVENT)


class Writer:
    """Answers when it is told to what is applied; remembers what it was asked for."""

    def __init__(self, ddl: Runner, registry: SchemaRegistry) -> None:
        self.ddl, self.registry = ddl, registry
        self.counts = TaskCounts()
        self.settings = SimpleNamespace(batch_bytes=1 << 20)
        self.mailbox: Mailbox[Any] = Mailbox(10)
        self.asked: list[Mapping[str, tuple[int, int]]] = []
        self.go = anyio.Event()

    async def passed(self, after: Mapping[str, tuple[int, int]], *, positions: bool) -> None:
        assert not positions
        self.asked.append(after)
        await self.go.wait()

    def forget(self, target: int) -> None:
        pass


class Runner:
    def __init__(self) -> None:
        self.executed = 0

    async def run_resolution(self, *_: object) -> None:
        self.executed += 1


async def test_a_restart_makes_an_item_wait_for_the_rows_that_are_read_again() -> None:
    registry = SchemaRegistry()
    target = registry.target(TARGET)
    registry.join(Member("a", MEMBER), TARGET)
    state = GroupState(0, ((MEMBER, MemberState(0, Place(0, 0))),))
    unit = SimpleNamespace(
        source="a",
        epoch=0,
        state=SimpleNamespace(position=None, groups={target: SimpleNamespace(state=state)}),
        low_watermarks={},
        high_watermarks={},
        groups={},
        running=True,
        restarting=False,
        restart=lambda: None,
    )
    runner = Runner()
    writer = Writer(runner, registry)
    pending = Resolution(1, "a", ITEM, RESOLVED, {"a": CUTOVER})
    coordinator = LockCoordinator(
        CoordinationTools(
            {"a": cast(Any, None)},
            cast(BatchedWriter, writer),
            cast(SchemaTracker, None),
            cast(MetaStore, SimpleNamespace(connection=None)),
            {"a": cast(Any, unit)},
            frozenset(),
        ),
        cast(DecisionStore, None),
        {TARGET: LockHistory(cutovers={"a": [CUTOVER]}, pending=pending)},
    )

    def start() -> PessimisticGroup:
        group = unit.groups[target] = coordinator.make_group(cast(Any, unit), target)
        assert isinstance(group, PessimisticGroup)
        return group

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(coordinator.run)
        start().group.row(MEMBER, Place(6, 1))
        coordinator.mailbox.tell(GroupChanged(target))
        await anyio.wait_all_tasks_blocked()
        assert [after["a"][0] for after in writer.asked] == [0]
        # The source restarts, with rows of version 0 that were not applied: it reads them again.
        await coordinator.ended(cast(Any, unit))
        unit.epoch = 1
        again = start()
        writer.go.set()
        await anyio.wait_all_tasks_blocked()
        assert runner.executed == 0
        again.group.row(MEMBER, Place(6, 1))
        coordinator.mailbox.tell(GroupChanged(target))
        await anyio.wait_all_tasks_blocked()
        assert [after["a"][0] for after in writer.asked] == [0, 1]
        assert runner.executed == 1
        tasks.cancel_scope.cancel()
