"""The writer's books: which chunks of a source have arrived, are being applied, are finished.

Pure bookkeeping without I/O. A chunk is *whole* when its end and all of its parts are there; the
chunks of a source enter batches in order, and only whole ones, so that a batch never shows a
state between two chunks. A part with a DDL is a barrier: later chunks of the source wait until
it was executed. A source's resume position moves over a chunk when its rows are applied and its
barriers are executed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from actors.messages import ChunkEnd, DdlItem, GroupSaved, Part
from replicator.binlog.position import Point, SourcePosition
from replicator.sharding.items import At, boundary
from replicator.sharding.resume import Boundary, Resume


class ChunkState(Enum):
    """The stations of a chunk."""

    ARRIVING = auto()
    """Its end or a part is missing."""
    IN_BATCH = auto()
    """Its rows are being applied."""
    APPLIED = auto()
    """Its rows are on the target; barriers may be open."""


@dataclass(slots=True)
class PendingChunk:
    """One chunk that the writer has not finished."""

    number: int
    end: ChunkEnd | None = None
    parts: dict[int, Part] = field(default_factory=dict)
    state: ChunkState = ChunkState.ARRIVING
    barriers: set[int] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether everything that belongs to the chunk has arrived."""
        return self.end is not None and self.end.targets <= self.parts.keys()

    @property
    def has_rows(self) -> bool:
        """Whether there is anything to apply."""
        return any(part.rows for part in self.parts.values())

    @property
    def ends(self) -> dict[int, Point]:
        """The points of its last rows, by target."""
        return {
            part.target: Point(part.version, part.rows.transaction[-1], part.rows.ordinal[-1])
            for part in self.parts.values()
            if part.rows
        }


@dataclass(frozen=True, slots=True)
class BookState:
    """What is saved of a source at a boundary; ``position`` is None before the first is known."""

    position: SourcePosition | None
    groups: Mapping[int, GroupSaved]


def _nothing_open() -> Collection[At]:
    return ()


class SourceBook:
    """The chunks of one source in the writer, in order, and how far the source has come.

    ``start`` is where it begins and what its groups are there, ``floors`` the points known to be
    applied, by target. ``open_items`` tells the places of the DDL items that are open: a source
    is never saved behind one of them.
    """

    def __init__(
        self,
        source: str,
        epoch: int,
        start: BookState,
        floors: dict[int, Point],
        open_items: Callable[[], Collection[At]] = _nothing_open,
    ) -> None:
        self.source = source
        self.epoch = epoch
        self.reached = start
        self.floors = floors
        self.queued_bytes = 0
        self._open_items = open_items
        key = start.position.binlog.key if start.position else 0
        self._resume = Resume(Boundary(key, start))
        self._whole_transaction = False
        self._chunks: deque[PendingChunk] = deque()
        self._first = 0
        self._groups = start.groups
        self._tried: dict[int, Point] = {}

    @property
    def resume(self) -> BookState:
        """What would be saved now."""
        return self._resume.boundary(self._open_items()).state

    @property
    def resume_at(self) -> At:
        """The place that would be saved now, as `replicator.sharding` takes it."""
        return boundary(self._resume.boundary(self._open_items()).key)

    @property
    def open_items(self) -> int:
        """How many DDL items, or turns to a next version, are open."""
        return len(self._open_items())

    def renewed(self, epoch: int, state: BookState, floors: Mapping[int, Point]) -> SourceBook:
        """The book of the source's next incarnation."""
        book = SourceBook(self.source, epoch, state, dict(floors), self._open_items)
        book._tried = self._tried
        return book

    @property
    def furthest(self) -> dict[int, Point]:
        """The highest points that any bucket may have, by target."""
        found = dict(self.floors)
        for target, point in self._tried.items():
            found[target] = max(point, found.get(target, point))
        return found

    def passed(self, epoch: int, chunk: int) -> bool:
        """Whether all rows up to a chunk of an incarnation are applied."""
        if epoch < self.epoch:
            return True
        return all(
            pending.state is ChunkState.APPLIED
            for pending in self._chunks
            if pending.number <= chunk
        ) and chunk < self._first + len(self._chunks)

    @property
    def idle(self) -> bool:
        """Whether nothing can be done about what has arrived: at most it waits, in vain when its
        reader has stopped, for the rest of a transaction (`put_back`)."""
        if not self._whole_transaction:
            return not self._chunks
        return all(chunk.state is ChunkState.ARRIVING for chunk in self._chunks)

    def add_end(self, end: ChunkEnd) -> None:
        """Note the end of a chunk."""
        chunk = self._chunk(end.chunk)
        assert chunk.end is None, f"{self.source}: chunk {end.chunk} ended twice"
        chunk.end = end
        self.queued_bytes += end.bytes

    def add_part(self, part: Part) -> None:
        """Note a part of a chunk."""
        chunk = self._chunk(part.chunk)
        assert part.target not in chunk.parts, f"{self.source}: a part of {part.chunk} came twice"
        chunk.parts[part.target] = part
        if part.ddl is not None:
            chunk.barriers.add(part.target)

    def take(self, room: int, blocked: Collection[int]) -> list[PendingChunk]:
        """Chunks for the next batch, of ``room`` bytes or the first one if that is larger.

        Stops before a chunk that touches a ``blocked`` target (its DDL is being executed) and
        after a chunk with a barrier or a renamed member. After `put_back`: none before the
        transaction is whole.
        """
        taken: list[PendingChunk] = []
        ended = False
        for chunk in self._chunks:
            if chunk.state is ChunkState.ARRIVING:
                full = ended if self._whole_transaction else room <= 0
                if not chunk.whole or (taken and full):
                    break
                if any(target in blocked for target in chunk.parts):
                    break
                assert chunk.end is not None
                chunk.state = ChunkState.IN_BATCH
                room -= chunk.end.bytes
                taken.append(chunk)
            ended = chunk.end is not None and chunk.end.complete
            if chunk.barriers or (taken and any(part.renamed for part in chunk.parts.values())):
                break
        if self._whole_transaction and taken:
            if not ended:
                self._return(taken)
                return []
            self._whole_transaction = False
        return taken

    def cut_short(self, chunks: Sequence[PendingChunk]) -> bool:
        """Whether the last of these chunks of a batch leaves a transaction unfinished."""
        last = chunks[-1]
        for chunk in self._chunks:
            # Chunks without rows that followed were finished at once.
            if chunk.number == last.number + 1 and chunk.state is ChunkState.APPLIED:
                last = chunk
        return last.end is not None and not last.end.complete

    def put_back(self, chunks: Sequence[PendingChunk]) -> None:
        """The batch could not be applied: these chunks are to be taken again, and the rest of the
        transaction that the last one is cut out of with them, however large that is."""
        self._whole_transaction = self.cut_short(chunks)
        # Some buckets may have them all the same.
        for chunk in chunks:
            self._tried |= chunk.ends
        self._return(chunks)

    @staticmethod
    def _return(chunks: Sequence[PendingChunk]) -> None:
        for chunk in chunks:
            chunk.state = ChunkState.ARRIVING

    def applied(self, chunks: Collection[PendingChunk]) -> None:
        """The rows of these chunks are on the target, in every bucket."""
        for chunk in chunks:
            chunk.state = ChunkState.APPLIED
            self.floors |= chunk.ends
        self._advance()

    def barriers(self) -> Iterator[DdlItem]:
        """DDL items whose turn has come: all rows before them are applied."""
        for chunk in self._chunks:
            if chunk.state is not ChunkState.APPLIED:
                return
            for target in sorted(chunk.barriers):
                ddl = chunk.parts[target].ddl
                assert ddl is not None
                yield ddl

    def executed(self, item: DdlItem) -> None:
        """A barrier was executed on the target."""
        for chunk in self._chunks:
            part = chunk.parts.get(item.target)
            if part is not None and part.ddl is item:
                chunk.barriers.discard(item.target)
                self._advance()
                return
        raise AssertionError(f"{self.source}: an unknown barrier was executed: {item}")

    def _chunk(self, number: int) -> PendingChunk:
        while self._first + len(self._chunks) <= number:
            self._chunks.append(PendingChunk(self._first + len(self._chunks)))
        assert number >= self._first, f"{self.source}: chunk {number} is finished already"
        return self._chunks[number - self._first]

    def _advance(self) -> None:
        while self._chunks:
            chunk = self._chunks[0]
            if chunk.state is not ChunkState.APPLIED or chunk.barriers:
                return
            assert chunk.end is not None
            self._reach(chunk, chunk.end)
            self.queued_bytes -= chunk.end.bytes
            self._chunks.popleft()
            self._first += 1

    def _reach(self, chunk: PendingChunk, end: ChunkEnd) -> None:
        """A chunk is finished: its end may be saved, unless it is inside a transaction."""
        changed = {t: part.saved for t, part in chunk.parts.items() if part.saved is not None}
        groups = {**self._groups, **changed} if changed else self._groups
        self._groups = groups
        if end.complete:
            self.reached = BookState(end.end, groups)
            self._resume.applied(Boundary(end.end.binlog.key, self.reached), self._open_items())
