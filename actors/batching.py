"""The writer's books: which chunks of a source have arrived, are being applied, are finished.

Pure bookkeeping without I/O. A chunk is *whole* when its end and all of its parts are there; the
chunks of a source enter batches in order, and only whole ones, so that a batch never shows a
state between two chunks. A part with a DDL is a barrier: later chunks of the source wait until
it was executed. A source's resume position moves over a chunk when its rows are applied and its
barriers are executed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from actors.messages import ChunkEnd, DdlItem, Part
from replicator.binlog.position import Point, SourcePosition


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


class SourceBook:
    """The chunks of one source in the writer, in order, and how far the source has come."""

    def __init__(
        self,
        source: str,
        epoch: int,
        resume: SourcePosition | None,
        members: dict[int, dict[int, int]],
        floors: dict[int, Point],
    ) -> None:
        self.source = source
        self.epoch = epoch
        self.resume = resume
        self.members = members
        self.floors = floors
        self.timestamp = 0
        self.members_changed = True
        self._chunks: deque[PendingChunk] = deque()
        self._first = 0
        self.queued_bytes = 0

    @property
    def idle(self) -> bool:
        """Whether nothing that has arrived is unfinished."""
        return not self._chunks

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
        after a chunk with a barrier.
        """
        taken: list[PendingChunk] = []
        for chunk in self._chunks:
            if chunk.state is ChunkState.ARRIVING:
                if not chunk.whole or (taken and room <= 0):
                    break
                if any(target in blocked for target in chunk.parts):
                    break
                assert chunk.end is not None
                chunk.state = ChunkState.IN_BATCH
                room -= chunk.end.bytes
                taken.append(chunk)
            if chunk.barriers:
                break
        return taken

    def applied(self, chunks: Collection[PendingChunk]) -> None:
        """The rows of these chunks are on the target, in every bucket."""
        for chunk in chunks:
            chunk.state = ChunkState.APPLIED
            for part in chunk.parts.values():
                if part.rows:
                    rows = part.rows
                    self.floors[part.target] = Point(
                        part.version, rows.transaction[-1], rows.ordinal[-1]
                    )
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
            self.resume = chunk.end.end
            self.timestamp = chunk.end.timestamp or self.timestamp
            self.queued_bytes -= chunk.end.bytes
            for target, part in chunk.parts.items():
                if part.members is not None:
                    self.members[target] = dict(part.members)
                    self.members_changed = True
            self._chunks.popleft()
            self._first += 1
