"""Writes the changed members, groups and low watermarks of a checkpoint.

A schema change saves several times, and concerns some of thousands of members. So unchanged rows
are not written again, and the others are written by statements of many rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from replicator.downstream.rows.watermark_table import LOW_WATERMARK_BUCKET
from replicator.mysql.connection.asyncio_connection import Transaction
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import MemberRecord, dump_structure
from replicator.watermark import Watermark

_LONGEST_DOUBT = 5_000
"""Maximum number of characters; with four bytes each, they fit into TEXT."""

_ROWS = 500
_CHARACTERS = 500_000
"""Maximum number of characters of one statement, unless it has a single row.

With four bytes each, they fit into the smallest default packet of a server (4 MiB: MySQL 5.6's
manual, max_allowed_packet).
"""


@dataclass(frozen=True, slots=True)
class SavedTables:
    """The quoted, qualified names of the meta tables."""

    member: str
    group: str
    watermark: str


@dataclass(frozen=True, slots=True)
class SavedMembers:
    """The saved state of a source besides its position.

    Attributes:
        groups: by target, the state of the source's group as text.
        low_gtids: GTID sets at the low watermarks that are known to have moved.
    """

    members: Mapping[TableName, MemberRecord]
    groups: Mapping[TableName, str]
    low_watermarks: Mapping[TableName, Watermark]
    low_gtids: Mapping[TableName, str] = field(default_factory=dict)


NOTHING_KNOWN = SavedMembers({}, {}, {})
"""The former state if it is unknown."""


async def write_members(
    transaction: Transaction,
    tables: SavedTables,
    source: str,
    former: SavedMembers | None,
    now: SavedMembers,
) -> None:
    """Write members and groups; ``former``: the saved state, None if unknown."""
    if former is None:
        await transaction.fetch(f"DELETE FROM {tables.member} WHERE source = %s", (source,))
        await transaction.fetch(f"DELETE FROM {tables.group} WHERE source = %s", (source,))
        former = NOTHING_KNOWN
    await _remove(
        transaction,
        f"DELETE FROM {tables.member} WHERE source = %s AND (schema_name, table_name) IN",
        source,
        former.members.keys() - now.members.keys(),
    )
    await _remove(
        transaction,
        f"DELETE FROM {tables.group} WHERE source = %s AND (target_schema, target_table) IN",
        source,
        former.groups.keys() - now.groups.keys(),
    )
    groups = sorted(now.groups.items() - former.groups.items())
    await put_rows(
        transaction,
        f"REPLACE INTO {tables.group} (source, target_schema, target_table, state) VALUES",
        [(source, *target, state) for target, state in groups],
    )
    changed = (r for name, r in now.members.items() if not _same(former.members.get(name), r))
    await put_rows(
        transaction,
        f"REPLACE INTO {tables.member} (source, schema_name, table_name, target_schema,"
        " target_table, version, since, structure, provenance, doubt, copy_state) VALUES",
        map(_values, changed),
    )


async def write_low_watermarks(
    transaction: Transaction,
    tables: SavedTables,
    source: str,
    former: SavedMembers | None,
    now: SavedMembers,
) -> None:
    """Write the low watermarks; ``former`` as for `write_members`."""
    known = former or NOTHING_KNOWN
    moved = sorted(now.low_watermarks.items() - known.low_watermarks.items())
    await put_rows(
        transaction,
        f"INSERT INTO {tables.watermark} (source, target_schema, target_table, bucket, version,"
        " transaction_key, ordinal, gtid) VALUES",
        [
            (*(source, *target, LOW_WATERMARK_BUCKET), *(*watermark, now.low_gtids.get(target)))
            for target, watermark in moved
        ],
        # A watermark that is not known to have moved keeps its GTIDs.
        " ON DUPLICATE KEY UPDATE version = VALUES(version),"
        " transaction_key = VALUES(transaction_key), ordinal = VALUES(ordinal),"
        " gtid = COALESCE(VALUES(gtid), gtid)",
    )


def _same(one: MemberRecord | None, other: MemberRecord) -> bool:
    # Equal structures may have been learned in different ways, and this is saved, too.
    return one == other and one.held.structure is other.held.structure


async def _remove(
    transaction: Transaction, delete: str, source: str, names: Iterable[TableName]
) -> None:
    for part in _parts([tuple(name) for name in sorted(names)]):
        places = ", ".join(["(%s, %s)"] * len(part))
        fields = [field for row in part for field in row]
        await transaction.fetch(f"{delete} ({places})", (source, *fields))


async def put_rows(
    transaction: Transaction, into: str, rows: Iterable[Sequence[object]], where_there: str = ""
) -> None:
    """Write rows by few statements: ``into`` VALUES rows ``where_there``."""
    for part in _parts(rows):
        one = f"({', '.join(['%s'] * len(part[0]))})"
        fields = [field for row in part for field in row]
        await transaction.fetch(f"{into} {', '.join([one] * len(part))}{where_there}", fields)


def _parts(rows: Iterable[Sequence[object]]) -> Iterator[list[Sequence[object]]]:
    """Divide the rows into parts for one statement each; none is empty."""
    part: list[Sequence[object]] = []
    size = 0
    for row in rows:
        length = sum(len(field) for field in row if isinstance(field, str))
        if part and (len(part) == _ROWS or size + length > _CHARACTERS):
            yield part
            part, size = [], 0
        part.append(row)
        size += length
    if part:
        yield part


def _values(record: MemberRecord) -> tuple[object, ...]:
    return (
        record.member.source,
        *record.member.name,
        *record.target,
        record.version,
        record.since,
        dump_structure(record.held.structure),
        record.held.provenance.value,
        record.held.doubt[:_LONGEST_DOUBT],
        record.copying.value,
    )
