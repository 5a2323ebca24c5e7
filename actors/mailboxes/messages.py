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
    """Source to group: set ``done`` when everything before this message has been answered."""

    done: anyio.Event


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """Reader to writer: a segment ends at ``end``, and has a `TargetSegment` for each target.

    ``targets`` are the numbers of these targets. ``complete`` is False if the segment was cut
    inside a transaction; ``end`` is then the boundary before that transaction.
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
    """A DDL event of a member in the form that is executed on the target.

    The position of the statement, the source and the member identify the item permanently. An item
    that is not ``recorded`` may be executed again without harm. ``reconciled``: the columns whose
    values only the shard knows, after a statement that the target executes or has executed by
    another item. Such an item executes nothing, and these columns are queued to be reconciled.
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
    """The state of a group after a segment, in the form that a checkpoint saves.

    ``members`` are the numbers and versions of its members. ``state`` is the rest, for a group
    whose DDL is coordinated.
    """

    members: tuple[tuple[int, int], ...]
    state: GroupState[TableName] | None = None


@dataclass(frozen=True, slots=True)
class TargetSegment:
    """Reader to group, and group to writer: the part of a segment that concerns one target.

    The reader sets ``rows`` and ``effects``: the effects of the segment's ``statement`` on the
    target's members, which come after the rows. The group replaces them by what is to be done: all
    remaining rows are of ``version``, and ``ddl`` is a barrier after them.

    Attributes:
        saved: the state of the group; None if the segment did not change it.
        renamed: whether a member got another name, or executed a change that its target already
            has. Rows before and after such a statement must not be in one batch, which
            distinguishes rows by the names of their members, and rows without a key by all of their
            values.
        paths: by the number of a member, the `MemberColumns.path` of its rows, unless it is empty.
        release: whether the group has to send the rows of the next version, which it holds in
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
    """The writer's job to the writer: rows collide in a batch that ends inside a transaction.

    The rest of the transaction may delete the other row: a row that moves between shards can be
    inserted into the new one long before it is deleted from the old one.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class DdlDone:
    """The writer's job to the writer: the item is executed, and its structures are known.

    ``put_off``: the item is not executed, and waits until other sources have caught up.
    """

    item: DdlItem | TargetStep
    put_off: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """To the writer: finish the complete segments of one source, save, then set ``done``.

    A source of None means all sources.
    """

    done: anyio.Event
    source: str | None = None


GroupMessage = TargetSegment | Drain


@dataclass(frozen=True, slots=True)
class Passed:
    """Coordinator to writer: set ``done`` when all rows up to these segments are applied and saved.

    ``after``: by source, the incarnation and the segment. ``positions``: also save the positions of
    the sources, not only the low watermarks.
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
    """Coordinator to writer: a change of a target that no statement in a binlog demands.

    ``run`` makes the change while no batch writes to the target and none of its buckets is ahead of
    others.
    """

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
