"""What a task needs of a shard-mode: the mode itself, and the coordination that it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from actors.lock_state import ShardStatement
from actors.schema_tracker import SchemaTracker
from actors.sharding.group import GroupActor
from actors.sharding.moved_shards import MovedShards
from actors.task_setup import ColumnsOf, SourceSetup, columns_of
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
    """What a coordination needs to know about a source of the task."""

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

    def group(self, target: int) -> GroupActor:
        """The group of a target; started on first use."""

    def restart(self) -> None:
        """Restart the source from its saved position."""

    def release(self, target: int, size: int) -> None:
        """Send the group of a target an empty segment, to fill with ``size`` bytes of held rows."""


@dataclass(frozen=True, slots=True)
class LockRemedy:
    """A remedy of a lock; ``text`` says what it does. ``action``: of `unlock-ddl-lock`, for the
    ``shard`` of its ``owner``; empty where it is done elsewhere. ``position``: of the statement,
    where `binlog replace` gives others for it."""

    text: str
    action: str = ""
    owner: str = ""
    shard: str = ""
    position: str = ""


@dataclass(frozen=True, slots=True)
class OpenLock:
    """A lock, for reports.

    ``id`` is how the operator names it. ``since``: when the earliest of its statements was
    executed, in seconds by the clock of its source; None while that is not known. ``holding``: the
    same of each source that holds rows after it.
    ``reason``: why it is open, if not only because shards lack it; ``ways``: the remedies in that
    case. ``holds``: whether rows may wait for it. ``refused``: the target has refused the
    statement, and rows wait for the operator's answer. ``others``: more targets of which rows wait
    for it; then rows of all shards of these and of its own target may wait.
    """

    id: str
    view: LockView[TableName, ShardStatement]
    since: int | None
    holding: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    ways: tuple[LockRemedy, ...] = ()
    holds: bool = True
    refused: bool = False
    others: Set[TableName] = frozenset()

    @property
    def shard(self) -> str:
        """Where it is open for a ``reason``, the shard whose statement it is; else empty."""
        view = self.view
        return str(Member(view.owner, view.item.member)) if self.reason and view.owner else ""

    @property
    def held_reason(self) -> str:
        """What else than a schema change holds rows, as in `HeldShards`."""
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
    """Creates the groups, is notified when a source starts and stops, reports the locks, and forces
    one on request. The defaults are those of a coordination that leaves nothing open."""

    async def run(self) -> None:
        """Do the work that is independent of the sources, until cancelled."""
        return

    @abstractmethod
    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """The group of a target in a run of a source."""

    def began(self, unit: Unit) -> None:
        """A run of a source starts; nothing has been read yet."""
        return

    async def before_restart(self) -> None:
        """Wait a little for other locks that are about to make sources restart, so that one restart
        serves all of them.
        """
        return

    async def ended(self, unit: Unit) -> None:
        """A run of a source has ended; everything that it read is applied and saved."""
        return

    def open_items(self, source: str) -> Collection[Place]:
        """The positions of open DDL items: the saved position stays before all of them."""
        return ()

    def open_targets(self, source: str) -> Collection[int]:
        """The targets (numbers) of the open items of a source."""
        return ()

    def held(self) -> Mapping[TableName, HeldShards]:
        """The shards whose rows may wait for schema changes, by target.

        At the same moment, everything else up to the positions that are applied is on the targets.
        """
        return {}

    def gives_way(self, target: TableName, member: Member) -> bool:
        """Whether a shard of a target was dropped, and the target goes when the others are."""
        return False

    async def paths(self, own: Table, target: TableName) -> Sequence[ColumnPath]:
        """Return the paths by which columns of a table with this structure come to a target.

        Empty if its rows can't; several if it is not known which one is right. Raises
        DatabaseUnavailableError.
        """
        return ((),)

    def widening(self, own: Table, target: Table) -> Widening | None:
        """Return the change after which a target takes the rows of a table with this structure.

        None if it takes them already, or never.
        """
        return None

    def open_locks(self) -> Sequence[OpenLock]:
        """What waits for shards, for the operator, or to be executed."""
        return ()

    def differences(self) -> Mapping[TableName, Differences[Member]]:
        """The targets whose shards may differ, and do: in what."""
        return {}

    @abstractmethod
    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Force a lock, named by its id; returns when that is decided and saved.

        ``owner`` is the source whose statement is executed (empty: the lock's own owner), ``shard``
        the one of its shards that has it (empty: any); with ``skip`` none is. Raises UnlockError
        with a message for the operator, DisputedError where the operator has to choose whose
        statement.
        """


@dataclass(frozen=True, slots=True)
class CoordinationTools:
    """The environment of a coordination. ``setups`` are all sources, ``units`` those that are read,
    complete when the first of them starts. ``blocked`` are the blocked targets, ``moved`` the
    shards that a RENAME gives another target.
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
        """The structures and the numbers of what is replicated."""
        return self.writer.registry

    @property
    def columns(self) -> ColumnsOf:
        """The rules about the columns of shards."""
        return columns_of(self.setups)


@dataclass(frozen=True, slots=True)
class WriterRules:
    """The part of a shard-mode that the writer uses for statements and rows."""

    statements: StatementRules
    columns: WritableColumns


@dataclass(frozen=True, slots=True)
class WriterTools:
    """What the rules of the writer are made of. ``strict``: a schema change that would be left open
    pauses the task. ``reconciles``: rows of which only the shards know the values are read from
    them."""

    registry: SchemaRegistry
    meta: MetaStore
    target: Connection
    executor: DdlExecutor
    columns: ColumnsOf
    strict: bool
    reconciles: bool


class ShardMode(ABC):
    """One `shard-mode` of the task file: everything that depends on the mode."""

    equal_structures = False
    """Whether a task requires at its start that all shards of a target have the same structure."""
    joins_structures = False
    """Whether a target has the least structure that takes the rows of all its shards."""
    holds_rows = True
    """Whether rows of one table may wait while those of another go on."""
    lets_shards_leave = False
    """Whether a shard that the task file leaves out may go while something is open."""
    drops_targets = False
    """Whether a target is dropped with its last shard, and a database with the last in it."""

    async def decisions(self, meta: MetaStore) -> Sequence[DecisionRecord]:
        """What was decided about the schema changes of targets; empty where nothing is."""
        return ()

    def moved_entries(self, entries: Sequence[str], moves: MovedPlaces) -> Sequence[str]:
        """The saved entries of a target (`entry` of its records), with the binlog positions that
        another server has which has taken a source over. Raises what ``moves`` raises."""
        return entries

    async def fills(self, meta: MetaStore) -> Mapping[TableName, TargetFills]:
        """By target, what rows of shards without a column get there, where that is saved; elsewhere
        the target's defaults decide."""
        return {}

    async def leave(self, meta: MetaStore, target: TableName, members: Iterable[Member]) -> None:
        """Save that the task file no longer routes these shards to a target, where more is saved of
        them than in the checkpoint."""
        return

    def first_groups(
        self, decided: Iterable[DecisionRecord], members: Iterable[tuple[TableName, TableName]]
    ) -> Mapping[TableName, GroupState[TableName]]:
        """By target, the groups of a source that the task follows for the first time.

        ``members``: its shards, each with its target. Empty where groups start without a state.
        """
        return {}

    @abstractmethod
    def writer_rules(self, tools: WriterTools) -> WriterRules:
        """The rules that the writer uses before it executes a statement and plans rows."""

    @abstractmethod
    async def coordination(self, tools: CoordinationTools) -> Coordination:
        """The coordination of a run, from its saved state."""
