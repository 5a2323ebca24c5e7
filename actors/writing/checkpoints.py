"""Checkpoints of sources, and the watermarks of buckets that they rely on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count, takewhile

from attrs import define, field

from actors.mailboxes.messages import GroupSaved
from actors.saved.lock_state import dump_group
from actors.writing.segment_tracker import SegmentTracker
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.downstream.meta.checkpoint import AlsoSaved, Checkpoint, MetaStore
from replicator.downstream.meta.held_shards import HELD_TABLE, HeldShards, replace_held
from replicator.downstream.meta.row_owners import RowOwnerStore
from replicator.downstream.rows.watermark_table import BucketKey, BucketMarks
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import NOTHING_APPLIED, Watermark


@define(eq=False)
class CheckpointSaver:
    """Saves the progress of each source, from its tracker.

    Attributes:
        servers: by source, the server that is read.
        also: saves more with each checkpoint.
        held: returns the shards whose rows wait.
        saved: the saved position of each source, as shown in reports.
        saved_at: time of the last checkpoint, by the monotonic clock.
    """

    _registry: SchemaRegistry
    _meta: MetaStore
    _trackers: Mapping[str, SegmentTracker]
    _servers: Mapping[str, ServerIdentity]
    watermarks: BucketWatermarks
    owners: RowOwnerStore
    also: AlsoSaved | None = field(default=None, init=False)
    held: Callable[[], Mapping[TableName, HeldShards]] = field(default=dict, init=False)
    _held: Mapping[TableName, HeldShards] | None = field(default=None, init=False)
    saved: dict[str, str] = field(factory=dict, init=False)
    saved_at: float = field(factory=time.monotonic, init=False)
    _groups: dict[str, Mapping[int, GroupSaved]] = field(factory=dict, init=False)
    _newest: dict[str, Checkpoint] = field(factory=dict, init=False)
    _owners_written: int = field(default=0, init=False)
    _low_watermarks: dict[str, Mapping[int, Watermark]] = field(factory=dict, init=False)

    def has_low_watermarks(self) -> bool:
        """Whether the current low watermarks of all sources are saved."""
        return all(
            tracker.low_watermarks == self._low_watermarks.get(source)
            for source, tracker in self._trackers.items()
        )

    async def save(self) -> None:
        """Save the checkpoint of every source, including its groups if they have changed.

        Raises FencedError if the target has lost state that the checkpoint relies on.
        """
        states = {source: tracker.resume for source, tracker in self._trackers.items()}
        changed = [s for s, state in states.items() if state.groups is not self._groups.get(s)]
        checkpoints = {
            source: self._checkpoint(source, state.position, state.groups)
            for source, state in states.items()
            if state.position is not None
        }
        low_watermarks = {s: dict(self._trackers[s].low_watermarks) for s in checkpoints}
        moved, held = self.watermarks.moved, self.held()
        self._owners_written = 0
        await self._meta.save(
            checkpoints.values(),
            members=frozenset(changed),
            former=self._newest,
            expected=moved,
            also=partial(self._save_more, held),
        )
        self.watermarks.verified(moved)
        self.owners.saved(self._owners_written)
        self._held = held
        self._groups |= {source: states[source].groups for source in checkpoints}
        self._newest |= checkpoints
        self._low_watermarks |= low_watermarks
        self.saved |= {s: f"{c.file}:{c.offset}" for s, c in checkpoints.items()}
        self.saved_at = time.monotonic()

    def needed(self, source: str) -> tuple[BinlogPosition, ...]:
        """Return the positions that the saved state of a source needs; empty if none is saved."""
        saved = self._newest.get(source)
        if saved is None or not saved.file:
            return ()
        prepared = map(BinlogPosition.parse, saved.prepared)
        return (BinlogPosition(saved.file, saved.offset), *prepared)

    async def save_low_watermarks(self) -> None:
        """Save only the low watermarks, as a schema change requires.

        Raises the same errors as `save`. After a restart, a source may be read again from a
        position before the change. Its rows before the change have no plan, and the low
        watermarks show that they are applied.
        """
        unsaved = [t for source, t in self._trackers.items() if source not in self._newest]
        if any(tracker.resume.position for tracker in unsaved):
            return await self.save()
        moved = self.watermarks.moved
        low_watermarks = {s: dict(self._trackers[s].low_watermarks) for s in self._newest}
        checkpoints = {
            source: replace(
                former,
                low_watermarks=self._low_watermarks_of(source),
                low_gtids=self._low_gtids_of(source),
            )
            for source, former in self._newest.items()
        }
        await self._meta.save_low_watermarks(
            checkpoints.values(), former=self._newest, expected=moved
        )
        self.watermarks.verified(moved)
        self._newest |= checkpoints
        self._low_watermarks |= low_watermarks
        return None

    async def _save_more(
        self, held: Mapping[TableName, HeldShards], transaction: Transaction
    ) -> None:
        if held != self._held:
            await replace_held(transaction, self._meta.table(HELD_TABLE), held)
        self._owners_written = await self.owners.write(transaction)
        if self.also is not None:
            await self.also(transaction)

    def _checkpoint(
        self, source: str, position: SourcePosition, groups: Mapping[int, GroupSaved]
    ) -> Checkpoint:
        name_of = self._registry.target_name
        former = self._newest.get(source)
        applied = self._trackers[source].reached.position
        if former is not None and groups is self._groups[source]:
            members, states = former.members, former.groups
        else:
            members = tuple(
                self._registry.record(member, version, position.binlog.key - 1)
                for group in groups.values()
                for member, version in group.members
            )
            states = tuple(
                (name_of(target), dump_group(group.state))
                for target, group in groups.items()
                if group.state is not None
            )
        return Checkpoint(
            source=source,
            file=position.binlog.file,
            offset=position.binlog.offset,
            gtid=position.gtid,
            server=self._servers[source],
            anchor=position.anchor,
            prepared=tuple(map(str, position.prepared)),
            members=members,
            groups=states,
            open_items=self._trackers[source].open_items,
            applied=str(applied.binlog) if applied else "",
            low_watermarks=self._low_watermarks_of(source),
            low_gtids=self._low_gtids_of(source),
        )

    def _low_watermarks_of(self, source: str) -> tuple[tuple[TableName, Watermark], ...]:
        low_watermarks = self._trackers[source].low_watermarks
        return tuple((self._registry.target_name(t), mark) for t, mark in low_watermarks.items())

    def _low_gtids_of(self, source: str) -> Mapping[TableName, str]:
        gtids = self._trackers[source].low_gtids
        return {self._registry.target_name(target): gtid for target, gtid in gtids.items()}


class BucketWatermarks:
    """The watermark that each bucket must at least have.

    A bucket's watermark is at least the one of the last batch that was reported. It can be later,
    since a batch can be committed without a reported outcome. A checkpoint relies on the
    watermarks, so it first reads the ones that have moved since the last checkpoint.

    Args:
        found: the watermarks of the target at the start.
    """

    def __init__(self, found: Mapping[BucketKey, Watermark]) -> None:
        self._left = dict(found)
        self._moved: dict[BucketKey, Watermark] = {}

    @property
    def moved(self) -> Mapping[BucketKey, Watermark]:
        """The watermarks that were moved since they were last verified."""
        return dict(self._moved)

    def missing(self, keys: Iterable[BucketKey]) -> list[BucketKey]:
        """Return the buckets that never had a watermark."""
        return [key for key in keys if key not in self._left]

    def opened(self, keys: Iterable[BucketKey]) -> None:
        """Record that these buckets now have a watermark, which is before every row."""
        self._left |= dict.fromkeys(keys, NOTHING_APPLIED)

    def surplus(
        self, pairs: Iterable[tuple[str, TableName]], counts: Mapping[TableName, int]
    ) -> list[BucketKey]:
        """Return the buckets of these targets that exceed the target's number of buckets."""
        return [
            key
            for source, target in pairs
            for key in takewhile(
                self._left.__contains__, ((source, target, n) for n in count(counts[target]))
            )
        ]

    def closed(self, keys: Iterable[BucketKey]) -> None:
        """Record that these buckets no longer have a watermark."""
        for key in keys:
            del self._left[key]
            self._moved.pop(key, None)

    def of(self, keys: Iterable[BucketKey]) -> Mapping[BucketKey, Watermark]:
        """Return the watermarks of some buckets."""
        return {key: self._left[key] for key in keys}

    def left(self, target: TableName, watermarks: BucketMarks) -> None:
        """Record the watermarks of a target's buckets after a batch."""
        for (source, bucket), watermark in watermarks.items():
            self._left[source, target, bucket] = watermark
            self._moved[source, target, bucket] = watermark

    def verified(self, watermarks: Mapping[BucketKey, Watermark]) -> None:
        """Record that the target has these watermarks."""
        for key, watermark in watermarks.items():
            if self._moved.get(key) == watermark:
                del self._moved[key]


def buckets_of(
    pairs: Collection[tuple[str, TableName]], buckets: Mapping[TableName, int]
) -> list[BucketKey]:
    """Return all buckets of some sources' rows for targets; ``buckets``: their number by target."""
    return [(source, target, n) for source, target in sorted(pairs) for n in range(buckets[target])]
