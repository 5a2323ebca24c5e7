"""Shards in the binlog that were not copied although their source was.

The rows that such a table had before are not on the target, and nothing will add them: the account
could not see it when the copy began, or the routes did not include it. A table whose CREATE was
read has no such rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote as quoted

from actors.faults import START_OVER, FatalError, Parts, of_target
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
    scope: Parts | None = None,
    *,
    unread: bool = False,
) -> FatalError:
    """Return the fault for tables that were not copied, each with its target.

    Args:
        met: how they were found.
        scope: the parts that the changing statement blocks; None: the targets of the tables.
        unread: no event of them was read. Otherwise the task meets the event again, even if the
            table is dropped and created after it.
    """
    names = sorted(tables)
    shown = ", ".join(map(str, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    schemas = " ".join(
        f"GRANT SELECT ON {quote(schema)}.* TO …;" for schema in sorted({n.schema for n in names})
    )
    declared = ", or ".join(_declared(source, name) for name in names[:_SHOWN])
    compared = " ".join(f"--tables {quoted(str(name))}" for name in sorted(set(tables.values())))
    recreate = (
        "if it was empty then, and has got no rows since: DROP and CREATE it again at the source,"
        " then `replicator resume`",
    )
    return FatalError(
        "member.not-copied",
        f"{met}: {shown}{more}. The routes match it, but the full copy of source {source} did not"
        " see it, and the task has read no statement that creates it: the account could not see"
        " it, or the routes or the block-allow-list were different then. The rows that it had"
        " then are not on the target",
        f"with task-mode all: let the account see it ({schemas} `replicator check` shows what it"
        " can't see), then `replicator resume`. The task copies it in the background. It can't if a"
        " statement has changed the table since the saved position, a schema change of its target"
        " is open, or the target still has rows of it from a time when it was followed",
        f"to copy it together with all others: let the account see it ({schemas} `replicator"
        f" check` shows what it can't see); then {START_OVER}",
        "to copy it alone, if its target has a key: let the account see it, `replicator pause"
        f" TASK`, {declared}, `replicator resume TASK`: the task follows it from here on. Then"
        f" `replicator compare TASK.yaml {compared} --repair-now` adds the rows that it had"
        " before; docs/how-to/add-a-shard.md has the steps",
        "to leave it out: name it in ignore-tables or ignore-dbs of the block-allow-list of source"
        f" {source} (one of its own, if other sources have a shard of this name), then `replicator"
        " reload TASK.yaml`",
        *(recreate if unread else ()),
        "if the target already has all rows that the table had before the event that the task"
        " reads next, or the table had none: let the account see it, `replicator pause TASK`,"
        f" {declared} (only for tables whose rows are there), then `replicator resume TASK`",
        where=where,
        scope=scope or of_target(*tables.values()),
    )


def _declared(source: str, table: TableName) -> str:
    command = f"--source {quoted(source)} --table {quoted(str(table))} --from-source"
    return f"`replicator schema set TASK {command}`"
