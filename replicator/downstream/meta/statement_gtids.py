"""The GTIDs of the statements behind the saved position, in a meta table.

Decisions, records of DDL and what is known of online schema changes name statements by their places
in the binlog, the operator's answers also by those of their own events. When another server takes
over, its binlog is asked by these GTIDs where they stand there. So each is saved before anything
that names its statement, or in the same transaction.
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
    """Reads and writes them; places are keys of where the statements' event groups begin, and of
    where their own events do."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(STATEMENT_GTID_TABLE)
        # A source that held rows reads its statements again, perhaps hundreds of times.
        self._saved: dict[tuple[str, int], str] = {}

    async def load(self, source: str) -> dict[int, str]:
        """Those of a source, by place."""
        rows = await self._meta.connection.fetch(
            f"SELECT place, gtid FROM {self._table} WHERE source = %s", (source,)
        )
        return {int(place): gtid for place, gtid in rows}

    def note(self, source: str, places: Iterable[int], gtid: str) -> None:
        """Have one saved under several places, unless it is saved there already.

        The next transaction saves it, and with it the first record that names its statement.
        """
        for place in places:
            if self._saved.get((source, place)) != gtid:
                self._meta.save_later(f"{self._table} (source, place, gtid)", (source, place, gtid))
                self._saved[source, place] = gtid

    async def save(self) -> None:
        """Save those that were noted."""
        async with self._meta.saving():
            pass

    async def forget(self, source: str, place: int) -> None:
        """Remove those of statements before a place."""
        gone = await self._meta.connection.fetch(
            f"SELECT COUNT(*) FROM {self._table} WHERE source = %s AND place < %s", (source, place)
        )
        if gone[0][0]:
            await self._meta.write(
                f"DELETE FROM {self._table} WHERE source = %s AND place < %s", (source, place)
            )
