"""The relay of a source, as a task uses it: started once, read and purged from then on."""

from __future__ import annotations

from dataclasses import replace

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.relay.relay_log import RelayLog, RelaySettings
from replicator.binlog.relay.relay_writer import RelayWriter
from replicator.binlog.relay.relayed_connection import RelayedConnection


class Relay(RelayLog):
    """Does nothing until `start`: until then each connection reads from the source."""

    def __init__(self, settings: RelaySettings, server_id: int) -> None:
        """``server_id``: of the connection that writes."""
        super().__init__(settings)
        self._server_id = server_id
        self._writer: RelayWriter | None = None

    @property
    def wanted(self) -> bool:
        """Whether to write from the start of a task on: enabled, or used before."""
        return self.settings.enabled or self.settings.folder.is_dir()

    def start(self, source: BinlogSource, position: BinlogPosition) -> None:
        """Begin to write, unless it has begun.

        Args:
            source: with the server that is expected.
            position: the oldest position that the task needs.
        """
        if self._writer is None:
            own = replace(source, server_id=self._server_id, relay=None)
            self.writing = True
            self._writer = RelayWriter(self, own, position)
            self._writer.start()

    def reconnect(self) -> None:
        """Connect to the source again, and compare the last event."""
        if self._writer is not None:
            self._writer.reconnect()

    def close(self) -> None:
        """Stop writing. Blocks."""
        if self._writer is not None:
            self._writer.close()

    def connection(
        self, source: BinlogSource, start: SourcePosition | GtidStart, *, bare: bool
    ) -> BinlogConnection:
        """Return a connection that reads from the relay if it can."""
        return RelayedConnection(source, self, start, bare=bare)
