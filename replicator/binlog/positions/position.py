"""Where something stands in a binlog file.

A *binlog position* is a file and a byte offset. Within one server's binlog files the order of
positions is the order of (sequence number of the file, offset): the server numbers its files
upwards (``name.000001``, ``name.000002`` …; MySQL internals manual, "Binary Log Files").
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Structure
from dataclasses import dataclass, field

from replicator.binlog.errors import BinlogError
from replicator.kernels.shared_numbers import shared
from replicator.mysql.server.identity import AnchorEvent

OFFSET_BITS = 40
"""Bits kept for the offset in a position key: files of up to one tebibyte."""
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
        """The position that is shown as this text."""
        file, _, offset = text.rpartition(":")
        return cls(file, int(offset))

    def with_key(self, key: int) -> BinlogPosition:
        """The position with this key in the same binlog: its files have names like this one's."""
        name, _, number = self.file.rpartition(".")
        sequence, offset = key >> OFFSET_BITS, key & (1 << OFFSET_BITS) - 1
        return BinlogPosition(f"{name}.{sequence:0{len(number)}d}", offset)


def begin_of(event: bytes, transaction: int) -> int:
    """The key of the position at which an event begins, of the transaction that begins at this key.

    ``event`` is the event without its checksum. 0 where it has no place of its own, as within a
    compressed transaction: those events come without checksums, and so do all of a source that
    writes none. The header has the event's size at byte 9 and the lower 32 bits of its end at byte
    13 (MySQL internals manual, "Binlog Event Header").
    """
    size = int.from_bytes(event[9:13], "little")
    end = int.from_bytes(event[13:17], "little")
    if not end or size == len(event):
        return 0
    behind = (end - size - transaction) & 0xFFFFFFFF
    return transaction + behind


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A transaction boundary of a source: file and offset, and the GTID set executed up to it.

    ``gtid`` is the server's own text form: ``0-1-42,1-2-7`` (MariaDB: the last GTID of each
    domain) or ``uuid:1-5,…`` (MySQL); empty when unknown. ``anchor`` is an event at or before
    the position, by which the binlog is known; None when unknown. ``prepared``: where the groups
    begin of the XA transactions that are prepared here, and whose outcome comes later.
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
    """The file and offset that were read up to, and the last boundary of an event group.

    ``before`` and ``offset`` are the ends of the current event. `advance` is spelled out in the
    loop over events, for speed: ``before = offset; offset += size``, then `end_event` when the
    event's own end position differs. ``file_key`` is the key of the file's beginning.
    """

    before: int
    offset: int
    boundary_offset: int
    file_key: int

    def __init__(self, start: BinlogPosition | None) -> None:
        """``start`` is None where only the stream tells it."""
        super().__init__(FILE_HEADER, FILE_HEADER, FILE_HEADER)
        self.file = ""
        if start is not None:
            self.rotate(start.file, start.offset)

    @property
    def boundary(self) -> BinlogPosition:
        """The last boundary of an event group."""
        return BinlogPosition(self.file, self.boundary_offset)

    def end_event(self, end: int) -> None:
        """Take an event's written end position, unless it is missing (0).

        It has 32 bits, so it wraps in files beyond 4 GiB. MariaDB 11.4+ writes 0 inside
        transactions, where the sum of the sizes holds.
        """
        if not end:
            return
        offset = self.before - self.before % _WRAP + end
        self.offset = offset if offset >= self.before else offset + _WRAP

    def stay(self) -> None:
        """The current event stands in no file: undo its advance."""
        self.offset = self.before

    def rotate(self, file: str, offset: int) -> None:
        """Go to another file. Raises BinlogError where its name has no number, or a huge one."""
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
        """Everything up to the end of the current event is complete."""
        self.boundary_offset = self.offset

    def begin_group(self, size: int) -> int:
        """A group begins with the current event, of ``size`` bytes.

        Returns the key (`BinlogPosition.key`) of its beginning. That is not always the end of the
        event before, which the server may have left out.
        """
        begin = self.offset - size
        self.boundary_offset = begin
        return self.file_key | begin

    def __str__(self) -> str:
        return f"{self.file}:{self.before}"


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One line of SHOW BINARY LOGS; ``size`` in bytes, of the last file: up to now."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Distance:
    """``files_behind`` and ``bytes_behind``: from the position to the end of the binlog.

    ``files_left``: files older than the position's own that the server still has.
    """

    files_behind: int
    bytes_behind: int
    files_left: int


def distance(position: BinlogPosition, files: Sequence[BinlogFile]) -> Distance | None:
    """Where a position stands among the files of its server; None where its file is purged."""
    older = [f for f in files if _sequence(f) < position.sequence]
    newer = [f for f in files if _sequence(f) > position.sequence]
    own = [f for f in files if _sequence(f) == position.sequence]
    if not own and newer:
        return None
    ahead = sum(f.size for f in newer) + sum(max(0, f.size - position.offset) for f in own)
    return Distance(len(newer), ahead, len(older))


def _sequence(file: BinlogFile) -> int:
    return BinlogPosition(file.name, 0).sequence
