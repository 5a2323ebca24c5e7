"""The writer of a relay: writes the events of a connection into files."""

from __future__ import annotations

import os
import time
from zlib import crc32

import numpy as np

from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import BinlogError, ChecksumError, OtherBinlogError
from replicator.binlog.events.event_header import (
    CHECKSUM_SIZE,
    CRC_RESIDUE,
    FLAG_ARTIFICIAL,
    FLAGS,
    HEAD,
    HEADER_SIZE,
    EventType,
)
from replicator.binlog.events.structural_events import read_rotate
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition
from replicator.binlog.relay.relay_files import (
    FileEnd,
    FileWriter,
    has_checksums,
    refuse_gap,
    sequence_of,
)
from replicator.binlog.relay.relay_kernel import NO_ROOM, RelayCursor, unpack
from replicator.binlog.relay.relay_log import RelayLog
from replicator.failpoints import Failpoint, reach
from replicator.kernels.compiled import Bytes, record_of
from replicator.kernels.crc32 import TABLES

_SYNC_SECONDS = 1.0
_HEARTBEATS = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
_ROOM = 4 << 20


class RelayWriter:
    """Writes the events of one connection into files.

    It begins with the last event of the files: the source must have the same event.
    """

    def __init__(
        self, relay: RelayLog, at: BinlogPosition, end: FileEnd | None, *, checks: bool
    ) -> None:
        assert relay.folder is not None
        self._relay = relay
        self._folder = relay.folder
        self._end = end
        self._file = at.file
        self._offset = at.offset
        self._last = end.last if end else FILE_HEADER
        self._checks = checks
        self._writer: FileWriter | None = None
        self._out: Bytes = np.empty(_ROOM, np.uint8)
        self._synced_at = time.monotonic()

    def take(self, packets: PacketBuffer) -> None:
        """Write the received events. Raises BinlogError, OSError."""
        while True:
            if self._writer is not None and not packets.continued:
                self._take_run(packets)
            event = packets.next_event()
            if event is None:
                break
            self._take_event(event)
        if time.monotonic() - self._synced_at >= _SYNC_SECONDS:
            self._sync()

    def close(self) -> FileEnd | None:
        """Close the files, and return their end; the content survives a power failure."""
        writer = self._writer
        if writer is None:
            return self._end
        try:
            self._sync()
        finally:
            writer.close()
        return FileEnd(writer.file, writer.offset, self._last)

    def _sync(self) -> None:
        if self._writer is not None:
            reach(Failpoint.RELAY_WRITTEN)
            self._writer.sync()
            reach(Failpoint.RELAY_SYNCED)
        self._synced_at = time.monotonic()

    def _take_run(self, packets: PacketBuffer) -> None:
        """Write events as long as they are ordinary."""
        stopped = NO_ROOM
        while stopped == NO_ROOM:
            cursor = RelayCursor(
                at=packets.at,
                end=packets.end,
                sequence=packets.sequence,
                offset=self._offset,
                checks=self._checks,
            )
            stopped = unpack(packets.data, self._out, record_of(cursor), TABLES)
            packets.at, packets.sequence = cursor.at, cursor.sequence
            if not cursor.filled:
                return
            self._write(self._out.data[: cursor.filled], cursor.last)

    def _write(self, data: memoryview, last: int) -> None:
        if self._writer is None:
            reach(Failpoint.RELAY_ROTATED)
            self._writer = FileWriter(self._folder, self._file, 0)
        self._writer.write(data)
        self._offset, self._last = self._writer.offset, last
        self._relay.advance(self._file, self._offset)

    def _take_event(self, event: bytes) -> None:
        kind, size, end = HEAD.unpack_from(event)
        if size != len(event):
            raise BinlogError(f"An event of {len(event)} bytes says that it has {size}.")
        artificial = bool(FLAGS.unpack_from(event, 17)[0] & FLAG_ARTIFICIAL)
        if kind == EventType.FORMAT_DESCRIPTION:
            self._checks = has_checksums(event)
        if self._checks and crc32(event) != CRC_RESIDUE:
            raise ChecksumError(f"The checksum of an event at {self._file}:{self._offset} is wrong")
        if kind == EventType.MARIADB_START_ENCRYPTION:
            raise BinlogError(
                "The source encrypts its binlog files (encrypt_binlog): a relay can't copy them."
            )
        if kind in _HEARTBEATS:
            missing = (end - self._offset) % (1 << 32)
            if kind == EventType.HEARTBEAT and end and 0 < missing < 1 << 31:
                raise BinlogError(f"The source left out events before {self._file}:{end}.")
            self._relay.heartbeat(event)
        elif artificial and kind == EventType.ROTATE:
            body = event[HEADER_SIZE : -CHECKSUM_SIZE if self._checks else None]
            self._rotate(*read_rotate(body))
        elif artificial or (kind == EventType.FORMAT_DESCRIPTION and self._offset != FILE_HEADER):
            # The event is in no file, or it was at the beginning of the file.
            return
        elif self._end is not None:
            self._compare(self._end, event)
        else:
            refuse_gap(self._file, self._offset, event)
            self._write(memoryview(event), self._offset)

    def _rotate(self, file: str, offset: int) -> None:
        """Continue in another file; the first event of this kind only names the file."""
        if self._end is not None and file == self._end.file and offset == self._offset:
            return
        if self._end is not None or offset != FILE_HEADER:
            raise OtherBinlogError(f"The source sends {file} from {offset} on, not {self._file}.")
        if self._writer is not None:
            if file == self._file:
                return
            if sequence_of(file) < sequence_of(self._file):
                raise OtherBinlogError(f"The source sends {file} after {self._file}.")
            self._sync()
            self._writer.close()
            self._writer = None
        self._file, self._offset = file, FILE_HEADER

    def _compare(self, end: FileEnd, event: bytes) -> None:
        """Compare the first event with the last event of the files."""
        if self._offset < end.last:
            # A file beyond 4 GiB is sent from its beginning.
            self._offset += len(event)
            return
        with (self._folder / end.file).open("rb") as file:
            own = os.pread(file.fileno(), end.end - end.last, end.last)
        if self._offset != end.last or not _are_equal(event, own):
            raise OtherBinlogError(
                f"The event at {end.file}:{end.last} is another one at the source than in the"
                " relay: its binlog was reset, or another server answers."
            )
        self._writer = FileWriter(self._folder, end.file, end.end)
        self._offset, self._end = end.end, None
        self._relay.advance(end.file, end.end)


def _are_equal(event: bytes, other: bytes) -> bool:
    """Return whether two events are equal.

    Flags and the checksum of a format description do not count, since a server changes them when it
    closes the file.
    """
    if event[4] != EventType.FORMAT_DESCRIPTION:
        return event == other
    return event[:17] == other[:17] and event[19:-CHECKSUM_SIZE] == other[19:-CHECKSUM_SIZE]
