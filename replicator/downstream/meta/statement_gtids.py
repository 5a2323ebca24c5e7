"""The GTIDs of the statements after the saved position, in a meta table.

Decisions, DDL records and entries of online schema changes identify statements by binlog positions;
the operator's answers also use the positions of the statements' own events. When another server
takes over, these GTIDs show the positions in its binlog. So a GTID is saved before any record that
names its statement, or in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable

STATEMENT_GTID_TABLE = MetaTable(
    "statement_gtid",
    "source VARCHAR(64) NOT NULL, place BIGINT NOT NULL, gtid VARCHAR(128) NOT NULL,"
    " PRIMARY KEY (source, place)",
)


class StatementGtidStore:
    """Reads and writes the GTIDs of statements, by the keys of positions.

    A statement has two positions: the beginning of its event group and the beginning of its own
    event.
    """

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(STATEMENT_GTID_TABLE)
        # A source that held rows reads its statements again, possibly hundreds of times.
        self._saved: dict[tuple[str, int], str] = {}

    async def load(self, source: str) -> dict[int, str]:
        """Return the GTIDs of a source, by position."""
        rows = await self._meta.connection.fetch(
            f"SELECT place, gtid FROM {self._table} WHERE source = %s", (source,)
        )
        return {int(place): gtid for place, gtid in rows}

    def note(self, source: str, places: Iterable[int], gtid: str) -> None:
        """Queue a GTID to be saved under several positions, unless it is already saved there.

        The next transaction saves it, with the first record that names its statement.
        """
        for place in places:
            if self._saved.get((source, place)) != gtid:
                self._meta.save_later(f"{self._table} (source, place, gtid)", (source, place, gtid))
                self._saved[source, place] = gtid

    async def save(self) -> None:
        """Save the queued GTIDs."""
        async with self._meta.saving():
            pass

    async def forget(self, source: str, place: int) -> None:
        """Remove the GTIDs of statements before a position."""
        gone = await self._meta.connection.fetch(
            f"SELECT COUNT(*) FROM {self._table} WHERE source = %s AND place < %s", (source, place)
        )
        if gone[0][0]:
            await self._meta.write(
                f"DELETE FROM {self._table} WHERE source = %s AND place < %s", (source, place)
            )
