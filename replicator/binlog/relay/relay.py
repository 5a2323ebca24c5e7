"""The relay of a source, as a task uses it: started once, read and purged from then on."""

from __future__ import annotations

from dataclasses import replace

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.relay.relay_log import RelayLog, RelaySettings, RelaySize
from replicator.binlog.relay.relay_writer import RelayWriter
from replicator.binlog.relay.relayed_connection import RelayedConnection


class Relay:
    """Does nothing until `start`: then each connection reads from the source."""

    def __init__(self, settings: RelaySettings, server_id: int) -> None:
        """``server_id``: of the connection that writes."""
        self._state = RelayLog(settings)
        self._server_id = server_id
        self._writer: RelayWriter | None = None

    @property
    def wanted(self) -> bool:
        """Whether to write from the start of a task on: enabled, or used before."""
        settings = self._state.settings
        return settings.enabled or settings.folder.is_dir()

    @property
    def started(self) -> bool:
        """Whether it was started."""
        return self._writer is not None

    def start(self, source: BinlogSource, position: BinlogPosition) -> None:
        """Begin to write, unless it has begun.

        Args:
            source: with the server that is expected.
            position: the oldest position that the task needs.
        """
        if self._writer is None:
            own = replace(source, server_id=self._server_id, relay=None)
            self._state.writing = True
            self._writer = RelayWriter(self._state, own, position)
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
        return RelayedConnection(source, self._state, start, bare=bare)

    def has(self, position: BinlogPosition) -> bool:
        """Whether the events from a position on can be read, whatever the source purges."""
        return self._state.has(position)

    @property
    def undecided(self) -> bool:
        """Whether it was started, and it is not known yet whether its files are the source's."""
        state = self._state
        return state.writing and not (state.proven or state.error)

    def purge(self, needed: BinlogPosition) -> list[str]:
        """As `RelayLog.purge`."""
        return self._state.purge(needed)

    def size(self) -> RelaySize | None:
        """As `RelayLog.size`."""
        return self._state.size()
