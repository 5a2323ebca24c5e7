"""The interface of a shard mode, and of the coordination that it creates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from actors.saved.lock_state import ShardStatement
from actors.schema.schema_tracker import SchemaTracker
from actors.setup.task_setup import ColumnsOf, SourceSetup, columns_of
from actors.sharding.group import GroupActor
from actors.sharding.moved_shards import MovedShards
from actors.writing.batch_planner import WritableColumns
from actors.writing.batched_writer import BatchedWriter
from actors.writing.ddl_runner import StatementRules
from actors.writing.segment_tracker import SourceState
from replicator.downstream.ddl.ddl_execution import DdlExecutor
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DecisionRecord
from replicator.downstream.meta.held_shards import HeldShards, lock_reason
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table
from replicator.sharding.items import GroupState
from replicator.sharding.open_locks import LockView
from replicator.sharding.optimistic.differences import Differences
from replicator.sharding.optimistic.fills import TargetFills
from replicator.sharding.optimistic.history import MovedPlaces
from replicator.watermark import Place, Watermark


class Unit(Protocol):
    """A source of the task, with the members that a coordination needs."""

    source: str
    epoch: int
    state: SourceState
    low_watermarks: dict[int, Watermark]
    high_watermarks: dict[int, Watermark]
    groups: dict[int, GroupActor]

    @property
    def running(self) -> bool:
        """Whether groups can be started."""

    @property
    def restarting(self) -> bool:
        """Whether a restart is requested and not finished."""

    @property
    def last_segment(self) -> int:
        """The number of the last segment that the reader has sent; -1 before the first one."""

    @property
    def up_to_date(self) -> bool:
        """Whether the reader has read all events that the source has written."""

    def group(self, target: int) -> GroupActor:
        """Return the group of a target; it is started on first use."""

    def restart(self) -> None:
        """Restart the source from its saved position."""

    def release(self, target: int, size: int) -> None:
        """Send the group of a target an empty segment, to fill with ``size`` bytes of held rows."""


@dataclass(frozen=True, slots=True)
class LockRemedy:
    """A remedy of a lock.

    Attributes:
        text: the effect of the remedy, in words.
        action: the action of `unlock-ddl-lock`; empty if another command is the remedy.
        owner: the source that the action names.
        shard: the shard of this source.
        position: position of the statement, if the remedy is `binlog replace` with other
            statements.
    """

    text: str
    action: str = ""
    owner: str = ""
    shard: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True)
class OpenLock:
    """A lock, for reports.

    Attributes:
        id: the lock's name for the operator.
        since: when its first statement was executed, in seconds by the clock of the source; None if
            that is not known.
        holding: by source that holds rows after the statement, the statement's time there.
        reason: why the lock is open, if not only because shards lack the statement.
        remedies: the remedies for this reason.
        holds: whether rows may wait for the lock.
        refused: whether the target has refused the statement, and rows wait for the operator's
            answer.
        others: further targets whose rows wait for the lock. Then rows of all shards of these
            targets and of the lock's own target may wait.
    """

    id: str
    view: LockView[TableName, ShardStatement]
    since: int | None
    holding: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    remedies: tuple[LockRemedy, ...] = ()
    holds: bool = True
    refused: bool = False
    others: Set[TableName] = frozenset()

    @property
    def shard(self) -> str:
        """The shard whose statement is open, if there is a ``reason``; empty otherwise."""
        view = self.view
        return str(Member(view.owner, view.item.member)) if self.reason and view.owner else ""

    @property
    def held_reason(self) -> str:
        """The reason, besides a schema change, why rows are held; as in `HeldShards`."""
        return lock_reason(self.id, conflict=bool(self.view.conflict), refused=self.refused)


@dataclass(frozen=True, slots=True)
class Widening:
    """A change of a target.

    Attributes:
        sql: the ALTER TABLE.
        table: the structure after it.
    """

    sql: str
    table: Table


class Coordination(ABC):
    """Creates the groups of all sources, reports their locks, and forces a lock on request.

    It is notified when a run of a source starts and ends. By default, nothing is open.
    """

    async def run(self) -> None:
        """Do the work that is independent of the sources, until cancelled."""
        return

    @abstractmethod
    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """Create the group of a target for a run of a source."""

    def began(self, unit: Unit) -> None:
        """Handle the start of a run of a source; nothing has been read yet."""
        return

    async def before_restart(self) -> None:
        """Wait briefly for other locks that will restart sources: one restart serves all."""
        return

    async def ended(self, unit: Unit) -> None:
        """Handle the end of a run of a source; all events read are applied and saved."""
        return

    def open_items(self, source: str) -> Collection[Place]:
        """Return the positions of open items; the saved position stays before all of them."""
        return ()

    def open_targets(self, source: str) -> Collection[int]:
        """Return the targets (numbers) of the open items of a source."""
        return ()

    def held(self) -> Mapping[TableName, HeldShards]:
        """Return, by target, the shards whose rows may wait for schema changes.

        All other rows before the applied positions are on the targets when this is called.
        """
        return {}

    def gives_way(self, target: TableName, member: Member) -> bool:
        """Return whether a shard was dropped, and its target leaves with its last shard."""
        return False

    async def paths(self, own: Table, target: TableName) -> Sequence[ColumnPath]:
        """Return the paths from columns of a table with this structure to columns of a target.

        The result is empty if the target can't store the rows; several paths if the right one is
        not known. Raises DatabaseUnavailableError.
        """
        return ((),)

    def widening(self, own: Table, target: Table) -> Widening | None:
        """Return the change after which a target accepts rows of a table with this structure.

        Return None if it accepts them already, or never can.
        """
        return None

    def open_locks(self) -> Sequence[OpenLock]:
        """Return the locks that wait for shards or for the operator, or are being executed."""
        return ()

    def differences(self) -> Mapping[TableName, Differences[Member]]:
        """Return the differences between the shards of each target whose shards may differ."""
        return {}

    @abstractmethod
    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Force a lock; return when the decision is saved.

        Args:
            lock: its id.
            owner: the source whose statement is executed; empty for the lock's own owner.
            skip: whether no statement is executed.
            shard: the shard of the owner that has the statement; empty for any.

        Raises:
            UnlockError: with a message for the operator.
            DisputedError: the operator has to choose whose statement is executed.
        """


@dataclass(frozen=True, slots=True)
class CoordinationTools:
    """The environment of a coordination.

    Attributes:
        setups: all sources.
        units: the sources that are read; complete when the first of them starts.
        blocked: the blocked targets.
        moved: the shards that a RENAME moves to another target.
    """

    setups: Mapping[str, SourceSetup]
    writer: BatchedWriter
    tracker: SchemaTracker
    meta: MetaStore
    units: Mapping[str, Unit]
    blocked: Set[TableName]
    moved: MovedShards = field(default_factory=MovedShards)

    @property
    def registry(self) -> SchemaRegistry:
        """The structures and numbers of the replicated tables."""
        return self.writer.registry

    @property
    def columns(self) -> ColumnsOf:
        """The rules about the columns of shards."""
        return columns_of(self.setups)


@dataclass(frozen=True, slots=True)
class WriterRules:
    """The rules of a shard mode that the writer uses for statements and rows."""

    statements: StatementRules
    columns: WritableColumns


@dataclass(frozen=True, slots=True)
class WriterTools:
    """The environment of the writer's rules.

    Attributes:
        strict: whether the task pauses if a schema change would stay open.
        reconciles: whether rows are read from the shards if only the shards know their values.
    """

    registry: SchemaRegistry
    meta: MetaStore
    target: Connection
    executor: DdlExecutor
    columns: ColumnsOf
    strict: bool
    reconciles: bool


class ShardMode(ABC):
    """A `shard-mode` of the task file: everything that depends on the mode."""

    equal_structures = False
    """Whether a start requires that all shards of a target have the same structure."""
    joins_structures = False
    """Whether a target has the smallest structure that accepts the rows of all its shards."""
    holds_rows = True
    """Whether rows of one table may wait while rows of another are applied."""
    lets_shards_leave = False
    """Whether a shard that the task file no longer names may leave while something is open."""
    drops_targets = False
    """Whether a target is dropped with its last shard, and a database with its last target."""

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """Return the saved decisions about schema changes of targets; empty if there are none."""
        return ()

    def moved_entries(self, entries: Sequence[str], moves: MovedPlaces) -> Sequence[str]:
        """Return a target's saved entries (`entry` of its records) with a new server's positions.

        The new server has replaced a source. Raises the errors of ``moves``.
        """
        return entries

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """Return, by target, the values of columns in rows of shards that lack these columns.

        A column without a saved value has the target's default.
        """
        return {}

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """Save that the task file no longer routes these shards to a target.

        A mode overrides this if it saves more about shards than the checkpoint has.
        """
        return

    def first_groups(
        self,
        decided: Iterable[DecisionRecord],
        members: Iterable[tuple[TableName, TableName]],
        source: str = "",
        start: int = 0,
    ) -> Mapping[TableName, GroupState[TableName]]:
        """Return, by target, the groups of a source without a saved state.

        The result is empty if groups start without a state.

        Args:
            members: the shards of the source, each with its target.
            source: set if the task may have read the source before, from the position with the key
                `start` on.
        """
        return {}

    @abstractmethod
    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """Return the rules that the writer uses before it executes a statement and plans rows."""

    @abstractmethod
    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """Create the coordination of a run from its saved state."""
