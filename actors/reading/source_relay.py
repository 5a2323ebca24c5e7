"""The relay of a source while a task follows it: when it begins, and what may be purged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread
import structlog

from actors.setup.task_setup import SourceSetup, binlog_source
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.relay.relay import Relay
from replicator.mysql.server.identity import ServerIdentity
from replicator.relay_status import RelayStatus


def begin_relay(
    setup: SourceSetup, server: ServerIdentity, start: SourcePosition | GtidStart
) -> None:
    """Start the relay of a source if it has one that is enabled, or was used before."""
    relay = setup.relay
    if relay is not None and relay.wanted and isinstance(start, SourcePosition):
        relay.start(binlog_source(setup, server), start.binlog)


class SourceRelay:
    """The relay of one source. Methods get the positions that the state in memory needs."""

    def __init__(
        self,
        setup: SourceSetup,
        relay: Relay,
        server: ServerIdentity,
        saved: Callable[[], Sequence[BinlogPosition]],
    ) -> None:
        """``saved`` returns the positions that the saved state needs; empty if unknown."""
        self._setup = setup
        self._relay = relay
        self._server = server
        self._saved = saved
        self._purging = anyio.Lock()
        self._log = structlog.get_logger().bind(source=setup.source)

    def needed_of_source(self, position: BinlogPosition) -> BinlogPosition | None:
        """Return the first position whose files the source must keep for `position`.

        Reading is to start at `position`. Return None if the source may purge all files, or if this
        is not known yet. A relay that has stopped contains the events only up to its end.
        """
        relay = self._relay
        if relay.undecided:
            return None
        if not relay.has(position):
            return position
        size = relay.size()
        return BinlogPosition.parse(size.end) if size is not None and size.error else None

    def begin(self, position: BinlogPosition) -> bool:
        """Start, because the source is about to purge files that ``position`` needs.

        Return False if the relay was already running.
        """
        if self._relay.writing:
            return False
        self._log.warning("relay.begun", position=str(position))
        self._relay.start(binlog_source(self._setup, self._server), position)
        return True

    def oldest_needed(self, needed: Sequence[BinlogPosition]) -> BinlogPosition | None:
        """Return the oldest position that is still needed; None if nothing is saved yet."""
        saved = self._saved()
        return min((*saved, *needed), key=lambda position: position.key) if saved else None

    def size(self) -> RelayStatus | None:
        """Return the same as `RelayLog.size`."""
        return self._relay.size()

    def reconnect(self) -> None:
        """Make the relay check again that its files belong to the source's binlog."""
        self._relay.reconnect()

    async def keep(self, needed: Sequence[BinlogPosition]) -> None:
        """Start the relay if it is needed, and delete unneeded files, as configured."""
        if self._relay.wanted and not self._relay.writing:
            self._relay.start(binlog_source(self._setup, self._server), needed[0])
        try:
            await self.purge(needed)
        except OSError as error:
            self._log.warning("relay.failed", error=str(error))

    async def purge(self, needed: Sequence[BinlogPosition], *, every: bool = False) -> list[str]:
        """Delete files as `RelayLog.purge` does; delete nothing until something is saved.

        Raises OSError.
        """
        oldest = self.oldest_needed(needed)
        if oldest is None:
            return []
        async with self._purging:
            purge = partial(self._relay.purge, oldest, every=every)
            gone = await anyio.to_thread.run_sync(purge)
        if gone:
            self._log.info("relay.purged", files=gone, needed=str(oldest))
        return gone
