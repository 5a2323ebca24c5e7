"""The input and the result of one Spark job that applies row events."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from replicator.binlog.segments.row_events import RowEvents, joined
from replicator.downstream.fence import Fence, Mismatch
from replicator.downstream.rows.watermark_table import BucketKey, BucketMarks
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import Member
from replicator.mysql.size_limits import size_limit
from replicator.pipeline.plans.plan import PlanList
from replicator.watermark import Reached, Watermark

Share = dict[int, frozenset[int]]
"""The share of one Spark task: by number of a target, the buckets that the task applies."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Row events with everything that is needed to apply them; immutable.

    Attributes:
        tables: the events. Each table is of one target; the events of a target are in the order of
            arrival, the events of each source in binlog order. Their ``kind`` is an index into
            ``plans``.
        ends: the watermarks of the targets after the batch, by source and number of the target.
        left: the watermarks that the buckets must at least have.
        revision: the number of the last save, or a later number.
        shared: the numbers of the targets that have several members.
        reached: by source, the boundary that its targets reach with the batch.
        cascading: the numbers of the targets with events of parents; one task has all of them.
        share: the buckets that the receiving task applies.
    """

    plans: PlanList
    tables: tuple[RowEvents, ...]
    ends: Mapping[tuple[str, int], Watermark] = field(default_factory=dict)
    left: Mapping[BucketKey, Watermark] = field(default_factory=dict)
    revision: int = 0
    shared: frozenset[int] = frozenset()
    reached: Mapping[str, Reached] = field(default_factory=dict)
    cascading: frozenset[int] = frozenset()
    share: Share = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def sizes(self) -> dict[int, int]:
        """The bytes of the events of each target, by its number."""
        targets = self.plans.targets
        sizes: dict[int, int] = {}
        for table in self.tables:
            target = int(targets[table.kind[0]])
            sizes[target] = sizes.get(target, 0) + table.size
        return sizes

    def of_targets(self, numbers: Collection[int]) -> Batch:
        """Return the batch with the events of only these targets, all in one table."""
        targets = self.plans.targets
        chosen = [table for table in self.tables if int(targets[table.kind[0]]) in numbers]
        return replace(self, tables=(joined(chosen),))

    @property
    def events(self) -> RowEvents:
        """The row events, if they are in one table."""
        (events,) = self.tables
        return events


@dataclass(frozen=True, slots=True)
class ApplySettings:
    """How to write to the target.

    Attributes:
        watermark_table: quoted name (`replicator.downstream.rows.watermark_table`).
        fence: distinguishes writers of this run from all others.
        load_data: whether the server accepts LOAD DATA in a transaction
            (`replicator.downstream.rows.load_data.probe_load_data`).
        safe_until: by source, the key of the position up to which safe mode applies.
        patience: seconds for which an executor retries to reach a target that is unavailable.
        tracked_table: quoted name of the table for keys of shared targets that were deleted, or
            that existed already when a row was written in safe mode
            (`replicator.downstream.meta.tracked_keys`); empty if such keys are not recorded.
        show_values: whether errors may contain values of rows.
        validated: the sources whose applied keys are reported.
        late_cascades: quoted name of the table of the later effects of foreign keys.
        tracked_cascades: quoted name of the table of keys of rows that foreign keys may have
            deleted.
        reconciliations: quoted name of the queue of targets to reconcile
            (`replicator.downstream.meta.reconciliations`); empty if an uncertain effect of a
            foreign key is a failure.
        typed: whether the server takes many rows with one statement, as parameters.
        crash: the values of REPLICATOR_CRASH_AT and REPLICATOR_CRASH_PID for
            `replicator.failpoints`.
    """

    address: DatabaseAddress
    watermark_table: str
    fence: Fence
    load_data: bool
    safe_until: Mapping[str, int] = field(default_factory=dict)
    patience: float = 60.0
    tracked_table: str = ""
    show_values: bool = False
    validated: frozenset[str] = frozenset()
    late_cascades: str = ""
    tracked_cascades: str = ""
    reconciliations: str = ""
    typed: bool = False
    crash: tuple[str, str] = ("", "")


class RowPosition(NamedTuple):
    """The position of the row event that a fault is about.

    ``transaction`` and ``ordinal`` are as in a `replicator.watermark.Watermark`. ``event`` is the
    key of the position at which the event itself begins, or 0 if it has none, as in a compressed
    transaction. Without a ``member``, the fault is about an event of the source at or before this
    position.
    """

    source: str
    member: str
    transaction: int
    ordinal: int
    event: int


def place_of(events: RowEvents, index: int, source: str, member: str) -> RowPosition:
    """Return the position of one of the events, which is of this source and member."""
    transaction, ordinal = int(events.transaction[index]), int(events.ordinal[index])
    return RowPosition(source, member, transaction, ordinal, events.begin_key(index))


class RefusedRow(NamedTuple):
    """A row whose key the target already has. Its values may have to be hidden.

    Attributes:
        text: the server's message, which names the key.
        columns: the names of the row's columns.
        line: the row line.
    """

    text: str
    columns: tuple[str, ...]
    line: bytes


class WriteOutcome(StrEnum):
    """The outcome of the transaction of a Spark task. Only DONE has changed the task's buckets."""

    DONE = "done"
    DUPLICATE = "duplicate"
    """A row of one shard has a key that another row already has."""
    REFUSED = "refused"
    """The target refuses a row or a statement; another attempt will not help."""
    CHANGED = "changed"
    """The structure of the target is not the one for which the rows were planned."""
    UNREACHABLE = "unreachable"
    """For too long, the target was unavailable, or other transactions held locks."""
    LOCKED = "locked"
    """Another session has locked rows or the table, and did not release the lock in time."""
    UNDECODABLE = "undecodable"
    """A row event could not be read; no bucket of its target was written."""
    NO_ROOM = "no-room"
    """A value of a mapped column has no room for the shard's number; no bucket of its target was
    written."""
    UNFILTERED = "unfiltered"
    """An expression filter has no result for a row; no bucket of its target was written."""
    CASCADE_IN_SAFE_MODE = "cascade-in-safe-mode"
    """A change that overlaps with the full copy has effects by foreign keys. None of the targets
    was written that these effects concern."""
    OUT_OF_STEP = "out-of-step"
    """The target does not have the state that this run committed: another run has taken over the
    task, or commits were lost."""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The outcome for a target's rows in one Spark task, in the buckets of this task.

    Attributes:
        inserted: number of inserted rows; ``overwritten`` and ``deleted`` are such numbers, too.
        missing: rows to change or delete that the target did not have.
        skipped: rows that were left out because the watermarks of their buckets cover them.
        code: the server's error number; 0 if there is none.
        members: the shards concerned, as far as they are known.
        waited: whole seconds since a server was first unavailable.
        key: the names of the row key's columns.
        row: the values of the row key, if they may be shown.
        positions: the positions of the row events, or the positions up to which the binlogs were
            read.
        left: the watermarks of the written buckets.
        mismatch: the state that was found instead of the expected one.
        transactions: the number of transactions; if the target refused fewer, ``code`` says why.
        late: number of deleted rows that must be searched for in the shards.
        refused: the row whose key the target already has.
        uncertain: the sources whose foreign keys may have had other effects on children. The
            children's targets are in the queue of reconciliations.
    """

    target: int
    outcome: WriteOutcome
    inserted: int = 0
    overwritten: int = 0
    deleted: int = 0
    missing: int = 0
    skipped: int = 0
    code: int = 0
    message: str = ""
    members: tuple[str, ...] = ()
    waited: int = 0
    key: tuple[str, ...] = ()
    row: str = ""
    positions: tuple[RowPosition, ...] = ()
    left: BucketMarks = field(default_factory=dict)
    mismatch: Mismatch | None = None
    transactions: int = 1
    late: int = 0
    refused: RefusedRow | None = None
    uncertain: tuple[str, ...] = ()

    @property
    def too_large(self) -> bool:
        """Whether the target may accept the rows in several transactions."""
        limit = size_limit(self.code, self.message)
        return self.outcome is WriteOutcome.REFUSED and limit is not None and not limit.of_row


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The number of changes of one shard's rows that filters left out.

    ``rules``: the filters' names.
    """

    target: int
    member: Member
    rules: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class AppliedKeys:
    """The keys of a target that row events of one shard have changed; keys may occur repeatedly.

    Attributes:
        columns: the columns of the target's row key.
        lines: the key lines, each with its newline.
    """

    target: int
    member: Member
    columns: tuple[str, ...]
    lines: bytes


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcomes for all targets of a batch, and the rows that its filters left out.

    ``keys``: the keys that the batch has changed in shards of validated sources.
    """

    outcomes: tuple[TargetOutcome, ...]
    left_out: tuple[LeftOut, ...] = ()
    keys: tuple[AppliedKeys, ...] = ()

    @property
    def failures(self) -> tuple[TargetOutcome, ...]:
        """The outcomes of the targets that were not written."""
        return tuple(o for o in self.outcomes if o.outcome is not WriteOutcome.DONE)

    def total(self, count: str) -> int:
        """Return the sum of one of the counts (``"inserted"`` …) over all buckets."""
        return sum(getattr(outcome, count) for outcome in self.outcomes)


@dataclass(slots=True)
class _Load:
    share: Share
    size: float = 0.0


def spread(
    sizes: Mapping[int, int],
    buckets: Mapping[int, int],
    tasks: int,
    together: Collection[int] = (),
) -> list[Share]:
    """Divide the buckets of each target among ``tasks`` Spark tasks; some tasks may get nothing.

    A task with any bucket of a target receives and decodes all row events of the target. So a
    target is divided among as few tasks as an even distribution allows.

    Args:
        sizes: the bytes of each target's row events.
        buckets: the number of each target's buckets. Each bucket is in exactly one share.
        together: the targets whose buckets all go to one task.
    """
    loads = [_Load({}) for _ in range(tasks)]
    even = max(1.0, sum(sizes.values()) / tasks)
    for target in sorted(sizes.keys() & set(together)):
        loads[0].share[target] = frozenset(range(buckets[target]))
        loads[0].size += sizes[target]
    for target in sorted(sizes.keys() - set(together), key=lambda number: (-sizes[number], number)):
        count = max(1, min(buckets[target], tasks, round(sizes[target] / even)))
        chosen = sorted(loads, key=lambda load: load.size)[:count]
        for index, load in enumerate(chosen):
            load.share[target] = frozenset(range(index, buckets[target], count))
            load.size += sizes[target] / count
    return [load.share for load in loads]
