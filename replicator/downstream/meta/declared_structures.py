"""The structures of shard tables that the operator has declared, in a meta table.

Each is valid from a binlog position until the next change of its table. It is kept until the
checkpoint has it, because the next start reads the rows after this position again.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import dump_structure, load_structure
from replicator.schema.structure.structure import Table

DECLARED_STRUCTURE_TABLE = MetaTable(
    "declared",
    "source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, since BIGINT NOT NULL, structure LONGTEXT NOT NULL,"
    " PRIMARY KEY (source, schema_name, table_name, since)",
)


@dataclass(frozen=True, slots=True)
class DeclaredStructure:
    """A table's structure from the event group at ``since`` on.

    ``since`` is a position's key (`replicator.binlog.positions.position.BinlogPosition.key`).
    """

    member: Member
    since: int
    structure: Table


class DeclaredStructureStore:
    """Reads and writes the declared structures."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(DECLARED_STRUCTURE_TABLE)

    async def load(self, source: str) -> list[DeclaredStructure]:
        """Return the declared structures for tables of a source."""
        rows = await self._meta.connection.fetch(
            "SELECT schema_name, table_name, since, structure"
            f" FROM {self._table} WHERE source = %s ORDER BY 1, 2, 3",
            (source,),
        )
        found = []
        for schema, table, since, text in rows:
            structure = load_structure(text)
            assert structure is not None
            found.append(
                DeclaredStructure(Member(source, TableName(schema, table)), since, structure)
            )
        return found

    async def put(self, declared: DeclaredStructure) -> None:
        """Save a structure; it replaces another one for the same table and position."""
        name = declared.member.name
        await self._meta.write(
            f"REPLACE INTO {self._table} (source, schema_name, table_name, since, structure)"
            " VALUES (%s, %s, %s, %s, %s)",
            (declared.member.source, *name, declared.since, dump_structure(declared.structure)),
        )

    async def forget(self, declared: DeclaredStructure) -> None:
        """Remove a structure."""
        name = declared.member.name
        await self._meta.write(
            f"DELETE FROM {self._table} WHERE source = %s AND schema_name = %s"
            " AND table_name = %s AND since = %s",
            (declared.member.source, *name, declared.since),
        )


def is_needed(declared: DeclaredStructure, checkpoint: Checkpoint | None, saved: int) -> bool:
    """Return whether a structure is not in the checkpoint, whose position has the key ``saved``.

    The checkpoint has it once its position is passed and the members were saved afterwards. A table
    that is no longer a member no longer needs it.
    """
    if checkpoint is None or declared.since >= saved:
        return True
    records = {record.member: record for record in checkpoint.members}
    record = records.get(declared.member)
    return record is not None and record.since < declared.since
