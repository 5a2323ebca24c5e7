"""The purge watch: warns before a source deletes binlogs that are still needed.

It also detects streams that wait at a place that the binlog no longer has (`IdleStreams`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import anyio
import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, fault
from actors.reading.idle_streams import IdleStream, IdleStreams
from actors.reading.source_relay import SourceRelay
from actors.reading.unread_shards import UnreadShards
from replicator.binlog.positions.position import BinlogFile, BinlogPosition, Distance, distance
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.server.binlog_end import binlog_end

WATCH_SECONDS = 10.0
"""Seconds between two checks of the sources' binlog files."""

NEAR_FILES = 2
"""With this number of older files or fewer, the position is likely to be purged soon."""


@dataclass(frozen=True, slots=True)
class BinlogNeed:
    """The position from which a source would be read again, and the reason.

    Attributes:
        waits_for: the reason; empty if the position advances by itself.
        locks: the open locks.
        held: the targets that have held events.
        stopped: whether the source is not read at present.
        idle: its stream, if the stream has read everything.
        prepared: places of the XA transactions that wait for their outcome.
    """

    position: BinlogPosition
    waits_for: str = ""
    locks: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    stopped: bool = False
    idle: IdleStream | None = None
    prepared: tuple[BinlogPosition, ...] = ()

    @property
    def positions(self) -> tuple[BinlogPosition, ...]:
        """All positions that the source may be read from again."""
        return (self.position, *self.prepared)


class PurgeWatch:
    """Checks the binlog files of each source periodically.

    The saved position of a source may stay behind while reading continues: before the first open
    statement if the source has an open lock, before the held events if it has a blocked target, and
    at the start of the copy while the source is copied. The server may purge the files in between.
    ``need`` returns the present need of a source.
    """

    def __init__(
        self,
        addresses: Mapping[str, DatabaseAddress],
        need: Callable[[str], BinlogNeed | None],
        unread: UnreadShards | None = None,
        relays: Mapping[str, SourceRelay] | None = None,
    ) -> None:
        """``unread`` checks the shards of these sources equally often; ``relays`` are by source."""
        self.distances: dict[str, Distance] = {}
        self._connections = {source: Connection(a) for source, a in addresses.items()}
        self.need = need
        self._unread = unread
        self.relays = relays or {}
        self._idle = IdleStreams()
        self._told: dict[tuple[str, bool], int] = {}
        self._refused: set[str] = set()
        self._gone: set[str] = set()
        self._log = structlog.get_logger()

    async def run(self) -> None:
        """Watch until cancelled. Raises FatalError if a needed file is gone."""
        try:
            while True:
                for source, connection in self._connections.items():
                    await self._look(source, connection)
                    if self._unread is not None:
                        await self._unread.look(source)
                await anyio.sleep(WATCH_SECONDS)
        finally:
            for connection in self._connections.values():
                connection.close()

    async def _look(self, source: str, connection: Connection) -> None:
        need = self.need(source)
        if need is None:
            return
        try:
            end = await binlog_end(connection)
            rows = await connection.fetch("SHOW BINARY LOGS")
            with parsing_answer("SHOW BINARY LOGS"):
                files = [BinlogFile(str(row[0]), int(row[1])) for row in rows]
        except DatabaseUnavailableError:
            # The reader reports a source that is unreachable.
            return
        except MySQLError as error:
            if source not in self._refused:
                self._refused.add(source)
                self._log.warning("source.binlogs-unknown", source=source, error=str(error))
            return
        if end is not None:
            self._compare(source, need.idle, BinlogPosition(end.file, end.offset))
        relay = self.relays.get(source)
        if relay is not None:
            await relay.keep(need.positions)
        self._look_at_prepared(source, need, files)
        found = distance(need.position, files)
        if found is None:
            self.distances.pop(source, None)
        else:
            self.distances[source] = found
        needed = self._of_source(source, need.position)
        left = None if needed is None else distance(needed, files)
        if needed is not None and left is None and need.waits_for:
            need = replace(need, position=needed)
            self._fail(source, _purged(source, need, files), need)
            return
        reason = f"{need.waits_for}: the source must be read again from this position"
        waits = left if need.waits_for else None
        self._tell((source, False), need, needed or need.position, waits, reason)

    def _look_at_prepared(self, source: str, need: BinlogNeed, files: list[BinlogFile]) -> None:
        oldest = min(need.prepared, default=None, key=lambda at: at.key)
        needed = None if oldest is None else self._of_source(source, oldest)
        found = None if needed is None else distance(needed, files)
        reason = (
            "the oldest prepared XA transaction is at this position: once its file is gone, a"
            " task that starts or connects again can't replicate it any more"
        )
        self._tell((source, True), need, needed or need.position, found, reason)

    def _tell(
        self,
        key: tuple[str, bool],
        need: BinlogNeed,
        position: BinlogPosition,
        found: Distance | None,
        reason: str,
    ) -> None:
        """Warn if a position is likely to be purged soon, once for each purged file."""
        near = found is not None and found.files_behind and found.files_left <= NEAR_FILES
        begins = near and key[0] in self.relays and self.relays[key[0]].begin(position)
        if found is None or not near or begins:
            self._told.pop(key, None)
        elif self._told.get(key) != found.files_left:
            self._told[key] = found.files_left
            self._log.warning(
                "source.purge-near",
                source=key[0],
                position=str(position),
                files_left=found.files_left,
                files_behind=found.files_behind,
                bytes_behind=found.bytes_behind,
                locks=list(need.locks),
                held=list(need.held),
                reason=reason,
            )

    def _of_source(self, source: str, position: BinlogPosition) -> BinlogPosition | None:
        """Return the position from which on the source must keep files; None if it need not."""
        relay = self.relays.get(source)
        return position if relay is None else relay.needed_of_source(position)

    def _compare(self, source: str, idle: IdleStream | None, end: BinlogPosition) -> None:
        left = self._idle.left_behind(source, idle, end)
        if left is not None:
            position = str(left.position)
            self._log.info("source.reopened", source=source, position=position, end=str(end))
            if source in self.relays:
                self.relays[source].reconnect()
            left.reopen()

    def _fail(self, source: str, fault: FatalError, need: BinlogNeed) -> None:
        """Raise the fault; if the source is stopped already, log the fault once."""
        if not need.stopped:
            raise fault
        if source not in self._gone:
            self._gone.add(source)
            self._log.error(
                fault.event, error=fault.message, where=fault.where, remedies=fault.remedies
            )


def _purged(source: str, need: BinlogNeed, files: list[BinlogFile]) -> FatalError:
    named = {"locks": need.locks, "targets": need.held}
    held = "".join(f" ({what}: {', '.join(names)})" for what, names in named.items() if names)
    return fault(
        "source.purged",
        "needed",
        source=source,
        place=need.position,
        file=need.position.file,
        oldest=files[0].name,
        reason=need.waits_for,
        held=held,
        files=f"the binlog files from {need.position.file} on",
    )
