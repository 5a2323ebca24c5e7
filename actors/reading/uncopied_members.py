"""Shards in the binlog that were not copied although their source was copied.

The rows that such a table had before are not on the target, and nothing will add them: the account
could not see the table when the copy began, or the routes did not include it. A table whose CREATE
was read has no such rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote as quoted

from actors.errors.faults import FatalError, TaskParts, fault, of_target
from replicator.binlog.errors import BinlogError
from replicator.mysql.names import TableName, quote

_SHOWN = 5


class UncopiedMemberError(BinlogError):
    """The next rows belong to a table that was not copied."""


def uncopied_rows(source: str, tables: Mapping[TableName, TableName], place: object) -> FatalError:
    """Return the fault for rows after ``place`` of a table that was not copied."""
    met = "the next rows belong to a table that was never copied"
    return uncopied_members(source, tables, met, f"source {source}, after {place}")


def uncopied_members(
    source: str,
    tables: Mapping[TableName, TableName],
    met: str,
    where: str,
    scope: TaskParts | None = None,
    *,
    unread: bool = False,
) -> FatalError:
    """Return the fault for tables that were not copied, each with its target.

    Args:
        met: how they were found.
        scope: the parts that the changing statement blocks; None: the targets of the tables.
        unread: whether no event of them was read. Otherwise the task reads the event again, even if
            the table is dropped and created after it.
    """
    names = sorted(tables)
    shown = ", ".join(map(str, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    grants = " ".join(
        f"GRANT SELECT ON {quote(schema)}.* TO …;" for schema in sorted({n.schema for n in names})
    )
    declared = ", or ".join(_declared(source, name) for name in names[:_SHOWN])
    compared = " ".join(f"--tables {quoted(str(name))}" for name in sorted(set(tables.values())))
    return fault(
        "member.not-copied",
        scope=scope or of_target(*tables.values()),
        met=met,
        shards=f"{shown}{more}",
        source=source,
        where=where,
        grants=grants,
        declared=declared,
        tables=compared,
        unread=unread,
    )


def _declared(source: str, table: TableName) -> str:
    command = f"--source {quoted(source)} --table {quoted(str(table))} --from-source"
    return f"`replicator schema set TASK {command}`"
