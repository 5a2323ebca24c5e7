"""The relay of a source as a task uses it: started once, then read and purged."""

from __future__ import annotations

import threading
from dataclasses import replace

import pymysql

from replicator.binlog.connection.dump_connection import FARTHEST, BinlogConnection, BinlogSource
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import BinlogError, OtherBinlogError, PurgedError, StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import FILE_HEADER, BinlogPosition, SourcePosition
from replicator.binlog.relay.relay_files import FileEnd, cut_torn_end
from replicator.binlog.relay.relay_log import RelayLog, RelaySettings
from replicator.binlog.relay.relay_writer import RelayWriter
from replicator.binlog.relay.relayed_connection import RelayedConnection

_LOST_WAIT = (0.5, 15.0)
"""Seconds before connecting again: the first pause, and the longest one."""
_FAILED_WAIT = 15.0
"""Seconds before a retry if an operator has to act, as with a full disk."""
_LONGEST_END = 5.0
"""Maximum seconds to wait for the end of the thread."""


class Relay(RelayLog):
    """Copies a source's binlog in a separate thread, after it is started.

    Until then, each connection reads from the source. The relay copies from the end of its files
    on, or from the file of the start position. If the source's binlog does not continue at the end
    of the files, they are set aside, and new ones are begun.
    """

    def __init__(self, settings: RelaySettings, server_id: int) -> None:
        """``server_id``: the id of the connection that copies."""
        super().__init__(settings)
        self._server_id = server_id
        self._end: FileEnd | None = None
        self._connection: BinlogConnection | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def wanted(self) -> bool:
        """Whether to copy from the start of a task on: the relay is enabled, or was used before."""
        return self.settings.enabled or self.settings.folder.is_dir()

    def start(self, source: BinlogSource, position: BinlogPosition) -> None:
        """Begin to copy, unless it has begun; return at once.

        Args:
            source: the source, with the expected server.
            position: the oldest position that the task needs.
        """
        if self._thread is None:
            own = replace(source, server_id=self._server_id, relay=None)
            self.writing = True
            self._thread = threading.Thread(
                target=self._run, args=(own, position), name=f"relay {source}", daemon=True
            )
            self._thread.start()

    def reconnect(self) -> None:
        """Connect to the source again, and compare the last event."""
        if self._connection is not None:
            self._connection.close()

    def close(self) -> None:
        """Stop copying, and wait until it has stopped, but not for a server without an answer."""
        self._stop.set()
        self.unusable = "It has ended."
        self.wake()
        self.reconnect()
        if self._thread is not None:
            self._thread.join(_LONGEST_END)

    def connection(
        self, source: BinlogSource, start: SourcePosition | GtidStart, *, bare: bool
    ) -> BinlogConnection:
        """Return a connection that reads from the relay if it can."""
        return RelayedConnection(source, self, start, bare=bare)

    def _run(self, source: BinlogSource, position: BinlogPosition) -> None:
        pause, failure = _LOST_WAIT[0], ""
        try:
            while not self._stop.is_set():
                before = self.tail
                try:
                    self._follow(source, position)
                except StreamLostError as error:
                    moved = self.tail != before
                    self.interrupt(str(error), failed=False)
                    pause = _LOST_WAIT[0] if moved else min(2 * pause, _LOST_WAIT[1])
                    self._stop.wait(pause)
                except (BinlogError, OSError, pymysql.MySQLError) as error:
                    self.interrupt(str(error), failed=True)
                    if str(error) != failure:
                        failure = str(error)
                        self._log.warning("relay.failed", error=failure)
                    self._stop.wait(_FAILED_WAIT)
        finally:
            self.interrupt("Its writer has ended.", failed=True)
            self.unlock()

    def _follow(self, source: BinlogSource, position: BinlogPosition) -> None:
        server = source.expected
        assert server is not None
        # MariaDB has no UUID.
        folder = self.folder or self.open(server.server_uuid or f"server-id-{server.server_id}")
        if self._end is None:
            self._end = cut_torn_end(folder)
        try:
            self._copy(source, position)
        except (OtherBinlogError, PurgedError) as error:
            if self._end is None or self.proven:
                raise
            self.set_aside(str(error))
            self._end = None

    def _copy(self, source: BinlogSource, position: BinlogPosition) -> None:
        """Copy the binlog from the end of the files on, until the connection is lost."""
        end = self._end
        file = end.file if end else position.file
        start = end.last if end and end.last < FARTHEST else FILE_HEADER
        at = SourcePosition(BinlogPosition(file, start))
        self._connection = connection = BinlogConnection(source, at, bare=True)
        if self._stop.is_set():
            return
        writer: RelayWriter | None = None
        try:
            info, _ = connection.open()
            writer = RelayWriter(self, at.binlog, end, checks=info.checksum == "CRC32")
            packets = PacketBuffer()
            while True:
                packets.received(connection.receive(packets.room(), wait=True))
                writer.take(packets)
                if packets.failure is not None:
                    raise connection.failure(packets.failure.code, packets.failure.message)
        finally:
            connection.close()
            if writer is not None:
                # If closing fails, the next copy reads the end from the files.
                self._end = None
                self._end = writer.close()
