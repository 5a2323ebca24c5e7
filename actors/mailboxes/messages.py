"""All messages between actors: frozen dataclasses, in the order in which rows flow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import anyio

from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import TableName
from replicator.pipeline.apply.batch import BatchResult
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.effects.ddl_effects import Effect
from replicator.sharding.items import GroupState


@dataclass(frozen=True, slots=True)
class Drain:
    """Source to group: everything before this has been answered when ``done`` is set."""

    done: anyio.Event


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """Reader to writer: the segment has one `TargetSegment` for each of ``targets``, and ends at
    ``end``.

    ``complete`` is False where the segment was cut inside a transaction; ``end`` then is the
    boundary before that transaction.
    """

    source: str
    epoch: int
    segment: int
    targets: frozenset[int]
    end: SourcePosition
    complete: bool
    timestamp: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DdlItem:
    """A DDL event of a member as it is to be executed on the target.

    The position of the statement, source and member identify the item for ever. An item that is not
    ``recorded`` may be executed again without harm. ``reconciled``: the columns in which only the
    shard knows the values of its rows, after a statement that the target makes or has made by
    another item. Then nothing is executed, and these columns are queued to be reconciled.
    """

    source: str
    target: int
    version: int
    effect: Effect
    statement: Statement
    recorded: bool = True
    reconciled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupSaved:
    """A group after a segment, as a checkpoint there keeps it.

    ``members`` are the numbers and versions of its members; ``state`` is the rest, for a group
    whose DDL is coordinated.
    """

    members: tuple[tuple[int, int], ...]
    state: GroupState[TableName] | None = None


@dataclass(frozen=True, slots=True)
class TargetSegment:
    """Reader to group, and group to writer: the part of a segment that concerns one target.

    The reader gives its ``rows``, and the ``effects`` of the segment's ``statement`` on the
    target's members, which come after them. The group gives in their place what is to be done:
    the rows that are left are all of ``version``, and ``ddl`` is a barrier after them. ``saved`` is
    None where the group is as it was before the segment. ``renamed``: a member got another name, or
    made a change that its target has already. So rows before and after it do not belong into one
    batch, which tells rows apart by the names of their members, and those without a key by all of
    their values. ``paths``: by the number of a member, `MemberColumns.path` of its rows, if it is
    not empty. ``release``: the group is to give the rows of the next version, which it has held in
    memory.
    """

    source: str
    epoch: int
    segment: int
    target: int
    rows: RowEvents | None
    effects: tuple[Effect, ...] = ()
    statement: Statement | None = None
    version: int = 0
    ddl: DdlItem | None = None
    saved: GroupSaved | None = None
    renamed: bool = False
    paths: Mapping[int, ColumnPath] = field(default_factory=dict)
    release: bool = False


@dataclass(frozen=True, slots=True)
class BatchDone:
    """The writer's job to the writer: every bucket of the running batch is committed."""

    result: BatchResult
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchCut:
    """The writer's job to the writer: rows collide in a batch that ends inside a transaction. The
    rest of the transaction may delete the other row: a row that moves between shards can be
    inserted into the new one long before it is deleted from the old one.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class DdlDone:
    """The writer's job to the writer: the item is executed, and its structures are known.

    ``put_off``: it is not, and waits until other sources have caught up.
    """

    item: DdlItem | TargetStep
    put_off: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """To the writer: finish all complete segments of one source, or of all (None), save, then set
    ``done``.
    """

    done: anyio.Event
    source: str | None = None


GroupMessage = TargetSegment | Drain


@dataclass(frozen=True, slots=True)
class Passed:
    """Coordinator to writer: set ``done`` when all rows up to these segments are applied and saved.

    ``after``: by source, the incarnation and the segment. ``positions``: the positions of the
    sources are to be saved, too, and not only the low watermarks.
    """

    after: Mapping[str, tuple[int, int]]
    done: anyio.Event
    positions: bool = True


@dataclass(frozen=True, slots=True)
class Forget:
    """Coordinator to writer: the structure of a target has changed."""

    target: int


@dataclass(frozen=True, slots=True)
class TargetStep:
    """Coordinator to writer: a change of a target that no statement is read for. ``run`` makes it,
    while no batch touches the target and no bucket of it is ahead of others."""

    target: int
    run: Callable[[], Awaitable[None]]
    source: str = ""


WriterMessage = (
    SegmentEnd
    | TargetSegment
    | Flush
    | BatchDone
    | BatchCut
    | DdlDone
    | Passed
    | Forget
    | TargetStep
)
