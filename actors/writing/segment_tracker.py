"""The writer's trackers of segments: which ones have arrived, are applied, and are finished.

A tracker does no I/O. A segment is *whole* when its end and all of its parts have arrived. Only
whole segments enter batches, in the order of their source, so a batch never exposes a state between
two segments. A part with a DDL is a barrier: later segments of the source wait until the DDL is
executed. The saved position of a source advances past a segment when the segment's rows are applied
and its barriers are executed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

from actors.mailboxes.messages import DdlItem, GroupSaved, SegmentEnd, TargetSegment
from replicator.binlog.positions.position import SourcePosition
from replicator.watermark import NOTHING_APPLIED, Place, Reached, Watermark, boundary


class SegmentState(Enum):
    """The stages of a segment."""

    ARRIVING = auto()
    """The end or a part of the segment is missing."""
    IN_BATCH = auto()
    """The rows are being applied."""
    APPLIED = auto()
    """The rows are on the target; barriers may still be open."""


@dataclass(slots=True)
class PendingSegment:
    """One segment that the writer has not finished."""

    number: int
    end: SegmentEnd | None = None
    parts: dict[int, TargetSegment] = field(default_factory=dict)
    state: SegmentState = SegmentState.ARRIVING
    barriers: set[int] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether all parts of the segment, and its end, have arrived."""
        return self.end is not None and self.end.targets <= self.parts.keys()

    @property
    def has_rows(self) -> bool:
        """Whether the segment has rows to apply."""
        return any(part.rows for part in self.parts.values())

    @property
    def reached(self) -> Reached:
        """The boundary after the segment's rows, or if it was cut, the last one before the cut."""
        assert self.end is not None
        position = self.end.end
        mark = position.anchor
        return Reached(position.binlog.key, position.gtid, mark.dump() if mark else "")

    @property
    def ends(self) -> dict[int, Watermark]:
        """The watermarks of the segment's last rows, by target."""
        return {
            part.target: Watermark(part.version, *part.rows.last)
            for part in self.parts.values()
            if part.rows
        }


@dataclass(frozen=True, slots=True)
class SourceState:
    """The saved state of a source at a boundary; ``position`` is None before the first is known."""

    position: SourcePosition | None
    groups: Mapping[int, GroupSaved]


def _nothing_open() -> Collection[Place]:
    return ()


def _nothing_held(_: int) -> bool:
    return False


class SegmentTracker:
    """The segments of one source in the writer, in order, and their progress.

    Args:
        start: first boundary, with the state of the groups there.
        low_watermarks: the watermarks known to be applied, by target.
        open_items: returns the positions of the open DDL items; the saved position is before all of
            them.
        high_watermarks: the highest watermarks that any bucket may have, by target.
        is_held: returns whether the rows of a target wait until they are read again.
    """

    def __init__(
        self,
        source: str,
        epoch: int,
        start: SourceState,
        low_watermarks: dict[int, Watermark],
        open_items: Callable[[], Collection[Place]] = _nothing_open,
        high_watermarks: Mapping[int, Watermark] | None = None,
        is_held: Callable[[int], bool] = _nothing_held,
    ) -> None:
        self.source = source
        self.epoch = epoch
        self.reached = start
        self.low_watermarks = low_watermarks
        self.low_gtids: dict[int, str] = {}
        """The GTID sets executed at the low watermarks that have moved."""
        self.queued_bytes = 0
        self._open_items = open_items
        self._is_held = is_held
        key = start.position.binlog.key if start.position else 0
        self._resume = Resume(Boundary(key, start))
        self._whole_transaction = False
        self._closed = False
        self._segments: deque[PendingSegment] = deque()
        self._first = 0
        self._groups = start.groups
        self._tried = {
            target: high
            for target, high in (high_watermarks or {}).items()
            if high != low_watermarks.get(target)
        }

    @property
    def resume(self) -> SourceState:
        """The state to save now."""
        return self._resume.boundary(self._open_items()).state

    @property
    def resume_at(self) -> Place:
        """The position to save now, in the form that `replicator.sharding` uses."""
        return boundary(self._resume.boundary(self._open_items()).key)

    @property
    def oldest(self) -> int:
        """Time of the oldest change that is not on the target, in seconds by the source's clock.

        0 if there is no such change, or if its time is unknown.
        """
        for segment in self._segments:
            done = segment.state is SegmentState.APPLIED and not segment.barriers
            if segment.end is not None and segment.end.targets and not done:
                return segment.end.timestamp
        return 0

    @property
    def open_items(self) -> int:
        """Number of open DDL items and cutovers."""
        return len(self._open_items())

    def renewed(
        self, epoch: int, state: SourceState, low_watermarks: Mapping[int, Watermark]
    ) -> SegmentTracker:
        """Return the tracker of the source's next run."""
        low = dict(low_watermarks)
        tracker = SegmentTracker(
            self.source, epoch, state, low, self._open_items, self._tried, self._is_held
        )
        tracker.low_gtids = self.low_gtids
        return tracker

    @property
    def high_watermarks(self) -> dict[int, Watermark]:
        """The highest watermarks that any bucket may have, by target."""
        found = dict(self.low_watermarks)
        for target, watermark in self._tried.items():
            found[target] = max(watermark, found.get(target, watermark))
        return found

    def is_level(self, target: int) -> bool:
        """Whether no bucket of a target may be ahead of the low watermark of the source's rows."""
        return self.high_watermarks.get(target) == self.low_watermarks.get(target)

    def passed(self, epoch: int, segment: int) -> bool:
        """Whether everything up to a segment of a run is done: rows applied, DDL executed."""
        if epoch < self.epoch:
            return True
        return all(
            pending.state is SegmentState.APPLIED and not pending.barriers
            for pending in self._segments
            if pending.number <= segment
        ) and segment < self._first + len(self._segments)

    @property
    def idle(self) -> bool:
        """Whether no arrived segment can be applied.

        Segments may wait for the rest of a transaction (`repair`). If the reader has stopped, the
        rest never arrives.
        """
        if not self._whole_transaction:
            return not self._segments
        return all(segment.state is SegmentState.ARRIVING for segment in self._segments)

    def add_end(self, end: SegmentEnd) -> None:
        """Add the end of a segment."""
        segment = self._segment(end.segment)
        assert segment.end is None, f"{self.source}: segment {end.segment} ended twice"
        segment.end = end
        self.queued_bytes += end.bytes

    def add_part(self, part: TargetSegment) -> None:
        """Add a part of a segment."""
        segment = self._segment(part.segment)
        assert part.target not in segment.parts, (
            f"{self.source}: a part of {part.segment} came twice"
        )
        segment.parts[part.target] = part
        if part.ddl is not None:
            segment.barriers.add(part.target)

    def take(self, room: int, blocked: Collection[int]) -> list[PendingSegment]:
        """Return the segments for the next batch, at least one, otherwise at most ``room`` bytes.

        The batch ends before a segment that touches a ``blocked`` target, whose DDL is being
        executed, and after a segment with a barrier or a renamed member. After `repair`, the batch
        is empty until the transaction is whole.
        """
        taken: list[PendingSegment] = []
        ended = False
        for segment in self._segments:
            if segment.state is SegmentState.ARRIVING:
                full = ended if self._whole_transaction else room <= 0
                if not segment.whole or (taken and full):
                    break
                if any(target in blocked for target in segment.parts):
                    break
                assert segment.end is not None
                segment.state = SegmentState.IN_BATCH
                room -= segment.end.bytes
                taken.append(segment)
            ended = segment.end is not None and segment.end.complete
            if segment.barriers or (taken and any(part.renamed for part in segment.parts.values())):
                break
        if self._whole_transaction and taken:
            if not ended:
                self._return(taken)
                return []
            self._whole_transaction = False
        return taken

    def cut_short(self, segments: Sequence[PendingSegment]) -> bool:
        """Whether the last of these segments of a batch leaves a transaction unfinished."""
        if self._closed:
            return False
        last = segments[-1]
        for segment in self._segments:
            # The following segments without rows were finished at once.
            if segment.number == last.number + 1 and segment.state is SegmentState.APPLIED:
                last = segment
        return last.end is not None and not last.end.complete

    def close(self) -> None:
        """Record a fault of the source: the rest of an unfinished transaction will not arrive.

        A batch that needs the rest can then not be applied at all.
        """
        self._closed = True
        self._whole_transaction = False

    def repair(self, segments: Sequence[PendingSegment]) -> None:
        """Put back the segments of a batch that could not be applied.

        They are submitted again together with the rest of the unfinished transaction, whatever its
        size.
        """
        self._whole_transaction = self.cut_short(segments)
        # Some buckets may have the rows nevertheless.
        for segment in segments:
            for target, tried in segment.ends.items():
                self._tried[target] = max(tried, self._tried.get(target, tried))
        self._return(segments)

    @staticmethod
    def _return(segments: Sequence[PendingSegment]) -> None:
        for segment in segments:
            segment.state = SegmentState.ARRIVING

    def applied(self, segments: Collection[PendingSegment]) -> None:
        """Record that the rows of these segments are on the target, in every bucket."""
        for segment in segments:
            segment.state = SegmentState.APPLIED
            ends = segment.ends
            self.low_watermarks |= ends
            self.low_gtids |= {t: segment.reached.gtid_of(end) for t, end in ends.items()}
        self._advance()

    def barriers(self) -> Iterator[DdlItem]:
        """Yield the DDL items that may be executed now: all rows before them are applied."""
        for segment in self._segments:
            if segment.state is not SegmentState.APPLIED:
                return
            items = [segment.parts[target].ddl for target in sorted(segment.barriers)]
            found = [item for item in items if item is not None]
            # Tables leave before their database. Only then it is known whether others use the
            # database.
            yield from [item for item in found if item.effect.target.table] or found

    def executed(self, item: DdlItem) -> Collection[int]:
        """Record that a barrier was executed; return the targets that the statement concerns."""
        for segment in self._segments:
            part = segment.parts.get(item.target)
            if part is not None and part.ddl is item:
                segment.barriers.discard(item.target)
                self._advance()
                return segment.parts.keys()
        raise AssertionError(f"{self.source}: an unknown barrier was executed: {item}")

    def _segment(self, number: int) -> PendingSegment:
        while self._first + len(self._segments) <= number:
            self._segments.append(PendingSegment(self._first + len(self._segments)))
        assert number >= self._first, f"{self.source}: segment {number} is finished already"
        return self._segments[number - self._first]

    def _advance(self) -> None:
        while self._segments:
            segment = self._segments[0]
            if segment.state is not SegmentState.APPLIED or segment.barriers:
                return
            assert segment.end is not None
            self._reach(segment, segment.end)
            self.queued_bytes -= segment.end.bytes
            self._segments.popleft()
            self._first += 1

    def _reach(self, segment: PendingSegment, end: SegmentEnd) -> None:
        """Finish a segment, whose end may become the saved position outside a transaction."""
        changed = {t: part.saved for t, part in segment.parts.items() if part.saved is not None}
        groups = {**self._groups, **changed} if changed else self._groups
        self._groups = groups
        if end.complete:
            self.reached = SourceState(end.end, groups)
            self._catch_up(segment)
            self._resume.applied(Boundary(end.end.binlog.key, self.reached), self._open_items)

    def _catch_up(self, segment: PendingSegment) -> None:
        """Raise the low watermarks to the buckets' after all events up to these were read again.

        This does not apply to a held target: some of its buckets may still lack rows, which are not
        applied while it is held.
        """
        for target, tried in tuple(self._tried.items()):
            if tried.transaction < segment.reached.key and not self._is_held(target):
                del self._tried[target]
                if tried > self.low_watermarks.get(target, NOTHING_APPLIED):
                    self.low_watermarks[target] = tried
                    self.low_gtids[target] = segment.reached.gtid_of(tried)


State = TypeVar("State")

_FEW_BOUNDARIES = 8
"""Maximum number of unneeded boundaries before they are removed."""


@dataclass(frozen=True, slots=True)
class Boundary(Generic[State]):
    """A transaction boundary of a source, and the state of all its groups there.

    Attributes:
        key: key of the position; the transaction that begins there comes after the boundary.
    """

    key: int
    state: State


class Resume(Generic[State]):
    """The boundaries of one source that may still become its saved position."""

    def __init__(self, start: Boundary[State]) -> None:
        self._boundaries = [start]
        self._room = _FEW_BOUNDARIES

    def applied(
        self, reached: Boundary[State], open_items: Callable[[], Collection[Place]]
    ) -> None:
        """Record that everything before this boundary is applied.

        The state must be the one at this boundary. The end of a segment that was cut inside a
        transaction is not a boundary. Boundaries that no open item needs are removed from time to
        time.

        Args:
            open_items: returns the open items of all groups (`Group.open_items`).
        """
        last = self._boundaries[-1]
        assert reached.key >= last.key, f"{reached.key} is applied after {last.key}"
        if reached.key == last.key:
            return
        self._boundaries.append(reached)
        if len(self._boundaries) > self._room:
            self._forget(open_items())

    def _forget(self, open_items: Collection[Place]) -> None:
        known = self._boundaries
        needed = {len(known) - 1, *(_before(known, at) for at in open_items)}
        self._boundaries = [known[index] for index in sorted(needed)]
        # The next removal is at twice this number, since there may be thousands of open items.
        self._room = max(_FEW_BOUNDARIES, 2 * len(self._boundaries))

    def boundary(self, open_items: Collection[Place]) -> Boundary[State]:
        """Return the boundary to save: the last applied one that precedes every open item."""
        if not open_items:
            return self._boundaries[-1]
        # A boundary before the earliest item precedes all of them.
        return self._boundaries[_before(self._boundaries, min(open_items))]


def _before(boundaries: list[Boundary[State]], at: Place) -> int:
    """Return the index of the last boundary before a position."""
    earlier = bisect_right(boundaries, at, key=lambda found: boundary(found.key))
    assert earlier, f"saved behind the open item at {at}"
    return earlier - 1
