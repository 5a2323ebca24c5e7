"""Counts of what a task has done since its process started, across all its generations.

Restarts, pauses and faults end readers, the writer and the full copy. All of them add to the counts
of the task, which its supervisor keeps. Targets are counted by name, because their numbers are only
valid in one generation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import anyio
import numpy as np

from actors.counting.validation_backlog import ValidationBacklog
from replicator.downstream.meta.retirements import EVERY_SHARD, Retirement
from replicator.kernels.compiled import Integers
from replicator.monitoring.meters import TaskMeters
from replicator.mysql.names import Member, TableName
from replicator.status import (
    CopyStatus,
    Reconciling,
    ShardStatus,
    UnreadableShard,
    VerifiedTarget,
    now,
)


@dataclass(slots=True)
class TransactionCount:
    """Counts the transactions of one source in their order.

    A transaction that is cut into segments counts once.
    """

    number: int = 0
    last: int = -1

    def add(self, transactions: Integers) -> None:
        """Count the transactions of row events in binlog order, at least one event."""
        self.number += int(np.count_nonzero(np.diff(transactions)))
        self.number += int(transactions[0]) != self.last
        self.last = int(transactions[-1])


@dataclass(slots=True)
class ShardCounts:
    """The number of row events of one shard that were read, and the time of the last one.

    ``until`` is this time by the clock of the source, to about 1 MiB of binlog; 0 if it is unknown.
    """

    rows: int = 0
    until: int = 0


@dataclass(slots=True)
class SourceCounts:
    """The row events that were read from a source, their bytes, and lost connections.

    Row events that are read again count again.

    Attributes:
        read_until: time of the last event by the clock of the source; 0 before the first event.
        applied: the transactions that have rows on the target.
        items: by target and shard, the highest number of a schema change that was logged.
        shards: the counts of each shard, by name.
    """

    rows: int = 0
    bytes: int = 0
    reconnects: int = 0
    read_until: float = 0.0
    applied: TransactionCount = field(default_factory=TransactionCount)
    changes: dict[tuple[str, TableName, TableName], int] = field(default_factory=dict)
    shards: defaultdict[TableName, ShardCounts] = field(
        default_factory=lambda: defaultdict(ShardCounts)
    )

    def is_new(self, event: str, target: TableName, shard: TableName, number: int) -> bool:
        """Record an event of a shard, and return whether it is read for the first time.

        ``number`` grows with each such event of the shard: a version of the target, or a place.
        """
        new = number > self.changes.get((event, target, shard), 0)
        if new:
            self.changes[event, target, shard] = number
        return new

    def add(self, rows: int, size: int, until: float) -> None:
        """Count row events and bytes; ``until`` as `read_until`, 0 if it is not known."""
        self.rows += rows
        self.bytes += size
        self.read_until = until or self.read_until


@dataclass(slots=True)
class TargetCounts:
    """The rows written to a target.

    Attributes:
        inserted, overwritten, deleted: numbers of rows.
        missing: number of rows to change or delete that the target did not have.
        filtered: number of changes that expression filters skipped; a change counts each time it is
            read.
        bytes: size of the applied row events.
        applied: the transactions of these events, by source.
    """

    inserted: int = 0
    overwritten: int = 0
    deleted: int = 0
    missing: int = 0
    filtered: int = 0
    bytes: int = 0
    applied: defaultdict[str, TransactionCount] = field(
        default_factory=lambda: defaultdict(TransactionCount)
    )

    @property
    def transactions(self) -> int:
        """The number of transactions with applied rows, over all sources."""
        return sum(count.number for count in self.applied.values())

    @property
    def written(self) -> int:
        """The number of rows inserted, overwritten or deleted."""
        return self.inserted + self.overwritten + self.deleted


@dataclass(slots=True)
class CopyCounts:
    """The rows of the full copy whose key was on the target already.

    ``before``: the progress when the last run ended, until a new run has counted.
    """

    replaced: int = 0
    ignored: int = 0
    before: CopyStatus | None = None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The reason why a shard can't be read; ``remedy`` is the statement that permits it, if any."""

    reason: str
    remedy: str = ""


@dataclass(slots=True)
class UnreadableShards:
    """The followed shards that the account can't read, as found last.

    Attributes:
        found: the shards.
        waiting: by target whose tracked keys can't be looked up, the shard that can't be read.
    """

    found: dict[Member, Unreadable] = field(default_factory=dict)
    waiting: dict[TableName, tuple[Member, Unreadable]] = field(default_factory=dict)

    def status(self) -> tuple[UnreadableShard, ...]:
        """Return the shards, each with the targets that may lack rows."""
        every = dict(self.waiting.values()) | self.found
        return tuple(
            UnreadableShard(
                member.source,
                str(member.name),
                why.reason,
                why.remedy,
                tuple(sorted(str(t) for t, (of, _) in self.waiting.items() if of == member)),
            )
            for member, why in sorted(every.items(), key=lambda item: item[0])
        )


@dataclass(slots=True)
class ReconciliationCounts:
    """The queue of targets to reconcile, as read last.

    Attributes:
        entries: the entries, by their keys.
        corrected: number of rows corrected since the process started.
        queued: an event that is set when the queue has changed since.
    """

    entries: dict[tuple[str, ...], Reconciling] = field(default_factory=dict)
    corrected: int = 0
    queued: anyio.Event = field(default_factory=anyio.Event)

    def changed(self) -> None:
        """Notify the reconciler that the queue has changed."""
        # An anyio event can't be cleared.
        self.queued.set()
        self.queued = anyio.Event()


@dataclass(slots=True)
class RetiringShards:
    """The shards that the operator retires, and the retired ones.

    Attributes:
        asked: by source, the shards to retire at the next start of the actors; None for all.
        refused: why the last request was refused.
        done: the retired shards of the task.
        wanted: an event that is set when there is a request.
    """

    asked: dict[str, frozenset[TableName] | None] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    done: Sequence[Retirement] = ()
    wanted: anyio.Event = field(default_factory=anyio.Event)

    def ask(self, shards: Mapping[str, frozenset[TableName] | None]) -> None:
        """Request that shards be retired."""
        self.asked, self.refused = dict(shards), ()
        self.wanted.set()

    def answer(self, refused: tuple[str, ...]) -> None:
        """Record the result of the request."""
        self.asked, self.refused, self.wanted = {}, refused, anyio.Event()

    def status(self) -> tuple[ShardStatus, ...]:
        """Return the retired shards."""
        return tuple(
            ShardStatus(
                one.member.source,
                str(one.member.name),
                str(one.target),
                retired=datetime.fromtimestamp(one.at, UTC),
            )
            for one in self.done
            if one.member.name != EVERY_SHARD
        )


@dataclass(slots=True)
class TaskCounts:
    """The counts of a task: of its sources by id, of its targets by name.

    Attributes:
        unreadable: what the account can't read at present.
        awaited: by shard and place, the former and the new targets of renamed shards that wait for
            other shards.
        joined: the created tables that have joined their targets without waiting, with the places
            of their statements.
    """

    started: datetime = field(default_factory=now)
    batches: int = 0
    awaited: dict[tuple[Member, int], tuple[TableName, TableName]] = field(default_factory=dict)
    joined: set[tuple[Member, int]] = field(default_factory=set)
    meters: TaskMeters = field(default_factory=TaskMeters)
    sources: defaultdict[str, SourceCounts] = field(
        default_factory=lambda: defaultdict(SourceCounts)
    )
    targets: defaultdict[TableName, TargetCounts] = field(
        default_factory=lambda: defaultdict(TargetCounts)
    )
    copy: CopyCounts = field(default_factory=CopyCounts)
    validation: ValidationBacklog = field(default_factory=ValidationBacklog)
    unreadable: UnreadableShards = field(default_factory=UnreadableShards)
    reconciling: ReconciliationCounts = field(default_factory=ReconciliationCounts)
    retiring: RetiringShards = field(default_factory=RetiringShards)
    verified: dict[TableName, VerifiedTarget] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Return the number of rows written, over all targets."""
        return sum(target.written for target in self.targets.values())
