"""One restart of a source serves all locks that are resolved about the same time."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from actors.counting.task_counts import TaskCounts
from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import LockHistory, ShardStatement
from actors.sharding.pessimistic import coordinator
from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.sharding.pessimistic.lock_messages import GroupChanged
from actors.sharding.shard_mode import CoordinationTools
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import Cutover, GroupState, Item, MemberState, ResolvedItem
from replicator.sharding.pessimistic.lock import Resolution
from replicator.watermark import Place

TABLES = ("t", "u")
CUTOVER = Cutover(1, Place(5, 2), forced=True)
RESOLVED = ResolvedItem("alter table <table> add c int", unlocked=True)
EVENT = ShardStatement(Statement("s", "ALTER TABLE x ADD c INT", 9, 0))


class Writer:
    def __init__(self, ddl: Runner, registry: SchemaRegistry) -> None:
        self.settings, self.counts = SimpleNamespace(batch_bytes=1 << 20), TaskCounts()
        self.ddl, self.registry = ddl, registry
        self.mailbox: Mailbox[Any] = Mailbox(10)

    async def passed(self, after: Mapping[str, tuple[int, int]], *, positions: bool) -> None:
        pass

    def forget(self, target: int) -> None:
        pass


class Runner:
    """Executes each target's statement when it is told to."""

    def __init__(self) -> None:
        self.go = {table: anyio.Event() for table in TABLES}

    async def run_resolution(self, target: TableName, *_: object) -> None:
        await self.go[target.table].wait()


class Decided:
    """A source with one shard of each of two targets, whose next items are decided."""

    def __init__(self) -> None:
        registry = SchemaRegistry()
        self.restarts = 0
        self.runner = Runner()
        histories, groups = {}, {}
        for table in TABLES:
            name, member = TableName("m", table), TableName("s", f"{table}1")
            registry.join(Member("a", member), name)
            item = Item(RESOLVED.text, ("ALTER TABLE x ADD c INT",), member, Place(9, 0), EVENT)
            pending = Resolution(1, "a", item, RESOLVED, {"a": CUTOVER})
            histories[name] = LockHistory(cutovers={"a": [CUTOVER]}, pending=pending)
            state = GroupState(0, ((member, MemberState(0, Place(0, 0))),))
            groups[registry.target(name)] = SimpleNamespace(state=state)
        self.unit = SimpleNamespace(
            source="a",
            epoch=0,
            state=SimpleNamespace(position=None, groups=groups),
            low_watermarks={},
            high_watermarks={},
            groups={},
            running=True,
            restarting=False,
            restart=self._restart,
        )
        nothing = cast(Any, None)
        self.coordinator = LockCoordinator(
            CoordinationTools(
                {"a": cast(Any, None)},
                cast(Any, Writer(self.runner, registry)),
                nothing,
                cast(Any, SimpleNamespace(connection=None)),
                {"a": cast(Any, self.unit)},
                frozenset(),
            ),
            nothing,
            histories,
        )
        self.targets = {table: registry.target(TableName("m", table)) for table in TABLES}

    def _restart(self) -> None:
        self.unit.restarting = True

    def passes(self, table: str) -> None:
        """The source passes the cutover, and holds a row behind it."""
        target = self.targets[table]
        group = cast(Any, self.coordinator.make_group(cast(Any, self.unit), target))
        group.group.row(TableName("s", f"{table}1"), Place(6, 1))
        self.coordinator.mailbox.tell(GroupChanged(target))

    async def wait(self) -> None:
        await self.coordinator.before_restart()
        self.restarts += 1


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Decided:
    monkeypatch.setattr(coordinator, "GATHERING_SECONDS", 600.0)
    return Decided()


async def test_a_source_waits_for_another_lock_that_is_executed_just_then(decided: Decided) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(decided.coordinator.run)
        for table in TABLES:
            decided.passes(table)
        decided.runner.go["t"].set()
        await anyio.wait_all_tasks_blocked()
        assert decided.unit.restarting
        tasks.start_soon(decided.wait)
        await anyio.wait_all_tasks_blocked()
        assert decided.restarts == 0
        decided.runner.go["u"].set()
        await anyio.wait_all_tasks_blocked()
        assert decided.restarts == 1
        tasks.cancel_scope.cancel()


async def test_a_lock_that_waits_for_shards_keeps_nobody_waiting(decided: Decided) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(decided.coordinator.run)
        decided.passes("t")
        decided.coordinator.make_group(cast(Any, decided.unit), decided.targets["u"])
        decided.runner.go["t"].set()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(decided.wait)
        await anyio.wait_all_tasks_blocked()
        assert decided.restarts == 1
        tasks.cancel_scope.cancel()


async def test_a_long_statement_keeps_a_source_waiting_for_a_moment_only(
    decided: Decided, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "GATHERING_SECONDS", 0.05)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(decided.coordinator.run)
        for table in TABLES:
            decided.passes(table)
        decided.runner.go["t"].set()
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(10):
            await decided.wait()
        assert decided.restarts == 1
        tasks.cancel_scope.cancel()
