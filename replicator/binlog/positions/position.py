"""Positions in binlog files.

A *binlog position* is a file and a byte offset. Within one server's binlog files, the order of
positions is the order of (sequence number of the file, offset), since the server numbers its files
in ascending order (``name.000001``, ``name.000002`` …; MySQL internals manual, "Binary Log Files").
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure
from dataclasses import dataclass, field

from replicator.binlog.errors import BinlogError
from replicator.kernels.shared_numbers import shared
from replicator.mysql.server.identity import AnchorEvent

OFFSET_BITS = 40
"""Bits of a position key for the offset: files of up to one tebibyte."""
_SEQUENCE_BITS = 63 - OFFSET_BITS


@dataclass(frozen=True, slots=True)
class BinlogPosition:
    """A byte offset in one binlog file of one server."""

    file: str
    offset: int

    @property
    def sequence(self) -> int:
        """The number of the file: 42 for ``mysql-bin.000042``.

        Raises ValueError when the file name does not end in a number.
        """
        return int(self.file.rpartition(".")[2])

    @property
    def key(self) -> int:
        """The position as one integer that sorts as the positions of one server do."""
        return self.sequence << OFFSET_BITS | self.offset

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> BinlogPosition:
        """Return the position with this text."""
        file, _, offset = text.rpartition(":")
        return cls(file, int(offset))

    def with_key(self, key: int) -> BinlogPosition:
        """Return the position with this key in the same binlog, by this file's base name."""
        name, _, number = self.file.rpartition(".")
        sequence, offset = key >> OFFSET_BITS, key & (1 << OFFSET_BITS) - 1
        return BinlogPosition(f"{name}.{sequence:0{len(number)}d}", offset)


def begin_of(event: bytes, transaction: int) -> int:
    """Return the key of an event's beginning; ``transaction`` is its transaction's key.

    ``event``: the event without its checksum. Returns 0 if it never had one: then it may come from
    a compressed transaction, whose events have no positions. This is also the case for every event
    of a source without checksums. The header has the event's size at byte 9 and the lower 32 bits
    of its end at byte 13 (MySQL internals manual, "Binlog Event Header").
    """
    size = int.from_bytes(event[9:13], "little")
    end = int.from_bytes(event[13:17], "little")
    if not end or size == len(event):
        return 0
    behind = (end - size - transaction) & 0xFFFFFFFF
    return transaction + behind


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A transaction boundary of a source.

    Attributes:
        gtid: the GTID set executed up to it, in the server's text form: ``0-1-42,1-2-7`` (MariaDB:
            the last GTID of each domain) or ``uuid:1-5,…`` (MySQL); empty if unknown.
        anchor: an event at or before the position that identifies the binlog; None if unknown.
        prepared: starts of the groups of XA transactions that are prepared here and end later.
    """

    binlog: BinlogPosition
    gtid: str = ""
    anchor: AnchorEvent | None = field(default=None, compare=False, repr=False)
    prepared: tuple[BinlogPosition, ...] = ()

    def __str__(self) -> str:
        return f"{self.binlog} ({self.gtid})" if self.gtid else str(self.binlog)


FILE_HEADER = 4
"""Offset of the first event of a file."""
_WRAP = 1 << 32


@shared
class ReadPosition(Structure):
    """The file and offset read so far, and the last boundary of an event group.

    ``before`` and ``offset`` are the two ends of the current event. The loop over events updates
    them directly, for speed: ``before = offset; offset += size``, then `end_event` if the event's
    own end position differs. ``file_key`` is the key of the file's beginning.
    """

    before: int
    offset: int
    boundary_offset: int
    file_key: int

    def __init__(self, start: BinlogPosition | None) -> None:
        """Begin at ``start``; None if only the stream shows the position."""
        super().__init__(FILE_HEADER, FILE_HEADER, FILE_HEADER)
        self.file = ""
        if start is not None:
            self.rotate(start.file, start.offset)

    @property
    def boundary(self) -> BinlogPosition:
        """The last boundary of an event group."""
        return BinlogPosition(self.file, self.boundary_offset)

    def end_event(self, end: int) -> None:
        """Set the offset to an event's written end position, unless it is missing (0).

        It has 32 bits, so it wraps in files beyond 4 GiB. MariaDB 11.4+ writes 0 inside
        transactions; then the sum of the sizes is right.
        """
        if not end:
            return
        offset = self.before - self.before % _WRAP + end
        self.offset = offset if offset >= self.before else offset + _WRAP

    def stay(self) -> None:
        """Undo the advance over the current event, which is in no file."""
        self.offset = self.before

    def rotate(self, file: str, offset: int) -> None:
        """Go to another file. Raises BinlogError if its name has no number, or a huge one."""
        self.file = file
        self.before = self.offset = self.boundary_offset = offset
        try:
            sequence = self.boundary.sequence
        except ValueError as error:
            raise BinlogError(
                f"The binlog file {file!r} does not end in a number, so positions can't be "
                "ordered. Check the source's log-bin setting."
            ) from error
        if sequence >= 1 << _SEQUENCE_BITS:
            raise BinlogError(
                f"The number of the binlog file {file!r} is too large: a position is one number of"
                f" 63 bits, with {_SEQUENCE_BITS} for that of the file. Begin the binlogs of the"
                " source anew (RESET MASTER, RESET BINARY LOGS AND GTIDS), and the task, too."
            )
        self.file_key = sequence << OFFSET_BITS

    def pass_boundary(self) -> None:
        """Set the boundary to the end of the current event: everything before it is complete."""
        self.boundary_offset = self.offset

    def begin_group(self, size: int) -> int:
        """Begin a group with the current event, of ``size`` bytes; return the key of its beginning.

        The beginning is not always the end of the previous event, which the server may have left
        out.
        """
        begin = self.offset - size
        self.boundary_offset = begin
        return self.file_key | begin

    def __str__(self) -> str:
        return f"{self.file}:{self.before}"


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One line of SHOW BINARY LOGS; ``size``: in bytes, for the last file its present size."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a position is from both ends of the binlog.

    Attributes:
        files_behind, bytes_behind: from the position to the end.
        files_left: files older than the position's own that the server still has.
    """

    files_behind: int
    bytes_behind: int
    files_left: int


def distance(position: BinlogPosition, files: Sequence[BinlogFile]) -> Distance | None:
    """Return a position's distance from the ends of the binlog; None if its file is purged."""
    older = [f for f in files if _sequence(f) < position.sequence]
    newer = [f for f in files if _sequence(f) > position.sequence]
    own = [f for f in files if _sequence(f) == position.sequence]
    if not own and newer:
        return None
    ahead = sum(f.size for f in newer) + sum(max(0, f.size - position.offset) for f in own)
    return Distance(len(newer), ahead, len(older))


def _sequence(file: BinlogFile) -> int:
    return BinlogPosition(file.name, 0).sequence
