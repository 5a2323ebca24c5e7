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
"""The share of one Spark task: the buckets of each target, by the target's number."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Row events with everything that is needed to apply them; immutable.

    Attributes:
        tables: the events. Each table is of one target; the events of a target are in the order of
            arrival, each source's in binlog order. Their ``kind`` is an index into ``plans``.
        ends: the watermarks of the targets after the batch, by source and number of the target.
        left: the watermarks that the buckets must have, unless they have later ones.
        revision: the number of the last save, or a later one.
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
        """The batch with the events of some targets only, all in one table."""
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
        tracked_table: quoted name of the table of keys of shared targets that were deleted, or that
            met a row in safe mode (`replicator.downstream.meta.tracked_keys`); empty if none are
            recorded.
        show_values: errors may contain values of rows.
        validated: the sources whose keys are reported after they were applied.
        late_cascades: quoted name of the table of the later effects of foreign keys.
        tracked_cascades: quoted name of the table of keys of rows that foreign keys may have
            deleted.
        reconciliations: quoted name of the queue of targets to reconcile
            (`replicator.downstream.meta.reconciliations`); empty if an effect of a foreign key that
            is not certain is a failure.
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
    crash: tuple[str, str] = ("", "")


class RowPosition(NamedTuple):
    """The position of the row event that a fault is about.

    ``transaction`` and ``ordinal`` as in a `replicator.watermark.Watermark`; ``event`` is the key
    of the position at which the event itself begins, 0 if it has none, as in a compressed
    transaction. Without a ``member`` it is an event of the source at or before this one.
    """

    source: str
    member: str
    transaction: int
    ordinal: int
    event: int


def place_of(events: RowEvents, index: int, source: str, member: str) -> RowPosition:
    """The position of one of the events, of this source and member."""
    transaction, ordinal = int(events.transaction[index]), int(events.ordinal[index])
    return RowPosition(source, member, transaction, ordinal, events.begin_key(index))


class RefusedRow(NamedTuple):
    """A row whose key the target already has. Contains values, which may have to be hidden.

    Attributes:
        text: the server's message, which names the key.
        columns: the names of its columns.
        line: the row.
    """

    text: str
    columns: tuple[str, ...]
    line: bytes


class WriteOutcome(StrEnum):
    """How the transaction of a Spark task's buckets ended. All but DONE left them unchanged."""

    DONE = "done"
    DUPLICATE = "duplicate"
    """A row of one shard has a key that another row already has."""
    REFUSED = "refused"
    """The target refuses a row or a statement; trying again will not help."""
    CHANGED = "changed"
    """The target has another structure than the rows were planned for."""
    UNREACHABLE = "unreachable"
    """The target was unavailable, or other transactions were in the way, for too long."""
    LOCKED = "locked"
    """Another session has locked rows or the table, and did not release them in time."""
    UNDECODABLE = "undecodable"
    """A row event could not be read; no bucket of its target was written."""
    NO_ROOM = "no-room"
    """A value of a mapped column has no room for the shard's number; no bucket of its target was
    written."""
    UNFILTERED = "unfiltered"
    """An expression filter has no result for a row; no bucket of its target was written."""
    CASCADE_IN_SAFE_MODE = "cascade-in-safe-mode"
    """Foreign keys act on a change that overlaps with the full copy. No target was written that
    they reach."""
    OUT_OF_STEP = "out-of-step"
    """The target does not have what this run left there: another process has taken the task over,
    or commits were lost."""


@dataclass(frozen=True, slots=True)
class TargetOutcome:
    """The outcome for a target's rows in one Spark task, in the buckets that the task has.

    Attributes:
        inserted: rows, as are ``overwritten`` and ``deleted``.
        missing: rows to change or delete that the target did not have.
        skipped: rows left out since their buckets' watermarks cover them.
        code: the server's error number; 0 if there is none.
        members: the shards concerned, as far as they are known.
        waited: whole seconds since a server was first unavailable.
        key: the names of the row key's columns.
        row: the values of the row key, if they may be shown.
        positions: those of the row events, or up to which their binlogs were read.
        left: the watermarks of the written buckets.
        mismatch: the state that was found instead of the expected one.
        transactions: how many were necessary; if the target refused fewer, ``code`` says why.
        late: number of deleted rows that must be searched for in the shards.
        refused: the row whose key the target already has.
        uncertain: the sources whose foreign keys may have had other effects on children. The
            targets of these are in the queue of reconciliations.
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
    """The changes of one shard's rows that its rules left out; ``rules`` are their names."""

    target: int
    member: Member
    rules: tuple[str, ...]
    rows: int


@dataclass(frozen=True, slots=True)
class AppliedKeys:
    """The keys that row events of one shard touched in a target; some may occur more than once.

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
    """The outcomes of all targets that a batch touched, and the rows that its filters left out.
    ``keys``: the keys that it touched in shards of validated sources.
    """

    outcomes: tuple[TargetOutcome, ...]
    left_out: tuple[LeftOut, ...] = ()
    keys: tuple[AppliedKeys, ...] = ()

    @property
    def failures(self) -> tuple[TargetOutcome, ...]:
        """The outcomes of the targets that were not written."""
        return tuple(o for o in self.outcomes if o.outcome is not WriteOutcome.DONE)

    def total(self, count: str) -> int:
        """The sum of one of the counts (``"inserted"``, ``"missing"`` …) over all buckets."""
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

    Each task with buckets of a target gets and decodes all of its row events. So a target is
    divided among as few tasks as an even distribution allows.

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
