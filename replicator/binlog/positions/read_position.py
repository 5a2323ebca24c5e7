"""Where a stream stands in the source's binlog files."""

from __future__ import annotations

from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.position import OFFSET_BITS, BinlogPosition

FILE_HEADER = 4
"""Offset of the first event of a file."""
_WRAP = 1 << 32


class ReadPosition:
    """The file and offset that were read up to, and the last boundary of an event group.

    ``before`` and ``offset`` are the ends of the current event. `advance` is spelled out in the
    loop over events, for speed: ``before = offset; offset += size``, then `end_event` when the
    event's own end position differs.
    """

    __slots__ = ("before", "boundary", "file", "file_key", "offset")

    def __init__(self, start: BinlogPosition | None) -> None:
        """``start`` is None where only the stream tells it."""
        self.file = ""
        self.file_key = 0
        self.offset = self.before = FILE_HEADER
        self.boundary = start or BinlogPosition("", FILE_HEADER)
        if start is not None:
            self.rotate(start.file, start.offset)

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
        """Go to another file. Raises BinlogError when its name has no number."""
        self.file = file
        self.before = self.offset = offset
        self.boundary = BinlogPosition(file, offset)
        try:
            self.file_key = self.boundary.sequence << OFFSET_BITS
        except ValueError as error:
            raise BinlogError(
                f"The binlog file {file!r} does not end in a number, so positions can't be "
                "ordered. Check the source's log-bin setting."
            ) from error

    def pass_boundary(self) -> None:
        """Everything up to the end of the current event is complete."""
        self.boundary = BinlogPosition(self.file, self.offset)

    def begin_group(self, size: int) -> int:
        """A group begins with the current event, of ``size`` bytes.

        Returns the key (`BinlogPosition.key`) of its beginning. That is not always the end of the
        event before, which the server may have left out.
        """
        begin = self.offset - size
        self.boundary = BinlogPosition(self.file, begin)
        return self.file_key | begin

    def __str__(self) -> str:
        return f"{self.file}:{self.before}"
