"""A connection that reads the binlog from a relay's files if possible, or else from the source."""

from __future__ import annotations

import os
import struct
import time
from zlib import crc32

import numpy as np

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.connection.framing import FIRST_PACKET, FULL_PACKET
from replicator.binlog.connection.server_info import ServerInfo
from replicator.binlog.errors import StreamLostError
from replicator.binlog.events.event_header import (
    CHECKSUM_SIZE,
    FLAG_ARTIFICIAL,
    HEADER_SIZE,
    SIZE,
    U32,
    EventType,
)
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition, SourcePosition
from replicator.binlog.relay.relay_files import has_checksums, read_format
from replicator.binlog.relay.relay_kernel import RelayCursor, pack
from replicator.binlog.relay.relay_log import RelayLog
from replicator.kernels.compiled import Bytes, record_of

_ROOM = 1 << 20
"""Bytes of a file read at once."""
_HEADER = struct.Struct("<IBIIIH")
"""Header of an event: time, type, server id, size, end position, flags."""


class RelayedConnection(BinlogConnection):
    """Receives the packets that the source would send.

    It asks the source for its identity and for GTIDs, like any other connection.
    """

    def __init__(
        self,
        source: BinlogSource,
        relay: RelayLog,
        start: SourcePosition | GtidStart,
        *,
        bare: bool = False,
    ) -> None:
        super().__init__(source, start, bare=bare)
        self._relay = relay
        self._relayed = False
        self._files: RelayPackets | None = None

    @property
    def asks_by_gtid(self) -> bool:
        """False for a relay, which can start at any offset."""
        return not self._relayed and super().asks_by_gtid

    def mistrust(self) -> bool:
        """Make all connections read from the source, as `BinlogConnection.mistrust` requires."""
        if self._files is not None:
            self._relay.distrust("A file is damaged: it was changed.")
        return self._files is not None

    def close(self) -> None:
        """Close the connection as `BinlogConnection.close` does, also for a waiting reader."""
        super().close()
        self._relay.wake()

    def _open(self) -> tuple[ServerInfo, str]:
        start = self._start
        if isinstance(start, SourcePosition):
            until = time.monotonic() + self._timeout
            while not self._relay.decided(self._timeout) and time.monotonic() < until:
                self._refuse_closed()
            there = self._relay.has(start.binlog)
            self._relayed = there and not self._has_more(start.binlog.file)
        return super()._open()

    def _has_more(self, file: str) -> bool:
        """Return whether the source also has the file, and the relay can't be continued.

        Such a relay may end inside a transaction, which its readers would never finish.
        """
        return bool(self._relay.error) and file in dict(self.binlogs())

    def _ask_binlog(self, info: ServerInfo) -> None:
        start = self._start
        if not self._relayed or isinstance(start, GtidStart):
            super()._ask_binlog(info)
            return
        checks = info.checksum == "CRC32"
        self._files = RelayPackets(self._relay, start.binlog, checks=checks)
        self._connection.close()
        self._connection = None

    def receive(self, room: memoryview, *, wait: bool) -> int:
        """Receive bytes as `BinlogConnection.receive` does."""
        if self._files is None:
            return super().receive(room, wait=wait)
        with self._using():
            until = time.monotonic() + self._timeout
            while not self._files.fill():
                if not wait:
                    return 0
                left = until - time.monotonic()
                if left <= 0:
                    raise StreamLostError(
                        f"The relay of {self._source} got nothing for {self._timeout:g} s, not even"
                        " a heartbeat."
                    )
                self._relay.wait(self._files.seen, left)
                if self._relay.tail != self._files.seen:
                    until = time.monotonic() + self._timeout
                self._refuse_closed()
            return self._files.give(room)

    def _dispose(self) -> None:
        super()._dispose()
        if self._files is not None and self._busy.acquire(blocking=False):
            self._files.close()
            self._busy.release()


class RelayPackets:
    """The packets of a relay's files from a position on."""

    def __init__(self, relay: RelayLog, start: BinlogPosition, *, checks: bool) -> None:
        """``checks``: whether the first event, before the format description, has a checksum."""
        self._relay = relay
        self._file = start.file
        self._offset = start.offset
        self._descriptor = -1
        self._checks = checks
        self._sequence = FIRST_PACKET
        self.seen = relay.tail
        self._beats = relay.tail.beats
        self._in: Bytes = np.empty(_ROOM, np.uint8)
        self._out: Bytes = np.empty(_ROOM, np.uint8)
        self._pending = memoryview(b"")

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def give(self, room: memoryview) -> int:
        """Put the next bytes into ``room``; return their number."""
        count = min(len(room), len(self._pending))
        room[:count] = self._pending[:count]
        self._pending = self._pending[count:]
        return count

    def fill(self) -> bool:
        """Prepare bytes for `give`; return False if there are none yet. Raises StreamLostError."""
        while not self._pending:
            self.seen = tail = self._relay.tail
            # Changes after this point are detected at the next call.
            grows = tail.at.file == self._file
            if self._descriptor < 0:
                if not self._open():
                    return False
            elif self._offset < (limit := tail.at.offset if grows else self._size):
                self._read(limit)
            elif not grows:
                self.close()
                self._file, self._offset = self._relay.next_file(self._file), FILE_HEADER
            elif tail.beat and tail.beats != self._beats:
                self._beats = tail.beats
                self._frame(tail.beat)
            else:
                return False
        return True

    @property
    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def _open(self) -> bool:
        """Open the file if the relay has reached the offset."""
        place = BinlogPosition(self._file, self._offset)
        folder = self._relay.folder
        if folder is None or not self._relay.reached(place):
            return False
        try:
            self._descriptor = os.open(folder / self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise self._damaged(str(error)) from error
        if self._offset > self._size:
            raise self._damaged(f"It ends before {self._offset}.")
        self._frame(_rotation(place, checks=self._checks))
        if self._offset > FILE_HEADER:
            description = read_format(self._descriptor)
            if not description:
                raise self._damaged("It has no format description.")
            self._checks = has_checksums(description)
            self._frame(_without_end(description))
        return True

    def _read(self, limit: int) -> None:
        """Frame the next events of the file."""
        count = min(limit - self._offset, _ROOM)
        self._fill(self._in.data[:count])
        cursor = RelayCursor(end=count, sequence=self._sequence)
        pack(self._in, self._out, record_of(cursor))
        if cursor.filled:
            self._sequence = cursor.sequence
            self._offset += cursor.at
            self._pending = self._out.data[: cursor.filled]
            return
        size = SIZE.unpack_from(self._in.data, 9)[0] if count >= HEADER_SIZE else 0
        if size < HEADER_SIZE or self._offset + size > limit:
            raise self._damaged(f"No event is at {self._offset}.")
        event = bytearray(size)
        self._fill(memoryview(event))
        if event[4] == EventType.FORMAT_DESCRIPTION:
            self._checks = has_checksums(bytes(event))
        self._offset += size
        self._frame(bytes(event))

    def _fill(self, room: memoryview) -> None:
        try:
            count = os.preadv(self._descriptor, [room], self._offset)
        except OSError as error:
            raise self._damaged(str(error)) from error
        if count < len(room):
            raise self._damaged(f"It ends at {self._offset + count}.")

    def _damaged(self, reason: str) -> StreamLostError:
        error = StreamLostError(f"The file {self._file} of the relay can't be read. {reason}")
        self._relay.distrust(str(error))
        return error

    def _frame(self, event: bytes) -> None:
        """Put one event into as many packets as needed."""
        payload = b"\0" + event
        packets = bytearray()
        while True:
            piece, payload = payload[:FULL_PACKET], payload[FULL_PACKET:]
            packets += len(piece).to_bytes(3, "little") + bytes((self._sequence,)) + piece
            self._sequence = self._sequence + 1 & 0xFF
            if len(piece) < FULL_PACKET:
                break
        self._pending = memoryview(bytes(self._pending) + packets)


def _rotation(place: BinlogPosition, *, checks: bool) -> bytes:
    """Return the artificial event that names the file, like a server's."""
    body = place.offset.to_bytes(8, "little") + place.file.encode()
    size = HEADER_SIZE + len(body) + (CHECKSUM_SIZE if checks else 0)
    event = _HEADER.pack(0, EventType.ROTATE, 0, size, 0, FLAG_ARTIFICIAL) + body
    return event + U32.pack(crc32(event)) if checks else event


def _without_end(description: bytes) -> bytes:
    """Return a format description without end position, as sent before a later event."""
    event = description[:13] + U32.pack(0) + description[17:-CHECKSUM_SIZE]
    return event + U32.pack(crc32(event))
