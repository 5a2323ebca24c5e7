"""The purge watch: sees in time that a source is about to delete what a lock still needs."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import structlog
from pymysql.err import MySQLError

from actors.batched_writer import BatchedWriter
from actors.faults import FatalError
from actors.lock_coordinator import LockCoordinator, lock_id
from replicator.binlog.position import BinlogPosition
from replicator.binlog.retention import BinlogFile, Distance, distance
from replicator.schema.connection import Connection, DatabaseAddress, DatabaseUnavailableError

WATCH_SECONDS = 10.0
"""Seconds between two looks at the binlog files of the sources."""

NEAR_FILES = 2
"""So many older files left, or fewer: the position is near to being purged."""


class PurgeWatch:
    """Looks at the binlog files of each source again and again.

    A source with an open lock stays at the position before its earliest open statement, though it
    reads on; nothing else keeps the server from purging the files in between.
    """

    def __init__(
        self,
        addresses: Mapping[str, DatabaseAddress],
        writer: BatchedWriter,
        coordinator: LockCoordinator | None,
    ) -> None:
        self.distances: dict[str, Distance] = {}
        self._connections = {source: Connection(a) for source, a in addresses.items()}
        self._writer = writer
        self._coordinator = coordinator
        self._told: dict[str, int] = {}
        self._refused: set[str] = set()
        self._log = structlog.get_logger()

    async def run(self) -> None:
        """Watch until cancelled. Raises FatalError when what a lock needs is gone."""
        try:
            while True:
                for source, connection in self._connections.items():
                    await self._look(source, connection)
                await anyio.sleep(WATCH_SECONDS)
        finally:
            for connection in self._connections.values():
                connection.close()

    async def _look(self, source: str, connection: Connection) -> None:
        position = self._writer.book(source).resume.position
        if position is None:
            return
        try:
            rows = await connection.fetch("SHOW BINARY LOGS")
        except DatabaseUnavailableError:
            # The reader tells of a source that is away.
            return
        except MySQLError as error:
            if source not in self._refused:
                self._refused.add(source)
                self._log.warning("source.binlogs-unknown", source=source, error=str(error))
            return
        files = [BinlogFile(str(row[0]), int(row[1])) for row in rows]
        found = distance(position.binlog, files)
        waiting = bool(self._coordinator and self._coordinator.open_items(source))
        if found is None:
            self.distances.pop(source, None)
            if waiting:
                raise self._purged(source, position.binlog, files)
            return
        self.distances[source] = found
        near = waiting and found.files_behind > 0 and found.files_left <= NEAR_FILES
        if not near:
            self._told.pop(source, None)
        elif self._told.get(source) != found.files_left:
            self._told[source] = found.files_left
            self._log.warning(
                "source.purge-near",
                source=source,
                position=str(position.binlog),
                files_left=found.files_left,
                files_behind=found.files_behind,
                bytes_behind=found.bytes_behind,
                locks=self._lock_ids(),
                reason="locks are open: the source must be read again from this position",
            )

    def _purged(self, source: str, position: BinlogPosition, files: list[BinlogFile]) -> FatalError:
        return FatalError(
            "source.purged",
            f"the source has purged {position.file}, its oldest binlog file is {files[0].name}:"
            " what was held for open locks since then can't be read again"
            f" (locks: {', '.join(self._lock_ids())})",
            where=f"source {source}, after {position}",
            ways_out=(
                f"restore the binlog files from {position.file} on at the source, or point the"
                " source at a replica that has them, then `replicator resume`",
                "copy the tables anew and start behind the copy with remove-meta",
            ),
        )

    def _lock_ids(self) -> list[str]:
        return [lock_id(view) for view in self._coordinator.views()] if self._coordinator else []
