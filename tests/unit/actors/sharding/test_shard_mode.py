"""What the strategies of coordination answer to those who report, and to the operator."""

from __future__ import annotations

import io
import typing
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from rich.console import Console

from actors.counting.task_counts import TaskCounts
from actors.mailboxes.actor import Mailbox
from actors.saved.lock_state import LockHistory, ShardStatement
from actors.sharding.modes import SHARD_MODES
from actors.sharding.pessimistic.coordinator import LockCoordinator
from actors.sharding.shard_mode import CoordinationTools
from actors.task.operator.lock_report import lock_statuses
from actors.task.wiring.wiring import RunningTask
from config.models import Task
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.items import Cutover, Item, ResolvedItem
from replicator.sharding.open_locks import UnlockError
from replicator.sharding.pessimistic.lock import Resolution
from replicator.terminal.locks import render_locks
from replicator.watermark import Place

TARGET = TableName("m", "t")
SHARD = TableName("s", "t1")
WITHOUT_TIME = Statement("s", "ALTER TABLE t1 ADD c INT", 9, 0)
RESOLVED = ResolvedItem("alter table t add c int")
ITEM = Item(
    RESOLVED.text, ("ALTER TABLE m.t ADD c INT",), SHARD, Place(9, 0), ShardStatement(WITHOUT_TIME)
)
DECIDED = LockHistory(
    cutovers={"a": [Cutover(1, Place(5, 2))]},
    pending=Resolution(1, "a", ITEM, RESOLVED, {"a": Cutover(1, Place(5, 2))}),
)


@pytest.fixture
def registry() -> SchemaRegistry:
    return SchemaRegistry()


def _unit(source: str) -> Any:
    return SimpleNamespace(
        source=source,
        epoch=0,
        state=SimpleNamespace(position=None, groups={}),
        low_watermarks={},
        high_watermarks={},
        groups={},
        running=True,
        restarting=False,
    )


def _tools(registry: SchemaRegistry, unit: Any, *sources: str) -> CoordinationTools:
    """What a task works with that has these sources, and reads the unit's."""
    writer = SimpleNamespace(
        settings=SimpleNamespace(batch_bytes=1 << 20),
        counts=TaskCounts(),
        registry=registry,
        mailbox=Mailbox(10),
        tracker=lambda _: SimpleNamespace(resume_at=0),
        ddl=None,
    )
    return CoordinationTools(
        dict.fromkeys(sources, cast(Any, None)),
        cast(Any, writer),
        cast(Any, None),
        cast(Any, SimpleNamespace(connection=None)),
        {unit.source: unit},
        frozenset(),
    )


@pytest.fixture
def pessimistic(registry: SchemaRegistry) -> LockCoordinator:
    """One source, which has not come yet; an item of its target was decided before the start."""
    unit = _unit("a")
    coordinator = LockCoordinator(_tools(registry, unit, "a"), cast(Any, None), {TARGET: DECIDED})
    coordinator.make_group(unit, registry.target(TARGET))
    return coordinator


def test_each_shard_mode_of_the_task_file_has_its_object() -> None:
    modes = typing.get_args(Task.model_fields["shard_mode"].annotation)
    assert set(SHARD_MODES) == set(modes)


async def test_a_lock_that_can_not_be_forced_says_why(pessimistic: LockCoordinator) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pessimistic.run)
        with pytest.raises(UnlockError, match=r"open locks: m\.t:1"):
            await pessimistic.unlock("m.x:1", owner="", skip=False)
        with pytest.raises(UnlockError, match="is already being resolved"):
            await pessimistic.unlock("m.t:1", owner="", skip=False)
        tasks.cancel_scope.cancel()


def test_a_lock_whose_statement_is_not_known_has_no_age(
    pessimistic: LockCoordinator, registry: SchemaRegistry
) -> None:
    tracker = SimpleNamespace(resume=SimpleNamespace(position=None))
    running = SimpleNamespace(
        open_locks=pessimistic.open_locks,
        registry=registry,
        units={"a": None},
        stopped={},
        writer=SimpleNamespace(tracker=lambda _: tracker),
        watch=SimpleNamespace(distances={}),
    )
    [lock] = lock_statuses("orders", cast(RunningTask, running))
    assert (lock.id, lock.state, lock.since) == ("m.t:1", "resolving", None)
    out = io.StringIO()
    Console(width=100, file=out).print(render_locks((lock,)))
    assert "item 1 of m.t, owner a, 0 row events held" in out.getvalue()
